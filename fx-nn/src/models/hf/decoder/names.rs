//! The names of checkpoints whose tensors are other ones than the decoder's: fused, one for each expert, or renamed.

use fx_core::Result;

use super::config::Config;
use crate::weights::Checkpoint;

/// The checkpoint with the decoder's names and tensors.
///
/// # Errors
/// Returns an error if a tensor cannot be split or stacked.
pub(in super::super) fn adapted(checkpoint: Checkpoint, config: &Config) -> Result<Checkpoint> {
    let checkpoint = checkpoint.rename(|name| {
        let name = name
            .replace(".mlp.c_fc.", ".mlp.up_proj.")
            .replace(".mlp.c_proj.", ".mlp.down_proj.");
        if !name.contains(".block_sparse_moe.") {
            return name;
        }
        let name = name.replace(".block_sparse_moe.", ".mlp.");
        let name = name
            .replace(".w1.", ".gate_proj.")
            .replace(".w3.", ".up_proj.");
        name.replace(".w2.", ".down_proj.")
    })?;
    let checkpoint = split(checkpoint, config)?;
    let Some(experts) = &config.experts else {
        return Ok(checkpoint);
    };
    let layers = experts.layers.iter().enumerate().filter(|(_, has)| **has);
    stacked(
        checkpoint,
        layers.map(|(layer, _)| layer),
        experts.num_experts,
    )
}

/// Phi-3's fused matrices as one for each layer.
fn split(mut checkpoint: Checkpoint, config: &Config) -> Result<Checkpoint> {
    let rows = |heads: usize| heads.saturating_mul(config.head_dim);
    let (queries, keys) = (
        rows(config.num_attention_heads),
        rows(config.num_key_value_heads),
    );
    let inside = config.intermediate_size;
    let names: Vec<String> = checkpoint.names().map(str::to_string).collect();
    for name in names {
        let parts: &[(&str, usize)] = match name.rsplit_once('.') {
            Some((layer, _)) if layer.ends_with(".self_attn.qkv_proj") => {
                &[("q_proj", queries), ("k_proj", keys), ("v_proj", keys)]
            }
            Some((layer, _)) if layer.ends_with(".mlp.gate_up_proj") => {
                &[("gate_proj", inside), ("up_proj", inside)]
            }
            _ => continue,
        };
        let fused = if parts.len() == 3 {
            "qkv_proj"
        } else {
            "gate_up_proj"
        };
        let renamed: Vec<(String, usize)> = parts
            .iter()
            .map(|(part, rows)| (name.replace(fused, part), *rows))
            .collect();
        let renamed: Vec<(&str, usize)> = renamed
            .iter()
            .map(|(name, rows)| (&**name, *rows))
            .collect();
        checkpoint = checkpoint.split_rows(&name, &renamed)?;
    }
    Ok(checkpoint)
}

/// The matrices of all experts of a layer as one tensor, in layers that have so many of them.
///
/// # Errors
/// Returns an error if the matrices of a layer have several shapes.
pub(in super::super) fn stacked(
    mut checkpoint: Checkpoint,
    layers: impl Iterator<Item = usize>,
    experts: usize,
) -> Result<Checkpoint> {
    for layer in layers {
        for part in ["gate_proj", "up_proj", "down_proj"] {
            let whole = format!("model.layers.{layer}.mlp.experts");
            let names = (0..experts).map(|expert| format!("{whole}.{expert}.{part}.weight"));
            // No more than there are, whatever a configuration says.
            let names = names.take_while(|name| checkpoint.shape(name).is_some());
            let names: Vec<String> = names.collect();
            if !names.is_empty() {
                checkpoint = checkpoint.stack(&names, &format!("{whole}.{part}"))?;
            }
        }
    }
    Ok(checkpoint)
}
