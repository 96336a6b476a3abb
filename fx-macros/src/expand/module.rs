//! `#[derive(Module)]`: the walks over a struct's or enum's fields, the copy that shares tensors,
//! and saving and loading.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Field, Fields, Ident, Type, parse_quote};

use super::stub;
use crate::options::{FieldKind, FieldOptions};
use crate::paths;
use crate::refusal::{self, Refusals};
use crate::spans::{Ends, call_of_type};

pub fn module(item: TokenStream) -> TokenStream {
    let mut refusals = Refusals::default();
    let code = refusals
        .take(syn::parse2::<DeriveInput>(item))
        .map(|input| match derive(&input, &mut refusals) {
            Some(code) if refusals.is_empty() => code,
            _ => stub::component(&input, &paths::core()),
        });
    let errors = refusals.errors();
    quote!(#errors #code)
}

fn derive(input: &DeriveInput, refusals: &mut Refusals) -> Option<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    for attr in input.attrs.iter().filter(|a| a.path().is_ident("module")) {
        refusals.add(refusal::module::option_of_the_type(attr));
    }
    let (visit, visit_mut, part, part_mut, duplicate, save, load, types) = match &input.data {
        Data::Struct(data) => {
            let arm = Arm::of(&data.fields, &core, refusals);
            let (save, load) = (&arm.save, arm.load(&core, &quote!(Self), &quote!(__saved)));
            let pattern = &arm.pattern;
            let (visit, visit_mut, copy) = (&arm.visit, &arm.visit_mut, &arm.copy);
            let (part, part_mut) = (&arm.part, &arm.part_mut);
            (
                quote!(let Self #pattern = self; #visit),
                quote!(let Self #pattern = self; #visit_mut),
                quote!(let Self #pattern = self; #part),
                quote!(let Self #pattern = self; #part_mut),
                quote!(let Self #pattern = self; Self #copy),
                quote!(let Self #pattern = self; #save),
                load,
                arm.types,
            )
        }
        Data::Enum(data) => {
            let mut arms = (TokenStream::new(), TokenStream::new(), TokenStream::new());
            let mut parts = (TokenStream::new(), TokenStream::new());
            let (mut saves, mut loads) = (TokenStream::new(), TokenStream::new());
            let mut names = Vec::new();
            let mut types = Vec::new();
            for variant in &data.variants {
                let arm = Arm::of(&variant.fields, &core, refusals);
                let variant = &variant.ident;
                let text = variant.to_string().trim_start_matches("r#").to_string();
                let pattern = &arm.pattern;
                let save = &arm.save;
                let load = arm.load(&core, &quote!(Self::#variant), &quote!(__saved));
                saves.extend(quote!(Self::#variant #pattern => (#text, { #save }?),));
                loads.extend(quote!(#text => __loader.field(__variants, #text, |__saved, __loader| { #load }),));
                names.push(text);
                let (visit, visit_mut, copy) = (&arm.visit, &arm.visit_mut, &arm.copy);
                arms.0.extend(quote!(Self::#variant #pattern => { #visit }));
                arms.1
                    .extend(quote!(Self::#variant #pattern => { #visit_mut }));
                arms.2
                    .extend(quote!(Self::#variant #pattern => Self::#variant #copy,));
                let (part, part_mut) = (&arm.part, &arm.part_mut);
                parts.0.extend(quote!(Self::#variant #pattern => { #part }));
                parts
                    .1
                    .extend(quote!(Self::#variant #pattern => { #part_mut }));
                types.extend(arm.types);
            }
            let (visit, visit_mut, copy) = arms;
            let (part, part_mut) = parts;
            let save = quote! {
                let (__name, __fields): (&str, #core::__private::Json) = match self { #saves };
                let mut __variant = #core::__private::JsonMap::new();
                __variant.insert(::std::string::String::from(__name), __fields);
                ::core::result::Result::Ok(#core::__private::Json::Object(__variant))
            };
            let load = quote! {
                let __names: &[&str] = &[#(#names),*];
                let (__name, _) = #core::__private::variant(__saved)?;
                let __variants = #core::__private::known_fields(__saved, __names)?;
                match __name {
                    #loads
                    _ => ::core::result::Result::Err(#core::__private::no_variant(__name, __names)),
                }
            };
            (
                quote!(match self { #visit }),
                quote!(match self { #visit_mut }),
                quote!(match self { #part }),
                quote!(match self { #part_mut }),
                quote!(match self { #copy }),
                save,
                load,
                types,
            )
        }
        Data::Union(_) => {
            refusals.add(refusal::module::union(name));
            return None;
        }
    };
    let mut generics = input.generics.clone();
    let type_params: Vec<Ident> = generics.type_params().map(|p| p.ident.clone()).collect();
    let mentions = |ty: &Type, names: &[Ident]| {
        let text = ty.to_token_stream().to_string();
        names.iter().any(|name| {
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| *name == word)
        })
    };
    // A field that holds the type itself needs no bound: such a bound would never end.
    let bounded: Vec<Type> = types
        .into_iter()
        .filter(|ty| mentions(ty, &type_params) && !mentions(ty, std::slice::from_ref(name)))
        .collect();
    if !type_params.is_empty() {
        let clause = generics.make_where_clause();
        for param in &type_params {
            clause.predicates.push(parse_quote!(#param: 'static));
        }
        for ty in bounded {
            clause
                .predicates
                .push(parse_quote!(#ty: #core::__private::Component));
        }
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    // For a generic type the walk checks the size, for each concrete type.
    let sized = generics.params.is_empty().then(|| {
        let problem = refusal::module::no_size(name);
        quote_spanned! {name.span()=>
            const _: () = ::core::assert!(::core::mem::size_of::<#name>() != 0, #problem);
        }
    });
    Some(quote! {
        #sized
        #[automatically_derived]
        #[allow(unused_variables, clippy::borrow_deref_ref, clippy::explicit_auto_deref)]
        impl #impl_generics #core::__private::Component for #name #ty_generics #where_clause {
            fn visit(&self, walk: &mut #core::__private::Walk<'_, '_>) {
                walk.component(self, |walk| { #visit });
            }
            fn visit_mut(&mut self, walk: &mut #core::__private::WalkMut<'_, '_>) {
                walk.module(self);
                #visit_mut
            }
            fn part(&self, __path: &str) -> ::core::option::Option<&dyn #core::__private::Component> {
                #part
            }
            fn part_mut(&mut self, __path: &str) -> ::core::option::Option<&mut dyn #core::__private::Component> {
                #part_mut
            }
            fn as_any(&self) -> ::core::option::Option<&dyn ::core::any::Any> {
                ::core::option::Option::Some(self)
            }
            fn as_any_mut(&mut self) -> ::core::option::Option<&mut dyn ::core::any::Any> {
                ::core::option::Option::Some(self)
            }
            fn duplicate(&self) -> Self {
                #duplicate
            }
            fn to_saved(&self, __saver: &mut #core::__private::Saver) -> #core::Result<#core::__private::Json> {
                __saver.nested(|__saver| { #save })
            }
            fn from_saved(
                __saved: &#core::__private::Json,
                __loader: &mut #core::__private::Loader<'_>,
            ) -> #core::Result<Self> {
                __loader.nested(|__loader| { #load })
            }
        }
    })
}

/// The code for one set of fields.
struct Arm {
    pattern: TokenStream,
    visit: TokenStream,
    visit_mut: TokenStream,
    /// The part at a path, as an `Option`.
    part: TokenStream,
    part_mut: TokenStream,
    copy: TokenStream,
    /// The fields as JSON, as a `Result`.
    save: TokenStream,
    /// The fields with the code that loads each.
    loads: TokenStream,
    /// The names of the fields that are saved.
    names: Vec<String>,
    /// Types of the fields that must be components.
    types: Vec<Type>,
}

impl Arm {
    fn of(fields: &Fields, core: &TokenStream, refusals: &mut Refusals) -> Self {
        let mut visit = TokenStream::new();
        let mut visit_mut = TokenStream::new();
        let mut part = TokenStream::new();
        let mut part_mut = TokenStream::new();
        let mut checks = TokenStream::new();
        let mut types = Vec::new();
        let mut bindings = Vec::new();
        let mut copies = Vec::new();
        let mut saves = TokenStream::new();
        let mut loads = Vec::new();
        let mut names = Vec::new();
        for (i, field) in fields.iter().enumerate() {
            let FieldOptions { kind, name } = FieldOptions::of(field, refusals);
            let name = name.map_or_else(|| field_name(field, i), |name| name.value());
            let ty = &field.ty;
            let ends = Ends::of(ty);
            let span = ends.first;
            let binding = format_ident!("__field{i}", span = ends.last);
            let component = || quote!(#core::__private::Component);
            match kind {
                FieldKind::Child => {
                    let of = |method: &str| {
                        let arguments = quote!(#binding, #name, walk);
                        call_of_type(ty, component(), method, Some(arguments))
                    };
                    let (shared, unique) = (of("visit_child"), of("visit_child_mut"));
                    visit.extend(quote!(#shared;));
                    visit_mut.extend(quote!(#unique;));
                }
                FieldKind::Buffer { persistent } => {
                    let kind = match persistent {
                        true => quote!(Buffer),
                        false => quote!(NonPersistentBuffer),
                    };
                    let kind = quote!(#core::module::TensorKind::#kind);
                    let of = |method: &str| {
                        let arguments = quote!(#binding, #name, #kind, walk);
                        call_of_type(ty, component(), method, Some(arguments))
                    };
                    let (shared, unique) = (of("visit_buffer"), of("visit_buffer_mut"));
                    visit.extend(quote!(#shared;));
                    visit_mut.extend(quote!(#unique;));
                }
                FieldKind::Flatten => {
                    visit.extend(
                        quote_spanned!(span=> #core::__private::Component::visit(#binding, walk);),
                    );
                    visit_mut.extend(
                        quote_spanned!(span=> #core::__private::Component::visit_mut(#binding, walk);),
                    );
                }
                FieldKind::Training => {
                    visit.extend(quote_spanned!(span=> walk.training(*#binding);));
                    visit_mut.extend(quote_spanned!(span=> walk.training(#binding);));
                }
                FieldKind::Skip => {}
            }
            let below = |method: &str| {
                let arguments = match kind {
                    FieldKind::Flatten => quote!(#binding, __path),
                    _ => quote!(#binding, __rest),
                };
                call_of_type(
                    ty,
                    quote!(#core::__private::Component),
                    method,
                    Some(arguments),
                )
            };
            match kind {
                FieldKind::Child | FieldKind::Buffer { .. } => {
                    for (part, method) in [
                        (&mut part, "here_or_below"),
                        (&mut part_mut, "here_or_below_mut"),
                    ] {
                        let below = below(method);
                        part.extend(quote! {
                            if let ::core::option::Option::Some(__rest) = #core::__private::below(__path, #name) {
                                return #below;
                            }
                        });
                    }
                }
                FieldKind::Flatten => {
                    for (part, method) in [(&mut part, "part"), (&mut part_mut, "part_mut")] {
                        let below = below(method);
                        part.extend(quote! {
                            if let ::core::option::Option::Some(__part) = #below {
                                return ::core::option::Option::Some(__part);
                            }
                        });
                    }
                }
                FieldKind::Training | FieldKind::Skip => {}
            }
            let (bound, copy) = match kind {
                FieldKind::Skip => (quote!(::core::clone::Clone), "clone"),
                _ => (quote!(#core::__private::Component), "duplicate"),
            };
            copies.push(call_of_type(ty, bound, copy, Some(quote!(#binding))));
            if kind == FieldKind::Skip {
                let maker = quote_spanned! {span=> {
                    #[allow(unused_imports)]
                    use #core::__private::{WithDefault as _, WithoutDefault as _};
                    (&#core::__private::Skipped::<#ty>::new()).maker(#name)?
                }};
                saves.extend(quote!(let _ = #maker;));
                loads.push(quote!(#maker()));
            } else {
                match kind {
                    // Paths of tensors inside do not contain this field's name.
                    FieldKind::Flatten => {
                        let arguments = quote!(#binding, __saver);
                        let save = call_of_type(ty, component(), "to_saved", Some(arguments));
                        saves.extend(quote! {
                            __fields.insert(::std::string::String::from(#name), #save?);
                        });
                    }
                    _ => {
                        let arguments = quote!(#binding, #name, &mut __fields, __saver);
                        let save = call_of_type(ty, component(), "to_field", Some(arguments));
                        saves.extend(quote!(#save?;));
                    }
                }
                let arguments = quote!(#name, __fields, __loader);
                let load = call_of_type(ty, component(), "from_field", Some(arguments));
                loads.push(quote!(#load?));
                names.push(name.clone());
            }
            if matches!(kind, FieldKind::Child | FieldKind::Buffer { .. }) {
                let known =
                    call_of_type(ty, quote!(#core::__private::Component), "duplicate", None);
                checks.extend(quote!(let _ = #known;));
            }
            if kind != FieldKind::Skip {
                types.push(ty.clone());
            }
            bindings.push(binding);
        }
        let (pattern, copy, loads) = match fields {
            Fields::Named(named) => {
                let names: Vec<_> = named.named.iter().map(|f| &f.ident).collect();
                (
                    quote!({ #(#names: #bindings),* }),
                    quote!({ #(#names: #copies),* }),
                    quote!({ #(#names: #loads),* }),
                )
            }
            Fields::Unnamed(_) => (
                quote!((#(#bindings),*)),
                quote!((#(#copies),*)),
                quote!((#(#loads),*)),
            ),
            Fields::Unit => (quote!(), quote!(), quote!()),
        };
        let save = quote! {
            let mut __fields = #core::__private::JsonMap::new();
            #saves
            ::core::result::Result::Ok::<_, #core::Error>(#core::__private::Json::Object(__fields))
        };
        Arm {
            pattern,
            visit: quote!(#checks #visit),
            visit_mut: quote!(#checks #visit_mut),
            part: quote!(#part ::core::option::Option::None),
            part_mut: quote!(#part_mut ::core::option::Option::None),
            copy,
            save,
            loads,
            names,
            types,
        }
    }

    /// The code that makes `constructor` from the fields of `saved`, as a `Result`.
    fn load(
        &self,
        core: &TokenStream,
        constructor: &TokenStream,
        saved: &TokenStream,
    ) -> TokenStream {
        let Arm { loads, names, .. } = self;
        quote! {
            let __fields = #core::__private::known_fields(#saved, &[#(#names),*])?;
            ::core::result::Result::Ok(#constructor #loads)
        }
    }
}

/// The name of a field in paths.
fn field_name(field: &Field, index: usize) -> String {
    match &field.ident {
        Some(name) => name.to_string().trim_start_matches("r#").to_string(),
        None => index.to_string(),
    }
}
