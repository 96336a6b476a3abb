//! What happens to a result of a product before it is done: scale, bias, activation, residual.

use pulp::Simd;

use crate::math::{apply_all, map};
use crate::vector::{inlined, load_some, store_some};
use crate::{Activation, SizeError, error::check};

/// Whether the residual is added before or after the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// `residual + activation(product + bias)`: a block of a transformer.
    #[default]
    ActivationFirst,
    /// `activation(product + bias + residual)`: a residual block of a convolutional net.
    ResidualFirst,
}

/// What a product does to its results before it stores them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finish<'a> {
    /// Added to each row: a float for each column.
    pub bias: Option<&'a [f32]>,
    /// Added: as many floats as the result has.
    pub residual: Option<&'a [f32]>,
    /// Applied to each result.
    pub activation: Activation,
    /// Whether the activation or the residual comes first.
    pub order: Order,
}

impl Finish<'_> {
    pub(crate) fn check(&self, columns: usize, floats: usize) -> Result<(), SizeError> {
        if let Some(bias) = self.bias {
            check("the bias", columns, bias.len())?;
        }
        if let Some(residual) = self.residual {
            check("the residual", floats, residual.len())?;
        }
        Ok(())
    }
}

/// A [`Finish`], and what each column is multiplied by first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending<'a> {
    pub finish: Finish<'a>,
    pub scales: Option<&'a [f32]>,
    /// What all results are multiplied by first.
    pub factor: Option<f32>,
}

impl Ending<'_> {
    /// Finishes the floats of a row from `column` on; the row is number `row` of rows of `columns`.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(
        &self,
        simd: S,
        out: &mut [f32],
        row: usize,
        column: usize,
        columns: usize,
    ) {
        if let Some(factor) = self.factor {
            inlined!(map(simd, out; |x| simd.mul_f32s(x, simd.splat_f32s(factor))));
        }
        let columns_from = |floats: &'_ [f32]| column..floats.len().min(column + out.len());
        if let Some(scales) = self.scales {
            let range = columns_from(scales);
            inlined!(zip(simd, out, &scales[range]; |x, y| simd.mul_f32s(x, y)));
        }
        if let Some(bias) = self.finish.bias {
            let range = column..bias.len().min(column + out.len());
            inlined!(zip(simd, out, &bias[range]; |x, y| simd.add_f32s(x, y)));
        }
        let at = row * columns + column;
        let residual = self
            .finish
            .residual
            .map(|residual| &residual[at..at + out.len()]);
        let add = |out: &mut [f32]| {
            if let Some(residual) = residual {
                inlined!(zip(simd, out, residual; |x, y| simd.add_f32s(x, y)));
            }
        };
        match self.finish.order {
            Order::ActivationFirst => {
                apply_all(simd, self.finish.activation, out);
                add(out);
            }
            Order::ResidualFirst => {
                add(out);
                apply_all(simd, self.finish.activation, out);
            }
        }
    }
}

/// Replaces each float by a function of it and its partner.
#[inline(always)]
pub(crate) fn zip<S: Simd>(
    simd: S,
    out: &mut [f32],
    other: &[f32],
    f: impl Fn(S::f32s, S::f32s) -> S::f32s,
) {
    let len = out.len().min(other.len());
    let (vectors, rest) = S::as_mut_simd_f32s(&mut out[..len]);
    let (others, other_rest) = S::as_simd_f32s(&other[..len]);
    for (v, other) in vectors.iter_mut().zip(others) {
        *v = f(*v, *other);
    }
    if !rest.is_empty() {
        let v = f(load_some(simd, rest), load_some(simd, other_rest));
        store_some(simd, rest, v);
    }
}
