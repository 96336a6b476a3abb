//! `Hardsigmoid`: a straight line between 0 and 1.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// 0 up to -3, 1 from 3 on, and x / 6 + 1 / 2 between.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-4.0f32, 0.0, 4.0], 3)?;
/// assert_eq!(nn::Hardsigmoid::new().forward(&x)?.to_vec()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Hardsigmoid {
    tag: Tag,
}

impl Hardsigmoid {
    /// The layer.
    pub fn new() -> Self {
        Hardsigmoid::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Hardsigmoid")]
impl Hardsigmoid {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::hardsigmoid(x)
    }
}
