//! `Model`: the graph that an engine runs, and what it needs to know of it.

use fx_core::{Error, GraphModule, Result};
use fx_nn::cpu::Cpu;
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::models::hf::gguf::Gguf;
use fx_nn::passes::backend::Compile;

/// A compiled graph of several texts, as [`CausalLM::trace_texts`] gives it.
pub struct Model {
    pub(super) graph: GraphModule,
    /// The caches of a text before its first word.
    pub(super) empty: Vec<Cache>,
    /// How many texts the graph reads at once.
    pub(super) slots: usize,
    pub(super) vocab_size: usize,
    pub(super) positions: usize,
}

impl Model {
    /// A graph of `slots` texts, compiled; `empty` are the caches of a text before its first word. The graph may have been
    /// edited: any of its modules replaced, their results read or changed.
    ///
    /// # Errors
    /// Returns an error if `slots` is 0, and the errors of compiling.
    pub fn new(
        graph: &GraphModule,
        empty: Vec<Cache>,
        config: &Config,
        slots: usize,
    ) -> Result<Self> {
        if slots == 0 {
            return Err(Error::msg(
                "an engine of no slots writes nothing: give 1 at least",
            ));
        }
        Ok(Model {
            graph: graph.compile(Compile::new(Cpu::new()))?,
            empty,
            slots,
            vocab_size: config.vocab_size,
            positions: config.max_position_embeddings,
        })
    }

    /// The model of a GGUF file, which writes up to `slots` texts at once.
    ///
    /// # Errors
    /// Returns an error if `slots` is 0, and all problems of the weights.
    pub fn of_gguf(file: &Gguf, slots: usize) -> Result<Self> {
        Model::new(
            &file.trace_texts(slots)?,
            file.caches(1)?,
            file.config(),
            slots,
        )
    }

    /// A decoder, which writes up to `slots` texts at once.
    ///
    /// # Errors
    /// Returns an error if `slots` is 0, and the errors of tracing.
    pub fn of_decoder(model: &CausalLM, config: &Config, slots: usize) -> Result<Self> {
        Model::new(&model.trace_texts(slots)?, model.caches(1)?, config, slots)
    }
}
