//! `Engine`: many texts written at once by one model, each as if it were alone.
//!
//! Invariants: a request that cannot be served is refused before it reaches the model, so that it ends no other one; a text
//! is the same whatever is written beside it; what a stream that is dropped holds is freed.

mod handle;
mod model;
mod options;
mod request;
mod run;
mod sampling;
mod text;

pub use handle::Engine;
pub use model::Model;
pub use options::{BLOCK, EngineOptions, EngineStats};
pub use request::{
    Canceller, End, FinishReason, GenerationOptions, Processor, Stream, SubmitError, Token,
};
