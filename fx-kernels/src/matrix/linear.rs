//! A linear layer: rows times a packed matrix.

use super::finish::{Ending, Finish};
use super::gemv::{FEW, few_rows};
use super::packed::PackedMatrix;
use super::panels::Strided;
use super::product::Product;
use crate::Level;
use crate::error::{SizeError, check};

/// Multiplies `rows` rows of `x` by a packed matrix: `out[r, n] = sum over k of x[r, k] * w[n, k]`,
/// then does what `finish` says.
///
/// `x` is `[rows, inputs]` and `out` `[rows, outputs]`, both row by row. Sums are in `f32`, also
/// where the weight is stored in fewer bits. At [`Level::Avx512`] on processors with VNNI, rows that meet weights in
/// blocks are rounded first: each 32 inputs to bytes, with a scale in 16 bits ([`PackedMatrix::rounds_rows`]); a row has the same
/// bits then whatever rows are beside it.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for.
///
/// ```
/// use fx_kernels::matrix::{Finish, PackedMatrix, WeightKind, WeightOrder, linear};
/// use fx_kernels::{Activation, Level};
///
/// let weight = [1.0, 2.0, 3.0, -4.0, -5.0, -6.0];
/// let weight = PackedMatrix::new(&weight, 3, 2, WeightOrder::OutputsFirst, WeightKind::F32)?;
/// let finish = Finish { bias: Some(&[0.5, 0.5]), activation: Activation::Relu, ..Finish::default() };
/// let mut out = [0.0; 2];
/// linear(Level::best(), 1, &[1.0, 1.0, 1.0], &weight, finish, &mut out)?;
/// assert_eq!(out, [6.5, 0.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn linear(
    level: Level,
    rows: usize,
    x: &[f32],
    weight: &PackedMatrix,
    finish: Finish<'_>,
    out: &mut [f32],
) -> Result<(), SizeError> {
    let (inputs, outputs) = (weight.inputs(), weight.outputs());
    check("the left operand", rows * inputs, x.len())?;
    check("the result", rows * outputs, out.len())?;
    finish.check(outputs, out.len())?;
    let ending = Ending {
        finish,
        scales: weight.scales(),
        factor: None,
    };
    #[cfg(target_arch = "x86_64")]
    if let (super::packed::Store::Blocks(blocks), Level::Avx512) = (&weight.store, level)
        && let Some(simd) = fx_simd::Vnni::try_new()
    {
        super::integers::product(simd, x, (weight, blocks), ending, out);
        return Ok(());
    }
    if rows <= FEW {
        few_rows(level, rows, x, weight, ending, out);
        return Ok(());
    }
    let left = Strided {
        data: x,
        start: 0,
        row: inputs,
        column: 1,
        columns: inputs,
    };
    Product {
        rows,
        columns: outputs,
        depth: inputs,
        left,
        right: weight,
        ending,
    }
    .run(level, out);
    Ok(())
}
