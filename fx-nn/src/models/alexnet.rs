//! AlexNet (Krizhevsky 2014), torchvision's `alexnet`.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Five convolutions, then a classifier of three linear layers.
#[derive(Module, Clone, Debug)]
pub struct AlexNet {
    /// Convolution, ReLU and pooling.
    pub features: nn::Sequential,
    /// To 6x6 pixels.
    pub avgpool: nn::AdaptiveAvgPool2d,
    /// Three linear layers with dropout.
    pub classifier: nn::Sequential,
}

/// AlexNet in training mode: 61.1 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
///
/// ```
/// use fx_nn::prelude::*;
/// let gm = symbolic_trace(&fx_nn::models::alexnet::alexnet(10)?)?;
/// assert_eq!(gm.graph().len(), 24);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn alexnet(num_classes: usize) -> Result<AlexNet> {
    let pool = || nn::MaxPool2d::new(3).stride(2);
    let features = nn::Sequential::new()
        .push(nn::Conv2d::new(3, 64, 11)?.stride(4).padding(2))
        .push(nn::ReLU::new())
        .push(pool())
        .push(nn::Conv2d::new(64, 192, 5)?.padding(2))
        .push(nn::ReLU::new())
        .push(pool())
        .push(nn::Conv2d::new(192, 384, 3)?.padding(1))
        .push(nn::ReLU::new())
        .push(nn::Conv2d::new(384, 256, 3)?.padding(1))
        .push(nn::ReLU::new())
        .push(nn::Conv2d::new(256, 256, 3)?.padding(1))
        .push(nn::ReLU::new())
        .push(pool());
    let classifier = nn::Sequential::new()
        .push(nn::Dropout::new(0.5)?)
        .push(nn::Linear::new(256 * 6 * 6, 4096)?)
        .push(nn::ReLU::new())
        .push(nn::Dropout::new(0.5)?)
        .push(nn::Linear::new(4096, 4096)?)
        .push(nn::ReLU::new())
        .push(nn::Linear::new(4096, num_classes)?);
    Ok(AlexNet {
        features,
        avgpool: nn::AdaptiveAvgPool2d::new(6),
        classifier,
    })
}

#[trace]
impl AlexNet {
    /// Scores `[N, classes]` of images `x` `[N, 3, H, W]`.
    ///
    /// # Errors
    /// Returns an error if `x` has a different shape, or images of fewer than 63 pixels per side.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.features.forward(x)?;
        let x = self.avgpool.forward(&x)?;
        let x = ops::flatten(&x, 1, -1)?;
        self.classifier.forward(&x)
    }
}
