//! A module, its graph, its Rust source, its table, and the same numbers from both.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

#[derive(Module, Clone, Debug)]
struct MyModule {
    param: Tensor,
    linear: nn::Linear,
}

#[trace]
impl MyModule {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.forward(&(x + &self.param)?)?.clamp(0.0, 1.0)
    }
}

fn module() -> Result<MyModule> {
    Ok(MyModule {
        param: Tensor::rand((3, 4))?.into_parameter()?,
        linear: nn::Linear::new(4, 5)?,
    })
}

/// The traced module, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::rand((3, 4))?;
    Ok((symbolic_trace(&module()?)?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let module = module()?;
    let x = Tensor::rand((3, 4))?;
    let eager = module.forward(&x)?;

    let traced = symbolic_trace(&module)?;
    println!("{}\n", traced.graph());
    println!("{}", traced.code());
    traced.graph().print_tabular();

    let again: Tensor = traced.forward(&x)?;
    let error = fx_nn::allclose(&again, &eager, 0.0, 0.0)?.max_abs;
    println!("\nmax_abs_err_eager_vs_traced: {error}");
    Ok(())
}
