//! MobileNetV2 (Sandler et al. 2018), torchvision's `mobilenet_v2`.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// A convolution, batch norm and ReLU6.
fn conv_norm_act(
    c_in: usize,
    c_out: usize,
    kernel: usize,
    stride: usize,
    groups: usize,
) -> Result<nn::Sequential> {
    let conv = nn::Conv2d::grouped(c_in, c_out, kernel, groups)?;
    Ok(nn::Sequential::new()
        .push(conv.stride(stride).padding(kernel / 2).bias(false))
        .push(nn::BatchNorm2d::new(c_out)?)
        .push(nn::ReLU6::new()))
}

/// Expands the channels, convolves each alone, and reduces them again; with a residual connection
/// if the shape stays.
#[derive(Module, Clone, Debug)]
pub struct InvertedResidual {
    /// The layers.
    pub conv: nn::Sequential,
    /// Whether the input is added.
    pub use_res_connect: bool,
}

impl InvertedResidual {
    /// A block that expands the channels `expand_ratio` times in between.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(c_in: usize, c_out: usize, stride: usize, expand_ratio: usize) -> Result<Self> {
        let hidden = c_in * expand_ratio;
        let mut conv = nn::Sequential::new();
        if expand_ratio != 1 {
            conv = conv.push(conv_norm_act(c_in, hidden, 1, 1, 1)?);
        }
        let conv = conv
            .push(conv_norm_act(hidden, hidden, 3, stride, hidden)?)
            .push(nn::Conv2d::new(hidden, c_out, 1)?.bias(false))
            .push(nn::BatchNorm2d::new(c_out)?);
        Ok(InvertedResidual {
            conv,
            use_res_connect: stride == 1 && c_in == c_out,
        })
    }
}

#[trace]
impl InvertedResidual {
    /// Applies the block.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.conv.forward(x)?;
        if self.use_res_connect { x + y } else { Ok(y) }
    }
}

/// A network of inverted residuals over images `[N, 3, H, W]`; returns scores `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct MobileNetV2 {
    /// A convolution, 17 inverted residuals, a convolution.
    pub features: nn::Sequential,
    /// Dropout and a linear layer.
    pub classifier: nn::Sequential,
}

/// MobileNetV2 in training mode: 3.5 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn mobilenet_v2(num_classes: usize) -> Result<MobileNetV2> {
    // Expansion, channels, blocks and the stride of the first.
    let settings = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ];
    let mut features = nn::Sequential::new().push(conv_norm_act(3, 32, 3, 2, 1)?);
    let mut channels = 32;
    for (expansion, c_out, blocks, first_stride) in settings {
        for block in 0..blocks {
            let stride = if block == 0 { first_stride } else { 1 };
            features = features.push(InvertedResidual::new(channels, c_out, stride, expansion)?);
            channels = c_out;
        }
    }
    Ok(MobileNetV2 {
        features: features.push(conv_norm_act(channels, 1280, 1, 1, 1)?),
        classifier: nn::Sequential::new()
            .push(nn::Dropout::new(0.2)?)
            .push(nn::Linear::new(1280, num_classes)?),
    })
}

#[trace]
impl MobileNetV2 {
    /// Scores of the classes.
    ///
    /// # Errors
    /// Returns an error if `x` is not `[N, 3, H, W]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.features.forward(x)?;
        let x = ops::adaptive_avg_pool2d(&x, (1, 1))?;
        let x = ops::flatten(&x, 1, -1)?;
        self.classifier.forward(&x)
    }
}
