//! Files as graph modules, by what they are: those of `GraphModule::save`, and ONNX files.

use std::path::Path;

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

/// Whether a path is that of an ONNX file.
pub fn is_onnx(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "onnx")
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
    match is_onnx(path) {
        true => Ok(fx_onnx::load(path)?.module),
        false => GraphModule::load(path),
    }
}

/// What a graph says of its inputs, as an ONNX file does; `None` if it does not say it of all.
pub fn known_inputs(gm: &GraphModule) -> Option<Vec<Spec>> {
    let specs = gm.graph().placeholders().map(|node| {
        let meta = node.meta::<ValueMeta>()?.tensor()?;
        Some(Spec::tensor(meta.shape.iter().cloned(), meta.dtype?))
    });
    specs.collect()
}
