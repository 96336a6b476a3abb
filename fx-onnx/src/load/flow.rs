//! `Flow`: where values of a file's graph come from and go to, seen before its nodes are read.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype;
use crate::proto::{GraphProto, NodeProto, TypeProto, TypeValue, ValueInfoProto};

/// Names of values.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// Whole numbers of an input, rearranged at most, such as tokens.
    pub ids: FxHashSet<String>,
    /// What nothing but a `Cast` reads, through what rearranges: its element type says nothing.
    pub untyped: FxHashSet<String>,
}

impl Flow {
    pub fn of(graph: &GraphProto) -> Self {
        Flow {
            ids: ids(graph),
            untyped: untyped(graph),
        }
    }
}

/// The names that the graphs of a node read from outside of it.
pub(super) fn read_inside(node: &NodeProto, names: &mut Vec<String>) {
    let mut left: Vec<&GraphProto> = node.attribute.iter().filter_map(|a| a.g.as_ref()).collect();
    while let Some(graph) = left.pop() {
        for node in &graph.node {
            names.extend(node.input.iter().cloned());
            left.extend(node.attribute.iter().filter_map(|a| a.g.as_ref()));
        }
        names.extend(graph.output.iter().map(|o| o.name.clone()));
    }
}

/// Whether a node gives elements of its first input.
fn rearranges(node: &NodeProto) -> bool {
    matches!(
        &*node.op_type,
        "Expand"
            | "Flatten"
            | "Identity"
            | "Reshape"
            | "Slice"
            | "Squeeze"
            | "Transpose"
            | "Unsqueeze"
    )
}

fn ids(graph: &GraphProto) -> FxHashSet<String> {
    let is_whole = |info: &&ValueInfoProto| match &info.r#type {
        Some(TypeProto {
            value: Some(TypeValue::Tensor(tensor)),
        }) => dtype::known(tensor.elem_type).is_some_and(|dtype| !dtype.is_floating_point()),
        _ => false,
    };
    let inputs = graph.input.iter().filter(is_whole);
    let mut ids: FxHashSet<String> = inputs.map(|info| info.name.clone()).collect();
    for node in &graph.node {
        let is_one = rearranges(node) || node.op_type == "Cast";
        if is_one && node.input.first().is_some_and(|name| ids.contains(name)) {
            ids.extend(node.output.iter().cloned());
        }
    }
    ids
}

fn untyped(graph: &GraphProto) -> FxHashSet<String> {
    // Whether each value that is read is read so alone.
    let mut read: FxHashMap<&str, bool> = FxHashMap::default();
    read.extend(graph.output.iter().map(|info| (&*info.name, false)));
    let mut inside = Vec::new();
    for node in &graph.node {
        read_inside(node, &mut inside);
    }
    read.extend(inside.iter().map(|name| (&**name, false)));
    for node in graph.node.iter().rev() {
        let given = node.output.first().and_then(|name| read.get(&**name));
        let is_free = match &*node.op_type {
            "Cast" => true,
            "Concat" | "Gather" => given == Some(&true),
            _ => rearranges(node) && given == Some(&true),
        };
        for (at, name) in node.input.iter().enumerate() {
            let is_free = is_free && (at == 0 || node.op_type == "Concat");
            *read.entry(name).or_insert(true) &= is_free;
        }
    }
    let free = read.into_iter().filter(|(_, is_free)| *is_free);
    free.map(|(name, _)| name.to_string()).collect()
}
