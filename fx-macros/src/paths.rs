//! How expansions name fx-core, whatever name the user gives the dependency, and types as text.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Ident;

/// The path of fx-core: the direct dependency, or through fx-nn.
pub fn core() -> TokenStream {
    let found = |name: &str| -> Option<TokenStream> {
        match crate_name(name).ok()? {
            FoundCrate::Itself => {
                let ident = Ident::new(&name.replace('-', "_"), Span::mixed_site());
                Some(quote!(::#ident))
            }
            FoundCrate::Name(name) => {
                let ident = Ident::new(&name, Span::mixed_site());
                Some(quote!(::#ident))
            }
        }
    };
    found("fx-core")
        .or_else(|| found("fx-nn").map(|nn| quote!(#nn::__core)))
        .unwrap_or_else(|| quote!(::fx_core))
}

/// The path of fx-nn.
pub fn nn() -> TokenStream {
    match crate_name("fx-nn") {
        Ok(FoundCrate::Name(name)) => {
            let ident = Ident::new(&name, Span::mixed_site());
            quote!(::#ident)
        }
        _ => quote!(::fx_nn),
    }
}

/// Tokens as a person would write them: `& Tensor` as `&Tensor`.
pub fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        ("& ", "&"),
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        (" , ", ", "),
        (" ,", ","),
        ("[ ", "["),
        (" ]", "]"),
        ("( ", "("),
        (" )", ")"),
        (" ;", ";"),
    ] {
        text = text.replace(from, to);
    }
    text
}
