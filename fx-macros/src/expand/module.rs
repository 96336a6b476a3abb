//! `#[derive(Module)]`: the walks over a struct's or enum's fields, and the copy that shares tensors.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Result, Type};

use crate::options::FieldKind;
use crate::paths;
use crate::spans::{Ends, call_of_type};

pub fn module(item: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(item)
        .and_then(|input| derive(&input))
        .unwrap_or_else(|error| error.to_compile_error())
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    if let Some(attr) = input.attrs.iter().find(|a| a.path().is_ident("module")) {
        return Err(Error::new_spanned(
            attr,
            "#[module(..)] goes on a field: it says what the field is",
        ));
    }
    let (visit, visit_mut, duplicate, types) = match &input.data {
        Data::Struct(data) => {
            let arm = Arm::of(&data.fields, &core)?;
            let pattern = &arm.pattern;
            let (visit, visit_mut, copy) = (&arm.visit, &arm.visit_mut, &arm.copy);
            (
                quote!(let Self #pattern = self; #visit),
                quote!(let Self #pattern = self; #visit_mut),
                quote!(let Self #pattern = self; Self #copy),
                arm.types,
            )
        }
        Data::Enum(data) => {
            let mut arms = (TokenStream::new(), TokenStream::new(), TokenStream::new());
            let mut types = Vec::new();
            for variant in &data.variants {
                let arm = Arm::of(&variant.fields, &core)?;
                let variant = &variant.ident;
                let pattern = &arm.pattern;
                let (visit, visit_mut, copy) = (&arm.visit, &arm.visit_mut, &arm.copy);
                arms.0.extend(quote!(Self::#variant #pattern => { #visit }));
                arms.1
                    .extend(quote!(Self::#variant #pattern => { #visit_mut }));
                arms.2
                    .extend(quote!(Self::#variant #pattern => Self::#variant #copy,));
                types.extend(arm.types);
            }
            let (visit, visit_mut, copy) = arms;
            (
                quote!(match self { #visit }),
                quote!(match self { #visit_mut }),
                quote!(match self { #copy }),
                types,
            )
        }
        Data::Union(_) => {
            return Err(Error::new_spanned(
                name,
                "a union cannot be a module: which of its fields is live is not known",
            ));
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
    // A field that holds the type itself needs no bound, and one would have no end.
    let bounded: Vec<Type> = types
        .into_iter()
        .filter(|ty| mentions(ty, &type_params) && !mentions(ty, std::slice::from_ref(name)))
        .collect();
    if !type_params.is_empty() {
        let clause = generics.make_where_clause();
        for param in &type_params {
            clause
                .predicates
                .push(syn::parse2(quote!(#param: 'static))?);
        }
        for ty in bounded {
            clause
                .predicates
                .push(syn::parse2(quote!(#ty: #core::Component))?);
        }
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::borrow_deref_ref, clippy::explicit_auto_deref)]
        impl #impl_generics #core::Component for #name #ty_generics #where_clause {
            fn visit(&self, walk: &mut #core::Walk<'_, '_>) {
                walk.component(self, |walk| { #visit });
            }
            fn visit_mut(&mut self, walk: &mut #core::WalkMut<'_, '_>) {
                #visit_mut
            }
            fn duplicate(&self) -> Self {
                #duplicate
            }
        }
    })
}

/// The code for one set of fields.
struct Arm {
    pattern: TokenStream,
    visit: TokenStream,
    visit_mut: TokenStream,
    copy: TokenStream,
    /// Types of the fields that must be components.
    types: Vec<Type>,
}

impl Arm {
    fn of(fields: &Fields, core: &TokenStream) -> Result<Self> {
        let mut visit = TokenStream::new();
        let mut visit_mut = TokenStream::new();
        let mut checks = TokenStream::new();
        let mut types = Vec::new();
        let mut bindings = Vec::new();
        let mut copies = Vec::new();
        for (i, field) in fields.iter().enumerate() {
            let kind = FieldKind::of(field)?;
            let name = field_name(field, i);
            let ty = &field.ty;
            let ends = Ends::of(ty);
            let span = ends.first;
            let binding = format_ident!("__field{i}", span = ends.last);
            // Of one form and place in all methods, so that rustc says once what a type lacks.
            let shared = quote_spanned!(span=> &*);
            let unique = quote_spanned!(span=> &mut *);
            match kind {
                FieldKind::Child => {
                    visit.extend(quote_spanned!(span=> walk.child(#name, #shared #binding);));
                    visit_mut.extend(quote_spanned!(span=> walk.child(#name, #unique #binding);));
                }
                FieldKind::Buffer => {
                    visit.extend(quote_spanned!(span=> walk.buffer(#name, #shared #binding);));
                    visit_mut.extend(quote_spanned!(span=> walk.buffer(#name, #unique #binding);));
                }
                FieldKind::Flatten => {
                    visit.extend(quote_spanned!(span=> #core::Component::visit(#binding, walk);));
                    visit_mut.extend(
                        quote_spanned!(span=> #core::Component::visit_mut(#binding, walk);),
                    );
                }
                FieldKind::Training => {
                    visit.extend(quote_spanned!(span=> walk.training(*#binding);));
                    visit_mut.extend(quote_spanned!(span=> walk.training(#binding);));
                }
                FieldKind::Skip => {}
            }
            let (bound, copy) = match kind {
                FieldKind::Skip => (quote!(::core::clone::Clone), "clone"),
                _ => (quote!(#core::Component), "duplicate"),
            };
            copies.push(call_of_type(ty, bound, copy, Some(quote!(#binding))));
            if kind == FieldKind::Child || kind == FieldKind::Buffer {
                let known = call_of_type(ty, quote!(#core::Component), "duplicate", None);
                checks.extend(quote!(let _ = #known;));
            }
            if kind != FieldKind::Skip {
                types.push(ty.clone());
            }
            bindings.push(binding);
        }
        let (pattern, copy) = match fields {
            Fields::Named(named) => {
                let names: Vec<_> = named.named.iter().map(|f| &f.ident).collect();
                (
                    quote!({ #(#names: #bindings),* }),
                    quote!({ #(#names: #copies),* }),
                )
            }
            Fields::Unnamed(_) => (quote!((#(#bindings),*)), quote!((#(#copies),*))),
            Fields::Unit => (quote!(), quote!()),
        };
        Ok(Arm {
            pattern,
            visit: quote!(#checks #visit),
            visit_mut: quote!(#checks #visit_mut),
            copy,
            types,
        })
    }
}

/// The name of a field in paths.
fn field_name(field: &Field, index: usize) -> String {
    match &field.ident {
        Some(name) => name.to_string().trim_start_matches("r#").to_string(),
        None => index.to_string(),
    }
}
