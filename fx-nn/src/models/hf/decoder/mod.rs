//! Decoders with rotary positions, under the names of Hugging Face's checkpoints: Llama, Mistral, Mixtral, Qwen 2 and 3,
//! Gemma 1 to 3, Phi-3, StarCoder2, Granite and OLMo 2.
//!
//! One forward reads a prompt and writes word after word: the cache is an argument and a result of
//! it, so that one traced graph does both.
//!
//! ```
//! use fx_nn::models::hf::decoder::{CausalLM, Config};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "qwen2", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
//!     "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true
//! }"#)?;
//! let model = CausalLM::new(&config)?;
//! let gm = model.trace()?;
//! let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
//! let (scores, caches): (Tensor, Vec<fx_nn::models::hf::decoder::Cache>) = gm.forward((&prompt, model.caches(1)?))?;
//! let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
//! let (next, _): (Tensor, Vec<fx_nn::models::hf::decoder::Cache>) = gm.forward((&word, caches))?;
//! assert_eq!((scores.dims()?, next.dims()?), (&[1, 3, 32][..], &[1, 1, 32][..]));
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod attention;
mod config;
mod experts;
mod layer;
mod names;
mod norm;
mod rotary;

use std::path::Path;
use std::rc::Rc;

use fx_core::ir::Argument;
use fx_core::prelude::*;
use fx_core::value::{DType, IntoValue};

pub use attention::{Attention, Cache};
pub use config::{Config, ExpertsConfig, NormKind, NormPlaces, QkNorm};
pub use experts::{Experts, SparseMoe};
pub use layer::{FeedForward, Layer, Mlp};
pub use norm::Norm;
pub use rotary::RopeScaling;

pub(super) use names::{adapted, stacked};

use attention::Positions;
pub(super) use config::{rope, theta_of};
pub(super) use rotary::{Angles, long_rope_factor, mscale};

use super::config::{Fields, loaded};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The layers between the embedding and the head.
#[derive(Module, Clone, Debug)]
pub struct Decoder {
    /// Of words.
    pub embed_tokens: nn::Embedding,
    /// The layers.
    pub layers: Vec<Layer>,
    /// After the last layer.
    pub norm: Norm,
    #[module(flatten)]
    angles: Angles,
    /// Of layers with a window, where they differ.
    local_angles: Option<Angles>,
    /// Of texts longer than `short_length`, where they differ.
    long_angles: Option<Angles>,
    short_length: usize,
    /// How far back each layer sees.
    windows: Vec<Option<usize>>,
    /// The factor of embeddings.
    scale: Option<f64>,
}

/// The caches of a model before the first word: keys and values of `[batch, heads, 0, width]`, of widths of their own.
pub(super) fn empty_caches(
    layers: usize,
    [batch, heads]: [usize; 2],
    [keys, values]: [usize; 2],
    dtype: DType,
) -> Result<Vec<Cache>> {
    let empty = |width: usize| Tensor::zeros((batch, heads, 0, width))?.to_dtype(dtype);
    let caches = (0..layers).map(|_| {
        Ok(Cache {
            k: empty(keys)?,
            v: empty(values)?,
        })
    });
    caches.collect()
}

impl Decoder {
    fn new(config: &Config) -> Result<Self> {
        let (positions, dim) = (config.max_position_embeddings, config.rotary_dim);
        let (theta, scaling) = (config.rope_theta, &config.rope_scaling);
        let angles = match &config.rope_factors {
            Some(factors) => Angles::with_factors(positions, theta, dim, scaling, factors)?,
            None => Angles::new(positions, theta, dim, scaling)?,
        };
        let local = |theta| Angles::new(positions, theta, dim, &RopeScaling::None);
        let long = Angles::long(positions, theta, dim, scaling)?;
        let short_length = long.as_ref().map_or(usize::MAX, |(_, length)| *length);
        let layers = (0..config.num_hidden_layers).map(|layer| Layer::new(config, layer));
        let scale = |scale: f64| match config.norm {
            // Gemma rounds it to the type of the embedding before it multiplies.
            NormKind::RMSPlusOne => Tensor::from_vec(vec![scale as f32], ())?
                .to_dtype(config.dtype)?
                .item(),
            _ => Ok(scale),
        };
        Ok(Decoder {
            embed_tokens: nn::Embedding::new(config.vocab_size, config.hidden_size)?,
            layers: layers.collect::<Result<_>>()?,
            norm: Norm::new(config, config.hidden_size)?,
            angles,
            local_angles: config.local_rope_theta.map(local).transpose()?,
            long_angles: long.map(|(angles, _)| angles),
            short_length,
            windows: config.windows.clone(),
            scale: config.embedding_multiplier.map(scale).transpose()?,
        })
    }

    /// Whether each position from `seen` on sees each position before `total`, within a window if
    /// there is one.
    fn mask(seen: Int, total: Int, window: Option<usize>) -> Result<Tensor> {
        let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let mask = queries.ge(&keys)?;
        match window {
            Some(window) => mask & (queries - keys)?.lt(window as i64)?,
            None => Ok(mask),
        }
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Decoder")]
impl Decoder {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let caches = caches.into_iter().map(|cache| vec![cache]).collect();
        let (x, caches) = self.read(std::slice::from_ref(tokens), &[], caches)?;
        Ok((x, caches.into_iter().flatten().collect()))
    }
}

impl Decoder {
    /// The states of the words of several texts, behind each other, and their caches: for each layer, one for each text.
    /// `ends` is where the words of each text end; of one text alone it is empty.
    fn read(
        &self,
        texts: &[Tensor],
        ends: &[Int],
        caches: Vec<Vec<Cache>>,
    ) -> Result<(Tensor, Vec<Vec<Cache>>)> {
        let first = caches.first().map(Vec::as_slice).unwrap_or_default();
        let mut spans = Vec::new();
        for (at, words) in texts.iter().enumerate() {
            let seen = match first.get(at) {
                Some(cache) => cache.k.size(2)?,
                None => 0.into(),
            };
            spans.push((seen, (seen + words.size(1)?)?));
        }
        let joined = |parts: Vec<Tensor>, dim| match &parts[..] {
            [x] => Ok(x.clone()),
            parts => ops::cat(parts, dim),
        };
        let mut x = self.embed_tokens.forward(&joined(texts.to_vec(), 1)?)?;
        if let Some(scale) = self.scale {
            x = (x * scale)?;
        }
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for (seen, total) in &spans {
            let (of_cos, of_sin) = self.rotation(*seen, *total)?;
            cos.push(of_cos);
            sin.push(of_sin);
        }
        let (cos, sin) = (joined(cos, 0)?, joined(sin, 0)?);
        let local = match &self.local_angles {
            Some(angles) => {
                let (mut cos, mut sin) = (Vec::new(), Vec::new());
                for (seen, total) in &spans {
                    cos.push(angles.cos.i(*seen..*total)?);
                    sin.push(angles.sin.i(*seen..*total)?);
                }
                Some((joined(cos, 0)?, joined(sin, 0)?))
            }
            None => None,
        };
        let mut masks: Vec<(Option<usize>, Vec<Tensor>)> = Vec::new();
        let mut updated = Vec::new();
        for ((layer, caches), window) in self.layers.iter().zip(caches).zip(&self.windows) {
            let masks = match masks.iter().find(|(of, _)| of == window) {
                Some((_, masks)) => masks.clone(),
                None => {
                    let of_texts = spans.iter();
                    let of_texts =
                        of_texts.map(|(seen, total)| Decoder::mask(*seen, *total, *window));
                    let of_texts: Vec<Tensor> = of_texts.collect::<Result<_>>()?;
                    masks.push((*window, of_texts.clone()));
                    of_texts
                }
            };
            let (cos, sin) = match &local {
                Some((cos, sin)) if window.is_some() => (cos.clone(), sin.clone()),
                _ => (cos.clone(), sin.clone()),
            };
            let ends = ends.to_vec();
            let at = Positions {
                cos,
                sin,
                masks,
                ends,
            };
            let (y, caches) = layer.forward(&x, at, caches)?;
            x = y;
            updated.push(caches);
        }
        Ok((self.norm.forward(&x)?, updated))
    }

    /// The cosines and sines for the positions of a text from `seen` to `total`.
    fn rotation(&self, seen: Int, total: Int) -> Result<(Tensor, Tensor)> {
        let (cos, sin) = (
            self.angles.cos.i(seen..total)?,
            self.angles.sin.i(seen..total)?,
        );
        let Some(long) = &self.long_angles else {
            return Ok((cos, sin));
        };
        let is_long = Tensor::arange((total - 1)?, total)?.ge(self.short_length as i64)?;
        let cos = ops::r#where(&is_long, &long.cos.i(seen..total)?, &cos)?;
        Ok((
            cos,
            ops::r#where(&is_long, &long.sin.i(seen..total)?, &sin)?,
        ))
    }
}

/// A decoder with a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct CausalLM {
    /// The decoder.
    pub model: Decoder,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    cache: CacheShape,
    /// The divisor of scores.
    scaling: Option<f64>,
    /// The bound of scores.
    softcap: Option<f64>,
}

/// The sizes of a cache's tensors.
#[derive(Module, Clone, Copy, Debug)]
struct CacheShape {
    heads: usize,
    head_dim: usize,
}

impl CausalLM {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let head = || -> Result<_> {
            Ok(nn::Linear::new(config.hidden_size, config.vocab_size)?.bias(false))
        };
        Ok(CausalLM {
            model: Decoder::new(config)?,
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            cache: CacheShape {
                heads: config.num_key_value_heads,
                head_dim: config.head_dim,
            },
            scaling: config.logits_scaling,
            softcap: config.final_logit_softcapping,
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        // A tied head may be in the file too.
        let is_tied = config.tie_word_embeddings;
        let checkpoint = Checkpoint::open(folder)?;
        let checkpoint = checkpoint.retain(|name| !(is_tied && name == "lm_head.weight"));
        CausalLM::load(&config, &adapted(checkpoint, &config)?)
    }

    /// The model of a configuration with the weights of a checkpoint under the decoder's names, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| CausalLM::new(config), config.dtype, checkpoint)
    }

    /// The caches before the first word: empty, for each layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let dtype = self.model.norm.weight.dtype()?;
        let CacheShape { heads, head_dim } = self.cache;
        empty_caches(
            self.model.layers.len(),
            [batch, heads],
            [head_dim; 2],
            dtype,
        )
    }

    /// The traced model: one graph for prompts of any length and for the words after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        Trace::new(self)
            .concrete("caches", Cache::traced(self.model.layers.len()))
            .graph_module()
    }

    /// Changes the graph of a model so that it gives the scores of the last word alone, `[N, 1, vocab_size]`: whoever writes
    /// on from a prompt needs no others, and the head is a large part of a prompt's time.
    ///
    /// ```
    /// use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
    /// use fx_nn::prelude::*;
    /// let config = Config::from_json(r#"{
    ///     "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    ///     "num_attention_heads": 4
    /// }"#)?;
    /// let model = CausalLM::new(&config)?;
    /// let mut gm = model.trace()?;
    /// let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
    /// let (all, _): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
    /// CausalLM::keep_last_scores(&mut gm)?;
    /// let (last, _): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
    /// assert_eq!(last.dims()?, [1, 1, 32]);
    /// assert!(fx_nn::allclose(&last, &all.i((.., 2..))?, 1e-5, 1e-5)?.close);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the graph is not one that [`trace`](CausalLM::trace) gives, with layers replaced or not.
    pub fn keep_last_scores(gm: &mut GraphModule) -> Result<()> {
        let given = gm.graph().output_node();
        let head = given.and_then(|output| match output.args().first()? {
            Argument::Tuple(items) => items.first()?.as_node(),
            _ => None,
        });
        let node = head.and_then(|head| gm.graph().node(head).ok());
        let x = node.and_then(|node| node.all_input_nodes().next().map(|x| x.id()));
        let (Some(head), Some(x)) = (head, x) else {
            return Err(Error::msg(
                "the graph gives no scores and caches: trace a model by `CausalLM::trace`, and change it first",
            ));
        };
        let from =
            |start: Argument| Argument::Slice([start, Argument::None, Argument::None].into());
        let last = vec![from(Argument::None), from(Argument::Int(-1))];
        let mut graph = gm.graph_mut();
        let cut = graph.inserting_before(head)?.call_function(
            fx_core::operator::getitem,
            (x, Argument::Tuple(last.into())),
            (),
        )?;
        graph.node_mut(head)?.replace_input_with(x, cut)
    }
}

#[trace(path = "fx_nn::models::hf::decoder::CausalLM")]
impl CausalLM {
    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, and the caches so
    /// far.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has.
    pub fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let (x, caches) = self.model.forward(tokens, caches)?;
        Ok((self.scores(&x)?, caches))
    }
}

impl CausalLM {
    fn scores(&self, x: &Tensor) -> Result<Tensor> {
        let scores = match &self.lm_head {
            Some(head) => head.forward(x)?,
            None => ops::linear(x, &self.model.embed_tokens.weight, None)?,
        };
        let scores = match self.scaling {
            Some(scaling) => (scores / scaling)?,
            None => scores,
        };
        let scores = match self.softcap {
            Some(cap) => (ops::tanh(&(scores / cap)?)? * cap)?,
            None => scores,
        };
        Ok(scores)
    }

    /// The scores `[1, count, vocab_size]` of the word after the last one of each text that has words, and the texts' caches:
    /// those of their layers, as [`caches`](CausalLM::caches) gives them.
    fn forward_texts(
        &self,
        texts: &[Tensor],
        caches: Vec<Vec<Cache>>,
    ) -> Result<(Tensor, Vec<Vec<Cache>>)> {
        let (mut ends, mut end) = (Vec::new(), Int::from(0));
        for words in texts {
            end = (end + words.size(1)?)?;
            ends.push(end);
        }
        let (x, caches) = self.model.read(texts, &ends, turned(caches))?;
        let (mut last, mut start) = (Vec::new(), Int::from(0));
        for end in ends {
            last.push(x.i((.., start..end))?.i((.., -1..))?);
            start = end;
        }
        Ok((self.scores(&ops::cat(&last, 1)?)?, turned(caches)))
    }

    /// One graph that reads several texts at once, as a server does: each has words of its own number, the prompt of one
    /// beside the next word of another. The products of all words are computed together, so that weights are read once;
    /// each text has its own caches.
    ///
    /// The arguments are a list of `count` texts `[1, T]` and the list of their caches, each as
    /// [`caches`](CausalLM::caches) gives them for one text. The results are the scores `[1, count, vocab_size]` of the
    /// word after the last one of each text, and the caches. Texts that have no word this time have no scores.
    ///
    /// ```
    /// use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
    /// use fx_nn::prelude::*;
    /// let config = Config::from_json(r#"{
    ///     "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    ///     "num_attention_heads": 4
    /// }"#)?;
    /// let model = CausalLM::new(&config)?;
    /// let gm = model.trace_texts(2)?;
    /// let texts = vec![Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?, Tensor::from_vec(vec![1i64, 5], (1, 2))?];
    /// let caches = vec![model.caches(1)?, model.caches(1)?];
    /// let (scores, caches): (Tensor, Vec<Vec<Cache>>) = gm.forward((texts, caches))?;
    /// assert_eq!(scores.dims()?, [1, 2, 32]);
    /// assert_eq!(caches[1][0].k.dims()?, [1, 4, 2, 4]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `count` is 0, and the errors of tracing.
    pub fn trace_texts(&self, count: usize) -> Result<GraphModule> {
        if count == 0 {
            return Err(Error::msg(
                "a graph of no texts reads nothing: `count` is 1 at least",
            ));
        }
        let model = Rc::new(self.clone());
        let same = model.clone();
        let forward = traced!(move |texts: Vec<Tensor>, caches: Vec<Vec<Cache>>| {
            same.forward_texts(&texts, caches)
        });
        let list = |of: Value| Value::List(vec![of; count].into());
        let caches = Cache::traced(self.model.layers.len());
        Trace::new(forward)
            .method_of(&*model)
            .concrete("texts", list(PH.into_value()))
            .concrete("caches", list(caches))
            .graph_module()
    }
}

/// The caches of each layer by text as those of each text by layer, or the other way round.
fn turned(caches: Vec<Vec<Cache>>) -> Vec<Vec<Cache>> {
    let mut turned: Vec<Vec<Cache>> = Vec::new();
    for of_one in caches {
        turned.resize_with(turned.len().max(of_one.len()), Vec::new);
        for (to, cache) in turned.iter_mut().zip(of_one) {
            to.push(cache);
        }
    }
    turned
}
