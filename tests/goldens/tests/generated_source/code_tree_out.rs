//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;

/// Where a function stands.
#[derive(Module)]
pub struct Code {
    /// Tells it from others.
    pub tag: Tag,
}

#[trace]
impl Code {
    pub fn forward(&self, x: &Tensor) -> Result<(IndexMap<String, Value>, IndexMap<String, Value>)> {
        let relu = x.relu()?;
        let size = x.size(0)?;
        let exp = x.exp()?;
        let neg = relu.neg()?;
        Ok((IndexMap::from_iter([("inner".to_string(), Value::of(IndexMap::from_iter([("h".to_string(), relu.clone())]))), ("all".to_string(), Value::of((neg, vec![relu.clone(), x.clone()]))), ("size".to_string(), Value::of(size)), ("nothing".to_string(), Value::None)]), IndexMap::from_iter([("h".to_string(), Value::of(relu.clone())), ("n".to_string(), Value::Int(3)), ("pair".to_string(), Value::of((exp, Float::from(0.5)))), ("list".to_string(), Value::of(vec![Value::of(relu), Value::Str("text".into())]))])))
    }
}
