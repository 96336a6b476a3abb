//! Where the first largest or smallest float of each row is, on a CPU.
//!
//! Invariant: the first NaN of a row wins.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};
use fx_kernels::Level;
use fx_kernels::convert::Element;
use fx_kernels::reduce::{Reduction, reduce};

/// The elements that are compared at once.
const TOGETHER: usize = 64;

/// Whether rows of `x` are searched here: some elements of `f32`, `f16` or `bf16` on a CPU.
pub(super) fn is_known(x: &Tensor) -> bool {
    let is_float = matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16);
    is_float && x.device().is_cpu() && x.rank() > 0 && x.elem_count() > 0
}

/// The index (`u32`) of the first largest or smallest element of each row of a contiguous `x`: its last dimension becomes 1.
///
/// # Errors
/// Returns only candle's errors.
pub(super) fn first_places(x: &Tensor, how: Reduction) -> Result<Tensor> {
    x.apply_op1_no_bwd(&FirstPlaces(how))
}

struct FirstPlaces(Reduction);

impl CustomOp1 for FirstPlaces {
    fn name(&self) -> &'static str {
        "first_places"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("first_places: elements do not lie in order")
        };
        let mut shape = layout.dims().to_vec();
        let count = shape
            .last_mut()
            .map_or(1, |count| std::mem::replace(count, 1));
        let places = match storage {
            CpuStorage::F32(x) => self.of_rows(&x[start..end], count)?,
            CpuStorage::F16(x) => self.of_rows(&widened(&x[start..end]), count)?,
            CpuStorage::BF16(x) => self.of_rows(&widened(&x[start..end]), count)?,
            _ => bail!("first_places: f32, f16 or bf16"),
        };
        Ok((CpuStorage::U32(places), shape.into()))
    }
}

fn widened<T: Element>(x: &[T]) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    T::widen(x, &mut out);
    out
}

impl FirstPlaces {
    fn of_rows(&self, x: &[f32], count: usize) -> Result<Vec<u32>> {
        let mut extremes = vec![0.0; x.len() / count.max(1)];
        reduce(
            Level::best(),
            self.0,
            [extremes.len(), count, 1],
            x,
            &mut extremes,
        )
        .map_err(candle_core::Error::wrap)?;
        let rows = x.chunks(count.max(1)).zip(extremes);
        Ok(rows.map(|(row, extreme)| first(row, extreme)).collect())
    }
}

/// Where `row` has `value` first; a NaN is any NaN.
fn first(row: &[f32], value: f32) -> u32 {
    let is_it = |x: &f32| *x == value || (value.is_nan() && x.is_nan());
    let mut chunks = row.chunks(TOGETHER);
    // No early end in a chunk, so that its elements are compared in vectors.
    let chunk = chunks.position(|chunk| chunk.iter().fold(false, |found, x| found | is_it(x)));
    let start = chunk.unwrap_or_default() * TOGETHER;
    let at = row[start..].iter().position(is_it);
    (start + at.unwrap_or_default()) as u32
}
