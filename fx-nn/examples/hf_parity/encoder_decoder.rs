//! T5 and Whisper: encoder and decoder in one pass, and the decoder word by word with a cache.

use std::path::Path;

use fx_nn::models::hf::encoder_decoder::Cache;
use fx_nn::models::hf::{t5, whisper};
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use super::found::Found;
use super::steps::one_by_one;

pub fn t5(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = t5::ConditionalGeneration::from_folder(folder)?;
    let (text, mask) = (io.tensor("input_ids")?, io.tensor("attention_mask")?);
    let (tokens, expected) = (io.tensor("decoder_input_ids")?, io.tensor("expected")?);
    let (gm, encoder, decoder) = (model.trace()?, model.trace_encode()?, model.trace_decode()?);
    let mut found = Found::default();
    let eager = model.forward(&text, &mask, &tokens)?;
    let traced = gm.forward((&text, &mask, &tokens))?;
    found.add("one pass", &eager, &traced, &expected)?;
    let eager = |word: &Tensor, caches| model.decode(word, &mask, caches);
    let traced = |word: &Tensor, caches: Vec<Cache>| decoder.forward((word, &mask, caches));
    let eager = one_by_one(&tokens, model.encode(&text, &mask)?, &eager)?;
    let traced = one_by_one(&tokens, encoder.forward((&text, &mask))?, &traced)?;
    found.add("cached", &eager, &traced, &expected)?;
    Ok(found)
}

pub fn whisper(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = whisper::ConditionalGeneration::from_folder(folder)?;
    let features = io.tensor("input_features")?;
    let (tokens, expected) = (io.tensor("decoder_input_ids")?, io.tensor("expected")?);
    let (gm, encoder, decoder) = (model.trace()?, model.trace_encode()?, model.trace_decode()?);
    let mut found = Found::default();
    let eager = model.forward(&features, &tokens)?;
    let traced = gm.forward((&features, &tokens))?;
    found.add("one pass", &eager, &traced, &expected)?;
    let eager = |word: &Tensor, caches| model.decode(word, caches);
    let traced = |word: &Tensor, caches: Vec<Cache>| decoder.forward((word, caches));
    let eager = one_by_one(&tokens, model.encode(&features)?, &eager)?;
    let traced = one_by_one(&tokens, encoder.forward(&features)?, &traced)?;
    found.add("cached", &eager, &traced, &expected)?;
    Ok(found)
}
