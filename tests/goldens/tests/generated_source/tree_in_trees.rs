//! `Generated`, generated from a traced graph of 16 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// Tells it from others.
    pub tag: Tag,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(_saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated { tag: Tag::default() })
    }
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Caches {
    /// One of its parts.
    pub k: Tensor,
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Pair {
    /// One of its parts.
    pub k: Tensor,
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Layers {
    /// One of its parts.
    pub r#type: Tensor,
    /// One of its parts.
    pub caches: Vec<Caches>,
    /// One of its parts.
    pub pair: (Pair, Tensor),
    /// One of its parts.
    pub named: IndexMap<String, Tensor>,
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// One of its parts.
    pub k: Tensor,
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
    pub fn forward(&self, layers: &Layers, more: Vec<(Tensor, Cache)>) -> Result<(IndexMap<String, Value>, Tensor)> {
        let layers_1 = &layers.r#type;
        let layers_3 = &layers.caches[1].k;
        let layers_4 = &layers.pair.0.k;
        let layers_5 = &layers.pair.1;
        let layers_6 = &layers.named["a b"];
        let more_2 = &more[0].1.k;
        let add = (layers_1 + layers_3)?;
        let add_1 = (&add + layers_4)?;  drop(add);
        let add_2 = (&add_1 + layers_5)?;  drop(add_1);
        let add_3 = (&add_2 + layers_6)?;  drop(add_2);
        let add_4 = (&add_3 + more_2)?;  drop(add_3);
        let relu = add_4.relu()?;
        let neg = add_4.neg()?;
        Ok((IndexMap::from_iter([("type".to_string(), Value::of(relu)), ("caches".to_string(), Value::of(vec![IndexMap::from_iter([("k".to_string(), add_4.clone())])])), ("pair".to_string(), Value::of((IndexMap::from_iter([("k".to_string(), layers_4.clone())]), layers_5.clone()))), ("named".to_string(), Value::of(IndexMap::from_iter([("fn".to_string(), neg)])))]), add_4))
    }
}
