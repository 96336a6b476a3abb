//! `to_stablehlo`: the text of a program, and the folder that runs it.

use std::path::Path;

use fx_nn::prelude::*;

use crate::out::Export;
use crate::program::{ExportReport, Program};

/// The script that runs an exported folder.
const RUN: &str = include_str!("../run.py");

/// StableHLO of graph modules.
pub trait StableHloExt {
    /// Writes a folder: `model.mlir`, `weights.safetensors`, `calling.json`, and `run.py`, which needs jax, safetensors
    /// and numpy.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_stablehlo::{Export, StableHloExt};
    /// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
    /// let folder = std::env::temp_dir().join("fx_stablehlo_example");
    /// let report = gm.to_stablehlo(&folder, &Export::example(&Tensor::ones((1, 4))?))?;
    /// assert_eq!(report.weights, 2);
    /// assert!(folder.join("run.py").exists());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that lists every function without a rule, with node and source line; if a size is not known; or
    /// if a file cannot be written.
    fn to_stablehlo(&self, folder: impl AsRef<Path>, export: &Export) -> Result<ExportReport>;

    /// The text of the program alone.
    ///
    /// # Errors
    /// As [`to_stablehlo`](StableHloExt::to_stablehlo).
    fn to_stablehlo_text(&self, export: &Export) -> Result<String>;
}

impl StableHloExt for GraphModule {
    fn to_stablehlo(&self, folder: impl AsRef<Path>, export: &Export) -> Result<ExportReport> {
        let folder = folder.as_ref();
        let program = Program::of(self, export)?;
        let failed =
            |error: std::io::Error| Error::msg(format_args!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        std::fs::write(folder.join("model.mlir"), program.text()).map_err(failed)?;
        std::fs::write(folder.join("calling.json"), program.calling().to_string())
            .map_err(failed)?;
        std::fs::write(folder.join("run.py"), RUN).map_err(failed)?;
        program.save_weights(&folder.join("weights.safetensors"))?;
        Ok(program.report())
    }

    fn to_stablehlo_text(&self, export: &Export) -> Result<String> {
        Ok(Program::of(self, export)?.into_text())
    }
}
