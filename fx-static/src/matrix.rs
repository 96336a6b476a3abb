//! Products: linear layers on weights as they are, and products of matrices.

use crate::Activation;
use crate::kernel::{Kernel, next, next_if};
use crate::point::activated;
use crate::source::source;

/// The products that are summed before the sum is added to the others, so that it stays exact.
const TOGETHER: usize = 64;

/// The sums of the products of `R` rows of one matrix with `C` columns of another, over `depth` places: the floats of both
/// start at a place for each row and column, and their strides follow.
#[inline(always)]
fn sums<const R: usize, const C: usize>(
    depth: usize,
    (a, a_first, a_stride): (&[f32], [usize; R], usize),
    (b, b_first, b_stride): (&[f32], [usize; C], usize),
) -> [[f32; C]; R] {
    let mut all = [[0.0; C]; R];
    for start in (0..depth).step_by(TOGETHER) {
        let mut part = [[0.0; C]; R];
        for at in start..depth.min(start + TOGETHER) {
            let row: [f32; R] = a_first.map(|first| a[first + at * a_stride]);
            let column: [f32; C] = b_first.map(|first| b[first + at * b_stride]);
            for (sums, a) in part.iter_mut().zip(row) {
                for (sum, b) in sums.iter_mut().zip(column) {
                    *sum += a * b;
                }
            }
        }
        for (all, part) in all.iter_mut().zip(part) {
            for (all, part) in all.iter_mut().zip(part) {
                *all += part;
            }
        }
    }
    all
}

/// Calls a function with the sums of each row of a matrix of `size` `[rows, depth, columns]` with each column.
#[inline(always)]
fn each_sum(
    [rows, depth, columns]: [usize; 3],
    (a, a_start, [a_row, a_depth]): (&[f32], usize, [usize; 2]),
    (b, b_start, [b_depth, b_column]): (&[f32], usize, [usize; 2]),
    mut f: impl FnMut(usize, usize, f32),
) {
    for row in 0..rows {
        let mut column = 0;
        while column + 4 <= columns {
            let first = core::array::from_fn(|c| b_start + (column + c) * b_column);
            let [sums] = sums::<1, 4>(
                depth,
                (a, [a_start + row * a_row], a_depth),
                (b, first, b_depth),
            );
            for (c, sum) in sums.into_iter().enumerate() {
                f(row, column + c, sum);
            }
            column += 4;
        }
        for column in column..columns {
            let [[sum]] = sums::<1, 1>(
                depth,
                (a, [a_start + row * a_row], a_depth),
                (b, [b_start + column * b_column], b_depth),
            );
            f(row, column, sum);
        }
    }
}

/// A linear layer: `activation(x * weight^T + bias)`, and a residual behind or before the activation. Reads rows, a weight
/// `[outputs, inputs]`, and a bias and a residual where it has them.
///
/// ```
/// use fx_static::{Activation, Kernel, Linear};
///
/// let linear = Linear {
///     inputs: 2,
///     outputs: 1,
///     has_bias: true,
///     has_residual: false,
///     is_residual_first: false,
///     activation: Activation::None,
/// };
/// let mut out = [0.0; 2];
/// linear.run(&[&[1.0, 2.0, 3.0, 4.0], &[10.0, 1.0], &[0.5]], &mut out);
/// assert_eq!(out, [12.5, 34.5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// The floats of a row.
    pub inputs: usize,
    /// The floats of a row of the result.
    pub outputs: usize,
    /// Whether a float is added to each output.
    pub has_bias: bool,
    /// Whether rows of the size of the result are added.
    pub has_residual: bool,
    /// Whether they are added before the activation.
    pub is_residual_first: bool,
    /// What follows.
    pub activation: Activation,
}

impl Kernel for Linear {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let (x, weight) = (next(reads), next(reads));
        let bias = next_if(reads, self.has_bias);
        let residual = next_if(reads, self.has_residual);
        let (inputs, outputs) = (self.inputs, self.outputs);
        if outputs == 0 {
            return;
        }
        let size = [out.len() / outputs, inputs, outputs];
        each_sum(
            size,
            (x, 0, [inputs, 1]),
            (weight, 0, [1, inputs]),
            |row, column, sum| {
                let at = row * outputs + column;
                let sum = sum + bias.map_or(0.0, |bias| bias[column]);
                let residual = residual.map_or(0.0, |residual| residual[at]);
                out[at] = match self.is_residual_first {
                    true => activated(self.activation, sum + residual),
                    false => activated(self.activation, sum) + residual,
                };
            },
        );
    }
}

/// Products of matrices that lie in any order. Reads both.
///
/// ```
/// use fx_static::{Kernel, Matmul};
///
/// // A row times a matrix that lies column by column.
/// let product = Matmul {
///     batch: [1; 4],
///     a_batch: [0; 4],
///     b_batch: [0; 4],
///     size: [1, 2, 2],
///     a: [2, 1],
///     b: [1, 2],
/// };
/// let mut out = [0.0; 2];
/// product.run(&[&[1.0, 2.0], &[1.0, 1.0, 0.0, 3.0]], &mut out);
/// assert_eq!(out, [3.0, 6.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matmul {
    /// The dims of the products.
    pub batch: [usize; 4],
    /// The floats from one of their places to the next of the first operand.
    pub a_batch: [usize; 4],
    /// Those of the second.
    pub b_batch: [usize; 4],
    /// Rows, the common dim, columns.
    pub size: [usize; 3],
    /// The strides of the first operand's rows and columns.
    pub a: [usize; 2],
    /// The strides of the second operand's rows and columns.
    pub b: [usize; 2],
}

impl Kernel for Matmul {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let [rows, _, columns] = self.size;
        if rows * columns == 0 {
            return;
        }
        for (at, out) in out.chunks_exact_mut(rows * columns).enumerate() {
            let (mut rest, mut starts) = (at, [0; 2]);
            for dim in (0..4).rev() {
                let place = rest % self.batch[dim];
                rest /= self.batch[dim];
                starts[0] += place * self.a_batch[dim];
                starts[1] += place * self.b_batch[dim];
            }
            each_sum(
                self.size,
                (reads[0], starts[0], self.a),
                (reads[1], starts[1], self.b),
                |row, column, sum| out[row * columns + column] = sum,
            );
        }
    }
}

source!(Linear {
    inputs,
    outputs,
    has_bias,
    has_residual,
    is_residual_first,
    activation
});
source!(Matmul {
    batch,
    a_batch,
    b_batch,
    size,
    a,
    b
});
