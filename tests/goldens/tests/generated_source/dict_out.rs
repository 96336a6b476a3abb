//! `Generated`, generated from a traced graph of 6 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `body`.
    pub body: fx_nn::nn::Linear,
    /// `head_a`.
    pub head_a: fx_nn::nn::Linear,
    /// `head_b`.
    pub head_b: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            body: saved.take_submodule("body")?,
            head_a: saved.take_submodule("head_a")?,
            head_b: saved.take_submodule("head_b")?,
        })
    }
}

impl Generated {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Generated {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<IndexMap<String, Value>> {
        let body = self.body.forward(x)?;
        let relu = fx_nn::ops::relu(&body)?;  drop(body);
        let head_a = self.head_a.forward(&relu)?;
        let head_b = self.head_b.forward(&relu)?;
        Ok(IndexMap::from_iter([("a".to_string(), Value::of(head_a)), ("b".to_string(), Value::of(vec![head_b, relu])), ("n".to_string(), Value::Int(3))]))
    }
}
