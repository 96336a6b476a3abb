//! The kernel of a callable: takes the arguments from values, calls the body, stores the result.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

use crate::parse::callable::Parameter;
use crate::spans::{Ends, call_of_type};

/// The statements of a kernel over `__args: &[&Value]` and `__out: &mut Value`.
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
    let guards: Vec<_> = params
        .iter()
        .enumerate()
        .map(|(i, param)| format_ident!("__guard{i}", span = Ends::of(&param.ty).last))
        .collect();
    let take = params.iter().enumerate().map(|(i, param)| {
        let (value, guard) = (&values[i], &guards[i]);
        let guarded = param.call_on(core, "guard", quote!(#value));
        // All of it is placed at the type: there rustc reports that it cannot flow.
        let span = Ends::of(&param.ty).first;
        let arms = quote_spanned! {span=> {
            ::core::result::Result::Ok(__guard) => __guard,
            ::core::result::Result::Err(__error) => {
                return ::core::result::Result::Err(
                    #core::__private::argument_error(#callee, #specs, #i, __error),
                );
            }
        }};
        quote_spanned!(span=> let #guard = match #guarded #arms;)
    });
    let lent: Vec<TokenStream> = params
        .iter()
        .zip(&guards)
        .map(|(param, guard)| param.call(core, "lend", guard))
        .collect();
    let call = call(&lent);
    let give = call_of_type(
        output,
        quote!(#core::__private::Returns),
        "give",
        Some(quote!(__result, __out)),
    );
    quote! {
        let [#(#values),*] = __args else {
            return ::core::result::Result::Err(
                #core::__private::arity_error(#callee, #specs, __args.len()),
            );
        };
        #(#take)*
        let __result: #output = #call;
        #give
    }
}
