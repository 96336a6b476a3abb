//! Tracing without tensors: a program over `Int` and `Float`, with a leaf, as a graph.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::prelude::*;

/// A leaf: its body is plain Rust and may look at the number.
#[wrap]
fn sqrt(x: Float) -> Result<Float> {
    match x.concrete() {
        Some(x) if x >= 0.0 => Ok(x.sqrt().into()),
        _ => Err(Error::msg("the square root of a negative number")),
    }
}

/// The larger root of a x² + b x + c.
#[trace]
fn larger_root(a: Float, b: Float, #[default(0.0)] c: Float) -> Result<Float> {
    let discriminant = ((b * b)? - (4.0 * (a * c)?)?)?;
    (sqrt(discriminant)? - b)? / (2 * a)?
}

/// Integers follow Python's rules: `%` and division rounded down take the divisor's sign.
#[trace]
fn clock(minutes: Int) -> Result<(Int, Int, Bool)> {
    let minute = (minutes % 60)?;
    Ok((minutes.floordiv(60)?, minute, (minute > 30)?))
}

fn main() -> Result<()> {
    let root = symbolic_trace(traced!(larger_root))?;
    println!("{}\n\n{}", root.graph(), root.code());
    let (eager, traced): (f64, f64) = (
        larger_root(1.0.into(), (-3.0).into(), 2.0.into())?
            .concrete()
            .unwrap_or(f64::NAN),
        root.forward((1.0, -3.0, 2.0))?,
    );
    println!(
        "eager {eager}, traced {traced}, without c {}",
        root.forward::<f64>((1.0, -3.0))?
    );
    if let Err(error) = root.forward::<f64>((1.0, 0.0, 1.0)) {
        println!("{error}\n");
    }

    let clock = symbolic_trace(traced!(clock))?;
    println!("{}", clock.code());
    println!("{:?}", clock.forward::<(i64, i64, bool)>(-90)?);
    Ok(())
}
