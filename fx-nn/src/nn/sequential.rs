//! `Sequential`: layers one after another, traced through.

use fx_core::module::Module;
use fx_core::trace::Forward;
use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;

/// Layers one after another. Its children are named `0`, `1`, ... as in PyTorch.
///
/// ```
/// use fx_nn::prelude::*;
/// let net = nn::Sequential::new().push(nn::Linear::new(4, 8)?).push(nn::ReLU::new());
/// let y = net.forward(&Tensor::ones((2, 4))?)?;
/// assert_eq!(y.dims()?, [2, 8]);
/// assert_eq!(net.named_parameters().keys().collect::<Vec<_>>(), ["0.weight", "0.bias"]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Default)]
pub struct Sequential {
    /// The layers, in the order that they run.
    #[module(flatten)]
    pub layers: Vec<Box<dyn Module>>,
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Self {
        Sequential::default()
    }

    /// With one more layer at the end.
    #[must_use]
    pub fn push(mut self, layer: impl Module) -> Self {
        self.layers.push(Box::new(layer));
        self
    }
}

impl std::fmt::Debug for Sequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.layers.iter().map(|layer| layer.type_name()))
            .finish()
    }
}

#[trace(path = "fx_nn::nn::Sequential")]
impl Sequential {
    /// Applies the layers.
    ///
    /// # Errors
    /// What a layer says.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for layer in &self.layers {
            h = layer.forward(&h)?;
        }
        Ok(h)
    }
}
