//! Rows of a table, picked by number.

use rayon::prelude::*;

use crate::convert::Element;
use crate::error::{SizeError, check};

/// The floats of a task.
const TASK: usize = 64 << 10;

/// Writes row `indices[i]` of `table`, rows of `size` elements, as row i of `out`.
///
/// # Errors
///
/// Where `table` is not a number of whole rows, `out` has another length than the indices ask for, or
/// an index is behind the end of the table.
///
/// ```
/// use fx_kernels::embedding::gather;
///
/// let mut out = [0.0; 4];
/// gather(2, &[1.0f32, 2.0, 3.0, 4.0], &[1, 0], &mut out)?;
/// assert_eq!(out, [3.0, 4.0, 1.0, 2.0]);
/// assert!(gather(2, &[1.0f32, 2.0], &[1], &mut out[..2]).is_err());
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn gather<T: Element>(
    size: usize,
    table: &[T],
    indices: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    let rows = table.len().checked_div(size).unwrap_or(usize::MAX);
    if size > 0 {
        check("the table", rows * size, table.len())?;
    }
    check("the result", indices.len() * size, out.len())?;
    if let Some(bad) = indices.iter().find(|i| **i >= rows) {
        check(
            "the table",
            bad.saturating_add(1).saturating_mul(size),
            table.len(),
        )?;
    }
    if size == 0 {
        return Ok(());
    }
    let copy = |(indices, out): (&[usize], &mut [f32])| {
        for (i, out) in indices.iter().zip(out.chunks_exact_mut(size)) {
            T::widen(&table[i * size..(i + 1) * size], out);
        }
    };
    let rows = TASK.div_ceil(size);
    match out.len() < 2 * TASK {
        true => copy((indices, out)),
        false => indices
            .par_chunks(rows)
            .zip(out.par_chunks_mut(rows * size))
            .for_each(copy),
    }
    Ok(())
}
