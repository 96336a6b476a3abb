//! `traced!` and `function!`: handles of annotated functions, and closures as roots.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, ExprPath, Pat, ReturnType, parse_quote};

use super::kernel::kernel;
use super::stub;
use crate::attributes;
use crate::body;
use crate::configured;
use crate::parse::callable::{Parameter, ParameterAttributes, parameter, specs};
use crate::paths;
use crate::refusal::{self, Refusals};

pub fn traced(input: TokenStream) -> TokenStream {
    let core = paths::core();
    let input = match configured::expression(input, &quote!(#core::traced)) {
        Ok(input) => input,
        Err(forms) => return forms,
    };
    let mut refusals = Refusals::default();
    let code = if input.is_empty() {
        refusals.add(refusal::handle::traced_nothing());
        None
    } else {
        match refusals.take(syn::parse2::<Expr>(input)).map(bare) {
            Some(Expr::Path(path)) => Some(handle(&path)),
            Some(Expr::Closure(closure)) => traced_closure(closure, &core, &mut refusals),
            Some(other) => {
                refusals.add(refusal::handle::traced(&other));
                None
            }
            None => None,
        }
    };
    refused_or(code, refusals, || stub::root(&core))
}

/// The expression, or its substitute with the errors.
fn refused_or(
    code: Option<TokenStream>,
    refusals: Refusals,
    stub: impl Fn() -> TokenStream,
) -> TokenStream {
    let code = code.unwrap_or_else(stub);
    match refusals.errors() {
        Some(errors) => quote!({ #errors #code }),
        None => code,
    }
}

/// An expression without the groups around it: a macro's `$f:expr` comes in an invisible one.
fn bare(mut expr: Expr) -> Expr {
    loop {
        expr = match expr {
            Expr::Group(group) if group.attrs.is_empty() => *group.expr,
            Expr::Paren(group) if group.attrs.is_empty() => *group.expr,
            other => return other,
        };
    }
}

fn handle(path: &ExprPath) -> TokenStream {
    quote_spanned!(path.span()=> <#path>::TRACED.checked(#path))
}

pub fn function(input: TokenStream) -> TokenStream {
    let mut refusals = Refusals::default();
    let code = match syn::parse2::<Expr>(input.clone()).map(bare) {
        Ok(Expr::Path(path)) => Some(quote_spanned!(path.span()=> <#path>::FUNCTION)),
        _ => {
            refusals.add(refusal::handle::function(&input));
            None
        }
    };
    refused_or(code, refusals, || stub::function(&paths::core()))
}

fn traced_closure(
    mut closure: ExprClosure,
    core: &TokenStream,
    refusals: &mut Refusals,
) -> Option<TokenStream> {
    let mut params = Vec::new();
    let inputs = closure.inputs.len();
    for input in &mut closure.inputs {
        match input {
            Pat::Type(typed) => {
                let attributes = ParameterAttributes::take(&mut typed.attrs, core, refusals);
                let param = parameter(attributes, typed, core);
                params.extend(refusals.take(param));
            }
            other => refusals.add(refusal::handle::untyped_argument(other)),
        }
    }
    if params.len() < inputs {
        return None;
    }
    let output = match &closure.output {
        ReturnType::Type(_, ty) => ty.to_token_stream(),
        ReturnType::Default => quote!(#core::Result<_>),
    };
    let bindings: Vec<_> = params.iter().map(Parameter::binding).collect();
    let types: Vec<_> = params.iter().map(|p| &p.ty).collect();
    let inner = &closure.body;
    let mut block: syn::Block = parse_quote!({ #inner });
    body::rewrite(&mut block, core, true);
    let specs = specs(&params, core);
    let run = kernel(
        &params,
        &output,
        &quote!("closure"),
        &quote!(__PARAMS),
        core,
        |lent| quote!(__body(#(#lent),*)),
    );
    let attrs = attributes::lints(&closure.attrs);
    Some(quote! { #(#attrs)* {
        const __PARAMS: &[#core::__private::ParamSpec] = #specs;
        let __body = move |#(#bindings: #types),*| -> #output #block;
        #core::__private::TracedFn::closure(__PARAMS, move |__args: &[&#core::__private::Value], __out: &mut #core::__private::Value| { #run })
    } })
}
