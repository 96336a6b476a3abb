//! Jumps: which loop or function a `break`, a `continue` or a `return` leaves.
//!
//! Invariant: a jump without a label is of the innermost loop.

use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprIf, Item, Label, Lifetime, Stmt};

use super::{is_rewritten, matches};

/// A jump at the end of a block.
pub enum Jump {
    Return(Option<Box<Expr>>),
    Break(Option<Lifetime>, Option<Box<Expr>>),
    Continue(Option<Lifetime>),
}

impl Jump {
    /// The jump that a block ends in.
    pub fn of(block: &Block) -> Option<Jump> {
        match block.stmts.last() {
            Some(Stmt::Expr(last, _)) => Jump::from(last),
            _ => None,
        }
    }

    fn from(expr: &Expr) -> Option<Jump> {
        Some(match expr {
            Expr::Return(jump) => Jump::Return(jump.expr.clone()),
            Expr::Break(jump) => Jump::Break(jump.label.clone(), jump.expr.clone()),
            Expr::Continue(jump) => Jump::Continue(jump.label.clone()),
            _ => return None,
        })
    }

    /// Puts the value of the jump in its place: the block then gives it.
    pub fn remove_from(&self, block: &mut Block) {
        block.stmts.pop();
        match self {
            Jump::Return(value) | Jump::Break(_, value) => {
                let value = value.as_ref().map(|value| (**value).clone());
                block
                    .stmts
                    .extend(value.map(|value| Stmt::Expr(value, None)));
            }
            Jump::Continue(_) => {}
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
