//! `ShardRules`: which axes split which dims of the parameters, inputs and outputs that patterns name.

use fx_nn::module::PathPattern;
use fx_nn::prelude::*;

/// Rules for parameters by path, and for inputs and outputs by name. The first rule that matches a parameter holds.
///
/// A dim is the name of an axis, several with `+` between them, or `_`, which is not split.
///
/// ```
/// use fx_stablehlo::shard::ShardRules;
/// let rules = ShardRules::new()
///     .parameter("layers.*.up.weight", "model, _")?
///     .parameter("layers.*.down.weight", "_, model")?
///     .input("x", "data, _")?;
/// # let _ = rules;
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ShardRules {
    pub(super) parameters: Vec<ShardRow>,
    pub(super) inputs: Vec<ShardRow>,
    pub(super) outputs: Vec<ShardRow>,
}

/// One rule: a pattern, and the axes of each dim.
#[derive(Debug, Clone)]
pub(super) struct ShardRow {
    pub text: String,
    pub pattern: PathPattern,
    pub dims: Vec<Vec<String>>,
    /// Presets name more than a model has.
    pub may_miss: bool,
}

impl ShardRow {
    fn new(text: &str, dims: &str, may_miss: bool) -> Result<Self> {
        let dims = dims.split(',').map(|dim| match dim.trim() {
            "" | "_" => Vec::new(),
            axes => axes
                .split('+')
                .map(|axis| axis.trim().to_string())
                .collect(),
        });
        Ok(ShardRow {
            text: text.to_string(),
            pattern: PathPattern::new(text)?,
            dims: dims.collect(),
            may_miss,
        })
    }
}

impl ShardRules {
    /// No rules.
    pub fn new() -> Self {
        ShardRules::default()
    }

    /// Splits the parameters and buffers whose paths a pattern matches.
    ///
    /// # Errors
    /// Returns an error if it is not a pattern of paths.
    pub fn parameter(mut self, pattern: &str, dims: &str) -> Result<Self> {
        self.parameters.push(ShardRow::new(pattern, dims, false)?);
        Ok(self)
    }

    /// Splits the inputs whose names a pattern matches.
    ///
    /// # Errors
    /// Returns an error if it is not a pattern.
    pub fn input(mut self, pattern: &str, dims: &str) -> Result<Self> {
        self.inputs.push(ShardRow::new(pattern, dims, false)?);
        Ok(self)
    }

    /// Splits the outputs whose places a pattern matches: `0` is the first, `*` all.
    ///
    /// # Errors
    /// Returns an error if it is not a pattern.
    pub fn output(mut self, pattern: &str, dims: &str) -> Result<Self> {
        self.outputs.push(ShardRow::new(pattern, dims, false)?);
        Ok(self)
    }

    /// These rules, and behind them others.
    #[must_use]
    pub fn and(mut self, other: ShardRules) -> Self {
        self.parameters.extend(other.parameters);
        self.inputs.extend(other.inputs);
        self.outputs.extend(other.outputs);
        self
    }

    fn preset(rows: &[(&str, &str)], axis: &str) -> Self {
        let rows = rows.iter().filter_map(|(pattern, dims)| {
            ShardRow::new(pattern, &dims.replace("AXIS", axis), true).ok()
        });
        ShardRules {
            parameters: rows.collect(),
            ..ShardRules::default()
        }
    }

    /// The first dim of every input split over an axis: each device computes its part of the batch.
    pub fn data_parallel(axis: &str) -> Self {
        let row = ShardRow::new("**", axis, true);
        ShardRules {
            inputs: row.into_iter().collect(),
            ..ShardRules::default()
        }
    }

    /// Llama's layers: projections into heads and hidden units by rows, projections back by columns, words by rows.
    pub fn llama(axis: &str) -> Self {
        ShardRules::preset(
            &[
                ("**.{q,k,v}_proj.weight", "AXIS, _"),
                ("**.{q,k,v}_proj.bias", "AXIS"),
                ("**.o_proj.weight", "_, AXIS"),
                ("**.{gate,up}_proj.weight", "AXIS, _"),
                ("**.down_proj.weight", "_, AXIS"),
                ("**.embed_tokens.weight", "AXIS, _"),
                ("**.lm_head.weight", "AXIS, _"),
            ],
            axis,
        )
    }

    /// The layers of GPT-2, whose projections are in one matrix: hidden units by rows, and back by columns.
    pub fn gpt2(axis: &str) -> Self {
        ShardRules::preset(
            &[
                ("**.mlp.c_fc.weight", "AXIS, _"),
                ("**.mlp.c_fc.bias", "AXIS"),
                ("**.mlp.c_proj.weight", "_, AXIS"),
                ("**.attn.c_attn.weight", "AXIS, _"),
                ("**.attn.c_attn.bias", "AXIS"),
                ("**.attn.c_proj.weight", "_, AXIS"),
            ],
            axis,
        )
    }

    /// The layers of vision transformers: as torchvision and Hugging Face name them.
    pub fn vit(axis: &str) -> Self {
        ShardRules::preset(
            &[
                ("**.mlp.0.weight", "AXIS, _"),
                ("**.mlp.0.bias", "AXIS"),
                ("**.mlp.3.weight", "_, AXIS"),
                ("**.self_attention.in_proj_weight", "AXIS, _"),
                ("**.self_attention.in_proj_bias", "AXIS"),
                ("**.self_attention.out_proj.weight", "_, AXIS"),
                ("**.attention.attention.{query,key,value}.weight", "AXIS, _"),
                ("**.attention.attention.{query,key,value}.bias", "AXIS"),
                ("**.attention.output.dense.weight", "_, AXIS"),
                ("**.intermediate.dense.weight", "AXIS, _"),
                ("**.intermediate.dense.bias", "AXIS"),
                ("**.output.dense.weight", "_, AXIS"),
            ],
            axis,
        )
    }
}
