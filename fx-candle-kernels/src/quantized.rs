//! The product with a quantised matrix: computed on its blocks, its gradient through the
//! dequantised matrix.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

/// x Wᵀ for a quantised W `[out, in]`.
struct Product(Arc<QTensor>);

impl CustomOp1 for Product {
    fn name(&self) -> &'static str {
        "quantized_linear"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.0.cpu_fwd(storage, layout)
    }

    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        self.0.cuda_fwd(storage, layout)
    }

    fn metal_fwd(
        &self,
        storage: &candle_core::MetalStorage,
        layout: &Layout,
    ) -> Result<(candle_core::MetalStorage, Shape)> {
        self.0.metal_fwd(storage, layout)
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (outputs, _) = self.0.shape().dims2()?;
        let rows = gradient.elem_count() / outputs.max(1);
        let weight = self.0.dequantize(x.device())?;
        let gradient = gradient.contiguous()?.reshape((rows, outputs))?;
        gradient.matmul(&weight)?.reshape(x.shape()).map(Some)
    }
}

/// x Wᵀ for `x` `[.., in]` and a quantised W `[out, in]`, in the type of `x`.
///
/// # Errors
/// Returns an error if `x` is not floating point, or its last dim is not `in`.
pub fn linear(x: &Tensor, weight: &Arc<QTensor>) -> Result<Tensor> {
    let (outputs, inputs) = weight.shape().dims2()?;
    if !x.dtype().is_float() || x.dims().last() != Some(&inputs) {
        bail!(
            "quantized_linear: expected floats [.., {inputs}], found {:?} of shape {:?}",
            x.dtype(),
            x.dims()
        );
    }
    let mut shape = x.dims().to_vec();
    shape.pop();
    let rows: usize = shape.iter().product();
    shape.push(outputs);
    if rows * outputs == 0 || inputs == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    let matrix = x
        .to_dtype(DType::F32)?
        .contiguous()?
        .reshape((rows, inputs))?;
    let product = matrix.apply_op1(Product(weight.clone()))?;
    product.reshape(shape)?.to_dtype(x.dtype())
}
