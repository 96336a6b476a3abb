//! Elements and rows at indices: taken, and added to what is there.
//!
//! Invariant: an element is changed by one thread, in the order of the indices, so that any number of threads gives the
//! same bits.

use rayon::prelude::*;

use crate::error::{SizeError, check};

/// The floats of a task.
const TASK: usize = 32 << 10;

fn each_is_below(what: &'static str, indices: &[usize], count: usize) -> Result<(), SizeError> {
    match indices.iter().max() {
        Some(most) if *most >= count => check(what, most + 1, count),
        _ => Ok(()),
    }
}

/// Adds rows of `size` floats to the rows of `out` at these indices.
///
/// ```
/// use fx_kernels::scatter::add_rows;
/// let mut out = [0.0; 4];
/// add_rows(2, &[1.0, 2.0, 3.0, 4.0], &[1, 1], &mut out)?;
/// assert_eq!(out, [0.0, 0.0, 4.0, 6.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Where a slice has another length than the sizes ask for, or a row is not there.
pub fn add_rows(
    size: usize,
    source: &[f32],
    indices: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check(
        "the rows that are added",
        indices.len() * size,
        source.len(),
    )?;
    if size == 0 || indices.is_empty() {
        return Ok(());
    }
    each_is_below("rows that are added to", indices, out.len() / size)?;
    // By row of the result: each with what is added to it, in order.
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_by_key(|at| indices[*at]);
    let mut rows: Vec<(&mut [f32], &[usize])> = Vec::new();
    let (mut rest, mut done) = (out, 0);
    for group in order.chunk_by(|a, b| indices[*a] == indices[*b]) {
        let row = indices[group[0]];
        let (_, from) = rest.split_at_mut((row - done) * size);
        let (own, behind) = from.split_at_mut(size);
        rows.push((own, group));
        (rest, done) = (behind, row + 1);
    }
    let add = |(row, group): (&mut [f32], &[usize])| {
        for at in group {
            for (sum, x) in row.iter_mut().zip(&source[at * size..][..size]) {
                *sum += x;
            }
        }
    };
    match source.len() < 2 * TASK {
        true => rows.into_iter().for_each(add),
        false => rows.into_par_iter().for_each(add),
    }
    Ok(())
}

/// The elements of `x` `[outer, count, inner]` at indices `[outer, taken, inner]` of its middle dimension.
///
/// ```
/// use fx_kernels::scatter::take_along;
/// let mut out = [0.0; 2];
/// take_along([2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0], &[1, 0], &mut out)?;
/// assert_eq!(out, [2.0, 3.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Where a slice has another length than the sizes ask for, or a place is not there.
pub fn take_along(
    [outer, count, taken, inner]: [usize; 4],
    x: &[f32],
    indices: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the input", outer * count * inner, x.len())?;
    check("the indices", outer * taken * inner, indices.len())?;
    check("the result", indices.len(), out.len())?;
    each_is_below("a dimension that is taken from", indices, count)?;
    let part = taken * inner;
    if part == 0 {
        return Ok(());
    }
    let take = |(outer, (out, indices)): (usize, (&mut [f32], &[usize]))| {
        let x = &x[outer * count * inner..][..count * inner];
        for (at, (out, index)) in out.iter_mut().zip(indices).enumerate() {
            *out = x[index * inner + at % inner];
        }
    };
    match out.len() < 2 * TASK {
        true => out
            .chunks_mut(part)
            .zip(indices.chunks(part))
            .enumerate()
            .for_each(take),
        false => out
            .par_chunks_mut(part)
            .zip(indices.par_chunks(part))
            .enumerate()
            .for_each(take),
    }
    Ok(())
}

/// Adds elements `[outer, taken, inner]` to those of `out` `[outer, count, inner]` at indices of its middle dimension.
///
/// # Errors
/// Where a slice has another length than the sizes ask for, or a place is not there.
pub fn add_along(
    [outer, count, taken, inner]: [usize; 4],
    source: &[f32],
    indices: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the result", outer * count * inner, out.len())?;
    check("the indices", outer * taken * inner, indices.len())?;
    check("what is added", indices.len(), source.len())?;
    each_is_below("a dimension that is added to", indices, count)?;
    let (part, whole) = (taken * inner, count * inner);
    if part == 0 || whole == 0 {
        return Ok(());
    }
    let add = |((out, source), indices): ((&mut [f32], &[f32]), &[usize])| {
        for (at, (x, index)) in source.iter().zip(indices).enumerate() {
            out[index * inner + at % inner] += x;
        }
    };
    match source.len() < 2 * TASK {
        true => out
            .chunks_mut(whole)
            .zip(source.chunks(part))
            .zip(indices.chunks(part))
            .for_each(add),
        false => out
            .par_chunks_mut(whole)
            .zip(source.par_chunks(part))
            .zip(indices.par_chunks(part))
            .for_each(add),
    }
    Ok(())
}
