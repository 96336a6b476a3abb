//! `RReLU`: slopes below 0 that are drawn in training.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x where it is above 0, elsewhere times a slope: in training drawn for each element between `lower` and `upper`, else
/// the middle of both.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::RReLU { lower: 0.25, upper: 0.75, ..nn::RReLU::default() };
/// let x = Tensor::from_vec(vec![-4.0f32, 4.0], 2)?;
/// let drawn = layer.forward(&x)?.to_vec()?;
/// assert!((-3.0..=-1.0).contains(&drawn[0]) && drawn[1] == 4.0);
/// layer.eval();
/// assert_eq!(layer.forward(&x)?.to_vec()?, [-2.0, 4.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct RReLU {
    /// The least slope: 1 / 8.
    pub lower: f64,
    /// The largest slope: 1 / 3.
    pub upper: f64,
    /// Whether slopes are drawn.
    pub training: bool,
}

impl Default for RReLU {
    /// PyTorch's numbers, in training mode.
    fn default() -> Self {
        RReLU {
            lower: 1.0 / 8.0,
            upper: 1.0 / 3.0,
            training: true,
        }
    }
}

impl RReLU {
    fn draws(&self) -> bool {
        self.training
    }
}

options!(RReLU {
    lower: f64,
    upper: f64
});

#[trace(leaf, impure = draws, path = "fx_nn::nn::RReLU")]
impl RReLU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float, or `lower` is above `upper`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::rrelu(x, self.lower, self.upper, self.training)
    }
}
