//! `Mish`: x · tanh(log(1 + exp(x))).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x · tanh(log(1 + exp(x))).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0], 2)?;
/// let y = nn::Mish::new().forward(&x)?.to_vec()?;
/// assert!(y[0] == 0.0 && (y[1] - 0.865_098_388_267).abs() < 1e-9);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Mish {
    tag: Tag,
}

impl Mish {
    /// The layer.
    pub fn new() -> Self {
        Mish::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Mish")]
impl Mish {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::mish(x)
    }
}
