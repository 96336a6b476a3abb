//! Models keep their weights through a file: one model saves, another of the same kind loads.

use fx_nn::models::{
    alexnet, autoencoder, bert, dict_out, gpt2, lstm_classifier, mlp, mobilenet, nested, resnet,
    shared_sub, siamese, transformer, tuple_out, unet, vgg, vit,
};
use fx_nn::module::{Component, ComponentExt};
use fx_nn::prelude::*;
use fx_nn::weights;

/// Saves one model, and loads it into another that was made with other weights.
fn through_a_file<M: Component>(name: &str, make: impl Fn() -> Result<M>) -> Result<()> {
    let (saved, mut loaded) = (make()?, make()?);
    let file = format!("fx_models_{name}_{}.safetensors", std::process::id());
    let path = std::env::temp_dir().join(file);
    weights::save(&saved, &path)?;
    let result = weights::load(&mut loaded, &path);
    std::fs::remove_file(&path).map_err(Error::other)?;
    result?;
    let (saved, loaded) = (saved.state_dict(), loaded.state_dict());
    assert!(saved.keys().eq(loaded.keys()), "{name}");
    for (key, value) in saved {
        let (a, b) = (Tensor::from_value(value)?, loaded.get(&key).cloned());
        let b = Tensor::from_value(b.unwrap_or_default())?;
        assert_eq!(a.to_vec()?, b.to_vec()?, "{name}: {key}");
    }
    Ok(())
}

#[test]
fn small_models_load_what_they_saved() -> Result<()> {
    through_a_file("autoencoder", autoencoder::AutoEncoder::new)?;
    through_a_file("bert", || {
        bert::Bert::new(&bert::Config {
            vocab_size: 31,
            max_positions: 12,
            length: 5,
            width: 16,
            heads: 2,
            intermediate: 24,
            layers: 2,
            labels: 3,
            dropout: 0.1,
        })
    })?;
    through_a_file("dict_out", || dict_out::DictOut::new(8))?;
    through_a_file("gpt2", || {
        gpt2::Gpt2::new(&gpt2::Config {
            vocab_size: 31,
            block_size: 8,
            n_layer: 2,
            n_head: 2,
            n_embd: 16,
            dropout: 0.1,
        })
    })?;
    through_a_file("lstm_classifier", || {
        lstm_classifier::LstmClassifier::new(31, 8, 6, 3)
    })?;
    through_a_file("mlp", || mlp::Mlp::new(16, 32, 4))?;
    through_a_file("mobilenet_v2", || mobilenet::mobilenet_v2(10))?;
    through_a_file("nested", || nested::Nested::new(8))?;
    through_a_file("resnet18", || resnet::resnet18(10))?;
    through_a_file("shared_sub", || shared_sub::SharedSub::new(6))?;
    through_a_file("siamese", siamese::Siamese::new)?;
    through_a_file("transformer", || {
        transformer::TransformerEncoderLayer::new(32, 4, 64)
    })?;
    through_a_file("tuple_out", || tuple_out::TupleOut::new(8))?;
    through_a_file("unet", || unet::UNet::new(3, 2, 8))?;
    through_a_file("vit", || {
        vit::VisionTransformer::new(&vit::Config {
            image_size: 32,
            patch_size: 16,
            num_layers: 2,
            num_heads: 2,
            hidden_dim: 16,
            mlp_dim: 24,
            num_classes: 5,
        })
    })
}

#[test]
#[ignore = "writes files of up to 500 MB: run it with --release"]
fn large_models_load_what_they_saved() -> Result<()> {
    through_a_file("alexnet", || alexnet::alexnet(1000))?;
    through_a_file("resnet34", || resnet::resnet34(1000))?;
    through_a_file("resnet50", || resnet::resnet50(1000))?;
    through_a_file("vgg11_bn", || vgg::vgg11_bn(1000))?;
    through_a_file("vit_b_16", || vit::vit_b_16(224, 1000))
}

#[test]
fn a_shared_layer_stays_shared_through_a_file() -> Result<()> {
    let (saved, mut loaded) = (
        shared_sub::SharedSub::new(4)?,
        shared_sub::SharedSub::new(4)?,
    );
    weights::load_state_dict(
        &mut loaded,
        &saved
            .state_dict()
            .into_iter()
            .map(|(name, value)| Ok((name, Tensor::from_value(value)?)))
            .collect::<Result<_>>()?,
    )?;
    let ids = |m: &shared_sub::SharedSub| {
        let of = |t: &Tensor| fx_nn::tensor::Object::object_id(t);
        (
            of(&m.shared.weight),
            of(&m.alias.weight),
            of(&m.other.weight),
        )
    };
    let (a, b, c) = ids(&loaded);
    assert!(a == b && b == c && a.is_some());
    Ok(())
}
