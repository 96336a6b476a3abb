//! Modules in lists, in sequences and by name: the paths of a hierarchy.

use fx_core::module::Module;
use fx_core::trace::Forward;
use fx_core::{Module, Result, trace};
use indexmap::IndexMap;

use crate::tensor::Tensor;
use crate::{nn, ops};

/// A scaled linear layer, with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct Inner {
    /// The layer.
    pub lin: nn::Linear,
    /// `[width]`.
    pub scale: Tensor,
}

#[trace]
impl Inner {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor, #[default(true)] residual: bool) -> Result<Tensor> {
        let y = (self.lin.forward(x)? * &self.scale)?;
        if residual { x + y } else { Ok(y) }
    }
}

/// Blocks in a list, layers by name, and a list of parameters.
#[derive(Module, Clone, Debug)]
pub struct Nested {
    /// Sequences, of which the last part is a sequence.
    pub blocks: Vec<nn::Sequential>,
    /// A name need not be an identifier.
    pub by_name: IndexMap<String, Box<dyn Module>>,
    /// One for each block, `[width]`.
    pub biases: Vec<Tensor>,
}

impl Nested {
    /// A model of a width.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(width: usize) -> Result<Self> {
        let linear = || nn::Linear::new(width, width);
        let block = || -> Result<nn::Sequential> {
            Ok(nn::Sequential::new()
                .push(Inner {
                    lin: linear()?,
                    scale: Tensor::ones(width)?.into_parameter()?,
                })
                .push(nn::ReLU::new())
                .push(nn::Sequential::new().push(linear()?).push(nn::Tanh::new())))
        };
        let mut by_name: IndexMap<String, Box<dyn Module>> = IndexMap::new();
        by_name.insert("p-q".into(), Box::new(linear()?));
        by_name.insert("skip".into(), Box::new(nn::Identity::default()));
        let bias = || Tensor::zeros(width)?.into_parameter();
        Ok(Nested {
            blocks: vec![block()?, block()?],
            by_name,
            biases: vec![bias()?, bias()?],
        })
    }
}

#[trace]
impl Nested {
    /// The results of all parts, side by side: `[N, 4 · width]`.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        let mut features = Vec::new();
        for (block, bias) in self.blocks.iter().zip(&self.biases) {
            x = (block.forward(&x)? + bias)?;
            features.push(x.clone());
        }
        for layer in self.by_name.values() {
            x = layer.forward(&x)?;
            features.push(x.clone());
        }
        ops::cat(&features, -1)
    }
}
