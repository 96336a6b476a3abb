//! A transformer block written for candle, and the same block made traceable: the difference is in
//! `docs/from-candle.md`. Both read one file of weights and give the same numbers.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

// before
mod before {
    use candle_core::{D, IndexOp, Module, Result, Tensor};
    use candle_nn::{LayerNorm, Linear, VarBuilder, layer_norm, linear};

    pub struct Block {
        norm: LayerNorm,
        qkv: Linear,
        proj: Linear,
        heads: usize,
    }

    impl Block {
        pub fn new(width: usize, heads: usize, vb: VarBuilder<'_>) -> Result<Self> {
            Ok(Self {
                norm: layer_norm(width, 1e-5, vb.pp("norm"))?,
                qkv: linear(width, 3 * width, vb.pp("qkv"))?,
                proj: linear(width, width, vb.pp("proj"))?,
                heads,
            })
        }
    }

    impl Block {
        pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
            let (b, t, c) = xs.dims3()?;
            let head = c / self.heads;
            let qkv = self.qkv.forward(&self.norm.forward(xs)?)?;
            let qkv = qkv.reshape((b, t, 3, self.heads, head))?;
            let qkv = qkv.permute((2, 0, 3, 1, 4))?.contiguous()?;
            let (q, k, v) = (qkv.i(0)?, qkv.i(1)?, qkv.i(2)?);
            let scores = (q.matmul(&k.transpose(2, 3)?)? / (head as f64).sqrt())?;
            let scores = candle_nn::ops::softmax(&scores, D::Minus1)?;
            let ys = scores.matmul(&v)?.transpose(1, 2)?.reshape((b, t, c))?;
            xs + self.proj.forward(&ys)?
        }
    }
}

// after
mod after {
    use fx_nn::prelude::*;

    #[derive(Module, Clone, Debug)]
    pub struct Block {
        norm: nn::LayerNorm,
        qkv: nn::Linear,
        proj: nn::Linear,
        heads: usize,
    }

    impl Block {
        pub fn new(width: usize, heads: usize) -> Result<Self> {
            Ok(Self {
                norm: nn::LayerNorm::new(width)?,
                qkv: nn::Linear::new(width, 3 * width)?,
                proj: nn::Linear::new(width, width)?,
                heads,
            })
        }
    }

    #[trace]
    impl Block {
        pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
            let (b, t, c) = xs.dims3()?;
            let head = c.floordiv(self.heads as i64)?;
            let qkv = self.qkv.forward(&self.norm.forward(xs)?)?;
            let qkv = qkv.reshape((b, t, 3, self.heads, head))?;
            let qkv = qkv.permute((2, 0, 3, 1, 4))?.contiguous()?;
            let (q, k, v) = (qkv.i(0)?, qkv.i(1)?, qkv.i(2)?);
            let scores = (q.matmul(&k.transpose(2, 3)?)? / head.pow(0.5)?)?;
            let scores = ops::softmax(&scores, -1)?;
            let ys = scores.matmul(&v)?.transpose(1, 2)?.reshape((b, t, c))?;
            xs + self.proj.forward(&ys)?
        }
    }
}

use candle_nn::{VarBuilder, VarMap};
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let (cpu, dtype) = (candle_core::Device::Cpu, candle_core::DType::F32);
    let path = std::env::temp_dir().join(format!("from_candle_{}.safetensors", std::process::id()));
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, dtype, &cpu);
    let before = before::Block::new(32, 4, vb).map_err(Error::other)?;
    variables.save(&path).map_err(Error::other)?;

    // The names in the file are those of the fields.
    let mut after = after::Block::new(32, 4)?;
    let loaded = fx_nn::weights::load(&mut after, &path);
    std::fs::remove_file(&path).map_err(Error::other)?;
    loaded?;

    // Conversion is free: both tensors share their data.
    let x = Tensor::rand((2, 6, 32))?;
    let expected = Tensor::from(before.forward(x.candle()?).map_err(Error::other)?);
    let traced = symbolic_trace(&after)?;
    let y: Tensor = traced.forward(&x)?;
    let eager = after.forward(&x)?;
    println!("{}", traced.graph());
    for (which, y) in [("eager", eager), ("traced", y)] {
        let error = (y - &expected)?.abs()?.amax(..)?.item()?;
        println!("max_abs_err_candle_vs_{which}: {error:.1e}");
    }
    Ok(())
}
