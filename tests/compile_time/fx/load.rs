//! A module that is saved, loaded and run: what the load of one file adds to a program.

use fx_nn::prelude::*;

/// A layer of this program, which the file names.
#[derive(Module)]
struct Gain {
    by: f64,
}

#[trace(leaf)]
impl Gain {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * self.by
    }
}

#[derive(Module)]
struct Net {
    linear: nn::Linear,
    gain: Gain,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.gain.forward(&self.linear.forward(x)?.relu()?)
    }
}

pub fn saved_and_loaded() -> Result<()> {
    let net = Net {
        linear: nn::Linear::new(4, 3)?,
        gain: Gain { by: 2.5 },
    };
    let path = std::env::temp_dir().join(format!("four-models-{}.fx", std::process::id()));
    symbolic_trace(&net)?.save(&path)?;
    let loaded = GraphModule::load(&path)?;
    // What is left behind is a file of a temporary folder.
    let _ = std::fs::remove_file(&path);
    let x = Tensor::from_vec(vec![1f32, -2.0, 3.0, -4.0], (1, 4))?;
    super::report("loaded", &net.forward(&x)?, &loaded.forward(&x)?)
}
