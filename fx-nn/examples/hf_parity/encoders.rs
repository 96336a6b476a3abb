//! BERT and RoBERTa, ModernBERT, ViT, DINOv2 and CLIP: every tensor that they return.

use std::path::Path;

use fx_nn::models::hf::bert::BertModel;
use fx_nn::models::hf::clip::{CLIPModel, CLIPOutput};
use fx_nn::models::hf::dinov2::Dinov2Model;
use fx_nn::models::hf::encoder::BaseModelOutputWithPooling;
use fx_nn::models::hf::modernbert::ModernBertModel;
use fx_nn::models::hf::vit::{ViTForImageClassification, ViTModel};
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use super::found::Found;

/// Compares the states of all positions and the pooled state with those of the library.
fn states(
    io: &Checkpoint,
    eager: &BaseModelOutputWithPooling,
    traced: &BaseModelOutputWithPooling,
) -> Result<Found> {
    let mut found = Found::default();
    let (states, of_graph) = (&eager.last_hidden_state, &traced.last_hidden_state);
    let name = "last_hidden_state";
    found.add(name, states, of_graph, &io.tensor(name)?)?;
    let name = "pooler_output";
    match (&eager.pooler_output, &traced.pooler_output, io.tensor(name)) {
        (Some(pooled), Some(of_graph), Ok(expected)) => {
            found.add(name, pooled, of_graph, &expected)?;
        }
        (None, None, Err(_)) => {}
        _ => {
            return Err(Error::msg(
                "one of model, graph and library has no `pooler_output`",
            ));
        }
    }
    Ok(found)
}

pub fn bert(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = BertModel::from_folder(folder)?;
    let words = io.tensor("input_ids")?;
    let (mask, types) = (io.tensor("attention_mask")?, io.tensor("token_type_ids")?);
    let eager = model.forward(&words, &mask, &types)?;
    let traced = symbolic_trace(&model)?.forward((&words, &mask, &types))?;
    states(io, &eager, &traced)
}

pub fn modernbert(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = ModernBertModel::from_folder(folder)?;
    let (words, mask) = (io.tensor("input_ids")?, io.tensor("attention_mask")?);
    let eager = model.forward(&words, &mask)?;
    states(
        io,
        &eager,
        &symbolic_trace(&model)?.forward((&words, &mask))?,
    )
}

pub fn vit(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let images = io.tensor("pixel_values")?;
    let Ok(logits) = io.tensor("logits") else {
        let model = ViTModel::from_folder(folder)?;
        let eager = model.forward(&images)?;
        return states(io, &eager, &symbolic_trace(&model)?.forward(&images)?);
    };
    let model = ViTForImageClassification::from_folder(folder)?;
    let eager = model.forward(&images)?;
    let traced: Tensor = symbolic_trace(&model)?.forward(&images)?;
    let mut found = Found::default();
    found.add("logits", &eager, &traced, &logits)?;
    // The same folder without its head.
    let inside = ViTModel::from_folder(folder)?;
    let state = inside.forward(&images)?.last_hidden_state;
    let again = model.classifier.forward(&state.i((.., 0))?)?;
    found.add("logits of ViTModel's states", &again, &traced, &logits)?;
    Ok(found)
}

pub fn dinov2(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let mut model = Dinov2Model::from_folder(folder)?;
    let images = io.tensor("pixel_values")?;
    if let &[_, _, height, width] = images.dims()? {
        model.embeddings.interpolate_pos_encoding([height, width])?;
    }
    let eager = model.forward(&images)?;
    states(io, &eager, &symbolic_trace(&model)?.forward(&images)?)
}

pub fn clip(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = CLIPModel::from_folder(folder)?;
    let (words, images) = (io.tensor("input_ids")?, io.tensor("pixel_values")?);
    let mask = io.tensor("attention_mask")?;
    let eager = model.forward(&words, &images, &mask)?;
    let traced: CLIPOutput = symbolic_trace(&model)?.forward((&words, &images, &mask))?;
    let mut found = Found::default();
    let pairs = [
        (
            "logits_per_image",
            eager.logits_per_image,
            traced.logits_per_image,
        ),
        (
            "logits_per_text",
            eager.logits_per_text,
            traced.logits_per_text,
        ),
        ("text_embeds", eager.text_embeds, traced.text_embeds),
        ("image_embeds", eager.image_embeds, traced.image_embeds),
    ];
    for (name, eager, traced) in pairs {
        found.add(name, &eager, &traced, &io.tensor(name)?)?;
    }
    Ok(found)
}
