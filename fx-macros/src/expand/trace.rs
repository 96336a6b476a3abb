//! `#[trace]`: a function's twin, or a module's `forward` that asks the tracer and the `Module` impl behind it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Result, Type};

use super::kernel::kernel;
use super::refused;
use super::wrap::{result_text, result_type, turbofish, twin};
use crate::body;
use crate::check::{self, Method};
use crate::options::{Impure, TraceOptions};
use crate::parse::callable::Callable;
use crate::paths;
use crate::spans::call_of_type;

pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = syn::parse2::<Item>(item.clone());
    let options = match TraceOptions::parse(options) {
        Ok(options) => options,
        Err(error) => return refused(&error, &item),
    };
    match parsed {
        Ok(Item::Fn(mut function)) => match trace_fn(&options, &mut function) {
            Ok(code) => code,
            Err(error) => refused(&error, &function.to_token_stream()),
        },
        Ok(Item::Impl(mut block)) => match trace_impl(&options, &mut block) {
            Ok(code) => code,
            Err(error) => refused(&error, &block.to_token_stream()),
        },
        Ok(other) => refused(
            &check::wrong_item(
                &other,
                "#[trace]",
                "a function, or the `impl` block of a `forward`",
            ),
            &item,
        ),
        Err(error) => refused(&error, &item),
    }
}

fn trace_fn(options: &TraceOptions, function: &mut ItemFn) -> Result<TokenStream> {
    let core = paths::core();
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
        return Err(Error::new_spanned(
            receiver,
            "a method is traced by #[trace] on its whole `impl` block",
        ));
    }
    if let Some(span) = options.leaf {
        return Err(Error::new(span, "a function becomes a leaf by #[wrap]"));
    }
    if let Some(path) = &options.path {
        return Err(Error::new_spanned(
            path,
            "`path` is for modules: a traced function has no node, so that nothing is saved under its name",
        ));
    }
    if let Some((_, span)) = &options.impure {
        return Err(Error::new(
            *span,
            "`impure` is for modules: a function is traced into the leaves it calls, and each of them says it",
        ));
    }
    let callable = Callable::parse(&mut function.sig, &core)?;
    for (param, input) in callable.params.iter().zip(&function.sig.inputs) {
        if param.into {
            return Err(Error::new_spanned(
                input,
                "an argument of a traced function needs a named type, not `impl Trait`",
            ));
        }
    }
    body::rewrite(&mut function.block, &core, true);
    let name = &function.sig.ident;
    let text = name.to_string();
    let handle = options.handle.as_ref().unwrap_or(name);
    let (twin, twin_ty) = twin(function, handle);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let turbofish = turbofish(&function.sig.generics);
    let specs = callable.specs(&core);
    let kernel_body = kernel(
        &callable.params,
        &callable.output.to_token_stream(),
        &quote!(#text),
        &quote!(Self::PARAMS),
        &core,
        |lent| quote!(#name #turbofish(#(#lent),*)),
    );
    let location = quote_spanned!(name.span()=> ::core::panic::Location::caller());
    Ok(quote! {
        #function
        #twin
        #[allow(non_upper_case_globals, dead_code)]
        impl #impl_generics #twin_ty #where_clause {
            #[doc(hidden)]
            pub const PARAMS: &'static [#core::__private::ParamSpec] = #specs;
            #[doc(hidden)]
            pub const TRACED: #core::__private::TracedFn = #core::__private::TracedFn::twin(
                #text,
                Self::PARAMS,
                Self::__kernel,
                #location,
                || #core::__private::type_of(&(#name #turbofish)),
            );
            #[doc(hidden)]
            fn __kernel(__args: &[&#core::__private::Value], __out: &mut #core::__private::Value) -> #core::Result<()> {
                #kernel_body
            }
        }
    })
}

fn trace_impl(options: &TraceOptions, block: &mut ItemImpl) -> Result<TokenStream> {
    let core = paths::core();
    if let Some((path, _)) = &block.trait_ {
        return Err(Error::new_spanned(
            path,
            "#[trace] goes on the inherent `impl` block that has `forward`",
        ));
    }
    if let Some(handle) = &options.handle {
        return Err(Error::new_spanned(
            handle,
            "`handle` is for functions: a module is traced by a reference to it",
        ));
    }
    if let Some(path) = &options.path
        && !block.generics.params.is_empty()
    {
        return Err(Error::new_spanned(
            path,
            "`path` is one type's: register each instantiation of a generic one with `register_module!`",
        ));
    }
    let self_ty = (*block.self_ty).clone();
    let Some(position) = block
        .items
        .iter()
        .position(|item| matches!(item, ImplItem::Fn(method) if method.sig.ident == "forward"))
    else {
        return Err(Error::new_spanned(
            &block.self_ty,
            "#[trace] on an `impl` block makes its `forward` traceable, and this block has none",
        ));
    };
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && matches!(method.sig.inputs.first(), Some(FnArg::Receiver(_)))
        {
            body::rewrite(&mut method.block, &core, method.sig.ident == "forward");
        }
    }
    let ImplItem::Fn(forward) = &mut block.items[position] else {
        return Err(Error::new(block.span(), "`forward` is a function"));
    };
    let (code, module_impl_body) = forward_items(options, forward, &self_ty, &core)?;
    block.items[position] = ImplItem::Verbatim(code);
    let argument = argument(block, &core);
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    // Saved files find the type by its path; of a generic one each instantiation has its own.
    let registration = match &options.path {
        Some(path) => quote!(named::<#self_ty>(|| #path)),
        None => quote!(of::<#self_ty>()),
    };
    let registered = block.generics.params.is_empty().then(|| {
        quote! {
            #core::__private::inventory::submit! { #core::__private::ModuleType::#registration }
        }
    });
    Ok(quote! {
        #block
        #[automatically_derived]
        impl #impl_generics #core::__private::Module for #self_ty #where_clause {
            #module_impl_body
        }
        #argument
        #registered
    })
}

/// What makes `&Layer` a parameter of `#[wrap]` functions.
fn argument(block: &ItemImpl, core: &TokenStream) -> TokenStream {
    let self_ty = &block.self_ty;
    let mut generics = block.generics.clone();
    generics.params.insert(0, syn::parse_quote!('__v));
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #core::__private::Param<'__v> for &'__v #self_ty #where_clause {
            type Guard = &'__v #self_ty;
            const SYMBOLIC: bool = false;
            const TYPE: #core::__private::ParamType = <#core::__private::OfModule<#self_ty>>::TYPE;
            fn guard(__value: &'__v #core::__private::Value) -> #core::Result<Self::Guard> {
                #core::__private::module_of(__value)
            }
            fn lend(__guard: &'__v Self::Guard) -> Self {
                __guard
            }
            fn to_value(&self) -> #core::__private::Value {
                #core::__private::module_value(*self)
            }
        }
    }
}

/// The new `forward` with its hidden companions, and the items of the `Module` impl.
fn forward_items(
    options: &TraceOptions,
    forward: &mut ImplItemFn,
    self_ty: &Type,
    core: &TokenStream,
) -> Result<(TokenStream, TokenStream)> {
    let callable = Callable::parse(&mut forward.sig, core)?;
    let bindings = callable.take_bindings(&mut forward.sig);
    check::receiver(&forward.sig, Method::Forward)?;
    check::no_type_parameters(&forward.sig, "a traced `forward`")?;
    let specs = callable.specs(core);
    let params = &callable.params;
    let args = callable.names();
    let output = &callable.output;
    let type_text = paths::text(self_ty);
    let kernel_body = kernel(
        params,
        &output.to_token_stream(),
        &quote!(#type_text),
        &quote!(<#self_ty>::__FX_PARAMS),
        core,
        |lent| quote!(self.__fx_forward(#(#lent),*)),
    );
    let convert = params.iter().filter(|p| p.into).map(|param| {
        let (name, ty) = (&param.name, &param.ty);
        quote!(let #name: #ty = ::core::convert::Into::into(#name);)
    });
    let types = params.iter().map(|p| &p.ty);
    let values = params.iter().map(|p| p.call(core, "to_value", &p.name));
    let (attrs, vis, sig) = (&forward.attrs, &forward.vis, &forward.sig);
    let statements = &forward.block.stmts;
    let lifetimes: Vec<_> = sig.generics.lifetimes().collect();
    // The user's own `self`: in a macro of theirs, another `self` would not be it.
    let receiver = sig.inputs.first();
    let this = sig.receiver().map(|receiver| &receiver.self_token);
    let call = quote! {
        #core::__private::call_module(
            #this,
            ::std::vec![#(#values),*],
            ::core::panic::Location::caller(),
        )
    };
    let recorded = call_of_type(
        output,
        quote!(#core::__private::Returns),
        "from_recorded",
        Some(call),
    );
    let location = quote_spanned!(sig.ident.span()=> ::core::panic::Location::caller());
    let code = quote! {
        #(#attrs)*
        #[track_caller]
        #vis #sig {
            #(#convert)*
            if #core::__private::may_record() {
                return #recorded;
            }
            #this.__fx_forward(#(#args),*)
        }
        #[doc(hidden)]
        #[inline]
        fn __fx_forward<#(#lifetimes),*>(#receiver, #(#bindings: #types),*) -> #output {
            #(#statements)*
        }
        #[doc(hidden)]
        const __FX_PARAMS: &'static [#core::__private::ParamSpec] = #specs;
    };
    let leaf = options.leaf.is_some().then(|| {
        quote! {
            fn is_leaf(&self) -> bool {
                true
            }
        }
    });
    let impure = match &options.impure {
        None => quote!(),
        Some((Impure::Always, _)) => quote! {
            fn effects(&self) -> #core::__private::Effects {
                #core::__private::Effects::ALL
            }
        },
        Some((Impure::Method(method), _)) => quote! {
            fn effects(&self) -> #core::__private::Effects {
                match self.#method() {
                    true => #core::__private::Effects::ALL,
                    false => #core::__private::Effects::PURE,
                }
            }
        },
    };
    let returns = result_text(output);
    let result = result_type(output, core);
    let module_impl_body = quote! {
        fn params(&self) -> &[#core::__private::ParamSpec] {
            <#self_ty>::__FX_PARAMS
        }
        fn returns(&self) -> &str {
            #returns
        }
        fn result_type(&self) -> ::core::option::Option<#core::__private::ParamType> {
            ::core::option::Option::Some(#result)
        }
        fn run(&self, __args: &[&#core::__private::Value], __out: &mut #core::__private::Value) -> #core::Result<()> {
            #kernel_body
        }
        fn as_module(&self) -> &dyn #core::__private::Module {
            self
        }
        fn duplicate_box(&self) -> ::std::boxed::Box<dyn #core::__private::Module> {
            // A function of its own: what a type that is no component lacks is said once, at the type.
            fn copy<M: #core::__private::Module>(module: &M) -> ::std::boxed::Box<dyn #core::__private::Module> {
                ::std::boxed::Box::new(#core::__private::Component::duplicate(module))
            }
            copy(self)
        }
        fn location(&self) -> ::core::option::Option<&'static ::core::panic::Location<'static>> {
            ::core::option::Option::Some(const { #location })
        }
        #leaf
        #impure
    };
    Ok((code, module_impl_body))
}
