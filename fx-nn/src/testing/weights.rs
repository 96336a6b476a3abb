//! Drawn weights of a module.
//!
//! Invariant: what has a gradient is a parameter again, and integers stay as they are.

use fx_core::Result;
use fx_core::module::{Module, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;
use fx_core::value::DType;

use super::draw::Draw;
use crate::tensor::Tensor;

impl Draw {
    /// Draws a module's floats, parameters and buffers, in this case's element type: normal ones,
    /// and variances above zero.
    ///
    /// # Errors
    /// Returns the errors of making a tensor.
    pub fn weights(&mut self, module: &mut dyn Module) -> Result<()> {
        struct Weights<'d> {
            draw: &'d mut Draw,
            problem: Result<()>,
        }
        impl Weights<'_> {
            fn drawn(&mut self, path: &str, x: &Tensor) -> Result<Tensor> {
                let dtype = match self.draw.dtype() {
                    dtype if dtype.is_floating_point() => dtype,
                    _ => DType::F32,
                };
                if !x.dtype()?.is_floating_point() {
                    return Ok(x.clone());
                }
                let count: usize = x.dims()?.iter().product();
                let numbers = (0..count).map(|_| match path.ends_with("var") {
                    true => 0.1 + 2.0 * self.draw.share(),
                    false => 3.0 * self.draw.share() - 1.5,
                });
                let drawn =
                    Tensor::from_vec(numbers.collect::<Vec<f64>>(), x.dims()?)?.to_dtype(dtype)?;
                match x.requires_grad()? {
                    true => drawn.into_parameter(),
                    false => Ok(drawn),
                }
            }
        }
        impl VisitorMut for Weights<'_> {
            fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
                let any: &mut dyn std::any::Any = tensor;
                let Some(tensor) = any.downcast_mut::<Tensor>() else {
                    return;
                };
                match self.drawn(path, tensor) {
                    Ok(drawn) => *tensor = drawn,
                    Err(error) => self.problem = Err(error),
                }
            }
        }
        let mut visitor = Weights {
            draw: self,
            problem: Ok(()),
        };
        walk_mut(module, &mut visitor);
        visitor.problem
    }
}
