//! Which layer of fx a module of `torch.nn` is, by its class.
//!
//! Invariant: an entry takes every argument of its operator, or gives no layer.

use fx_nn::prelude::*;
use fx_nn::tensor::{Pair, Triple};

use super::attention::multihead_attention;
use super::found::{Found, Layer};
use super::recurrent::{gru, lstm, rnn};

/// What the nodes of a class are.
type Rule = for<'p> fn(&Found<'p>) -> Option<Layer<'p>>;

/// The rule of a class: its path in `torch.nn.modules`.
pub(super) fn rule(class: &str) -> Option<Rule> {
    let (_, name) = class.strip_prefix("torch.nn.modules.")?.rsplit_once('.')?;
    let mut all = RULES.iter().chain(PLAIN).chain(PADS);
    all.find(|(known, _)| *known == name).map(|(_, rule)| *rule)
}

/// Entries of layers that take one tensor: the class, the operator, and the layer's fields from the operator's arguments.
macro_rules! rules {
    ($($class:literal, $operator:literal, |$one:ident| $layer:expr;)*) => {
        &[$(($class, |found| {
            let $one = found.one($operator)?;
            $one.layer($layer)
        })),*]
    };
}

macro_rules! conv {
    ($one:ident, $layer:ident, $number:expr $(, $more:ident)?) => {
        nn::$layer {
            weight: $one.get("weight")?,
            bias: $one.or("bias", None)?,
            stride: $one.or("stride", $number(1))?,
            padding: $one.or("padding", $number(0))?,
            dilation: $one.or("dilation", $number(1))?,
            groups: $one.or("groups", 1)?,
            $($more: $one.or(stringify!($more), $number(0))?,)?
        }
    };
}

macro_rules! instance_norm {
    ($one:ident, $layer:ident) => {
        nn::$layer {
            num_features: $one.channels()?,
            weight: $one.or("weight", None)?,
            bias: $one.or("bias", None)?,
            running_mean: $one.or("running_mean", None)?,
            running_var: $one.or("running_var", None)?,
            num_batches_tracked: $one.beside("num_batches_tracked"),
            eps: $one.get("eps")?,
            momentum: $one.get("momentum")?,
            training: $one.get("use_input_stats")? && $one.has("running_mean"),
        }
    };
}

macro_rules! max_pool {
    ($one:ident, $layer:ident, $number:expr) => {
        nn::$layer {
            kernel_size: $one.get("kernel_size")?,
            stride: $one.or("stride", $one.get("kernel_size")?)?,
            padding: $one.or("padding", $number(0))?,
            dilation: $one.or("dilation", $number(1))?,
            ceil_mode: $one.or("ceil_mode", false)?,
        }
    };
}

macro_rules! avg_pool {
    ($one:ident, $layer:ident, $number:expr) => {
        nn::$layer {
            kernel_size: $one.get("kernel_size")?,
            stride: $one.or("stride", $one.get("kernel_size")?)?,
            padding: $one.or("padding", $number(0))?,
            ceil_mode: $one.or("ceil_mode", false)?,
            count_include_pad: $one.or("count_include_pad", true)?,
        }
    };
}

macro_rules! dropout {
    ($one:ident, $layer:ident) => {
        nn::$layer {
            p: $one.get("p")?,
            training: $one.or("train", false)?,
        }
    };
}

fn one(number: usize) -> usize {
    number
}

fn pair(number: usize) -> Pair {
    Pair(number, number)
}

fn triple(number: usize) -> Triple {
    Triple(number, number, number)
}

/// `nn.ReLU6` is written as a bound of 0 and 6.
fn relu6<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    if let Some(one) = found.one("aten.relu6") {
        return one.layer(nn::ReLU6::new());
    }
    let one = found.one("aten.hardtanh")?;
    let bounds: (f64, f64) = (one.or("min_val", -1.0)?, one.or("max_val", 1.0)?);
    (bounds == (0.0, 6.0)).then(|| one.layer(nn::ReLU6::new()))?
}

fn hardtanh<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    let one = found.one("aten.hardtanh")?;
    one.layer(nn::Hardtanh {
        min_val: one.or("min_val", -1.0)?,
        max_val: one.or("max_val", 1.0)?,
    })
}

fn elu<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    let one = found.one("aten.elu")?;
    let scales: (f64, f64) = (one.or("scale", 1.0)?, one.or("input_scale", 1.0)?);
    let alpha = one.or("alpha", 1.0)?;
    (scales == (1.0, 1.0)).then(|| one.layer(nn::ELU { alpha }))?
}

/// The table comes before the indices.
fn embedding<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    let one = found.one("aten.embedding")?;
    let weight = one.get("weight")?;
    let index: i64 = one.or("padding_idx", -1)?;
    one.layer_of(
        "indices",
        nn::Embedding {
            weight,
            padding_idx: usize::try_from(index).ok(),
        },
    )
}

fn upsample<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    const MODES: [(&str, &str); 8] = [
        ("aten.upsample_nearest1d", "nearest"),
        ("aten.upsample_nearest2d", "nearest"),
        ("aten.upsample_nearest3d", "nearest"),
        ("aten._upsample_nearest_exact2d", "nearest-exact"),
        ("aten.upsample_linear1d", "linear"),
        ("aten.upsample_bilinear2d", "bilinear"),
        ("aten.upsample_bicubic2d", "bicubic"),
        ("aten.upsample_trilinear3d", "trilinear"),
    ];
    let (one, mode) = MODES
        .iter()
        .find_map(|(operator, mode)| Some((found.one(operator)?, *mode)))?;
    let size: Option<Vec<usize>> = one.or("output_size", None)?;
    let align: Option<bool> = match one.argument("align_corners") {
        Some(_) => Some(one.get("align_corners")?),
        None => None,
    };
    let factors: Option<Vec<f64>> = one.or("scale_factors", None)?;
    let made = match (size, factors) {
        (Some(size), None) => nn::Upsample::to_size(size),
        (None, Some(factors)) => nn::Upsample::new(factors),
        _ => return None,
    };
    one.layer(made.mode(mode).align_corners(align))
}

/// Entries of layers that pad: the class, the mode, and the value that the layer puts.
macro_rules! pads {
    ($($class:ident, $mode:literal;)*) => {
        &[$((stringify!($class), |found| {
            let one = found.one("aten.pad")?;
            let mode: String = one.or("mode", "constant".to_string())?;
            let value: Option<f64> = one.or("value", None)?;
            let fits = mode == $mode && value.unwrap_or(0.0) == 0.0;
            let padding = one.get("pad")?;
            fits.then(|| one.layer(nn::$class { padding }))?
        })),*]
    };
}

const PADS: &[(&str, Rule)] = pads! {
    ZeroPad1d, "constant";
    ZeroPad2d, "constant";
    ZeroPad3d, "constant";
    ReflectionPad1d, "reflect";
    ReflectionPad2d, "reflect";
    ReflectionPad3d, "reflect";
    ReplicationPad1d, "replicate";
    ReplicationPad2d, "replicate";
    ReplicationPad3d, "replicate";
    CircularPad1d, "circular";
    CircularPad2d, "circular";
    CircularPad3d, "circular";
};

/// Batch norm: in training PyTorch counts the batches first. Torch 2.5 has an operator for evaluation.
macro_rules! batch_norm {
    ($name:ident, $layer:ident) => {
        fn $name<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
            let (norm, before) = found.nodes.split_last()?;
            let evaluation = found.of(norm, "aten._native_batch_norm_legit_no_training");
            let in_evaluation = evaluation.is_some();
            let one = evaluation.or_else(|| found.of(norm, "aten.batch_norm"))?;
            // A layer counts in a variable.
            let tracked = found.beside("num_batches_tracked");
            let tracked = tracked.map(Tensor::into_parameter).transpose().ok()?;
            let training = !in_evaluation && one.get("training")?;
            let is_counted = match before {
                [] => !training || tracked.is_none(),
                [count] => training && found.counts(count, "num_batches_tracked"),
                _ => false,
            };
            let layer = nn::$layer {
                weight: one.or("weight", None)?,
                bias: one.or("bias", None)?,
                running_mean: one.or("running_mean", None)?,
                running_var: one.or("running_var", None)?,
                num_batches_tracked: tracked,
                eps: one.get("eps")?,
                momentum: one.get("momentum")?,
                training,
            };
            is_counted.then(|| one.layer(layer))?
        }
    };
}
batch_norm!(batch_norm1d, BatchNorm1d);
batch_norm!(batch_norm2d, BatchNorm2d);
batch_norm!(batch_norm3d, BatchNorm3d);

const RULES: &[(&str, Rule)] = &[
    ("ReLU6", relu6),
    ("Hardtanh", hardtanh),
    ("ELU", elu),
    ("Embedding", embedding),
    ("Upsample", upsample),
    ("BatchNorm1d", batch_norm1d),
    ("BatchNorm2d", batch_norm2d),
    ("BatchNorm3d", batch_norm3d),
    ("LSTM", lstm),
    ("GRU", gru),
    ("RNN", rnn),
    ("MultiheadAttention", multihead_attention),
];

const PLAIN: &[(&str, Rule)] = rules! {
    "Linear", "aten.linear", |one| nn::Linear {
        weight: one.get("weight")?,
        bias: one.or("bias", None)?,
    };
    "Conv1d", "aten.conv1d", |one| conv!(one, Conv1d, self::one);
    "Conv2d", "aten.conv2d", |one| conv!(one, Conv2d, pair);
    "Conv3d", "aten.conv3d", |one| conv!(one, Conv3d, triple);
    "ConvTranspose1d", "aten.conv_transpose1d", |one| conv!(one, ConvTranspose1d, self::one, output_padding);
    "ConvTranspose2d", "aten.conv_transpose2d", |one| conv!(one, ConvTranspose2d, pair, output_padding);
    "ConvTranspose3d", "aten.conv_transpose3d", |one| conv!(one, ConvTranspose3d, triple, output_padding);
    "LayerNorm", "aten.layer_norm", |one| nn::LayerNorm {
        weight: one.or("weight", None)?,
        bias: one.or("bias", None)?,
        normalized_shape: one.get("normalized_shape")?,
        eps: one.or("eps", 1e-5)?,
    };
    "GroupNorm", "aten.group_norm", |one| nn::GroupNorm {
        weight: one.or("weight", None)?,
        bias: one.or("bias", None)?,
        num_groups: one.get("num_groups")?,
        eps: one.or("eps", 1e-5)?,
    };
    "RMSNorm", "aten.rms_norm", |one| nn::RMSNorm {
        weight: one.or("weight", None)?,
        normalized_shape: one.get("normalized_shape")?,
        eps: one.get("eps")?,
    };
    "InstanceNorm1d", "aten.instance_norm", |one| instance_norm!(one, InstanceNorm1d);
    "InstanceNorm2d", "aten.instance_norm", |one| instance_norm!(one, InstanceNorm2d);
    "InstanceNorm3d", "aten.instance_norm", |one| instance_norm!(one, InstanceNorm3d);
    "PReLU", "aten.prelu", |one| nn::PReLU { weight: one.get("weight")? };
    "ReLU", "aten.relu", |one| nn::ReLU::new();
    "GELU", "aten.gelu", |one| nn::GELU { approximate: one.or("approximate", "none".to_string())? };
    "SiLU", "aten.silu", |one| nn::SiLU::new();
    "Mish", "aten.mish", |one| nn::Mish::new();
    "SELU", "aten.selu", |one| nn::SELU::new();
    "CELU", "aten.celu", |one| nn::CELU { alpha: one.or("alpha", 1.0)? };
    "LeakyReLU", "aten.leaky_relu", |one| nn::LeakyReLU { negative_slope: one.or("negative_slope", 0.01)? };
    "Sigmoid", "aten.sigmoid", |one| nn::Sigmoid::new();
    "Hardsigmoid", "aten.hardsigmoid", |one| nn::Hardsigmoid::new();
    "Hardswish", "aten.hardswish", |one| nn::Hardswish::new();
    "Tanh", "aten.tanh", |one| nn::Tanh::new();
    "LogSigmoid", "aten.log_sigmoid", |one| nn::LogSigmoid::new();
    "Softplus", "aten.softplus", |one| nn::Softplus {
        beta: one.or("beta", 1.0)?,
        threshold: one.or("threshold", 20.0)?,
    };
    "Softmax", "aten.softmax", |one| nn::Softmax { dim: one.get("dim")? };
    "LogSoftmax", "aten.log_softmax", |one| nn::LogSoftmax { dim: one.get("dim")? };
    "GLU", "aten.glu", |one| nn::GLU { dim: one.or("dim", -1)? };
    "Dropout", "aten.dropout", |one| dropout!(one, Dropout);
    "Dropout1d", "aten.feature_dropout", |one| dropout!(one, Dropout1d);
    "Dropout2d", "aten.feature_dropout", |one| dropout!(one, Dropout2d);
    "Dropout3d", "aten.feature_dropout", |one| dropout!(one, Dropout3d);
    "MaxPool1d", "aten.max_pool1d", |one| max_pool!(one, MaxPool1d, self::one);
    "MaxPool2d", "aten.max_pool2d", |one| max_pool!(one, MaxPool2d, pair);
    "MaxPool3d", "aten.max_pool3d", |one| max_pool!(one, MaxPool3d, triple);
    "AvgPool1d", "aten.avg_pool1d", |one| avg_pool!(one, AvgPool1d, self::one);
    "AvgPool2d", "aten.avg_pool2d", |one| avg_pool!(one, AvgPool2d, pair);
    "AvgPool3d", "aten.avg_pool3d", |one| avg_pool!(one, AvgPool3d, triple);
    "AdaptiveAvgPool1d", "aten.adaptive_avg_pool1d", |one| nn::AdaptiveAvgPool1d { output_size: one.get("output_size")? };
    "AdaptiveAvgPool2d", "aten.adaptive_avg_pool2d", |one| nn::AdaptiveAvgPool2d { output_size: one.get("output_size")? };
    "AdaptiveAvgPool3d", "aten.adaptive_avg_pool3d", |one| nn::AdaptiveAvgPool3d { output_size: one.get("output_size")? };
    "Flatten", "aten.flatten", |one| nn::Flatten {
        start_dim: one.or("start_dim", 0)?,
        end_dim: one.or("end_dim", -1)?,
    };
    "PixelShuffle", "aten.pixel_shuffle", |one| nn::PixelShuffle { upscale_factor: one.get("upscale_factor")? };
};
