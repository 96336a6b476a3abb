//! Decoders of GGUF files: configuration and weights, out of one file.
//!
//! Invariant: a file that this module does not understand as a whole is refused, with every problem that it has.

use std::path::Path;

use fx_core::module::ComponentExt;
use fx_core::value::DType;
use fx_core::{Error, ErrorKind, GraphModule, Result};

use super::activation::Activation;
use super::decoder::{Cache, CausalLM, Config, RopeScaling, empty_caches};
use crate::nn;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;

/// A language model in a GGUF file, of the architectures `llama` (Mistral is one) and `qwen2`.
///
/// ```no_run
/// use fx_nn::cpu::Cpu;
/// use fx_nn::models::hf::decoder::Cache;
/// use fx_nn::models::hf::gguf::Gguf;
/// use fx_nn::passes::backend::Compile;
/// use fx_nn::prelude::*;
/// let file = Gguf::open("qwen2.5-0.5b-instruct-q4_0.gguf")?.dtype(DType::F16);
/// let fast = file.trace()?.compile(Compile::new(Cpu::new()))?;
/// let prompt = Tensor::from_vec(vec![9707i64, 11, 1879], (1, 3))?;
/// let (scores, caches): (Tensor, Vec<Cache>) = fast.forward((&prompt, file.caches(1)?))?;
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub struct Gguf {
    config: Config,
    /// Under the names of Hugging Face's.
    checkpoint: Checkpoint,
    /// Whether the rows of queries and keys are in llama.cpp's order: pairs that are rotated lie side by side.
    has_pairs: bool,
}

/// The keys of a model, and the problems of those that were read.
struct Keys<'a> {
    checkpoint: &'a Checkpoint,
    architecture: String,
    problems: Vec<String>,
}

impl Keys<'_> {
    fn get<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let key = format!("{}.{name}", self.architecture);
        let text = self.checkpoint.metadata(&key)?;
        let found = text.parse().ok();
        if found.is_none() {
            self.problems.push(format!("`{key}` is {text}"));
        }
        found
    }

    /// A size above 0.
    fn size(&mut self, name: &str, default: Option<usize>) -> usize {
        let found = self.get(name).or(default);
        if found.is_none_or(|size: usize| size == 0) {
            let key = format!("{}.{name}", self.architecture);
            let problem = match found {
                Some(_) => format!("`{key}` is 0"),
                None => format!("`{key}` is missing"),
            };
            self.problems.push(problem);
            return 1;
        }
        found.unwrap_or(1)
    }

    /// A number above 0.
    fn number(&mut self, name: &str, default: f64) -> f64 {
        let found: f64 = self.get(name).unwrap_or(default);
        if !(found > 0.0 && found.is_finite()) {
            let key = format!("{}.{name}", self.architecture);
            self.problems
                .push(format!("`{key}` is {found}, and no number above 0"));
            return default;
        }
        found
    }
}

/// Hugging Face's name of a tensor, without `.weight` or `.bias`.
fn renamed(name: &str) -> Option<String> {
    let whole = match name {
        "token_embd" => Some("model.embed_tokens"),
        "output_norm" => Some("model.norm"),
        "output" => Some("lm_head"),
        _ => None,
    };
    if let Some(whole) = whole {
        return Some(whole.to_string());
    }
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let part = match part {
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        "attn_norm" => "input_layernorm",
        "ffn_norm" => "post_attention_layernorm",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}"))
}

fn problem(text: impl std::fmt::Display) -> Error {
    ErrorKind::Weights(text.to_string()).into()
}

impl Gguf {
    /// Opens a file, and reads what it says of its model; weights are read later.
    ///
    /// # Errors
    /// Returns an error if it is no GGUF file, and all problems of its keys and of its tensors' names.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let in_file = |error: String| problem(format_args!("{}: {error}", path.display()));
        let checkpoint = Checkpoint::open(path)?;
        let Some(architecture) = checkpoint.metadata("general.architecture") else {
            return Err(in_file(
                "it is no GGUF file of a model: there is no `general.architecture`".into(),
            ));
        };
        if !["llama", "qwen2"].contains(&&*architecture) {
            return Err(in_file(format!(
                "its architecture is `{architecture}`: supported are llama and qwen2"
            )));
        }
        let factors = match checkpoint.shape("rope_freqs.weight") {
            Some(_) => Some(checkpoint.tensor("rope_freqs.weight")?.to_vec()?),
            None => None,
        };
        let mut keys = Keys {
            checkpoint: &checkpoint,
            architecture: architecture.clone(),
            problems: Vec::new(),
        };
        let mut config = config(&mut keys);
        config.rope_factors = factors;
        let mut problems = keys.problems;
        let split = |name: &str| {
            name.rsplit_once('.')
                .map(|(name, kind)| (name.to_string(), kind.to_string()))
        };
        for name in checkpoint.names() {
            let known = split(name).is_some_and(|(name, _)| renamed(&name).is_some());
            if !known && name != "rope_freqs.weight" {
                problems.push(format!(
                    "`{name}` is no tensor of a model of `{architecture}`"
                ));
            }
        }
        if !problems.is_empty() {
            return Err(in_file(problems.join("\n")));
        }
        let checkpoint = checkpoint.retain(|name| name != "rope_freqs.weight");
        let checkpoint = checkpoint.rename(|name| {
            let new =
                split(name).and_then(|(name, kind)| Some(format!("{}.{kind}", renamed(&name)?)));
            new.unwrap_or_else(|| name.to_string())
        })?;
        config.tie_word_embeddings = checkpoint.shape("lm_head.weight").is_none();
        Ok(Gguf {
            config,
            checkpoint,
            has_pairs: architecture == "llama",
        })
    }

    /// The type of activations and caches, and of weights that are read as floats; `float32` without this.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.config.dtype = dtype;
        self
    }

    /// What the file says of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The caches before the first word: empty, for each layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let Config {
            num_hidden_layers,
            num_key_value_heads,
            head_dim,
            dtype,
            ..
        } = self.config;
        empty_caches(
            num_hidden_layers,
            [batch, num_key_value_heads, 0, head_dim],
            dtype,
        )
    }

    /// The model with all weights as floats, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(&self) -> Result<CausalLM> {
        let mut model = CausalLM::load(&self.config, &self.checkpoint)?;
        for layer in model.model.layers.iter_mut().filter(|_| self.has_pairs) {
            let attention = &mut layer.self_attn;
            for (linear, heads) in [
                (&mut attention.q_proj, self.config.num_attention_heads),
                (&mut attention.k_proj, self.config.num_key_value_heads),
            ] {
                linear.weight = self.in_order(&linear.weight, heads)?;
                linear.bias = match &linear.bias {
                    Some(bias) => Some(self.in_order(bias, heads)?),
                    None => None,
                };
            }
        }
        Ok(model)
    }

    /// The traced model as [`CausalLM::trace`] gives it, with the matrices of the file as they are: a
    /// [`QuantizedLinear`](nn::QuantizedLinear) for each linear layer. The embedding is a table of floats.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn trace(&self) -> Result<GraphModule> {
        // The head is a layer of its own, so that its matrix stays as it is too.
        let mut config = self.config.clone();
        config.tie_word_embeddings = false;
        let mut model = nn::skip_init(|| CausalLM::new(&config))?;
        nn::set_requires_grad(&mut model, false)?;
        model.eval();
        let mut gm = model.trace()?;
        drop(model);
        gm.replace_modules("**", |path, old: &nn::Linear| self.layer(path, old))?;
        nn::to_dtype(&mut gm, self.config.dtype)?;
        self.checkpoint.load_where(
            &mut gm,
            |name| !is_matrix(name),
            |report| {
                let mut report = report.clone();
                report.missing.retain(|missing| !is_matrix(&missing.name));
                report.strict()
            },
        )?;
        Ok(gm)
    }

    /// The layer of a path, with the blocks of the file.
    fn layer(&self, path: &str, old: &nn::Linear) -> Result<nn::QuantizedLinear> {
        let name = match path {
            "lm_head" if self.config.tie_word_embeddings => "model.embed_tokens",
            path => path,
        };
        let mut layer = self.checkpoint.quantized_linear(name)?;
        let wanted = old.weight.dims()?;
        if wanted != layer.weight.shape() || old.bias.is_some() != layer.bias.is_some() {
            let has = |is: bool| if is { "a bias" } else { "no bias" };
            return Err(problem(format_args!(
                "`{name}` has shape {:?} and {}, where the model needs {wanted:?} and {}",
                layer.weight.shape(),
                has(layer.bias.is_some()),
                has(old.bias.is_some()),
            )));
        }
        let heads = match path.rsplit_once('.') {
            Some((_, "q_proj")) if self.has_pairs => self.config.num_attention_heads,
            Some((_, "k_proj")) if self.has_pairs => self.config.num_key_value_heads,
            _ => return Ok(layer),
        };
        layer.weight = layer.weight.rows(&self.order(heads))?;
        if let Some(bias) = &layer.bias {
            layer.bias = Some(self.in_order(bias, heads)?);
        }
        Ok(layer)
    }

    /// The rows of queries or keys, or of their bias, in the order of the model.
    fn in_order(&self, x: &Tensor, heads: usize) -> Result<Tensor> {
        let order = self.order(heads).into_iter().map(|row| row as i64);
        let order: Vec<i64> = order.collect();
        let count = order.len();
        x.index_select(0, &Tensor::from_vec(order, count)?)
    }

    /// The rows of the file for the rows of queries or keys, where pairs lie side by side in the file.
    fn order(&self, heads: usize) -> Vec<usize> {
        let half = self.config.head_dim / 2;
        let row = |row: usize| {
            let (head, at) = (row / (2 * half), row % (2 * half));
            head * 2 * half + at % half * 2 + at / half
        };
        (0..heads * 2 * half).map(row).collect()
    }
}

/// Whether a tensor belongs to a layer that keeps its blocks.
fn is_matrix(name: &str) -> bool {
    let layer = name.rsplit_once('.').map_or("", |(layer, _)| layer);
    layer.ends_with("_proj") || layer == "lm_head"
}

/// The configuration that the keys of a file say.
fn config(keys: &mut Keys<'_>) -> Config {
    let is_qwen = keys.architecture == "qwen2";
    let hidden_size = keys.size("embedding_length", None);
    let num_attention_heads = keys.size("attention.head_count", None);
    let mut num_hidden_layers = keys.size("block_count", None);
    let tensors = keys.checkpoint.names().count();
    if num_hidden_layers > tensors {
        let problem = format!("there are {num_hidden_layers} layers, and {tensors} tensors");
        keys.problems.push(problem);
        num_hidden_layers = 1;
    }
    let num_key_value_heads = keys.size("attention.head_count_kv", Some(num_attention_heads));
    let head_dim = (hidden_size / num_attention_heads).max(1);
    let head_dim = keys.size("attention.key_length", Some(head_dim));
    if !num_attention_heads.is_multiple_of(num_key_value_heads) || !head_dim.is_multiple_of(2) {
        keys.problems.push(format!(
            "there are {num_attention_heads} heads of queries, {num_key_value_heads} of keys, of width {head_dim}"
        ));
    }
    let shape = |name: &str| keys.checkpoint.shape(name).map(<[usize]>::to_vec);
    let vocab_size = match shape("token_embd.weight").as_deref() {
        Some([words, width]) if *words > 0 && *width == hidden_size => *words,
        shape => {
            keys.problems.push(format!(
                "`token_embd.weight` is no table of words of width {hidden_size}: its shape is {:?}",
                shape.unwrap_or_default()
            ));
            1
        }
    };
    let scaling: Option<String> = keys.get("rope.scaling.type");
    let rope_scaling = match scaling.as_deref() {
        None | Some("none") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear(keys.number("rope.scaling.factor", 1.0)),
        Some(other) => {
            keys.problems.push(format!(
                "the rotary scaling is `{other}`: supported are none, linear, and factors in `rope_freqs.weight`"
            ));
            RopeScaling::None
        }
    };
    if let Some(dims) = keys.get::<usize>("rope.dimension_count")
        && dims != head_dim
    {
        let problem =
            format!("{dims} of {head_dim} dims of a head are rotated: only all of them can be");
        keys.problems.push(problem);
    }
    if keys
        .get::<usize>("expert_count")
        .is_some_and(|count| count > 0)
    {
        keys.problems
            .push("it has experts, which are not supported".into());
    }
    let window: Option<usize> = keys.get("attention.sliding_window");
    Config {
        vocab_size,
        hidden_size,
        intermediate_size: keys.size("feed_forward_length", None),
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads,
        head_dim,
        max_position_embeddings: keys.size("context_length", None),
        rms_norm_eps: keys.number("attention.layer_norm_rms_epsilon", 1e-6),
        rope_theta: keys.number("rope.freq_base", 10000.0),
        rope_scaling,
        rope_factors: None,
        tie_word_embeddings: false,
        qkv_bias: is_qwen,
        out_bias: false,
        mlp_bias: false,
        windows: vec![window; num_hidden_layers],
        activation: Activation::SiLU,
        is_gemma: false,
        dtype: DType::F32,
    }
}
