//! Leaf functions: code that tracing must not look into is one node, with keywords, defaults,
//! effects and a method form.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

/// The body is plain Rust: it may depend on the numbers.
#[wrap]
fn clip_norm(
    x: &Tensor,
    #[kw]
    #[default(1.0)]
    max: f64,
) -> Result<Tensor> {
    let norm = x.to_vec()?.iter().map(|v| v * v).sum::<f64>().sqrt();
    if norm > max {
        x * (max / norm)
    } else {
        Ok(x.clone())
    }
}

/// Two results: one node and two `getitem`s.
#[wrap]
fn split_half(x: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok(((x * 0.5)?, (x * 0.5)?))
}

/// Draws new numbers in each run: recorded whatever its arguments, and never merged or folded.
#[wrap(always, random)]
fn noise(n: usize) -> Result<Tensor> {
    Tensor::rand(n)
}

/// Has an effect: kept by dead code elimination though nobody uses its result.
#[wrap(impure)]
fn log(x: &Tensor) -> Result<()> {
    println!("log: {:?}", x.to_vec()?);
    Ok(())
}

#[trace]
fn forward(x: &Tensor) -> Result<Tensor> {
    let clipped = clip_norm(x, 2.0)?;
    let (a, b) = split_half(&clipped)?;
    log(&a)?;
    x.exp()?;
    (a + b)? + noise(3)?
}

/// The program, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::from_vec(vec![3.0f32, 4.0, 0.0], 3)?;
    Ok((symbolic_trace(traced!(forward))?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let mut gm = symbolic_trace(traced!(forward))?;
    println!("{}\n", gm.graph());
    let erased = gm.eliminate_dead_code()?;
    println!(
        "dead code: {erased} node erased (`exp`); `log` stays\n\n{}",
        gm.code()
    );
    let x = Tensor::from_vec(vec![3.0f32, 4.0, 0.0], 3)?;
    let (one, other): (Tensor, Tensor) = (gm.forward(&x)?, gm.forward(&x)?);
    println!(
        "two runs differ by their noise: {}",
        one.to_vec()? != other.to_vec()?
    );
    Ok(())
}
