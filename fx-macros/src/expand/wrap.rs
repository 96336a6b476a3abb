//! `#[wrap]`: the caller's function that records or runs, and the hidden kernel and definition
//! behind it.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericParam, Ident, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Result, Type,
    parse_quote_spanned,
};

use super::kernel::kernel;
use super::registry;
use super::stub;
use super::twin::twin;
use crate::attributes;
use crate::check::{self, Method};
use crate::configured;
use crate::options::{MethodOption, WrapOptions};
use crate::parse::callable::{Callable, Parameter, Taken, with_lifetimes, without_attributes};
use crate::paths;
use crate::refusal::{self, Refusals};
use crate::spans::call_of_type;

pub fn wrap(options: TokenStream, item: TokenStream) -> TokenStream {
    leaf(options, item, false)
}

/// What `#[wrap]` makes of an item. If it `is_op`, an eager call that fails asks its shape rule, which
/// no program without a registry has.
pub fn leaf(options: TokenStream, item: TokenStream, is_op: bool) -> TokenStream {
    let core = paths::core();
    let item = match configured::item(item, &quote!(#core::wrap(#options))) {
        Ok(item) => item,
        Err(forms) => return forms,
    };
    let mut refusals = Refusals::default();
    let options = WrapOptions::parse(options, &mut refusals);
    let code = match refusals.take(syn::parse2::<Item>(item.clone())) {
        Some(Item::Fn(function)) => wrap_fn(&options, function, is_op, &mut refusals),
        Some(Item::Impl(block)) => wrap_impl(&options, block, &mut refusals),
        Some(other) => {
            refusals.add(refusal::wrap::item(&check::place(&other)));
            item
        }
        None => item,
    };
    let errors = refusals.errors();
    quote!(#errors #code)
}

/// The path of a leaf, and the place of its hidden items.
struct Leaf<'a> {
    core: &'a TokenStream,
    callable: &'a Callable,
    options: &'a WrapOptions,
    /// The path as an expression of type `&'static str`.
    path: TokenStream,
    /// The receiver's type, for methods.
    receiver: Option<Type>,
}

impl Leaf<'_> {
    /// `const` items and the kernel; `prefix` keeps several apart in one `impl`.
    fn hidden_items(&self, names: &HiddenNames, body: &TokenStream) -> TokenStream {
        let Leaf {
            core,
            callable,
            options,
            path,
            receiver,
        } = self;
        let HiddenNames {
            params,
            definition,
            function,
            kernel: kernel_name,
        } = names;
        let specs = callable.specs(core);
        let output = &callable.output;
        let kernel_body = kernel(
            &callable.params,
            &output.to_token_stream(),
            path,
            &quote!(Self::#params),
            core,
            |lent| quote!(#body(#(#lent),*)),
        );
        let declared = &options.effects;
        let effects = quote!(#core::__private::Effects::PURE #(.union(#core::__private::Effects::#declared))*);
        let effects_if = options.effects_if.as_ref().map(|parameter| {
            let name = parameter.to_string();
            let at = callable.params.iter().position(|param| param.name == name);
            let at = match at {
                Some(at) => quote!(#at),
                None => refusal::wrap::no_such_parameter(parameter).into_compile_error(),
            };
            quote!(.effects_if(#at))
        });
        let always = options.always;
        let commutative = options.commutative;
        let receiver = match receiver {
            Some(ty) => quote!(.method_of(::core::any::TypeId::of::<#ty>)),
            None => quote!(),
        };
        let returns = result_text(output);
        let result = result_type(output, core);
        let written = match &options.written {
            Some(written) => quote!(.written(#written)),
            None => quote!(),
        };
        quote! {
            #[doc(hidden)]
            pub const #params: &'static [#core::__private::ParamSpec] = #specs;
            #[doc(hidden)]
            const #definition: &'static #core::__private::FunctionDef = {
                const RESULT: &#core::__private::ParamType = &#result;
                &#core::__private::FunctionDef::new(#path, Self::#params, Self::#kernel_name)
                    .returns(#returns, RESULT)
                    .effects(#effects)
                    #effects_if
                    .always(#always)
                    .commutative(#commutative)
                    #receiver
                    #written
            };
            #[doc(hidden)]
            pub const #function: #core::__private::Function = #core::__private::Function::new(Self::#definition);
            #[doc(hidden)]
            fn #kernel_name(__args: &[&#core::__private::Value], __out: &mut #core::__private::Value) -> #core::Result<()> {
                #kernel_body
            }
        }
    }

    /// The parameters with the expressions that they are given; `this` is the receiver's.
    fn operands(
        &self,
        this: Option<&TokenStream>,
    ) -> impl Iterator<Item = (&Parameter, TokenStream)> {
        let params = self.callable.params.iter().enumerate();
        params.map(move |(i, param)| match this {
            Some(this) if i == 0 => (param, this.clone()),
            _ => (param, param.name.to_token_stream()),
        })
    }

    /// The arguments as values: an expression.
    fn values(&self, this: Option<&TokenStream>) -> TokenStream {
        let values = self
            .operands(this)
            .map(|(param, operand)| param.call(self.core, "to_value", &operand));
        quote!(::std::vec![#(#values),*])
    }

    /// Records the call as made at a place, or falls through to what follows.
    fn record(
        &self,
        function: &TokenStream,
        form: &TokenStream,
        this: Option<&TokenStream>,
        caller: &TokenStream,
        values: &TokenStream,
    ) -> TokenStream {
        let core = self.core;
        let symbolic = self
            .operands(this)
            .map(|(param, operand)| param.call(core, "is_symbolic", &operand));
        let output = &self.callable.output;
        let recorded = call_of_type(
            output,
            quote!(#core::__private::Returns),
            "from_recorded",
            Some(quote!(__recorded)),
        );
        quote! {
            if #core::__private::may_record() #(|| #symbolic)* {
                let __recorded = #core::__private::record(
                    #function,
                    #form,
                    #values,
                    #caller,
                );
                if let ::core::option::Option::Some(__recorded) =
                    ::core::result::Result::transpose(__recorded)
                {
                    return #recorded;
                }
            }
        }
    }
}

struct HiddenNames {
    params: Ident,
    definition: Ident,
    function: Ident,
    kernel: Ident,
}

/// The type inside `Result<..>`, as text.
pub fn result_text(output: &Type) -> String {
    if let Type::Path(path) = output
        && let Some(segment) = path.path.segments.last()
        && let syn::PathArguments::AngleBracketed(args) = &segment.arguments
        && let Some(first) = args.args.first()
    {
        return paths::text(first);
    }
    String::new()
}

/// The type inside `Result<..>`, as data.
pub fn result_type(output: &Type, core: &TokenStream) -> TokenStream {
    let output = with_lifetimes(output, "'static");
    call_of_type(&output, quote!(#core::__private::Returns), "TYPE", None)
}

fn wrap_fn(
    options: &WrapOptions,
    mut function: ItemFn,
    is_op: bool,
    refusals: &mut Refusals,
) -> TokenStream {
    let core = paths::core();
    attributes::relax_each(&mut function.attrs);
    if function.sig.receiver().is_some() {
        refusals.add(refusal::wrap::method(&function.sig.ident));
        without_attributes(&mut function.sig, &core, refusals);
        return function.to_token_stream();
    }
    let Some(callable) = Callable::parse(&mut function.sig, &core, refusals) else {
        let method = options.method.as_ref().map(|(method, _)| *method);
        stub::give_result(&mut function.sig, &function.block, &core);
        let stub = stub::leaf(&function, method, &core);
        return quote!(#function #stub);
    };
    let name = function.sig.ident.clone();
    let receiver = match &options.method {
        None => None,
        Some(_) => refusals.take(receiver_type(&callable, &name)),
    };
    let bare = name.to_string();
    let bare = bare.trim_start_matches("r#");
    let path = match &options.path {
        Some(path) => quote!(#path),
        None => quote!(::core::concat!(::core::module_path!(), "::", #bare)),
    };
    let leaf = Leaf {
        core: &core,
        callable: &callable,
        options,
        path,
        receiver: receiver.clone(),
    };
    let (twin, twin_ty) = twin(&function, &name);
    let names = HiddenNames {
        params: format_ident!("PARAMS"),
        definition: format_ident!("DEFINITION"),
        function: format_ident!("FUNCTION"),
        kernel: format_ident!("__kernel"),
    };
    let hidden = leaf.hidden_items(&names, &quote!(Self::__body));
    let args = callable.names();
    let asks_rule = is_op && cfg!(feature = "registry");
    // Arguments that are borrowed or plain are copied for nothing.
    let copies = quote!(#(::core::clone::Clone::clone(&#args)),*);
    let (called, operands) = match asks_rule {
        true => (
            quote!(Self::__body(#copies), Self::FUNCTION, __caller, || Self::__values(#(#args),*)),
            quote!(Self::__values(#copies)),
        ),
        false => (
            quote!(Self::__body(#(#args),*), #bare, __caller),
            leaf.values(None),
        ),
    };
    let called = call_of_type(
        &callable.output,
        quote!(#core::__private::Returns),
        if asks_rule {
            "called_or_refused"
        } else {
            "called"
        },
        Some(called),
    );
    let (form, caller) = (quote!(__form), quote!(__caller));
    let record = leaf.record(&quote!(Self::FUNCTION), &form, None, &caller, &operands);
    let values = leaf.values(None);
    let convert: Vec<_> = callable
        .params
        .iter()
        .filter_map(Parameter::conversion)
        .collect();
    let bindings = callable.take_bindings(&mut function.sig);
    let types: Vec<_> = callable.params.iter().map(|p| &p.ty).collect();
    let values = asks_rule.then(|| {
        quote! {
            // What the trace records, and what the shape rule is asked about.
            #[cold]
            #[inline(never)]
            fn __values(#(#args: #types),*) -> ::std::vec::Vec<#core::__private::Value> {
                #values
            }
        }
    });
    let output = &callable.output;
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let statements = &function.block.stmts;
    let (attrs, vis, sig) = (&function.attrs, &function.vis, &function.sig);
    let (doc, other): (Vec<_>, Vec<_>) = attrs.iter().partition(|a| a.path().is_ident("doc"));
    // The user's `inline` attributes apply to the body.
    let outer = other.iter().filter(|a| !a.path().is_ident("inline"));
    let inputs = &sig.inputs;
    let is_registered = cfg!(feature = "registry") && !has_type_generics(&sig.generics);
    let register = is_registered
        .then(|| registry::function(&core, &quote!(<#twin_ty>::FUNCTION), receiver.is_some()));
    let call = |of: TokenStream, form: &str| {
        let form = format_ident!("{form}");
        quote! {
            #of::__call(
                #(#args,)*
                #core::__private::CallForm::#form,
                ::core::panic::Location::caller(),
            )
        }
    };
    let call_function = call(quote!(<#twin_ty>), "Function");
    let method = options.method.as_ref().map(|_| {
        let call_method = call(quote!(Self), "Method");
        quote! {
            /// The call, recorded as a method's.
            #[track_caller]
            #[inline]
            #[allow(clippy::too_many_arguments)]
            pub fn method(#inputs) -> #output {
                #(#convert)*
                #call_method
            }
        }
    });
    let inherent = match (&receiver, &options.method) {
        (Some(ty), Some((MethodOption::Inherent, _))) => {
            let said = other.iter().filter(|a| {
                ["deprecated", "must_use"]
                    .iter()
                    .any(|name| a.path().is_ident(name))
            });
            let rest = sig.inputs.iter().skip(1);
            let rest_args = args.iter().skip(1);
            quote! {
                impl #ty {
                    #(#doc)* #(#said)*
                    #[track_caller]
                    #[inline]
                    #[allow(clippy::too_many_arguments)]
                    #vis fn #name #impl_generics(&self, #(#rest),*) -> #output #where_clause {
                        <#twin_ty>::method(self, #(#rest_args),*)
                    }
                }
            }
        }
        _ => quote!(),
    };
    quote! {
        #(#doc)* #(#outer)*
        #[track_caller]
        #[inline]
        #vis #sig {
            #(#convert)*
            #call_function
        }
        #twin
        #[allow(non_upper_case_globals, clippy::too_many_arguments, dead_code)]
        impl #impl_generics #twin_ty #where_clause {
            #hidden
            #method
            // Not inlined, and not generic over what converts into the arguments: the crate that
            // defines the leaf compiles it, and not each that calls it.
            fn __call(
                #(#args: #types,)*
                __form: #core::__private::CallForm,
                __caller: &'static ::core::panic::Location<'static>,
            ) -> #output {
                #record
                #called
            }
            #values
            #(#other)*
            fn __body(#(#bindings: #types),*) -> #output {
                #(#statements)*
            }
        }
        #register
        #inherent
    }
}

/// The type and const parameters as arguments: `::<T, N>`. Lifetimes are left to inference.
pub fn turbofish(generics: &syn::Generics) -> TokenStream {
    let mut generics = generics.clone();
    generics.params = generics
        .params
        .into_iter()
        .filter(|p| !matches!(p, GenericParam::Lifetime(_)))
        .collect();
    let (_, ty_generics, _) = generics.split_for_impl();
    ty_generics.as_turbofish().to_token_stream()
}

pub fn has_type_generics(generics: &syn::Generics) -> bool {
    generics
        .params
        .iter()
        .any(|p| !matches!(p, GenericParam::Lifetime(_)))
}

/// The lifetime parameters alone, as generics of an inner function.
fn lifetimes(generics: &syn::Generics) -> TokenStream {
    let lifetimes: Vec<_> = generics.lifetimes().collect();
    if lifetimes.is_empty() {
        quote!()
    } else {
        quote!(<#(#lifetimes),*>)
    }
}

/// `T` of a first parameter `x: &T`.
fn receiver_type(callable: &Callable, name: &Ident) -> Result<Type> {
    match callable.params.first().map(|p| &p.ty) {
        Some(Type::Reference(reference)) => Ok((*reference.elem).clone()),
        Some(other) => Err(refusal::wrap::method_by_value(other)),
        None => Err(refusal::wrap::method_without_arguments(name)),
    }
}

fn wrap_impl(options: &WrapOptions, mut block: ItemImpl, refusals: &mut Refusals) -> TokenStream {
    let core = paths::core();
    if let Some(path) = &options.path {
        refusals.add(refusal::wrap::path_of_methods(path));
    }
    if let Some((_, span)) = &options.method {
        refusals.add(refusal::wrap::method_of_methods(*span));
    }
    if let Some((path, _)) = &block.trait_ {
        refusals.add(refusal::wrap::trait_impl(path));
        for item in &mut block.items {
            if let ImplItem::Fn(method) = item {
                without_attributes(&mut method.sig, &core, refusals);
            }
        }
        return block.to_token_stream();
    }
    let self_ty = (*block.self_ty).clone();
    let mut items = TokenStream::new();
    let is_registered = cfg!(feature = "registry") && !has_type_generics(&block.generics);
    let mut submissions = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else {
            item.to_tokens(&mut items);
            continue;
        };
        match wrap_method(options, method, &self_ty, &core, refusals) {
            Some((code, function)) => {
                items.extend(code);
                submissions.push(registry::function(
                    &core,
                    &quote!(<#self_ty>::#function),
                    true,
                ));
            }
            None => {
                stub::give_result(&mut method.sig, &method.block, &core);
                method.to_tokens(&mut items);
            }
        }
    }
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let attrs = &block.attrs;
    let submissions = is_registered.then_some(submissions).into_iter().flatten();
    quote! {
        #(#attrs)*
        #[allow(non_upper_case_globals, clippy::too_many_arguments)]
        impl #impl_generics #self_ty #where_clause {
            #items
        }
        #(#submissions)*
    }
}

fn wrap_method(
    options: &WrapOptions,
    method: &mut ImplItemFn,
    self_ty: &Type,
    core: &TokenStream,
    refusals: &mut Refusals,
) -> Option<(TokenStream, Ident)> {
    attributes::relax_each(&mut method.attrs);
    let callable = Callable::parse(&mut method.sig, core, refusals);
    let fits = check::method(&method.sig, Method::Leaf, refusals);
    let mut callable = callable.filter(|_| fits)?;
    let this = Parameter {
        name: format_ident!("__this"),
        attrs: Vec::new(),
        mutability: None,
        ty: parse_quote_spanned!(self_ty.span()=> &#self_ty),
        taken: Taken::AsIs,
        keyword: false,
        default: None,
    };
    callable.params.insert(0, this);
    let name = &method.sig.ident;
    let bare = name.to_string();
    let bare = bare.trim_start_matches("r#");
    let type_text = paths::text(self_ty);
    let leaf = Leaf {
        core,
        callable: &callable,
        options,
        path: quote!(::core::concat!(::core::module_path!(), "::", #type_text, "::", #bare)),
        receiver: Some(self_ty.clone()),
    };
    let names = HiddenNames {
        params: format_ident!("__FX_PARAMS_{bare}"),
        definition: format_ident!("__FX_DEFINITION_{bare}"),
        function: format_ident!("__FX_FUNCTION_{bare}"),
        kernel: format_ident!("__fx_kernel_{bare}"),
    };
    let body_name = format_ident!("__fx_body_{bare}");
    let hidden = leaf.hidden_items(&names, &quote!(Self::#body_name));
    let function = names.function.clone();
    let caller = quote!(::core::panic::Location::caller());
    let this = quote!(self);
    let record = leaf.record(
        &quote!(Self::#function),
        &quote!(#core::__private::CallForm::Method),
        Some(&this),
        &caller,
        &leaf.values(Some(&this)),
    );
    let convert: Vec<_> = callable
        .params
        .iter()
        .filter_map(Parameter::conversion)
        .collect();
    let args: Vec<_> = callable.params.iter().skip(1).map(|p| &p.name).collect();
    let bindings = callable.take_bindings(&mut method.sig).split_off(1);
    let types: Vec<_> = callable.params.iter().skip(1).map(|p| &p.ty).collect();
    let output = &callable.output;
    let statements = &method.block.stmts;
    let (attrs, vis, sig) = (&method.attrs, &method.vis, &method.sig);
    debug_assert!(matches!(sig.inputs.first(), Some(FnArg::Receiver(_))));
    let lifetimes = lifetimes(&sig.generics);
    let outer = attrs.iter().filter(|a| !a.path().is_ident("inline"));
    let lints = attributes::lints(attrs);
    let code = quote! {
        #(#outer)*
        #[track_caller]
        #[inline]
        #vis #sig {
            #(#convert)*
            #record
            self.#body_name(#(#args),*)
        }
        #[doc(hidden)]
        #(#lints)*
        fn #body_name #lifetimes(&self, #(#bindings: #types),*) -> #output {
            #(#statements)*
        }
        #hidden
    };
    Some((code, function))
}
