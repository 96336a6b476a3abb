//! Sums and largest and smallest floats over one dimension of three.

pub use fx_static::reduce::Reduction;
use fx_static::reduce::{Job, WIDE};
use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};

/// The floats of a task.
const TASK: usize = 32 << 10;

/// Reduces the middle dimension of `x` `[outer, count, inner]`: `out` is `[outer, inner]`.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::reduce::{Reduction, reduce};
///
/// let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut out = [0.0; 2];
/// reduce(Level::best(), Reduction::Sum, [1, 3, 2], &x, &mut out)?;
/// assert_eq!(out, [9.0, 12.0]);
/// reduce(Level::best(), Reduction::Max, [2, 3, 1], &x, &mut out)?;
/// assert_eq!(out, [3.0, 6.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn reduce(
    level: Level,
    how: Reduction,
    [outer, count, inner]: [usize; 3],
    x: &[f32],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the input", outer * count * inner, x.len())?;
    check("the result", outer * inner, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    if count == 0 {
        out.fill(match how {
            Reduction::Mean => f32::NAN,
            _ => how.start(),
        });
        return Ok(());
    }
    let is_short = x.len() < 2 * TASK;
    if inner == 1 {
        let rows = (TASK / count).max(1);
        let run = |(x, out): (&[f32], &mut [f32])| {
            level.run(Job {
                how,
                x,
                count,
                inner,
                out,
            });
        };
        match is_short {
            true => run((x, out)),
            false => x
                .par_chunks(rows * count)
                .zip(out.par_chunks_mut(rows))
                .for_each(run),
        }
        return Ok(());
    }
    let strips = |(x, out): (&[f32], &mut [f32])| {
        let run = |(at, out): (usize, &mut [f32])| {
            level.run(Job {
                how,
                x: &x[at * WIDE..],
                count,
                inner,
                out,
            });
        };
        match count * inner < 2 * TASK {
            true => out.chunks_mut(WIDE).enumerate().for_each(run),
            false => out.par_chunks_mut(WIDE).enumerate().for_each(run),
        }
    };
    let pairs = (x.chunks(count * inner), out.chunks_mut(inner));
    match is_short {
        true => pairs.0.zip(pairs.1).for_each(strips),
        false => x
            .par_chunks(count * inner)
            .zip(out.par_chunks_mut(inner))
            .with_min_len((TASK / (count * inner)).max(1))
            .for_each(strips),
    }
    Ok(())
}
