//! Models of Hugging Face's families give the library's numbers: the folders in `hf/recorded`, which `hf/make.py` wrote.

#[path = "../examples/hf_parity/decoder.rs"]
mod decoder;
#[path = "../examples/hf_parity/encoder_decoder.rs"]
mod encoder_decoder;
#[path = "../examples/hf_parity/encoders.rs"]
mod encoders;
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
        "bert", "clip", "dinov2", "gemma", "gpt2", "llama", "mamba", "mistral", "qwen2", "t5",
        "vit", "whisper",
    ];
    for name in families {
        let found = family::compare(name, &recorded.join(format!("{name}-float32")))?;
        assert!(!found.distances.is_empty());
        for (mode, distance) in found.distances {
            assert!(distance <= 1e-5, "{name}, {mode}: {distance:.1e}");
        }
        assert_eq!(found.differing, 0, "{name}: the graph gives other numbers");
    }
    Ok(())
}
