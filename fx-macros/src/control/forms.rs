//! Questions about syntax that need nothing but the syntax, and names that no syntax of a user can have.
//!
//! Invariant: what is not certain to be traced, or moved, is taken as plain Rust has it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{BinOp, Expr, ExprIf, Member, Pat, Path, Type};

use crate::body::needs_no_check;

/// A name that the user's code does not see.
pub fn name(text: &str) -> Ident {
    Ident::new(text, Span::mixed_site())
}

pub fn is_result(ty: &Type) -> bool {
    let path = match ty {
        // A macro's `$output:ty`.
        Type::Group(group) => return is_result(&group.elem),
        Type::Paren(group) => return is_result(&group.elem),
        Type::Path(path) => path,
        _ => return false,
    };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == "Result")
}

pub fn has_impl(ty: &Type) -> bool {
    let mut tokens = ty.to_token_stream().into_iter().collect::<Vec<_>>();
    while let Some(token) = tokens.pop() {
        match token {
            TokenTree::Ident(ident) if ident == "impl" => return true,
            TokenTree::Group(group) => tokens.extend(group.stream()),
            _ => {}
        }
    }
    false
}

/// `control::cond` and its like, whose closures run in place.
pub fn is_of_control(function: &Expr) -> bool {
    const FUNCTIONS: [&str; 4] = ["cond", "while_loop", "scan", "map"];
    let Expr::Path(path) = function else {
        return false;
    };
    let mut segments = path.path.segments.iter().rev();
    let last = segments.next();
    let of = segments.next();
    of.is_some_and(|of| of.ident == "control")
        && last.is_some_and(|last| FUNCTIONS.iter().any(|known| last.ident == known))
}

/// Whether a condition may be a traced value: plain Rust decides about any other.
pub fn is_rewritten(condition: &Expr) -> bool {
    !needs_no_check(condition) && !is_field_of_self(condition)
}

/// The block of an `else`.
pub fn otherwise(branch: &ExprIf) -> TokenStream {
    match &branch.else_branch {
        Some((_, other)) => quote!({ #other }),
        None => quote!({}),
    }
}

pub fn is_err(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else {
        return false;
    };
    matches!(&*call.func, Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Err"))
}

/// `self.a.b`, which is a plain `bool` if it is a condition.
pub fn is_field_of_self(expr: &Expr) -> bool {
    match expr {
        Expr::Field(field) => match &*field.base {
            Expr::Path(path) => path.path.is_ident("self"),
            base => is_field_of_self(base),
        },
        Expr::Paren(paren) => is_field_of_self(&paren.expr),
        Expr::Unary(unary) => is_field_of_self(&unary.expr),
        _ => false,
    }
}

/// The local that a place is, or is part of.
pub fn local_of(place: &Expr) -> Option<&Ident> {
    match place {
        Expr::Path(path) => path.path.get_ident().filter(|name| *name != "self"),
        Expr::Field(field) => local_of(&field.base),
        Expr::Paren(inner) => local_of(&inner.expr),
        _ => None,
    }
}

/// Methods of the standard library that take what they are called on.
pub fn takes_receiver(method: &Ident) -> bool {
    const METHODS: [&str; 9] = [
        "expect",
        "into_iter",
        "ok",
        "ok_or",
        "ok_or_else",
        "unwrap",
        "unwrap_or",
        "unwrap_or_default",
        "unwrap_or_else",
    ];
    METHODS.iter().any(|known| method == known)
}

/// Whether a pattern takes its value as it is.
pub fn moves_whole(pat: &Pat) -> bool {
    match pat {
        Pat::Ident(name) => name.by_ref.is_none() && name.subpat.is_none(),
        Pat::Type(typed) => moves_whole(&typed.pat),
        _ => false,
    }
}

pub fn is_member(path: &Path, member: &Member) -> bool {
    matches!((path.get_ident(), member), (Some(name), Member::Named(member)) if name == member)
}

pub fn is_arithmetic(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_)
            | BinOp::BitXor(_)
            | BinOp::Shl(_)
            | BinOp::Shr(_)
    )
}
