//! Faults that are planted on purpose: the judge has to see each of them.

use fx_nn::module::ComponentExt;
use fx_nn::passes::Decompositions;
use fx_nn::prelude::*;
use fx_nn::{GraphModule, Result};

/// A planted fault, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plant(pub String);

impl Plant {
    fn is(&self, name: &str) -> bool {
        self.0 == name
    }

    /// The decompositions, one of them wrong.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn decompositions(&self) -> Result<Decompositions> {
        let core = Decompositions::core()?;
        Ok(match self.is("decomposition") {
            true => core.rule(function!(ops::sigmoid), |call| {
                let x: Tensor = call.arg("x")?;
                ops::tanh(&x)
            }),
            false => core,
        })
    }

    /// The options of an ONNX file.
    pub fn export(&self, export: fx_onnx::Export) -> fx_onnx::Export {
        export
    }

    /// Sets a compiled module to training.
    pub fn train(&self, gm: &mut GraphModule) {
        if !self.is("train") {
            gm.train();
        }
    }

    /// The graph of a path, changed.
    ///
    /// # Errors
    /// Returns an error if it cannot be changed.
    pub fn graph(&self, _path: &str, _gm: &GraphModule) -> Result<Option<GraphModule>> {
        Ok(None)
    }
}
