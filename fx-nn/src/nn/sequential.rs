//! `Sequential`: layers one after another, traced through.

use std::ops::{Index, IndexMut};

use fx_core::module::{IntoModule, Module};
use fx_core::trace::Forward;
use fx_core::{Module, Result, trace};

use indexmap::IndexMap;

use crate::tensor::Tensor;

/// Layers one after another. Its children are named `0`, `1`, ... as in PyTorch, unless they are
/// given names.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut net = nn::Sequential::new().push(nn::Linear::new(4, 8)?).push(nn::ReLU::new());
/// let y = net.forward(&Tensor::ones((2, 4))?)?;
/// assert_eq!(y.dims()?, [2, 8]);
/// assert_eq!(net.named_parameters().keys().collect::<Vec<_>>(), ["0.weight", "0.bias"]);
///
/// // With names; a layer may be in a box already.
/// let activation: Box<dyn Module> = Box::new(nn::Tanh::new());
/// net = nn::Sequential::new().add_module("proj", nn::Linear::new(4, 8)?).add_module("act", activation);
/// assert!(net[1].type_name().ends_with("::Tanh"));
/// net["act"] = Box::new(nn::GELU::new());
/// assert!(net["act"].type_name().ends_with("::GELU"));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Default)]
pub struct Sequential {
    /// The layers by name, in the order that they run.
    #[module(flatten)]
    pub layers: IndexMap<String, Box<dyn Module>>,
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Self {
        Sequential::default()
    }

    /// With one more layer at the end, whose name is its place.
    #[must_use]
    pub fn push(self, layer: impl IntoModule) -> Self {
        let place = self.free_place();
        self.with(place, layer.into_module())
    }

    /// With a layer of a name: at the end, or replacing the one that has the name.
    #[must_use]
    pub fn add_module(self, name: impl Into<String>, layer: impl IntoModule) -> Self {
        self.with(name.into(), layer.into_module())
    }

    fn free_place(&self) -> String {
        let is_free = |at: &usize| !self.layers.contains_key(&at.to_string());
        let place = (self.layers.len()..).find(is_free).unwrap_or_default();
        place.to_string()
    }

    fn with(mut self, name: String, layer: Box<dyn Module>) -> Self {
        self.layers.insert(name, layer);
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

/// # Panics
/// Panics if there is no such layer.
impl Index<usize> for Sequential {
    type Output = Box<dyn Module>;

    fn index(&self, place: usize) -> &Box<dyn Module> {
        &self.layers[place]
    }
}

/// # Panics
/// Panics if there is no such layer.
impl IndexMut<usize> for Sequential {
    fn index_mut(&mut self, place: usize) -> &mut Box<dyn Module> {
        &mut self.layers[place]
    }
}

/// # Panics
/// Panics if there is no layer of the name.
impl Index<&str> for Sequential {
    type Output = Box<dyn Module>;

    fn index(&self, name: &str) -> &Box<dyn Module> {
        &self.layers[name]
    }
}

/// # Panics
/// Panics if there is no layer of the name.
impl IndexMut<&str> for Sequential {
    fn index_mut(&mut self, name: &str) -> &mut Box<dyn Module> {
        &mut self.layers[name]
    }
}

impl std::fmt::Debug for Sequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(
                self.layers
                    .iter()
                    .map(|(name, layer)| (name, layer.type_name())),
            )
            .finish()
    }
}

#[trace(container, path = "fx_nn::nn::Sequential")]
impl Sequential {
    /// Applies the layers.
    ///
    /// # Errors
    /// Returns the error of a layer.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for layer in self.layers.values() {
            h = layer.forward(&h)?;
        }
        Ok(h)
    }
}
