//! Decomposition by rules in plain Rust: `relu` becomes `(x > 0) * x`, in the graph of a whole module.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::{Function, Op};
use fx_nn::operator;
use fx_nn::prelude::*;
use fx_nn::run::{Interpretation, Interpreter};
use fx_nn::trace::CallArgs;

#[derive(Module, Clone, Debug)]
struct ReluNet {
    linear: nn::Linear,
}

#[trace]
impl ReluNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = ops::relu(&self.linear.forward(x)?)?;
        ops::relu(&(y - 1.0)?)? + x
    }
}

/// The rule: an ordinary function of tensors. On symbolic ones it is recorded.
#[trace]
fn relu_decomposition(x: &Tensor) -> Result<Tensor> {
    (x > 0)? * x
}

struct Decompose;

impl Interpreter for Decompose {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == function!(ops::relu)
            && let [x] = call.args.as_slice()
        {
            let y = relu_decomposition(&Tensor::from_value(x.clone())?)?;
            return Ok(Value::of(y));
        }
        run.call_function(function, call)
    }
}

fn traced() -> Result<GraphModule> {
    symbolic_trace(&ReluNet {
        linear: nn::Linear::new(4, 4)?,
    })
}

/// The decomposed module, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::rand((2, 4))?;
    Ok((traced()?.transform(&mut Decompose)?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let traced = traced()?;
    let decomposed = traced.transform(&mut Decompose)?;
    println!("{}", decomposed.graph());
    let comparisons = decomposed
        .graph()
        .find_nodes(&Op::CallFunction(operator::gt));
    println!("comparisons: {}", comparisons.len());

    let x = Tensor::rand((2, 4))?;
    let (a, b): (Tensor, Tensor) = (traced.forward(&x)?, decomposed.forward(&x)?);
    println!(
        "max_abs_err_decomposed: {}",
        (a - b)?.abs()?.amax(..)?.item()?
    );
    Ok(())
}
