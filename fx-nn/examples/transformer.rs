//! A graph rebuilt node by node: the overrides of an interpreter, run on symbolic values, produce a
//! new module.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::Function;
use fx_nn::models::mlp::Mlp;
use fx_nn::prelude::*;
use fx_nn::run::{Interpretation, Interpreter};
use fx_nn::trace::CallArgs;

/// GELU instead of ReLU, and no dropout.
struct Modern;

impl Interpreter for Modern {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == function!(ops::relu) {
            return run.call_function(function!(ops::gelu), call);
        }
        run.call_function(function, call)
    }

    fn call_module(
        &mut self,
        run: &mut Interpretation<'_>,
        path: &str,
        mut call: CallArgs,
    ) -> Result<Value> {
        let module: &dyn std::any::Any = run.fetch_module(path)?;
        if module.is::<nn::Dropout>() && !call.args.is_empty() {
            // An override may return any value: here its input.
            return Ok(call.args.swap_remove(0));
        }
        run.call_module(self, path, call)
    }
}

/// The transformed model, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let mut mlp = Mlp::new(16, 32, 4)?;
    mlp.eval();
    let modern = symbolic_trace(&mlp)?.transform(&mut Modern)?;
    Ok((modern, vec![Value::of(Tensor::rand((2, 16))?)]))
}

fn main() -> Result<()> {
    let mut mlp = Mlp::new(16, 32, 4)?;
    mlp.eval();
    let traced = symbolic_trace(&mlp)?;
    let modern = traced.transform(&mut Modern)?;
    println!("{}", modern.graph());

    let x = Tensor::rand((2, 16))?;
    let h = ops::gelu(&mlp.fc1.forward(&x)?, "none")?;
    let h = ops::tanh(&mlp.fc2.forward(&h)?)?;
    let expected = ops::log_softmax(&mlp.fc3.forward(&h)?, -1)?;
    let y: Tensor = modern.forward(&x)?;
    let error = (y - expected)?.abs()?.amax(..)?.item()?;
    println!("max_abs_err_transformed_vs_by_hand: {error}");

    // The weights are shared with the first module, and each node keeps its source line.
    let gelu = modern.graph().find_name("gelu");
    let line = gelu.and_then(|node| node.location().map(|l| l.file.ends_with("mlp.rs")));
    println!("gelu_knows_its_line: {}", line.unwrap_or_default());
    Ok(())
}
