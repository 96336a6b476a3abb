//! Functions of rows as steps: softmax and norms.

use pulp::{Scalar, WithSimd};

use crate::kernel::{Kernel, next, next_if};
use crate::rows::{Kind, Rows};
use crate::source::source;

/// A function of rows. Reads rows, and a weight and a bias where it has them.
///
/// ```
/// use fx_static::{Kernel, Normed, RowNorm};
///
/// let norm = RowNorm { how: Normed::Softmax, size: 2, eps: 0.0, has_weight: false, has_bias: false };
/// let mut out = [0.0; 2];
/// norm.run(&[&[1.0, 1.0]], &mut out);
/// assert_eq!(out, [0.5, 0.5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowNorm {
    /// What is done to each row.
    pub how: Normed,
    /// The floats of a row.
    pub size: usize,
    /// Added to what the root is taken of.
    pub eps: f32,
    /// Whether each column is multiplied by a float.
    pub has_weight: bool,
    /// Whether a float is added to each column.
    pub has_bias: bool,
}

/// What is done to each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normed {
    /// `exp(x) / sum(exp(x))`.
    Softmax,
    /// The logarithm of it.
    LogSoftmax,
    /// `(x - mean) / sqrt(variance + eps)`.
    Layer,
    /// `x / sqrt(mean(x^2) + eps)`.
    Rms,
}

impl Kernel for RowNorm {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let x = next(reads);
        let weight = next_if(reads, self.has_weight);
        let bias = next_if(reads, self.has_bias);
        if self.size == 0 {
            return;
        }
        let eps = self.eps;
        let kind = match self.how {
            Normed::Softmax => Kind::Softmax,
            Normed::LogSoftmax => Kind::LogSoftmax,
            Normed::Layer => Kind::Layer { weight, bias, eps },
            Normed::Rms => Kind::Rms { weight, eps },
        };
        Rows {
            kind,
            size: self.size,
            first: 0,
            x,
            out,
        }
        .with_simd(Scalar::new());
    }
}

source!(Normed);
source!(RowNorm {
    how,
    size,
    eps,
    has_weight,
    has_bias
});
