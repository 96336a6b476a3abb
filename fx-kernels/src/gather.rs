//! Places of a dimension, in any order and as often as asked for; tensors with elements around them, and joined ones.

use rayon::prelude::*;

use crate::error::{SizeError, check};

/// The floats of a task.
const TASK: usize = 32 << 10;

/// Runs a closure on each row of `width` floats with its number, on several threads where that is worth it.
fn rows(width: usize, out: &mut [f32], f: impl Fn(usize, &mut [f32]) + Sync) {
    if width == 0 {
        return;
    }
    match out.len() < 2 * TASK {
        true => out
            .chunks_mut(width)
            .enumerate()
            .for_each(|(at, row)| f(at, row)),
        false => out
            .par_chunks_mut(width)
            .with_min_len((TASK / width).max(1))
            .enumerate()
            .for_each(|(at, row)| f(at, row)),
    }
}

/// The middle dimension of `x` `[outer, count, inner]` at these places: `out` is `[outer, places, inner]`.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for, or a place is not there.
///
/// ```
/// use fx_kernels::gather::places;
///
/// let mut out = [0.0; 6];
/// places([2, 2, 1], &[1.0, 2.0, 3.0, 4.0], &[1, 1, 0], &mut out)?;
/// assert_eq!(out, [2.0, 2.0, 1.0, 4.0, 4.0, 3.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn places(
    [outer, count, inner]: [usize; 3],
    x: &[f32],
    places: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the input", outer * count * inner, x.len())?;
    check("the result", outer * places.len() * inner, out.len())?;
    if let Some(most) = places.iter().max() {
        check(
            "a dimension that is chosen from",
            count.max(most + 1),
            count,
        )?;
    }
    if inner == 1 {
        rows(places.len(), out, |row, out| {
            let x = &x[row * count..][..count];
            for (out, place) in out.iter_mut().zip(places) {
                *out = x[*place];
            }
        });
    } else if !places.is_empty() {
        rows(inner, out, |row, out| {
            let (outer, at) = (row / places.len(), row % places.len());
            out.copy_from_slice(&x[(outer * count + places[at]) * inner..][..inner]);
        });
    }
    Ok(())
}

/// `x` of these sizes, with `before` and `after` each dimension as many places of a number: `out` has the larger sizes.
///
/// # Errors
///
/// Where a list or a slice has another length than the sizes ask for.
///
/// ```
/// use fx_kernels::gather::pad;
///
/// let mut out = [0.0; 6];
/// pad(&[1, 2], &[1.0, 2.0], &[1, 0], &[0, 1], 9.0, &mut out)?;
/// assert_eq!(out, [9.0, 9.0, 9.0, 1.0, 2.0, 9.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn pad(
    sizes: &[usize],
    x: &[f32],
    before: &[usize],
    after: &[usize],
    value: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the list of sides", sizes.len(), before.len())?;
    check("the list of sides", sizes.len(), after.len())?;
    let sides = before.iter().zip(after);
    let padded: Vec<usize> = sizes
        .iter()
        .zip(sides)
        .map(|(n, (a, b))| n + a + b)
        .collect();
    check("the input", sizes.iter().product(), x.len())?;
    check("the result", padded.iter().product(), out.len())?;
    let (Some((&width, outer)), Some((&padded_width, padded_outer))) =
        (sizes.split_last(), padded.split_last())
    else {
        out.copy_from_slice(x);
        return Ok(());
    };
    let first = before[outer.len()];
    rows(padded_width, out, |row, out| {
        // The row of the input, if it has one.
        let (mut rest, mut at, mut step) = (row, 0, 1);
        for (dim, size) in outer.iter().enumerate().rev() {
            let place = (rest % padded_outer[dim]).wrapping_sub(before[dim]);
            rest /= padded_outer[dim];
            if place >= *size {
                out.fill(value);
                return;
            }
            at += place * step;
            step *= size;
        }
        out[..first].fill(value);
        out[first..first + width].copy_from_slice(&x[at * width..][..width]);
        out[first + width..].fill(value);
    });
    Ok(())
}

/// Joins parts `[outer, length, inner]` of several lengths: each comes with its `length * inner` floats for each outer
/// place, and `out` has them side by side.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for.
///
/// ```
/// use fx_kernels::gather::join;
///
/// let mut out = [0.0; 6];
/// join(2, &[(&[1.0, 2.0], 1), (&[3.0, 4.0, 5.0, 6.0], 2)], &mut out)?;
/// assert_eq!(out, [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn join(outer: usize, parts: &[(&[f32], usize)], out: &mut [f32]) -> Result<(), SizeError> {
    let total: usize = parts.iter().map(|(_, length)| length).sum();
    check("the result", outer * total, out.len())?;
    for (part, length) in parts {
        check("a part", outer * length, part.len())?;
    }
    let copy = |(to, from): (&mut [f32], &[f32])| match to.len() < 2 * TASK {
        true => to.copy_from_slice(from),
        false => to
            .par_chunks_mut(TASK)
            .zip(from.par_chunks(TASK))
            .for_each(|(to, from)| to.copy_from_slice(from)),
    };
    rows(total, out, |row, out| {
        let mut out = out;
        for (part, length) in parts {
            let (to, rest) = std::mem::take(&mut out).split_at_mut(*length);
            copy((to, &part[row * length..][..*length]));
            out = rest;
        }
    });
    Ok(())
}
