//! The layers that a batch norm can be folded into.
//!
//! Invariant: only here is it known which axis of a layer's weights are its output channels.

use std::any::Any;

use fx_core::{GraphModule, Result};

use crate::nn;
use crate::tensor::Tensor;

/// w' and b'.
pub(super) type Weights = (Tensor, Tensor);

/// The layers that a batch norm can be folded into: each with the batch norm that can follow it, and
/// the number of dims of both results.
macro_rules! layers {
    ($($name:ident before $norm:ident, $rank:literal;)+) => {
        /// A layer that a batch norm can be folded into.
        pub(super) enum Layer<'m> {
            $($name(&'m nn::$name),)+
        }

        impl<'m> Layer<'m> {
            pub fn of(gm: &'m GraphModule, path: &str) -> Option<Self> {
                let any: &dyn Any = gm.attributes().module(path).ok()?;
                $(
                    if let Some(layer) = any.downcast_ref() {
                        return Some(Layer::$name(layer));
                    }
                )+
                None
            }

            pub fn name(&self) -> &'static str {
                match self {
                    $(Layer::$name(_) => stringify!($name),)+
                }
            }

            /// The batch norm that can follow it, and the number of dims of both results.
            pub fn follower(&self) -> (&'static str, usize) {
                match self {
                    $(Layer::$name(_) => (stringify!($norm), $rank),)+
                }
            }

            pub fn weights(&self) -> (&'m Tensor, Option<&'m Tensor>) {
                match *self {
                    $(Layer::$name(layer) => (&layer.weight, layer.bias.as_ref()),)+
                }
            }

            /// Replaces the layer at a path with a copy that has other weights of the same shapes.
            pub fn replace(gm: &mut GraphModule, path: &str, (weight, bias): Weights) -> Result<()> {
                let any: &dyn Any = gm.attributes().module(path)?;
                $(
                    if let Some(layer) = any.downcast_ref::<nn::$name>() {
                        let mut fused = layer.clone();
                        (fused.weight, fused.bias) = (weight, Some(bias));
                        return gm.set_submodule_of_same_shapes(path, fused);
                    }
                )+
                Ok(())
            }
        }
    };
}
layers! {
    Conv1d before BatchNorm1d, 3;
    Conv2d before BatchNorm2d, 4;
    Conv3d before BatchNorm3d, 5;
    ConvTranspose1d before BatchNorm1d, 3;
    ConvTranspose2d before BatchNorm2d, 4;
    ConvTranspose3d before BatchNorm3d, 5;
    Linear before BatchNorm1d, 2;
}

impl Layer<'_> {
    /// The blocks of channels of a transposed convolution, whose weights are
    /// `[in, out / groups, ..]`; those of other layers are `[out, ..]`.
    fn transposed_groups(&self) -> Option<usize> {
        match self {
            Layer::ConvTranspose1d(layer) => Some(layer.groups),
            Layer::ConvTranspose2d(layer) => Some(layer.groups),
            Layer::ConvTranspose3d(layer) => Some(layer.groups),
            _ => None,
        }
    }

    /// The number of channels that it gives.
    pub fn channels(&self) -> Result<Option<usize>> {
        let (weight, _) = self.weights();
        let dims = weight.dims()?;
        Ok(match self.transposed_groups() {
            Some(groups) => dims.get(1).map(|channels| channels.saturating_mul(groups)),
            None => dims.first().copied(),
        })
    }

    /// Its weights times a number for each output channel.
    pub fn scaled(
        &self,
        weight: &candle_core::Tensor,
        scale: &candle_core::Tensor,
    ) -> candle_core::Result<candle_core::Tensor> {
        let dims = weight.dims();
        let (split, rows) = match (self.transposed_groups(), dims) {
            (Some(groups), [inputs, outputs, kernel @ ..]) => {
                let kernel: usize = kernel.iter().product();
                let inputs = inputs.checked_div(groups).unwrap_or(0);
                let split = (groups, inputs, *outputs, kernel);
                (split, (groups, 1, *outputs, 1))
            }
            _ => {
                let outputs = scale.elem_count();
                let inputs = weight.elem_count().checked_div(outputs).unwrap_or(0);
                ((1, outputs, inputs, 1), (1, outputs, 1, 1))
            }
        };
        let split = weight.reshape(split)?;
        split.broadcast_mul(&scale.reshape(rows)?)?.reshape(dims)
    }
}
