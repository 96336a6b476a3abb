//! The twin of a function: the type that carries its definition.
//!
//! Invariant: a twin is generic over what the function is generic over, without lifetimes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{GenericParam, Ident, ItemFn};

/// The twin of a function in the type namespace: it carries the definition under the function's
/// name.
pub fn twin(function: &ItemFn, name: &Ident) -> (TokenStream, TokenStream) {
    let vis = &function.vis;
    let generics = &function.sig.generics;
    let params: Vec<&GenericParam> = generics
        .params
        .iter()
        .filter(|p| !matches!(p, GenericParam::Lifetime(_)))
        .collect();
    if params.is_empty() {
        let twin = quote! {
            #[doc(hidden)]
            #[allow(non_camel_case_types, missing_docs, dead_code)]
            #vis struct #name {}
        };
        return (twin, quote!(#name));
    }
    let idents: Vec<&Ident> = params
        .iter()
        .filter_map(|p| match p {
            GenericParam::Type(ty) => Some(&ty.ident),
            GenericParam::Const(c) => Some(&c.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    let types: Vec<&Ident> = params
        .iter()
        .filter_map(|p| match p {
            GenericParam::Type(ty) => Some(&ty.ident),
            _ => None,
        })
        .collect();
    let where_clause = &generics.where_clause;
    let twin = quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_docs, dead_code)]
        #vis struct #name<#(#params),*> #where_clause {
            marker: ::core::marker::PhantomData<fn() -> (#(#types,)*)>,
        }
    };
    (twin, quote!(#name<#(#idents),*>))
}
