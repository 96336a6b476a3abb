//! Branches and loops that a graph decides: what is recorded, what it computes, and what is refused.

#[path = "control/branches.rs"]
mod branches;
#[path = "control/interpret.rs"]
mod interpret;
#[path = "control/loops.rs"]
mod loops;
#[path = "control/passes.rs"]
mod passes;
#[path = "control/source.rs"]
mod source;
#[path = "control/syntax.rs"]
mod syntax;
