//! `or_return`: the value of a result, or a return of its error, as generated code says it.

use proc_macro2::TokenStream;
use quote::quote;

/// Generated code has this instead of a `?`, of which rustc makes two calls and a copy of the value, in each crate.
pub fn or_return(result: &TokenStream) -> TokenStream {
    quote! {
        match #result {
            ::core::result::Result::Ok(__value) => __value,
            ::core::result::Result::Err(__error) => return ::core::result::Result::Err(__error),
        }
    }
}
