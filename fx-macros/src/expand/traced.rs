//! `traced!` and `function!`: handles of annotated functions, and closures as roots.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprClosure, ExprPath, Pat, Result, ReturnType};

use super::kernel::kernel;
use crate::parse::callable::{Parameter, parameter, specs};
use crate::paths;
use crate::{body, check};

pub fn traced(input: TokenStream) -> TokenStream {
    const EXPECTED: &str = "expected a function marked #[trace], or a closure `|x: &Tensor| ..`";
    if input.is_empty() {
        return Error::new(Span::call_site(), EXPECTED).to_compile_error();
    }
    let expanded = syn::parse2::<Expr>(input).and_then(|expr| match bare(expr) {
        Expr::Path(path) => Ok(handle(&path)),
        Expr::Closure(closure) => traced_closure(closure),
        other => Err(Error::new_spanned(other, EXPECTED)),
    });
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

/// An expression without the groups around it: a macro's `$f:expr` comes in one that nobody sees.
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
    let path = syn::parse2::<Expr>(input.clone()).map(bare);
    match path {
        Ok(Expr::Path(path)) => quote_spanned!(path.span()=> <#path>::FUNCTION),
        _ => Error::new_spanned(input, "expected the name of a function marked #[wrap]")
            .to_compile_error(),
    }
}

fn traced_closure(mut closure: ExprClosure) -> Result<TokenStream> {
    let core = paths::core();
    let mut problems = None;
    let mut params = Vec::new();
    for input in &mut closure.inputs {
        match input {
            Pat::Type(typed) => match parameter(&mut typed.attrs, &typed.pat, &typed.ty, &core) {
                Ok(param) => params.push(param),
                Err(error) => check::add(&mut problems, error),
            },
            other => check::add(
                &mut problems,
                Error::new_spanned(
                    &*other,
                    "an argument of a traced closure needs its type: `|x: &Tensor| ..`",
                ),
            ),
        }
    }
    if let Some(problem) = problems {
        return Err(problem);
    }
    let output = match &closure.output {
        ReturnType::Type(_, ty) => ty.to_token_stream(),
        ReturnType::Default => quote!(#core::Result<_>),
    };
    let bindings: Vec<_> = params.iter().map(Parameter::binding).collect();
    let types: Vec<_> = params.iter().map(|p| &p.ty).collect();
    let inner = &closure.body;
    let mut block: syn::Block = syn::parse2(quote!({ #inner }))?;
    body::rewrite(&mut block, &core, true);
    let specs = specs(&params, &core);
    let run = kernel(
        &params,
        &output,
        &quote!("closure"),
        &quote!(__PARAMS),
        &core,
        |lent| quote!(__body(#(#lent),*)),
    );
    Ok(quote! {{
        const __PARAMS: &[#core::__private::ParamSpec] = #specs;
        let __body = move |#(#bindings: #types),*| -> #output #block;
        #core::__private::TracedFn::closure(__PARAMS, move |__args: &[&#core::__private::Value], __out: &mut #core::__private::Value| { #run })
    }})
}
