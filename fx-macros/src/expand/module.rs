//! `#[derive(Module)]`: the walks over a struct's or enum's fields, the copy that shares tensors,
//! and saving and loading.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::visit::Visit;
use syn::{Data, DeriveInput, Field, Fields, Ident, Type, parse_quote};

use super::or_return::or_return;
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
    for lifetime in input.generics.lifetimes() {
        refusals.add(refusal::module::borrows(&lifetime.lifetime));
    }
    let (fields, fields_mut, duplicate, save, load, types) = match &input.data {
        Data::Struct(data) => {
            let arm = Arm::of(&data.fields, &core, refusals);
            let (save, load) = (&arm.save, arm.load(&core, &quote!(Self), &quote!(__saved)));
            let pattern = &arm.pattern;
            let (fields, fields_mut, copy) = (&arm.fields, &arm.fields_mut, &arm.copy);
            (
                quote!(let Self #pattern = self; #fields),
                quote!(let Self #pattern = self; #fields_mut),
                quote!(let Self #pattern = self; Self #copy),
                quote!(#save #core::__private::save(self, __saver)),
                load,
                arm.types,
            )
        }
        Data::Enum(data) => {
            let (mut listed, mut listed_mut) = (TokenStream::new(), TokenStream::new());
            let (mut copies, mut variants) = (TokenStream::new(), TokenStream::new());
            let mut loads = TokenStream::new();
            let mut names = Vec::new();
            let mut types = Vec::new();
            for variant in &data.variants {
                let arm = Arm::of(&variant.fields, &core, refusals);
                let variant = &variant.ident;
                let text = variant.to_string().trim_start_matches("r#").to_string();
                let pattern = &arm.pattern;
                let load = arm.load(&core, &quote!(Self::#variant), &quote!(__saved));
                let save = &arm.save;
                variants.extend(quote!(Self::#variant { .. } => { #save #text }));
                loads.extend(quote!(#text => __loader.field(__variants, #text, |__saved, __loader| { #load }),));
                names.push(text);
                let (fields, fields_mut, copy) = (&arm.fields, &arm.fields_mut, &arm.copy);
                listed.extend(quote!(Self::#variant #pattern => { #fields }));
                listed_mut.extend(quote!(Self::#variant #pattern => { #fields_mut }));
                copies.extend(quote!(Self::#variant #pattern => Self::#variant #copy,));
                types.extend(arm.types);
            }
            let save = quote! {
                let __name: &str = match *self { #variants };
                #core::__private::save_variant(self, __name, __saver)
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
                quote!(match self { #listed }),
                quote!(match self { #listed_mut }),
                quote!(match self { #copies }),
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
    let saved = cfg!(feature = "registry").then(|| {
        quote! {
            fn to_saved(&self, __saver: &mut #core::__private::Saver) -> #core::Result<#core::__private::Json> {
                #save
            }
            fn from_saved(
                __saved: &#core::__private::Json,
                __loader: &mut #core::__private::Loader<'_>,
            ) -> #core::Result<Self> {
                __loader.nested(|__loader| { #load })
            }
        }
    });
    // Whether a generic type has a `forward` depends on its parameters.
    let module_entry = generics.params.is_empty().then(|| {
        quote! {
            fn module_entry(&self) -> ::core::option::Option<&'static dyn ::core::any::Any> {
                use #core::__private::NoEntry as _;
                #core::__private::Entry::<Self>::OF
            }
        }
    });
    let has_entry = generics.params.is_empty().then(|| {
        quote! {
            #[automatically_derived]
            impl #core::__private::HasEntry for #name {}
        }
    });
    let variants = matches!(input.data, Data::Enum(_)).then(|| {
        quote! {
            fn has_variants(&self) -> bool {
                true
            }
        }
    });
    Some(quote! {
        #sized
        #has_entry
        #[automatically_derived]
        #[allow(unused_variables, clippy::borrow_deref_ref, clippy::explicit_auto_deref)]
        impl #impl_generics #core::__private::Component for #name #ty_generics #where_clause {
            fn fields<'__a>(&'__a self, __each: &mut #core::__private::EachField<'_, '__a>) {
                #fields
            }
            fn fields_mut<'__a>(&'__a mut self, __each: &mut #core::__private::EachFieldMut<'_, '__a>) {
                #fields_mut
            }
            fn visit(&self, __walk: &mut #core::__private::Walk<'_, '_>) {
                __walk.fields_of(self);
            }
            fn visit_mut(&mut self, __walk: &mut #core::__private::WalkMut<'_, '_>) {
                __walk.fields_of(self);
            }
            fn part(&self, __path: &str) -> ::core::option::Option<&dyn #core::__private::Component> {
                #core::__private::part(self, __path)
            }
            fn part_mut(&mut self, __path: &str) -> ::core::option::Option<&mut dyn #core::__private::Component> {
                #core::__private::part_mut(self, __path)
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
            #module_entry
            #variants
            #saved
        }
    })
}

/// The code for one set of fields.
struct Arm {
    pattern: TokenStream,
    /// The list of the fields.
    fields: TokenStream,
    fields_mut: TokenStream,
    copy: TokenStream,
    /// The checks before the fields are saved.
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
        let mut listed = TokenStream::new();
        let mut listed_mut = TokenStream::new();
        let mut types = Vec::new();
        let mut bindings = Vec::new();
        let mut copies = Vec::new();
        let mut save = TokenStream::new();
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
            let part = |method: &str| call_of_type(ty, component(), method, Some(quote!(#binding)));
            let field = quote!(#core::__private::Field);
            let field_mut = quote!(#core::__private::FieldMut);
            let (contents, contents_mut) = match kind {
                FieldKind::Child => {
                    for object in objects_of_other_traits(ty) {
                        refusals.add(refusal::module::object_of_another_trait(&object));
                    }
                    let field = |method: &str| {
                        call_of_type(ty, component(), method, Some(quote!(#binding, #name)))
                    };
                    (field("as_field"), field("as_field_mut"))
                }
                FieldKind::Buffer { persistent } => {
                    let kind = match persistent {
                        true => quote!(Buffer),
                        false => quote!(NonPersistentBuffer),
                    };
                    let kind = quote!(#core::module::TensorKind::#kind);
                    let (shared, unique) = (part("as_part"), part("as_part_mut"));
                    (
                        quote!(#field::Buffer(#name, #kind, #shared)),
                        quote!(#field_mut::Buffer(#name, #kind, #unique)),
                    )
                }
                FieldKind::Flatten => {
                    let (shared, unique) = (part("as_part"), part("as_part_mut"));
                    (
                        quote!(#field::Flatten(#name, #shared)),
                        quote!(#field_mut::Flatten(#unique)),
                    )
                }
                FieldKind::Training => (
                    quote_spanned!(span=> #field::Training(#name, #binding)),
                    quote_spanned!(span=> #field_mut::Training(#binding)),
                ),
                FieldKind::Skip => (quote!(), quote!()),
            };
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
                save.extend(quote!(let _ = #maker;));
                loads.push(quote!(#maker()));
            } else {
                let arguments = quote!(#name, __fields, __loader);
                let load = call_of_type(ty, component(), "from_field", Some(arguments));
                loads.push(or_return(&load));
                listed.extend(quote!(__each(#contents);));
                listed_mut.extend(quote!(__each(#contents_mut);));
                names.push(name.clone());
                types.push(ty.clone());
            }
            bindings.push(binding);
        }
        if names
            .iter()
            .enumerate()
            .any(|(i, name)| names[..i].contains(name))
        {
            listed.extend(quote!(__each(#core::__private::Field::Repeated);));
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
        Arm {
            pattern,
            fields: listed,
            fields_mut: listed_mut,
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

/// The trait objects in a type that are no `dyn Module`.
fn objects_of_other_traits(ty: &Type) -> Vec<syn::TypeTraitObject> {
    struct Objects(Vec<syn::TypeTraitObject>);
    impl<'ast> Visit<'ast> for Objects {
        fn visit_type_trait_object(&mut self, object: &'ast syn::TypeTraitObject) {
            let is_module = object.bounds.iter().any(|bound| match bound {
                syn::TypeParamBound::Trait(bound) => {
                    let last = bound.path.segments.last();
                    last.is_some_and(|last| last.ident == "Module")
                }
                _ => false,
            });
            if !is_module {
                self.0.push(object.clone());
            }
        }
    }
    let mut objects = Objects(Vec::new());
    objects.visit_type(ty);
    objects.0
}
