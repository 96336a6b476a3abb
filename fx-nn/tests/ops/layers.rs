//! The gradient of every layer, for its input and its parameters, eager and traced, compared with
//! central differences.

use fx_nn::module::{Component, ComponentExt, Module};
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;

use crate::ops::support::{check, varied};

/// One layer in evaluation mode, in `f64`, how it was made, and its arguments.
pub struct Layer {
    /// The type's name.
    pub name: &'static str,
    /// How it was made.
    pub made: &'static str,
    /// The layer.
    pub module: Box<dyn Module>,
    /// Shapes of its floating-point inputs.
    inputs: Vec<Vec<usize>>,
    /// Other arguments, after or instead of them.
    others: Vec<Value>,
}

fn layer<M: Module + Component>(
    made: &'static str,
    mut module: M,
    inputs: &[&[usize]],
    others: Vec<Value>,
) -> Result<Layer> {
    module.eval();
    nn::to_dtype(&mut module, DType::F64)?;
    let name = std::any::type_name::<M>();
    Ok(Layer {
        name: name.rsplit("::").next().unwrap_or(name),
        made,
        module: Box::new(module),
        inputs: inputs.iter().map(|shape| shape.to_vec()).collect(),
        others,
    })
}

/// A sample of every layer.
pub fn layers() -> Result<Vec<Layer>> {
    let mut all = Vec::new();
    macro_rules! sample {
        ($made:expr, [$($shape:expr),*]) => { sample!($made, [$($shape),*], None::<Tensor>) };
        ($made:expr, [$($shape:expr),*], $integers:expr) => {
            let others = $integers.into_iter().map(Value::object).collect();
            all.push(layer(stringify!($made), $made, &[$(&$shape),*], others)?)
        };
    }
    sample!(nn::AdaptiveAvgPool2d::new(2), [[1, 2, 5, 4]]);
    sample!(nn::AvgPool2d::new(2), [[1, 2, 5, 4]]);
    sample!(nn::BatchNorm1d::new(2)?, [[3, 2]]);
    sample!(nn::BatchNorm2d::new(2)?, [[2, 2, 3, 2]]);
    sample!(nn::Conv1d::new(2, 3, 3)?, [[1, 2, 6]]);
    sample!(nn::Conv2d::new(2, 3, 3)?, [[1, 2, 4, 5]]);
    sample!(nn::ConvTranspose2d::new(2, 3, 2)?, [[1, 2, 3, 2]]);
    let classes = || Tensor::from_vec(vec![1i64, 2], 2).map(Some);
    sample!(nn::CrossEntropyLoss::default(), [[2, 3]], classes()?);
    let words = Tensor::from_vec(vec![1i64, 1, 2, 0], (2, 2))?;
    let words = [
        words.into_value(),
        vec![5i64, 4].into_value(),
        vec![2i64, 1].into_value(),
    ];
    all.push(layer(
        "nn::CTCLoss::default()",
        nn::CTCLoss::default(),
        &[&[5, 2, 3]],
        words.to_vec(),
    )?);
    sample!(nn::Dropout::new(0.5)?, [[2, 3]]);
    sample!(nn::Embedding::new(4, 3)?, [], classes()?);
    sample!(nn::Flatten::default(), [[2, 3, 2]]);
    sample!(nn::GELU::new(), [[2, 3]]);
    sample!(nn::GroupNorm::new(2, 4)?, [[2, 4, 3]]);
    sample!(nn::Identity::default(), [[2, 3]]);
    sample!(
        nn::QuantizedLinear::from_linear(&nn::Linear::new(32, 3)?, "F32")?,
        [[2, 32]]
    );
    sample!(
        nn::Int8Linear::from_linear(&nn::Linear::new(3, 4)?)?,
        [[2, 3]]
    );
    sample!(nn::LSTM::new(2, 3)?, [[4, 2, 2]]);
    sample!(nn::LayerNorm::new(4)?, [[3, 4]]);
    sample!(nn::LeakyReLU::default(), [[2, 3]]);
    sample!(nn::Linear::new(3, 4)?, [[2, 3]]);
    sample!(
        nn::LoraLinear::from_linear(&nn::Linear::new(3, 4)?, 2, 0.5)?,
        [[2, 3]]
    );
    sample!(nn::MSELoss::default(), [[2, 3], [2, 3]]);
    sample!(nn::MaxPool2d::new(2), [[1, 2, 5, 4]]);
    sample!(
        nn::MultiheadAttention::new(4, 2)?,
        [[3, 2, 4], [3, 2, 4], [3, 2, 4]]
    );
    sample!(nn::RMSNorm::new(4)?, [[3, 4]]);
    sample!(nn::ReLU::new(), [[2, 3]]);
    sample!(nn::ReLU6::new(), [[2, 3]]);
    sample!(
        nn::Sequential::new()
            .push(nn::Linear::new(3, 2)?)
            .push(nn::Tanh::new()),
        [[2, 3]]
    );
    sample!(nn::SiLU::new(), [[2, 3]]);
    sample!(nn::Sigmoid::new(), [[2, 3]]);
    sample!(nn::Tanh::new(), [[2, 3]]);
    sample!(nn::Upsample::new(2.0), [[1, 2, 3, 2]]);
    sample!(nn::UpsamplingNearest2d::new(2.0), [[1, 2, 3, 2]]);
    sample!(nn::UpsamplingBilinear2d::to_size((4, 3)), [[1, 2, 3, 2]]);
    sample!(nn::CELU::default(), [[2, 3]]);
    sample!(nn::ELU::default(), [[2, 3]]);
    sample!(nn::GLU::default(), [[2, 4]]);
    sample!(nn::Hardshrink::default(), [[2, 3]]);
    sample!(nn::Hardsigmoid::new(), [[2, 3]]);
    sample!(nn::Hardswish::new(), [[2, 3]]);
    sample!(nn::Hardtanh::default(), [[2, 3]]);
    sample!(nn::LogSigmoid::new(), [[2, 3]]);
    sample!(nn::LogSoftmax::new(-1), [[2, 3]]);
    sample!(nn::Mish::new(), [[2, 3]]);
    sample!(nn::PReLU::new()?, [[2, 3]]);
    sample!(nn::RReLU::default(), [[2, 3]]);
    sample!(nn::SELU::new(), [[2, 3]]);
    sample!(nn::Softmax::new(-1), [[2, 3]]);
    sample!(nn::Softmin::new(-1), [[2, 3]]);
    sample!(nn::Softplus::default(), [[2, 3]]);
    sample!(nn::Softshrink::default(), [[2, 3]]);
    sample!(nn::Softsign::new(), [[2, 3]]);
    sample!(nn::Tanhshrink::new(), [[2, 3]]);
    sample!(nn::Threshold::new(0.1, 0.3), [[2, 3]]);
    sample!(nn::ReflectionPad1d::new([1, 1]), [[1, 2, 3]]);
    sample!(nn::ReflectionPad2d::new([1, 1, 1, 1]), [[1, 2, 3, 3]]);
    sample!(
        nn::ReflectionPad3d::new([1, 1, 1, 1, 1, 1]),
        [[1, 1, 2, 3, 3]]
    );
    sample!(nn::ReplicationPad1d::new([1, 1]), [[1, 2, 3]]);
    sample!(nn::ReplicationPad2d::new([1, 1, 1, 1]), [[1, 2, 3, 3]]);
    sample!(
        nn::ReplicationPad3d::new([1, 1, 1, 1, 1, 1]),
        [[1, 1, 2, 3, 3]]
    );
    sample!(nn::CircularPad1d::new([1, 1]), [[1, 2, 3]]);
    sample!(nn::CircularPad2d::new([1, 1, 1, 1]), [[1, 2, 3, 3]]);
    sample!(
        nn::CircularPad3d::new([1, 1, 1, 1, 1, 1]),
        [[1, 1, 2, 3, 3]]
    );
    sample!(nn::ZeroPad1d::new([1, 1]), [[1, 2, 3]]);
    sample!(nn::ZeroPad2d::new([1, 1, 1, 1]), [[1, 2, 3, 3]]);
    sample!(nn::ZeroPad3d::new([1, 1, 1, 1, 1, 1]), [[1, 1, 2, 3, 3]]);
    sample!(nn::ConstantPad1d::new([1, 1], 0.5), [[1, 2, 3]]);
    sample!(nn::MaxPool1d::new(2), [[1, 2, 5]]);
    sample!(nn::AvgPool1d::new(2), [[1, 2, 5]]);
    sample!(nn::AdaptiveAvgPool1d::new(2), [[1, 2, 5]]);
    sample!(nn::AdaptiveMaxPool1d::new(2), [[1, 2, 5]]);
    sample!(nn::LPPool1d::new(1.0, 2), [[1, 2, 5]]);
    sample!(
        nn::MaxUnpool1d::new(2),
        [[1, 1, 2]],
        Some(Tensor::from_vec(vec![0i64, 2], (1, 1, 2))?)
    );
    sample!(nn::Dropout1d::new(0.5)?, [[1, 2, 5]]);
    sample!(nn::InstanceNorm1d::new(2).affine(true)?, [[1, 2, 5]]);
    sample!(nn::ConstantPad2d::new([1, 1, 1, 1], 0.5), [[1, 2, 3, 3]]);
    sample!(nn::AdaptiveMaxPool2d::new(2), [[1, 2, 4, 5]]);
    sample!(nn::LPPool2d::new(1.0, 2), [[1, 2, 4, 5]]);
    sample!(
        nn::MaxUnpool2d::new(2),
        [[1, 1, 1, 2]],
        Some(Tensor::from_vec(vec![0i64, 2], (1, 1, 1, 2))?)
    );
    sample!(nn::Dropout2d::new(0.5)?, [[1, 2, 4, 5]]);
    sample!(nn::InstanceNorm2d::new(2).affine(true)?, [[1, 2, 4, 5]]);
    sample!(
        nn::ConstantPad3d::new([1, 1, 1, 1, 1, 1], 0.5),
        [[1, 1, 2, 3, 3]]
    );
    sample!(nn::MaxPool3d::new(2), [[1, 1, 4, 3, 4]]);
    sample!(nn::AvgPool3d::new(2), [[1, 1, 4, 3, 4]]);
    sample!(nn::AdaptiveAvgPool3d::new(2), [[1, 1, 4, 3, 4]]);
    sample!(nn::AdaptiveMaxPool3d::new(2), [[1, 1, 4, 3, 4]]);
    sample!(
        nn::MaxUnpool3d::new(2),
        [[1, 1, 1, 1, 2]],
        Some(Tensor::from_vec(vec![0i64, 2], (1, 1, 1, 1, 2))?)
    );
    sample!(nn::Dropout3d::new(0.5)?, [[1, 1, 4, 3, 4]]);
    sample!(nn::InstanceNorm3d::new(1).affine(true)?, [[1, 1, 4, 3, 4]]);
    sample!(nn::Unfold::new(2), [[1, 2, 3, 3]]);
    sample!(nn::Fold::new(3, 2), [[1, 4, 4]]);
    sample!(nn::PixelShuffle::new(2), [[1, 4, 2, 2]]);
    sample!(nn::PixelUnshuffle::new(2), [[1, 1, 4, 2]]);
    sample!(nn::ChannelShuffle::new(2), [[1, 4, 2]]);
    sample!(nn::Unflatten::new(1, [2, -1]), [[2, 6]]);
    sample!(nn::CosineSimilarity::new(), [[2, 3], [2, 3]]);
    sample!(nn::PairwiseDistance::new(), [[2, 3], [2, 3]]);
    sample!(nn::AlphaDropout::new(0.5)?, [[2, 3]]);
    sample!(nn::FeatureAlphaDropout::new(0.5)?, [[2, 3]]);
    sample!(nn::StochasticDepth::new(0.5, "row")?, [[2, 3]]);
    sample!(nn::LocalResponseNorm::new(2), [[1, 3, 4]]);
    sample!(nn::BatchNorm3d::new(2)?, [[2, 2, 2, 1, 2]]);
    sample!(nn::Conv3d::new(2, 3, 2)?, [[1, 2, 3, 3, 2]]);
    sample!(nn::ConvTranspose1d::new(2, 3, 2)?, [[1, 2, 3]]);
    sample!(nn::ConvTranspose3d::new(2, 3, 2)?, [[1, 2, 2, 1, 2]]);
    sample!(nn::Bilinear::new(3, 2, 4)?, [[2, 3], [2, 2]]);
    sample!(nn::GRU::new(2, 3)?, [[4, 2, 2]]);
    sample!(nn::RNN::new(2, 3)?, [[4, 2, 2]]);
    sample!(nn::GRUCell::new(2, 3)?, [[2, 2]]);
    sample!(nn::RNNCell::new(2, 3)?, [[2, 2]]);
    sample!(nn::LSTMCell::new(2, 3)?, [[2, 2]]);
    sample!(
        nn::TransformerEncoderLayer::new(4, 2)?
            .dim_feedforward(3)?
            .activation("gelu"),
        [[3, 2, 4]]
    );
    sample!(
        nn::TransformerDecoderLayer::new(4, 2)?
            .dim_feedforward(3)?
            .activation("gelu"),
        [[3, 2, 4], [2, 2, 4]]
    );
    sample!(
        nn::TransformerEncoder::new(
            &nn::TransformerEncoderLayer::new(2, 1)?
                .dim_feedforward(3)?
                .activation("gelu"),
            2,
            None
        )?,
        [[2, 1, 2]]
    );
    sample!(
        nn::TransformerDecoder::new(
            &nn::TransformerDecoderLayer::new(2, 1)?
                .dim_feedforward(3)?
                .activation("gelu"),
            1,
            None
        )?,
        [[2, 1, 2], [1, 1, 2]]
    );
    losses(&mut all)?;
    Ok(all)
}

/// Samples of the losses.
fn losses(all: &mut Vec<Layer>) -> Result<()> {
    macro_rules! sample {
        ($made:expr, [$($shape:expr),*]) => { sample!($made, [$($shape),*], None::<Tensor>) };
        ($made:expr, [$($shape:expr),*], $integers:expr) => {
            let others = $integers.into_iter().map(Value::object).collect();
            all.push(layer(stringify!($made), $made, &[$(&$shape),*], others)?)
        };
    }
    let classes = Tensor::from_vec(vec![1i64, 2], 2)?;
    let labels = Tensor::from_vec(vec![1i64, -1, -1, 0, 2, -1], (2, 3))?;
    let signs = Tensor::from_vec(vec![1i64, -1], 2)?;
    sample!(nn::BCELoss::default(), [[2, 3], [2, 3]]);
    sample!(nn::BCEWithLogitsLoss::default(), [[2, 3], [2, 3]]);
    let var = Tensor::from_vec(vec![1.5f64; 6], (2, 3))?;
    sample!(nn::GaussianNLLLoss::default(), [[2, 3], [2, 3]], Some(var));
    sample!(
        nn::CosineEmbeddingLoss::default(),
        [[2, 3], [2, 3]],
        Some(signs.clone())
    );
    sample!(
        nn::HingeEmbeddingLoss::default(),
        [[2]],
        Some(signs.clone())
    );
    sample!(nn::HuberLoss::default(), [[2, 3], [2, 3]]);
    sample!(
        nn::KLDivLoss {
            log_target: true,
            ..nn::KLDivLoss::default()
        },
        [[2, 3], [2, 3]]
    );
    sample!(nn::L1Loss::default(), [[2, 3], [2, 3]]);
    sample!(
        nn::MarginRankingLoss::default(),
        [[2], [2]],
        Some(signs.clone())
    );
    sample!(nn::MultiLabelMarginLoss::default(), [[2, 3]], Some(labels));
    sample!(nn::MultiLabelSoftMarginLoss::default(), [[2, 3], [2, 3]]);
    sample!(
        nn::MultiMarginLoss::default(),
        [[2, 3]],
        Some(classes.clone())
    );
    sample!(nn::NLLLoss::default(), [[2, 3]], Some(classes));
    sample!(nn::PoissonNLLLoss::default(), [[2, 3], [2, 3]]);
    sample!(nn::SmoothL1Loss::default(), [[2, 3], [2, 3]]);
    sample!(nn::SoftMarginLoss::default(), [[2]], Some(signs));
    sample!(nn::TripletMarginLoss::default(), [[2, 3], [2, 3], [2, 3]]);
    Ok(())
}

/// The first tensor of a result.
fn first(value: &Value) -> Result<Tensor> {
    let mut found = None;
    value.for_each(&mut |inner| {
        if let Some(tensor) = inner.downcast_ref::<Tensor>()
            && found.is_none()
        {
            found = Some(tensor.clone());
        }
    });
    found.ok_or_else(|| Error::msg("the layer gives no tensor"))
}

#[test]
fn gradients_are_the_differences_eager_and_traced() -> Result<()> {
    for layer in layers()? {
        // Its product is in float32, which is too coarse for differences: `checkpoints.rs` has its gradient.
        if layer.name == "QuantizedLinear" {
            continue;
        }
        let mut of = Vec::new();
        for (seed, shape) in (1..).zip(&layer.inputs) {
            let mut x = varied(shape, seed)?;
            if layer.name == "BCELoss" {
                // It takes probabilities.
                x = ((x * 0.4)? + 0.5)?;
            }
            of.push(x.into_parameter()?);
        }
        let mut args: Vec<Value> = of.iter().cloned().map(Value::object).collect();
        args.extend(layer.others.clone());
        for (_, parameter) in layer.module.named_parameters() {
            of.push(Tensor::from_value(parameter)?);
        }
        // Optional arguments are absent here.
        let mut trace = Trace::new(&*layer.module);
        for param in layer.module.params() {
            if param.default == Some(fx_nn::ir::Literal::None) {
                trace = trace.concrete(&param.name, Value::None);
            }
        }
        let traced = trace.graph_module()?;
        let call = || fx_nn::trace::CallArgs {
            args: args.clone(),
            kwargs: Vec::new(),
        };
        check(
            layer.name,
            &of,
            || first(&layer.module.forward::<Value>(call())?),
            || first(&traced.forward::<Value>(call())?),
        )?;
    }
    Ok(())
}

#[test]
fn every_layer_has_a_sample() -> Result<()> {
    let names: Vec<&str> = layers()?.iter().map(|layer| layer.name).collect();
    for line in include_str!("../../src/nn/mod.rs").lines() {
        let Some((_, exported)) = line
            .split_once("pub use ")
            .and_then(|(_, l)| l.split_once("::"))
        else {
            continue;
        };
        let exported = exported.trim_matches(|c| "{};".contains(c));
        for name in exported.split(", ") {
            // The matrix of `QuantizedLinear` and the size of `Upsample` are no layers.
            let is_part = ["QuantizedMatrix", "GivenSize"].contains(&name);
            let is_layer = name.starts_with(char::is_uppercase) && !is_part;
            assert!(!is_layer || names.contains(&name), "{name} has no sample");
        }
    }
    Ok(())
}
