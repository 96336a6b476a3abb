//! Control flow that a graph decides when it runs: branches and loops whose condition is traced.
//!
//! A trace records both branches of a [`cond`], or one iteration of a [`while_loop`], in place: the closures
//! run once, borrow what they like, and what they record becomes a graph inside a [`Cond`] or
//! [`While`] module. With a known condition nothing is recorded for the choice: the functions are
//! then an `if` and a `while`.
//!
//! ```
//! use fx_core::control;
//! use fx_core::prelude::*;
//! // How many halvings until x is at most 1, by which of two rules.
//! let f = traced!(|x: Float, up: Bool| {
//!     let x: Float = control::cond(up, || x * 3.0, || Ok(x))?;
//!     control::while_loop(
//!         (x, Int::from(0)),
//!         |(x, _)| operator::gt.call_as::<Bool>((*x, 1.0)),
//!         |(x, turns)| Ok(((x / 2.0)?, (turns + 1)?)),
//!     )
//! });
//! # use fx_core::operator;
//! let gm = symbolic_trace(f)?;
//! let (x, turns): (f64, i64) = gm.forward((4.0, false))?;
//! assert_eq!((x, turns), (1.0, 2));
//! let (x, turns): (f64, i64) = gm.forward((4.0, true))?;
//! assert_eq!((x, turns), (0.75, 4));
//! # Ok::<(), Error>(())
//! ```

mod branch_recorder;
mod break_continue;
mod choice;
mod cond;
mod decide;
mod early_returns;
mod held;
mod if_region;
mod kind;
mod loop_recorder;
mod loop_state;
#[doc(hidden)]
pub mod mentioned;
mod ranges;
mod record;
mod scan;
mod while_loop;

pub use self::cond::{Cond, cond};
pub use self::decide::{Decide, Truth};
pub use self::scan::{Scan, scan};
pub use self::while_loop::{While, while_loop};

/// What `#[trace(control_flow)]` writes.
#[doc(hidden)]
pub mod written {
    pub use super::break_continue::{Exits, gives_value, hides, note};
    pub use super::choice::{Case, Chooses, choose};
    pub use super::early_returns::EarlyReturns;
    pub use super::if_region::{Fork, fork, join, keep, leave, restored, settle, turn};
    pub use super::kind::{KindOf, Plain};
    pub use super::loop_state::{LoopState, gather, put};
    pub use super::ranges::{Steps, bounds, bounds_from, bounds_to, steps};
}
