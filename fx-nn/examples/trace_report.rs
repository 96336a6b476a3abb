//! What a trace froze: constants, specialised arguments, training flags, layers that do not belong to the model.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

#[derive(Module)]
struct Model {
    linear: nn::Linear,
    dropout: nn::Dropout,
    training: bool,
}

#[trace]
impl Model {
    fn forward(&self, x: &Tensor, scale: f64) -> Result<Tensor> {
        // Random numbers are not constant: the call is recorded, and each run draws its own.
        let mut h = (self.linear.forward(x)? + Tensor::rand(4)?)?;
        // A plain bool: the graph has one branch.
        if self.training {
            h = self.dropout.forward(&h)?;
        }
        // Created by each eager call, but only once by the trace.
        let ones = Tensor::ones(4)?;
        (h * scale)? + ones
    }
}

fn main() -> Result<()> {
    let model = Model {
        linear: nn::Linear::new(4, 4)?,
        dropout: nn::Dropout::new(0.1)?,
        training: true,
    };
    let report = Trace::new(&model).concrete("scale", 0.5).report()?;
    println!("{}\n", Trace::new(&model).concrete("scale", 0.5).graph()?);
    print!("{report}");
    println!(
        "\n{} things are fixed in this graph",
        report.entries().len()
    );
    Ok(())
}
