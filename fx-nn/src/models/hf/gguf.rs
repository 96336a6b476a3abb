//! Decoders of GGUF files: configuration and weights, out of one file.
//!
//! Invariant: a file that this module does not understand as a whole is refused, with every problem that it has.

use std::path::Path;

use fx_core::module::ComponentExt;
use fx_core::value::DType;
use fx_core::{Error, ErrorKind, GraphModule, Result};

use super::activation::Activation;
use super::decoder::{
    Cache, CausalLM, Config, NormKind, NormPlaces, QkNorm, RopeScaling, adapted, empty_caches,
    long_rope_factor,
};
use crate::nn;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;

/// A language model in a GGUF file, of the architectures `llama` (Mistral is one), `qwen2`, `qwen3`, `gemma2`, `gemma3` and
/// `phi3`.
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

    /// LongRoPE's scaling, whose factors are tensors of the file.
    fn long_rope(&mut self, config: &Config, short: Vec<f64>, long: Vec<f64>) -> RopeScaling {
        let wanted = config.rotary_dim / 2;
        for (name, factors) in [("short", &short), ("long", &long)] {
            let fits = factors.len() == wanted && factors.iter().all(|x| *x > 0.0 && x.is_finite());
            if !fits {
                self.problems.push(format!(
                    "`rope_factors_{name}.weight` is no list of {wanted} numbers above 0"
                ));
            }
        }
        let positions = config.max_position_embeddings;
        let original = self.size("rope.scaling.original_context_length", Some(positions));
        let usual = long_rope_factor(positions as f64 / original as f64, original as f64);
        RopeScaling::LongRope {
            short_factor: short,
            long_factor: long,
            attention_factor: self.number("rope.scaling.attn_factor", usual),
            original_max_position_embeddings: original,
        }
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

/// The supported architectures.
const ARCHITECTURES: [&str; 6] = ["llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3"];

/// Tensors that are part of the configuration.
const FACTORS: [&str; 3] = [
    "rope_freqs.weight",
    "rope_factors_short.weight",
    "rope_factors_long.weight",
];

/// Hugging Face's name of a tensor of an architecture, without `.weight` or `.bias`.
fn renamed(name: &str, architecture: &str) -> Option<String> {
    let (is_phi, is_gemma) = (architecture == "phi3", architecture.starts_with("gemma"));
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
        "attn_qkv" if is_phi => "self_attn.qkv_proj",
        "ffn_up" if is_phi => "mlp.gate_up_proj",
        "ffn_norm" if is_gemma => "pre_feedforward_layernorm",
        "post_attention_norm" if is_gemma => "post_attention_layernorm",
        "post_ffw_norm" if is_gemma => "post_feedforward_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
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
        if !ARCHITECTURES.contains(&&*architecture) {
            return Err(in_file(format!(
                "its architecture is `{architecture}`: supported are {}",
                ARCHITECTURES.join(", ")
            )));
        }
        let [of_all, short, long] = FACTORS.map(|name| match checkpoint.shape(name) {
            Some(_) => checkpoint.tensor(name)?.to_vec().map(Some),
            None => Ok(None),
        });
        let mut keys = Keys {
            checkpoint: &checkpoint,
            architecture: architecture.clone(),
            problems: Vec::new(),
        };
        let mut config = config(&mut keys);
        config.rope_factors = of_all?;
        if let (Some(short), Some(long)) = (short?, long?) {
            config.rope_scaling = keys.long_rope(&config, short, long);
        }
        let mut problems = keys.problems;
        let split = |name: &str| {
            name.rsplit_once('.')
                .map(|(name, kind)| (name.to_string(), kind.to_string()))
        };
        for name in checkpoint.names() {
            let known =
                split(name).is_some_and(|(name, _)| renamed(&name, &architecture).is_some());
            if !known && !FACTORS.contains(&name) {
                problems.push(format!(
                    "`{name}` is no tensor of a model of `{architecture}`"
                ));
            }
        }
        if !problems.is_empty() {
            return Err(in_file(problems.join("\n")));
        }
        let checkpoint = checkpoint.retain(|name| !FACTORS.contains(&name));
        let checkpoint = checkpoint.rename(|name| {
            let new = split(name).and_then(|(name, kind)| {
                Some(format!("{}.{kind}", renamed(&name, &architecture)?))
            });
            new.unwrap_or_else(|| name.to_string())
        })?;
        let checkpoint = adapted(checkpoint, &config)?;
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
            [batch, num_key_value_heads],
            [head_dim; 2],
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
        self.with_blocks(CausalLM::trace)
    }

    /// One graph for several texts at once, as [`CausalLM::trace_texts`] gives it, with the matrices of the file as they are.
    ///
    /// # Errors
    /// Returns an error if `count` is 0, and all problems of the weights.
    pub fn trace_texts(&self, count: usize) -> Result<GraphModule> {
        self.with_blocks(|model| model.trace_texts(count))
    }

    /// A graph of the model, with the matrices of the file as they are.
    fn with_blocks(
        &self,
        trace: impl FnOnce(&CausalLM) -> Result<GraphModule>,
    ) -> Result<GraphModule> {
        // The head is a layer of its own, so that its matrix stays as it is too.
        let mut config = self.config.clone();
        config.tie_word_embeddings = false;
        let mut model = nn::skip_init(|| CausalLM::new(&config))?;
        nn::set_requires_grad(&mut model, false)?;
        model.eval();
        let mut gm = trace(&model)?;
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
    let max_position_embeddings = keys.size("context_length", None);
    let rope_scaling = rope_scaling(keys, max_position_embeddings);
    let rotary_dim = keys.size("rope.dimension_count", Some(head_dim));
    let is_phi = keys.architecture == "phi3";
    if rotary_dim != head_dim && !(is_phi && rotary_dim < head_dim && rotary_dim.is_multiple_of(2))
    {
        keys.problems.push(format!(
            "{rotary_dim} of {head_dim} dims of a head are rotated: only all of them can be"
        ));
    }
    if keys
        .get::<usize>("expert_count")
        .is_some_and(|count| count > 0)
    {
        keys.problems
            .push("it has experts, which are not supported".into());
    }
    let window: Option<usize> = keys.get("attention.sliding_window");
    let mut config = Config {
        vocab_size,
        hidden_size,
        intermediate_size: keys.size("feed_forward_length", None),
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads,
        head_dim,
        max_position_embeddings,
        norm: NormKind::RMS,
        rms_norm_eps: keys.number("attention.layer_norm_rms_epsilon", 1e-6),
        norm_places: NormPlaces::Before,
        qk_norm: None,
        rope_theta: keys.number("rope.freq_base", 10000.0),
        local_rope_theta: None,
        rotary_dim,
        rope_scaling,
        rope_factors: None,
        tie_word_embeddings: false,
        qkv_bias: false,
        out_bias: false,
        mlp_bias: false,
        windows: vec![window.filter(|window| *window > 0); num_hidden_layers],
        activation: Activation::SiLU,
        has_gate: true,
        experts: None,
        embedding_multiplier: None,
        attention_multiplier: None,
        residual_multiplier: None,
        logits_scaling: None,
        attn_logit_softcapping: None,
        final_logit_softcapping: None,
        dtype: DType::F32,
    };
    match keys.architecture.as_str() {
        "qwen2" => config.qkv_bias = true,
        "qwen3" => config.qk_norm = Some(QkNorm::Head),
        "gemma2" | "gemma3" => add_gemma(keys, &mut config),
        _ => {}
    }
    config
}

/// What Gemma 2 and 3 have of their own. The weights of norms in these files are one more than Hugging Face's.
fn add_gemma(keys: &mut Keys<'_>, config: &mut Config) {
    let is_second = keys.architecture == "gemma2";
    config.norm_places = NormPlaces::Both;
    config.activation = Activation::GELUTanh;
    config.embedding_multiplier = Some((config.hidden_size as f64).sqrt());
    // The largest ones divide by the root of the width of a head as if the heads shared the model's width.
    let largest = if is_second { 46 } else { 62 };
    if config.num_hidden_layers == largest {
        let width = config.hidden_size / config.num_attention_heads;
        config.attention_multiplier = Some((width.max(1) as f64).powf(-0.5));
    }
    let mut bound = |name: &str, default: Option<f64>| {
        let found: Option<f64> = keys.get(name).or(default);
        found.filter(|cap| *cap > 0.0)
    };
    config.attn_logit_softcapping = bound("attn_logit_softcapping", is_second.then_some(50.0));
    config.final_logit_softcapping = bound("final_logit_softcapping", is_second.then_some(30.0));
    let pattern = if is_second { 2 } else { 6 };
    for (at, window) in config.windows.iter_mut().enumerate() {
        *window = window.filter(|_| (at + 1) % pattern != 0);
    }
    if !is_second {
        config.qk_norm = Some(QkNorm::Head);
        config.local_rope_theta = Some(keys.number("rope.freq_base_swa", 10000.0));
    }
}

/// How the angles are scaled, by the keys of a file.
fn rope_scaling(keys: &mut Keys<'_>, positions: usize) -> RopeScaling {
    let scaling: Option<String> = keys.get("rope.scaling.type");
    match scaling.as_deref() {
        // The factors of LongRoPE are tensors.
        None | Some("none" | "longrope") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear(keys.number("rope.scaling.factor", 1.0)),
        Some("yarn") => {
            let original = keys.size("rope.scaling.original_context_length", Some(positions));
            let factor = keys.number("rope.scaling.factor", 1.0);
            let read = |what: &str| match what {
                "factor" => Some(factor),
                "original_max_position_embeddings" => Some(original as f64),
                _ => None,
            };
            RopeScaling::yarn(read, None, positions as f64)
        }
        Some(other) => {
            keys.problems.push(format!(
                "the rotary scaling is `{other}`: supported are none, linear, yarn, longrope, and factors in `rope_freqs.weight`"
            ));
            RopeScaling::None
        }
    }
}
