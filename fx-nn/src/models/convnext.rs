//! ConvNeXt (Liu et al. 2022), torchvision's `convnext_tiny`.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// A layer norm over the channels of images `[N, C, H, W]`.
#[derive(Module, Clone, Debug)]
pub struct LayerNorm2d {
    /// The factors of the channels, `[C]`.
    pub weight: Tensor,
    /// Added to the channels, `[C]`.
    pub bias: Tensor,
}

impl LayerNorm2d {
    fn new(channels: usize) -> Result<Self> {
        Ok(LayerNorm2d {
            weight: Tensor::ones(channels)?.into_parameter()?,
            bias: Tensor::zeros(channels)?.into_parameter()?,
        })
    }
}

#[trace(path = "fx_nn::models::convnext::LayerNorm2d")]
impl LayerNorm2d {
    /// Applies the norm.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.permute([0, 2, 3, 1])?;
        let channels = self.weight.dims()?;
        let x = ops::layer_norm(&x, channels, Some(&self.weight), Some(&self.bias), 1e-6)?;
        x.permute([0, 3, 1, 2])
    }
}

/// The dims of a tensor in another order.
#[derive(Module, Clone, Debug)]
pub struct Permute {
    dims: [i64; 4],
}

#[trace(path = "fx_nn::models::convnext::Permute")]
impl Permute {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.permute(self.dims)
    }
}

/// Zeroes samples of a batch with probability `p` in training, and scales the others by 1 / (1 - p).
#[derive(Module, Clone, Debug)]
pub struct StochasticDepth {
    /// The probability of a zero.
    pub p: f64,
    /// Whether anything is dropped.
    pub training: bool,
}

impl StochasticDepth {
    fn draws(&self) -> bool {
        self.training && self.p > 0.0
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::models::convnext::StochasticDepth")]
impl StochasticDepth {
    /// Applies the layer to `[N, ..]`.
    ///
    /// # Errors
    /// Returns an error if `p` was set outside [0, 1].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::stochastic_depth(x, self.p, "row", self.training)
    }
}

/// A depthwise convolution and two linear layers over the channels, scaled and added to the input.
#[derive(Module, Clone, Debug)]
pub struct CNBlock {
    /// The factors of the channels, `[C, 1, 1]`.
    pub layer_scale: Tensor,
    /// Convolution, layer norm, linear, GELU, linear; all but the convolution with the channels last.
    pub block: nn::Sequential,
    /// Drops the block for some samples.
    pub stochastic_depth: StochasticDepth,
}

impl CNBlock {
    /// A block over images of so many channels; in training it is dropped with the probability `drop`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(channels: usize, drop: f64) -> Result<Self> {
        let norm = nn::LayerNorm {
            eps: 1e-6,
            ..nn::LayerNorm::new(channels)?
        };
        let factors = vec![1e-6f32; channels];
        Ok(CNBlock {
            layer_scale: Tensor::from_vec(factors, (channels, 1, 1))?.into_parameter()?,
            block: nn::Sequential::new()
                .push(nn::Conv2d::grouped(channels, channels, 7, channels)?.padding(3))
                .push(Permute { dims: [0, 2, 3, 1] })
                .push(norm)
                .push(nn::Linear::new(channels, 4 * channels)?)
                .push(nn::GELU::new())
                .push(nn::Linear::new(4 * channels, channels)?)
                .push(Permute { dims: [0, 3, 1, 2] }),
            stochastic_depth: StochasticDepth {
                p: drop,
                training: true,
            },
        })
    }
}

#[trace]
impl CNBlock {
    /// Applies the block.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = (&self.layer_scale * self.block.forward(x)?)?;
        self.stochastic_depth.forward(&y)? + x
    }
}

/// A network of blocks in four stages over images `[N, 3, H, W]`; returns scores `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct ConvNeXt {
    /// Patches of 4x4 pixels, then the stages with a convolution of stride 2 between them.
    pub features: nn::Sequential,
    /// Layer norm, flatten, linear.
    pub classifier: nn::Sequential,
}

impl ConvNeXt {
    /// A network with stages of these channels and numbers of blocks, in training mode. The last
    /// block is dropped with the probability `stochastic_depth`, those before it in proportion.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(
        stages: [(usize, usize); 4],
        stochastic_depth: f64,
        num_classes: usize,
    ) -> Result<Self> {
        let blocks: usize = stages.iter().map(|(_, blocks)| blocks).sum();
        let [(first, _), .., (last, _)] = stages;
        let stem = nn::Sequential::new()
            .push(nn::Conv2d::new(3, first, 4)?.stride(4))
            .push(LayerNorm2d::new(first)?);
        let mut features = nn::Sequential::new().push(stem);
        let mut done = 0;
        for (i, (channels, count)) in stages.into_iter().enumerate() {
            let mut stage = nn::Sequential::new();
            for _ in 0..count {
                let share = done as f64 / (blocks.saturating_sub(1)).max(1) as f64;
                stage = stage.push(CNBlock::new(channels, stochastic_depth * share)?);
                done += 1;
            }
            features = features.push(stage);
            if let Some((next, _)) = stages.get(i + 1) {
                features = features.push(
                    nn::Sequential::new()
                        .push(LayerNorm2d::new(channels)?)
                        .push(nn::Conv2d::new(channels, *next, 2)?.stride(2)),
                );
            }
        }
        Ok(ConvNeXt {
            features,
            classifier: nn::Sequential::new()
                .push(LayerNorm2d::new(last)?)
                .push(nn::Flatten::default())
                .push(nn::Linear::new(last, num_classes)?),
        })
    }
}

/// ConvNeXt-T in training mode: 28.6 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn convnext_tiny(num_classes: usize) -> Result<ConvNeXt> {
    ConvNeXt::new([(96, 3), (192, 3), (384, 9), (768, 3)], 0.1, num_classes)
}

#[trace]
impl ConvNeXt {
    /// Scores of the classes.
    ///
    /// # Errors
    /// Returns an error if `x` is not `[N, 3, H, W]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.features.forward(x)?;
        let x = ops::adaptive_avg_pool2d(&x, (1, 1))?;
        self.classifier.forward(&x)
    }
}
