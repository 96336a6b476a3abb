//! Branches, loops and an assertion from plain Rust: their graph, its source, and the same numbers
//! eagerly, traced, interpreted, traced again, from the source and loaded, on inputs that take every
//! way.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;

/// What `code()` writes for [`Gate`], as a module of its own.
#[rustfmt::skip]
mod written;

#[derive(Module)]
struct Gate {
    scale: Tensor,
    linear: nn::Linear,
    double: bool,
}

#[trace(control_flow)]
impl Gate {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let total = x.sum(..)?;
        if total.isnan()? {
            return Err(Error::msg("the input is not a number")); // an assertion of the graph
        }
        let mut h = x.clone();
        if total > 0.0 {
            h = (&h * &self.scale)?.relu()?;
        } else {
            h = (&h - 1.0)?;
        }
        if self.double {
            h = (&h * 2.0)?; // Rust decides about a plain `bool`, as ever
        }
        let mut steps = Int::from(0);
        while h.abs()?.amax(..)? > 4.0 {
            h = (&h / 2.0)?;
            steps = (steps + 1)?;
            if steps == 6 {
                break;
            }
        }
        self.linear.forward(&h)? + steps
    }
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let gate = Gate {
        scale: Tensor::full(3, 1.5, DType::F32)?,
        linear: nn::Linear::new(3, 2)?,
        double: true,
    };
    let gm = symbolic_trace(&gate)?;
    println!("{}\n\n{}", gm.graph(), gm.code());

    let words = |text: &str| text.split_whitespace().collect::<String>();
    if !words(include_str!("written.rs")).contains(&words(&gm.code())) {
        return Err(Error::msg("written.rs is not what `code()` writes"));
    }
    let written = written::Gate {
        scale: gate.scale.clone(),
        linear: gate.linear.clone(),
    };
    let again = symbolic_trace(&gm)?;
    let file = std::env::temp_dir().join(format!("control_flow_{}.fx", std::process::id()));
    gm.save(&file)?;
    let loaded = GraphModule::load(&file)?;
    std::fs::remove_file(&file).map_err(Error::msg)?;

    let mut worst: f64 = 0.0;
    for (what, number) in [
        ("above zero, no turn", 0.5),
        ("above zero, two turns", 5.0),
        ("below zero, no turn", -0.5),
        ("below zero, one turn", -2.0),
        ("the loop breaks", 1e6),
    ] {
        let x = Tensor::full((2, 3), number, DType::F32)?;
        let eager = gate.forward(&x)?.to_vec()?;
        let interpreted = gm
            .interpretation()
            .run(&mut PlainInterpreter, vec![Value::of(x.clone())])?;
        let found: [Tensor; 6] = [
            gm.forward(&x)?,
            Tensor::from_value(interpreted)?,
            again.forward(&x)?,
            written.forward(&x)?,
            symbolic_trace(&written)?.forward(&x)?,
            loaded.forward(&x)?,
        ];
        for found in &found {
            let pairs = eager.iter().zip(found.to_vec()?);
            worst = pairs.map(|(a, b)| (a - b).abs()).fold(worst, f64::max);
        }
        println!("{what}: {eager:.4?}");
    }
    let x = Tensor::full((2, 3), f64::NAN, DType::F32)?;
    let eager = gate.forward(&x).expect_err("it is refused");
    let graph = gm.forward::<Tensor>(&x).expect_err("it is refused");
    println!("eager: {eager}\ngraph: {graph}");
    println!("max_abs_err_vs_eager: {worst}");
    Ok(())
}
