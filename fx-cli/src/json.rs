//! Graphs as JSON for scripts.

use fx_nn::ir::{Graph, ValueMeta};
use serde_json::{Value as Json, json};

/// The nodes in their order.
pub fn nodes(graph: &Graph) -> Vec<Json> {
    let nodes = graph.nodes().map(|node| {
        let inputs = node.all_input_nodes().map(|input| input.name().to_string());
        let location = node.location();
        json!({
            "name": node.name().to_string(),
            "op": node.opcode().name(),
            "target": node.target(),
            "inputs": inputs.collect::<Vec<String>>(),
            "text": node.to_string(),
            "value": node.meta::<ValueMeta>().map(ToString::to_string),
            "module": node.module_stack().next().map(|scope| scope.path.to_string()),
            "file": location.map(|location| location.file.to_string()),
            "line": location.map(|location| location.line),
        })
    });
    nodes.collect()
}
