//! Loads and stores of one vector at a place of a slice.

use pulp::{Simd, WithSimd};

use crate::Level;

/// A call whose last argument is a closure that is compiled into the function, as what works on vectors
/// has to be: on its own it would be compiled without the instructions of the level.
macro_rules! inlined {
    ($f:ident($($arg:expr),*; |$($x:ident),*| $body:expr)) => {
        $f($($arg,)* #[inline(always)] |$($x),*| $body)
    };
}
pub(crate) use inlined;

/// Runs a part of a kernel with a frame of its own on the stack. Without optimisation a function has room for every variable
/// of all that is compiled into it: what chooses among many tiles would need megabytes.
#[inline(always)]
pub(crate) fn framed<S: Simd>(simd: S, part: impl FnOnce()) {
    simd.vectorize(part);
}

/// Calls a method with the number of vectors in a block of channels as its constant. What other lanes need is not compiled:
/// `if const` is decided for each level.
macro_rules! by_block {
    ($kernel:ident.$method:ident::<$S:ident>($simd:expr)) => {
        if const { $S::F32_LANES == 16 } {
            $kernel.$method::<$S, 1>($simd)
        } else if const { $S::F32_LANES == 8 } {
            $kernel.$method::<$S, 2>($simd)
        } else if const { $S::F32_LANES == 4 } {
            $kernel.$method::<$S, 4>($simd)
        } else {
            $kernel.$method::<$S, 16>($simd)
        }
    };
}
pub(crate) use by_block;

/// The vector at `at`.
#[inline(always)]
pub(crate) fn load<S: Simd>(_: S, floats: &[f32], at: usize) -> S::f32s {
    S::as_simd_f32s(&floats[at..at + S::F32_LANES]).0[0]
}

/// Writes a vector at `at`.
#[inline(always)]
pub(crate) fn store<S: Simd>(_: S, floats: &mut [f32], at: usize, value: S::f32s) {
    S::as_mut_simd_f32s(&mut floats[at..at + S::F32_LANES]).0[0] = value;
}

/// The first floats of a slice; zeros behind its end.
#[inline(always)]
pub(crate) fn load_some<S: Simd>(simd: S, floats: &[f32]) -> S::f32s {
    match S::as_simd_f32s(floats) {
        ([first, ..], _) => *first,
        ([], rest) => simd.partial_load_f32s(rest),
    }
}

/// Writes as many floats of a vector as the slice has room for.
#[inline(always)]
pub(crate) fn store_some<S: Simd>(simd: S, floats: &mut [f32], value: S::f32s) {
    match S::as_mut_simd_f32s(floats) {
        ([first, ..], _) => *first = value,
        ([], rest) => simd.partial_store_f32s(rest, value),
    }
}

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

/// The sum of the products of two rows of one length, in an order that does not depend on the level.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let (mut sums, mut rest) = ([0.0f32; LANES], 0.0);
    let (a_parts, a_rest) = a.as_chunks::<LANES>();
    let (b_parts, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_parts.iter().zip(b_parts) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        rest += a * b;
    }
    sums.iter().sum::<f32>() + rest
}
