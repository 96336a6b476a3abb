//! Results whose gradients are formulas of their own, where those of the operations that compute them are others: at
//! ties, at bounds, where a logarithm or a quotient has no slope.
//!
//! Invariant: a result is what it is without gradients, to the bit.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Storage, Tensor, bail};

/// The gradient of one input, of it, the result, and the result's gradient.
type OfOne = dyn Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync;

/// The gradients of two inputs, of them, and the result's gradient.
type OfTwo = dyn Fn([&Tensor; 2], &Tensor) -> Result<[Tensor; 2]> + Send + Sync;

/// A result that is known when the operation is recorded.
struct Known<F: ?Sized> {
    name: &'static str,
    result: Tensor,
    gradient: Box<F>,
}

impl<F: ?Sized> Known<F> {
    fn copy(&self) -> Result<(CpuStorage, Shape)> {
        let (storage, layout) = self.result.storage_and_layout();
        let (Storage::Cpu(storage), Some((from, to))) = (&*storage, layout.contiguous_offsets())
        else {
            bail!(
                "{}: gradients are computed on the processor: move the tensor there with to_device",
                self.name
            )
        };
        let copy = match storage {
            CpuStorage::BF16(y) => CpuStorage::BF16(y[from..to].to_vec()),
            CpuStorage::F16(y) => CpuStorage::F16(y[from..to].to_vec()),
            CpuStorage::F32(y) => CpuStorage::F32(y[from..to].to_vec()),
            CpuStorage::F64(y) => CpuStorage::F64(y[from..to].to_vec()),
            _ => bail!("{}: the dtype is not floating point", self.name),
        };
        Ok((copy, layout.shape().clone()))
    }
}

impl CustomOp1 for Known<OfOne> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.copy()
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        (self.gradient)(&x.detach(), &y.detach(), grad).map(Some)
    }
}

impl CustomOp2 for Known<OfTwo> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.copy()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [of_a, of_b] = (self.gradient)([&a.detach(), &b.detach()], grad)?;
        Ok((Some(of_a), Some(of_b)))
    }
}

/// What `compute` makes of floats `x`, with a gradient that `gradient` makes of `x`, the result and its gradient.
///
/// # Errors
/// Returns the errors of `compute`.
pub fn of_one(
    name: &'static str,
    x: &Tensor,
    compute: impl FnOnce(&Tensor) -> Result<Tensor>,
    gradient: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    if !x.track_op() {
        return compute(x);
    }
    let known: Known<OfOne> = Known {
        name,
        result: compute(&x.detach())?.contiguous()?,
        gradient: Box::new(gradient),
    };
    x.apply_op1(known)
}

/// What `compute` makes of floats `a` and `b`, with gradients that `gradient` makes of them and the result's.
///
/// # Errors
/// Returns the errors of `compute`.
pub fn of_two(
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
    compute: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
    gradient: impl Fn([&Tensor; 2], &Tensor) -> Result<[Tensor; 2]> + Send + Sync + 'static,
) -> Result<Tensor> {
    if !a.track_op() && !b.track_op() {
        return compute(a, b);
    }
    let known: Known<OfTwo> = Known {
        name,
        result: compute(&a.detach(), &b.detach())?.contiguous()?,
        gradient: Box::new(gradient),
    };
    a.apply_op2(b, known)
}
