//! Running sums along a dimension.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::dim::dim;
use super::widen::widened;

/// The sum of each element of `x` and those before it along `dim`; integers are summed as `i64`.
///
/// Floats are summed in `f64`, and each sum is rounded on its own.
///
/// # Errors
/// Returns an error if there is no such dimension.
pub fn cumsum(x: &Tensor, d: i64) -> Result<Tensor> {
    let at = dim("cumsum", d, x.rank())?;
    if x.dtype().is_int() {
        let x = x.to_dtype(DType::I64)?;
        return along(&x, at);
    }
    widened(x, x, |x| along(&x, at))
}

fn along(x: &Tensor, at: usize) -> Result<Tensor> {
    if x.rank() == 0 || x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let scan = Scan {
        size: x.dims()[at],
        inner: x.dims()[at + 1..].iter().product(),
        is_reverse: false,
    };
    x.contiguous()?.apply_op1(scan)
}

/// Running sums along the middle of `[outer, size, inner]`, from its end where `is_reverse`.
#[derive(Clone, Copy)]
struct Scan {
    size: usize,
    inner: usize,
    is_reverse: bool,
}

impl Scan {
    fn run<T: Copy, A: Copy>(
        self,
        values: &[T],
        zero: A,
        add: impl Fn(A, T) -> A,
        end: impl Fn(A) -> T,
    ) -> Vec<T> {
        let mut y = values.to_vec();
        let mut sums = vec![zero; self.inner];
        for block in y.chunks_exact_mut(self.size * self.inner) {
            sums.fill(zero);
            for step in 0..self.size {
                let at = if self.is_reverse {
                    self.size - 1 - step
                } else {
                    step
                };
                let row = &mut block[at * self.inner..][..self.inner];
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum = add(*sum, *x);
                    *x = end(*sum);
                }
            }
        }
        y
    }
}

impl CustomOp1 for Scan {
    fn name(&self) -> &'static str {
        "cumsum"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((from, to)) = layout.contiguous_offsets() else {
            bail!("cumsum: the tensor is not contiguous")
        };
        let y = match storage {
            CpuStorage::F32(x) => CpuStorage::F32(self.run(
                &x[from..to],
                0.0,
                |sum, x| sum + f64::from(x),
                |sum| sum as f32,
            )),
            CpuStorage::F64(x) => {
                CpuStorage::F64(self.run(&x[from..to], 0.0, |sum, x| sum + x, |sum| sum))
            }
            CpuStorage::I64(x) => {
                CpuStorage::I64(self.run(&x[from..to], 0, i64::wrapping_add, |sum| sum))
            }
            _ => bail!("cumsum: the dtype is none of f32, f64 and int64"),
        };
        Ok((y, layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        // An element is in the sums of all that follow it.
        let back = Scan {
            is_reverse: !self.is_reverse,
            ..*self
        };
        grad.contiguous()?.apply_op1(back).map(Some)
    }
}
