//! `Config`: what a decoder's `config.json` says, as the facts in which the families differ.
//!
//! Invariant: a value that changes what a model computes, and that the decoder does not know, is refused by name.

use fx_core::Result;
use fx_core::value::DType;
use serde_json::Value as Json;

use super::super::activation::Activation;
use super::super::config::Fields;
use super::rotary::{RopeScaling, long_rope_factor};

/// The configuration of a decoder, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// The width between layers.
    pub hidden_size: usize,
    /// The inner width of a layer's `mlp`.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads, each shared by several query heads.
    pub num_key_value_heads: usize,
    /// The width of a head.
    pub head_dim: usize,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// What a norm computes.
    pub norm: NormKind,
    /// The epsilon of norms.
    pub rms_norm_eps: f64,
    /// Where a layer's norms stand.
    pub norm_places: NormPlaces,
    /// What norms of queries and keys read, if there are any.
    pub qk_norm: Option<QkNorm>,
    /// The base of the rotary angles.
    pub rope_theta: f64,
    /// The base of the angles of layers with a window, which are not scaled then; `None` if it is the same for all layers.
    pub local_rope_theta: Option<f64>,
    /// How many dims of a head are rotated: the first ones.
    pub rotary_dim: usize,
    /// How angles are scaled for longer texts.
    pub rope_scaling: RopeScaling,
    /// What each of the rotary frequencies is divided by too, where a file lists it.
    pub rope_factors: Option<Vec<f64>>,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Whether the attention's results have a bias.
    pub out_bias: bool,
    /// Whether the layers of `mlp` have a bias.
    pub mlp_bias: bool,
    /// How many positions each layer sees, including its own; `None` for all.
    pub windows: Vec<Option<usize>>,
    /// The activation of an `mlp`, or of its gate.
    pub activation: Activation,
    /// Whether an `mlp` has a gate.
    pub has_gate: bool,
    /// The experts that stand for the `mlp` of some layers.
    pub experts: Option<ExpertsConfig>,
    /// The factor of embeddings.
    pub embedding_multiplier: Option<f64>,
    /// The factor of scores of keys; `None` for one over the root of `head_dim`.
    pub attention_multiplier: Option<f64>,
    /// The factor of what a layer adds.
    pub residual_multiplier: Option<f64>,
    /// The divisor of the scores of words.
    pub logits_scaling: Option<f64>,
    /// The bound c of scores of keys, as c · tanh(x / c).
    pub attn_logit_softcapping: Option<f64>,
    /// The bound c of scores of words, as c · tanh(x / c).
    pub final_logit_softcapping: Option<f64>,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

/// What a norm computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, fx_core::Module)]
#[non_exhaustive]
pub enum NormKind {
    /// x / sqrt(mean(x²) + eps), times the weight.
    RMS,
    /// The same, times one more than the weight: Gemma's.
    RMSPlusOne,
    /// A layer norm with a bias.
    Layer,
}

/// Where the norms of a layer stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormPlaces {
    /// Before the attention and before the `mlp`.
    Before,
    /// After each of them, before their results are added.
    After,
    /// Before and after each of them.
    Both,
}

/// What a norm of queries and keys reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QkNorm {
    /// Each head.
    Head,
    /// All heads together.
    Width,
}

/// The experts of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpertsConfig {
    /// How many there are.
    pub num_experts: usize,
    /// How many of them read each word.
    pub num_experts_per_tok: usize,
    /// The inner width of an expert.
    pub moe_intermediate_size: usize,
    /// Whether the shares of the chosen experts are scaled to add up to 1.
    pub norm_topk_prob: bool,
    /// Whether the shares are rounded to the type of the words.
    pub rounds_shares: bool,
    /// Which layers have experts.
    pub layers: Vec<bool>,
}

/// The supported values of `model_type`.
const FAMILIES: [&str; 13] = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "mixtral",
    "starcoder2",
    "granite",
    "olmo2",
];

impl Config {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        let family = fields.text_or("model_type", None);
        if !FAMILIES.contains(&&*family) {
            fields.problem(format!(
                "`model_type` is `{family}`: supported are {}",
                FAMILIES.join(", ")
            ));
        }
        let mut config = Config::plain(&mut fields);
        config.add_family(&mut fields, &family);
        config.check(&mut fields);
        fields.finish()?;
        Ok(config)
    }

    /// What all families have in common, with Llama's values where they differ.
    fn plain(fields: &mut Fields) -> Self {
        let hidden_size = fields.size("hidden_size");
        let num_attention_heads = fields.size("num_attention_heads");
        let num_hidden_layers = fields.layers();
        let head_dim = fields.size_or("head_dim", (hidden_size / num_attention_heads).max(1));
        let max_position_embeddings = fields.size_or("max_position_embeddings", 2048);
        let bias = fields.flag_or("attention_bias", false);
        Config {
            vocab_size: fields.size("vocab_size"),
            hidden_size,
            intermediate_size: fields.size("intermediate_size"),
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads: fields.size_or("num_key_value_heads", num_attention_heads),
            head_dim,
            max_position_embeddings,
            norm: NormKind::RMS,
            rms_norm_eps: fields.number_or("rms_norm_eps", 1e-6),
            norm_places: NormPlaces::Before,
            qk_norm: None,
            rope_theta: 10000.0,
            local_rope_theta: None,
            rotary_dim: head_dim,
            rope_scaling: RopeScaling::None,
            rope_factors: None,
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", false),
            qkv_bias: bias,
            out_bias: bias,
            mlp_bias: fields.flag_or("mlp_bias", false),
            windows: vec![None; num_hidden_layers],
            activation: Activation::SiLU,
            has_gate: true,
            experts: None,
            embedding_multiplier: None,
            attention_multiplier: None,
            residual_multiplier: None,
            logits_scaling: None,
            attn_logit_softcapping: None,
            final_logit_softcapping: None,
            dtype: fields.dtype(),
        }
    }

    /// What the family has of its own.
    fn add_family(&mut self, fields: &mut Fields, family: &str) {
        let mut theta = 10000.0;
        // The share of a head that is rotated.
        let mut rotated = 1.0;
        let mut activation = ("hidden_act", "silu");
        match family {
            "mistral" => self.windows = self.all(window(fields)),
            "qwen2" => {
                let bias = fields.flag_or("attention_bias", true);
                (self.qkv_bias, self.out_bias) = (bias, false);
                self.windows = self.used_windows(fields);
            }
            "qwen3" => {
                self.qk_norm = Some(QkNorm::Head);
                self.head_dim = fields.size_or("head_dim", 128);
                self.windows = self.used_windows(fields);
            }
            "qwen3_moe" => {
                self.qk_norm = Some(QkNorm::Head);
                if fields.flag_or("use_sliding_window", false) {
                    self.windows = self.all(window(fields));
                }
                self.experts = Some(self.qwen_experts(fields));
            }
            "gemma" | "gemma2" | "gemma3_text" => {
                let name = fields.get("hidden_activation").map(|_| "hidden_activation");
                activation = (name.unwrap_or("hidden_act"), "gelu_pytorch_tanh");
                theta = self.add_gemma(fields, family);
            }
            "phi3" => {
                self.rms_norm_eps = fields.number_or("rms_norm_eps", 1e-5);
                self.windows = self.all(window(fields));
                let share = rope(fields, None, "partial_rotary_factor").and_then(Json::as_f64);
                rotated = match share {
                    Some(share) => share,
                    None => fields.number_or("partial_rotary_factor", 1.0),
                };
            }
            "mixtral" => {
                theta = 1_000_000.0;
                self.rms_norm_eps = fields.number_or("rms_norm_eps", 1e-5);
                self.windows = self.all(window(fields));
                self.experts = Some(ExpertsConfig {
                    num_experts: fields.size_or("num_local_experts", 8),
                    num_experts_per_tok: fields.size_or("num_experts_per_tok", 2),
                    moe_intermediate_size: self.intermediate_size,
                    norm_topk_prob: true,
                    rounds_shares: false,
                    layers: vec![true; self.windows.len()],
                });
            }
            "starcoder2" => {
                self.norm = NormKind::Layer;
                self.rms_norm_eps = fields.number_or("norm_epsilon", 1e-5);
                let bias = fields.flag_or("use_bias", true);
                (self.qkv_bias, self.out_bias, self.mlp_bias) = (bias, bias, bias);
                self.has_gate = false;
                activation.1 = "gelu_pytorch_tanh";
                self.tie_word_embeddings = fields.flag_or("tie_word_embeddings", true);
                self.windows = self.all(window(fields));
            }
            "granite" => {
                let mut factor = |name: &str| Some(fields.number_or(name, 1.0));
                self.embedding_multiplier = factor("embedding_multiplier");
                self.attention_multiplier = factor("attention_multiplier");
                self.residual_multiplier = factor("residual_multiplier");
                self.logits_scaling = factor("logits_scaling");
            }
            "olmo2" => {
                self.norm_places = NormPlaces::After;
                self.qk_norm = Some(QkNorm::Width);
                self.rms_norm_eps = fields.number_or("rms_norm_eps", 1e-5);
            }
            _ => {}
        }
        self.activation = Activation::of(fields, activation.0, activation.1);
        if family == "gemma" && self.activation == Activation::GELU {
            // Gemma's first configurations say `gelu` and mean this.
            self.activation = Activation::GELUTanh;
        }
        let kind = self.local_rope_theta.map(|_| "full_attention");
        self.rope_theta = theta_of(fields, kind, "rope_theta", theta);
        self.rotary_dim = (self.head_dim as f64 * rotated) as usize;
        self.rope_scaling = rope_scaling(fields, kind, self, family == "phi3");
    }

    /// What Gemma's generations have of their own; returns the base of angles that is theirs without a field.
    fn add_gemma(&mut self, fields: &mut Fields, family: &str) -> f64 {
        self.norm = NormKind::RMSPlusOne;
        self.tie_word_embeddings = fields.flag_or("tie_word_embeddings", true);
        self.head_dim = fields.size_or("head_dim", 256);
        self.embedding_multiplier = Some((self.hidden_size as f64).sqrt());
        if family == "gemma" {
            return 10000.0;
        }
        fields.only_false("use_bidirectional_attention");
        self.norm_places = NormPlaces::Both;
        self.attention_multiplier =
            Some(fields.number_or("query_pre_attn_scalar", 256.0).powf(-0.5));
        let is_second = family == "gemma2";
        let mut bound = |name: &str, default: f64| {
            // A `null` says that there is none; Gemma 2 has bounds that its file may leave out.
            let is_there = fields.get(name).is_some() || is_second && !fields.has(name);
            is_there.then(|| fields.number_or(name, default))
        };
        self.attn_logit_softcapping = bound("attn_logit_softcapping", 50.0);
        self.final_logit_softcapping = bound("final_logit_softcapping", 30.0);
        let pattern = match is_second {
            true => 2,
            false => fields.size_or("sliding_window_pattern", 6),
        };
        let window = Some(fields.size_or("sliding_window", 4096));
        self.windows = self.listed_windows(fields, window).unwrap_or_else(|| {
            let layers = 1..=self.windows.len();
            layers
                .map(|layer| window.filter(|_| layer % pattern != 0))
                .collect()
        });
        if is_second {
            return 10000.0;
        }
        self.qk_norm = Some(QkNorm::Head);
        let kind = Some("sliding_attention");
        self.local_rope_theta = Some(theta_of(fields, kind, "rope_local_base_freq", 10000.0));
        let scaled = inside(fields, "sliding_attention", "rope_type").and_then(Json::as_str);
        if let Some(name) = scaled.filter(|name| *name != "default").map(str::to_string) {
            fields.problem(format!(
                "the rotary scaling of layers with a window is `{name}`: supported is default"
            ));
        }
        1_000_000.0
    }

    fn qwen_experts(&self, fields: &mut Fields) -> ExpertsConfig {
        let step = fields.size_or("decoder_sparse_step", 1);
        let dense: Vec<usize> = match fields.get("mlp_only_layers").and_then(Json::as_array) {
            Some(layers) => {
                let layers = layers.iter().filter_map(Json::as_u64);
                layers.map(|layer| layer as usize).collect()
            }
            None => Vec::new(),
        };
        let name = fields
            .get("num_experts")
            .map_or("num_local_experts", |_| "num_experts");
        let layers = 0..self.windows.len();
        ExpertsConfig {
            num_experts: fields.size_or(name, 128),
            num_experts_per_tok: fields.size_or("num_experts_per_tok", 8),
            moe_intermediate_size: fields.size_or("moe_intermediate_size", 768),
            norm_topk_prob: fields.flag_or("norm_topk_prob", false),
            rounds_shares: true,
            layers: layers
                .map(|layer| (layer + 1) % step == 0 && !dense.contains(&layer))
                .collect(),
        }
    }

    /// Every layer with one window.
    fn all(&self, window: Option<usize>) -> Vec<Option<usize>> {
        vec![window; self.windows.len()]
    }

    /// Qwen's windows: in the layers behind the first ones, if they are used.
    fn used_windows(&self, fields: &mut Fields) -> Vec<Option<usize>> {
        let window = match fields.flag_or("use_sliding_window", false) {
            true => window(fields),
            false => None,
        };
        if let Some(windows) = self.listed_windows(fields, window) {
            return windows;
        }
        let first = fields.size_or("max_window_layers", self.num_hidden_layers);
        let layers = 0..self.windows.len();
        layers.map(|at| window.filter(|_| at >= first)).collect()
    }

    /// The windows where a file lists each layer's type.
    fn listed_windows(
        &self,
        fields: &mut Fields,
        window: Option<usize>,
    ) -> Option<Vec<Option<usize>>> {
        let types = fields.get("layer_types")?.clone();
        let types = types.as_array().map(Vec::as_slice).unwrap_or_default();
        let layers = self.num_hidden_layers;
        if types.len() != layers {
            fields.problem(format!(
                "`layer_types` has {} entries, and there are {layers} layers",
                types.len()
            ));
        }
        let mut windows = Vec::with_capacity(types.len());
        for kind in types {
            match kind.as_str() {
                Some("sliding_attention") => windows.push(window),
                Some("full_attention") => windows.push(None),
                _ => fields.problem(format!(
                    "`layer_types` has {kind}: supported are full_attention and sliding_attention"
                )),
            }
        }
        Some(windows)
    }

    fn check(&self, fields: &mut Fields) {
        let (heads, keys) = (self.num_attention_heads, self.num_key_value_heads);
        if !heads.is_multiple_of(keys) {
            fields.problem(format!(
                "`num_key_value_heads` is {keys}, which does not divide the {heads} heads of queries"
            ));
        }
        for (name, dims) in [
            ("head_dim", self.head_dim),
            ("the rotated part of a head", self.rotary_dim),
        ] {
            if !dims.is_multiple_of(2) || dims == 0 || dims > self.head_dim {
                fields.problem(format!(
                    "{name} has {dims} dims, and no even number up to {}",
                    self.head_dim
                ));
            }
        }
        if let Some(experts) = &self.experts
            && experts.num_experts_per_tok > experts.num_experts
        {
            fields.problem(format!(
                "`num_experts_per_tok` is {}, and there are {} experts",
                experts.num_experts_per_tok, experts.num_experts
            ));
        }
    }
}

/// The window of a file, if it has one.
fn window(fields: &mut Fields) -> Option<usize> {
    fields.get("sliding_window")?;
    Some(fields.size("sliding_window"))
}

/// A rotary field of a kind of layers.
fn inside<'f>(fields: &'f Fields, kind: &str, name: &str) -> Option<&'f Json> {
    let of_kind = fields.get("rope_parameters")?.get(kind)?;
    of_kind.get(name).filter(|value| !value.is_null())
}

/// A rotary field of a kind of layers, or of all: newer files have them in a part of their own.
pub(in super::super) fn rope<'f>(
    fields: &'f Fields,
    kind: Option<&str>,
    name: &str,
) -> Option<&'f Json> {
    if let Some(found) = kind.and_then(|kind| inside(fields, kind, name)) {
        return Some(found);
    }
    let of_all = |part: &str| fields.get(part)?.get(name).filter(|value| !value.is_null());
    of_all("rope_parameters").or_else(|| of_all("rope_scaling"))
}

/// The base of the angles of a kind of layers, or of all; `older` is its name in files without such a part.
pub(in super::super) fn theta_of(
    fields: &mut Fields,
    kind: Option<&str>,
    older: &str,
    default: f64,
) -> f64 {
    match rope(fields, kind, "rope_theta").and_then(Json::as_f64) {
        Some(theta) if theta > 0.0 && theta.is_finite() => theta,
        _ => fields.number_or(older, default),
    }
}

fn rope_scaling(
    fields: &mut Fields,
    kind: Option<&str>,
    config: &Config,
    is_phi: bool,
) -> RopeScaling {
    let name = rope(fields, kind, "rope_type").or_else(|| rope(fields, kind, "type"));
    let name = name.and_then(Json::as_str).unwrap_or("default").to_string();
    let read = |fields: &Fields, what: &str| {
        let found = rope(fields, kind, what)
            .or_else(|| fields.get(what))
            .and_then(Json::as_f64);
        found.filter(|x| *x > 0.0 && x.is_finite())
    };
    let number = |fields: &mut Fields, what: &str| {
        let found = read(fields, what);
        if found.is_none() {
            fields.problem(format!(
                "the rotary scaling `{name}` needs a number `{what}` above 0"
            ));
        }
        found.unwrap_or(1.0)
    };
    let positions = config.max_position_embeddings as f64;
    match name.as_str() {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear(number(fields, "factor")),
        "llama3" => RopeScaling::Llama3 {
            factor: number(fields, "factor"),
            high_freq_factor: number(fields, "high_freq_factor"),
            low_freq_factor: number(fields, "low_freq_factor"),
            original_max_position_embeddings: number(fields, "original_max_position_embeddings"),
        },
        "yarn" if !is_phi => {
            let truncate = rope(fields, kind, "truncate").and_then(Json::as_bool);
            RopeScaling::yarn(|what| read(fields, what), truncate, positions)
        }
        "longrope" | "su" | "yarn" => {
            let original = read(fields, "original_max_position_embeddings").unwrap_or(4096.0);
            let factor = read(fields, "factor").unwrap_or(positions / original);
            let usual = long_rope_factor(factor, original);
            let mut factors = |what: &str| {
                let found: Option<Vec<f64>> = rope(fields, kind, what)
                    .and_then(Json::as_array)
                    .and_then(|list| {
                        let numbers = list.iter().map(|x| x.as_f64().filter(|x| *x > 0.0));
                        numbers.collect()
                    });
                let wanted = config.rotary_dim / 2;
                match found {
                    Some(list) if list.len() == wanted => list,
                    _ => {
                        fields.problem(format!(
                            "the rotary scaling `{name}` needs a list `{what}` of {wanted} numbers above 0"
                        ));
                        Vec::new()
                    }
                }
            };
            RopeScaling::LongRope {
                short_factor: factors("short_factor"),
                long_factor: factors("long_factor"),
                attention_factor: read(fields, "attention_factor").unwrap_or(usual),
                original_max_position_embeddings: original as usize,
            }
        }
        other => {
            fields.problem(format!(
                "the rotary scaling is `{other}`: supported are default, linear, llama3, yarn and longrope"
            ));
            RopeScaling::None
        }
    }
}
