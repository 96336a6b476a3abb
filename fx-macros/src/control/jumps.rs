//! Jumps: which loop or function a `break`, a `continue` or a `return` leaves.
//!
//! Invariant: a jump without a label is of the innermost loop.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprIf, Item, Label, Lifetime, Stmt, parse_quote};

use super::forms::is_rewritten;
use super::matches;
use crate::attributes;
use crate::spans::Ends;

/// A jump at the end of a block.
#[derive(Clone)]
pub enum Jump {
    Return(Option<Box<Expr>>),
    Break(Option<Lifetime>, Option<Box<Expr>>),
    Continue(Option<Lifetime>),
}

impl Jump {
    /// The jump that a block ends in, also inside of blocks at its end.
    pub fn of(block: &Block) -> Option<Jump> {
        match block.stmts.last() {
            Some(Stmt::Expr(Expr::Block(inner), _)) if inner.label.is_none() => {
                Jump::of(&inner.block)
            }
            Some(Stmt::Expr(last, _)) => Jump::from(last),
            _ => None,
        }
    }

    pub fn from(expr: &Expr) -> Option<Jump> {
        Some(match expr {
            Expr::Return(jump) => Jump::Return(jump.expr.clone()),
            Expr::Break(jump) => Jump::Break(jump.label.clone(), jump.expr.clone()),
            Expr::Continue(jump) => Jump::Continue(jump.label.clone()),
            _ => return None,
        })
    }

    /// Whether both leave the same region in the same way.
    pub fn is_like(&self, other: &Jump) -> bool {
        match (self, other) {
            (Jump::Return(_), Jump::Return(_)) => true,
            (Jump::Break(one, _), Jump::Break(other, _))
            | (Jump::Continue(one), Jump::Continue(other)) => one == other,
            _ => false,
        }
    }

    /// The value of the jump, or of nothing.
    pub fn into_value(self) -> Expr {
        match self {
            Jump::Return(Some(value)) | Jump::Break(_, Some(value)) => *value,
            _ => parse_quote!({}),
        }
    }

    /// Puts the value of the jump in its place: the block then gives it.
    pub fn remove_from(&self, block: &mut Block) {
        match block.stmts.pop() {
            Some(Stmt::Expr(Expr::Block(mut inner), _)) => {
                self.remove_from(&mut inner.block);
                block.stmts.push(Stmt::Expr(Expr::Block(inner), None));
            }
            Some(Stmt::Expr(mut jump, _)) => {
                let attrs = attributes::take(&mut jump);
                if let Jump::Return(Some(value)) | Jump::Break(_, Some(value)) = self {
                    let value = attributes::with(&attrs, (**value).clone());
                    block.stmts.push(Stmt::Expr(value, None));
                }
            }
            _ => {}
        }
    }

    /// Where the jump of a block is.
    pub fn place(block: &Block) -> Option<Span> {
        match block.stmts.last()? {
            Stmt::Expr(Expr::Block(inner), _) if inner.label.is_none() => Jump::place(&inner.block),
            Stmt::Expr(Expr::Return(jump), _) => Some(jump.return_token.span),
            Stmt::Expr(Expr::Break(jump), _) => Some(jump.break_token.span),
            Stmt::Expr(Expr::Continue(jump), _) => Some(jump.continue_token.span),
            last => Some(Ends::of(last).first),
        }
    }
}

/// The block of an `if` that ends in a jump: the first one, or else the second.
pub fn jump_of(branch: &ExprIf) -> Option<(Jump, bool)> {
    let first = Jump::of(&branch.then_branch).map(|jump| (jump, true));
    let second = || match &branch.else_branch {
        Some((_, other)) => match &**other {
            Expr::Block(block) if block.label.is_none() => {
                Jump::of(&block.block).map(|jump| (jump, false))
            }
            _ => None,
        },
        None => None,
    };
    first.or_else(second)
}

/// The jumps in a function, or in a loop.
#[derive(Default)]
pub struct Jumps {
    /// An `if` that a traced value may decide ends in a `return`.
    pub returns: bool,
    /// An `if` that a traced value may decide ends in a jump of the loop.
    pub exits: bool,
    /// There is a jump of the loop.
    pub leaves: bool,
    /// There is one with a value.
    pub gives: bool,
    label: Option<Lifetime>,
    /// How many loops are around.
    inside: usize,
}

impl Jumps {
    pub fn of_function(block: &Block) -> Self {
        let mut jumps = Jumps {
            inside: 1,
            ..Jumps::default()
        };
        jumps.visit_block(block);
        jumps
    }

    pub fn of_loop(block: &Block, label: Option<&Label>) -> Self {
        let mut jumps = Jumps {
            label: label.map(|label| label.name.clone()),
            ..Jumps::default()
        };
        jumps.visit_block(block);
        jumps
    }

    fn is_own(&self, label: Option<&Lifetime>) -> bool {
        match label {
            Some(label) => self.label.as_ref() == Some(label),
            None => self.inside == 0,
        }
    }

    fn in_loop(&mut self, visit: impl FnOnce(&mut Self)) {
        self.inside += 1;
        visit(self);
        self.inside -= 1;
    }
}

impl<'ast> Visit<'ast> for Jumps {
    fn visit_expr_if(&mut self, branch: &'ast ExprIf) {
        match is_rewritten(&branch.cond)
            .then(|| jump_of(branch))
            .flatten()
        {
            Some((Jump::Return(_), _)) => self.returns = true,
            Some((Jump::Break(label, _) | Jump::Continue(label), _)) => {
                self.exits |= self.is_own(label.as_ref());
            }
            None => {}
        }
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let arms = choice
            .arms
            .iter()
            .filter(|_| matches::is_of_literals(choice));
        let arms = arms.map(|arm| match &*arm.body {
            Expr::Block(block) => Jump::of(&block.block),
            body => Jump::from(body),
        });
        for jump in arms.flatten() {
            match jump {
                Jump::Return(_) => self.returns = true,
                Jump::Break(label, _) | Jump::Continue(label) => {
                    self.exits |= self.is_own(label.as_ref());
                }
            }
        }
        visit::visit_expr_match(self, choice);
    }

    fn visit_expr_break(&mut self, jump: &'ast syn::ExprBreak) {
        let is_own = self.is_own(jump.label.as_ref());
        self.leaves |= is_own;
        self.gives |= is_own && jump.expr.is_some();
        visit::visit_expr_break(self, jump);
    }

    fn visit_expr_continue(&mut self, jump: &'ast syn::ExprContinue) {
        self.leaves |= self.is_own(jump.label.as_ref());
    }

    fn visit_expr_loop(&mut self, repeat: &'ast syn::ExprLoop) {
        self.in_loop(|this| visit::visit_expr_loop(this, repeat));
    }

    fn visit_expr_while(&mut self, repeat: &'ast syn::ExprWhile) {
        self.in_loop(|this| visit::visit_expr_while(this, repeat));
    }

    fn visit_expr_for_loop(&mut self, repeat: &'ast syn::ExprForLoop) {
        self.in_loop(|this| visit::visit_expr_for_loop(this, repeat));
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
    fn visit_item(&mut self, _: &'ast Item) {}
}
