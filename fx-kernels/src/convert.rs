//! Elements of other types as floats.

use rayon::prelude::*;

use crate::error::{SizeError, check};

/// The elements of a task.
const TASK: usize = 32 << 10;

fn each<T: Copy + Sync>(
    x: &[T],
    out: &mut [f32],
    float: impl Fn(T) -> f32 + Sync,
) -> Result<(), SizeError> {
    check("the result", x.len(), out.len())?;
    let part = |(x, out): (&[T], &mut [f32])| {
        for (out, x) in out.iter_mut().zip(x) {
            *out = float(*x);
        }
    };
    match x.len() < 2 * TASK {
        true => part((x, out)),
        false => x
            .par_chunks(TASK)
            .zip(out.par_chunks_mut(TASK))
            .for_each(part),
    }
    Ok(())
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
