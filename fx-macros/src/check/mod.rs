//! Every refusal of the macros: what cannot be traced, in the field's words, at the user's token.

use quote::ToTokens;
use syn::{Error, FnArg, GenericParam, Item, Receiver, Signature};

/// Adds a problem to those found before.
pub fn add(problems: &mut Option<Error>, problem: Error) {
    match problems {
        Some(problems) => problems.combine(problem),
        None => *problems = Some(problem),
    }
}

/// What no traced signature may have.
pub fn signature(sig: &Signature) -> Option<Error> {
    let mut problems = None;
    let mut refuse = |token: &dyn ToTokens, text: &str| {
        add(
            &mut problems,
            Error::new_spanned(token.to_token_stream(), text),
        );
    };
    if let Some(token) = &sig.constness {
        refuse(
            token,
            "a traced function cannot be `const`: it records at run time",
        );
    }
    if let Some(token) = &sig.asyncness {
        refuse(
            token,
            "a traced function cannot be `async`: a graph has no suspension points",
        );
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        refuse(token, "a traced function cannot be `unsafe`");
    }
    if let Some(token) = &sig.variadic {
        refuse(token, "a traced function cannot be variadic: take a list");
    }
    problems
}

/// Methods that a graph calls through a table have lifetimes at most.
pub fn no_type_parameters(sig: &Signature, what: &str) -> Result<(), Error> {
    let is_type = |p: &&GenericParam| !matches!(p, GenericParam::Lifetime(_));
    match sig.generics.params.iter().find(is_type) {
        None => Ok(()),
        Some(param) => Err(Error::new_spanned(
            param,
            format!(
                "{what} has no type or const parameters of its own: a graph calls it without knowing them"
            ),
        )),
    }
}

/// The receiver that a traced method may have.
pub fn receiver(sig: &Signature, what: Method) -> Result<(), Error> {
    match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if is_shared(receiver) => Ok(()),
        Some(FnArg::Receiver(receiver)) => Err(Error::new_spanned(
            receiver,
            match what {
                Method::Forward => {
                    "a traced `forward` takes `&self`: state that changes in a forward does so by interior mutability"
                }
                Method::Leaf => "a leaf method takes `&self`: it gives a new value",
            },
        )),
        _ => Err(Error::new_spanned(
            &sig.ident,
            match what {
                Method::Forward => "a traced `forward` takes `&self`",
                Method::Leaf => {
                    "#[wrap] makes every method of the block a leaf, and this one has no `&self`: put it into another `impl` block, or make it a function"
                }
            },
        )),
    }
}

/// Which methods are asked about.
#[derive(Clone, Copy)]
pub enum Method {
    /// The `forward` of `#[trace] impl`.
    Forward,
    /// A method of `#[wrap] impl`.
    Leaf,
}

fn is_shared(receiver: &Receiver) -> bool {
    receiver.to_token_stream().to_string().replace(' ', "") == "&self"
}

/// The error of an attribute on something that it is not for.
pub fn wrong_item(item: &Item, attribute: &str, expected: &str) -> Error {
    let text = format!("{attribute} goes on {expected}");
    match item {
        Item::Struct(item) => Error::new_spanned(&item.ident, text),
        Item::Enum(item) => Error::new_spanned(&item.ident, text),
        Item::Trait(item) => Error::new_spanned(&item.ident, text),
        Item::Mod(item) => Error::new_spanned(&item.ident, text),
        other => Error::new_spanned(other, text),
    }
}
