//! Files as graph modules, by what they are: those of `GraphModule::save`, ONNX files, and programs of torch.export.

use std::path::Path;

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_onnx::Limits;

/// Whether a path is that of an ONNX file.
pub fn is_onnx(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "onnx")
}

/// Whether a path is that of a program of torch.export.
pub fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pt2")
}

/// Whether a file can be read, whatever is in it.
///
/// # Errors
/// Returns an error if there is no such file, it cannot be opened, or it is a folder, a device or a pipe.
pub fn opened(path: &Path) -> Result<()> {
    fx_nn::__private::opened(path).map(drop).map_err(Error::msg)
}

/// The graph module of a file.
pub fn open(path: &Path) -> Result<GraphModule> {
    if is_onnx(path) {
        return Ok(fx_onnx::load(path)?.module);
    }
    match is_program(path) {
        true => fx_torch::load(path),
        false => GraphModule::load(path),
    }
}

/// The names of a module's arguments, in order.
pub fn input_names(gm: &GraphModule) -> Vec<String> {
    let placeholders = gm.graph().placeholders();
    placeholders.map(|node| node.target().to_string()).collect()
}

/// A limit of what loading may need, by its name in `fx_onnx::Limits`; bytes may end in `KiB`, `MiB` or `GiB`.
///
/// # Errors
/// Returns an error if there is no such limit, or the value is no number.
pub fn limited(mut limits: Limits, name: &str, value: &str) -> Result<Limits> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((value.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((value, 0));
    let number = digits.trim().parse::<usize>().ok();
    let number = number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| {
            Error::msg(format_args!(
                "the limit `{name}` is `{value}`, which is no number"
            ))
        })?;
    match name {
        "nodes" => limits.nodes = number,
        "depth" => limits.depth = number,
        "memory" => limits.memory = number,
        "constant_bytes" => limits.constant_bytes = number,
        other => {
            return Err(Error::msg(format_args!(
                "there is no limit `{other}`: give nodes, depth, memory or constant_bytes"
            )));
        }
    }
    Ok(limits)
}

/// What a graph says of its inputs, as an ONNX file does; `None` if it does not say it of all.
pub fn known_inputs(gm: &GraphModule) -> Option<Vec<Spec>> {
    let specs = gm.graph().placeholders().map(|node| {
        let meta = node.meta::<ValueMeta>()?.tensor()?;
        Some(Spec::tensor(meta.shape.iter().cloned(), meta.dtype?))
    });
    specs.collect()
}
