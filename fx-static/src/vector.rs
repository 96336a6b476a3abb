//! Loads and stores of one vector at a place of a slice.

use pulp::Simd;

/// A call whose last argument is a closure that is compiled into the function, as what works on vectors
/// has to be: on its own it would be compiled without the instructions of the level.
#[doc(hidden)]
#[macro_export]
macro_rules! inlined {
    ($f:ident($($arg:expr),*; |$($x:ident),*| $body:expr)) => {
        $f($($arg,)* #[inline(always)] |$($x),*| $body)
    };
}
#[doc(hidden)]
pub use inlined;

/// The vector at `at`.
#[inline(always)]
pub fn load<S: Simd>(_: S, floats: &[f32], at: usize) -> S::f32s {
    S::as_simd_f32s(&floats[at..at + S::F32_LANES]).0[0]
}

/// Writes a vector at `at`.
#[inline(always)]
pub fn store<S: Simd>(_: S, floats: &mut [f32], at: usize, value: S::f32s) {
    S::as_mut_simd_f32s(&mut floats[at..at + S::F32_LANES]).0[0] = value;
}

/// The first floats of a slice; zeros behind its end.
#[inline(always)]
pub fn load_some<S: Simd>(simd: S, floats: &[f32]) -> S::f32s {
    match S::as_simd_f32s(floats) {
        ([first, ..], _) => *first,
        ([], rest) => simd.partial_load_f32s(rest),
    }
}

/// Writes as many floats of a vector as the slice has room for.
#[inline(always)]
pub fn store_some<S: Simd>(simd: S, floats: &mut [f32], value: S::f32s) {
    match S::as_mut_simd_f32s(floats) {
        ([first, ..], _) => *first = value,
        ([], rest) => simd.partial_store_f32s(rest, value),
    }
}

/// The sum of the products of two rows of one length, in an order that does not depend on the level.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
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
