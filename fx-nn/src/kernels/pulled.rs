//! Values that are computed as a whole, with a custom gradient: in `f64`, whatever the tensors'
//! type.

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Storage, Tensor,
};

/// A value, and the function from its gradient to those of its operands.
struct Pulled<F> {
    name: &'static str,
    value: Tensor,
    pull: F,
}

impl<F> Pulled<F> {
    fn storage(&self) -> Result<(CpuStorage, Shape)> {
        let (storage, _) = self.value.storage_and_layout();
        match &*storage {
            Storage::Cpu(data) => Ok((data.clone(), self.value.shape().clone())),
            _ => candle_core::bail!(
                "{}: gradients are computed on the processor: move the tensor there with to_device",
                self.name
            ),
        }
    }
}

impl<F: Fn(&Tensor) -> Result<Tensor>> CustomOp1 for Pulled<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.storage()
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = (self.pull)(&gradient.to_dtype(DType::F64)?)?;
        gradient.to_dtype(x.dtype()).map(Some)
    }
}

impl<F: Fn(&Tensor) -> Result<(Tensor, Tensor)>> CustomOp2 for Pulled<F> {
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
        self.storage()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (of_a, of_b) = (self.pull)(&gradient.to_dtype(DType::F64)?)?;
        Ok((
            Some(of_a.to_dtype(a.dtype())?),
            Some(of_b.to_dtype(b.dtype())?),
        ))
    }
}

/// The `f64` value of something computed from `x`, as a tensor of its type; `pull` maps a gradient
/// of the value to one of `x`.
///
/// # Errors
/// Returns only candle's errors.
pub fn pulled(
    name: &'static str,
    x: &Tensor,
    value: &Tensor,
    pull: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let value = value.to_dtype(x.dtype())?;
    match x.track_op() {
        true => x.apply_op1(Pulled { name, value, pull }),
        false => Ok(value),
    }
}

/// The same of something computed from two tensors of one type.
///
/// # Errors
/// Returns only candle's errors.
pub fn pulled_by_two(
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
    value: &Tensor,
    pull: impl Fn(&Tensor) -> Result<(Tensor, Tensor)> + Send + Sync + 'static,
) -> Result<Tensor> {
    let value = value.to_dtype(a.dtype())?;
    match a.track_op() || b.track_op() {
        true => a.apply_op2(b, Pulled { name, value, pull }),
        false => Ok(value),
    }
}
