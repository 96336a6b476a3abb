//! Calls as ONNX: reads calls of `tests/differential` as JSON lines from standard input and writes, for each, a line with
//! its file and its inputs, or why it has none. `fx-onnx/tests/calls.py` has ONNX Runtime run the files.
//!
//! With `--named`, each size of an input of two or more has a name of its own.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_differential::{Call, graph_of};
use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::trace::CallArgs;
use fx_onnx::{Export, OnnxExt};
use serde_json::{Value as Json, json};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tensors that a file takes, in order.
fn inputs(values: &[Value]) -> Result<Vec<Json>> {
    let tensors = values.iter().filter_map(|v| v.downcast_ref::<Tensor>());
    let arrays = tensors.map(|tensor| {
        let data = Object::to_data(tensor)?;
        let bytes = data.bytes()?;
        Ok(json!({"dtype": data.dtype().name(), "shape": data.shape(), "data": hex(&bytes)}))
    });
    arrays.collect()
}

/// The file of a call, with its inputs.
fn written(call: &Call, named: bool) -> Result<Json> {
    let (gm, args) = graph_of(call)?;
    let args = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let values = gm.process_inputs(args.clone())?;
    let mut export = Export::example(args);
    for (node, value) in gm.graph().placeholders().zip(&values) {
        if let (true, ValueMeta::Single(meta)) = (named, ValueMeta::of(value)) {
            let sizes = meta.known_shape().unwrap_or_default();
            for (dim, _) in sizes.iter().enumerate().filter(|(_, size)| **size > 1) {
                let name = format!("{}_{dim}", node.name());
                export = export.dynamic(&name, [(&*node.target().to_string(), dim)]);
            }
        }
    }
    let (bytes, _) = gm.to_onnx_bytes(&export)?;
    Ok(json!({"model": hex(&bytes), "inputs": inputs(&values)?}))
}

fn main() -> Result<()> {
    let named = std::env::args().any(|arg| arg == "--named");
    for line in std::io::stdin().lock().lines() {
        let call = Call::parse(&line.map_err(Error::other)?)?;
        let row = catch_unwind(AssertUnwindSafe(|| written(&call, named)));
        let mut row = match row {
            Ok(Ok(row)) => row,
            Ok(Err(error)) => json!({"refused": error.to_string()}),
            Err(_) => json!({"panicked": true}),
        };
        row["id"] = json!(call.id);
        println!("{row}");
    }
    Ok(())
}
