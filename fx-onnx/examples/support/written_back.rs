//! How a module that was read is written again: with the sizes that are open in it, under the file's names.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_onnx::{Export, Import};

/// The export of what was read, by what is known of its inputs.
pub fn written_back(read: &Import) -> Result<Export> {
    let specs = read.module.graph().placeholders().map(|node| {
        let spec = node.meta::<ValueMeta>().map(Spec::of_meta).transpose()?;
        spec.ok_or_else(|| Error::msg("an input without a shape"))
    });
    let export = Export::specs(specs.collect::<Result<Vec<Spec>>>()?);
    let report = &read.report;
    Ok(export
        .inputs(report.inputs.iter().cloned())
        .outputs(report.outputs.iter().cloned()))
}
