//! A quantized file that `tests/onnx_files.py` made, beside the values of ONNX Runtime.

use std::path::Path;

use fx_nn::ir::Argument;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;
use fx_onnx::Load;
use fx_quant::Integers;

/// What became of a file. Distances are in steps of the result's scale, to what ONNX Runtime gives with its optimiser or
/// without, whichever is nearer.
pub struct Judged {
    /// The file in reference form, the same in integers, and an input.
    pub reference: GraphModule,
    pub integers: GraphModule,
    pub x: Tensor,
    /// Calls in parts of integers, and parts.
    pub calls: usize,
    pub parts: usize,
    /// Parts without code, and the reasons of calls that stay in floats.
    pub failed: Vec<String>,
    pub left: Vec<String>,
    /// The distances in integers, in reference form, and as the file is read without it.
    pub in_integers: f64,
    pub in_reference: f64,
    pub as_read: f64,
    /// The distance of ONNX Runtime with its optimiser to it without.
    pub own: f64,
    /// The signal to the network in floats, of fx and of ONNX Runtime.
    pub sqnr: [f64; 2],
}

impl Judged {
    /// Whether integers, and what is read, are within two steps, or twice what ONNX Runtime has itself.
    pub fn is_right(&self) -> bool {
        let most = (2.0 * self.own).max(2.0) + 1e-3;
        self.in_integers <= most && self.as_read <= most
    }
}

fn steps(a: &Tensor, b: &Tensor, step: f64) -> Result<f64> {
    Ok((a - b)?.abs()?.amax(..)?.item()? / step)
}

/// The scale of the result, or 1 / 255 of what a result in floats spans.
fn step_of(gm: &GraphModule, y: &Tensor) -> Result<f64> {
    let output = gm.graph().output_node();
    let given = output.and_then(|output| output.all_input_nodes().next());
    match given.map(|given| given.argument("scale")) {
        Some(Ok(Argument::Float(scale))) => Ok(scale),
        _ => Ok((y.amax(..)?.item()? - y.amin(..)?.item()?) / 255.0),
    }
}

fn sqnr(exact: &Tensor, found: &Tensor) -> Result<f64> {
    let power = |x: &Tensor| -> Result<f64> { x.square()?.sum(..)?.item() };
    Ok(10.0 * (power(exact)? / power(&(exact - found)?)?).log10())
}

/// Runs a file on all paths.
pub fn judged(file: &Path) -> Result<Judged> {
    let values = Checkpoint::open(file.with_extension("safetensors"))?;
    let (x, exact) = (values.tensor("x")?, values.tensor("floats")?);
    let (fast, plain) = (values.tensor("y")?, values.tensor("plain")?);
    let reference = Load::new().reference_form().load(file)?.module;
    let mut integers = reference.clone();
    let report = integers.lower(&Integers::new())?;
    let step = step_of(&reference, &plain)?;
    let near = |gm: &GraphModule| -> Result<(f64, Tensor)> {
        let y: Tensor = gm.forward(&x)?;
        Ok((steps(&plain, &y, step)?.min(steps(&fast, &y, step)?), y))
    };
    let (in_integers, found) = near(&integers)?;
    Ok(Judged {
        in_reference: near(&reference)?.0,
        as_read: near(&fx_onnx::load(file)?.module)?.0,
        in_integers,
        own: steps(&plain, &fast, step)?,
        sqnr: [sqnr(&exact, &found)?, sqnr(&exact, &fast)?],
        calls: (report.parts.iter())
            .map(|part| part.region.nodes().len())
            .sum(),
        parts: report.parts.len(),
        failed: (report.failed.iter())
            .map(|(path, error)| format!("{path}: {error}"))
            .collect(),
        left: (report.left.iter()).map(ToString::to_string).collect(),
        reference,
        integers,
        x,
    })
}
