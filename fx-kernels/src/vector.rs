//! How kernels are compiled for a level, beside the loads and stores of `fx-static`.

use pulp::{Simd, WithSimd};

pub(crate) use fx_static::vector::*;

use crate::Level;

/// Runs a part of a kernel with a frame of its own on the stack. Without optimisation a function has room for every variable
/// of all that is compiled into it: what chooses among many tiles would need megabytes.
#[inline(always)]
pub(crate) fn framed<S: Simd>(simd: S, part: impl FnOnce()) {
    simd.vectorize(part);
}

/// Calls a method with the number of vectors in a block of channels as its constant. What other lanes need is not compiled:
/// `if const` is decided for each level.
macro_rules! by_block {
    ($kernel:ident.$method:ident::<$S:ident $(, $T:ident)?>($simd:expr)) => {
        if const { $S::F32_LANES == 16 } {
            $kernel.$method::<$S, $($T,)? 1>($simd)
        } else if const { $S::F32_LANES == 8 } {
            $kernel.$method::<$S, $($T,)? 2>($simd)
        } else if const { $S::F32_LANES == 4 } {
            $kernel.$method::<$S, $($T,)? 4>($simd)
        } else {
            $kernel.$method::<$S, $($T,)? 16>($simd)
        }
    };
}
pub(crate) use by_block;

/// A closure compiled for a level: its plain loops become vectors of that level.
struct Plain<F>(F);

impl<R, F: FnOnce() -> R> WithSimd for Plain<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> R {
        (self.0)()
    }
}

/// Runs plain loops with the instructions of a level.
#[inline(always)]
pub(crate) fn plain<R>(level: Level, f: impl FnOnce() -> R) -> R {
    level.run(Plain(f))
}
