//! Products with a number, which keep the sign of zero.

use candle_core::{Result, Tensor};

/// A tensor times a number.
pub trait Scale {
    /// `self * by`, of the same type: candle's product adds a number, and of all numbers only -0 changes no zero.
    ///
    /// # Errors
    /// Returns only candle's errors.
    fn times(&self, by: f64) -> Result<Tensor>;
}

impl Scale for Tensor {
    #[inline]
    fn times(&self, by: f64) -> Result<Tensor> {
        self.affine(by, -0.0)
    }
}
