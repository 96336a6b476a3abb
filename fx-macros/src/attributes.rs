//! Attributes of syntax that is written anew.
//!
//! Invariant: every attribute that the user wrote stands at what becomes of its syntax.

use proc_macro2::{Ident, Span};
use syn::visit_mut::VisitMut;
use syn::{AttrStyle, Attribute, Block, Expr, Meta, Path, parse_quote};

/// The attributes of an expression, which rustc takes to be those of the whole statement.
pub fn of(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    macro_rules! kinds {
        ($($kind:ident)*) => {
            match expr {
                $(Expr::$kind(inner) => Some(&mut inner.attrs),)*
                // rustc accepts none before an operator, and syn gives them to the left operand.
                _ => None,
            }
        };
    }
    kinds! {
        Array Async Await Block Break Call Closure Const Continue Field ForLoop Group If Index
        Infer Let Lit Loop Macro Match MethodCall Paren Path Range RawAddr Reference Repeat Return
        Struct Try TryBlock Tuple Unary Unsafe While Yield
    }
}

/// Takes the attributes off an expression; those at the begin of a block come before it.
pub fn take(expr: &mut Expr) -> Vec<Attribute> {
    let mut attrs = of(expr).map(std::mem::take).unwrap_or_default();
    for attr in &mut attrs {
        attr.style = AttrStyle::Outer;
    }
    attrs
}

/// `expr` with attributes before it.
pub fn with(attrs: &[Attribute], expr: Expr) -> Expr {
    match attrs {
        [] => expr,
        _ => parse_quote!(#(#attrs)* { #expr }),
    }
}

/// Makes every `expect` an `allow`: what is written anew need not cause the lint. What is for rustfmt,
/// which reads the source, goes: rustc takes it before few expressions.
pub fn relax(block: &mut Block) {
    struct Relax;
    impl VisitMut for Relax {
        fn visit_attributes_mut(&mut self, attrs: &mut Vec<Attribute>) {
            attrs.retain(|attr| {
                let first = attr.path().segments.first();
                first.is_none_or(|first| first.ident != "rustfmt")
            });
            relax_each(attrs);
        }
        fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    }
    Relax.visit_block_mut(block);
}

/// As [`relax`], of an item's own attributes.
pub fn relax_each(attrs: &mut [Attribute]) {
    attrs.iter_mut().for_each(relax_one);
}

fn relax_one(attr: &mut Attribute) {
    let path = match &mut attr.meta {
        Meta::Path(path) => path,
        Meta::List(list) => &mut list.path,
        Meta::NameValue(pair) => &mut pair.path,
    };
    if path.is_ident("expect") {
        let span = path.segments.first().map(|segment| segment.ident.span());
        *path = Path::from(Ident::new("allow", span.unwrap_or_else(Span::call_site)));
    }
}

/// Those that set the level of a lint, for a second function with the same body.
pub fn lints(attrs: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    const LEVELS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];
    let is_level = |attr: &&Attribute| LEVELS.iter().any(|level| attr.path().is_ident(level));
    attrs.iter().filter(is_level)
}
