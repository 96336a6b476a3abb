//! Copies of views with strides to contiguous memory, square by square where neighbours of the copy
//! are not neighbours of the view.

use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::vector::plain;

/// The floats of a task.
const TASK: usize = 64 << 10;

/// The dimensions of a view without those of size 1, and with neighbours joined that lie in order.
pub(crate) fn collapse(sizes: &[usize], strides: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (mut out_sizes, mut out_strides): (Vec<usize>, Vec<usize>) = Default::default();
    for (&size, &stride) in sizes.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        match (out_sizes.last_mut(), out_strides.last_mut()) {
            (Some(last), Some(outer)) if *outer == stride * size => {
                *last *= size;
                *outer = stride;
            }
            _ => {
                out_sizes.push(size);
                out_strides.push(stride);
            }
        }
    }
    (out_sizes, out_strides)
}

/// The last float that a view reaches, plus one; 0 for an empty view.
pub(crate) fn span(start: usize, sizes: &[usize], strides: &[usize]) -> usize {
    match sizes.contains(&0) {
        true => 0,
        false => {
            start
                + 1
                + sizes
                    .iter()
                    .zip(strides)
                    .map(|(n, s)| (n - 1) * s)
                    .sum::<usize>()
        }
    }
}

/// Turns 16 rows of 16 floats into columns.
#[inline(always)]
pub(crate) fn turn(rows: &[[f32; 16]; 16]) -> [[f32; 16]; 16] {
    // Four exchanges of ever larger halves: what each step does is a plain shuffle of two rows.
    let mut a = *rows;
    macro_rules! exchange {
        ($size:literal) => {
            for i in 0..16 {
                if i & $size == 0 {
                    let (low, high) = (a[i], a[i + $size]);
                    for j in 0..16 {
                        if j & $size == 0 {
                            a[i][j + $size] = high[j];
                            a[i + $size][j] = low[j + $size];
                        }
                    }
                }
            }
        };
    }
    exchange!(8);
    exchange!(4);
    exchange!(2);
    exchange!(1);
    a
}

/// Rows of the last two dimensions: `out[r, c] = x[r * row + c * column]`, columns from `first` on.
#[inline(always)]
fn plane(x: &[f32], row: usize, column: usize, columns: usize, out: &mut [f32]) {
    let rows = out.len() / columns;
    if column == 1 {
        for (r, out) in out.chunks_exact_mut(columns).enumerate() {
            out.copy_from_slice(&x[r * row..][..columns]);
        }
        return;
    }
    if row != 1 {
        for (r, out) in out.chunks_exact_mut(columns).enumerate() {
            for (c, out) in out.iter_mut().enumerate() {
                *out = x[r * row + c * column];
            }
        }
        return;
    }
    for r in (0..rows).step_by(16) {
        for c in (0..columns).step_by(16) {
            let (high, wide) = ((rows - r).min(16), (columns - c).min(16));
            let mut square = [[0.0f32; 16]; 16];
            for (i, line) in square.iter_mut().enumerate().take(wide) {
                let from = &x[r + (c + i) * column..];
                match from.first_chunk::<16>() {
                    Some(from) if high == 16 => *line = *from,
                    _ => line[..high].copy_from_slice(&from[..high]),
                }
            }
            for (i, line) in turn(&square).iter().enumerate().take(high) {
                let to = &mut out[(r + i) * columns + c..];
                match to.first_chunk_mut::<16>() {
                    Some(to) if wide == 16 => *to = *line,
                    _ => to[..wide].copy_from_slice(&line[..wide]),
                }
            }
        }
    }
}

/// Copies a view to contiguous memory: `out[i, j, ..] = x[start + i * strides[0] + j * strides[1] ..]`.
///
/// # Errors
///
/// Where `out` has another length than the sizes ask for, `strides` another number of entries than
/// `sizes`, or the view leaves `x`.
///
/// ```
/// use fx_kernels::{Level, transpose::contiguous};
///
/// let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut out = [0.0; 6];
/// contiguous(Level::best(), &x, 0, &[3, 2], &[1, 3], &mut out)?;
/// assert_eq!(out, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn contiguous(
    level: Level,
    x: &[f32],
    start: usize,
    sizes: &[usize],
    strides: &[usize],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the list of strides", sizes.len(), strides.len())?;
    check("the result", sizes.iter().product(), out.len())?;
    check(
        "the input",
        span(start, sizes, strides).max(x.len()),
        x.len(),
    )?;
    if out.is_empty() {
        return Ok(());
    }
    let (mut sizes, mut strides) = collapse(sizes, strides);
    // Where the last dimension is not in order but an outer one is, that pair is turned.
    while sizes.len() < 2 {
        sizes.insert(0, 1);
        strides.insert(0, 0);
    }
    let [rows, columns] = [sizes[sizes.len() - 2], sizes[sizes.len() - 1]];
    let [row, column] = [strides[strides.len() - 2], strides[strides.len() - 1]];
    let outer: Vec<(usize, usize)> = sizes
        .iter()
        .copied()
        .zip(strides.iter().copied())
        .take(sizes.len() - 2)
        .collect();
    let bands = (TASK / columns / 16 * 16).clamp(16, rows.next_multiple_of(16));
    let run = |(i, band, out): (usize, usize, &mut [f32])| {
        let mut at = start + band * bands * row;
        let mut rest = i;
        for (size, stride) in outer.iter().rev() {
            at += rest % size * stride;
            rest /= size;
        }
        plane(&x[at..], row, column, columns, out);
    };
    let planes = |(first, out): (usize, &mut [f32])| {
        for (i, out) in out.chunks_mut(rows * columns).enumerate() {
            for (band, out) in out.chunks_mut(bands * columns).enumerate() {
                plain(level, || run((first + i, band, out)));
            }
        }
    };
    if out.len() < 2 * TASK {
        planes((0, out));
    } else if rows * columns > TASK {
        out.par_chunks_mut(rows * columns)
            .enumerate()
            .for_each(|(i, out)| {
                out.par_chunks_mut(bands * columns)
                    .enumerate()
                    .for_each(|(band, out)| {
                        plain(level, || run((i, band, out)));
                    });
            });
    } else {
        let together = TASK.div_ceil(rows * columns);
        out.par_chunks_mut(together * rows * columns)
            .enumerate()
            .for_each(|(i, out)| planes((i * together, out)));
    }
    Ok(())
}
