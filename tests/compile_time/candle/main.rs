//! Builds and runs the four models of candle-transformers, and prints a sum to compare with fx's.
//!
//! Beside this file come candle-transformers' own, unchanged: `utils.rs`, `quantized_var_builder.rs`, and of `models/`
//! `with_tracing.rs`, `qwen2.rs`, `mamba.rs`, `whisper/model.rs`, `segment_anything/mod.rs` and
//! `segment_anything/image_encoder.rs`; the other five files of `segment_anything/` are there and empty.
#![allow(dead_code, unused_imports)]

mod models {
    pub mod mamba;
    pub mod qwen2;
    pub mod segment_anything;
    pub mod with_tracing;

    pub mod whisper {
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        pub struct Config {
            pub num_mel_bins: usize,
            pub max_source_positions: usize,
            pub d_model: usize,
            pub encoder_attention_heads: usize,
            pub encoder_layers: usize,
            pub vocab_size: usize,
            pub max_target_positions: usize,
            pub decoder_attention_heads: usize,
            pub decoder_layers: usize,
            #[serde(default)]
            pub suppress_tokens: Vec<u32>,
        }

        /// Included, because the encoder's constructor is private.
        pub mod model {
            include!("models/whisper/model.rs");

            pub fn audio_encoder(vb: VarBuilder, cfg: &Config) -> Result<AudioEncoder> {
                AudioEncoder::load(vb, cfg)
            }
        }
    }
}
mod quantized_var_builder;
mod utils;

use candle::{DType, Device, Module, Result, Tensor};
use candle_nn::{Activation, VarBuilder, VarMap};
use models::segment_anything::image_encoder::ImageEncoderViT;
use models::{mamba as candle_mamba, qwen2 as candle_qwen2, whisper};

/// Small numbers that follow from a name; fx's program makes the same.
fn numbers(name: &str, len: usize) -> Vec<f32> {
    let seed: usize = name.bytes().map(usize::from).sum();
    (0..len)
        .map(|i| ((i * 7 + seed) % 13) as f32 / 40.0 - 0.15)
        .collect()
}

/// A model whose variables have these numbers.
fn filled<M>(new: impl FnOnce(VarBuilder) -> Result<M>) -> Result<M> {
    let variables = VarMap::new();
    let model = new(VarBuilder::from_varmap(
        &variables,
        DType::F32,
        &Device::Cpu,
    ))?;
    for (name, var) in variables.data().lock().unwrap().iter() {
        let values = numbers(name, var.elem_count());
        var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu)?)?;
    }
    Ok(model)
}

fn report(name: &str, y: &Tensor) -> Result<()> {
    let sum = y.to_dtype(DType::F64)?.abs()?.sum_all()?;
    println!("{name}: sum {:.6}", sum.to_scalar::<f64>()?);
    Ok(())
}

fn qwen2() -> Result<()> {
    let cfg = candle_qwen2::Config {
        vocab_size: 64,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        max_position_embeddings: 16,
        sliding_window: 3,
        max_window_layers: 2,
        tie_word_embeddings: true,
        rope_theta: 10000.0,
        rms_norm_eps: 1e-6,
        use_sliding_window: false,
        hidden_act: Activation::Silu,
    };
    let mut model = filled(|vb| candle_qwen2::ModelForCausalLM::new(&cfg, vb))?;
    let mut seen = 0;
    for ids in [vec![3u32, 14, 15, 9, 26], vec![5], vec![35]] {
        let len = ids.len();
        let ids = Tensor::from_vec(ids, (1, len), &Device::Cpu)?;
        report("qwen2", &model.forward(&ids, seen)?)?;
        seen += len;
    }
    Ok(())
}

fn whisper_encoder() -> Result<()> {
    let cfg = whisper::Config {
        num_mel_bins: 8,
        max_source_positions: 12,
        d_model: 16,
        encoder_attention_heads: 2,
        encoder_layers: 2,
        vocab_size: 32,
        max_target_positions: 8,
        decoder_attention_heads: 2,
        decoder_layers: 2,
        suppress_tokens: vec![],
    };
    let mut model = filled(|vb| whisper::model::audio_encoder(vb, &cfg))?;
    let mel = Tensor::from_vec(numbers("mel", 8 * 20), (1, 8, 20), &Device::Cpu)?;
    report("whisper_encoder", &model.forward(&mel, true)?)
}

fn sam_image_encoder() -> Result<()> {
    let model =
        filled(|vb| ImageEncoderViT::new(16, 4, 3, 16, 2, 2, 8, true, true, true, 3, &[1], vb))?;
    let image = numbers("image", 3 * 16 * 16);
    let image = Tensor::from_vec(image, (1, 3, 16, 16), &Device::Cpu)?;
    report("sam_image_encoder", &model.forward(&image)?)
}

fn mamba() -> Result<()> {
    let cfg = candle_mamba::Config {
        d_model: 32,
        n_layer: 2,
        vocab_size: 60,
        pad_vocab_size_multiple: 8,
    };
    let model = filled(|vb| candle_mamba::Model::new(&cfg, vb))?;
    let mut state = candle_mamba::State::new(1, &cfg, model.dtype(), &Device::Cpu)?;
    for id in [3u32, 14, 15, 9, 26, 5] {
        let id = Tensor::from_vec(vec![id], 1, &Device::Cpu)?;
        report("mamba", &model.forward(&id, &mut state)?)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    qwen2()?;
    whisper_encoder()?;
    sam_image_encoder()?;
    mamba()
}
