//! A small Llama: RMSNorm, rotary positions, grouped-query attention and SwiGLU, with the cache of keys and values
//! as an input and an output of the graph, so that one graph reads a prompt and writes word after word.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

struct Config {
    vocab_size: usize,
    max_positions: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_layers: usize,
    num_heads: usize,
    num_key_value_heads: usize,
}

/// A layer's cache: keys and values `[N, key_value_heads, length, head_dim]`.
#[derive(Tree, Clone, Debug)]
struct Cache {
    k: Tensor,
    v: Tensor,
}

/// x rotated by its position: the halves of each head are real and imaginary parts.
fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let [a, b] = x.chunk(2, -1)?.unpack()?;
    let real = ((&a * cos)? - (&b * sin)?)?;
    let imaginary = ((&b * cos)? + (&a * sin)?)?;
    ops::cat(&[real, imaginary], -1)
}

#[derive(Module, Clone, Debug)]
struct Attention {
    q_proj: nn::Linear,
    k_proj: nn::Linear,
    v_proj: nn::Linear,
    o_proj: nn::Linear,
    head_dim: usize,
}

#[trace]
impl Attention {
    fn forward(
        &self,
        x: &Tensor,
        cos: &Tensor,
        sin: &Tensor,
        mask: &Tensor,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let [n, t, _] = x.shape()?.unpack()?;
        let heads = |x: Tensor| x.view((n, t, -1, self.head_dim))?.transpose(1, 2);
        let q = rotate(&heads(self.q_proj.forward(x)?)?, cos, sin)?;
        let k = rotate(&heads(self.k_proj.forward(x)?)?, cos, sin)?;
        let v = heads(self.v_proj.forward(x)?)?;
        let k = ops::cat(&[cache.k, k], 2)?;
        let v = ops::cat(&[cache.v, v], 2)?;
        let y = ops::scaled_dot_product_attention(&q, &k, &v, Some(mask), 0.0, false, None, true)?;
        let y = y.transpose(1, 2)?.reshape((n, t, -1))?;
        Ok((self.o_proj.forward(&y)?, Cache { k, v }))
    }
}

#[derive(Module, Clone, Debug)]
struct Mlp {
    gate_proj: nn::Linear,
    up_proj: nn::Linear,
    down_proj: nn::Linear,
}

#[trace]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let gate = ops::silu(&self.gate_proj.forward(x)?)?;
        self.down_proj.forward(&(gate * self.up_proj.forward(x)?)?)
    }
}

#[derive(Module, Clone, Debug)]
struct Layer {
    input_layernorm: nn::RMSNorm,
    self_attn: Attention,
    post_attention_layernorm: nn::RMSNorm,
    mlp: Mlp,
}

#[trace]
impl Layer {
    fn forward(
        &self,
        x: &Tensor,
        cos: &Tensor,
        sin: &Tensor,
        mask: &Tensor,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let h = self.input_layernorm.forward(x)?;
        let (h, cache) = self.self_attn.forward(&h, cos, sin, mask, cache)?;
        let x = (x + h)?;
        let h = self.post_attention_layernorm.forward(&x)?;
        Ok(((x + self.mlp.forward(&h)?)?, cache))
    }
}

#[derive(Module, Clone, Debug)]
struct Llama {
    embed_tokens: nn::Embedding,
    layers: Vec<Layer>,
    norm: nn::RMSNorm,
    lm_head: nn::Linear,
    /// The cosines of the angles of all positions, `[max_positions, head_dim / 2]`.
    #[module(buffer)]
    cos: Tensor,
    #[module(buffer)]
    sin: Tensor,
}

impl Llama {
    fn new(config: &Config) -> Result<Self> {
        let width = config.hidden_size;
        let head_dim = width / config.num_heads;
        let linear =
            |inputs, outputs| -> Result<_> { Ok(nn::Linear::new(inputs, outputs)?.bias(false)) };
        let layer = || -> Result<Layer> {
            Ok(Layer {
                input_layernorm: nn::RMSNorm::new(width)?,
                self_attn: Attention {
                    q_proj: linear(width, width)?,
                    k_proj: linear(width, config.num_key_value_heads * head_dim)?,
                    v_proj: linear(width, config.num_key_value_heads * head_dim)?,
                    o_proj: linear(width, width)?,
                    head_dim,
                },
                post_attention_layernorm: nn::RMSNorm::new(width)?,
                mlp: Mlp {
                    gate_proj: linear(width, config.intermediate_size)?,
                    up_proj: linear(width, config.intermediate_size)?,
                    down_proj: linear(config.intermediate_size, width)?,
                },
            })
        };
        let frequencies =
            (0..head_dim / 2).map(|i| 10000f32.powf(-2.0 * i as f32 / head_dim as f32));
        let frequencies = Tensor::from_vec(frequencies.collect(), (1, head_dim / 2))?;
        let positions = Tensor::arange(0, config.max_positions)?.unsqueeze(1)?;
        let angles = (positions * frequencies)?;
        Ok(Llama {
            embed_tokens: nn::Embedding::new(config.vocab_size, width)?,
            layers: (0..config.num_layers)
                .map(|_| layer())
                .collect::<Result<_>>()?,
            norm: nn::RMSNorm::new(width)?,
            lm_head: linear(width, config.vocab_size)?,
            cos: angles.cos()?,
            sin: angles.sin()?,
        })
    }

    fn empty_caches(&self, config: &Config, batch: usize) -> Result<Vec<Cache>> {
        let head_dim = config.hidden_size / config.num_heads;
        let empty = || Tensor::zeros((batch, config.num_key_value_heads, 0, head_dim));
        let caches = self.layers.iter().map(|_| {
            Ok(Cache {
                k: empty()?,
                v: empty()?,
            })
        });
        caches.collect()
    }
}

#[trace]
impl Llama {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let seen = match caches.first() {
            Some(cache) => cache.k.size(2)?,
            None => 0.into(),
        };
        let total = (seen + tokens.size(1)?)?;
        let (cos, sin) = (self.cos.i(seen..total)?, self.sin.i(seen..total)?);
        let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let mask = (queries >= keys)?;
        let mut x = self.embed_tokens.forward(tokens)?;
        let mut updated = Vec::new();
        for (layer, cache) in self.layers.iter().zip(caches) {
            let (y, cache) = layer.forward(&x, &cos, &sin, &mask, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.lm_head.forward(&self.norm.forward(&x)?)?, updated))
    }
}

const CONFIG: Config = Config {
    vocab_size: 128,
    max_positions: 64,
    hidden_size: 64,
    intermediate_size: 172,
    num_layers: 2,
    num_heads: 8,
    num_key_value_heads: 2,
};

/// One cache per layer: the graph has an input for each of their tensors.
pub fn caches() -> Value {
    let cache = tree!({"k": PH, "v": PH});
    tree!([cache.clone(), cache])
}

fn trace(model: &Llama) -> Result<GraphModule> {
    Trace::new(model)
        .concrete("caches", caches())
        .graph_module()
}

/// The traced model, with words to read and an empty cache.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let mut model = Llama::new(&CONFIG)?;
    nn::set_requires_grad(&mut model, false)?;
    let words = Tensor::from_vec(vec![3i64, 14, 15], (1, 3))?;
    let caches = Value::of(model.empty_caches(&CONFIG, 1)?);
    Ok((trace(&model)?, vec![Value::of(words), caches]))
}

fn main() -> Result<()> {
    let config = CONFIG;
    fx_nn::manual_seed(1);
    let mut model = Llama::new(&config)?;
    nn::set_requires_grad(&mut model, false)?;
    let traced = trace(&model)?;
    println!("nodes: {}", traced.graph().len());

    // The prompt at once, then word after word.
    let mut words = vec![3i64, 14, 15, 92, 65];
    let prompt = words.len();
    let mut input = Tensor::from_vec(words.clone(), (1, prompt))?;
    let mut caches = model.empty_caches(&config, 1)?;
    let mut scores = Vec::new();
    for _ in 0..12 {
        let (y, updated): (Tensor, Vec<Cache>) = traced.forward((&input, caches))?;
        let last = y.i((.., -1))?;
        let word = last.argmax(-1, false)?.item()? as i64;
        scores.push(last);
        words.push(word);
        input = Tensor::from_vec(vec![word], (1, 1))?;
        caches = updated;
    }
    println!("words: {:?}", &words[prompt..]);

    // The same words at once, eagerly and without a cache, give the same scores.
    let all = Tensor::from_vec(words[..words.len() - 1].to_vec(), (1, words.len() - 1))?;
    let (eager, _) = model.forward(&all, model.empty_caches(&config, 1)?)?;
    let eager = eager.i((0, (prompt as i64 - 1)..))?;
    let cached = ops::cat(&scores, 0)?;
    let error = (&eager - cached)?.abs()?.amax(..)?.item()?;
    println!(
        "max_rel_err_cached_vs_at_once: {:.1e}",
        error / eager.abs()?.amax(..)?.item()?
    );

    let (one, _): (Tensor, Vec<Cache>) = traced.forward((&all, model.empty_caches(&config, 1)?))?;
    let one = one.i((0, (prompt as i64 - 1)..))?;
    println!(
        "max_abs_err_eager_vs_traced: {}",
        (eager - one)?.abs()?.amax(..)?.item()?
    );
    Ok(())
}
