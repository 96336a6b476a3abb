//! Loading a model whose parameters are fake: all of it, or nothing.

use fx_core::module::{Component, ComponentExt};
use fx_core::{ErrorKind, Result};

use super::Checkpoint;

/// Loads models that [`nn::fake`](crate::nn::fake) made.
pub trait Materialise: Component {
    /// Loads every parameter and buffer from a checkpoint, in the model's types: those without data
    /// get theirs. A layer that shares a tensor with another still does.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::weights::{Checkpoint, Materialise};
    /// let trained = nn::Linear::new(4, 2)?;
    /// let path = std::env::temp_dir().join(format!("fx_doc_fake_{}.safetensors", std::process::id()));
    /// fx_nn::weights::save(&trained, &path)?;
    /// let mut layer = nn::fake(|| nn::Linear::new(4, 2))?;
    /// layer.materialise(&Checkpoint::open(&path)?)?;
    /// # std::fs::remove_file(&path).map_err(Error::other)?;
    /// assert_eq!(layer.weight.to_vec()?, trained.weight.to_vec()?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a tensor is missing, unknown, of another shape or cannot be read, or if
    /// something else of the model is fake. No fake tensor is loaded then.
    fn materialise(&mut self, weights: &Checkpoint) -> Result<()>
    where
        Self: Sized,
    {
        let mut loaded = self.duplicate();
        weights.load(&mut loaded)?;
        let fakes: Vec<String> = loaded
            .named_buffers()
            .into_iter()
            .filter(|(_, value)| value.as_object().is_some_and(|object| object.is_fake()))
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        if !fakes.is_empty() {
            return Err(ErrorKind::Weights(format!(
                "the checkpoint has no data for {}: make what is not saved outside of `nn::fake`",
                fakes.join(", ")
            ))
            .into());
        }
        *self = loaded;
        Ok(())
    }
}

impl<M: Component> Materialise for M {}
