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
        model.report.max_rel_err = Some(checked(&model, gm, args, export.is_half())?);
    }
    Ok(model)
}

/// How far a result of a file may be from the graph module's, relative to its largest element: a file orders sums in
/// other ways, and has its options in `float32`.
fn rounding(dtype: DType, is_half: bool) -> f64 {
    match dtype {
        // A deep model in half precision adds up some fifty steps of 1e-3.
        DType::F16 | DType::BF16 => 5e-2,
        dtype if dtype.is_floating_point() && is_half => 5e-2,
        dtype if dtype.is_floating_point() => 1e-4,
        _ => 0.0,
    }
}

/// The largest difference between the graph module and its file, relative to the largest element.
///
/// # Errors
/// Returns an error if an output differs by more than rounding does; one of random numbers is not compared.
fn checked(model: &Model, gm: &GraphModule, args: CallArgs, is_half: bool) -> Result<f64> {
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
    let errors = crate::compare::rel_errs(&own, &back)?;
    for (at, ([own, back], error)) in errors.iter().enumerate() {
        let most = rounding(*own, is_half);
        let name = model.outputs.get(at).map_or("?", String::as_str);
        if own != back && !is_half {
            return Err(Error::msg(format_args!(
                "the file does not give what the graph module does: output `{name}` is of {back}, and not of {own}"
            )));
        }
        if *error > most && !model.draws {
            return Err(Error::msg(format_args!(
                "the file does not give what the graph module does: output `{name}` differs by {error:.1e} of its largest element, and by rounding at most {most:.0e}"
            )));
        }
    }
    let errors = errors.into_iter().map(|(_, error)| error);
    Ok(errors.fold(0.0, f64::max))
}
