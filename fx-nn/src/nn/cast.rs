//! A module's element type and its device, changed for all its parameters and buffers at once.

use fx_core::module::Component;
use fx_core::value::{DType, Device};
use fx_core::{Error, Result};

use super::replace::replace;
use crate::device;
use crate::error::Fx;
use crate::tensor::Tensor;

/// Makes every floating-point parameter and buffer of a module one of `dtype`, PyTorch's `module.to(dtype)`; a
/// parameter stays one, and what was shared stays shared within the module.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Linear::new(4, 5)?;
/// nn::to_dtype(&mut layer, DType::F64)?;
/// assert_eq!(layer.weight.dtype()?, DType::F64);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `dtype` is not floating point, or a tensor is symbolic.
pub fn to_dtype(module: &mut (impl Component + ?Sized), dtype: DType) -> Result<()> {
    if !dtype.is_floating_point() {
        return Err(Error::msg(format_args!(
            "to_dtype: a module's type is floating point, not {dtype}"
        )));
    }
    replace(module, |_, tensor| {
        if !tensor.dtype()?.is_floating_point() {
            return Ok(None);
        }
        let cast = tensor.detach()?.cast(dtype)?;
        as_before(tensor, cast).map(Some)
    })
}

/// Brings every parameter and buffer of a module to a device, PyTorch's `module.to(device)`; a parameter stays one, and
/// what was shared stays shared within the module.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Linear::new(4, 5)?;
/// nn::to_device(&mut layer, Device::Cpu)?;
/// assert!(nn::to_device(&mut layer, Device::Cuda(100)).is_err());
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such device, and nothing is changed then, or if a tensor is
/// symbolic.
pub fn to_device(module: &mut (impl Component + ?Sized), device: Device) -> Result<()> {
    let device = device::open(device)?;
    replace(module, |_, tensor| {
        let data = tensor
            .detach()?
            .data("to_device")?
            .to_device(&device)
            .fx()?;
        as_before(tensor, tensor.with_data(data)).map(Some)
    })
}

/// What is made of a tensor: a parameter if that is one.
fn as_before(tensor: &Tensor, changed: Tensor) -> Result<Tensor> {
    match tensor.candle()?.is_variable() {
        true => changed.into_parameter(),
        false => Ok(changed),
    }
}
