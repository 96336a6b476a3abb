//! Private training (DP-SGD): the gradient of each example, clipped to a norm, summed, with noise; as one graph.
//!
//! `cargo run --release -p fx-nn --example dp_sgd`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::func::{Transform, functional_call, grad, vmap};
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::trace::{PH, Trace, TracedFn};
use fx_nn::value::IntoValue;
use fx_nn::{IndexMap, tree};

const EXAMPLES: usize = 32;
const LARGEST: f64 = 1.0;
const NOISE: f64 = 0.1;
const STEPS: usize = 300;

type Parameters = IndexMap<String, Tensor>;

fn net() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new()
        .push(nn::Linear::new(2, 16)?)
        .push(nn::Tanh::new())
        .push(nn::Linear::new(16, 2)?))
}

/// The loss of one example.
fn loss(net: nn::Sequential) -> TracedFn {
    traced!(move |parameters: Parameters, x: &Tensor, y: &Tensor| {
        let scores: Tensor = functional_call(&net, &parameters, &x.unsqueeze(0)?)?;
        ops::cross_entropy(&scores, &y.unsqueeze(0)?, None, -100, "mean", 0.0)
    })
}

/// The gradients of a batch, each example's clipped, and the norms before.
fn clipped(net: nn::Sequential) -> TracedFn {
    let each = vmap(&grad(loss(net))).in_axes(tree!((None, 0, 0)));
    traced!(move |parameters: Parameters, x: &Tensor, y: &Tensor| {
        let grads: Parameters = each.call((parameters, x, y))?;
        let mut squares = Tensor::zeros(EXAMPLES)?;
        for grad in grads.values() {
            squares = (squares + grad.flatten(1, -1)?.square()?.sum(1)?)?;
        }
        let norms = squares.sqrt()?;
        let factors = (LARGEST / (&norms + 1e-6)?)?.clamp(None, Some(1.0))?;
        let mut sums = Parameters::new();
        for (path, grad) in grads {
            // The sum over examples of factor · gradient, without the product of each.
            let rows = grad.flatten(1, -1)?;
            let sum = factors.unsqueeze(0)?.matmul(&rows)?;
            let dims = grad.dims()?[1..].to_vec();
            sums.insert(path, sum.reshape(dims)?);
        }
        Ok((sums, norms))
    })
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let net = net()?;
    let mut parameters: Parameters = net
        .named_parameters()
        .into_iter()
        .map(|(path, value)| Ok((path, Tensor::from_value(value)?.detach()?)))
        .collect::<Result<_>>()?;
    // The structure of the parameters, each of them an input.
    let places = parameters
        .keys()
        .map(|path| (path.clone(), PH.into_value()));
    let structure: IndexMap<String, Value> = places.collect();
    let each = parameters
        .iter()
        .map(|(path, x)| (path.as_str(), Spec::of(x)));
    let specs = [
        Spec::dict(each),
        spec![EXAMPLES, 2; F32],
        spec![EXAMPLES; I64],
    ];
    let step = Trace::new(clipped(net.clone()))
        .concrete("parameters", structure)
        .inputs(specs)
        .graph_module()?;
    println!("the step is one graph of {} nodes", step.graph().len());

    // Two classes: inside of a circle, and outside.
    let mut right = 0.0;
    for at in 0..STEPS {
        let x = Tensor::randn((EXAMPLES, 2))?;
        let y = x.square()?.sum(1)?.gt(1.4)?.to_dtype(DType::I64)?;
        let (sums, norms): (Parameters, Tensor) = step.forward((parameters.clone(), &x, &y))?;
        let scores: Tensor = functional_call(&net, &parameters, &x)?;
        right = scores
            .argmax(1, false)?
            .eq(&y)?
            .to_dtype(DType::F32)?
            .mean(..)?
            .item()?;
        if at % 100 == 0 {
            println!(
                "step {at}: norms up to {:.2}, right {right:.2}",
                norms.amax(..)?.item()?
            );
        }
        for (path, sum) in sums {
            let noise = (Tensor::randn(sum.dims()?)? * (NOISE * LARGEST))?;
            let change = (&(&sum + &noise)? * (2.0 / EXAMPLES as f64))?;
            let before = &parameters[&path];
            let after = (before - change)?;
            parameters.insert(path, after);
        }
    }
    println!("right at the end: {right:.2}");
    Ok(())
}
