//! `Softshrink`: elements moved towards 0.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x moved by `lambd` towards 0, and 0 within it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.25, 0.75], 3)?;
/// assert_eq!(nn::Softshrink::default().forward(&x)?.to_vec()?, [-1.5, 0.0, 0.25]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Softshrink {
    /// How far elements are moved: 0.5.
    pub lambd: f64,
}

impl Default for Softshrink {
    /// PyTorch's numbers.
    fn default() -> Self {
        Softshrink { lambd: 0.5 }
    }
}

options!(Softshrink { lambd: f64 });

#[trace(leaf, path = "fx_nn::nn::Softshrink")]
impl Softshrink {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float, or `lambd` is below 0.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::softshrink(x, self.lambd)
    }
}
