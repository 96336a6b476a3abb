//! A module's element type and its device, changed for all its parameters and buffers at once.

use std::any::Any;
use std::collections::HashMap;

use fx_core::module::{Component, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;
use fx_core::value::{DType, Device};
use fx_core::{Error, Result};

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
/// When `dtype` is not floating point, or a tensor is symbolic.
pub fn to_dtype(module: &mut (impl Component + ?Sized), dtype: DType) -> Result<()> {
    if !dtype.is_floating_point() {
        return Err(Error::msg(format_args!(
            "to_dtype: a module's type is floating point, not {dtype}"
        )));
    }
    convert(module, |tensor| {
        if !tensor.dtype()?.is_floating_point() {
            return Ok(None);
        }
        tensor.detach()?.cast(dtype).map(Some)
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
/// When there is no such device, and then nothing is changed, or when a tensor is symbolic.
pub fn to_device(module: &mut (impl Component + ?Sized), device: Device) -> Result<()> {
    let device = device::open(device)?;
    convert(module, |tensor| {
        let data = tensor
            .detach()?
            .data("to_device")?
            .to_device(&device)
            .fx()?;
        Ok(Some(tensor.with_data(data)))
    })
}

/// Puts what `change` makes of them, without a gradient, in the place of a module's tensors; `None` leaves one as it is.
fn convert(
    module: &mut (impl Component + ?Sized),
    change: impl Fn(&Tensor) -> Result<Option<Tensor>>,
) -> Result<()> {
    struct Convert<F> {
        change: F,
        /// New tensors by the id of the old one, so that tied ones stay tied.
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl<F: Fn(&Tensor) -> Result<Option<Tensor>>> Convert<F> {
        fn changed(&self, tensor: &Tensor) -> Result<Option<Tensor>> {
            let is_parameter = tensor.candle()?.is_variable();
            match (self.change)(tensor)? {
                Some(changed) if is_parameter => changed.into_parameter().map(Some),
                changed => Ok(changed),
            }
        }
    }
    impl<F: Fn(&Tensor) -> Result<Option<Tensor>>> VisitorMut for Convert<F> {
        fn tensor(&mut self, _: &str, _: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn Any = tensor;
            let Some(tensor) = any.downcast_mut::<Tensor>() else {
                return;
            };
            if self.problem.is_err() {
                return;
            }
            let id = tensor.object_id();
            let known = id.and_then(|id| self.done.get(&id).cloned());
            match known.map_or_else(|| self.changed(tensor), |known| Ok(Some(known))) {
                Ok(None) => {}
                Ok(Some(changed)) => {
                    if let Some(id) = id {
                        self.done.insert(id, changed.clone());
                    }
                    *tensor = changed;
                }
                Err(error) => self.problem = Err(error),
            }
        }
    }
    let mut visitor = Convert {
        change,
        done: HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut visitor);
    visitor.problem
}
