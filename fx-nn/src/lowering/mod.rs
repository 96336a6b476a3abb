//! What a writer of another format needs of a graph: it is made ready, its calls are read by parameter, and each
//! function has a rule.
//!
//! A format has a context `C`, to which its [`Rule`]s write, and walks a graph that [`prepare`] has made ready. The
//! crates `fx-onnx` and `fx-stablehlo` are two formats.
//!
//! Invariant: the rules of a format are found by function, never by name.

mod call;
mod composed;
mod prepare;
mod question;
mod region;
mod resampling;
mod rule;
mod signature;
mod value;

pub use call::{OpCall, Values, operand, val_of, wrapped};
pub use prepare::{opened, prepare, prepare_within};
pub use question::Question;
pub use region::RegionCall;
pub use resampling::{Mode, Resampling, Tap};
pub use rule::{Composed, Form, Rule, Rules, compositions};
pub use signature::Signature;
pub use value::{Name, Operand, Val, as_tensor};
