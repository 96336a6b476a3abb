//! Models of Hugging Face's families in small random configurations, with calls of several batches. Caches are inputs and
//! results of their own.

use fx_nn::models::hf::{bert, clip, decoder, dinov2, gpt2, mamba, t5, vit, whisper};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

use super::models::{Case, images, tokens};

const BERT: &str = r#"{"model_type": "bert", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 16}"#;
const CLIP: &str = r#"{"model_type": "clip", "projection_dim": 20,
    "text_config": {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 12, "eos_token_id": 31},
    "vision_config": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
        "image_size": 24, "patch_size": 8}}"#;
const DINOV2: &str = r#"{"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "mlp_ratio": 2, "image_size": 28, "patch_size": 7}"#;
const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 96, "n_positions": 32, "n_embd": 32, "n_layer": 2,
    "n_head": 4}"#;
const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 32}"#;
const MAMBA: &str = r#"{"model_type": "mamba", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2,
    "state_size": 4, "conv_kernel": 3, "time_step_rank": 3}"#;
const T5: &str = r#"{"model_type": "t5", "vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
    "num_heads": 4, "feed_forward_proj": "gated-gelu"}"#;
const VIT: &str = r#"{"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "image_size": 24, "patch_size": 8}"#;
const WHISPER: &str = r#"{"model_type": "whisper", "vocab_size": 96, "num_mel_bins": 12, "d_model": 32,
    "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_layers": 2,
    "decoder_attention_heads": 4, "decoder_ffn_dim": 48, "max_source_positions": 10, "max_target_positions": 16}"#;

/// The graph module with an input for each tensor of a cache.
fn flat(gm: &GraphModule) -> Result<GraphModule> {
    GraphModule::new(gm.attributes().clone(), gm.graph().clone(), gm.class_name())
}

fn traced<M: Module>(mut model: M) -> Result<GraphModule> {
    model.eval();
    symbolic_trace(&model)
}

/// Four words and their caches: two for each of two layers, of these sizes after the batch.
fn words(n: usize, caches: [&[usize]; 2]) -> Result<Vec<Tensor>> {
    let mut all = vec![tokens(n, 4, 96)?];
    for of in caches.iter().cycle().take(4) {
        all.push(Tensor::randn([&[n], *of].concat())?);
    }
    Ok(all)
}

/// All of them.
pub fn all() -> Result<Vec<Case>> {
    let batches = [2, 3, 5];
    let case = |name, gm, inputs| Case {
        name,
        gm,
        inputs,
        batches,
    };
    let mut llama = decoder::CausalLM::new(&decoder::Config::from_json(LLAMA)?)?;
    let mut gpt2 = gpt2::GPT2LMHeadModel::new(&gpt2::Config::from_json(GPT2)?)?;
    let mut mamba = mamba::CausalLM::new(&mamba::Config::from_json(MAMBA)?)?;
    llama.eval();
    gpt2.eval();
    mamba.eval();
    Ok(vec![
        case(
            "hf_bert",
            traced(bert::BertModel::new(&bert::Config::from_json(BERT)?)?)?,
            |n| {
                let ids = tokens(n, 10, 96)?;
                let (mask, types) = (ops::ones_like(&ids, None)?, ops::zeros_like(&ids, None)?);
                Ok(vec![ids, mask, types])
            },
        ),
        case(
            "hf_clip",
            traced(clip::CLIPModel::new(&clip::Config::from_json(CLIP)?)?)?,
            |n| {
                // Each text has one end.
                let ids = ops::pad(&tokens(n, 9, 31)?, [0, 1], "constant", 31.0)?;
                let mask = ops::ones_like(&ids, None)?;
                Ok(vec![ids, images(n, 3, 24)?.remove(0), mask])
            },
        ),
        case(
            "hf_dinov2",
            traced(dinov2::Dinov2Model::new(&dinov2::Config::from_json(
                DINOV2,
            )?)?)?,
            |n| images(n, 3, 28),
        ),
        case("hf_gpt2", flat(&gpt2.trace()?)?, |n| {
            words(n, [&[4, 3, 8]; 2])
        }),
        case("hf_llama", flat(&llama.trace()?)?, |n| {
            words(n, [&[2, 3, 8]; 2])
        }),
        case("hf_mamba", flat(&mamba.trace()?)?, |n| {
            words(n, [&[64, 2], &[64, 4]])
        }),
        case(
            "hf_t5",
            traced(t5::ConditionalGeneration::new(&t5::Config::from_json(T5)?)?)?,
            |n| {
                let ids = tokens(n, 10, 96)?;
                let mask = ops::ones_like(&ids, None)?;
                Ok(vec![ids, mask, tokens(n, 4, 96)?])
            },
        ),
        case(
            "hf_vit",
            traced(vit::ViTModel::new(&vit::Config::from_json(VIT)?)?)?,
            |n| images(n, 3, 24),
        ),
        case(
            "hf_whisper",
            traced(whisper::ConditionalGeneration::new(
                &whisper::Config::from_json(WHISPER)?,
            )?)?,
            |n| Ok(vec![Tensor::randn((n, 12, 20))?, tokens(n, 4, 96)?]),
        ),
    ])
}
