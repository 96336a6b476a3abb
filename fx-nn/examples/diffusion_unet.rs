//! A diffusion UNet with attention (DDPM): traced, compared with eager, and sampled from in its traced form.
//!
//! `cargo run --release -p fx-nn --example diffusion_unet`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use fx_nn::prelude::*;

const CHANNELS: usize = 3;
const SIDE: usize = 16;
const WIDTH: usize = 32;
const TIME_DIM: usize = 4 * WIDTH;
const GROUPS: usize = 8;
const STEPS: usize = 20;

/// A convolution over 3x3 pixels that keeps the image's size at stride 1, and halves it at stride 2.
fn conv3x3(in_channels: usize, out_channels: usize, stride: usize) -> Result<nn::Conv2d> {
    let conv = nn::Conv2d::new(in_channels, out_channels, 3)?;
    Ok(conv.stride(stride).padding(1))
}

/// A linear layer of each pixel's channels.
fn conv1x1(in_channels: usize, out_channels: usize) -> Result<nn::Conv2d> {
    nn::Conv2d::new(in_channels, out_channels, 1)
}

/// Timesteps `[N]`, as integers, to vectors `[N, TIME_DIM]`.
#[derive(Module, Clone, Debug)]
struct TimeEmbedding {
    linear1: nn::Linear,
    linear2: nn::Linear,
}

impl TimeEmbedding {
    fn new() -> Result<Self> {
        Ok(TimeEmbedding {
            linear1: nn::Linear::new(WIDTH, TIME_DIM)?,
            linear2: nn::Linear::new(TIME_DIM, TIME_DIM)?,
        })
    }
}

#[trace]
impl TimeEmbedding {
    fn forward(&self, t: &Tensor) -> Result<Tensor> {
        let emb = self.linear1.forward(&sinusoidal(t, WIDTH)?)?;
        self.linear2.forward(&emb.silu()?)
    }
}

/// Sines and cosines of the timesteps, at frequencies from 1 down towards 1/10000. An ordinary helper: traced through.
fn sinusoidal(t: &Tensor, dim: usize) -> Result<Tensor> {
    let half = dim / 2;
    // The same for all timesteps, so a trace keeps the numbers as a constant.
    let freqs = (Tensor::arange(0, half)? * (-10_000f64.ln() / half as f64))?.exp()?;
    let angles = (t.i((.., NewAxis))? * freqs)?;
    ops::cat(&[angles.sin()?, angles.cos()?], -1)
}

/// Two convolutions around the time embedding, added to the input.
#[derive(Module, Clone, Debug)]
struct ResBlock {
    norm1: nn::GroupNorm,
    conv1: nn::Conv2d,
    time: nn::Linear,
    norm2: nn::GroupNorm,
    conv2: nn::Conv2d,
    /// Present if input and output have different channels.
    skip: Option<nn::Conv2d>,
}

impl ResBlock {
    fn new(in_channels: usize, out_channels: usize) -> Result<Self> {
        Ok(ResBlock {
            norm1: nn::GroupNorm::new(GROUPS, in_channels)?,
            conv1: conv3x3(in_channels, out_channels, 1)?,
            time: nn::Linear::new(TIME_DIM, out_channels)?,
            norm2: nn::GroupNorm::new(GROUPS, out_channels)?,
            conv2: conv3x3(out_channels, out_channels, 1)?,
            skip: (in_channels != out_channels)
                .then(|| conv1x1(in_channels, out_channels))
                .transpose()?,
        })
    }
}

#[trace]
impl ResBlock {
    fn forward(&self, x: &Tensor, emb: &Tensor) -> Result<Tensor> {
        let h = self.conv1.forward(&self.norm1.forward(x)?.silu()?)?;
        let emb = self.time.forward(&emb.silu()?)?;
        let h = (h + emb.i((.., .., NewAxis, NewAxis))?)?;
        let h = self.conv2.forward(&self.norm2.forward(&h)?.silu()?)?;
        match &self.skip {
            Some(skip) => h + skip.forward(x)?,
            None => h + x,
        }
    }
}

/// Every pixel attends to every pixel; added to the input.
#[derive(Module, Clone, Debug)]
struct AttentionBlock {
    norm: nn::GroupNorm,
    qkv: nn::Conv2d,
    proj: nn::Conv2d,
}

impl AttentionBlock {
    fn new(channels: usize) -> Result<Self> {
        Ok(AttentionBlock {
            norm: nn::GroupNorm::new(GROUPS, channels)?,
            qkv: conv1x1(channels, 3 * channels)?,
            proj: conv1x1(channels, channels)?,
        })
    }
}

#[trace]
impl AttentionBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // [N, 3C, H, W] to three of [N, H * W, C].
        let qkv = self.qkv.forward(&self.norm.forward(x)?)?;
        let tokens = qkv.flatten(2, -1)?.transpose(1, 2)?;
        let [q, k, v] = tokens.chunk(3, -1)?.unpack()?;
        let h = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, false, None, false)?;
        let h = h.transpose(1, 2)?.reshape(x.shape()?)?;
        x + self.proj.forward(&h)?
    }
}

/// Predicts the noise in noisy images `[N, 3, H, W]` at timesteps `[N]`: 32 channels, and 64 at half the size.
#[derive(Module, Clone, Debug)]
struct UNet {
    time: TimeEmbedding,
    conv_in: nn::Conv2d,
    down1: ResBlock,
    downsample: nn::Conv2d,
    down2: ResBlock,
    mid1: ResBlock,
    attention: AttentionBlock,
    mid2: ResBlock,
    up2: ResBlock,
    upsample: nn::Sequential,
    up1: ResBlock,
    norm_out: nn::GroupNorm,
    conv_out: nn::Conv2d,
}

impl UNet {
    fn new() -> Result<Self> {
        let (narrow, wide) = (WIDTH, 2 * WIDTH);
        Ok(UNet {
            time: TimeEmbedding::new()?,
            conv_in: conv3x3(CHANNELS, narrow, 1)?,
            down1: ResBlock::new(narrow, narrow)?,
            downsample: conv3x3(narrow, narrow, 2)?,
            down2: ResBlock::new(narrow, wide)?,
            mid1: ResBlock::new(wide, wide)?,
            attention: AttentionBlock::new(wide)?,
            mid2: ResBlock::new(wide, wide)?,
            // The inputs of both also have the channels of a skip connection.
            up2: ResBlock::new(wide + wide, wide)?,
            upsample: nn::Sequential::new()
                .push(nn::Upsample::new(2.0))
                .push(conv3x3(wide, wide, 1)?),
            up1: ResBlock::new(wide + narrow, narrow)?,
            norm_out: nn::GroupNorm::new(GROUPS, narrow)?,
            conv_out: conv3x3(narrow, CHANNELS, 1)?,
        })
    }
}

#[trace]
impl UNet {
    fn forward(&self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let emb = self.time.forward(t)?;

        let skip1 = self.down1.forward(&self.conv_in.forward(x)?, &emb)?;
        let skip2 = self
            .down2
            .forward(&self.downsample.forward(&skip1)?, &emb)?;

        let h = self.mid1.forward(&skip2, &emb)?;
        let h = self.attention.forward(&h)?;
        let h = self.mid2.forward(&h, &emb)?;

        let h = self.up2.forward(&ops::cat(&[h, skip2], 1)?, &emb)?;
        let h = self.upsample.forward(&h)?;
        let h = self.up1.forward(&ops::cat(&[h, skip1], 1)?, &emb)?;

        self.conv_out.forward(&self.norm_out.forward(&h)?.silu()?)
    }
}

/// How much noise each step adds, from little to much, and how much of the image it keeps.
struct Schedule {
    betas: Vec<f64>,
    /// Products of `1 - beta` up to each step.
    alphas_cumprod: Vec<f64>,
}

impl Schedule {
    fn linear(steps: usize, first: f64, last: f64) -> Self {
        let slope = (last - first) / (steps - 1) as f64;
        let betas: Vec<f64> = (0..steps).map(|t| first + slope * t as f64).collect();
        let alphas_cumprod = betas
            .iter()
            .scan(1.0, |product, beta| {
                *product *= 1.0 - beta;
                Some(*product)
            })
            .collect();
        Schedule {
            betas,
            alphas_cumprod,
        }
    }
}

/// From noise to images, one step of the schedule after another (algorithm 2 of the DDPM paper).
fn sample(model: &GraphModule, schedule: &Schedule, images: usize) -> Result<Tensor> {
    let shape = [images, CHANNELS, SIDE, SIDE];
    let mut x = Tensor::randn(shape)?;
    let steps = schedule.betas.iter().zip(&schedule.alphas_cumprod);
    for (t, (beta, alpha_cumprod)) in steps.enumerate().rev() {
        let timesteps = Tensor::full(images, t as f64, DType::I64)?;
        let noise: Tensor = model.forward((&x, &timesteps))?;
        let noise = (noise * (beta / (1.0 - alpha_cumprod).sqrt()))?;
        x = ((x - noise)? / (1.0 - beta).sqrt())?;
        if t > 0 {
            x = (x + (Tensor::randn(shape)? * beta.sqrt())?)?;
        }
    }
    Ok(x)
}

fn model() -> Result<UNet> {
    let mut model = UNet::new()?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    Ok(model)
}

/// The traced model, with an image and its time.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::randn((1, CHANNELS, SIDE, SIDE))?;
    let t = Tensor::from_vec(vec![5i64], 1)?;
    Ok((symbolic_trace(&model()?)?, vec![Value::of(x), Value::of(t)]))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let model = model()?;
    let traced = symbolic_trace(&model)?;
    let mut opcodes = BTreeMap::new();
    for node in traced.graph().nodes() {
        *opcodes.entry(node.opcode().name()).or_insert(0) += 1;
    }
    println!("nodes: {}", traced.graph().len());
    for (opcode, count) in &opcodes {
        println!("  {opcode}: {count}");
    }

    let x = Tensor::randn((4, CHANNELS, SIDE, SIDE))?;
    let t = Tensor::from_vec(vec![0i64, 5, 10, 19], 4)?;
    let eager = model.forward(&x, &t)?;
    let again: Tensor = traced.forward((&x, &t))?;
    let error = (eager - again)?.abs()?.amax(..)?.item()?;
    println!("max_abs_err_eager_vs_traced: {error}");

    let images = sample(&traced, &Schedule::linear(STEPS, 1e-4, 0.3), 2)?;
    let finite = images.to_vec()?.iter().all(|v| v.is_finite());
    println!("sampled in {STEPS} steps: {:?}", images.dims()?);
    println!("all_finite: {finite}");
    Ok(())
}
