//! Every refusal of the macros: what cannot be traced, in the field's words, at the user's token.

use quote::ToTokens;
use syn::{Error, FnArg, Item, Receiver, Signature};

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

/// The receiver that a `forward` may have.
pub fn forward_receiver(sig: &Signature) -> Result<(), Error> {
    match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if is_shared(receiver) => Ok(()),
        Some(FnArg::Receiver(receiver)) => Err(Error::new_spanned(
            receiver,
            "a traced `forward` takes `&self`: state that changes in a forward does so by interior mutability",
        )),
        _ => Err(Error::new_spanned(
            &sig.ident,
            "a traced `forward` takes `&self`",
        )),
    }
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
