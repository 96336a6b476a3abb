//! Checks that several macros share: signatures that cannot be traced, and receivers that a method
//! may not have.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{FnArg, GenericParam, Item, Receiver, Signature};

use crate::refusal::{self, Refusals};

/// Refuses what no traced signature may have.
pub fn signature(sig: &Signature, refusals: &mut Refusals) {
    if let Some(token) = &sig.constness {
        refusals.add(refusal::signature::is_const(token));
    }
    if let Some(token) = &sig.asyncness {
        refusals.add(refusal::signature::is_async(token));
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        refusals.add(refusal::signature::is_unsafe(token));
    }
    if let Some(token) = &sig.variadic {
        refusals.add(refusal::signature::is_variadic(token));
    }
}

/// Whether a graph can call a method: checks its receiver, and that it has no type parameters.
pub fn method(sig: &Signature, what: Method, refusals: &mut Refusals) -> bool {
    let mut problems = Refusals::default();
    match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if is_shared(receiver) => {}
        Some(FnArg::Receiver(receiver)) => problems.add(match what {
            Method::Forward => refusal::trace::receiver(receiver),
            Method::Leaf => refusal::wrap::receiver(receiver),
        }),
        _ => problems.add(match what {
            Method::Forward => refusal::trace::no_receiver(&sig.ident),
            Method::Leaf => refusal::wrap::no_receiver(&sig.ident),
        }),
    }
    let is_type = |p: &&GenericParam| !matches!(p, GenericParam::Lifetime(_));
    if let Some(param) = sig.generics.params.iter().find(is_type) {
        let what = match what {
            Method::Forward => "a traced `forward`",
            Method::Leaf => "a leaf method",
        };
        problems.add(refusal::signature::type_parameters(param, what));
    }
    let fits = problems.is_empty();
    refusals.append(problems);
    fits
}

/// The kinds of methods to check.
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

/// The place of an attribute that does not fit its item: the item's name, if it has one.
pub fn place(item: &Item) -> TokenStream {
    match item {
        Item::Struct(item) => item.ident.to_token_stream(),
        Item::Enum(item) => item.ident.to_token_stream(),
        Item::Trait(item) => item.ident.to_token_stream(),
        Item::Mod(item) => item.ident.to_token_stream(),
        other => other.to_token_stream(),
    }
}
