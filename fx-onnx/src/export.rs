//! `to_onnx`: a file is written, and read back if it is to be checked.

use std::path::Path;

use bytes::Bytes;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;

use crate::out::{self, Export, ExportReport, Model};

/// ONNX files of graph modules.
pub trait OnnxExt {
    /// Writes an ONNX file.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_onnx::{Export, OnnxExt};
    /// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
    /// let path = std::env::temp_dir().join("fx_onnx_example.onnx");
    /// let export = Export::example(&Tensor::ones((1, 4))?).dynamic("batch", [("x", 0)]);
    /// let report = gm.to_onnx(&path, &export)?;
    /// assert_eq!(report.nodes, 2); // Gemm, Relu
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that lists every function without a rule, with node and source line; if a shape cannot be
    /// inferred; if the weights are 2 GB or more and inline; or if the file cannot be written.
    fn to_onnx(&self, path: impl AsRef<Path>, export: &Export) -> Result<ExportReport>;

    /// The same as bytes, with the weights inside.
    ///
    /// # Errors
    /// As [`to_onnx`](OnnxExt::to_onnx), and if the options ask for weights in a file of their own.
    fn to_onnx_bytes(&self, export: &Export) -> Result<(Vec<u8>, ExportReport)>;
}

impl OnnxExt for GraphModule {
    fn to_onnx(&self, path: impl AsRef<Path>, export: &Export) -> Result<ExportReport> {
        let mut model = made(self, export)?;
        out::to_file(&mut model, path.as_ref(), export)?;
        Ok(model.report)
    }

    fn to_onnx_bytes(&self, export: &Export) -> Result<(Vec<u8>, ExportReport)> {
        let model = made(self, export)?;
        let bytes = out::to_bytes(&model, export)?;
        Ok((bytes, model.report))
    }
}

/// The model, compared with the graph module if that is asked for.
fn made(gm: &GraphModule, export: &Export) -> Result<Model> {
    let mut model = out::model(gm, export)?;
    if export.is_checked() {
        let Some(args) = export.example_args() else {
            return Err(Error::msg(
                "`checked` needs an example with data: use `Export::example`",
            ));
        };
        model.report.max_rel_err = Some(checked(&model, gm, args)?);
    }
    Ok(model)
}

/// The largest difference between the graph module and its file, relative to the largest element.
fn checked(model: &Model, gm: &GraphModule, args: CallArgs) -> Result<f64> {
    let read = crate::load::from_bytes(&Bytes::from(out::inline(model)?))?;
    let flat = gm.process_inputs(args.clone())?;
    let flat = flat
        .into_iter()
        .filter(|value| !matches!(value, Value::None))
        .collect();
    let call = CallArgs {
        args: flat,
        kwargs: Vec::new(),
    };
    let (own, back): (Value, Value) = (gm.forward(args)?, read.module.forward(call)?);
    crate::compare::max_rel_err(&own, &back)
}
