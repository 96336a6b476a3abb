//! A table of ResNet-18's modules: the output, parameters and multiply-adds of each.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let mut model = resnet18(1000)?;
    model.eval();
    let summary = fx_nn::summary(&model, &Tensor::rand((1, 3, 224, 224))?)?;
    print!("{summary}");
    Ok(())
}
