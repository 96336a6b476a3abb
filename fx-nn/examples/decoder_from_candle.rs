//! A decoder with a cache written for candle, and the same decoder made traceable: the difference is in
//! `docs/from-candle.md`. Both read one file of weights and write the same logits, step by step.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

// before
mod before {
    use candle_core::{D, Module, Result, Tensor};
    use candle_nn::{Embedding, LayerNorm, Linear, VarBuilder};
    use candle_nn::{embedding, layer_norm, linear, linear_no_bias};

    pub struct Attention {
        qkv: Linear,
        proj: Linear,
        heads: usize,
        cache: Option<(Tensor, Tensor)>,
    }

    impl Attention {
        fn new(width: usize, heads: usize, vb: VarBuilder<'_>) -> Result<Self> {
            Ok(Self {
                qkv: linear(width, 3 * width, vb.pp("qkv"))?,
                proj: linear(width, width, vb.pp("proj"))?,
                heads,
                cache: None,
            })
        }
    }

    impl Attention {
        fn forward(&mut self, xs: &Tensor, mask: &Tensor) -> Result<Tensor> {
            let (b, t, c) = xs.dims3()?;
            let qkv = self.qkv.forward(xs)?;
            let split = |at: usize| {
                let part = qkv.narrow(D::Minus1, at * c, c)?;
                part.reshape((b, t, self.heads, c / self.heads))?
                    .transpose(1, 2)?
                    .contiguous()
            };
            let (q, k, v) = (split(0)?, split(1)?, split(2)?);
            let (k, v) = match &self.cache {
                None => (k, v),
                Some((before_k, before_v)) => (
                    Tensor::cat(&[before_k, &k], 2)?,
                    Tensor::cat(&[before_v, &v], 2)?,
                ),
            };
            self.cache = Some((k.clone(), v.clone()));
            let scale = ((c / self.heads) as f64).sqrt();
            let scores = (q.matmul(&k.transpose(2, 3)?)? / scale)?;
            let scores = scores.broadcast_add(mask)?;
            let scores = candle_nn::ops::softmax(&scores, D::Minus1)?;
            let ys = scores.matmul(&v)?.transpose(1, 2)?.reshape((b, t, c))?;
            self.proj.forward(&ys)
        }
    }

    pub struct Block {
        norm: LayerNorm,
        attn: Attention,
    }

    impl Block {
        fn forward(&mut self, xs: &Tensor, mask: &Tensor) -> Result<Tensor> {
            xs + self.attn.forward(&self.norm.forward(xs)?, mask)?
        }
    }

    pub struct Decoder {
        embed: Embedding,
        blocks: Vec<Block>,
        head: Linear,
    }

    impl Decoder {
        pub fn new(vocab: usize, width: usize, depth: usize, vb: VarBuilder<'_>) -> Result<Self> {
            let block = |i: usize| {
                let vb = vb.pp(format!("blocks.{i}"));
                Ok(Block {
                    norm: layer_norm(width, 1e-5, vb.pp("norm"))?,
                    attn: Attention::new(width, 4, vb.pp("attn"))?,
                })
            };
            Ok(Self {
                embed: embedding(vocab, width, vb.pp("embed"))?,
                blocks: (0..depth).map(block).collect::<Result<_>>()?,
                head: linear_no_bias(width, vocab, vb.pp("head"))?,
            })
        }
    }

    impl Decoder {
        pub fn forward(&mut self, ids: &Tensor, mask: &Tensor) -> Result<Tensor> {
            let mut xs = self.embed.forward(ids)?;
            for block in &mut self.blocks {
                xs = block.forward(&xs, mask)?;
            }
            self.head.forward(&xs)
        }
    }
}

// after
mod after {
    use fx_nn::prelude::*;

    /// Keys and values of the steps before: `[batch, heads, steps, head width]`.
    #[derive(Tree, Clone, Debug)]
    pub struct Cache {
        pub k: Tensor,
        pub v: Tensor,
    }

    #[derive(Module, Clone, Debug)]
    pub struct Attention {
        qkv: nn::Linear,
        proj: nn::Linear,
        heads: usize,
    }

    impl Attention {
        fn new(width: usize, heads: usize) -> Result<Self> {
            Ok(Self {
                qkv: nn::Linear::new(width, 3 * width)?,
                proj: nn::Linear::new(width, width)?,
                heads,
            })
        }
    }

    #[trace]
    impl Attention {
        fn forward(&self, xs: &Tensor, mask: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
            let (b, t, c) = xs.dims3()?;
            let head = c.floordiv(self.heads as i64)?;
            let qkv = self.qkv.forward(xs)?.chunk(3, -1)?;
            let split = |part: &Tensor| {
                part.reshape((b, t, self.heads, head))?
                    .transpose(1, 2)?
                    .contiguous()
            };
            let [q, k, v] = qkv.unpack()?;
            let (q, k, v) = (split(&q)?, split(&k)?, split(&v)?);
            let k = ops::cat(&[&cache.k, &k], 2)?;
            let v = ops::cat(&[&cache.v, &v], 2)?;
            let scores = (q.matmul(&k.transpose(2, 3)?)? / head.pow(0.5)?)?;
            let scores = (scores + mask)?;
            let scores = ops::softmax(&scores, -1)?;
            let ys = scores.matmul(&v)?.transpose(1, 2)?.reshape((b, t, c))?;
            Ok((self.proj.forward(&ys)?, Cache { k, v }))
        }
    }

    #[derive(Module, Clone, Debug)]
    pub struct Block {
        norm: nn::LayerNorm,
        attn: Attention,
    }

    #[trace]
    impl Block {
        fn forward(&self, xs: &Tensor, mask: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
            let (ys, cache) = self.attn.forward(&self.norm.forward(xs)?, mask, cache)?;
            Ok(((xs + ys)?, cache))
        }
    }

    #[derive(Module, Clone, Debug)]
    pub struct Decoder {
        embed: nn::Embedding,
        blocks: Vec<Block>,
        head: nn::Linear,
    }

    impl Decoder {
        pub fn new(vocab: usize, width: usize, depth: usize) -> Result<Self> {
            let block = |_| {
                Ok(Block {
                    norm: nn::LayerNorm::new(width)?,
                    attn: Attention::new(width, 4)?,
                })
            };
            Ok(Self {
                embed: nn::Embedding::new(vocab, width)?,
                blocks: (0..depth).map(block).collect::<Result<_>>()?,
                head: nn::Linear::new(width, vocab)?.bias(false),
            })
        }
    }

    #[trace]
    impl Decoder {
        pub fn forward(
            &self,
            ids: &Tensor,
            mask: &Tensor,
            caches: Vec<Cache>,
        ) -> Result<(Tensor, Vec<Cache>)> {
            let mut xs = self.embed.forward(ids)?;
            if caches.len() != self.blocks.len() {
                return Err(Error::msg("one cache per block")); // `zip` would leave blocks out
            }
            let mut after = Vec::new();
            for (block, cache) in self.blocks.iter().zip(caches) {
                let (ys, cache) = block.forward(&xs, mask, cache)?;
                after.push(cache);
                xs = ys;
            }
            Ok((self.head.forward(&xs)?, after))
        }
    }
}

use after::Cache;
use candle_nn::{VarBuilder, VarMap};
use fx_nn::prelude::*;

const VOCAB: usize = 50;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const DEPTH: usize = 2;

/// What each of `steps` positions may look at, behind `seen` earlier ones: itself and all before it.
fn causal(steps: usize, seen: usize) -> Result<Tensor> {
    let hidden = Tensor::ones((steps, seen + steps))?.triu(seen as i64 + 1)?;
    Tensor::zeros((steps, seen + steps))?
        .masked_fill(&hidden.to_dtype(DType::Bool)?, f64::NEG_INFINITY)
}

fn main() -> Result<()> {
    let (cpu, dtype) = (candle_core::Device::Cpu, candle_core::DType::F32);
    let path = std::env::temp_dir().join(format!(
        "decoder_from_candle_{}.safetensors",
        std::process::id()
    ));
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, dtype, &cpu);
    let mut before = before::Decoder::new(VOCAB, WIDTH, DEPTH, vb).map_err(Error::other)?;
    variables.save(&path).map_err(Error::other)?;

    let mut after = after::Decoder::new(VOCAB, WIDTH, DEPTH)?;
    let loaded = fx_nn::weights::load(&mut after, &path);
    std::fs::remove_file(&path).map_err(Error::other)?;
    loaded?;

    // The graph takes the caches apart: a structure for each layer.
    let caches = vec![tree!({"k": PH, "v": PH}); DEPTH];
    let traced = Trace::new(&after)
        .concrete("caches", caches)
        .graph_module()?;

    let none = || -> Result<Vec<Cache>> {
        let empty = || Tensor::zeros((1, HEADS, 0, WIDTH / HEADS));
        (0..DEPTH)
            .map(|_| {
                Ok(Cache {
                    k: empty()?,
                    v: empty()?,
                })
            })
            .collect()
    };
    let (mut eager_caches, mut traced_caches) = (none()?, none()?);
    let mut worst: (f64, f64) = (0.0, 0.0);
    let mut seen = 0;
    // A prompt of five ids, then one id at a time.
    for ids in [vec![3i64, 1, 4, 1, 5], vec![9], vec![2], vec![6]] {
        let steps = ids.len();
        let ids = Tensor::from_vec(ids, (1, steps))?;
        let mask = causal(steps, seen)?;
        seen += steps;
        let expected = before
            .forward(ids.candle()?, mask.candle()?)
            .map_err(Error::other)?;
        let expected = Tensor::from(expected);
        let (eager, caches) = after.forward(&ids, &mask, eager_caches)?;
        eager_caches = caches;
        let (logits, caches): (Tensor, Vec<Cache>) =
            traced.forward((&ids, &mask, traced_caches))?;
        traced_caches = caches;
        let difference = |y: Tensor| (y - &expected)?.abs()?.amax(..)?.item();
        worst = (
            worst.0.max(difference(eager)?),
            worst.1.max(difference(logits)?),
        );
    }
    println!("nodes: {}", traced.graph().len());
    println!("steps: {seen}");
    println!("max_abs_err_candle_vs_eager: {:.1e}", worst.0);
    println!("max_abs_err_candle_vs_traced: {:.1e}", worst.1);
    Ok(())
}
