//! A folder's comparison, by its family.

use std::path::Path;

use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use super::found::Found;
use super::{decoder, encoder_decoder, encoders, mamba};

/// Compares the results of a folder's model with the inputs and outputs in the folder.
pub fn compare(family: &str, folder: &Path) -> Result<Found> {
    let io = Checkpoint::open(folder.join("io.safetensors"))?;
    match family {
        "gemma" | "gemma2" | "gemma3_text" | "granite" | "llama" | "mistral" | "mixtral"
        | "olmo2" | "phi3" | "qwen2" | "qwen3" | "qwen3_moe" | "starcoder2" => {
            decoder::compare(folder, &io)
        }
        "mamba" => mamba::compare(folder, &io),
        "t5" => encoder_decoder::t5(folder, &io),
        "whisper" => encoder_decoder::whisper(folder, &io),
        "deepseek_v2" => decoder::compare_deepseek(folder, &io),
        "gpt2" => decoder::compare_gpt2(folder, &io),
        "bert" | "roberta" | "xlm-roberta" => encoders::bert(folder, &io),
        "modernbert" => encoders::modernbert(folder, &io),
        "vit" => encoders::vit(folder, &io),
        "dinov2" => encoders::dinov2(folder, &io),
        "clip" => encoders::clip(folder, &io),
        other => Err(Error::msg(format_args!("no model of the family {other}"))),
    }
}
