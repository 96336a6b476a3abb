//! Which calls become one node and which are traced through: by default, by `#[trace(leaf)]`, by a
//! tracer.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::module::Module;
use fx_core::trace::NoLeaves;
use fx_nn::ir::Graph;
use fx_nn::prelude::*;
use fx_nn::trace::{TraceContext, Tracer};

/// Traced through by default, as models are.
#[derive(Module)]
struct Mlp {
    up: nn::Linear,
    act: nn::ReLU,
    down: nn::Linear,
}

#[trace]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down.forward(&self.act.forward(&self.up.forward(x)?)?)
    }
}

/// A leaf because it is declared as one.
#[derive(Module)]
struct Gate {
    weight: Tensor,
}

#[trace(leaf)]
impl Gate {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * self.weight.sigmoid()?
    }
}

#[derive(Module)]
struct Model {
    mlp: Mlp,
    gate: Gate,
}

#[trace]
impl Model {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.gate.forward(&self.mlp.forward(x)?)
    }
}

/// The module at one path is a leaf.
struct PathLeaf(&'static str);

impl Tracer for PathLeaf {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, path: &str) -> bool {
        path == self.0 || module.is_leaf()
    }
}

fn show(what: &str, graph: &Graph) {
    let nodes: Vec<String> = graph
        .nodes()
        .map(|node| format!("{}({})", node.opcode().name(), node.target()))
        .collect();
    println!("{what}:\n  {}\n", nodes.join("\n  "));
}

fn model() -> Result<Model> {
    Ok(Model {
        mlp: Mlp {
            up: nn::Linear::new(4, 8)?,
            act: nn::ReLU::new(),
            down: nn::Linear::new(8, 4)?,
        },
        gate: Gate {
            weight: Tensor::rand(4)?.into_parameter()?,
        },
    })
}

/// The model without leaves, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let traced = Trace::new(&model()?).tracer(NoLeaves).graph_module()?;
    Ok((traced, vec![Value::of(Tensor::rand((2, 4))?)]))
}

fn main() -> Result<()> {
    let model = model()?;
    show("by default", &Trace::new(&model).graph()?);
    show(
        "mlp is a leaf",
        &Trace::new(&model).tracer(PathLeaf("mlp")).graph()?,
    );
    show("no leaves", &Trace::new(&model).tracer(NoLeaves).graph()?);

    let x = Tensor::rand((2, 4))?;
    let eager = model.forward(&x)?.to_vec()?;
    for traced in [
        Trace::new(&model).tracer(PathLeaf("mlp")).graph_module()?,
        Trace::new(&model).tracer(NoLeaves).graph_module()?,
    ] {
        assert_eq!(traced.forward::<Tensor>(&x)?.to_vec()?, eager);
    }
    println!("all three give the same numbers");
    Ok(())
}
