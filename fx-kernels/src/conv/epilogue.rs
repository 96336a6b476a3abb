//! What happens to sums before they are stored: clamps in registers, other activations on rows that are still in the
//! cache. NaN passes through all of them.

use pulp::Simd;

use crate::math::apply_all;
use crate::{Activation, Block};

/// What a convolution does with its sums before it stores them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ConvFinish {
    /// Adds what the result holds before: a residual that is there already.
    pub adds: bool,
    /// Applied last.
    pub activation: Activation,
}

impl From<Activation> for ConvFinish {
    fn from(activation: Activation) -> ConvFinish {
        ConvFinish {
            adds: false,
            activation,
        }
    }
}

/// The bounds of an activation that is a clamp; infinite where there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clamp {
    pub low: f32,
    pub high: f32,
}

/// A finish as a kernel applies it: a sum and a clamp in registers, and what is left for the stored row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epilogue {
    /// Whether what is there is added first.
    pub adds: bool,
    pub clamp: Clamp,
    /// Applied to the row after it is stored.
    pub rest: Option<Activation>,
}

impl Epilogue {
    pub(crate) fn new(finish: ConvFinish) -> Epilogue {
        let (low, high, rest) = match finish.activation {
            Activation::None => (f32::NEG_INFINITY, f32::INFINITY, None),
            Activation::Relu => (0.0, f32::INFINITY, None),
            Activation::Relu6 => (0.0, 6.0, None),
            other => (f32::NEG_INFINITY, f32::INFINITY, Some(other)),
        };
        Epilogue {
            adds: finish.adds,
            clamp: Clamp { low, high },
            rest,
        }
    }

    /// Applies what is left to blocks that a kernel has stored.
    #[inline(always)]
    pub(crate) fn finish<S: Simd>(&self, simd: S, blocks: &mut [Block]) {
        if let Some(activation) = self.rest {
            apply_all(simd, activation, blocks.as_flattened_mut());
        }
    }
}

/// The value between the bounds; NaN where it is NaN.
#[inline(always)]
pub(crate) fn clamp<S: Simd>(simd: S, x: S::f32s, low: S::f32s, high: S::f32s) -> S::f32s {
    if S::IS_SCALAR {
        let x = simd.select_f32s(simd.less_than_f32s(x, low), low, x);
        simd.select_f32s(simd.less_than_f32s(high, x), high, x)
    } else {
        // On x86 the second operand is the result where one is NaN; on ARM NaN is.
        simd.min_f32s(high, simd.max_f32s(low, x))
    }
}
