//! Layers for patterns that leave a module open: small ones of every kind that fits tensors of one
//! number of features.

use fx_core::Result;
use fx_core::module::{ComponentExt, Module};

use super::draw::Draw;
use crate::nn;

type Make = fn(usize, &mut Draw) -> Result<Box<dyn Module>>;

macro_rules! layers {
    ($($make:expr),+ $(,)?) => {
        const LAYERS: &[Make] = &[$(|n, draw| {
            let make: fn(usize, &mut Draw) -> Result<_> = $make;
            Ok(Box::new(make(n, draw)?))
        }),+];
    };
}

layers! {
    |n, _| nn::Linear::new(n, n),
    |n, draw| nn::Conv1d::new(n, n, 1 + draw.below(3)),
    |n, draw| nn::Conv2d::new(n, n, 1 + draw.below(3)),
    |n, draw| nn::Conv3d::new(n, n, 1 + draw.below(2)),
    |n, draw| nn::ConvTranspose1d::new(n, n, 1 + draw.below(3)),
    |n, draw| nn::ConvTranspose2d::new(n, n, 1 + draw.below(3)),
    |n, _| nn::BatchNorm1d::new(n),
    |n, _| nn::BatchNorm2d::new(n),
    |n, _| nn::BatchNorm3d::new(n),
    |n, _| nn::LayerNorm::new(n),
    |n, _| nn::RMSNorm::new(n),
    |n, _| nn::GroupNorm::new(1, n),
    |n, _| nn::Embedding::new(9, n),
    |_, _| nn::PReLU::new(),
    |_, _| Ok(nn::ReLU::new()),
    |_, _| Ok(nn::ReLU6::new()),
    |_, draw| Ok(if draw.chance(0.5) { nn::GELU::new() } else { nn::GELU::tanh() }),
    |_, _| Ok(nn::SiLU::new()),
    |_, _| Ok(nn::Sigmoid::new()),
    |_, _| Ok(nn::Tanh::new()),
    |_, _| Ok(nn::Mish::new()),
    |_, _| Ok(nn::Hardswish::new()),
    |_, _| Ok(nn::LeakyReLU::default()),
    |_, _| Ok(nn::ELU::default()),
    |_, _| Ok(nn::Hardtanh::default()),
    |_, _| Ok(nn::Softplus::default()),
    |_, _| Ok(nn::Softmax::new(-1)),
    |_, _| Ok(nn::LogSoftmax::new(-1)),
    |_, draw| nn::Dropout::new(if draw.chance(0.3) { 0.0 } else { 0.5 }),
    |_, _| Ok(nn::Identity::new()),
    |_, _| Ok(nn::Flatten::new()),
    |_, _| Ok(nn::MaxPool2d::new(2)),
    |_, _| Ok(nn::AvgPool2d::new(2)),
    |_, _| Ok(nn::AdaptiveAvgPool2d::new(1)),
}

/// A layer that fits, with drawn weights; `sample` is one that the pattern itself has.
pub(super) fn layer(
    draw: &mut Draw,
    sample: Option<&dyn Module>,
    fits: &dyn Fn(&dyn Module) -> bool,
) -> Result<Option<Box<dyn Module>>> {
    let training = draw.chance(0.3);
    let ready = |mut layer: Box<dyn Module>, draw: &mut Draw| -> Result<Option<Box<dyn Module>>> {
        layer.set_training(training);
        if !fits(&*layer) {
            layer.set_training(!training);
        }
        if !fits(&*layer) {
            return Ok(None);
        }
        draw.weights(&mut *layer)?;
        Ok(Some(layer))
    };
    if let Some(sample) = sample
        && draw.chance(0.5)
        && let Some(layer) = ready(sample.duplicate_box(), draw)?
    {
        return Ok(Some(layer));
    }
    let features = draw.features();
    let first = draw.below(LAYERS.len());
    for at in 0..LAYERS.len() {
        let layer = LAYERS[(first + at) % LAYERS.len()](features, draw)?;
        if let Some(layer) = ready(layer, draw)? {
            return Ok(Some(layer));
        }
    }
    match sample {
        Some(sample) => ready(sample.duplicate_box(), draw),
        None => Ok(None),
    }
}
