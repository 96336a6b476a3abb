//! Sides that end in one jump by several ways, written so that the jump stands at their end.
//!
//! Invariant: plain Rust does the same before and after. A jump at the end of a side leaves one
//! region; inside of a further branch it would leave two, which no graph can.

use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprBlock, ExprIf, Stmt, parse_quote};

use super::forms::{is_err, is_rewritten};
use super::jumps::{Jump, jump_of};
use super::matches;

/// Writes all sides of a function anew that need it.
pub fn fold(block: &mut Block) {
    Tails { inside: 0 }.visit_block_mut(block);
}

struct Tails {
    /// How many sides are around that a traced value may decide.
    inside: usize,
}

impl VisitMut for Tails {
    fn visit_expr_if_mut(&mut self, branch: &mut ExprIf) {
        let decides = usize::from(is_rewritten(&branch.cond));
        self.inside += decides;
        visit_mut::visit_expr_if_mut(self, branch);
        if self.inside > 0 {
            fold_side(&mut branch.then_branch);
            if let Some((_, other)) = &mut branch.else_branch
                && let Expr::Block(ExprBlock { block, .. }) = &mut **other
            {
                fold_side(block);
            }
        }
        self.inside -= decides;
    }

    fn visit_expr_match_mut(&mut self, choice: &mut syn::ExprMatch) {
        let decides = usize::from(matches::is_of_literals(choice));
        self.inside += decides;
        visit_mut::visit_expr_match_mut(self, choice);
        if self.inside > 0 {
            for arm in &mut choice.arms {
                if let Expr::Block(ExprBlock { block, .. }) = &mut *arm.body {
                    fold_side(block);
                }
            }
        }
        self.inside -= decides;
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _: &mut syn::ExprAsync) {}
    fn visit_expr_unsafe_mut(&mut self, _: &mut syn::ExprUnsafe) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

fn fold_side(block: &mut Block) {
    refusals_first(block);
    join_last(block);
    let Some(jump) = own_jump(block) else {
        return;
    };
    // The latest way out first: what follows it is then its other side.
    for at in (0..block.stmts.len().saturating_sub(1)).rev() {
        if way_out(&block.stmts[at]).is_some_and(|way| way.is_like(&jump)) {
            take_in(block, at);
        }
    }
}

/// The jump that a block ends in, and that is not a refusal.
fn own_jump(block: &Block) -> Option<Jump> {
    Jump::of(block).filter(is_plain)
}

fn is_plain(jump: &Jump) -> bool {
    match jump {
        Jump::Return(value) => !value.as_deref().is_some_and(is_err),
        Jump::Break(_, value) => value.is_none(),
        Jump::Continue(_) => true,
    }
}

/// Ends a block that ends in `if a { return Err(e) } else { b }` in `if a { return Err(e) } b`: a
/// refusal leaves no region.
fn refusals_first(block: &mut Block) {
    while let Some(Stmt::Expr(Expr::If(branch), _)) = block.stmts.last_mut() {
        let refuses = |block: &Block| {
            let jump = Jump::of(block);
            jump.is_some_and(|jump| matches!(jump, Jump::Return(_)) && !is_plain(&jump))
        };
        if !is_rewritten(&branch.cond) {
            return;
        }
        let other = match &mut branch.else_branch {
            Some((_, other)) if refuses(&branch.then_branch) => {
                let other = std::mem::replace(&mut **other, parse_quote!({}));
                branch.else_branch = None;
                other
            }
            Some((_, other)) => match &mut **other {
                Expr::Block(side) if side.label.is_none() && refuses(&side.block) => {
                    let then = std::mem::replace(&mut branch.then_branch, parse_quote!({}));
                    parse_quote!(#then)
                }
                _ => return,
            },
            None => return,
        };
        match other {
            Expr::Block(side) if side.label.is_none() && side.attrs.is_empty() => {
                block.stmts.extend(side.block.stmts);
            }
            other => block.stmts.push(Stmt::Expr(other, None)),
        }
    }
}

/// Ends a block whose last statement jumps on each side in the jump itself.
fn join_last(block: &mut Block) {
    let Some(Stmt::Expr(last @ (Expr::If(_) | Expr::Match(_)), _)) = block.stmts.last_mut() else {
        return;
    };
    let mut ways = Vec::new();
    if !ways_of(last, &mut ways) {
        return;
    }
    let Some(jump) = ways.first().filter(|way| is_plain(way)).cloned() else {
        return;
    };
    if !ways.iter().all(|way| is_plain(way) && way.is_like(&jump)) {
        return;
    }
    remove_ways(last);
    let value = std::mem::replace(last, parse_quote!({}));
    block.stmts.pop();
    end(block, &jump, value);
}

/// Ends a block in a jump with a value, or behind it.
fn end(block: &mut Block, jump: &Jump, value: Expr) {
    let written: Expr = match jump {
        Jump::Return(_) => parse_quote!(return #value),
        Jump::Break(label, _) => {
            block
                .stmts
                .push(Stmt::Expr(value, Some(Default::default())));
            parse_quote!(break #label)
        }
        Jump::Continue(label) => {
            block
                .stmts
                .push(Stmt::Expr(value, Some(Default::default())));
            parse_quote!(continue #label)
        }
    };
    block
        .stmts
        .push(Stmt::Expr(written, Some(Default::default())));
}

/// The jumps at the ends of all sides; `false` if one ends otherwise.
fn ways_of(expr: &Expr, ways: &mut Vec<Jump>) -> bool {
    let mut of_block = |block: &Block| match (Jump::of(block), block.stmts.last()) {
        (Some(jump), _) => {
            ways.push(jump);
            true
        }
        (None, Some(Stmt::Expr(last @ (Expr::If(_) | Expr::Match(_)), _))) => ways_of(last, ways),
        _ => false,
    };
    match expr {
        Expr::If(branch) => {
            of_block(&branch.then_branch)
                && match &branch.else_branch {
                    Some((_, other)) => ways_of(other, ways),
                    None => false,
                }
        }
        Expr::Match(choice) => choice.arms.iter().all(|arm| ways_of(&arm.body, ways)),
        Expr::Block(side) if side.label.is_none() => of_block(&side.block),
        other => match Jump::from(other) {
            Some(jump) => {
                ways.push(jump);
                true
            }
            None => false,
        },
    }
}

fn remove_ways(expr: &mut Expr) {
    let of_block = |block: &mut Block| match (Jump::of(block), block.stmts.last_mut()) {
        (Some(jump), _) => jump.remove_from(block),
        (None, Some(Stmt::Expr(last, semi))) => {
            *semi = None;
            remove_ways(last);
        }
        _ => {}
    };
    match expr {
        Expr::If(branch) => {
            of_block(&mut branch.then_branch);
            if let Some((_, other)) = &mut branch.else_branch {
                remove_ways(other);
            }
        }
        Expr::Match(choice) => choice
            .arms
            .iter_mut()
            .for_each(|arm| remove_ways(&mut arm.body)),
        Expr::Block(side) => of_block(&mut side.block),
        other => {
            if let Some(jump) = Jump::from(other) {
                *other = jump.into_value();
            }
        }
    }
}

/// The jump of a statement that is an `if` with one on one side.
fn way_out(statement: &Stmt) -> Option<Jump> {
    let Stmt::Expr(Expr::If(branch), _) = statement else {
        return None;
    };
    let (jump, _) = jump_of(branch)?;
    is_plain(&jump).then_some(jump)
}

/// Makes what follows a way out its other side.
fn take_in(block: &mut Block, at: usize) {
    let rest = block.stmts.split_off(at + 1);
    let Some(Stmt::Expr(Expr::If(mut branch), _)) = block.stmts.pop() else {
        return;
    };
    let Some((jump, is_first)) = jump_of(&branch) else {
        return;
    };
    let mut rest: Block = parse_quote!({ #(#rest)* });
    let Some(last) = Jump::of(&rest) else {
        return;
    };
    last.remove_from(&mut rest);
    let other = match (&mut branch.else_branch, is_first) {
        (Some((_, other)), true) => Some(std::mem::replace(&mut **other, parse_quote!({}))),
        (Some((_, other)), false) => {
            if let Expr::Block(side) = &mut **other {
                jump.remove_from(&mut side.block);
            }
            let then = std::mem::replace(&mut branch.then_branch, parse_quote!({}));
            Some(parse_quote!(#then))
        }
        (None, _) => None,
    };
    if let Some(other) = other {
        rest.stmts
            .insert(0, Stmt::Expr(other, Some(Default::default())));
    }
    match is_first {
        true => {
            jump.remove_from(&mut branch.then_branch);
            branch.else_branch = Some((Default::default(), parse_quote!(#rest)));
        }
        false => branch.then_branch = rest,
    }
    end(block, &jump, Expr::If(branch));
}
