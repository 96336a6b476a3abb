//! The models of `fx_nn::models`, at the goldens' sizes.

use fx_core::Result;
use fx_nn::models;

use super::{Row, module};
use crate::exception::Exception;
use crate::golden::Literal;

macro_rules! models {
    ($($name:ident = $model:expr, $exceptions:expr;)*) => {$(
        /// The golden of that name.
        ///
        /// # Errors
        /// When it cannot be traced or run.
        pub fn $name(name: &'static str) -> Result<Row> {
            module(name, $model, &$exceptions)
        }
    )*};
}

models! {
    alexnet = models::alexnet::alexnet(1000)?, [];
    autoencoder = models::autoencoder::AutoEncoder::new()?, [Exception::VariadicAsOneSequence];
    bert_small = bert()?,
        [Exception::PythonStacklevel, Exception::NoneDtype, Exception::VariadicAsOneSequence, Exception::ListForTuple];
    dict_out = models::dict_out::DictOut::new(8)?, [];
    gpt2_small = gpt2()?,
        [Exception::PythonStacklevel, Exception::NoneDtype, Exception::VariadicAsOneSequence];
    lstm_classifier = models::lstm_classifier::LstmClassifier::new(50, 16, 24, 5)?, [];
    mlp = models::mlp::Mlp::new(16, 32, 4)?,
        [Exception::PythonInplaceFlag, Exception::PythonStacklevel, Exception::NoneDtype];
    mobilenet_v2 = models::mobilenet::mobilenet_v2(1000)?, [];
    nested = models::nested::Nested::new(8)?, [];
    resnet18 = models::resnet::resnet18(1000)?, [];
    resnet50 = models::resnet::resnet50(1000)?, [];
    shared_sub = models::shared_sub::SharedSub::new(6)?, [];
    siamese = models::siamese::Siamese::new()?, [Exception::PythonInplaceFlag];
    transformer_encoder_hand = models::transformer::TransformerEncoderLayer::new(32, 4, 64)?,
        [Exception::VariadicAsOneSequence];
    tuple_out = models::tuple_out::TupleOut::new(8)?, [Exception::PythonDefaultValue];
    unet_small = models::unet::UNet::new(3, 2, 8)?, interpolated();
    vgg11_bn = models::vgg::vgg11_bn(1000)?, [];
    vit_b_16_img64 = models::vit::vit_b_16(64, 1000)?, [Exception::VariadicAsOneSequence];
}

/// What PyTorch's `interpolate` says that fx's does not, and what else a U-Net has of Python.
pub(super) fn interpolated() -> Vec<Exception> {
    let python_only = |name, value| Exception::PythonOnlyArgument {
        callee: "interpolate",
        name,
        value,
        why: "it changes how PyTorch computes a size or a filter that is not offered here",
    };
    vec![
        Exception::PythonInplaceFlag,
        python_only("recompute_scale_factor", Literal::None),
        python_only("antialias", Literal::Bool(false)),
        Exception::ListForTuple,
    ]
}

fn bert() -> Result<models::bert::Bert> {
    models::bert::Bert::new(&models::bert::Config {
        vocab_size: 97,
        max_positions: 24,
        length: 10,
        width: 48,
        heads: 4,
        intermediate: 96,
        layers: 2,
        labels: 3,
        dropout: 0.1,
    })
}

fn gpt2() -> Result<models::gpt2::Gpt2> {
    models::gpt2::Gpt2::new(&models::gpt2::Config {
        vocab_size: 101,
        block_size: 16,
        n_layer: 2,
        n_head: 4,
        n_embd: 64,
        dropout: 0.1,
    })
}
