//! A table of rules on GPT-2: a linear layer and the `gelu` after it become one module, and dropout
//! is removed; the numbers stay equal.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::Graph;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::pattern::{Match, Rewriter, Rule, SubgraphMatcher};
use fx_nn::prelude::*;

/// A linear layer and a gelu in one.
#[derive(Module, Clone, Debug)]
struct LinearGelu {
    linear: nn::Linear,
    approximate: String,
}

#[trace(leaf)]
impl LinearGelu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::gelu(&self.linear.forward(x)?, &self.approximate)
    }
}

/// A pattern of modules by their types: any linear layer, followed by any gelu.
fn linear_gelu() -> Result<SubgraphMatcher> {
    let mut pattern = Graph::new();
    let x = pattern.placeholder("x")?;
    let linear = pattern.call_module("linear", (x,), ())?;
    let gelu = pattern.call_module("gelu", (linear,), ())?;
    pattern.output(gelu)?;
    SubgraphMatcher::new(pattern)?
        .module_type::<nn::Linear>("linear")?
        .module_type::<nn::GELU>("gelu")
}

/// The module that a match's node calls.
fn module_of<'m, M: Module>(gm: &'m GraphModule, found: &Match, name: &str) -> Result<&'m M> {
    let node = found
        .node(name)
        .ok_or_else(|| Error::msg("the pattern has such a node"))?;
    gm.submodule_as(gm.graph().node(node)?.target())
}

/// The table.
pub fn rules() -> Result<Rewriter> {
    let fuse = Rule::computed(linear_gelu()?, |gm, found| {
        let fused = LinearGelu {
            linear: module_of::<nn::Linear>(gm, found, "linear")?.clone(),
            approximate: module_of::<nn::GELU>(gm, found, "gelu")?
                .approximate
                .clone(),
        };
        symbolic_trace(traced!(move |x: &Tensor| fused.forward(x)))
    })?;
    // Dropout does nothing in evaluation.
    let dropout = {
        let mut pattern = Graph::new();
        let x = pattern.placeholder("x")?;
        let dropout = pattern.call_module("dropout", (x,), ())?;
        pattern.output(dropout)?;
        let pattern = SubgraphMatcher::new(pattern)?;
        let pattern = pattern.module_where::<nn::Dropout>("dropout", |layer| !layer.training)?;
        Rule::new(pattern, traced!(|x: &Tensor| Ok(x.clone())))?
    };
    Ok(Rewriter::new()
        .rule(fuse.named("linear and gelu"))
        .rule(dropout.named("dropout")))
}

fn model() -> Result<Gpt2> {
    let mut model = Gpt2::new(&Config {
        vocab_size: 100,
        block_size: 32,
        n_layer: 3,
        n_head: 4,
        n_embd: 32,
        dropout: 0.1,
    })?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    Ok(model)
}

/// The model after the rules, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let mut traced = Trace::new(&model()?).graph_module()?;
    rules()?.run(&mut traced)?;
    let tokens = Tensor::from_vec((0..32).collect::<Vec<i64>>(), (1, 32))?;
    Ok((traced, vec![Value::of(tokens)]))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let model = model()?;
    let tokens = Tensor::from_vec((0..32).collect::<Vec<i64>>(), (1, 32))?;
    let expected = model.forward(&tokens)?;

    let mut traced = Trace::new(&model).graph_module()?;
    let nodes = traced.graph().len();
    let report = rules()?.run(&mut traced)?;
    print!("{report}");
    println!("nodes: {nodes} before, {} after", traced.graph().len());
    let found: Tensor = traced.forward(&tokens)?;
    println!("numbers: {}", fx_nn::allclose(&found, &expected, 0.0, 0.0)?);
    Ok(())
}
