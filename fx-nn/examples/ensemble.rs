//! An ensemble as one model: the parameters of several networks along a new dim, one call for all of them, trained
//! together.
//!
//! `cargo run --release -p fx-nn --example ensemble`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::func::{Transform, functional_call, stack_module_state, value_and_grad, vmap};
use fx_nn::prelude::*;
use fx_nn::trace::TracedFn;
use fx_nn::{IndexMap, tree};

const MEMBERS: usize = 8;
const STEPS: usize = 1000;

type Parameters = IndexMap<String, Tensor>;

fn net() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new()
        .push(nn::Linear::new(1, 32)?)
        .push(nn::Tanh::new())
        .push(nn::Linear::new(32, 1)?))
}

fn loss(net: nn::Sequential) -> TracedFn {
    traced!(move |parameters: Parameters, x: &Tensor, y: &Tensor| {
        let found: Tensor = functional_call(&net, &parameters, x)?;
        ops::mse_loss(&found, y, "mean")
    })
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let nets = (0..MEMBERS).map(|_| net()).collect::<Result<Vec<_>>>()?;
    let (mut parameters, _) = stack_module_state(&nets.iter().collect::<Vec<_>>())?;
    let base = nets[0].clone();

    // A sine, of which a gap in the middle is never seen.
    let x = (Tensor::rand((64, 1))? * 2.0)?;
    let x = (&x + x.gt(1.0)?.to_dtype(DType::F32)?)?;
    let y = (&x * 2.0)?.sin()?;

    let step = vmap(&value_and_grad(loss(base.clone()))).in_axes(tree!((0, None, None)));
    let mut last = Vec::new();
    for _ in 0..STEPS {
        let (losses, grads): (Tensor, Parameters) = step.call((parameters.clone(), &x, &y))?;
        for (path, grad) in grads {
            let after = (&parameters[&path] - (grad * 0.05)?)?;
            parameters.insert(path, after);
        }
        last = losses.to_vec()?;
    }
    println!(
        "losses of the members: {}",
        last.iter()
            .map(|x| format!("{x:.4}"))
            .collect::<Vec<_>>()
            .join(" ")
    );

    // Where nothing was seen, the members differ.
    let places = [0.5f32, 1.5, 2.5];
    let points = Tensor::from_vec(places.to_vec(), (3, 1))?;
    let member = traced!(move |parameters: Parameters, x: &Tensor| {
        functional_call::<Tensor>(&base, &parameters, x)
    });
    let found: Tensor = vmap(member)
        .in_axes(tree!((0, None)))
        .call((parameters, &points))?;
    let spread = found.std(0, true)?.to_vec()?;
    for (place, spread) in places.iter().zip(&spread) {
        println!("at {place}: members differ by {spread:.4}");
    }
    Ok(())
}
