//! `Optimizer`: the interface of all optimizers.

use std::path::Path;

use fx_core::Result;
use indexmap::IndexMap;

use super::update::UpdateRule;
use crate::tensor::{Gradients, Tensor};

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// Changes every parameter that has a gradient, once.
    ///
    /// # Errors
    /// Returns an error if a gradient does not fit its parameter.
    fn step(&mut self, gradients: &Gradients) -> Result<()>;

    /// The learning rate.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate from now on; a [`Scheduler`](super::Scheduler) calls this.
    fn set_learning_rate(&mut self, lr: f64);

    /// How it changes a parameter, as a function that a graph can have; none if it has no such form. Then a
    /// [`TrainStep`](crate::train::TrainStep) is refused.
    fn update_rule(&self) -> Option<UpdateRule> {
        None
    }

    /// The state of each parameter, by `path.name` with PyTorch's names; options are not in it.
    ///
    /// # Errors
    /// Returns no errors of its own.
    fn state_dict(&self) -> Result<IndexMap<String, Tensor>>;

    /// Restores the state that [`state_dict`](Optimizer::state_dict) returned.
    ///
    /// # Errors
    /// Returns an error if an entry belongs to no trained parameter, has a different shape, or is
    /// missing while others of its parameter are there; nothing changes then.
    fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()>;

    /// Saves the state as a safetensors file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn save(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        crate::weights::save_tensors(self.state_dict()?, path)
    }

    /// Loads a file that [`save`](Optimizer::save) wrote.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, and the errors of
    /// [`load_state_dict`](Optimizer::load_state_dict).
    fn load(&mut self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict(&tensors_of(path.as_ref())?)
    }
}

/// An optimizer whose type a program chooses when it runs.
impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    fn step(&mut self, gradients: &Gradients) -> Result<()> {
        (**self).step(gradients)
    }

    fn learning_rate(&self) -> f64 {
        (**self).learning_rate()
    }

    fn set_learning_rate(&mut self, lr: f64) {
        (**self).set_learning_rate(lr);
    }

    fn update_rule(&self) -> Option<UpdateRule> {
        (**self).update_rule()
    }

    fn state_dict(&self) -> Result<IndexMap<String, Tensor>> {
        (**self).state_dict()
    }

    fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()> {
        (**self).load_state_dict(state)
    }
}

/// The tensors of a saved state.
pub(crate) fn tensors_of(path: &Path) -> Result<IndexMap<String, Tensor>> {
    let checkpoint = crate::weights::Checkpoint::open(path)?;
    let tensors = checkpoint.names();
    let tensors = tensors.map(|name| Ok((name.to_string(), checkpoint.tensor(name)?)));
    tensors.collect()
}
