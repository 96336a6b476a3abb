//! Gradients of each example over one ordinary step, and the time to make the graph of a gradient.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::Instant;

use fx_nn::cpu::Cpu;
use fx_nn::func::{Transform, grad, vmap};
use fx_nn::ir::ValueMeta;
use fx_nn::passes::GramNorms;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::trace::TracedFn;
use fx_nn::{IndexMap, tree};

use support::wanted;

/// How many examples there are.
const EXAMPLES: usize = 64;

/// The shortest of several runs, in ms.
fn shortest<T>(runs: usize, mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        drop(black_box(run()?));
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

type Weights = IndexMap<String, Tensor>;

/// The loss of a network for an example, or for a batch, by its weights.
struct Network {
    loss: TracedFn,
    weights: Weights,
    x: Tensor,
    y: Tensor,
}

impl Network {
    fn new(loss: TracedFn, weights: &[(&str, &[usize])], x: Tensor, y: Tensor) -> Result<Self> {
        let weights = weights.iter().map(|(name, dims)| {
            let weight = (Tensor::randn(*dims)? * 0.05)?;
            Ok((name.to_string(), weight))
        });
        Ok(Network {
            loss,
            weights: weights.collect::<Result<_>>()?,
            x,
            y,
        })
    }

    fn mlp() -> Result<Self> {
        let loss = traced!(|of: Weights, x: &Tensor, y: &Tensor| {
            let h = ops::relu(&ops::linear(x, &of["first"], None)?)?;
            let h = ops::relu(&ops::linear(&h, &of["second"], None)?)?;
            ops::mse_loss(&ops::linear(&h, &of["third"], None)?, y, "mean")
        });
        let weights: [(&str, &[usize]); 3] = [
            ("first", &[256, 128]),
            ("second", &[256, 256]),
            ("third", &[10, 256]),
        ];
        let x = Tensor::randn((EXAMPLES, 128))?;
        Network::new(loss, &weights, x, Tensor::randn((EXAMPLES, 10))?)
    }

    /// Patches of images of 32 by 32 pixels, two convolutions and a mean.
    fn cnn() -> Result<Self> {
        let loss = traced!(|of: Weights, x: &Tensor, y: &Tensor| {
            let x = x.reshape((-1, 3, 32, 32))?;
            let h = ops::relu(&ops::conv2d(&x, &of["stem"], None, 8, 0, 1, 1)?)?;
            let h = ops::relu(&ops::conv2d(&h, &of["first"], None, 1, 1, 1, 1)?)?;
            let h = ops::relu(&ops::conv2d(&h, &of["second"], None, 1, 1, 1, 1)?)?;
            let scores = ops::linear(&h.mean((-1, -2))?, &of["head"], None)?;
            ops::mse_loss(&scores, &y.reshape((-1, 10))?, "mean")
        });
        let weights: [(&str, &[usize]); 4] = [
            ("stem", &[64, 3, 8, 8]),
            ("first", &[96, 64, 3, 3]),
            ("second", &[96, 96, 3, 3]),
            ("head", &[10, 96]),
        ];
        let x = Tensor::randn((EXAMPLES, 3, 32, 32))?;
        Network::new(loss, &weights, x, Tensor::randn((EXAMPLES, 10))?)
    }

    /// Two blocks of attention and of two linear layers, over texts of 32 tokens.
    fn transformer() -> Result<Self> {
        let loss = traced!(|of: Weights, x: &Tensor, y: &Tensor| {
            let mut h = ops::embedding(&x.reshape((-1, TOKENS))?, &of["table"], None)?;
            for block in 0..2 {
                h = transformer_block(&h, &|name| &of[&format!("{name}_{block}")])?;
            }
            let scores = ops::linear(&h, &of["head"], None)?.reshape((-1, 256))?;
            ops::cross_entropy(&scores, &y.reshape([-1])?, None, -100, "mean", 0.0)
        });
        let mut weights: Vec<(&str, &[usize])> = vec![("table", &[256, 128])];
        let blocks: [(&str, &[usize]); 8] = [
            ("qkv_0", &[384, 128]),
            ("out_0", &[128, 128]),
            ("up_0", &[512, 128]),
            ("down_0", &[128, 512]),
            ("qkv_1", &[384, 128]),
            ("out_1", &[128, 128]),
            ("up_1", &[512, 128]),
            ("down_1", &[128, 512]),
        ];
        weights.extend(blocks);
        weights.push(("head", &[256, 128]));
        let tokens = |start: i64| {
            let all = (0..EXAMPLES as i64 * TOKENS).map(|at| (at * 37 + start) % 251);
            Tensor::from_vec(all.collect::<Vec<_>>(), (EXAMPLES, TOKENS as usize))
        };
        Network::new(loss, &weights, tokens(0)?, tokens(5)?)
    }

    /// Whether a tensor has the gradient of a matrix, or of a larger weight, for each example.
    fn has_gradients(&self, gm: &GraphModule) -> Result<bool> {
        let mut shapes = Vec::new();
        for weight in self.weights.values() {
            let mut shape = weight.dims()?.to_vec();
            shape.insert(0, EXAMPLES);
            shapes.push(shape);
        }
        Ok(gm.graph().nodes().any(|node| {
            let meta = node.meta::<ValueMeta>().and_then(ValueMeta::tensor);
            meta.and_then(|meta| meta.known_shape())
                .is_some_and(|shape| shapes.contains(&shape))
        }))
    }

    /// The times of 64 gradients, one for each example, and of their norms alone, over that of the one gradient of the
    /// batch; all compiled.
    fn per_sample(self) -> Result<(f64, f64)> {
        let of_weights = self.weights.iter();
        let of_weights = of_weights.map(|(name, weight)| (name.as_str(), Spec::of(weight)));
        let specs = [Spec::dict(of_weights), Spec::of(&self.x), Spec::of(&self.y)];
        let slopes = grad(self.loss.clone());
        let each = vmap(&slopes).in_axes(tree!((None, 0, 0)));
        let of_one = slopes.clone();
        let norm = traced!(move |of: Weights, x: &Tensor, y: &Tensor| {
            let grads: Weights = of_one.call((of, x, y))?;
            let mut squares = Tensor::zeros(())?;
            for grad in grads.values() {
                squares = (squares + grad.square()?.sum(..)?)?;
            }
            squares.sqrt()
        });
        let norms = vmap(norm).in_axes(tree!((None, 0, 0)));
        let mut norms = norms.graph_module(&specs)?;
        norms.apply(&GramNorms)?;
        if self.has_gradients(&norms)? {
            return Err(Error::msg("the norms are of gradients that are there"));
        }
        let compiled = |gm: GraphModule| {
            let args = (self.weights.clone(), &self.x, &self.y);
            gm.compile(Compile::new(Cpu::new()).like(args))
        };
        let one = compiled(slopes.graph_module(&specs)?)?;
        let (all, norms) = (compiled(each.graph_module(&specs)?)?, compiled(norms)?);
        let run = |gm: &GraphModule| {
            let args = (self.weights.clone(), &self.x, &self.y);
            gm.forward::<Value>(args)
        };
        let mut times = [f64::INFINITY; 3];
        // In turns, so that a slowdown of the machine affects all.
        for _ in 0..30 {
            for (time, gm) in times.iter_mut().zip([&one, &all, &norms]) {
                *time = time.min(shortest(2, || run(gm))?);
            }
        }
        Ok((times[1] / times[0], times[2] / times[0]))
    }
}

/// How long a text is.
const TOKENS: i64 = 32;

fn transformer_block<'w>(h: &Tensor, of: &dyn Fn(&str) -> &'w Tensor) -> Result<Tensor> {
    let norm = |h: &Tensor| ops::layer_norm(h, vec![128], None, None, 1e-5);
    let parts = ops::linear(&norm(h)?, of("qkv"), None)?.reshape((-1, TOKENS, 3, 4, 32))?;
    let part = |at: i64| parts.select(2, at)?.transpose(1, 2);
    let (q, k, v) = (part(0)?, part(1)?, part(2)?);
    let mixed = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, true, None, false)?;
    let mixed = mixed.transpose(1, 2)?.reshape((-1, TOKENS, 128))?;
    let h = (h + ops::linear(&mixed, of("out"), None)?)?;
    let inner = ops::gelu(&ops::linear(&norm(&h)?, of("up"), None)?, "tanh")?;
    h + ops::linear(&inner, of("down"), None)?
}

/// The time to make the gradient of a chain of so many operations, in seconds.
fn graph(count: usize) -> Result<f64> {
    let chain = traced!(move |x: &Tensor| {
        let mut h = x.clone();
        for at in 0..count {
            h = if at % 2 == 0 { (h * 1.5)? } else { h.sin()? };
        }
        h.sum(..)
    });
    let of = grad(chain);
    Ok(shortest(3, || of.graph_module(&[spec![4; F32]]))? / 1e3)
}

fn main() -> Result<()> {
    if wanted("per_sample") {
        let (gradients, norms) = Network::mlp()?.per_sample()?;
        println!("grad.per_sample_ratio: {gradients:.2}");
        println!("grad.per_sample_norm_ratio: {norms:.2}");
        for (name, network) in [
            ("cnn", Network::cnn()?),
            ("transformer", Network::transformer()?),
        ] {
            let (gradients, norms) = network.per_sample()?;
            println!("grad.per_sample_ratio/{name}: {gradients:.2}");
            println!("grad.per_sample_norm_ratio/{name}: {norms:.2}");
        }
    }
    if wanted("graph") {
        let (few, many) = (graph(10_000)?, graph(100_000)?);
        println!("grad.graph/10000: {few:.3} s");
        println!("grad.graph/100000: {many:.3} s");
        println!("grad.graph exponent: {:.2}", (many / few).log10());
    }
    Ok(())
}
