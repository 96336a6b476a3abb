//! `#[op]`: a leaf with its record, an entry of a table for each fact that is stated.
//!
//! Invariant: the leaf is what `#[wrap]` makes of the same function, and an eager call of it that
//! fails looks for its shape rule; the record points to it, and it points to no record.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;

use super::wrap;
use crate::options::OpOptions;
use crate::paths;
use crate::refusal::{self, Refusals};

pub fn op(options: TokenStream, item: TokenStream) -> TokenStream {
    let (core, nn) = (paths::core(), paths::nn());
    let mut refusals = Refusals::default();
    let options = OpOptions::parse(options, &mut refusals);
    let leaf = &options.wrap;
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        refusals.add(refusal::op::item(&item));
        let errors = refusals.errors();
        return quote!(#errors #item);
    };
    let name = &function.sig.ident;
    let into = quote!(#core::value::IntoValue::into_value);
    let mut entries = Vec::new();
    let entry = |table: TokenStream, entry: TokenStream| {
        quote! {
            #core::function_table! { #table { #core::function!(#name) => #entry } }
        }
    };
    if let Some(kind) = &options.kind {
        let variant = variant(kind);
        entries.push(entry(quote!(#nn::OpKind), quote!(#nn::OpKind::#variant)));
    }
    for (fact, value) in &options.facts {
        let (table, value) = match (fact.to_string().as_str(), value) {
            ("rule", Some(rule)) => {
                let table = quote!(#core::shapes::ShapeRule);
                (table.clone(), quote!(#table(#rule)))
            }
            ("member", None) => {
                let table = quote!(#core::passes::CoreSet);
                (table.clone(), quote!(#table::Member))
            }
            ("decomposed", Some(rule)) => {
                let table = quote!(#core::passes::CoreSet);
                (
                    table.clone(),
                    quote!(#table::decomposed(|call| (#rule)(call).map(#into))),
                )
            }
            ("composed", Some(rule)) => {
                let table = quote!(#nn::lowering::Composed);
                (
                    table.clone(),
                    quote!(#table(|call| (#rule)(call).map(#into))),
                )
            }
            ("cost", Some(count)) => {
                let table = quote!(#nn::MultiplyAdds);
                (table.clone(), quote!(#table(#count)))
            }
            ("cpu", Some(steps)) => {
                let table = quote!(#nn::cpu::CpuLowering);
                (table.clone(), quote!(#table::pointwise(#steps)))
            }
            ("flat", Some(reason)) => {
                let table = quote!(#nn::NoGradient);
                (table.clone(), quote!(#table(#reason)))
            }
            ("vjp", Some(rule)) => {
                let table = quote!(#nn::func::Derivative);
                (table.clone(), quote!(#table::Vjp(#rule)))
            }
            ("batch", Some(rule)) => {
                let table = quote!(#nn::func::Batching);
                (table.clone(), quote!(#table(#rule)))
            }
            ("samples", Some(samples)) => {
                let table = quote!(#nn::testing::Samples);
                let samples = entry(table.clone(), quote!(#table(#samples)));
                entries.push(quote!(#[cfg(test)] #samples));
                continue;
            }
            _ => {
                refusals.add(refusal::op::fact(fact, value.is_some()));
                continue;
            }
        };
        entries.push(entry(table, value));
    }
    let errors = refusals.errors();
    let leaf = wrap::leaf(leaf.clone(), item, true);
    quote! {
        #errors
        #leaf
        #(#entries)*
    }
}

/// A kind as a variant of `OpKind`.
fn variant(kind: &syn::Ident) -> syn::Ident {
    let name = kind.to_string();
    let (first, rest) = name.split_at(1);
    format_ident!("{}{rest}", first.to_uppercase(), span = kind.span())
}
