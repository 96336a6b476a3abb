//! Residual networks (He et al. 2015), torchvision's `resnet18`, `resnet34` and `resnet50`.

use fx_core::module::{Component, Module};
use fx_core::trace::Forward;
use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Two 3x3 convolutions, with a residual connection.
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
    /// Adapts the residual connection if the shape changes.
    pub downsample: Option<nn::Sequential>,
}

fn conv(c_in: usize, c_out: usize, kernel: usize, stride: usize) -> Result<nn::Conv2d> {
    let conv = nn::Conv2d::new(c_in, c_out, kernel)?;
    Ok(conv.stride(stride).padding(kernel / 2).bias(false))
}

/// The residual connection of a block whose shape changes.
fn downsample(c_in: usize, c_out: usize, stride: usize) -> Result<Option<nn::Sequential>> {
    if stride == 1 && c_in == c_out {
        return Ok(None);
    }
    Ok(Some(
        nn::Sequential::new()
            .push(conv(c_in, c_out, 1, stride)?)
            .push(nn::BatchNorm2d::new(c_out)?),
    ))
}

/// A block of a residual network.
pub trait Block: Module + Component {
    /// The ratio of its output channels to its width.
    const EXPANSION: usize;

    /// A block of a width on `c_in` channels.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    fn new(c_in: usize, width: usize, stride: usize) -> Result<Self>
    where
        Self: Sized;
}

impl Block for BasicBlock {
    const EXPANSION: usize = 1;

    fn new(c_in: usize, c_out: usize, stride: usize) -> Result<Self> {
        Ok(BasicBlock {
            conv1: conv(c_in, c_out, 3, stride)?,
            bn1: nn::BatchNorm2d::new(c_out)?,
            relu: nn::ReLU::new(),
            conv2: conv(c_out, c_out, 3, 1)?,
            bn2: nn::BatchNorm2d::new(c_out)?,
            downsample: downsample(c_in, c_out, stride)?,
        })
    }
}

#[trace]
impl BasicBlock {
    /// Applies the block.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
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

/// A 3x3 convolution between two 1x1 ones, with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct Bottleneck {
    /// 1x1, to the block's width.
    pub conv1: nn::Conv2d,
    /// After `conv1`.
    pub bn1: nn::BatchNorm2d,
    /// 3x3; it has the stride.
    pub conv2: nn::Conv2d,
    /// After `conv2`.
    pub bn2: nn::BatchNorm2d,
    /// 1x1, to four times the width.
    pub conv3: nn::Conv2d,
    /// After `conv3`.
    pub bn3: nn::BatchNorm2d,
    /// Used three times.
    pub relu: nn::ReLU,
    /// Adapts the residual connection if the shape changes.
    pub downsample: Option<nn::Sequential>,
}

impl Block for Bottleneck {
    const EXPANSION: usize = 4;

    fn new(c_in: usize, width: usize, stride: usize) -> Result<Self> {
        let c_out = width * Self::EXPANSION;
        Ok(Bottleneck {
            conv1: conv(c_in, width, 1, 1)?,
            bn1: nn::BatchNorm2d::new(width)?,
            conv2: conv(width, width, 3, stride)?,
            bn2: nn::BatchNorm2d::new(width)?,
            conv3: conv(width, c_out, 1, 1)?,
            bn3: nn::BatchNorm2d::new(c_out)?,
            relu: nn::ReLU::new(),
            downsample: downsample(c_in, c_out, stride)?,
        })
    }
}

#[trace]
impl Bottleneck {
    /// Applies the block.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out = self.bn1.forward(&self.conv1.forward(x)?)?;
        let out = self.relu.forward(&out)?;
        let out = self.bn2.forward(&self.conv2.forward(&out)?)?;
        let out = self.relu.forward(&out)?;
        let out = self.bn3.forward(&self.conv3.forward(&out)?)?;
        let identity = match &self.downsample {
            Some(downsample) => downsample.forward(x)?,
            None => x.clone(),
        };
        self.relu.forward(&(out + identity)?)
    }
}

/// A residual network over images `[N, 3, H, W]`; returns scores `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct ResNet<B: Block = BasicBlock> {
    /// 7x7, stride 2.
    pub conv1: nn::Conv2d,
    /// After `conv1`.
    pub bn1: nn::BatchNorm2d,
    /// After `bn1`.
    pub relu: nn::ReLU,
    /// 3x3, stride 2.
    pub maxpool: nn::MaxPool2d,
    /// Width 64.
    pub layer1: Vec<B>,
    /// Width 128.
    pub layer2: Vec<B>,
    /// Width 256.
    pub layer3: Vec<B>,
    /// Width 512.
    pub layer4: Vec<B>,
    /// To one pixel.
    pub avgpool: nn::AdaptiveAvgPool2d,
    /// The classifier.
    pub fc: nn::Linear,
}

/// ResNet-18 in training mode: 11.7 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn resnet18(num_classes: usize) -> Result<ResNet> {
    ResNet::new([2, 2, 2, 2], num_classes)
}

/// ResNet-34 in training mode: 21.8 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn resnet34(num_classes: usize) -> Result<ResNet> {
    ResNet::new([3, 4, 6, 3], num_classes)
}

/// ResNet-50 in training mode: 25.6 million parameters for 1,000 classes.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn resnet50(num_classes: usize) -> Result<ResNet<Bottleneck>> {
    ResNet::new([3, 4, 6, 3], num_classes)
}

impl<B: Block> ResNet<B> {
    fn new(depths: [usize; 4], num_classes: usize) -> Result<Self> {
        let layer = |i: usize| -> Result<Vec<B>> {
            let width = 64 << i;
            let c_out = width * B::EXPANSION;
            let (c_in, stride) = if i == 0 { (64, 1) } else { (c_out / 2, 2) };
            (0..depths[i])
                .map(|b| match b {
                    0 => B::new(c_in, width, stride),
                    _ => B::new(c_out, width, 1),
                })
                .collect()
        };
        Ok(ResNet {
            conv1: conv(3, 64, 7, 2)?,
            bn1: nn::BatchNorm2d::new(64)?,
            relu: nn::ReLU::new(),
            maxpool: nn::MaxPool2d::new(3).stride(2).padding(1),
            layer1: layer(0)?,
            layer2: layer(1)?,
            layer3: layer(2)?,
            layer4: layer(3)?,
            avgpool: nn::AdaptiveAvgPool2d::new(1),
            fc: nn::Linear::new(512 * B::EXPANSION, num_classes)?,
        })
    }
}

#[trace]
impl<B: Block> ResNet<B> {
    /// Scores of the classes.
    ///
    /// # Errors
    /// Returns an error if `x` is not `[N, 3, H, W]`.
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
