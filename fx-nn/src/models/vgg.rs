//! VGG (Simonyan & Zisserman 2014), torchvision's `vgg11_bn`.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Convolutions, then a classifier of three linear layers.
#[derive(Module, Clone, Debug)]
pub struct Vgg {
    /// Convolution, batch norm, ReLU and pooling.
    pub features: nn::Sequential,
    /// To 7x7 pixels.
    pub avgpool: nn::AdaptiveAvgPool2d,
    /// Three linear layers with dropout.
    pub classifier: nn::Sequential,
}

/// VGG-11 with batch norm, in training mode: 132.9 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn vgg11_bn(num_classes: usize) -> Result<Vgg> {
    let mut features = nn::Sequential::new();
    let mut channels = 3;
    // Channels of each convolution; `None` halves the image.
    let layers = [
        Some(64),
        None,
        Some(128),
        None,
        Some(256),
        Some(256),
        None,
        Some(512),
        Some(512),
        None,
        Some(512),
        Some(512),
        None,
    ];
    for layer in layers {
        features = match layer {
            None => features.push(nn::MaxPool2d::new(2)),
            Some(out) => {
                let conv = nn::Conv2d::new(channels, out, 3)?.padding(1);
                channels = out;
                features
                    .push(conv)
                    .push(nn::BatchNorm2d::new(out)?)
                    .push(nn::ReLU::new())
            }
        };
    }
    let classifier = nn::Sequential::new()
        .push(nn::Linear::new(512 * 7 * 7, 4096)?)
        .push(nn::ReLU::new())
        .push(nn::Dropout::new(0.5)?)
        .push(nn::Linear::new(4096, 4096)?)
        .push(nn::ReLU::new())
        .push(nn::Dropout::new(0.5)?)
        .push(nn::Linear::new(4096, num_classes)?);
    Ok(Vgg {
        features,
        avgpool: nn::AdaptiveAvgPool2d::new(7),
        classifier,
    })
}

#[trace]
impl Vgg {
    /// Scores `[N, classes]` of images `x` `[N, 3, H, W]`.
    ///
    /// # Errors
    /// Returns an error if `x` has a different shape.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.features.forward(x)?;
        let x = self.avgpool.forward(&x)?;
        let x = ops::flatten(&x, 1, -1)?;
        self.classifier.forward(&x)
    }
}
