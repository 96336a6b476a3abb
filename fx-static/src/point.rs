//! Functions of one float: those of [`math`] with one lane, and what compares and chooses; and the loop over elements.
//!
//! Invariant: each gives PyTorch's value for every float, NaN and infinities included.

use pulp::{Scalar, Simd};

use crate::Activation;
use crate::math::{self, SINE_LIMIT};

macro_rules! of_math {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(x: f32) -> f32 {
                math::$name(Scalar::new(), x)
            }
        )*
    };
}

of_math! {
    /// `exp(x)`.
    exp;
    /// `exp(x) - 1`, exact near 0.
    exp_minus_one;
    /// `exp(x)` of what is at most 0; below 2^-126 it is 0.
    exp_negative;
    /// The natural logarithm.
    ln;
    /// The error function.
    erf;
    /// `tanh(x)`.
    tanh;
    /// `x - tanh(x)`, exact near 0.
    tanhshrink;
}

/// The square root.
pub fn sqrt(x: f32) -> f32 {
    Scalar::new().sqrt_f32s(x)
}

/// `1 / sqrt(x)`.
pub fn rsqrt(x: f32) -> f32 {
    1.0 / sqrt(x)
}

/// `-x`.
pub fn neg(x: f32) -> f32 {
    -x
}

/// The absolute value.
pub fn abs(x: f32) -> f32 {
    x.abs()
}

/// `1 / x`.
pub fn recip(x: f32) -> f32 {
    1.0 / x
}

/// The sine.
pub fn sin(x: f32) -> f32 {
    match x.abs() <= SINE_LIMIT {
        true => math::sin(Scalar::new(), x, 0),
        false => libm::sinf(x),
    }
}

/// The cosine.
pub fn cos(x: f32) -> f32 {
    match x.abs() <= SINE_LIMIT {
        true => math::sin(Scalar::new(), x, 1),
        false => libm::cosf(x),
    }
}

/// `x^p`, by multiplications where p is a small whole number.
pub fn pow(x: f32, p: f32) -> f32 {
    match p {
        1.0 => x,
        2.0 => x * x,
        3.0 => x * x * x,
        4.0 => (x * x) * (x * x),
        _ => libm::powf(x, p),
    }
}

/// `min(max(x, low), high)`; NaN stays NaN.
pub fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let simd = Scalar::new();
    math::at_most(simd, math::at_least(simd, x, low), high)
}

/// An activation.
pub fn activated(activation: Activation, x: f32) -> f32 {
    math::apply(Scalar::new(), activation, x)
}

/// The smaller; NaN if one is NaN.
pub fn min(a: f32, b: f32) -> f32 {
    if b < a || b.is_nan() { b } else { a }
}

/// The larger; NaN if one is NaN.
pub fn max(a: f32, b: f32) -> f32 {
    if a < b || b.is_nan() { b } else { a }
}

/// 1 where `a < b`, else 0.
pub fn less(a: f32, b: f32) -> f32 {
    f32::from(u8::from(a < b))
}

/// 1 where `a <= b`, else 0.
pub fn less_equal(a: f32, b: f32) -> f32 {
    f32::from(u8::from(a <= b))
}

/// 1 where `a == b`, else 0.
pub fn equal(a: f32, b: f32) -> f32 {
    f32::from(u8::from(a == b))
}

/// 1 where `a != b`, else 0.
pub fn not_equal(a: f32, b: f32) -> f32 {
    f32::from(u8::from(a != b))
}

/// The second where the first is not 0, else the third.
pub fn select(condition: f32, yes: f32, no: f32) -> f32 {
    if condition == 0.0 { no } else { yes }
}

/// Writes a function of the elements of views: it gets what `out` holds there, and an element of each view.
///
/// ```
/// use fx_static::point::each;
///
/// // A row added to what is there.
/// let mut out = [1.0, 2.0, 3.0, 4.0];
/// each([1, 1, 1, 1, 2, 2], [(&[10.0, 20.0], [0, 0, 0, 0, 0, 1])], &mut out, |old, [row]| old + row);
/// assert_eq!(out, [11.0, 22.0, 13.0, 24.0]);
/// ```
#[inline]
pub fn each<const N: usize>(
    dims: [usize; 6],
    views: [(&[f32], [usize; 6]); N],
    out: &mut [f32],
    f: impl Fn(f32, [f32; N]) -> f32,
) {
    let width = dims[5];
    if width == 0 {
        return;
    }
    for (at, row) in out.chunks_exact_mut(width).enumerate() {
        let (mut rest, mut first) = (at, [0; N]);
        for dim in (0..5).rev() {
            let place = rest % dims[dim];
            rest /= dims[dim];
            for (first, (_, strides)) in first.iter_mut().zip(&views) {
                *first += place * strides[dim];
            }
        }
        for (at, out) in row.iter_mut().enumerate() {
            let elements = core::array::from_fn(|i| {
                let (floats, strides) = &views[i];
                floats[first[i] + at * strides[5]]
            });
            *out = f(*out, elements);
        }
    }
}
