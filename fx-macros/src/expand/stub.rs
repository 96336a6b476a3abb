//! What a refused item expands to, so that its uses compile: the traits and handles that it would
//! have had, with bodies that never run.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    DeriveInput, Expr, FnArg, Ident, ItemFn, ItemImpl, ReturnType, Signature, Stmt, Type,
    parse_quote,
};

use super::twin::twin;
use crate::options::MethodOption;
use crate::parse::callable::Parameter;

/// The kernel that graphs call.
fn kernel(core: &TokenStream) -> TokenStream {
    quote!(|_: &[&#core::__private::Value], _: &mut #core::__private::Value| ::core::unreachable!())
}

/// A root of a trace, as an expression.
pub fn root(core: &TokenStream) -> TokenStream {
    let kernel = kernel(core);
    quote! {
        #core::__private::TracedFn::twin(
            "",
            &[],
            #kernel,
            ::core::panic::Location::caller(),
            || ::core::unreachable!(),
        )
    }
}

/// A function of graphs, as an expression.
pub fn function(core: &TokenStream) -> TokenStream {
    let kernel = kernel(core);
    quote! {{
        const DEFINITION: &#core::__private::FunctionDef =
            &#core::__private::FunctionDef::new("", &[], #kernel);
        #core::__private::Function::new(DEFINITION)
    }}
}

/// A function without a return type gets one if its body ends in a value, so that this is not a
/// further error.
pub fn give_result(sig: &mut Signature, body: &syn::Block, core: &TokenStream) {
    let is_value = |expr: &Expr| {
        !matches!(
            expr,
            Expr::Block(_)
                | Expr::ForLoop(_)
                | Expr::If(_)
                | Expr::Loop(_)
                | Expr::Match(_)
                | Expr::Unsafe(_)
                | Expr::While(_)
        )
    };
    if matches!(sig.output, ReturnType::Default)
        && matches!(body.stmts.last(), Some(Stmt::Expr(value, None)) if is_value(value))
    {
        sig.output = parse_quote!(-> #core::Result<impl ::core::marker::Sized>);
    }
}

/// Arguments of type `impl Into<T>` become `T`, so that the function's handle knows their types.
pub fn name_types(function: &mut ItemFn, params: &[Parameter]) {
    for (input, param) in function.sig.inputs.iter_mut().zip(params) {
        if let FnArg::Typed(arg) = input {
            *arg.ty = param.ty.clone();
        }
    }
    function
        .attrs
        .push(parse_quote!(#[allow(unused_variables)]));
    *function.block = parse_quote!({ ::core::unreachable!() });
}

/// The handle of a `#[trace]` function.
pub fn traced(function: &ItemFn, handle: &Ident, core: &TokenStream) -> TokenStream {
    let (twin, twin_ty) = twin(function, handle);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let root = root(core);
    quote! {
        #twin
        #[allow(non_upper_case_globals, dead_code)]
        impl #impl_generics #twin_ty #where_clause {
            #[doc(hidden)]
            pub const TRACED: #core::__private::TracedFn = #root;
        }
    }
}

/// The handle and the methods of a `#[wrap]` function.
pub fn leaf(item: &ItemFn, method: Option<MethodOption>, core: &TokenStream) -> TokenStream {
    let Signature {
        ident,
        inputs,
        output,
        generics,
        ..
    } = &item.sig;
    let vis = &item.vis;
    let (twin, twin_ty) = twin(item, ident);
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let function = function(core);
    // A result type that only the body determines is not available to the method, which has no
    // body.
    let method = method.filter(|_| !output.to_token_stream().to_string().contains("impl "));
    let by_path = method.map(|_| {
        quote! {
            #[allow(unused_variables, clippy::too_many_arguments)]
            pub fn method(#inputs) #output {
                ::core::unreachable!()
            }
        }
    });
    let inherent = match (method, receiver(item)) {
        (Some(MethodOption::Inherent), Some(ty)) => {
            let rest = inputs.iter().skip(1);
            quote! {
                impl #ty {
                    #[allow(missing_docs, dead_code, unused_variables, clippy::too_many_arguments)]
                    #vis fn #ident #impl_generics(&self, #(#rest),*) #output #where_clause {
                        ::core::unreachable!()
                    }
                }
            }
        }
        _ => quote!(),
    };
    quote! {
        #twin
        #[allow(non_upper_case_globals, dead_code)]
        impl #impl_generics #twin_ty #where_clause {
            #[doc(hidden)]
            pub const FUNCTION: #core::__private::Function = #function;
            #by_path
        }
        #inherent
    }
}

/// `T` of a first parameter `x: &T`.
fn receiver(item: &ItemFn) -> Option<&Type> {
    match item.sig.inputs.first() {
        Some(FnArg::Typed(arg)) => match &*arg.ty {
            Type::Reference(reference) if reference.mutability.is_none() => Some(&reference.elem),
            _ => None,
        },
        _ => None,
    }
}

/// The `Module` impl of a `#[trace]` block.
pub fn module(block: &ItemImpl, core: &TokenStream) -> TokenStream {
    let self_ty = &block.self_ty;
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #core::__private::Module for #self_ty #where_clause {
            fn params(&self) -> &[#core::__private::ParamSpec] {
                &[]
            }
            fn run(&self, _: &[&#core::__private::Value], _: &mut #core::__private::Value) -> #core::Result<()> {
                ::core::unreachable!()
            }
            fn as_module(&self) -> &dyn #core::__private::Module {
                self
            }
            fn duplicate_box(&self) -> ::std::boxed::Box<dyn #core::__private::Module> {
                ::core::unreachable!()
            }
        }
    }
}

/// The `Component` impl of a derived `Module`.
pub fn component(input: &DeriveInput, core: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #core::__private::Component for #name #ty_generics #where_clause {
            fn duplicate(&self) -> Self
            where
                Self: ::core::marker::Sized,
            {
                ::core::unreachable!()
            }
        }
    }
}

/// The impls of a derived `Tree`.
pub fn tree(input: &DeriveInput, core: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let mut lent = input.generics.clone();
    lent.params.insert(0, parse_quote!('__v));
    let (lent_generics, _, _) = lent.split_for_impl();
    let ty = quote!(#name #ty_generics);
    let both = [quote!(#ty), quote!(&'__v #ty)].into_iter().map(|ty| {
        quote! {
            #[automatically_derived]
            impl #lent_generics #core::__private::IntoValue for #ty #where_clause {
                fn into_value(self) -> #core::__private::Value {
                    ::core::unreachable!()
                }
            }
            #[automatically_derived]
            impl #lent_generics #core::__private::Arg for #ty #where_clause {}
            #[automatically_derived]
            impl #lent_generics #core::__private::Param<'__v> for #ty #where_clause {
                type Guard = ();
                const TYPE: #core::__private::ParamType = #core::__private::ParamType::AnyValue;
                fn guard(_: &'__v #core::__private::Value) -> #core::Result<()> {
                    ::core::unreachable!()
                }
                fn lend(_: &'__v ()) -> Self {
                    ::core::unreachable!()
                }
                fn to_value(&self) -> #core::__private::Value {
                    ::core::unreachable!()
                }
            }
        }
    });
    quote! {
        #(#both)*
        #[automatically_derived]
        impl #impl_generics #core::__private::FromValue for #ty #where_clause {
            const TYPE: #core::__private::ParamType = #core::__private::ParamType::AnyValue;
            fn from_value(_: #core::__private::Value) -> #core::Result<Self> {
                ::core::unreachable!()
            }
        }
        #[automatically_derived]
        impl #impl_generics #core::__private::Output for #ty #where_clause {}
    }
}
