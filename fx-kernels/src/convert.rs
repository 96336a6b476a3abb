//! Elements of other types as floats, and floats as elements of 16 bits.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

use crate::error::{SizeError, check};

/// The elements of a task.
const TASK: usize = 32 << 10;

/// A type of floating-point numbers in 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// 5 bits of exponent, 10 of fraction: [`struct@f16`].
    F16,
    /// The upper half of an `f32`: [`bf16`].
    Bf16,
}

impl Half {
    /// The nearest number of the type, ties to even; NaN stays NaN.
    ///
    /// ```
    /// use fx_kernels::convert::Half;
    /// assert_eq!(Half::Bf16.rounded(1.003), 1.0);
    /// assert_eq!(Half::F16.rounded(70000.0), f32::INFINITY);
    /// ```
    pub fn rounded(self, x: f32) -> f32 {
        match self {
            Half::F16 => f16::from_f32(x).to_f32(),
            Half::Bf16 => bf16::from_f32(x).to_f32(),
        }
    }
}

/// A type of floating-point numbers that kernels read as `f32`: `f32` itself, [`struct@f16`] and [`bf16`].
pub trait Element: Copy + Send + Sync + 'static {
    /// Writes elements as floats, and floats as the nearest elements.
    ///
    /// ```
    /// use fx_kernels::convert::Element;
    /// use half::bf16;
    /// let mut narrow = [bf16::ZERO; 2];
    /// bf16::narrow(&[1.0, -0.5], &mut narrow);
    /// let mut wide = [0.0; 2];
    /// bf16::widen(&narrow, &mut wide);
    /// assert_eq!(wide, [1.0, -0.5]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where the slices have different lengths.
    fn widen(x: &[Self], out: &mut [f32]);

    /// The nearest elements of floats, ties to even: the other way of [`widen`](Element::widen).
    ///
    /// # Panics
    ///
    /// Where the slices have different lengths.
    fn narrow(x: &[f32], out: &mut [Self]);

    /// One element as a float.
    fn to_f32(self) -> f32;

    /// The elements themselves, if they are `f32`.
    fn as_floats(_: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Element for f32 {
    fn widen(x: &[f32], out: &mut [f32]) {
        out.copy_from_slice(x);
    }

    fn narrow(x: &[f32], out: &mut [f32]) {
        out.copy_from_slice(x);
    }

    fn to_f32(self) -> f32 {
        self
    }

    fn as_floats(x: &[f32]) -> Option<&[f32]> {
        Some(x)
    }
}

impl Element for f16 {
    // Without branches, so that it becomes vectors of the kernel's level.
    #[inline(always)]
    fn widen(x: &[f16], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "the slices have one length");
        for (out, x) in out.iter_mut().zip(x) {
            let bits = u32::from(x.to_bits());
            let (sign, size) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
            // The exponent counts from 15, and from 127 in an f32: the product is exact, also of what is below the smallest
            // normal number. Infinities and NaN have the largest exponent.
            let scaled = f32::from_bits(size) * f32::from_bits((127 + 127 - 15) << 23);
            let size = if size < 0x0f80_0000 {
                scaled.to_bits()
            } else {
                size | 0x7f80_0000
            };
            *out = f32::from_bits(size | sign);
        }
    }

    fn narrow(x: &[f32], out: &mut [f16]) {
        out.convert_from_f32_slice(x);
    }

    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
}

impl Element for bf16 {
    // A shift alone, so that it becomes vectors of the kernel's level: the library's also tells kinds of NaN apart.
    #[inline(always)]
    fn widen(x: &[bf16], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "the slices have one length");
        for (out, x) in out.iter_mut().zip(x) {
            *out = f32::from_bits(u32::from(x.to_bits()) << 16);
        }
    }

    fn narrow(x: &[f32], out: &mut [bf16]) {
        out.convert_from_f32_slice(x);
    }

    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
}

/// Runs a conversion by parts, in parallel where there are many.
fn by_parts<A: Sync, B: Send>(
    x: &[A],
    out: &mut [B],
    convert: impl Fn(&[A], &mut [B]) + Sync,
) -> Result<(), SizeError> {
    check("the result", x.len(), out.len())?;
    match x.len() < 2 * TASK {
        true => convert(x, out),
        false => x
            .par_chunks(TASK)
            .zip(out.par_chunks_mut(TASK))
            .for_each(|(x, out)| convert(x, out)),
    }
    Ok(())
}

/// Elements as floats.
///
/// # Errors
///
/// Where the slices have different lengths.
pub fn widen<T: Element>(x: &[T], out: &mut [f32]) -> Result<(), SizeError> {
    by_parts(x, out, T::widen)
}

/// Floats as the nearest elements, ties to even.
///
/// # Errors
///
/// Where the slices have different lengths.
pub fn narrow<T: Element>(x: &[f32], out: &mut [T]) -> Result<(), SizeError> {
    by_parts(x, out, T::narrow)
}

fn each<T: Copy + Sync>(
    x: &[T],
    out: &mut [f32],
    float: impl Fn(T) -> f32 + Sync,
) -> Result<(), SizeError> {
    by_parts(x, out, |x, out| {
        for (out, x) in out.iter_mut().zip(x) {
            *out = float(*x);
        }
    })
}

macro_rules! from {
    ($($(#[$doc:meta])* $name:ident $type:ty, $float:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// Where the slices have different lengths.
            pub fn $name(x: &[$type], out: &mut [f32]) -> Result<(), SizeError> {
                each(x, out, $float)
            }
        )*
    };
}

from! {
    /// Bytes, and truth values as 0 and 1.
    from_u8 u8, f32::from;
    /// Whole numbers from 0 of 32 bits.
    from_u32 u32, |x| x as f32;
    /// Whole numbers of 16 bits.
    from_i16 i16, f32::from;
    /// Whole numbers of 32 bits.
    from_i32 i32, |x| x as f32;
    /// Whole numbers of 64 bits.
    from_i64 i64, |x| x as f32;
}
