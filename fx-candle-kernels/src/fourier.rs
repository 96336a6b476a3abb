//! Fourier transforms along a dim, by rustfft: a complex tensor is a real one whose last dim is 2.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, WithDType, bail};
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};

use super::view;
use crate::room;

/// The factor of a transform's sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// 1 / `n` at the inverse transform.
    Backward,
    /// 1 / `n` at the forward transform.
    Forward,
    /// 1 / sqrt(`n`) at both.
    Ortho,
}

impl Norm {
    /// The norm of PyTorch's name; `"backward"` without one.
    ///
    /// # Errors
    /// Returns an error if there is no such name.
    pub fn named(op: &str, name: Option<&str>) -> Result<Norm> {
        match name {
            None | Some("backward") => Ok(Norm::Backward),
            Some("forward") => Ok(Norm::Forward),
            Some("ortho") => Ok(Norm::Ortho),
            Some(other) => {
                bail!("{op}: norm is \"backward\", \"forward\" or \"ortho\", not {other:?}")
            }
        }
    }

    fn scale(self, n: usize, direction: FftDirection) -> f64 {
        let n = n as f64;
        match (self, direction) {
            (Norm::Backward, FftDirection::Inverse) | (Norm::Forward, FftDirection::Forward) => {
                1.0 / n
            }
            (Norm::Ortho, _) => 1.0 / n.sqrt(),
            _ => 1.0,
        }
    }
}

/// A transform of complex numbers along a dim; its gradient is the inverse direction with the same
/// scale.
#[derive(Clone, Copy)]
struct Fourier {
    dim: usize,
    direction: FftDirection,
    scale: f64,
}

impl Fourier {
    fn rows<T: FftNum>(self, data: &[T], dims: &[usize]) -> Vec<T> {
        let n = dims[self.dim];
        let inner: usize = dims[self.dim + 1..dims.len() - 1].iter().product();
        let scale = T::from_f64(self.scale).expect("a float is made of a float");
        let plan = FftPlanner::new().plan_fft(n, self.direction);
        let zero = Complex::new(T::zero(), T::zero());
        let mut row = vec![zero; n];
        let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
        let mut found = vec![T::zero(); data.len()];
        let block = 2 * n * inner;
        if block == 0 {
            return found;
        }
        for (from, to) in data.chunks_exact(block).zip(found.chunks_exact_mut(block)) {
            for at in 0..inner {
                for (i, x) in row.iter_mut().enumerate() {
                    let place = 2 * (i * inner + at);
                    *x = Complex::new(from[place], from[place + 1]);
                }
                plan.process_with_scratch(&mut row, &mut scratch);
                for (i, x) in row.iter().enumerate() {
                    let place = 2 * (i * inner + at);
                    to[place] = x.re * scale;
                    to[place + 1] = x.im * scale;
                }
            }
        }
        found
    }
}

impl CustomOp1 for Fourier {
    fn name(&self) -> &'static str {
        "fft"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((i, j)) = layout.contiguous_offsets() else {
            bail!("fft: a tensor is not contiguous")
        };
        let dims = layout.dims();
        let y = match x {
            CpuStorage::F32(x) => f32::to_cpu_storage_owned(self.rows(&x[i..j], dims)),
            CpuStorage::F64(x) => f64::to_cpu_storage_owned(self.rows(&x[i..j], dims)),
            _ => bail!("fft: the dtype is not f32 or f64"),
        };
        Ok((y, layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let back = Fourier {
            direction: self.direction.opposite_direction(),
            ..*self
        };
        gradient.contiguous()?.apply_op1(back).map(Some)
    }
}

/// Refuses tensors that are neither `float32` nor `float64`.
fn computed(op: &str, x: &Tensor) -> Result<()> {
    match x.dtype() {
        DType::F32 | DType::F64 => Ok(()),
        other => bail!("{op}: transforms are of float32 or float64, not {other:?}: use to_dtype"),
    }
}

/// The dims of a complex tensor, without the last one.
///
/// # Errors
/// Returns an error if the last dim is not 2, or the tensor is neither `float32` nor `float64`.
pub fn complex<'x>(op: &str, x: &'x Tensor) -> Result<&'x [usize]> {
    computed(op, x)?;
    match x.dims() {
        [dims @ .., 2] => Ok(dims),
        dims => bail!(
            "{op}: a complex tensor has 2 in its last dim, the real and the imaginary part, not shape {dims:?}: rfft takes \
             a real one"
        ),
    }
}

/// The first `n` elements along `dim`, padded with zeros.
fn fitted(op: &str, x: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
    let size = x.dims()[dim];
    if n == 0 {
        bail!("{op}: there is no transform of 0 elements: n is 1 at least")
    }
    if n <= size {
        return view::narrow(x, dim, 0, n);
    }
    let mut dims = x.dims().to_vec();
    dims[dim] = n;
    room::of(op, &dims, x.dtype())?;
    dims[dim] = n - size;
    let zeros = Tensor::zeros(dims, x.dtype(), x.device())?;
    match size {
        0 => Ok(zeros),
        _ => Tensor::cat(&[x, &zeros], dim),
    }
}

/// The transform of a complex tensor along `dim`, of `n` elements.
///
/// # Errors
/// Returns an error if `n` is 0, or so many do not fit into memory.
pub fn fft(
    op: &str,
    x: &Tensor,
    dim: usize,
    n: usize,
    direction: FftDirection,
    norm: Norm,
) -> Result<Tensor> {
    let scale = norm.scale(n, direction);
    let of = Fourier {
        dim,
        direction,
        scale,
    };
    fitted(op, x, dim, n)?.contiguous()?.apply_op1(of)
}

/// The half of the transform of a real tensor that determines the other half: `n / 2 + 1` complex
/// numbers.
///
/// # Errors
/// Returns an error if `n` is 0, or the tensor is not of `float32` or `float64`.
pub fn rfft(op: &str, x: &Tensor, dim: usize, n: usize, norm: Norm) -> Result<Tensor> {
    computed(op, x)?;
    let x = fitted(op, x, dim, n)?;
    let x = Tensor::stack(&[&x, &x.zeros_like()?.detach()], x.rank())?;
    let y = fft(op, &x, dim, n, FftDirection::Forward, norm)?;
    view::narrow(&y, dim, 0, n / 2 + 1)
}

/// The `n` real numbers whose transform begins with the complex `x`.
///
/// # Errors
/// Returns an error if `n` is 0, or so many do not fit into memory.
pub fn irfft(op: &str, x: &Tensor, dim: usize, n: usize, norm: Norm) -> Result<Tensor> {
    if n == 0 {
        bail!("{op}: there is no transform of 0 elements: n is 1 at least")
    }
    let half = fitted(op, x, dim, n / 2 + 1)?;
    // Each number stands for its mirror image too, but for the first and, where n is even, the last.
    let weight = |i: usize| if i == 0 || 2 * i == n { 1.0 } else { 2.0 };
    let weights: Vec<f64> = (0..n / 2 + 1).map(weight).collect();
    let mut dims = vec![1; x.rank()];
    dims[dim] = weights.len();
    let weights = Tensor::from_vec(weights, dims, x.device())?.to_dtype(x.dtype())?;
    let y = fft(
        op,
        &half.broadcast_mul(&weights)?,
        dim,
        n,
        FftDirection::Inverse,
        norm,
    )?;
    let last = y.rank() - 1;
    view::narrow(&y, last, 0, 1)?.squeeze(last)
}
