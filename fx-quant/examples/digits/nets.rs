//! Four small networks for images of 8 x 8 digits, and the images.

use std::path::{Path, PathBuf};

use fx_nn::prelude::*;

/// How many images are for training; the rest are for tests.
pub const TRAIN: usize = 1200;

/// The folder of the images and of recorded weights.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digits")
}

/// All images, `[N, 1, 8, 8]` in [0, 1], and their classes.
pub fn digits() -> Result<(Tensor, Vec<i64>)> {
    let bytes = std::fs::read(folder().join("digits.bin")).map_err(Error::other)?;
    let (mut pixels, mut classes) = (Vec::new(), Vec::new());
    for row in bytes.chunks_exact(65) {
        pixels.extend(row[..64].iter().map(|byte| f32::from(*byte) / 16.0));
        classes.push(i64::from(row[64]));
    }
    Ok((Tensor::from_vec(pixels, (classes.len(), 1, 8, 8))?, classes))
}

/// Some of the images, one after another.
pub fn part(images: &Tensor, from: usize, count: usize) -> Result<Tensor> {
    images.narrow(0, from as i64, count as i64)
}

/// The share of images whose class a graph finds.
pub fn accuracy(gm: &GraphModule, images: &Tensor, classes: &[i64]) -> Result<f64> {
    let found = classes_of(gm, images)?;
    let right = found.iter().zip(classes).filter(|(a, b)| a == b).count();
    Ok(right as f64 / classes.len() as f64)
}

/// The classes that a graph finds.
pub fn classes_of(gm: &GraphModule, images: &Tensor) -> Result<Vec<i64>> {
    let scores: Tensor = gm.forward(images)?;
    let classes = scores.argmax(-1, false)?.to_vec()?;
    Ok(classes.into_iter().map(|class| class as i64).collect())
}

/// Layers one after another.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    a: nn::Linear,
    b: nn::Linear,
    c: nn::Linear,
}

#[trace]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.a.forward(&x.flatten_from(1)?)?.relu()?;
        self.c.forward(&self.b.forward(&x)?.relu()?)
    }
}

/// A convolution with its batch norm.
#[derive(Module, Clone, Debug)]
struct ConvNorm {
    conv: nn::Conv2d,
    norm: nn::BatchNorm2d,
}

impl ConvNorm {
    fn new(conv: nn::Conv2d, channels: usize) -> Result<Self> {
        let norm = nn::BatchNorm2d::new(channels)?;
        Ok(ConvNorm {
            conv: conv.bias(false),
            norm,
        })
    }
}

#[trace]
impl ConvNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.norm.forward(&self.conv.forward(x)?)
    }
}

/// Two blocks with a sum around them.
#[derive(Module, Clone, Debug)]
pub struct Residual {
    stem: ConvNorm,
    a: ConvNorm,
    b: ConvNorm,
    down: ConvNorm,
    c: ConvNorm,
    d: ConvNorm,
    fc: nn::Linear,
}

#[trace]
impl Residual {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.stem.forward(x)?.relu()?;
        let y = self.b.forward(&self.a.forward(&x)?.relu()?)?;
        let x = (y + &x)?.relu()?;
        let x = self.down.forward(&x)?.relu()?;
        let y = self.d.forward(&self.c.forward(&x)?.relu()?)?;
        let x = (y + &x)?.relu()?;
        let x = ops::adaptive_avg_pool2d(&x, 1)?.flatten_from(1)?;
        self.fc.forward(&x)
    }
}

/// Convolutions of channels alone, and of pixels alone.
#[derive(Module, Clone, Debug)]
pub struct Depthwise {
    stem: ConvNorm,
    wide: Vec<ConvNorm>,
    narrow: Vec<ConvNorm>,
    fc: nn::Linear,
}

#[trace]
impl Depthwise {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = ops::relu6(&self.stem.forward(x)?)?;
        for (wide, narrow) in self.wide.iter().zip(&self.narrow) {
            x = ops::relu6(&wide.forward(&x)?)?;
            x = ops::relu6(&narrow.forward(&x)?)?;
        }
        let x = ops::adaptive_avg_pool2d(&x, 1)?.flatten_from(1)?;
        self.fc.forward(&x)
    }
}

/// Attention of two heads, and a part of two linear layers.
#[derive(Module, Clone, Debug)]
struct Block {
    norm1: nn::LayerNorm,
    q: nn::Linear,
    k: nn::Linear,
    v: nn::Linear,
    out: nn::Linear,
    norm2: nn::LayerNorm,
    up: nn::Linear,
    down: nn::Linear,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.norm1.forward(x)?;
        let heads = |y: Tensor| y.reshape((-1, 16, 2, 16))?.transpose(1, 2);
        let (q, k, v) = (
            heads(self.q.forward(&y)?)?,
            heads(self.k.forward(&y)?)?,
            heads(self.v.forward(&y)?)?,
        );
        let shares = (q.matmul(&k.transpose(-2, -1)?)? * 0.25)?.softmax(-1)?;
        let y = shares.matmul(&v)?.transpose(1, 2)?.reshape((-1, 16, 32))?;
        let x = (x + self.out.forward(&y)?)?;
        let y = ops::gelu(&self.up.forward(&self.norm2.forward(&x)?)?, "none")?;
        x + self.down.forward(&y)?
    }
}

/// A transformer over 16 patches of four pixels.
#[derive(Module, Clone, Debug)]
pub struct Vit {
    patches: nn::Conv2d,
    places: Tensor,
    blocks: Vec<Block>,
    norm: nn::LayerNorm,
    fc: nn::Linear,
}

#[trace]
impl Vit {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.patches.forward(x)?.flatten_from(2)?.transpose(1, 2)?;
        let mut x = (x + &self.places)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.fc.forward(&self.norm.forward(&x)?.mean(1)?)
    }
}

pub fn vit() -> Result<Vit> {
    let linear = |a: usize, b: usize| nn::Linear::new(a, b);
    let block = || {
        Ok::<_, Error>(Block {
            norm1: nn::LayerNorm::new(32)?,
            q: linear(32, 32)?,
            k: linear(32, 32)?,
            v: linear(32, 32)?,
            out: linear(32, 32)?,
            norm2: nn::LayerNorm::new(32)?,
            up: linear(32, 64)?,
            down: linear(64, 32)?,
        })
    };
    Ok(Vit {
        patches: nn::Conv2d::new(1, 32, 2)?.stride(2),
        places: (Tensor::randn((1, 16, 32))? * 0.1)?.into_parameter()?,
        blocks: vec![block()?, block()?],
        norm: nn::LayerNorm::new(32)?,
        fc: linear(32, 10)?,
    })
}

pub fn mlp() -> Result<Mlp> {
    Ok(Mlp {
        a: nn::Linear::new(64, 48)?,
        b: nn::Linear::new(48, 32)?,
        c: nn::Linear::new(32, 10)?,
    })
}

pub fn residual() -> Result<Residual> {
    let conv = |a: usize, b: usize| Ok::<_, Error>(nn::Conv2d::new(a, b, 3)?.padding(1));
    Ok(Residual {
        stem: ConvNorm::new(conv(1, 12)?, 12)?,
        a: ConvNorm::new(conv(12, 12)?, 12)?,
        b: ConvNorm::new(conv(12, 12)?, 12)?,
        down: ConvNorm::new(conv(12, 16)?.stride(2), 16)?,
        c: ConvNorm::new(conv(16, 16)?, 16)?,
        d: ConvNorm::new(conv(16, 16)?, 16)?,
        fc: nn::Linear::new(16, 10)?,
    })
}

pub fn depthwise() -> Result<Depthwise> {
    let stem = nn::Conv2d::new(1, 16, 3)?.padding(1);
    let mut net = Depthwise {
        stem: ConvNorm::new(stem, 16)?,
        wide: Vec::new(),
        narrow: Vec::new(),
        fc: nn::Linear::new(32, 10)?,
    };
    for (channels, out, stride) in [(16, 24, 1), (24, 32, 2), (32, 32, 1)] {
        let wide = nn::Conv2d::grouped(channels, channels, 3, channels)?
            .padding(1)
            .stride(stride);
        net.wide.push(ConvNorm::new(wide, channels)?);
        net.narrow
            .push(ConvNorm::new(nn::Conv2d::new(channels, out, 1)?, out)?);
    }
    Ok(net)
}
