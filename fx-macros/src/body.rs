//! Rewrites a traced body: comparisons become calls that a traced value can answer, conditions
//! accept plain `bool`s only, and a range in an index may have a traced and a plain end.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Arm, BinOp, Block, Expr, ExprBinary, Macro, Pat, Path, RangeLimits, Stmt, Token};

use crate::attributes;
use crate::spans::{Ends, parenthesized, respanned};

/// Rewrites `block` in place; `core` is the path of the crate that holds `compare`.
///
/// What is not evaluated when the body runs (items, types, patterns, generic
/// arguments, const blocks, array lengths, attributes) stays as it is: a trait
/// call is not allowed there, and no traced value can occur there.
///
/// With `fallible`, the body returns a `Result` that can hold fx's errors, so that an assertion of
/// a traced value can be recorded.
pub fn rewrite(block: &mut Block, core: &TokenStream, fallible: bool) {
    attributes::relax(block);
    let mut rewriter = Rewriter {
        core,
        fallible,
        changed: false,
    };
    rewriter.visit_block_mut(block);
}

struct Rewriter<'a> {
    core: &'a TokenStream,
    /// Whether `?` on fx's errors is possible here: not inside a closure.
    fallible: bool,
    /// Set by each replacement, so that a macro whose arguments need none keeps its tokens.
    changed: bool,
}

impl VisitMut for Rewriter<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Const(_) => {}
            Expr::Closure(closure) => {
                let outside = std::mem::replace(&mut self.fallible, false);
                self.visit_expr_mut(&mut closure.body);
                self.fallible = outside;
            }
            Expr::Async(_) | Expr::TryBlock(_) => {
                let outside = std::mem::replace(&mut self.fallible, false);
                visit_mut::visit_expr_mut(self, expr);
                self.fallible = outside;
            }
            Expr::Repeat(repeat) => self.visit_expr_mut(&mut repeat.expr),
            Expr::Group(group) => {
                self.visit_expr_mut(&mut group.expr);
                self.make_visible(expr);
            }
            Expr::If(branch) => {
                self.condition(&mut branch.cond);
                self.visit_block_mut(&mut branch.then_branch);
                if let Some((_, other)) = &mut branch.else_branch {
                    self.visit_expr_mut(other);
                }
            }
            Expr::While(repeat) => {
                self.condition(&mut repeat.cond);
                self.visit_block_mut(&mut repeat.body);
            }
            Expr::Binary(binary) => match binary.op {
                BinOp::And(_) | BinOp::Or(_) => {
                    self.condition(&mut binary.left);
                    self.condition(&mut binary.right);
                }
                _ => match comparison(binary) {
                    Some(function) => *expr = self.comparison(binary, function),
                    None => visit_mut::visit_expr_binary_mut(self, binary),
                },
            },
            Expr::MethodCall(call) if call.method == "i" => {
                visit_mut::visit_expr_method_call_mut(self, call);
                call.args.iter_mut().for_each(|index| self.ranges(index));
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        self.guard(&mut arm.pat);
        self.visit_expr_mut(&mut arm.body);
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        let Some(form) = MacroForm::of(&mac.path) else {
            return;
        };
        if self.fallible && is_named(&mac.path, &["assert"]) && self.assert(mac) {
            return;
        }
        let before = std::mem::replace(&mut self.changed, false);
        let rewritten =
            (|input: ParseStream<'_>| self.arguments(input, form)).parse2(mac.tokens.clone());
        if let Ok(tokens) = rewritten
            && self.changed
        {
            mac.tokens = tokens;
        }
        self.changed |= before;
    }

    fn visit_attributes_mut(&mut self, _: &mut Vec<syn::Attribute>) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_path_mut(&mut self, _: &mut Path) {}
    fn visit_qself_mut(&mut self, _: &mut syn::QSelf) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_angle_bracketed_generic_arguments_mut(
        &mut self,
        _: &mut syn::AngleBracketedGenericArguments,
    ) {
    }
}

impl Rewriter<'_> {
    /// Rewrites an expression that plain Rust requires to be a `bool`.
    ///
    /// Parentheses, blocks and branches pass the requirement on to what they yield, so the compiler
    /// points at that, and a diverging tail needs no type.
    fn condition(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Paren(paren) => self.condition(&mut paren.expr),
            Expr::Group(group) => {
                self.condition(&mut group.expr);
                self.make_visible(expr);
            }
            Expr::Block(block) => self.condition_of_block(&mut block.block),
            Expr::Unsafe(block) => self.condition_of_block(&mut block.block),
            Expr::If(branch) => {
                self.condition(&mut branch.cond);
                self.condition_of_block(&mut branch.then_branch);
                if let Some((_, other)) = &mut branch.else_branch {
                    self.condition(other);
                }
            }
            Expr::Match(choice) => {
                self.visit_expr_mut(&mut choice.expr);
                for arm in &mut choice.arms {
                    self.guard(&mut arm.pat);
                    self.condition(&mut arm.body);
                }
            }
            _ if needs_no_check(expr) => self.visit_expr_mut(expr),
            _ => {
                let attrs = attributes::take(expr);
                let ends = Ends::of(expr);
                self.visit_expr_mut(expr);
                let call = self.call("condition", ends.last, &ends, expr.to_token_stream());
                *expr = attributes::with(&attrs, call);
            }
        }
    }

    fn condition_of_block(&mut self, block: &mut Block) {
        let Some((last, before)) = block.stmts.split_last_mut() else {
            return;
        };
        for stmt in before {
            self.visit_stmt_mut(stmt);
        }
        match last {
            Stmt::Expr(tail, None) => self.condition(tail),
            stmt => self.visit_stmt_mut(stmt),
        }
    }

    fn guard(&mut self, pat: &mut Pat) {
        if let Pat::Guard(guarded) = pat {
            self.condition(&mut guarded.guard);
        }
    }

    fn comparison(&mut self, binary: &mut ExprBinary, function: &str) -> Expr {
        let ends = Ends::of(binary);
        let left = self.operand(&mut binary.left);
        let right = self.operand(&mut binary.right);
        self.call(function, ends.first, &ends, quote!(#left, #right))
    }

    /// The ranges `a..b` of an index, whose ends may have two types; two literals have one.
    fn ranges(&mut self, index: &mut Expr) {
        let is_literal = |end: &Expr| matches!(end, Expr::Lit(_));
        match index {
            Expr::Paren(paren) => self.ranges(&mut paren.expr),
            Expr::Group(group) => self.ranges(&mut group.expr),
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|part| self.ranges(part)),
            // `every(2).of(0..n)`
            Expr::MethodCall(call) if call.method == "of" => {
                call.args.iter_mut().for_each(|range| self.ranges(range));
            }
            Expr::Range(range) if matches!(range.limits, RangeLimits::HalfOpen(_)) => {
                if let (Some(start), Some(end)) = (&range.start, &range.end)
                    && !(is_literal(start) && is_literal(end))
                {
                    let ends = Ends::of(range);
                    let arguments = quote!(#start, #end);
                    *index = self.call_in("range", "range", ends.first, &ends, arguments);
                }
            }
            _ => {}
        }
    }

    /// An operand by reference, as the comparison operators of plain Rust take it.
    fn operand(&mut self, expr: &mut Expr) -> TokenStream {
        let ends = Ends::of(expr);
        self.visit_expr_mut(expr);
        let mut tokens = expr.to_token_stream();
        if !binds_tighter_than_reference(expr) {
            tokens = parenthesized(tokens, ends.last);
        }
        quote_spanned!(ends.first=> &#tokens)
    }

    /// `core::compare::function(arguments)`, where the callee ends at `callee`.
    ///
    /// rustc takes the place of a call, which `Location::caller` reports, from
    /// its first to its last token; a token of the macro's own in either place
    /// would make that the `#[trace]` attribute.
    fn call(&mut self, function: &str, callee: Span, ends: &Ends, arguments: TokenStream) -> Expr {
        self.call_in("compare", function, callee, ends, arguments)
    }

    /// As [`call`](Self::call), of another module.
    fn call_in(
        &mut self,
        module: &str,
        function: &str,
        callee: Span,
        ends: &Ends,
        arguments: TokenStream,
    ) -> Expr {
        self.changed = true;
        let core = respanned(self.core.clone(), ends.first);
        let module = Ident::new(module, callee);
        let function = Ident::new(function, callee);
        let arguments = parenthesized(arguments, ends.last);
        Expr::Verbatim(quote_spanned!(callee=> #core::__private::#module::#function #arguments))
    }

    /// Turns the invisible group around an operand such as `$a` into parentheses
    /// where it matters: rustc forgets one that comes out of a procedural macro, and
    /// then `$a * 2` with `1 + n` for `$a` would be `1 + n * 2`.
    fn make_visible(&mut self, expr: &mut Expr) {
        let Expr::Group(group) = expr else { return };
        if !binds_tighter_than_postfix(&group.expr) {
            self.changed = true;
            // A span of the macro's own keeps rustc from calling the parentheses unnecessary.
            let span = Span::mixed_site().located_at(Ends::of(&group.expr).last);
            *expr = Expr::Verbatim(parenthesized(group.expr.to_token_stream(), span));
        }
    }

    /// Makes an `assert!` fx's, which records a traced claim; `false` leaves it as it is.
    fn assert(&mut self, mac: &mut Macro) -> bool {
        let Ok(tokens) =
            (|input: ParseStream<'_>| self.assertion(input)).parse2(mac.tokens.clone())
        else {
            return false;
        };
        let ends = Ends::of(&mac.path);
        let core = respanned(self.core.clone(), ends.first);
        let name = Ident::new("__assert", ends.last);
        let Ok(path) = syn::parse2(quote_spanned!(ends.last=> #core::#name)) else {
            return false;
        };
        self.changed = true;
        mac.path = path;
        mac.tokens = tokens;
        true
    }

    /// The arguments of an `assert!` whose claim may be traced. Several claims joined by `&&` and
    /// `||` are a plain one.
    fn assertion(&mut self, input: ParseStream<'_>) -> syn::Result<TokenStream> {
        let mut claim: Expr = input.parse()?;
        if needs_no_check(&claim) {
            return Err(input.error("a plain claim"));
        }
        let written = claim.to_token_stream();
        let comma: Option<Token![,]> = input.parse()?;
        let words = match comma {
            Some(_) if !input.is_empty() => self.arguments(input, MacroForm::Expressions)?,
            _ => quote!(
                "{}",
                ::core::concat!("assertion failed: ", ::core::stringify!(#written))
            ),
        };
        self.visit_expr_mut(&mut claim);
        Ok(quote!(#claim, #words))
    }

    /// The arguments of a macro of the standard library, rewritten.
    fn arguments(&mut self, input: ParseStream<'_>, form: MacroForm) -> syn::Result<TokenStream> {
        match form {
            MacroForm::Expressions => {
                let mut list = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
                for expr in &mut list {
                    self.visit_expr_mut(expr);
                }
                Ok(list.into_token_stream())
            }
            MacroForm::Vector => {
                if input.is_empty() {
                    return Ok(TokenStream::new());
                }
                let mut first: Expr = input.parse()?;
                self.visit_expr_mut(&mut first);
                if input.is_empty() {
                    return Ok(first.into_token_stream());
                }
                if let Some(semi) = input.parse::<Option<Token![;]>>()? {
                    let mut length: Expr = input.parse()?;
                    self.visit_expr_mut(&mut length);
                    return Ok(quote!(#first #semi #length));
                }
                let comma: Token![,] = input.parse()?;
                let rest = self.arguments(input, MacroForm::Expressions)?;
                Ok(quote!(#first #comma #rest))
            }
            MacroForm::Assertion => {
                let mut claim: Expr = input.parse()?;
                let written = claim.to_token_stream();
                self.condition(&mut claim);
                let comma: Option<Token![,]> = input.parse()?;
                if input.is_empty() {
                    // Without a message, `assert!` would quote the rewritten claim.
                    return Ok(quote! {
                        #claim,
                        "{}",
                        ::core::concat!("assertion failed: ", ::core::stringify!(#written))
                    });
                }
                let comma = comma.ok_or_else(|| input.error("expected `,`"))?;
                let rest = self.arguments(input, MacroForm::Expressions)?;
                Ok(quote!(#claim #comma #rest))
            }
            MacroForm::Matching => {
                let mut value: Expr = input.parse()?;
                self.visit_expr_mut(&mut value);
                let comma: Token![,] = input.parse()?;
                let pat = Pat::parse_multi_with_leading_vert(input)?;
                let mut tokens = quote!(#value #comma #pat);
                if let Some(if_token) = input.parse::<Option<Token![if]>>()? {
                    let mut guard: Expr = input.parse()?;
                    self.condition(&mut guard);
                    tokens.extend(quote!(#if_token #guard));
                }
                if let Some(comma) = input.parse::<Option<Token![,]>>()? {
                    let words = self.arguments(input, MacroForm::Expressions)?;
                    tokens.extend(quote!(#comma #words));
                }
                Ok(tokens)
            }
        }
    }
}

/// How the arguments of a macro of the standard library read.
#[derive(Clone, Copy)]
enum MacroForm {
    Expressions,
    Vector,
    Assertion,
    Matching,
}

impl MacroForm {
    fn of(path: &Path) -> Option<Self> {
        let root = path.segments.first()?;
        let name = path.segments.last()?;
        let standard = ["std", "core", "alloc"];
        if path.segments.len() > 1 && !standard.iter().any(|krate| root.ident == krate) {
            return None;
        }
        Some(match name.ident.to_string().as_str() {
            "assert" | "debug_assert" => Self::Assertion,
            "matches" | "assert_matches" | "debug_assert_matches" => Self::Matching,
            "vec" => Self::Vector,
            "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" | "dbg"
            | "eprint" | "eprintln" | "format" | "format_args" | "panic" | "pin" | "print"
            | "println" | "todo" | "unimplemented" | "unreachable" | "write" | "writeln" => {
                Self::Expressions
            }
            _ => return None,
        })
    }
}

/// The function of `compare` that stands for a comparison.
fn comparison(binary: &ExprBinary) -> Option<&'static str> {
    Some(match binary.op {
        BinOp::Lt(_) => "lt",
        BinOp::Le(_) => "le",
        BinOp::Gt(_) => "gt",
        BinOp::Ge(_) => "ge",
        BinOp::Eq(_) => "eq",
        BinOp::Ne(_) => "ne",
        _ => return None,
    })
}

/// Whether a condition is valid, or refused with a good message, as plain Rust has it.
pub fn needs_no_check(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Let(_) | Expr::Assign(_) | Expr::Loop(_) | Expr::Verbatim(_) => true,
        Expr::Binary(binary) => matches!(binary.op, BinOp::And(_) | BinOp::Or(_)),
        Expr::Macro(mac) if is_named(&mac.mac.path, &["matches", "cfg"]) => true,
        _ => diverges(expr),
    }
}

/// Whether an expression is known by its form never to yield a value, which
/// plain Rust accepts as a `bool` and a trait bound does not.
fn diverges(expr: &Expr) -> bool {
    const MACROS: [&str; 6] = [
        "bail",
        "compile_error",
        "panic",
        "todo",
        "unimplemented",
        "unreachable",
    ];
    const FUNCTIONS: [&str; 4] = ["abort", "exit", "panic_any", "resume_unwind"];
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Macro(mac) => is_named(&mac.mac.path, &MACROS),
        Expr::Call(call) => match &*call.func {
            Expr::Path(function) => is_named(&function.path, &FUNCTIONS),
            _ => false,
        },
        _ => false,
    }
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    let last = path.segments.last();
    last.is_some_and(|segment| names.iter().any(|name| segment.ident == name))
}

fn binds_tighter_than_postfix(expr: &Expr) -> bool {
    binds_tighter_than_reference(expr) && !matches!(expr, Expr::Reference(_) | Expr::Unary(_))
}

fn binds_tighter_than_reference(expr: &Expr) -> bool {
    !matches!(
        expr,
        Expr::Assign(_)
            | Expr::Binary(_)
            | Expr::Break(_)
            | Expr::Cast(_)
            | Expr::Closure(_)
            | Expr::Let(_)
            | Expr::Range(_)
            | Expr::Return(_)
            | Expr::Yield(_)
    )
}
