//! The kernel of a callable: arguments taken from values, the body called, the result put away.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::parse::callable::{Parameter, with_lifetimes};

/// The statements of a kernel over `args: &[&Value]` and `out: &mut Value`.
///
/// `callee` and `specs` are expressions; `call` makes the call from lent arguments.
pub fn kernel(
    params: &[Parameter],
    output: &TokenStream,
    callee: &TokenStream,
    specs: &TokenStream,
    core: &TokenStream,
    call: impl FnOnce(&[TokenStream]) -> TokenStream,
) -> TokenStream {
    let values: Vec<_> = (0..params.len())
        .map(|i| format_ident!("__value{i}"))
        .collect();
    let guards: Vec<_> = (0..params.len())
        .map(|i| format_ident!("__guard{i}"))
        .collect();
    let take = params.iter().enumerate().map(|(i, param)| {
        let (value, guard) = (&values[i], &guards[i]);
        let ty: Type = with_lifetimes(&param.ty, "'_");
        let guarded = quote_spanned!(param.ty.span()=> <#ty as #core::Param<'_>>::guard(#value));
        quote! {
            let #guard = match #guarded {
                ::core::result::Result::Ok(guard) => guard,
                ::core::result::Result::Err(error) => {
                    return ::core::result::Result::Err(
                        #core::__private::argument_error(#callee, #specs, #i, error),
                    );
                }
            };
        }
    });
    let lent: Vec<TokenStream> = params
        .iter()
        .zip(&guards)
        .map(|(param, guard)| {
            let ty = with_lifetimes(&param.ty, "'_");
            quote_spanned!(param.ty.span()=> <#ty as #core::Param<'_>>::lend(&#guard))
        })
        .collect();
    let call = call(&lent);
    quote! {
        let [#(#values),*] = args else {
            return ::core::result::Result::Err(
                #core::__private::arity_error(#callee, #specs, args.len()),
            );
        };
        #(#take)*
        let __result: #output = #call;
        #core::Returns::give(__result, out)
    }
}
