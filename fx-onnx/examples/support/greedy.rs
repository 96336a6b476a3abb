//! A decoder that writes tokens until it writes the stop token: one graph, with its loop and its cache.

use fx_nn::models::hf::decoder::Cache;
use fx_nn::models::hf::gpt2::{self, GPT2LMHeadModel};
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, IntoArgs};

const CONFIG: &str = r#"{"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2,
    "n_head": 4, "tie_word_embeddings": false}"#;

/// A model that writes until it writes `stop`, at most 12 tokens.
#[derive(Module)]
struct Greedy<M> {
    model: M,
    stop: i64,
}

#[trace(control_flow)]
impl<M: Module> Greedy<M> {
    /// The prompt `[1, T]` and what follows it.
    fn forward(&self, prompt: &Tensor, caches: Vec<Cache>) -> Result<Tensor> {
        let mut tokens = prompt.clone();
        let mut last = prompt.clone();
        let mut caches = caches;
        let mut count = Int::from(0);
        loop {
            let (scores, after): (Tensor, Vec<Cache>) = self.model.forward((&last, caches))?;
            caches = after;
            last = scores.i((.., -1))?.argmax(-1, true)?;
            tokens = ops::cat(&[&tokens, &last], 1)?;
            if last.i((0, 0))? == self.stop {
                break;
            }
            count = (count + 1)?;
            if count == 12 {
                break;
            }
        }
        Ok(tokens)
    }
}

/// The decoder, and a call of it.
pub fn greedy() -> Result<(GraphModule, CallArgs)> {
    fx_nn::manual_seed(3);
    let config = gpt2::Config::from_json(CONFIG)?;
    let mut model = GPT2LMHeadModel::new(&config)?;
    fx_nn::module::ComponentExt::eval(&mut model);
    let caches = model.caches(1)?;
    let layers = vec![tree!({"k": PH, "v": PH}); caches.len()];
    let prompt = Tensor::from_vec(vec![3i64, 14, 15, 92], (1, 4))?;
    let gm = Trace::new(&Greedy { model, stop: -1 })
        .concrete("caches", Value::List(layers.into()))
        .graph_module()?;
    Ok((gm, (&prompt, caches).into_args()))
}
