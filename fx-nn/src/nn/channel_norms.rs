//! Layers that normalise the channels of each sample, by themselves and by their neighbours.

use fx_core::{Error, Module, Result, trace};

use super::batch_norm2d::{count_batch, no_batches};
use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// Writes `new` and the options of a layer with the fields of instance norms.
macro_rules! instance_norm {
    ($layer:ident) => {
        impl $layer {
            /// A layer without parameters and running statistics, for so many channels.
            pub fn new(num_features: usize) -> Self {
                $layer {
                    num_features,
                    weight: None,
                    bias: None,
                    running_mean: None,
                    running_var: None,
                    num_batches_tracked: None,
                    eps: 1e-5,
                    momentum: 0.1,
                    training: true,
                }
            }

            /// Whether the layer has weights of one and biases of zero: no.
            ///
            /// # Errors
            /// Returns an error if they do not fit into memory.
            pub fn affine(mut self, affine: bool) -> Result<Self> {
                let shape = [self.num_features];
                let of = |value| {
                    affine
                        .then(|| parameter::constant(&shape, value))
                        .transpose()
                };
                (self.weight, self.bias) = (of(1.0)?, of(0.0)?);
                Ok(self)
            }

            /// Whether the layer has running statistics, which evaluation uses: no.
            ///
            /// # Errors
            /// Returns an error if they do not fit into memory.
            pub fn track_running_stats(mut self, tracks: bool) -> Result<Self> {
                let channels = self.num_features;
                self.running_mean = tracks.then(|| Tensor::zeros(channels)).transpose()?;
                self.running_var = tracks.then(|| Tensor::ones(channels)).transpose()?;
                self.num_batches_tracked = tracks.then(no_batches).transpose()?;
                Ok(self)
            }

            fn updates_statistics(&self) -> bool {
                self.training && self.running_mean.is_some()
            }
        }

        options!($layer {
            eps: f64,
            momentum: f64
        });
        kept!($layer { bias: [bias] });
    };
}

/// Each channel of each sample of rows `[N, C, L]` normalised by its own statistics, or by running ones in
/// evaluation where those are tracked.
#[derive(Module, Clone, Debug)]
pub struct InstanceNorm1d {
    /// Number of channels.
    pub num_features: usize,
    /// `[channels]`.
    pub weight: Option<Tensor>,
    /// `[channels]`.
    pub bias: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_mean: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_var: Option<Tensor>,
    /// How many batches the running statistics have seen: one `int64`.
    #[module(buffer)]
    pub num_batches_tracked: Option<Tensor>,
    /// Added to the variance: 1e-5.
    pub eps: f64,
    /// How far the running statistics move towards a batch's: 0.1.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

instance_norm!(InstanceNorm1d);

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm1d")]
impl InstanceNorm1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit, or one has a single element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let known = fx_core::tensor::Object::shape(x).map(<[usize]>::len);
        if known.is_some_and(|rank| rank != 3) {
            return Err(Error::msg(format_args!(
                "instance_norm1d: input {x:?} must be [N, C, L]: unsqueeze(0) makes a batch of one"
            )));
        }
        let y = ops::instance_norm(
            x,
            self.running_mean.as_ref(),
            self.running_var.as_ref(),
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.training || self.running_mean.is_none(),
            self.momentum,
            self.eps,
        )?;
        if self.updates_statistics() {
            count_batch(self.num_batches_tracked.as_ref())?;
        }
        Ok(y)
    }
}

/// Each channel of each sample of images `[N, C, H, W]` normalised by its own statistics, or by running ones in
/// evaluation where those are tracked.
#[derive(Module, Clone, Debug)]
pub struct InstanceNorm2d {
    /// Number of channels.
    pub num_features: usize,
    /// `[channels]`.
    pub weight: Option<Tensor>,
    /// `[channels]`.
    pub bias: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_mean: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_var: Option<Tensor>,
    /// How many batches the running statistics have seen: one `int64`.
    #[module(buffer)]
    pub num_batches_tracked: Option<Tensor>,
    /// Added to the variance: 1e-5.
    pub eps: f64,
    /// How far the running statistics move towards a batch's: 0.1.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

instance_norm!(InstanceNorm2d);

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm2d")]
impl InstanceNorm2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit, or one has a single element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let known = fx_core::tensor::Object::shape(x).map(<[usize]>::len);
        if known.is_some_and(|rank| rank != 4) {
            return Err(Error::msg(format_args!(
                "instance_norm2d: input {x:?} must be [N, C, H, W]: unsqueeze(0) makes a batch of one"
            )));
        }
        let y = ops::instance_norm(
            x,
            self.running_mean.as_ref(),
            self.running_var.as_ref(),
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.training || self.running_mean.is_none(),
            self.momentum,
            self.eps,
        )?;
        if self.updates_statistics() {
            count_batch(self.num_batches_tracked.as_ref())?;
        }
        Ok(y)
    }
}

/// Each channel of each sample of volumes `[N, C, D, H, W]` normalised by its own statistics, or by running ones in
/// evaluation where those are tracked.
#[derive(Module, Clone, Debug)]
pub struct InstanceNorm3d {
    /// Number of channels.
    pub num_features: usize,
    /// `[channels]`.
    pub weight: Option<Tensor>,
    /// `[channels]`.
    pub bias: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_mean: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_var: Option<Tensor>,
    /// How many batches the running statistics have seen: one `int64`.
    #[module(buffer)]
    pub num_batches_tracked: Option<Tensor>,
    /// Added to the variance: 1e-5.
    pub eps: f64,
    /// How far the running statistics move towards a batch's: 0.1.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

instance_norm!(InstanceNorm3d);

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm3d")]
impl InstanceNorm3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit, or one has a single element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let known = fx_core::tensor::Object::shape(x).map(<[usize]>::len);
        if known.is_some_and(|rank| rank != 5) {
            return Err(Error::msg(format_args!(
                "instance_norm3d: input {x:?} must be [N, C, D, H, W]: unsqueeze(0) makes a batch of one"
            )));
        }
        let y = ops::instance_norm(
            x,
            self.running_mean.as_ref(),
            self.running_var.as_ref(),
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.training || self.running_mean.is_none(),
            self.momentum,
            self.eps,
        )?;
        if self.updates_statistics() {
            count_batch(self.num_batches_tracked.as_ref())?;
        }
        Ok(y)
    }
}

/// x / (k + alpha · the mean of the squares of `size` channels around it)^beta, for `[N, C, ..]`.
#[derive(Module, Clone, Debug)]
pub struct LocalResponseNorm {
    /// How many channels.
    pub size: usize,
    /// The factor of the mean.
    pub alpha: f64,
    /// The power.
    pub beta: f64,
    /// Added to it.
    pub k: f64,
}

impl LocalResponseNorm {
    /// alpha 1e-4, beta 0.75, k 1.
    pub fn new(size: usize) -> Self {
        LocalResponseNorm {
            size,
            alpha: 1e-4,
            beta: 0.75,
            k: 1.0,
        }
    }
}

options!(LocalResponseNorm {
    alpha: f64,
    beta: f64,
    k: f64
});

#[trace(leaf, path = "fx_nn::nn::LocalResponseNorm")]
impl LocalResponseNorm {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::local_response_norm(x, self.size, self.alpha, self.beta, self.k)
    }
}
