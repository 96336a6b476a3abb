//! `Hardswish`: 0 up to -3, x from 3 on, a curve between.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// 0 up to -3, x from 3 on, and x · (x + 3) / 6 between.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-4.0f32, 0.0, 3.0, 4.0], 4)?;
/// assert_eq!(nn::Hardswish::new().forward(&x)?.to_vec()?, [0.0, 0.0, 3.0, 4.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Hardswish {
    tag: Tag,
}

impl Hardswish {
    /// The layer.
    pub fn new() -> Self {
        Hardswish::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Hardswish")]
impl Hardswish {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::hardswish(x)
    }
}
