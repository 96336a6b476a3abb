//! `#[derive(Tree)]`: the conversions that let a struct flow through a graph as a dict, or a tuple,
//! of its fields.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Ident, parse_quote};

use super::or_return::or_return;
use super::stub;
use crate::paths;
use crate::refusal::{self, Refusals};
use crate::spans::call_of_type;

pub fn tree(item: TokenStream) -> TokenStream {
    let mut refusals = Refusals::default();
    let code = refusals
        .take(syn::parse2::<DeriveInput>(item))
        .map(|input| match derive(&input, &mut refusals) {
            Some(code) if refusals.is_empty() => code,
            _ => stub::tree(&input, &paths::core()),
        });
    let errors = refusals.errors();
    quote!(#errors #code)
}

fn derive(input: &DeriveInput, refusals: &mut Refusals) -> Option<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    for lifetime in input.generics.lifetimes() {
        refusals.add(refusal::tree::borrows(lifetime));
    }
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            refusals.add(refusal::tree::is_enum(&data.enum_token));
            return None;
        }
        Data::Union(data) => {
            refusals.add(refusal::tree::is_union(&data.union_token));
            return None;
        }
    };
    let text = name.to_string();
    let bindings: Vec<Ident> = (0..fields.len())
        .map(|i| format_ident!("__field{i}"))
        .collect();
    let part = |function: &str| {
        let field = |(field, binding): (&syn::Field, &Ident)| {
            let bound = quote!(#core::__private::TreeField);
            call_of_type(&field.ty, bound, function, Some(quote!(#binding)))
        };
        fields.iter().zip(&bindings).map(field).collect::<Vec<_>>()
    };
    let into_fields = part("into_field");
    let from_fields = part("from_field")
        .into_iter()
        .map(|field| or_return(&field));
    let (pattern, into, from) = match fields {
        Fields::Named(named) => {
            let idents: Vec<&Ident> = named
                .named
                .iter()
                .filter_map(|f| f.ident.as_ref())
                .collect();
            let keys: Vec<String> = idents
                .iter()
                .map(|ident| ident.to_string().trim_start_matches("r#").to_string())
                .collect();
            (
                quote!({ #(#idents: #bindings),* }),
                quote!(#core::__private::Value::Dict(::std::boxed::Box::new(
                    ::core::iter::IntoIterator::into_iter(
                        [#((::std::sync::Arc::<str>::from(#keys), #into_fields)),*],
                    )
                    .collect(),
                ))),
                quote!(#core::__private::fields(__value, #text, [#(#keys),*])),
            )
        }
        Fields::Unnamed(_) => (
            quote!((#(#bindings),*)),
            quote!(#core::__private::Value::Tuple(::std::boxed::Box::new([#(#into_fields),*]))),
            quote!(#core::__private::tuple_fields(__value, #text)),
        ),
        Fields::Unit => {
            refusals.add(refusal::tree::no_fields(name));
            return None;
        }
    };
    let generics = |bound: TokenStream| {
        let mut generics = input.generics.clone();
        for param in generics.type_params_mut() {
            param.bounds.push(parse_quote!(#core::__private::IntoValue));
            param.bounds.push(parse_quote!(#core::__private::FromValue));
            param.bounds.push(parse_quote!(::core::clone::Clone));
            if !bound.is_empty() {
                param.bounds.push(parse_quote!(#bound));
            }
        }
        generics
    };
    let plain = generics(quote!());
    let (impl_generics, ty_generics, where_clause) = plain.split_for_impl();
    let output = generics(quote!(#core::__private::Output));
    let (output_generics, _, _) = output.split_for_impl();
    let mut param = generics(quote!('__v));
    param.params.insert(0, parse_quote!('__v));
    let (param_generics, _, _) = param.split_for_impl();
    let ty = quote!(#name #ty_generics);
    let owned = quote!(<#ty as #core::__private::FromValue>::TYPE);
    // The same form and place everywhere, so that rustc reports only once that the type is not
    // `Clone`.
    let cloned =
        |value: TokenStream| call_of_type(&ty, quote!(::core::clone::Clone), "clone", Some(value));
    let (of_self, of_guard) = (cloned(quote!(self)), cloned(quote!(guard)));
    let param_body = |of: TokenStream, lend: TokenStream| {
        quote! {
            type Guard = #ty;
            const TYPE: #core::__private::ParamType = #of;
            fn guard(value: &'__v #core::__private::Value) -> #core::Result<Self::Guard> {
                <#ty as #core::__private::FromValue>::from_value(::core::clone::Clone::clone(value))
            }
            fn lend(guard: &'__v Self::Guard) -> Self {
                #lend
            }
            fn is_symbolic(&self) -> bool {
                #core::__private::Param::to_value(self).holds_proxy()
            }
            fn to_value(&self) -> #core::__private::Value {
                #core::__private::IntoValue::into_value(#of_self)
            }
        }
    };
    let by_reference = param_body(
        quote!(#core::__private::ParamType::Reference(#core::__private::TypePart::Fixed(&#owned))),
        quote!(guard),
    );
    let by_value = param_body(owned, of_guard);
    Some(quote! {
        #[automatically_derived]
        impl #impl_generics #core::__private::IntoValue for #ty #where_clause {
            fn into_value(self) -> #core::__private::Value {
                let #name #pattern = self;
                #into
            }
        }
        #[automatically_derived]
        impl #impl_generics #core::__private::IntoValue for &#ty #where_clause {
            fn into_value(self) -> #core::__private::Value {
                #core::__private::IntoValue::into_value(#of_self)
            }
        }
        #[automatically_derived]
        impl #impl_generics #core::__private::Arg for #ty #where_clause {}
        #[automatically_derived]
        impl #impl_generics #core::__private::Arg for &#ty #where_clause {}
        #[automatically_derived]
        impl #impl_generics #core::__private::FromValue for #ty #where_clause {
            fn from_value(__value: #core::__private::Value) -> #core::Result<Self> {
                let [#(#bindings),*] = #from?;
                #(let #bindings = #from_fields;)*
                ::core::result::Result::Ok(#name #pattern)
            }
        }
        #[automatically_derived]
        impl #output_generics #core::__private::Output for #ty #where_clause {}
        #[automatically_derived]
        impl #param_generics #core::__private::Param<'__v> for &'__v #ty #where_clause {
            #by_reference
        }
        #[automatically_derived]
        impl #param_generics #core::__private::Param<'__v> for #ty #where_clause {
            #by_value
        }
    })
}
