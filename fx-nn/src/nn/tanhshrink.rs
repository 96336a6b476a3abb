//! `Tanhshrink`: x - tanh(x).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x - tanh(x).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0], 2)?;
/// assert_eq!(nn::Tanhshrink::new().forward(&x)?.to_vec()?, [0.0, 1.0 - 1f64.tanh()]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Tanhshrink {
    tag: Tag,
}

impl Tanhshrink {
    /// The layer.
    pub fn new() -> Self {
        Tanhshrink::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Tanhshrink")]
impl Tanhshrink {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error for bool tensors.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::tanhshrink(x)
    }
}
