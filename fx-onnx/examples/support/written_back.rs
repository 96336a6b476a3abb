//! How a module that was read is written again: with the sizes that are open in it, under the file's names.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_onnx::Export;

/// The export of a module, by what is known of its inputs.
pub fn written_back(gm: &GraphModule, outputs: &[String]) -> Result<Export> {
    let inputs = || gm.graph().placeholders();
    let specs = inputs().map(|node| {
        let spec = node.meta::<ValueMeta>().map(Spec::of_meta).transpose()?;
        spec.ok_or_else(|| Error::msg("an input without a shape"))
    });
    let export = Export::specs(specs.collect::<Result<Vec<Spec>>>()?);
    let export = export.inputs(inputs().map(|node| node.target().to_string()));
    Ok(export.outputs(outputs.iter().cloned()))
}
