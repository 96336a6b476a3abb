//! `#[trace]`: a function's twin, or a module's `forward` that asks the tracer and the `Module`
//! impl behind it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::visit::Visit;
use syn::{ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, ReturnType, Type};

use super::kernel::kernel;
use super::stub;
use super::twin::twin;
use super::wrap::{result_text, result_type, turbofish};
use crate::attributes;
use crate::body;
use crate::check::{self, Method};
use crate::configured;
use crate::control;
use crate::options::{Impure, TraceOptions};
use crate::parse::callable::{Callable, Parameter, Taken, without_attributes};
use crate::paths;
use crate::refusal::{self, Refusals};
use crate::spans::call_of_type;

pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    let core = paths::core();
    let item = match configured::item(item, &quote!(#core::trace(#options))) {
        Ok(item) => item,
        Err(forms) => return forms,
    };
    let mut refusals = Refusals::default();
    let options = TraceOptions::parse(options, &mut refusals);
    let code = match refusals.take(syn::parse2::<Item>(item.clone())) {
        Some(Item::Fn(function)) => trace_fn(&options, function, &mut refusals),
        Some(Item::Impl(block)) => trace_impl(&options, block, &mut refusals),
        Some(other) => {
            refusals.add(refusal::trace::item(&check::place(&other)));
            item
        }
        None => item,
    };
    let errors = refusals.errors();
    quote!(#errors #code)
}

fn trace_fn(options: &TraceOptions, mut function: ItemFn, refusals: &mut Refusals) -> TokenStream {
    let core = paths::core();
    attributes::relax_each(&mut function.attrs);
    if let Some(span) = options.leaf.or(options.opaque) {
        refusals.add(refusal::trace::leaf_function(span));
    }
    if let Some(span) = options.container {
        refusals.add(refusal::trace::container_function(span));
    }
    if let Some(path) = &options.path {
        refusals.add(refusal::trace::path_of_a_function(path));
    }
    if let Some((_, span)) = &options.impure {
        refusals.add(refusal::trace::impure_function(*span));
    }
    if let Some(receiver) = function.sig.receiver() {
        refusals.add(refusal::trace::method(receiver));
        without_attributes(&mut function.sig, &core, refusals);
        rewrite(&mut function.block, &function.sig.output, &core);
        return function.to_token_stream();
    }
    let mut callable = Callable::parse(&mut function.sig, &core, refusals);
    if let Some(Callable { params, .. }) = &callable
        && params.iter().any(|param| param.taken != Taken::AsIs)
    {
        for (_, input) in params
            .iter()
            .zip(&function.sig.inputs)
            .filter(|(param, _)| param.taken != Taken::AsIs)
        {
            refusals.add(refusal::trace::into_argument(input));
        }
        stub::name_types(&mut function, params);
        callable = None;
    }
    let handle = options.handle.clone();
    let handle = &handle.unwrap_or_else(|| function.sig.ident.clone());
    let Some(callable) = callable else {
        stub::give_result(&mut function.sig, &function.block, &core);
        rewrite(&mut function.block, &function.sig.output, &core);
        let stub = stub::traced(&function, handle, &core);
        return quote!(#function #stub);
    };
    if options.control_flow {
        control::rewrite(&function.sig, &mut function.block, &core);
    }
    rewrite(&mut function.block, &function.sig.output, &core);
    let name = &function.sig.ident;
    let text = name.to_string();
    let (twin, twin_ty) = twin(&function, handle);
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
    quote! {
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
    }
}

/// Rewrites a body, whose `?` needs a result.
fn rewrite(block: &mut syn::Block, output: &ReturnType, core: &TokenStream) {
    body::rewrite(block, core, matches!(output, ReturnType::Type(..)));
}

fn trace_impl(options: &TraceOptions, mut block: ItemImpl, refusals: &mut Refusals) -> TokenStream {
    let core = paths::core();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && (method.sig.receiver().is_some() || method.sig.ident == "forward")
        {
            attributes::relax_each(&mut method.attrs);
            if options.control_flow {
                control::rewrite(&method.sig, &mut method.block, &core);
            }
            match method.sig.ident == "forward" {
                true => rewrite(&mut method.block, &method.sig.output, &core),
                false => body::rewrite(&mut method.block, &core, false),
            }
        }
    }
    if let Some(handle) = &options.handle {
        refusals.add(refusal::trace::handle_of_a_module(handle));
    }
    if let Some(path) = &options.path
        && !block.generics.params.is_empty()
    {
        refusals.add(refusal::trace::path_of_a_generic_type(path));
    }
    // Neither of these two gets a stub: the type has its own traced `forward` elsewhere, or is of
    // another crate.
    if let Some((path, _)) = &block.trait_ {
        refusals.add(refusal::trace::trait_impl(path));
        for item in &mut block.items {
            if let ImplItem::Fn(method) = item {
                without_attributes(&mut method.sig, &core, refusals);
            }
        }
        return block.to_token_stream();
    }
    // The derive of such a type is refused, and there is no `Module` of what borrows.
    if borrows(&block) {
        for item in &mut block.items {
            if let ImplItem::Fn(method) = item {
                without_attributes(&mut method.sig, &core, refusals);
            }
        }
        return block.to_token_stream();
    }
    let self_ty = (*block.self_ty).clone();
    let mut found = false;
    let mut module_impl_body = None;
    for item in &mut block.items {
        if let ImplItem::Fn(forward) = item
            && forward.sig.ident == "forward"
        {
            found = true;
            match forward_items(options, forward, &self_ty, &core, refusals) {
                Some((code, body)) => {
                    *item = ImplItem::Verbatim(code);
                    module_impl_body = Some(body);
                }
                None => stub::give_result(&mut forward.sig, &forward.block, &core),
            }
            break;
        }
    }
    if !found {
        refusals.add(refusal::trace::no_forward(&block.self_ty));
        return block.to_token_stream();
    }
    let argument = argument(&block, &core);
    let Some(module_impl_body) = module_impl_body else {
        let stub = stub::module(&block, &core);
        return quote!(#block #stub #argument);
    };
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    // Saved files find the type by its path; of a generic type each instantiation has its own.
    let registration = match &options.path {
        Some(path) => quote!(named::<#self_ty>(|| #path)),
        None => quote!(of::<#self_ty>()),
    };
    let is_registered = cfg!(feature = "registry") && block.generics.params.is_empty();
    let registered = is_registered.then(|| {
        quote! {
            #core::register_module!(@entry #self_ty, #core::__private::ModuleType::#registration);
        }
    });
    quote! {
        #block
        #[automatically_derived]
        impl #impl_generics #core::__private::Module for #self_ty #where_clause {
            #module_impl_body
        }
        #argument
        #registered
    }
}

/// Whether a type has lifetimes.
fn borrows(block: &ItemImpl) -> bool {
    struct Lifetimes(bool);
    impl<'ast> Visit<'ast> for Lifetimes {
        fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
    }
    let mut lifetimes = Lifetimes(false);
    lifetimes.visit_type(&block.self_ty);
    lifetimes.0
}

/// The code that makes `&Layer` a parameter of `#[wrap]` functions.
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

/// The new `forward` with its hidden companions, and the items of the `Module` impl; nothing for a
/// refused one.
fn forward_items(
    options: &TraceOptions,
    forward: &mut ImplItemFn,
    self_ty: &Type,
    core: &TokenStream,
    refusals: &mut Refusals,
) -> Option<(TokenStream, TokenStream)> {
    let callable = Callable::parse(&mut forward.sig, core, refusals);
    let fits = check::method(&forward.sig, Method::Forward, refusals);
    let callable = callable.filter(|_| fits)?;
    let bindings = callable.take_bindings(&mut forward.sig);
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
    let convert = params.iter().filter_map(Parameter::conversion);
    let types = params.iter().map(|p| &p.ty);
    let values = params.iter().map(|p| p.call(core, "to_value", &p.name));
    let (attrs, vis, sig) = (&forward.attrs, &forward.vis, &forward.sig);
    let statements = &forward.block.stmts;
    let lints = attributes::lints(attrs);
    let lifetimes: Vec<_> = sig.generics.lifetimes().collect();
    // The user's own `self`: inside a macro of theirs, another `self` would not be the same.
    let receiver = sig.inputs.first();
    let this = sig.receiver().map(|receiver| &receiver.self_token);
    let call = quote! {
        #core::__private::call_forward(
            #this,
            &[#(&|| #values),*],
            ::core::panic::Location::caller(),
        )
    };
    let recorded = call_of_type(
        output,
        quote!(#core::__private::Returns),
        "from_recorded",
        Some(call),
    );
    let called = call_of_type(
        output,
        quote!(#core::__private::Returns),
        "called",
        Some(quote!(#this.__fx_forward(#(#args),*), #type_text, ::core::panic::Location::caller())),
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
            #called
        }
        // Not inlined: the body would be compiled in each unit that calls it.
        #[doc(hidden)]
        #(#lints)*
        fn __fx_forward<#(#lifetimes),*>(#receiver, #(#bindings: #types),*) -> #output {
            #(#statements)*
        }
        #[doc(hidden)]
        const __FX_PARAMS: &'static [#core::__private::ParamSpec] = #specs;
    };
    let is_leaf = options.leaf.or(options.opaque).is_some();
    let leaf = is_leaf.then(|| {
        quote! {
            fn is_leaf(&self) -> bool {
                true
            }
        }
    });
    let opaque = options.opaque.is_some().then(|| {
        quote! {
            fn is_opaque(&self) -> bool {
                true
            }
        }
    });
    let container = options.container.is_some().then(|| {
        quote! {
            fn is_container(&self) -> bool {
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
            // A separate function: what a type that is not a component lacks is then reported once, at
            // the type.
            fn copy<M: #core::__private::Module>(module: &M) -> ::std::boxed::Box<dyn #core::__private::Module> {
                ::std::boxed::Box::new(#core::__private::Component::duplicate(module))
            }
            copy(self)
        }
        fn location(&self) -> ::core::option::Option<&'static ::core::panic::Location<'static>> {
            ::core::option::Option::Some(const { #location })
        }
        #leaf
        #opaque
        #container
        #impure
    };
    Some((code, module_impl_body))
}
