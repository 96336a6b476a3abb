//! `Dropout`: random zeros in training.

use fx_core::{Error, Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// Zeroes elements with probability `p` in training and scales the rest by 1 / (1 - p).
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Dropout::new(0.75)?;
/// let x = Tensor::ones(1000)?;
/// // In training an element is zero, or made up for those that are.
/// let y = layer.forward(&x)?.to_vec()?;
/// assert!(y.iter().all(|v| *v == 0.0 || *v == 4.0));
/// let kept = y.iter().filter(|v| **v == 4.0).count();
/// assert!((150..350).contains(&kept));
/// layer.eval();
/// assert_eq!(layer.forward(&x)?.to_vec()?, x.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Dropout {
    /// The probability of a zero.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl Dropout {
    /// A layer in training mode.
    ///
    /// # Errors
    /// Returns an error if `p` is not in [0, 1].
    pub fn new(p: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::msg(format_args!(
                "dropout: p is a probability in [0, 1], not {p}"
            )));
        }
        Ok(Dropout { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::Dropout")]
impl Dropout {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout(x, self.p, self.training)
    }
}
