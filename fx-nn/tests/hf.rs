//! Models of Hugging Face's families give the library's numbers: the folders in `hf/recorded`, which `hf/make.py` wrote.

#[path = "../examples/hf_parity/decoder.rs"]
mod decoder;
#[path = "../examples/hf_parity/encoder_decoder.rs"]
mod encoder_decoder;
#[path = "../examples/hf_parity/encoders.rs"]
mod encoders;
#[path = "../examples/hf_parity/experts.rs"]
mod experts;
#[path = "../examples/hf_parity/family.rs"]
mod family;
#[path = "../examples/hf_parity/found.rs"]
mod found;
#[path = "../examples/hf_parity/mamba.rs"]
mod mamba;
#[path = "../examples/hf_parity/steps.rs"]
mod steps;

use std::path::Path;

use fx_nn::prelude::*;

#[test]
fn the_families_give_the_numbers_of_the_library() -> Result<()> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hf/recorded");
    let families = [
        "bert",
        "clip",
        "deepseek_v2",
        "dinov2",
        "gemma",
        "gemma2",
        "gemma3_text",
        "gpt2",
        "granite",
        "llama",
        "mamba",
        "mistral",
        "mixtral",
        "modernbert",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "roberta",
        "starcoder2",
        "t5",
        "vit",
        "whisper",
        "xlm-roberta",
    ];
    for name in families {
        let found = family::compare(name, &recorded.join(format!("{name}-float32")))?;
        assert!(!found.distances.is_empty());
        for (mode, distance) in found.distances {
            assert!(distance <= 1e-5, "{name}, {mode}: {distance:.1e}");
        }
        // Of 28 words that choose two or three of four or six experts, each expert has some.
        let has_experts = ["qwen3_moe", "mixtral", "deepseek_v2"].contains(&name);
        assert_eq!(found.experts.all > 0, has_experts, "{name}");
        assert!(found.experts.computed <= found.experts.all);
        assert_eq!(found.differing, 0, "{name}: the graph gives other numbers");
    }
    Ok(())
}

#[test]
fn t5_tells_distances_apart_as_the_library() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hf/recorded/t5-float32");
    let text = std::fs::read_to_string(folder.join("config.json")).map_err(Error::other)?;
    let mut config = fx_nn::models::hf::t5::Config::from_json(&text)?;
    config.relative_attention_max_distance = 128;
    config.relative_attention_num_buckets = 32;
    let model = fx_nn::models::hf::t5::ConditionalGeneration::new(&config)?;
    let of = |stack: &str| -> Result<Vec<i64>> {
        let buffers = model.named_buffers();
        let mut names = buffers.keys().filter(|name| name.starts_with(stack));
        let name = names
            .find(|name| name.ends_with("buckets"))
            .ok_or_else(|| Error::msg("no buffer of buckets"))?;
        let buckets = buffers[name].downcast_ref::<Tensor>();
        let buckets = buckets.ok_or_else(|| Error::msg("the buffer is no tensor"))?;
        let buckets = buckets.to_vec()?;
        let offsets: [i64; 16] = [
            -128, -64, -63, -32, -16, -15, -8, -7, 0, 1, 8, 9, 16, 45, 46, 127,
        ];
        Ok(offsets
            .map(|at| buckets[(at + 128) as usize] as i64)
            .to_vec())
    };
    assert_eq!(
        of("encoder")?,
        [15, 14, 13, 12, 10, 9, 8, 7, 0, 17, 24, 24, 26, 28, 29, 31]
    );
    assert_eq!(
        of("decoder")?,
        [31, 26, 26, 21, 16, 15, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    Ok(())
}
