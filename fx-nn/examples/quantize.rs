//! The linear layers of a vision transformer with int8 weights: a quarter of the memory, nearly the
//! same numbers, and the way back.
//!
//! `cargo run --release -p fx-nn --example quantize`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::vit::vit_b_16;
use fx_nn::prelude::*;

/// The largest and the mean difference, over the largest expected number.
fn errors(found: &Tensor, expected: &Tensor) -> Result<(f64, f64)> {
    let largest = expected.abs()?.amax(..)?.item()?;
    let difference = (found - expected)?.abs()?;
    let (worst, mean) = (difference.amax(..)?.item()?, difference.mean(..)?.item()?);
    Ok((worst / largest, mean / largest))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = vit_b_16(64, 1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let mut gm = symbolic_trace(&model)?;
    let x = Tensor::rand((2, 3, 64, 64))?;
    let expected: Tensor = gm.forward(&x)?;

    // One layer by itself: the error is at most half a step per weight.
    let linear: nn::Linear = gm.clone().take_submodule("heads.head")?;
    let small = nn::Int8Linear::from_linear(&linear)?;
    let off = (&small.dequantized()?.weight - &linear.weight)?
        .abs()?
        .amax(..)?
        .item()?;
    let step = small.scale.amax(..)?.item()?;
    println!("heads.head: largest step {step:.2e}, largest error of a weight {off:.2e}");

    // All of them, by their type.
    let surgery = gm.replace_modules("**", |_, linear: &nn::Linear| {
        nn::Int8Linear::from_linear(linear)
    })?;
    for replaced in surgery.replaced.iter().take(3) {
        println!(
            "{}: {} -> {}, {} -> {} bytes",
            replaced.path,
            replaced.old_type,
            replaced.new_type,
            replaced.bytes_before,
            replaced.bytes_after
        );
    }
    println!("replaced: {}", surgery.replaced.len());
    println!("bytes_before: {}", surgery.bytes_before);
    println!("bytes_after: {}", surgery.bytes_after);
    println!(
        "bytes_saved: {}",
        surgery.bytes_before - surgery.bytes_after
    );

    let found: Tensor = gm.forward(&x)?;
    let (worst, mean) = errors(&found, &expected)?;
    println!("max_rel_err: {worst:.2e}");
    println!("mean_rel_err: {mean:.2e}");
    let same = found.argmax(-1, false)?.eq(&expected.argmax(-1, false)?)?;
    println!(
        "same_class: {}",
        same.to_dtype(DType::F32)?.mean(..)?.item()? == 1.0
    );

    surgery.undo(&mut gm)?;
    let (worst, _) = errors(&gm.forward(&x)?, &expected)?;
    println!("max_rel_err_after_undo: {worst}");
    Ok(())
}
