//! A module's element type, changed for all its parameters and buffers at once.

use std::any::Any;
use std::collections::HashMap;

use fx_core::module::{Component, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;
use fx_core::value::DType;
use fx_core::{Error, Result};

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
    struct Cast {
        dtype: DType,
        /// New tensors by the id of the old one, so that tied ones stay tied.
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl Cast {
        fn cast(&self, tensor: &Tensor) -> Result<Tensor> {
            let is_parameter = tensor.candle()?.is_variable();
            let cast = tensor.detach()?.cast(self.dtype)?;
            if is_parameter {
                cast.into_parameter()
            } else {
                Ok(cast)
            }
        }
    }
    impl VisitorMut for Cast {
        fn tensor(&mut self, _: &str, _: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn Any = tensor;
            let Some(tensor) = any.downcast_mut::<Tensor>() else {
                return;
            };
            if self.problem.is_err() || !tensor.dtype().is_ok_and(|d| d.is_floating_point()) {
                return;
            }
            let id = tensor.object_id();
            let known = id.and_then(|id| self.done.get(&id).cloned());
            match known.map_or_else(|| self.cast(tensor), Ok) {
                Ok(cast) => {
                    if let Some(id) = id {
                        self.done.insert(id, cast.clone());
                    }
                    *tensor = cast;
                }
                Err(error) => self.problem = Err(error),
            }
        }
    }
    let mut visitor = Cast {
        dtype,
        done: HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut visitor);
    visitor.problem
}
