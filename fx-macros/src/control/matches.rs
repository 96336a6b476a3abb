//! A `match` on literals of whole numbers and booleans, as a chain of `if`.
//!
//! Invariant: only a `match` that has a branch for every value is written anew, and each of its
//! patterns is a test without a binding.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Arm, Expr, ExprMatch, Lit, Pat, RangeLimits, UnOp, parse_quote};

use super::forms::name;

/// Whether a traced value can choose: every arm is of literals.
pub fn is_of_literals(choice: &ExprMatch) -> bool {
    tests(choice).is_some()
}

/// Per arm but the last one: what it is for.
fn tests(choice: &ExprMatch) -> Option<Vec<Vec<Test>>> {
    let mut cases: Vec<Cases> = choice.arms.iter().map(Cases::of).collect::<Option<_>>()?;
    let are_truths = are_both_truths(&cases);
    let is_complete = matches!(cases.pop()?, Cases::Rest) || are_truths;
    let tests = cases.into_iter().map(|cases| match cases {
        Cases::Some { tests, .. } => Some(tests),
        Cases::Rest => None,
    });
    let tests: Vec<Vec<Test>> = tests.collect::<Option<_>>()?;
    (is_complete && !tests.is_empty()).then_some(tests)
}

/// The chain, if every arm is of literals.
pub fn as_branches(choice: &ExprMatch, core: &TokenStream) -> Option<Expr> {
    let control = quote!(#core::__private::control);
    let (last, others) = choice.arms.split_last()?;
    let choose = name("__choice");
    // Errors about what an arm gives are at the `match`.
    let keyword = quote_spanned!(choice.match_token.span=> if);
    let mut chain = match &last.pat {
        Pat::Ident(rest) => {
            let body = &last.body;
            let attrs = &last.attrs;
            parse_quote!({
                #(#attrs)*
                let #rest = #choose;
                #(#attrs)*
                { #body }
            })
        }
        _ => block(last),
    };
    for (arm, tests) in others.iter().zip(tests(choice)?).rev() {
        let tests = tests.iter().map(|test| test.written(&control));
        let body = block(arm);
        chain = parse_quote! {
            #keyword #control::Chooses::is(&#choose, &[#(#tests),*]) #body else #chain
        };
    }
    let value = &choice.expr;
    Some(parse_quote!({
        let #choose = #control::choose(#value);
        #chain
    }))
}

fn block(arm: &Arm) -> Expr {
    let (attrs, body) = (&arm.attrs, &arm.body);
    match &**body {
        Expr::Block(block) if block.label.is_none() && block.attrs.is_empty() => match attrs[..] {
            [] => (**body).clone(),
            _ => parse_quote!({ #(#attrs)* #body }),
        },
        body if attrs.is_empty() => parse_quote!({ #body }),
        body => parse_quote!({ #(#attrs)* { #body } }),
    }
}

/// Whether it is a new local: a name in capitals is a constant, or a variant.
fn is_binding(pat: &syn::PatIdent) -> bool {
    let is_plain = pat.by_ref.is_none() && pat.subpat.is_none();
    is_plain
        && pat
            .ident
            .to_string()
            .starts_with(|first: char| first.is_lowercase() || first == '_')
}

/// `true` and `false`.
fn are_both_truths(cases: &[Cases]) -> bool {
    let [
        Cases::Some {
            tests: a,
            truth: true,
        },
        Cases::Some {
            tests: b,
            truth: true,
        },
    ] = cases
    else {
        return false;
    };
    matches!((&a[..], &b[..]), ([a], [b]) if a.low != b.low)
}

/// What an arm is for.
enum Cases {
    Some { tests: Vec<Test>, truth: bool },
    Rest,
}

/// The numbers between two bounds.
struct Test {
    low: Option<i128>,
    high: Option<i128>,
}

impl Test {
    fn written(&self, control: &TokenStream) -> TokenStream {
        let bound = |bound: &Option<i128>| match bound {
            Some(bound) => {
                let bound = proc_macro2::Literal::i128_suffixed(*bound);
                quote!(::core::option::Option::Some(#bound))
            }
            None => quote!(::core::option::Option::None),
        };
        let (low, high) = (bound(&self.low), bound(&self.high));
        quote!(#control::Case(#low, #high))
    }
}

impl Cases {
    fn of(arm: &Arm) -> Option<Self> {
        match &arm.pat {
            Pat::Wild(_) => Some(Cases::Rest),
            Pat::Ident(rest) if is_binding(rest) => Some(Cases::Rest),
            pat => {
                let (mut tests, mut truth) = (Vec::new(), false);
                add(pat, &mut tests, &mut truth)?;
                Some(Cases::Some { tests, truth })
            }
        }
    }
}

fn add(pat: &Pat, tests: &mut Vec<Test>, truth: &mut bool) -> Option<()> {
    let (low, high) = match pat {
        Pat::Paren(inner) => return add(&inner.pat, tests, truth),
        Pat::Or(any) => return any.cases.iter().try_for_each(|pat| add(pat, tests, truth)),
        Pat::Lit(literal) => {
            *truth |= matches!(literal.lit, Lit::Bool(_));
            let number = number_of(&literal.lit)?;
            (Some(number), Some(number))
        }
        Pat::Range(range) => {
            let bound = |bound: &Option<Box<Expr>>| match bound {
                Some(bound) => number(bound).map(Some),
                None => Some(None),
            };
            let (low, high) = (bound(&range.start)?, bound(&range.end)?);
            match (high, &range.limits) {
                (Some(high), RangeLimits::HalfOpen(_)) => (low, Some(high.checked_sub(1)?)),
                (high, _) => (low, high),
            }
        }
        _ => return None,
    };
    tests.push(Test { low, high });
    Some(())
}

fn number_of(literal: &Lit) -> Option<i128> {
    match literal {
        Lit::Int(number) => number.base10_parse().ok(),
        Lit::Bool(truth) => Some(i128::from(truth.value)),
        _ => None,
    }
}

fn number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(literal) => number_of(&literal.lit),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            number(&unary.expr)?.checked_neg()
        }
        _ => None,
    }
}
