//! `GELU`: x weighted by how much of a normal distribution is below it.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x · Φ(x), exact or by PyTorch's approximation with tanh.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 100.0], 2)?;
/// assert_eq!(nn::GELU::new().forward(&x)?.to_vec()?, [0.0, 100.0]);
/// assert_eq!(nn::GELU::tanh().approximate, "tanh");
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

#[trace(leaf, path = "fx_nn::nn::GELU")]
impl GELU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// When `approximate` is neither word, or the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::gelu(x, &self.approximate)
    }
}
