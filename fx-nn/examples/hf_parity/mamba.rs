//! Mamba: a text in one pass, and word by word with the states.

use std::path::Path;

use fx_nn::models::hf::mamba::{Cache, CausalLM};
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use super::found::Found;
use super::steps::one_by_one;

pub fn compare(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let (tokens, expected) = (io.tensor("tokens")?, io.tensor("expected")?);
    let model = CausalLM::from_folder(folder)?;
    let batch = tokens.dims()?[0];
    let gm = model.trace()?;
    let eager = |tokens: &Tensor, caches| model.forward(tokens, caches);
    let traced = |tokens: &Tensor, caches: Vec<Cache>| gm.forward((tokens, caches));
    let mut found = Found::default();
    let (at_once, _) = eager(&tokens, model.caches(batch)?)?;
    let (of_graph, _) = traced(&tokens, model.caches(batch)?)?;
    found.add("one pass", &at_once, &of_graph, &expected)?;
    let cached = one_by_one(&tokens, model.caches(batch)?, &eager)?;
    let of_graph = one_by_one(&tokens, model.caches(batch)?, &traced)?;
    found.add("cached", &cached, &of_graph, &expected)?;
    Ok(found)
}
