//! `GELU`: x weighted by how much of a normal distribution is below it.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x · Φ(x), exact or by PyTorch's approximation with tanh.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.0, 2.0], 3)?;
/// let y = nn::GELU::new().forward(&x)?;
/// let expected = Tensor::from_vec(vec![-0.158655f32, 0.0, 1.954500], 3)?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// let y = nn::GELU::tanh().forward(&x)?;
/// let expected = Tensor::from_vec(vec![-0.158808f32, 0.0, 1.954598], 3)?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct GELU {
    /// `"none"` or `"tanh"`.
    pub approximate: String,
}

impl GELU {
    /// The exact function.
    pub fn new() -> Self {
        GELU {
            approximate: "none".into(),
        }
    }

    /// The approximation 0.5 x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³))).
    pub fn tanh() -> Self {
        GELU {
            approximate: "tanh".into(),
        }
    }
}

impl Default for GELU {
    fn default() -> Self {
        GELU::new()
    }
}

options!(GELU { approximate: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::GELU")]
impl GELU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if `approximate` is neither word, or the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::gelu(x, &self.approximate)
    }
}
