//! One run on a sample input, after which every node of ResNet-18 has the shape, type and size of
//! its result.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::ValueMeta;
use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let mut model = resnet18(1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let mut traced = symbolic_trace(&model)?;
    traced.propagate_shapes(&Tensor::ones((1, 3, 64, 64))?)?;
    let mut bytes = 0;
    for node in traced.graph() {
        let meta = node.meta::<ValueMeta>();
        let meta = meta.ok_or_else(|| Error::msg("every node has run"))?;
        println!("{:28} {meta}", node.name().to_string());
        bytes += meta.bytes();
    }
    println!("activations: {:.1} MB", bytes as f64 / 1e6);
    Ok(())
}
