//! The first node whose values differ between two modules, with its source line.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::mlp::Mlp;
use fx_nn::passes::first_divergence;
use fx_nn::prelude::*;
use fx_nn::trace_values;

fn main() -> Result<()> {
    fx_nn::manual_seed(1);
    let mut mlp = Mlp::new(16, 32, 4)?;
    mlp.eval();
    let traced = symbolic_trace(&mlp)?;
    let x = Tensor::rand((2, 16))?;

    let same = first_divergence(&traced, &traced.clone(), &x, 0.0, 0.0)?;
    println!(
        "beside its clone: {}",
        same.map_or("nothing".into(), |d| d.to_string())
    );

    // One weight of the second layer differs.
    let mut changed = traced.clone();
    let mut layer = nn::Linear::new(32, 32)?;
    layer.weight = (&mlp.fc2.weight + 1e-3)?;
    layer.bias = mlp.fc2.bias.clone();
    changed.set_submodule("fc2", layer)?;
    let part = first_divergence(&changed, &traced, &x, 1e-5, 1e-8)?;
    let part = part.ok_or_else(|| Error::msg("they differ"))?;
    println!("beside the changed one: {part}");

    for stats in trace_values(&changed, &x)? {
        println!("{stats}");
    }
    Ok(())
}
