//! Decoders with rotary positions, DeepSeek-V2 and GPT-2: a prompt in one pass, and word by word with a cache.

use std::path::Path;

use fx_nn::cpu::Cpu;
use fx_nn::models::hf::decoder::{Cache, CausalLM};
use fx_nn::models::hf::deepseek::DeepseekV2ForCausalLM;
use fx_nn::models::hf::gpt2::GPT2LMHeadModel;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use super::experts::Experts;
use super::found::Found;
use super::steps::{Step, one_by_one};

/// The number of words of a shorter text, longer than the windows of the models.
const SHORTER: usize = 9;

/// Runs a model eagerly, traced and compiled, in one pass and with a cache; `none_seen` is an empty cache.
fn both_ways(
    io: &Checkpoint,
    eager: &Step<'_, Vec<Cache>>,
    gm: &GraphModule,
    none_seen: impl Fn(usize) -> Result<Vec<Cache>>,
) -> Result<Found> {
    let (tokens, expected) = (io.tensor("tokens")?, io.tensor("expected")?);
    // Where the library gives other scores word by word, they are there too.
    let by_words = io.tensor("cached").unwrap_or_else(|_| expected.clone());
    let batch = tokens.dims()?[0];
    let traced = |tokens: &Tensor, caches: Vec<Cache>| gm.forward((tokens, caches));
    let mut found = Found::default();
    let (at_once, _) = eager(&tokens, none_seen(batch)?)?;
    let (of_graph, _) = traced(&tokens, none_seen(batch)?)?;
    found.add("one pass", &at_once, &of_graph, &expected)?;
    let cached = one_by_one(&tokens, none_seen(batch)?, eager)?;
    let of_graph = one_by_one(&tokens, none_seen(batch)?, &traced)?;
    found.add("cached", &cached, &of_graph, &by_words)?;
    let code = fx_nn::no_grad(|| gm.compile(Compile::new(Cpu::new())))?;
    let compiled = |tokens: &Tensor, caches: Vec<Cache>| code.forward((tokens, caches));
    let (at_once, _) = compiled(&tokens, none_seen(batch)?)?;
    found.add_compiled("compiled, one pass", &at_once, &expected)?;
    let cached = one_by_one(&tokens, none_seen(batch)?, &compiled)?;
    found.add_compiled("compiled, cached", &cached, &by_words)?;
    if io.tensor("cached").is_err() {
        // The scores of a text are those of its beginning too.
        let [tokens, expected] = [tokens.i((.., ..SHORTER))?, expected.i((.., ..SHORTER))?];
        let (at_once, _) = eager(&tokens, none_seen(batch)?)?;
        let (of_graph, _) = traced(&tokens, none_seen(batch)?)?;
        found.add("shorter text", &at_once, &of_graph, &expected)?;
        let (at_once, _) = compiled(&tokens, none_seen(batch)?)?;
        found.add_compiled("compiled, shorter text", &at_once, &expected)?;
    }
    let mut experts = Experts::default();
    gm.interpret::<(Tensor, Vec<Cache>)>(&mut experts, (&tokens, none_seen(batch)?))?;
    found.experts = experts;
    Ok(found)
}

pub fn compare(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = CausalLM::from_folder(folder)?;
    let eager = |tokens: &Tensor, caches| model.forward(tokens, caches);
    both_ways(io, &eager, &model.trace()?, |batch| model.caches(batch))
}

pub fn compare_gpt2(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = GPT2LMHeadModel::from_folder(folder)?;
    let eager = |tokens: &Tensor, caches| model.forward(tokens, caches);
    both_ways(io, &eager, &model.trace()?, |batch| model.caches(batch))
}

pub fn compare_deepseek(folder: &Path, io: &Checkpoint) -> Result<Found> {
    let model = DeepseekV2ForCausalLM::from_folder(folder)?;
    let eager = |tokens: &Tensor, caches| model.forward(tokens, caches);
    both_ways(io, &eager, &model.trace()?, |batch| model.caches(batch))
}
