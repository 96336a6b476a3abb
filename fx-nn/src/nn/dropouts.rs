//! Layers that drop channels, samples, or elements of an activation with a lowest value.

use fx_core::{Error, Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// Zeroes whole channels of rows `[N, C, L]` (or `[C, L]`) with probability `p` in training and scales the rest.
#[derive(Module, Clone, Debug)]
pub struct Dropout1d {
    /// The probability.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl Dropout1d {
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
        Ok(Dropout1d { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::Dropout1d")]
impl Dropout1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1], or the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout1d(x, self.p, self.training)
    }
}

/// Zeroes whole channels of images `[N, C, H, W]` with probability `p` in training and scales the rest.
#[derive(Module, Clone, Debug)]
pub struct Dropout2d {
    /// The probability.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl Dropout2d {
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
        Ok(Dropout2d { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::Dropout2d")]
impl Dropout2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1], or the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout2d(x, self.p, self.training)
    }
}

/// Zeroes whole channels of volumes `[N, C, D, H, W]` with probability `p` in training and scales the rest.
#[derive(Module, Clone, Debug)]
pub struct Dropout3d {
    /// The probability.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl Dropout3d {
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
        Ok(Dropout3d { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::Dropout3d")]
impl Dropout3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1], or the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout3d(x, self.p, self.training)
    }
}

/// Puts elements at the lowest value of SELU with probability `p` in training, and keeps mean and variance.
#[derive(Module, Clone, Debug)]
pub struct AlphaDropout {
    /// The probability.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl AlphaDropout {
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
        Ok(AlphaDropout { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::AlphaDropout")]
impl AlphaDropout {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1], or the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::alpha_dropout(x, self.p, self.training)
    }
}

/// [`AlphaDropout`] of whole channels of `[N, C, ..]`.
#[derive(Module, Clone, Debug)]
pub struct FeatureAlphaDropout {
    /// The probability.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl FeatureAlphaDropout {
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
        Ok(FeatureAlphaDropout { p, training: true })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::FeatureAlphaDropout")]
impl FeatureAlphaDropout {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1], or the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::feature_alpha_dropout(x, self.p, self.training)
    }
}

/// Zeroes the whole input (`mode` `"batch"`) or whole samples (`"row"`) with probability `p` in training and scales the rest: torchvision's.
#[derive(Module, Clone, Debug)]
pub struct StochasticDepth {
    /// The probability.
    pub p: f64,
    /// `"batch"` or `"row"`.
    pub mode: String,
    /// Whether anything is dropped.
    pub training: bool,
}

impl StochasticDepth {
    /// A layer in training mode.
    ///
    /// # Errors
    /// Returns an error if `p` is not in [0, 1].
    pub fn new(p: f64, mode: &str) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::msg(format_args!(
                "dropout: p is a probability in [0, 1], not {p}"
            )));
        }
        Ok(StochasticDepth {
            p,
            mode: mode.to_string(),
            training: true,
        })
    }

    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::StochasticDepth")]
impl StochasticDepth {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `p` or `mode` was set to an invalid value.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::stochastic_depth(x, self.p, &self.mode, self.training)
    }
}
