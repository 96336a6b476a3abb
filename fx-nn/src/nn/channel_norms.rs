//! Layers that normalise the channels of each sample, by themselves and by their neighbours.

use fx_core::{Error, Module, Result, trace};

use super::batch_norm2d::{count_batch, no_batches};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// Each channel of each sample of rows `[N, C, L]` normalised by its own statistics, or by running ones in
/// evaluation where those are tracked.
#[derive(Module, Clone, Debug)]
pub struct InstanceNorm1d {
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
    /// Added to the variance.
    pub eps: f64,
    /// How far the running statistics move towards a batch's.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

impl InstanceNorm1d {
    /// A layer without parameters and running statistics: eps 1e-5, momentum 0.1.
    pub fn new() -> Self {
        InstanceNorm1d {
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

    /// The same, with weights of one and biases of zero.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn affine(channels: usize) -> Result<Self> {
        Ok(InstanceNorm1d {
            weight: Some(parameter::constant(&[channels], 1.0)?),
            bias: Some(parameter::constant(&[channels], 0.0)?),
            ..InstanceNorm1d::new()
        })
    }

    /// With running statistics, which evaluation uses.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn tracking(mut self, channels: usize) -> Result<Self> {
        self.running_mean = Some(Tensor::zeros(channels)?);
        self.running_var = Some(Tensor::ones(channels)?);
        self.num_batches_tracked = Some(no_batches()?);
        Ok(self)
    }

    fn updates_statistics(&self) -> bool {
        self.training && self.running_mean.is_some()
    }
}

impl Default for InstanceNorm1d {
    fn default() -> Self {
        InstanceNorm1d::new()
    }
}

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm1d")]
impl InstanceNorm1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit, or one has a single element.
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
    /// Added to the variance.
    pub eps: f64,
    /// How far the running statistics move towards a batch's.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

impl InstanceNorm2d {
    /// A layer without parameters and running statistics: eps 1e-5, momentum 0.1.
    pub fn new() -> Self {
        InstanceNorm2d {
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

    /// The same, with weights of one and biases of zero.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn affine(channels: usize) -> Result<Self> {
        Ok(InstanceNorm2d {
            weight: Some(parameter::constant(&[channels], 1.0)?),
            bias: Some(parameter::constant(&[channels], 0.0)?),
            ..InstanceNorm2d::new()
        })
    }

    /// With running statistics, which evaluation uses.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn tracking(mut self, channels: usize) -> Result<Self> {
        self.running_mean = Some(Tensor::zeros(channels)?);
        self.running_var = Some(Tensor::ones(channels)?);
        self.num_batches_tracked = Some(no_batches()?);
        Ok(self)
    }

    fn updates_statistics(&self) -> bool {
        self.training && self.running_mean.is_some()
    }
}

impl Default for InstanceNorm2d {
    fn default() -> Self {
        InstanceNorm2d::new()
    }
}

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm2d")]
impl InstanceNorm2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit, or one has a single element.
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
    /// Added to the variance.
    pub eps: f64,
    /// How far the running statistics move towards a batch's.
    pub momentum: f64,
    /// Whether the running statistics move.
    pub training: bool,
}

impl InstanceNorm3d {
    /// A layer without parameters and running statistics: eps 1e-5, momentum 0.1.
    pub fn new() -> Self {
        InstanceNorm3d {
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

    /// The same, with weights of one and biases of zero.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn affine(channels: usize) -> Result<Self> {
        Ok(InstanceNorm3d {
            weight: Some(parameter::constant(&[channels], 1.0)?),
            bias: Some(parameter::constant(&[channels], 0.0)?),
            ..InstanceNorm3d::new()
        })
    }

    /// With running statistics, which evaluation uses.
    ///
    /// # Errors
    /// When candle has no room for them.
    pub fn tracking(mut self, channels: usize) -> Result<Self> {
        self.running_mean = Some(Tensor::zeros(channels)?);
        self.running_var = Some(Tensor::ones(channels)?);
        self.num_batches_tracked = Some(no_batches()?);
        Ok(self)
    }

    fn updates_statistics(&self) -> bool {
        self.training && self.running_mean.is_some()
    }
}

impl Default for InstanceNorm3d {
    fn default() -> Self {
        InstanceNorm3d::new()
    }
}

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::InstanceNorm3d")]
impl InstanceNorm3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit, or one has a single element.
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

#[trace(leaf, path = "fx_nn::nn::LocalResponseNorm")]
impl LocalResponseNorm {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::local_response_norm(x, self.size, self.alpha, self.beta, self.k)
    }
}
