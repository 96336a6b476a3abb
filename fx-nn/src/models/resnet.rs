//! Residual networks (He et al. 2015), torchvision's `resnet18` and `resnet34`.

use fx_core::{Module, Result, trace};

use crate::nn;
use crate::ops;
use crate::tensor::Tensor;

/// Two 3x3 convolutions and the way around them.
#[derive(Module, Clone, Debug)]
pub struct BasicBlock {
    /// The first convolution; it has the stride.
    pub conv1: nn::Conv2d,
    /// After `conv1`.
    pub bn1: nn::BatchNorm2d,
    /// Used twice.
    pub relu: nn::ReLU,
    /// The second convolution.
    pub conv2: nn::Conv2d,
    /// After `conv2`.
    pub bn2: nn::BatchNorm2d,
    /// Fits the way around where the shape changes.
    pub downsample: Option<nn::Sequential>,
}

fn conv(c_in: usize, c_out: usize, kernel: usize, stride: usize) -> Result<nn::Conv2d> {
    let options = nn::Conv2dOptions {
        stride: stride.into(),
        padding: (kernel / 2).into(),
        bias: false,
        ..Default::default()
    };
    nn::Conv2d::new(c_in, c_out, kernel, options)
}

impl BasicBlock {
    fn new(c_in: usize, c_out: usize, stride: usize) -> Result<Self> {
        let downsample = if stride != 1 || c_in != c_out {
            Some(
                nn::Sequential::new()
                    .push(conv(c_in, c_out, 1, stride)?)
                    .push(nn::BatchNorm2d::new(c_out)?),
            )
        } else {
            None
        };
        Ok(BasicBlock {
            conv1: conv(c_in, c_out, 3, stride)?,
            bn1: nn::BatchNorm2d::new(c_out)?,
            relu: nn::ReLU::new(),
            conv2: conv(c_out, c_out, 3, 1)?,
            bn2: nn::BatchNorm2d::new(c_out)?,
            downsample,
        })
    }
}

#[trace]
impl BasicBlock {
    /// Applies the block.
    ///
    /// # Errors
    /// When the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out = self
            .relu
            .forward(&self.bn1.forward(&self.conv1.forward(x)?)?)?;
        let out = self.bn2.forward(&self.conv2.forward(&out)?)?;
        let identity = match &self.downsample {
            Some(downsample) => downsample.forward(x)?,
            None => x.clone(),
        };
        self.relu.forward(&(out + identity)?)
    }
}

/// A residual network over images `[N, 3, H, W]`; gives scores `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct ResNet {
    /// 7x7, stride 2.
    pub conv1: nn::Conv2d,
    /// After `conv1`.
    pub bn1: nn::BatchNorm2d,
    /// After `bn1`.
    pub relu: nn::ReLU,
    /// 3x3, stride 2.
    pub maxpool: nn::MaxPool2d,
    /// 64 channels.
    pub layer1: Vec<BasicBlock>,
    /// 128 channels.
    pub layer2: Vec<BasicBlock>,
    /// 256 channels.
    pub layer3: Vec<BasicBlock>,
    /// 512 channels.
    pub layer4: Vec<BasicBlock>,
    /// To one pixel.
    pub avgpool: nn::AdaptiveAvgPool2d,
    /// The classifier.
    pub fc: nn::Linear,
}

/// ResNet-18 in training mode: 11.7 million parameters for 1,000 classes.
///
/// # Errors
/// When candle has no room for it.
pub fn resnet18(num_classes: usize) -> Result<ResNet> {
    ResNet::new([2, 2, 2, 2], num_classes)
}

/// ResNet-34 in training mode: 21.8 million parameters for 1,000 classes.
///
/// # Errors
/// When candle has no room for it.
pub fn resnet34(num_classes: usize) -> Result<ResNet> {
    ResNet::new([3, 4, 6, 3], num_classes)
}

impl ResNet {
    fn new(depths: [usize; 4], num_classes: usize) -> Result<Self> {
        let layer = |i: usize| -> Result<Vec<BasicBlock>> {
            let channels = 64 << i;
            let (c_in, stride) = if i == 0 { (64, 1) } else { (channels / 2, 2) };
            (0..depths[i])
                .map(|b| match b {
                    0 => BasicBlock::new(c_in, channels, stride),
                    _ => BasicBlock::new(channels, channels, 1),
                })
                .collect()
        };
        Ok(ResNet {
            conv1: conv(3, 64, 7, 2)?,
            bn1: nn::BatchNorm2d::new(64)?,
            relu: nn::ReLU::new(),
            maxpool: nn::MaxPool2d {
                stride: 2.into(),
                padding: 1.into(),
                ..nn::MaxPool2d::new(3)
            },
            layer1: layer(0)?,
            layer2: layer(1)?,
            layer3: layer(2)?,
            layer4: layer(3)?,
            avgpool: nn::AdaptiveAvgPool2d::new(1),
            fc: nn::Linear::new(512, num_classes)?,
        })
    }
}

#[trace]
impl ResNet {
    /// Scores of the classes.
    ///
    /// # Errors
    /// When `x` is not `[N, 3, H, W]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self
            .relu
            .forward(&self.bn1.forward(&self.conv1.forward(x)?)?)?;
        let mut x = self.maxpool.forward(&x)?;
        for layer in [&self.layer1, &self.layer2, &self.layer3, &self.layer4] {
            for block in layer {
                x = block.forward(&x)?;
            }
        }
        let x = self.avgpool.forward(&x)?;
        let x = ops::flatten(&x, 1, -1)?;
        self.fc.forward(&x)
    }
}
