//! Where rustc points: spans of what the user wrote, used for what is generated from it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// The spans of the first and the last token of an expression: a stable
/// compiler does not join them.
pub struct Ends {
    pub first: Span,
    pub last: Span,
}

impl Ends {
    pub fn of(node: &impl ToTokens) -> Self {
        let mut tokens = node.to_token_stream().into_iter();
        let first = tokens.next();
        let last = tokens.last().or_else(|| first.clone());
        Ends {
            first: first.map_or_else(Span::call_site, |token| match token {
                TokenTree::Group(group) => group.span_open(),
                token => token.span(),
            }),
            last: last.map_or_else(Span::call_site, |token| match token {
                TokenTree::Group(group) => group.span_close(),
                token => token.span(),
            }),
        }
    }
}

/// `(tokens)`, with one span for both parentheses.
pub fn parenthesized(tokens: TokenStream, span: Span) -> TokenStream {
    let mut group = Group::new(Delimiter::Parenthesis, tokens);
    group.set_span(span);
    TokenTree::Group(group).into()
}

/// Every token at one span.
pub fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let respan = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            let mut inner = Group::new(group.delimiter(), respanned(group.stream(), span));
            inner.set_span(span);
            return TokenTree::Group(inner);
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(respan).collect()
}

/// `<ty as bound>::function arguments`, which errors place at the whole type as written.
///
/// Then rustc reports each use of a type that lacks the bound with the same text, and only once.
pub fn call_of_type(
    ty: &impl ToTokens,
    bound: TokenStream,
    function: &str,
    arguments: Option<TokenStream>,
) -> TokenStream {
    let ends = Ends::of(ty);
    let bound = respanned(bound, ends.last);
    let function = Ident::new(function, ends.last);
    let open = quote_spanned!(ends.first=> <);
    let arguments = arguments.map(|arguments| parenthesized(arguments, ends.last));
    let ty = ty.to_token_stream();
    let path = quote_spanned!(ends.last=> #ty as #bound>::#function);
    quote!(#open #path #arguments)
}
