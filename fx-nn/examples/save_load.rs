//! ResNet-18 traced, saved in one file, loaded from it without the model's source, and run: the same numbers.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::resnet::resnet18;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let mut module = resnet18(1000)?;
    module.eval();
    nn::set_requires_grad(&mut module, false)?;
    let traced = symbolic_trace(&module)?;

    let name = format!("fx_example_resnet18_{}.safetensors", std::process::id());
    let path = std::env::temp_dir().join(name);
    traced.save(&path)?;
    let size = std::fs::metadata(&path).map_err(Error::other)?.len();
    let loaded = GraphModule::load(&path);
    std::fs::remove_file(&path).map_err(Error::other)?;
    let loaded = loaded?;

    let x = Tensor::rand((1, 3, 224, 224))?;
    let before: Tensor = traced.forward(&x)?;
    let after: Tensor = loaded.forward(&x)?;
    let mut weights = 0;
    for (_, value) in loaded.state_dict() {
        let tensor = Tensor::from_value(value)?;
        weights += tensor.dims()?.iter().product::<usize>() * tensor.dtype()?.size_in_bytes();
    }
    println!("nodes: {}", loaded.graph().len());
    println!(
        "graph_equal: {}",
        loaded.graph().to_string() == traced.graph().to_string()
    );
    println!("file: {size} bytes, of which weights: {weights}");
    println!(
        "max_abs_err_loaded_vs_traced: {}",
        fx_nn::allclose(&after, &before, 0.0, 0.0)?.max_abs
    );
    Ok(())
}
