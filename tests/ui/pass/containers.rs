#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use fx_core::prelude::*;
use indexmap::IndexMap;
use support::{Tensor, tensor};

#[derive(Module, Clone)]
struct Relu(Tag);

#[trace]
impl Relu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.relu()
    }
}

#[derive(Module)]
struct Shift(Tensor, #[module(buffer)] Tensor);

#[trace(leaf)]
impl Shift {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (x * &self.0)? + &self.1
    }
}

#[derive(Module)]
enum Either {
    Relu(Relu),
    Shift { shift: Shift, training: bool },
    Neither,
}

#[derive(Module)]
struct Model {
    one: Box<dyn Module>,
    shared: Arc<Relu>,
    shared_dyn: Arc<dyn Module>,
    maybe: Option<Shift>,
    list: Vec<Either>,
    array: [Relu; 2],
    named: IndexMap<String, Box<dyn Module>>,
    pair: (Relu, Relu),
    kinds: Vec<Option<Box<Either>>>,
    r#type: String,
    training: bool,
    #[module(skip)]
    since: Option<std::time::Instant>,
    #[module(flatten)]
    flat: Relu,
}

#[trace]
impl Model {
    fn forward(&self, x: &Tensor, r#in: Option<&Tensor>) -> Result<Tensor> {
        let mut h: Tensor = self.one.forward(x)?;
        h = self.shared.forward(&h)?;
        h = self.shared_dyn.forward(&h)?;
        if let Some(shift) = &self.maybe
            && (!self.training || self.list.len() > 1)
        {
            h = shift.forward(&h)?;
        }
        'layers: for (i, layer) in self.list.iter().enumerate() {
            h = match layer {
                Either::Relu(relu) if i < 3 => relu.forward(&h)?,
                Either::Shift { shift, training } if !*training => shift.forward(&h)?,
                Either::Neither => break 'layers,
                _ => continue,
            };
        }
        for layer in self
            .array
            .iter()
            .chain([&self.pair.0, &self.pair.1, &self.flat])
        {
            h = layer.forward(&h)?;
        }
        for layer in self.named.values() {
            h = layer.forward(&h)?;
        }
        assert!(self.r#type == "model" && self.kinds.is_empty() && self.since.is_none());
        match r#in {
            Some(other) => h + other,
            None => Ok(h),
        }
    }
}

fn shift() -> Shift {
    Shift(tensor("w"), tensor("b"))
}

fn main() {
    let model = Model {
        one: Box::new(shift()),
        shared: Arc::new(Relu(Tag::default())),
        shared_dyn: Arc::new(shift()),
        maybe: Some(shift()),
        list: vec![
            Either::Relu(Relu(Tag::default())),
            Either::Shift {
                shift: shift(),
                training: false,
            },
            Either::Neither,
        ],
        array: [Relu(Tag::default()), Relu(Tag::default())],
        named: IndexMap::from([("last".to_owned(), Box::new(Relu(Tag::default())) as Box<dyn Module>)]),
        pair: (Relu(Tag::default()), Relu(Tag::default())),
        kinds: vec![],
        r#type: "model".to_owned(),
        training: false,
        since: None,
        flat: Relu(Tag::default()),
    };
    let gm = symbolic_trace(&model).expect("traces");
    let graph = gm.graph().to_string();
    for path in [
        "target=one]",
        "target=shared_dyn]",
        "target=maybe]",
        "target=list.1.shift]",
    ] {
        assert!(graph.contains(path), "{path} in {graph}");
    }
    assert!(model.forward(&tensor("x"), None).is_ok());
}
