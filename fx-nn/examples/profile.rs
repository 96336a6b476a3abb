//! The cost of each node of ResNet-18: a table, and a trace file for Perfetto or
//! `chrome://tracing`.
//!
//! `cargo run --release -p fx-nn --example profile [TRACE.json]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "target/profile.json".into());
    let mut model = resnet18(1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let traced = symbolic_trace(&model)?;
    let profile = traced.profile(5, &Tensor::rand((1, 3, 64, 64))?)?;
    print!("{profile}");
    std::fs::write(&path, profile.to_chrome_trace()).map_err(Error::other)?;
    println!("trace: {path}");
    Ok(())
}
