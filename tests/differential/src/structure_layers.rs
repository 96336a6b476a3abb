//! Layers that rearrange, pool, normalise and recur, made from what a line says of them: beside those of `layers`.

use fx_nn::Result;
use fx_nn::module::Module;
use fx_nn::prelude::*;

use crate::call::Made;
use crate::layers::{Options, finished};

const NAMES: &[&str] = &[
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool3d",
    "BatchNorm3d",
    "Bilinear",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose3d",
    "CosineSimilarity",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "Fold",
    "GRU",
    "GRUCell",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LPPool1d",
    "LPPool2d",
    "LSTMCell",
    "LocalResponseNorm",
    "MaxPool1d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "RNN",
    "RNNCell",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "StochasticDepth",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "Unfold",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
];

/// A layer of a transformer with its options.
macro_rules! transformer {
    ($layer:ident, $o:expr) => {
        nn::$layer::new($o.size("d_model")?, $o.size("nhead")?)?
            .dim_feedforward($o.size("dim_feedforward")?)?
            .dropout(0.0)?
            .activation($o.text("activation"))
            .layer_norm_eps($o.float("layer_norm_eps")?)
            .batch_first($o.flag("batch_first"))
            .norm_first($o.flag("norm_first"))
    };
}

/// A layer, its weights set and its mode chosen; `None` where the name is unknown.
pub(crate) fn layer(name: &str, made: &Made) -> Option<Result<Box<dyn Module>>> {
    let o = &Options(&made.options);
    NAMES.contains(&name).then(|| known(name, o, made))
}

fn known(name: &str, o: &Options<'_>, made: &Made) -> Result<Box<dyn Module>> {
    match name {
        "ReflectionPad1d" => finished(
            nn::ReflectionPad1d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ReflectionPad2d" => finished(
            nn::ReflectionPad2d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ReflectionPad3d" => finished(
            nn::ReflectionPad3d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ReplicationPad1d" => finished(
            nn::ReplicationPad1d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ReplicationPad2d" => finished(
            nn::ReplicationPad2d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ReplicationPad3d" => finished(
            nn::ReplicationPad3d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "CircularPad1d" => finished(
            nn::CircularPad1d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "CircularPad2d" => finished(
            nn::CircularPad2d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "CircularPad3d" => finished(
            nn::CircularPad3d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ZeroPad1d" => finished(
            nn::ZeroPad1d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ZeroPad2d" => finished(
            nn::ZeroPad2d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ZeroPad3d" => finished(
            nn::ZeroPad3d {
                padding: o.ints("padding")?,
            },
            made,
        ),
        "ConstantPad1d" => finished(
            nn::ConstantPad1d {
                padding: o.ints("padding")?,
                value: o.float("value")?,
            },
            made,
        ),
        "MaxPool1d" => finished(
            nn::MaxPool1d {
                kernel_size: o.size("kernel_size")?,
                stride: o.size("stride")?,
                padding: o.size("padding")?,
                dilation: o.size("dilation")?,
                ceil_mode: o.flag("ceil_mode"),
            },
            made,
        ),
        "AvgPool1d" => finished(
            nn::AvgPool1d {
                kernel_size: o.size("kernel_size")?,
                stride: o.size("stride")?,
                padding: o.size("padding")?,
                ceil_mode: o.flag("ceil_mode"),
                count_include_pad: o.flag("count_include_pad"),
            },
            made,
        ),
        "AdaptiveAvgPool1d" => finished(nn::AdaptiveAvgPool1d::new(o.size("output_size")?), made),
        "AdaptiveMaxPool1d" => finished(nn::AdaptiveMaxPool1d::new(o.size("output_size")?), made),
        "LPPool1d" => finished(
            nn::LPPool1d {
                stride: o.size("stride")?,
                ceil_mode: o.flag("ceil_mode"),
                ..nn::LPPool1d::new(o.float("norm_type")?, o.size("kernel_size")?)
            },
            made,
        ),
        "MaxUnpool1d" => finished(
            nn::MaxUnpool1d {
                stride: o.size("stride")?,
                ..nn::MaxUnpool1d::new(o.size("kernel_size")?)
            },
            made,
        ),
        "Dropout1d" => finished(nn::Dropout1d::new(o.float("p")?)?, made),
        "InstanceNorm1d" => finished(
            nn::InstanceNorm1d::new(o.size("num_features")?)
                .affine(o.flag("affine"))?
                .track_running_stats(o.flag("track_running_stats"))?,
            made,
        ),
        "ConstantPad2d" => finished(
            nn::ConstantPad2d {
                padding: o.ints("padding")?,
                value: o.float("value")?,
            },
            made,
        ),
        "AdaptiveMaxPool2d" => finished(nn::AdaptiveMaxPool2d::new(o.pair("output_size")?), made),
        "LPPool2d" => finished(
            nn::LPPool2d {
                stride: o.pair("stride")?,
                ceil_mode: o.flag("ceil_mode"),
                ..nn::LPPool2d::new(o.float("norm_type")?, o.pair("kernel_size")?)
            },
            made,
        ),
        "MaxUnpool2d" => finished(
            nn::MaxUnpool2d {
                stride: o.pair("stride")?,
                ..nn::MaxUnpool2d::new(o.pair("kernel_size")?)
            },
            made,
        ),
        "Dropout2d" => finished(nn::Dropout2d::new(o.float("p")?)?, made),
        "InstanceNorm2d" => finished(
            nn::InstanceNorm2d::new(o.size("num_features")?)
                .affine(o.flag("affine"))?
                .track_running_stats(o.flag("track_running_stats"))?,
            made,
        ),
        "ConstantPad3d" => finished(
            nn::ConstantPad3d {
                padding: o.ints("padding")?,
                value: o.float("value")?,
            },
            made,
        ),
        "MaxPool3d" => finished(
            nn::MaxPool3d {
                kernel_size: o.triple("kernel_size")?,
                stride: o.triple("stride")?,
                padding: o.triple("padding")?,
                dilation: o.triple("dilation")?,
                ceil_mode: o.flag("ceil_mode"),
            },
            made,
        ),
        "AvgPool3d" => finished(
            nn::AvgPool3d {
                kernel_size: o.triple("kernel_size")?,
                stride: o.triple("stride")?,
                padding: o.triple("padding")?,
                ceil_mode: o.flag("ceil_mode"),
                count_include_pad: o.flag("count_include_pad"),
            },
            made,
        ),
        "AdaptiveAvgPool3d" => finished(nn::AdaptiveAvgPool3d::new(o.triple("output_size")?), made),
        "AdaptiveMaxPool3d" => finished(nn::AdaptiveMaxPool3d::new(o.triple("output_size")?), made),
        "MaxUnpool3d" => finished(
            nn::MaxUnpool3d {
                stride: o.triple("stride")?,
                ..nn::MaxUnpool3d::new(o.triple("kernel_size")?)
            },
            made,
        ),
        "Dropout3d" => finished(nn::Dropout3d::new(o.float("p")?)?, made),
        "InstanceNorm3d" => finished(
            nn::InstanceNorm3d::new(o.size("num_features")?)
                .affine(o.flag("affine"))?
                .track_running_stats(o.flag("track_running_stats"))?,
            made,
        ),
        "Unfold" => finished(
            nn::Unfold {
                dilation: o.pair("dilation")?,
                padding: o.pair("padding")?,
                stride: o.pair("stride")?,
                ..nn::Unfold::new(o.pair("kernel_size")?)
            },
            made,
        ),
        "Fold" => finished(
            nn::Fold {
                dilation: o.pair("dilation")?,
                padding: o.pair("padding")?,
                stride: o.pair("stride")?,
                ..nn::Fold::new(o.pair("output_size")?, o.pair("kernel_size")?)
            },
            made,
        ),
        "PixelShuffle" => finished(nn::PixelShuffle::new(o.size("upscale_factor")?), made),
        "PixelUnshuffle" => finished(nn::PixelUnshuffle::new(o.size("downscale_factor")?), made),
        "ChannelShuffle" => finished(nn::ChannelShuffle::new(o.size("groups")?), made),
        "Unflatten" => finished(
            nn::Unflatten::new(o.int("dim")?, o.ints("unflattened_size")?),
            made,
        ),
        "CosineSimilarity" => finished(
            nn::CosineSimilarity {
                dim: o.int("dim")?,
                eps: o.float("eps")?,
            },
            made,
        ),
        "PairwiseDistance" => finished(
            nn::PairwiseDistance {
                p: o.float("p")?,
                eps: o.float("eps")?,
                keepdim: o.flag("keepdim"),
            },
            made,
        ),
        "AlphaDropout" => finished(nn::AlphaDropout::new(o.float("p")?)?, made),
        "FeatureAlphaDropout" => finished(nn::FeatureAlphaDropout::new(o.float("p")?)?, made),
        "StochasticDepth" => finished(
            nn::StochasticDepth::new(o.float("p")?, &o.text("mode"))?,
            made,
        ),
        "LocalResponseNorm" => finished(
            nn::LocalResponseNorm {
                alpha: o.float("alpha")?,
                beta: o.float("beta")?,
                k: o.float("k")?,
                ..nn::LocalResponseNorm::new(o.size("size")?)
            },
            made,
        ),
        "BatchNorm3d" => finished(
            nn::BatchNorm3d {
                eps: o.float("eps")?,
                momentum: o.float("momentum")?,
                ..nn::BatchNorm3d::new(o.size("num_features")?)?
            },
            made,
        ),
        "Conv3d" => finished(
            nn::Conv3d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.triple("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.triple("stride")?)
            .padding(o.triple("padding")?)
            .dilation(o.triple("dilation")?)
            .bias(o.flag("bias")),
            made,
        ),
        "ConvTranspose1d" => finished(
            nn::ConvTranspose1d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.size("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.size("stride")?)
            .padding(o.size("padding")?)
            .output_padding(o.size("output_padding")?)
            .dilation(o.size("dilation")?)
            .bias(o.flag("bias")),
            made,
        ),
        "ConvTranspose3d" => finished(
            nn::ConvTranspose3d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.triple("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.triple("stride")?)
            .padding(o.triple("padding")?)
            .output_padding(o.triple("output_padding")?)
            .dilation(o.triple("dilation")?)
            .bias(o.flag("bias")),
            made,
        ),
        "Bilinear" => finished(
            nn::Bilinear::new(
                o.size("in1_features")?,
                o.size("in2_features")?,
                o.size("out_features")?,
            )?
            .bias(o.flag("bias")),
            made,
        ),
        "GRU" => finished(
            nn::GRU::new(o.size("input_size")?, o.size("hidden_size")?)?
                .num_layers(o.size("num_layers")?)?
                .bidirectional(o.flag("bidirectional"))?
                .bias(o.flag("bias"))
                .batch_first(o.flag("batch_first")),
            made,
        ),
        "RNN" => finished(
            nn::RNN::new(o.size("input_size")?, o.size("hidden_size")?)?
                .num_layers(o.size("num_layers")?)?
                .bidirectional(o.flag("bidirectional"))?
                .bias(o.flag("bias"))
                .batch_first(o.flag("batch_first"))
                .nonlinearity(o.text("nonlinearity")),
            made,
        ),
        "GRUCell" => finished(
            nn::GRUCell::new(o.size("input_size")?, o.size("hidden_size")?)?.bias(o.flag("bias")),
            made,
        ),
        "LSTMCell" => finished(
            nn::LSTMCell::new(o.size("input_size")?, o.size("hidden_size")?)?.bias(o.flag("bias")),
            made,
        ),
        "RNNCell" => finished(
            nn::RNNCell::new(o.size("input_size")?, o.size("hidden_size")?)?
                .nonlinearity(o.text("nonlinearity"))
                .bias(o.flag("bias")),
            made,
        ),
        "TransformerEncoderLayer" => finished(transformer!(TransformerEncoderLayer, o), made),
        "TransformerEncoder" => finished(
            nn::TransformerEncoder::new(
                &transformer!(TransformerEncoderLayer, o),
                o.size("num_layers")?,
                None,
            )?,
            made,
        ),
        "TransformerDecoderLayer" => finished(transformer!(TransformerDecoderLayer, o), made),
        "TransformerDecoder" => finished(
            nn::TransformerDecoder::new(
                &transformer!(TransformerDecoderLayer, o),
                o.size("num_layers")?,
                None,
            )?,
            made,
        ),
        _ => Err(fx_nn::Error::msg("no such layer")),
    }
}
