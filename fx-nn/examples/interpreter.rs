//! A graph run node by node: each step observed, some replaced, some values given instead of
//! computed.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::{Function, NodeRef};
use fx_nn::prelude::*;
use fx_nn::run::{Interpretation, Interpreter};
use fx_nn::trace::CallArgs;

#[trace]
fn sigm_neg(x: &Tensor) -> Result<Tensor> {
    ops::sigmoid(x)?.neg()
}

/// Swaps the function `sigmoid` and the method `neg`.
struct NegSigmSwap;

impl Interpreter for NegSigmSwap {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == function!(ops::sigmoid) {
            return run.call_function(function!(ops::neg), call);
        }
        run.call_function(function, call)
    }

    fn call_method(
        &mut self,
        run: &mut Interpretation<'_>,
        name: &str,
        call: CallArgs,
    ) -> Result<Value> {
        run.call_method(if name == "neg" { "sigmoid" } else { name }, call)
    }
}

/// Prints the result of each node.
struct Watch;

impl Interpreter for Watch {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let value = run.run_node(self, node)?;
        println!("%{}: {}", node.name(), value.describe());
        Ok(value)
    }
}

fn main() -> Result<()> {
    let gm = symbolic_trace(traced!(sigm_neg))?;
    let x = Tensor::from_vec(vec![-1.0f32, 0.0, 2.0], 3)?;

    let swapped: Tensor = gm.interpret(&mut NegSigmSwap, &x)?;
    let expected = ops::sigmoid(&ops::neg(&x)?)?;
    let error = (swapped - expected)?.abs()?.amax(..)?.item()?;
    println!("max_abs_err_swapped: {error}");

    gm.interpret::<Tensor>(&mut Watch, &x)?;

    // Partial evaluation: with the sigmoid's value given, the input is not needed.
    let sigmoid = gm.graph().find_name("sigmoid").map(|node| node.id());
    let sigmoid = sigmoid.ok_or_else(|| Error::msg("the graph has a sigmoid"))?;
    let given = Value::object(Tensor::ones(3)?);
    let mut run = gm.interpretation().with_value(sigmoid, given);
    let result = run.run(&mut fx_nn::run::PlainInterpreter, vec![Value::None])?;
    println!(
        "from_the_middle: {:?}",
        Tensor::from_value(result)?.to_vec()?
    );
    Ok(())
}
