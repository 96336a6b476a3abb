//! Custom tracers: one that refuses an operation, and one that records each node's place in the
//! model.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::ir::{Args, Kwargs, Meta, MetaPolicy};
use fx_nn::ir::Op;
use fx_nn::prelude::*;
use fx_nn::trace::{TraceContext, Tracer};
use fx_nn::value::NodeId;

#[derive(Module)]
struct Block {
    linear: nn::Linear,
    act: nn::ReLU,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.act.forward(&self.linear.forward(x)?)? + x
    }
}

#[derive(Module)]
struct Model {
    blocks: Vec<Block>,
    head: nn::Linear,
}

#[trace]
impl Model {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for block in &self.blocks {
            h = block.forward(&h)?;
        }
        self.head.forward(&h)?.exp()
    }
}

/// Refuses operations that the target of an export does not have.
struct ExportTracer;

impl Tracer for ExportTracer {
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        if op == Op::CallMethod("exp".into()) {
            return Err(Error::msg("the target has no `exp`: use `softmax`"));
        }
        cx.insert(op, args, kwargs, name)
    }
}

/// The number of modules around a node.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Depth(usize);

impl Meta for Depth {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

/// Records the depth on every node.
struct DepthTracer;

impl Tracer for DepthTracer {
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        let id = cx.insert(op, args, kwargs, name)?;
        let mut graph = cx.graph_mut()?;
        let depth = graph.node(id)?.module_stack().count();
        graph.node_mut(id)?.set_meta(Depth(depth));
        Ok(id)
    }
}

fn model() -> Result<Model> {
    let block = || -> Result<Block> {
        Ok(Block {
            linear: nn::Linear::new(8, 8)?,
            act: nn::ReLU::new(),
        })
    };
    Ok(Model {
        blocks: vec![block()?, block()?],
        head: nn::Linear::new(8, 2)?,
    })
}

/// The model traced by default, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::rand((3, 8))?;
    Ok((symbolic_trace(&model()?)?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let model = model()?;
    match Trace::new(&model).tracer(ExportTracer).graph() {
        Ok(_) => println!("accepted"),
        Err(error) => println!("refused: {error}\n"),
    }

    let graph = Trace::new(&model).tracer(DepthTracer).graph()?;
    for node in graph.nodes() {
        let depth = node.meta::<Depth>().map_or(0, |d| d.0);
        println!("{:indent$}{}", "", node.name(), indent = depth * 2);
    }
    Ok(())
}
