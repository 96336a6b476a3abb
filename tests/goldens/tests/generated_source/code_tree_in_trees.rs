//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;
use crate::emitted::{Cache, Layers};

/// Where a function stands.
#[derive(Module)]
pub struct Code {
    /// Tells it from others.
    pub tag: Tag,
}

#[trace]
impl Code {
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
