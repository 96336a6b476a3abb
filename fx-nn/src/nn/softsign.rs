//! `Softsign`: x / (1 + |x|).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x / (1 + |x|).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 3.0], 2)?;
/// assert_eq!(nn::Softsign::new().forward(&x)?.to_vec()?, [-0.5, 0.75]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Softsign {
    tag: Tag,
}

impl Softsign {
    /// The layer.
    pub fn new() -> Self {
        Softsign::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Softsign")]
impl Softsign {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error for bool tensors.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::softsign(x)
    }
}
