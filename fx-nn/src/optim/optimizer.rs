//! `Optimizer`: what all optimizers do.

use std::path::Path;

use fx_core::Result;
use indexmap::IndexMap;

use crate::tensor::{Gradients, Tensor};

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// Changes every parameter that has a gradient, once.
    ///
    /// # Errors
    /// When a gradient does not fit its parameter.
    fn step(&mut self, gradients: &Gradients) -> Result<()>;

    /// How far a step goes.
    fn learning_rate(&self) -> f64;

    /// Sets how far steps go from now on; a [`Scheduler`](super::Scheduler) calls this.
    fn set_learning_rate(&mut self, lr: f64);

    /// What it remembers of each parameter, by `path.name` with PyTorch's names; options are not in it.
    ///
    /// # Errors
    /// None of its own.
    fn state_dict(&self) -> Result<IndexMap<String, Tensor>>;

    /// Takes what [`state_dict`](Optimizer::state_dict) gave.
    ///
    /// # Errors
    /// Each entry that is of no trained parameter, of another shape, or missing beside others; nothing changes then.
    fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()>;

    /// Saves what it remembers as a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn save(&self, path: &Path) -> Result<()> {
        crate::weights::save_tensors(self.state_dict()?, path)
    }

    /// Loads what [`save`](Optimizer::save) wrote.
    ///
    /// # Errors
    /// When the file cannot be read, and those of [`load_state_dict`](Optimizer::load_state_dict).
    fn load(&mut self, path: &Path) -> Result<()> {
        let checkpoint = crate::weights::Checkpoint::open(path)?;
        let tensors = checkpoint.names();
        let tensors = tensors.map(|name| Ok((name.to_string(), checkpoint.tensor(name)?)));
        self.load_state_dict(&tensors.collect::<Result<_>>()?)
    }
}
