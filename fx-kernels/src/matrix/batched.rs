//! Batches of products of two matrices with strides.

use rayon::prelude::*;

use super::finish::{Ending, Finish};
use super::panels::Strided;
use super::product::{Product, SERIAL};
use crate::error::{SizeError, check};
use crate::terms::Floats;
use crate::transpose::span;
use crate::{Activation, Level};

/// A batch of matrices inside of a slice: transposed, permuted and broadcast views are read where
/// they are.
#[derive(Debug, Clone, Copy)]
pub struct Matrices<'a> {
    /// The floats.
    pub data: &'a [f32],
    /// Where the first matrix starts.
    pub start: usize,
    /// The floats from a matrix to the next, for each dimension of the batch; 0 where the same matrix
    /// is used again.
    pub batch: &'a [usize],
    /// The floats from a row to the next.
    pub row: usize,
    /// The floats from a column to the next.
    pub column: usize,
}

impl<'a> Matrices<'a> {
    /// Matrix i of the batch.
    fn at(&self, i: usize, batch: &[usize], columns: usize) -> Strided<'a> {
        let (mut start, mut rest) = (self.start, i);
        for (size, stride) in batch.iter().zip(self.batch).rev() {
            start += rest % size * stride;
            rest /= size;
        }
        Strided {
            data: self.data,
            start,
            row: self.row,
            column: self.column,
            columns,
        }
    }
}

/// The sizes of [`matmul`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes<'a> {
    /// The dimensions of the batch; none for a single product.
    pub batch: &'a [usize],
    /// The rows of the left operand and of the result.
    pub rows: usize,
    /// The columns of the left operand and the rows of the right one.
    pub depth: usize,
    /// The columns of the right operand and of the result.
    pub columns: usize,
}

fn check_operand(
    what: &'static str,
    x: &Matrices<'_>,
    batch: &[usize],
    rows: usize,
    columns: usize,
) -> Result<(), SizeError> {
    check("the list of strides", batch.len(), x.batch.len())?;
    let sizes = [batch, &[rows, columns]].concat();
    let strides = [x.batch, &[x.row, x.column]].concat();
    check(
        what,
        span(x.start, &sizes, &strides).max(x.data.len()),
        x.data.len(),
    )
}

/// `factor * a * b` for each of a batch of matrices `[rows, depth]` and `[depth, columns]`, then what
/// `finish` says. `out` is `[batch.., rows, columns]`; the bias has a float for each column.
///
/// # Errors
///
/// Where an operand leaves its slice or another slice has another length than the sizes ask for.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};
///
/// // x times its transpose.
/// let x = [1.0, 2.0, 3.0, 4.0];
/// let a = Matrices { data: &x, start: 0, batch: &[], row: 2, column: 1 };
/// let b = Matrices { row: 1, column: 2, ..a };
/// let sizes = Sizes { batch: &[], rows: 2, depth: 2, columns: 2 };
/// let mut out = [0.0; 4];
/// matmul(Level::best(), sizes, a, b, 1.0, Finish::default(), &mut out)?;
/// assert_eq!(out, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn matmul(
    level: Level,
    sizes: Sizes<'_>,
    a: Matrices<'_>,
    b: Matrices<'_>,
    factor: f32,
    finish: Finish<'_>,
    out: &mut [f32],
) -> Result<(), SizeError> {
    let Sizes {
        batch,
        rows,
        depth,
        columns,
    } = sizes;
    let count: usize = batch.iter().product();
    check("the result", count * rows * columns, out.len())?;
    check_operand("the left operand", &a, batch, rows, depth)?;
    check_operand("the right operand", &b, batch, depth, columns)?;
    finish.check(columns, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let one = |(i, out): (usize, &mut [f32])| {
        let residual = finish
            .residual
            .map(|r| &r[i * rows * columns..][..rows * columns]);
        let ending = Ending {
            finish: Finish { residual, ..finish },
            scales: None,
            factor: (factor != 1.0).then_some(factor),
        };
        let (left, right) = (a.at(i, batch, depth), &b.at(i, batch, columns));
        let Finish {
            bias, activation, ..
        } = finish;
        let is_plain = bias.is_none() && residual.is_none() && activation == Activation::None;
        if depth == 1 && right.column == 1 && factor == 1.0 && is_plain {
            return crate::vector::plain(level, || outer(left, right, out));
        }
        Product {
            terms: Floats,
            rows,
            columns,
            depth,
            left,
            right,
            ending,
        }
        .run(level, out);
    };
    let each = rows * columns;
    let together = (SERIAL / (each * depth).max(1)).clamp(1, count);
    out.par_chunks_mut(each)
        .enumerate()
        .with_min_len(together)
        .for_each(one);
    Ok(())
}

/// The products of the floats of a column with those of a row.
#[inline(always)]
fn outer(left: Strided<'_>, right: &Strided<'_>, out: &mut [f32]) {
    let row = &right.data[right.start..][..right.columns];
    for (i, out) in out.chunks_exact_mut(right.columns).enumerate() {
        let x = left.data[left.start + i * left.row];
        for (out, y) in out.iter_mut().zip(row) {
            *out = x * y;
        }
    }
}
