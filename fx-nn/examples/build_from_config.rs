//! A whole model built in code from a configuration, without tracing: nodes and the modules that they name.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::ir::NewNode;
use fx_core::module::Attributes;
use fx_nn::ir::{Graph, Op};
use fx_nn::prelude::*;

/// Widths of a multi-layer perceptron, and whether each layer but the last adds its input to its output.
struct Config {
    widths: Vec<usize>,
    residual: bool,
}

fn build(config: &Config) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut attributes = Attributes::default();
    let mut x = graph.placeholder("x")?;
    let last = config.widths.len() - 2;
    for (i, pair) in config.widths.windows(2).enumerate() {
        let path = format!("layers.{i}");
        attributes.modules.insert(
            path.as_str().into(),
            Box::new(nn::Linear::new(pair[0], pair[1])?),
        );
        let mut h = graph.call_module(&path, (x,), ())?;
        if i < last {
            let relu = Op::CallFunction(function!(fx_nn::ops::relu));
            h = graph.add(NewNode::new(relu).args((h,)).name(&format!("act_{i}")))?;
            if config.residual && pair[0] == pair[1] {
                h = graph.call_function(fx_core::operator::add, (h, x), ())?;
            }
        }
        x = h;
    }
    graph.output(x)?;
    GraphModule::new(attributes, graph, "Mlp")
}

fn main() -> Result<()> {
    let model = build(&Config {
        widths: vec![16, 32, 32, 4],
        residual: true,
    })?;
    model.lint()?;
    println!("{}\n", model.graph());
    println!("{}", model.code());
    let y: Tensor = model.forward(&Tensor::rand((2, 16))?)?;
    println!("parameters: {}", model.named_parameters().len());
    println!("output: {:?}", y.dims()?);
    Ok(())
}
