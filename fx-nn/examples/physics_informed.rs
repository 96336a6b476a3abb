//! A physics-informed network: it learns a solution of u'' + u = 0 with u(0) = 0 and u'(0) = 1, which is the sine, from
//! second derivatives by its input; the training step differentiates them again.
//!
//! `cargo run --release -p fx-nn --example physics_informed`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::func::{Transform, functional_call, grad, value_and_grad, vmap};
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::{IndexMap, tree};

const POINTS: usize = 64;
const STEPS: usize = 1500;

type Parameters = IndexMap<String, Tensor>;

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let net = nn::Sequential::new()
        .push(nn::Linear::new(1, 24)?)
        .push(nn::Tanh::new())
        .push(nn::Linear::new(24, 24)?)
        .push(nn::Tanh::new())
        .push(nn::Linear::new(24, 1)?);
    let mut parameters = Parameters::new();
    for (path, value) in net.named_parameters() {
        parameters.insert(path, Tensor::from_value(value)?.detach()?);
    }

    // The solution at one time, and its derivatives.
    let u = traced!(move |time: &Tensor, parameters: Parameters| {
        let found: Tensor = functional_call(&net, &parameters, &time.reshape((1, 1))?)?;
        found.reshape(())
    });
    let both = value_and_grad(u.clone());
    let second = grad(&grad(u));
    let of_both = both.clone();
    let residual = traced!(move |time: &Tensor, parameters: Parameters| {
        let (value, _): (Tensor, Tensor) = of_both.call((time, parameters.clone()))?;
        let curvature: Tensor = second.call((time, parameters))?;
        curvature + value
    });
    let residuals = vmap(residual).in_axes(tree!((0, None)));
    let at_start = both.clone();
    let loss = traced!(move |parameters: Parameters, times: &Tensor| {
        let inside: Tensor = residuals.call((times, parameters.clone()))?;
        let start = Tensor::zeros(())?;
        let (value, slope): (Tensor, Tensor) = at_start.call((&start, parameters))?;
        let outside = (value.square()? + (slope - 1.0)?.square()?)?;
        inside.square()?.mean(..)? + outside
    });
    let inputs: Vec<Spec> = vec![
        Spec::dict(
            parameters
                .iter()
                .map(|(path, x)| (path.as_str(), Spec::of(x))),
        ),
        spec![POINTS; F32],
    ];
    let step = value_and_grad(loss).graph_module(&inputs)?;
    println!(
        "the step, with third derivatives inside, is one graph of {} nodes",
        step.graph().len()
    );

    let mut averages: IndexMap<String, (Tensor, Tensor)> = IndexMap::new();
    let mut last = 0.0;
    for at in 1..=STEPS {
        let times = (Tensor::rand(POINTS)? * std::f64::consts::PI)?;
        let (found, grads): (Tensor, Parameters) = step.forward((parameters.clone(), &times))?;
        last = found.item()?;
        for (path, grad) in grads {
            // Adam, by hand.
            let zeros = grad.zeros_like()?;
            let (mean, square) = averages
                .get(&path)
                .cloned()
                .unwrap_or((zeros.clone(), zeros));
            let mean = ((mean * 0.9)? + (&grad * 0.1)?)?;
            let square = ((square * 0.999)? + (grad.square()? * 0.001)?)?;
            let (a, b) = (1.0 - 0.9f64.powi(at as i32), 1.0 - 0.999f64.powi(at as i32));
            let change = ((&mean / a)? / ((&square / b)?.sqrt()? + 1e-8)?)?;
            let after = (&parameters[&path] - (change * 3e-3)?)?;
            parameters.insert(path.clone(), after);
            averages.insert(path, (mean, square));
        }
    }
    println!("loss after {STEPS} steps: {last:.1e}");
    let times: Vec<f32> = (0..7).map(|at| at as f32 * 0.5).collect();
    let mut worst = 0.0f64;
    for time in times {
        let at = Tensor::from_vec(vec![time], ())?;
        let (found, _): (Tensor, Tensor) = both.call((&at, parameters.clone()))?;
        worst = worst.max((found.item()? - f64::from(time).sin()).abs());
    }
    println!("the largest difference from the sine: {worst:.3}");
    Ok(())
}
