//! Tracing: proxies stand in for inputs, and one dispatch point records what is done to them.
//!
//! What a trace records is decided by a [`Tracer`]; a [`Mode`] sees every call, traced or not.
//!
//! ```
//! use fx_core::prelude::*;
//! let gm = Trace::new(traced!(|x: Float, twice: bool| if twice { x * 2.0 } else { Ok(x) }))
//!     .concrete("twice", true)
//!     .graph_module()?;
//! assert_eq!(gm.forward::<f64>((3.0, true))?, 6.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which conversion trait is for what
//!
//! | trait | question that it answers | implemented by |
//! |---|---|---|
//! | [`IntoValue`](crate::value::IntoValue) | can it be stored in a [`Value`](crate::value::Value)? | everything that goes into a call or comes out of one |
//! | [`Arg`](crate::value::Arg) | is it one argument, not a list of arguments? | all types with `IntoValue` except tuples |
//! | [`IntoArgs`] | can it be the arguments of `forward` or `call`? | one argument, a tuple of them, [`args!`](crate::args) |
//! | [`FromValue`] | can a result be read as this type? | results of `forward` and of recorded calls |
//! | [`Param`](crate::tensor::Param) | can it be a parameter of a wrapped function or a `forward`? | numbers, tensors, structures; a tensor library adds its own |
//! | [`IntoArguments`](crate::ir::IntoArguments), [`IntoKwargs`](crate::ir::IntoKwargs) | can it be the arguments of a node? | tuples and lists of nodes and literals |
//! | [`Operand`](crate::tensor::Operand) | can it stand beside a traced value at an operator? | tensors and numbers |
//! | [`FromData`](crate::tensor::FromData) | can it be made from a saved tensor's bytes? | tensor types |

mod annotation;
pub(crate) mod appending;
pub(crate) mod ask;
pub(crate) mod assertion;
pub(crate) mod blame;
pub(crate) mod call_args;
#[doc(hidden)]
pub mod compare;
pub(crate) mod concrete;
pub(crate) mod context;
pub(crate) mod convert;
mod cut;
mod defaults;
pub(crate) mod dispatch;
pub(crate) mod foreign;
pub(crate) mod forward;
mod inferring;
pub(crate) mod infers;
pub(crate) mod list;
pub(crate) mod mode;
pub(crate) mod open_side;
pub(crate) mod operand;
mod placed;
mod proxy;
#[doc(hidden)]
pub mod range;
pub(crate) mod report;
pub(crate) mod returns;
pub(crate) mod root;
mod root_index;
pub(crate) mod scalar;
pub(crate) mod scope;
pub(crate) mod side;
mod tensor_type;
pub(crate) mod tracer;
mod unpack;

pub use self::annotation::annotate;
pub use self::appending::GraphAppendingTracer;
pub use self::ask::TracedExt;
pub use self::call_args::{CallArgs, IntoArgs};
pub use self::concrete::{PH, Placeholder};
pub use self::context::TraceContext;
pub use self::convert::FromValue;
pub use self::dispatch::{call_method, retracing};
pub use self::forward::Forward;
pub use self::list::List;
pub use self::mode::{Mode, ModeCall, ModeCallee, Next, with_mode};
pub use self::placed::placed;
pub use self::report::{Frozen, Report, ReportEntry};
pub use self::root::{Outcome, Recorder, Root, Rooted, Trace, TracedFn};
pub use self::scope::{is_recording, is_tracing, with_context};
pub use self::tracer::{NoLeaves, SymbolicTracer, Tracer};

// What the compiler's messages name, so that they do so by a path of the public modules.
#[doc(hidden)]
pub use self::{
    assertion::{Assertable, claim},
    compare::{Condition, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, condition},
    convert::{Output, TreeField},
    range::RangeBound,
    returns::Returns,
};
