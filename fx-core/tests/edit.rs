//! Edits: a failed edit leaves no trace, and an edit costs what it changes.

mod canonicalize;
mod cost;
mod failing;
mod mirror;
mod modules;
mod passes;
mod random;
mod state;
