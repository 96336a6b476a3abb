//! Every layer of `fx_nn::nn`, made from what a line says of it.

use fx_nn::module::{Component, ComponentExt, Module};
use fx_nn::prelude::*;
use fx_nn::{Error, Pair, Result, Scales, Triple, weights};
use serde_json::{Map, Value as Json};

use crate::call::{Made, float};
use crate::tensor;

/// The options of a layer's constructor.
pub(crate) struct Options<'a>(pub(crate) &'a Map<String, Json>);

impl Options<'_> {
    pub(crate) fn get(&self, name: &str) -> &Json {
        self.0.get(name).unwrap_or(&Json::Null)
    }

    pub(crate) fn size(&self, name: &str) -> Result<usize> {
        let size = self
            .get(name)
            .as_u64()
            .and_then(|n| usize::try_from(n).ok());
        size.ok_or_else(|| Error::msg(format_args!("the generator gave no size `{name}`")))
    }

    pub(crate) fn int(&self, name: &str) -> Result<i64> {
        let int = self.get(name).as_i64();
        int.ok_or_else(|| Error::msg(format_args!("the generator gave no integer `{name}`")))
    }

    pub(crate) fn pair(&self, name: &str) -> Result<Pair> {
        match crate::call::sizes(self.get(name))?[..] {
            [height, width] => Ok(Pair(height, width)),
            _ => Err(Error::msg(format_args!(
                "the generator gave no pair `{name}`"
            ))),
        }
    }

    pub(crate) fn triple(&self, name: &str) -> Result<Triple> {
        match crate::call::sizes(self.get(name))?[..] {
            [depth, height, width] => Ok(Triple(depth, height, width)),
            _ => Err(Error::msg(format_args!(
                "the generator gave no triple `{name}`"
            ))),
        }
    }

    pub(crate) fn ints(&self, name: &str) -> Result<Vec<i64>> {
        let items = self.get(name).as_array().map(Vec::as_slice);
        let ints = items.unwrap_or_default().iter().filter_map(Json::as_i64);
        Ok(ints.collect())
    }

    /// The size of an image, if there is one.
    pub(crate) fn given_size(&self) -> Result<Option<Vec<usize>>> {
        match self.get("size") {
            Json::Null => Ok(None),
            size => crate::call::sizes(size).map(Some),
        }
    }

    /// The factors of an image's sizes.
    pub(crate) fn scales(&self) -> Result<Scales> {
        Ok(match self.get("scale_factor") {
            Json::Null => Scales::None,
            Json::Array(each) => Scales::Each(each.iter().map(float).collect::<Result<_>>()?),
            one => Scales::One(float(one)?),
        })
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or_default()
    }

    pub(crate) fn float(&self, name: &str) -> Result<f64> {
        float(self.get(name))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).as_str().unwrap_or_default().to_string()
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        match self.get(name) {
            Json::Null => Ok(None),
            json => tensor::parse(json).map(Some),
        }
    }
}

/// A layer, its weights set and its mode chosen.
pub(crate) fn layer(name: &str, made: &Made) -> Result<Box<dyn Module>> {
    if let Some(layer) = crate::structure_layers::layer(name, made) {
        return layer;
    }
    let o = Options(&made.options);
    macro_rules! done {
        ($layer:expr) => {
            finished($layer, made)
        };
    }
    match name {
        "AdaptiveAvgPool2d" => done!(nn::AdaptiveAvgPool2d::new(o.pair("output_size")?)),
        "AvgPool2d" => done!(nn::AvgPool2d {
            stride: o.pair("stride")?,
            padding: o.pair("padding")?,
            ceil_mode: o.flag("ceil_mode"),
            count_include_pad: o.flag("count_include_pad"),
            ..nn::AvgPool2d::new(o.pair("kernel_size")?)
        }),
        "BatchNorm1d" => done!(nn::BatchNorm1d {
            eps: o.float("eps")?,
            momentum: o.float("momentum")?,
            ..nn::BatchNorm1d::new(o.size("num_features")?)?
        }),
        "BatchNorm2d" => done!(nn::BatchNorm2d {
            eps: o.float("eps")?,
            momentum: o.float("momentum")?,
            ..nn::BatchNorm2d::new(o.size("num_features")?)?
        }),
        "Conv1d" => done!(
            nn::Conv1d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.size("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.size("stride")?)
            .padding(o.size("padding")?)
            .dilation(o.size("dilation")?)
            .bias(o.flag("bias"))
        ),
        "Conv2d" => done!(
            nn::Conv2d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.pair("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.pair("stride")?)
            .padding(o.pair("padding")?)
            .dilation(o.pair("dilation")?)
            .bias(o.flag("bias"))
        ),
        "ConvTranspose2d" => done!(
            nn::ConvTranspose2d::grouped(
                o.size("in_channels")?,
                o.size("out_channels")?,
                o.pair("kernel_size")?,
                o.size("groups")?,
            )?
            .stride(o.pair("stride")?)
            .padding(o.pair("padding")?)
            .output_padding(o.pair("output_padding")?)
            .dilation(o.pair("dilation")?)
            .bias(o.flag("bias"))
        ),
        "CrossEntropyLoss" => done!(nn::CrossEntropyLoss {
            weight: o.tensor("weight")?,
            ignore_index: o.int("ignore_index")?,
            reduction: o.text("reduction"),
            label_smoothing: o.float("label_smoothing")?,
        }),
        "Dropout" => done!(nn::Dropout::new(o.float("p")?)?),
        "Embedding" => done!(match o.get("padding_idx") {
            Json::Null => nn::Embedding::new(o.size("num_embeddings")?, o.size("embedding_dim")?)?,
            _ => nn::Embedding::new(o.size("num_embeddings")?, o.size("embedding_dim")?)?
                .padding_idx(o.size("padding_idx")?)?,
        }),
        "Flatten" => done!(nn::Flatten {
            start_dim: o.int("start_dim")?,
            end_dim: o.int("end_dim")?,
        }),
        "GELU" => done!(nn::GELU {
            approximate: o.text("approximate"),
        }),
        "GroupNorm" => done!(nn::GroupNorm {
            eps: o.float("eps")?,
            ..nn::GroupNorm::new(o.size("num_groups")?, o.size("num_channels")?)?
        }),
        "Identity" => done!(nn::Identity::default()),
        "Int8Linear" => {
            let mut linear = nn::Linear::new(o.size("in_features")?, o.size("out_features")?)?;
            set(&mut linear, made)?;
            Ok(Box::new(nn::Int8Linear::from_linear(&linear)?))
        }
        "QuantizedLinear" => {
            let mut linear = nn::Linear::new(o.size("in_features")?, o.size("out_features")?)?;
            set(&mut linear, made)?;
            Ok(Box::new(nn::QuantizedLinear::from_linear(&linear, "Q8_0")?))
        }
        "LSTM" => done!(
            nn::LSTM::new(o.size("input_size")?, o.size("hidden_size")?)?
                .num_layers(o.size("num_layers")?)?
                .bidirectional(o.flag("bidirectional"))?
                .bias(o.flag("bias"))
                .batch_first(o.flag("batch_first"))
        ),
        "LayerNorm" => done!(nn::LayerNorm {
            eps: o.float("eps")?,
            ..nn::LayerNorm::new(crate::call::sizes(o.get("normalized_shape"))?)?
        }),
        "LeakyReLU" => done!(nn::LeakyReLU {
            negative_slope: o.float("negative_slope")?,
        }),
        "Linear" => done!(
            nn::Linear::new(o.size("in_features")?, o.size("out_features")?)?.bias(o.flag("bias"))
        ),
        "LoraLinear" => {
            let linear = nn::Linear::new(o.size("in_features")?, o.size("out_features")?)?;
            done!(nn::LoraLinear::from_linear(
                &linear,
                o.size("rank")?,
                o.float("scale")?
            )?)
        }
        "MSELoss" => done!(nn::MSELoss {
            reduction: o.text("reduction"),
        }),
        "MaxPool2d" => done!(nn::MaxPool2d {
            stride: o.pair("stride")?,
            padding: o.pair("padding")?,
            dilation: o.pair("dilation")?,
            ceil_mode: o.flag("ceil_mode"),
            ..nn::MaxPool2d::new(o.pair("kernel_size")?)
        }),
        "MultiheadAttention" => done!(nn::MultiheadAttention {
            batch_first: o.flag("batch_first"),
            ..nn::MultiheadAttention::new(o.size("embed_dim")?, o.size("num_heads")?)?
        }),
        "RMSNorm" => done!(nn::RMSNorm {
            eps: o.float("eps")?,
            ..nn::RMSNorm::new(crate::call::sizes(o.get("normalized_shape"))?)?
        }),
        "ReLU" => done!(nn::ReLU::new()),
        "ReLU6" => done!(nn::ReLU6::new()),
        "Sequential" => done!(
            nn::Sequential::new()
                .push(nn::Linear::new(
                    o.size("in_features")?,
                    o.size("out_features")?
                )?)
                .push(nn::Tanh::new())
        ),
        "SiLU" => done!(nn::SiLU::new()),
        "Sigmoid" => done!(nn::Sigmoid::new()),
        "Tanh" => done!(nn::Tanh::new()),
        "Upsample" => done!(nn::Upsample {
            mode: o.text("mode"),
            align_corners: o.get("align_corners").as_bool(),
            size: nn::GivenSize(o.given_size()?),
            ..nn::Upsample::new(o.scales()?)
        }),
        "UpsamplingNearest2d" => done!(nn::UpsamplingNearest2d {
            size: o.given_size()?,
            ..nn::UpsamplingNearest2d::new(o.scales()?)
        }),
        "UpsamplingBilinear2d" => done!(nn::UpsamplingBilinear2d {
            size: o.given_size()?,
            ..nn::UpsamplingBilinear2d::new(o.scales()?)
        }),
        _ => crate::activations::layer(name, made)
            .or_else(|| crate::losses::layer(name, made))
            .unwrap_or_else(|| Err(Error::msg(format_args!("no layer `{name}`")))),
    }
}

fn set(layer: &mut (impl Component + ?Sized), made: &Made) -> Result<()> {
    if made.dtype != DType::F32 {
        nn::to_dtype(layer, made.dtype)?;
    }
    weights::load_state_dict(layer, &made.state.iter().cloned().collect())
}

/// The layer of a name in a table of names and how each is made, `None` where the name is unknown.
macro_rules! finished_layer {
    ($of:expr, $made:expr, $($name:literal => $layer:expr,)*) => {
        match $of {
            $($name => {
                let layer = || finished($layer, $made);
                Some(layer())
            })*
            _ => None,
        }
    };
}
pub(crate) use finished_layer;

pub(crate) fn finished(mut layer: impl Module, made: &Made) -> Result<Box<dyn Module>> {
    set(&mut layer, made)?;
    match made.training {
        true => layer.train(),
        false => layer.eval(),
    }
    Ok(Box::new(layer))
}
