//! A linear layer: rows times a packed matrix.

use rayon::prelude::*;

use super::finish::{Ending, Finish};
use super::gemv::{FEW, few_rows};
use super::packed::{PackedMatrix, Store};
use super::panels::{Packed, Panels, Strided};
use super::product::Product;
use crate::Level;
use crate::error::{SizeError, check};
use crate::scratch::lend;
use crate::terms::{Floats, Pairs, Terms};

/// The floats that a task rounds to pairs: about 10 us.
const NARROWED: usize = 64 << 10;

/// Multiplies `rows` rows of `x` by a packed matrix: `out[r, n] = sum over k of x[r, k] * w[n, k]`,
/// then does what `finish` says.
///
/// `x` is `[rows, inputs]` and `out` `[rows, outputs]`, both row by row. Sums are in `f32`, also
/// where the weight is stored in fewer bits. At [`Level::Avx512`] on processors with VNNI, rows that meet weights in
/// blocks are rounded first: each 32 inputs to bytes, with a scale in 16 bits ([`PackedMatrix::rounds_rows`]); a row has the same
/// bits then whatever rows are beside it. Weights of [`PackedMatrix::round_rows`] meet rows that are rounded to bf16.
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
    if let (Store::Blocks(blocks), Level::Avx512) = (&weight.store, level)
        && let Some(simd) = fx_simd::Vnni::try_new()
    {
        super::integers::product(simd, x, (weight, blocks), ending, out);
        return Ok(());
    }
    if let (Store::Bf16(lines), true) = (&weight.store, weight.rounds_rows(level))
        && let Some(terms) = Pairs::of(level)
    {
        let depth = inputs.div_ceil(2);
        lend(rows * depth, |pairs| {
            let narrow = |(x, pairs): (&[f32], &mut [f32])| terms.of_rows(x, inputs, pairs);
            match x.len() < NARROWED || inputs == 0 {
                true => narrow((x, pairs)),
                false => {
                    let rows = NARROWED.div_ceil(inputs);
                    let chunks = x.par_chunks(rows * inputs);
                    chunks
                        .zip(pairs.par_chunks_mut(rows * depth))
                        .for_each(narrow);
                }
            }
            let right = &Packed {
                floats: lines.as_chunks().0,
                depth,
            };
            of_terms(
                terms,
                level,
                (rows, depth, pairs),
                (weight, right),
                ending,
                out,
            );
        });
        return Ok(());
    }
    of_terms(
        Floats,
        level,
        (rows, inputs, x),
        (weight, weight),
        ending,
        out,
    );
    Ok(())
}

/// The product of rows of terms with a weight, which is given as panels of terms too.
fn of_terms<T: Terms, B: Panels>(
    terms: T,
    level: Level,
    (rows, depth, x): (usize, usize, &[f32]),
    (weight, right): (&PackedMatrix, &B),
    ending: Ending<'_>,
    out: &mut [f32],
) {
    if rows <= FEW {
        return few_rows(terms, level, (rows, x), weight, ending, out);
    }
    let left = Strided {
        data: x,
        start: 0,
        row: depth,
        column: 1,
        columns: depth,
    };
    Product {
        terms,
        rows,
        columns: weight.outputs(),
        depth,
        left,
        right,
        ending,
    }
    .run(level, out);
}
