//! `#[derive(Tree)]`: the conversions that let a struct flow through a graph as a dict, or a tuple, of its fields.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, parse_quote};

use crate::paths;

pub fn tree(item: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(item)
        .and_then(|input| derive(&input))
        .unwrap_or_else(|error| error.to_compile_error())
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            return Err(Error::new_spanned(
                data.enum_token,
                "an enum is no tree: which fields it has is known only when the program runs; derive `Tree` for structs",
            ));
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(
                data.union_token,
                "a union is no tree: which of its fields is live is not known",
            ));
        }
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(
            lifetime,
            "a tree owns its values: a struct that borrows cannot be made from a graph's results",
        ));
    }
    let text = name.to_string();
    let bindings: Vec<Ident> = (0..fields.len())
        .map(|i| format_ident!("__field{i}"))
        .collect();
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
                        [#((::std::sync::Arc::<str>::from(#keys), #core::__private::IntoValue::into_value(#bindings))),*],
                    )
                    .collect(),
                ))),
                quote!(#core::__private::fields(__value, #text, [#(#keys),*])),
            )
        }
        Fields::Unnamed(_) => (
            quote!((#(#bindings),*)),
            quote!(#core::__private::Value::Tuple(::std::boxed::Box::new([#(#core::__private::IntoValue::into_value(#bindings)),*]))),
            quote!(#core::__private::tuple_fields(__value, #text)),
        ),
        Fields::Unit => {
            return Err(Error::new_spanned(
                name,
                "a struct without fields has nothing to carry through a graph",
            ));
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
                let this: &#ty = self;
                #core::__private::IntoValue::into_value(::core::clone::Clone::clone(this))
            }
        }
    };
    let by_reference = param_body(
        quote!(#core::__private::ParamType::Reference(#core::__private::TypePart::Fixed(&#owned))),
        quote!(guard),
    );
    let by_value = param_body(owned, quote!(::core::clone::Clone::clone(guard)));
    Ok(quote! {
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
                #core::__private::IntoValue::into_value(<#ty as ::core::clone::Clone>::clone(self))
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
                #(let #bindings = #core::__private::FromValue::from_value(#bindings)?;)*
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
