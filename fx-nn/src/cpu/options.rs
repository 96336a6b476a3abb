//! What the compiler for the CPU is asked for, and who learns of its progress.
//!
//! Invariant: options are those of one compilation; they do not change while it runs.

use std::fmt;
use std::sync::Arc;

use fx_core::value::DType;
use fx_kernels::Level;
use fx_kernels::matrix::WeightKind;

#[derive(Clone)]
pub(super) struct Options {
    pub level: Level,
    pub winograd: bool,
    /// How the weights of linear layers are stored; `None` as they are.
    pub weights: Option<WeightKind>,
    /// What products multiply; `None` the type of the weight.
    pub precision: Option<Precision>,
    pub progress: Option<Arc<OnProgress>>,
}

/// What products and convolutions multiply. Sums are in `f32` always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// Numbers of 32 bits.
    F32,
    /// Numbers of 16 bits with the exponent of an `f32`, as [`DType::BF16`] has them.
    Bf16,
}

impl Options {
    /// Whether products with a weight of this type are in `bf16`.
    pub fn is_bf16(&self, weight: DType) -> bool {
        match self.precision {
            Some(precision) => precision == Precision::Bf16,
            None => weight == DType::BF16,
        }
    }
}

/// Called before each step is made, and once all are.
pub(super) type OnProgress = dyn Fn(Progress<'_>) + Send + Sync;

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("level", &self.level)
            .field("winograd", &self.winograd)
            .field("weights", &self.weights)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

/// The progress of a compilation.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The first node of the next step; empty once all steps of a part are made.
    pub node: &'a str,
    /// The steps of the part that are made.
    pub done: usize,
    /// All steps of the part.
    pub total: usize,
}
