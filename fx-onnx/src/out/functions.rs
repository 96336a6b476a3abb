//! Modules as functions of the file: one for each module type with equal nodes.
//!
//! Invariant: a function has the nodes of one call of a module, whole, and takes by name what they read from outside.

use rustc_hash::{FxHashMap, FxHashSet};

use prost::Message;

use crate::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto};

/// The path of the outermost module of a node.
fn outermost(node: &NodeProto) -> Option<(&str, String)> {
    let of = |key: &str| {
        node.metadata_props
            .iter()
            .find(|e| e.key == key)
            .map(|e| &*e.value)
    };
    let path = of("namespace")?
        .split('/')
        .next()
        .filter(|path| !path.is_empty())?;
    let types = of("pkg.torch.onnx.class_hierarchy")?;
    let ty = types.split('\'').nth(3)?;
    let ty = ty.split('<').next().unwrap_or(ty);
    Some((path, ty.rsplit("::").next().unwrap_or(ty).to_string()))
}

/// Nodes that stand together, with the path and the type of the module that they are in.
type Run = (Option<(String, String)>, Vec<NodeProto>);

/// Puts the nodes of modules into functions; the functions.
pub(super) fn extract(
    graph: &mut GraphProto,
    opset: i64,
    versions: &[(String, i64)],
) -> Vec<FunctionProto> {
    let nodes = std::mem::take(&mut graph.node);
    // Runs of nodes of one module: what stands between them keeps them apart.
    let mut runs: Vec<Run> = Vec::new();
    for node in nodes {
        let key = match node.attribute.iter().any(|a| a.g.is_some()) {
            true => None,
            false => outermost(&node).map(|(path, ty)| (path.to_string(), ty)),
        };
        match runs.last_mut() {
            Some((last, run)) if *last == key => run.push(node),
            _ => runs.push((key, vec![node])),
        }
    }
    // The last run that reads a value; an output of the graph is read after all of them.
    let mut last_read: FxHashMap<String, usize> = FxHashMap::default();
    for (at, (_, run)) in runs.iter().enumerate() {
        last_read.extend(read_by(run).into_iter().map(|name| (name, at)));
    }
    let outputs = graph.output.iter();
    last_read.extend(outputs.map(|output| (output.name.clone(), usize::MAX)));
    let mut taken: FxHashMap<String, usize> = FxHashMap::default();
    let mut functions: Vec<FunctionProto> = Vec::new();
    let mut calls: FxHashMap<String, usize> = FxHashMap::default();
    let mut known: FxHashMap<Vec<u8>, String> = FxHashMap::default();
    let mut inside: FxHashSet<String> = FxHashSet::default();
    for (at, (key, run)) in runs.into_iter().enumerate() {
        let Some((path, ty)) = key else {
            graph.node.extend(run);
            continue;
        };
        if run.len() < 2 {
            graph.node.extend(run);
            continue;
        }
        let made: FxHashSet<String> = run.iter().flat_map(|n| n.output.iter().cloned()).collect();
        let (mut inputs, mut seen) = (Vec::new(), FxHashSet::default());
        for name in run.iter().flat_map(|node| &node.input) {
            if !name.is_empty() && !made.contains(name) && seen.insert(name.clone()) {
                inputs.push(name.clone());
            }
        }
        let outputs: Vec<String> = run
            .iter()
            .flat_map(|n| &n.output)
            .filter(|name| last_read.get(*name).is_some_and(|last| *last > at))
            .cloned()
            .collect();
        let domains: FxHashSet<String> = run.iter().map(|node| node.domain.clone()).collect();
        let metadata = run[0].metadata_props.clone();
        inside.extend(made.iter().filter(|name| !outputs.contains(name)).cloned());
        let mut names: FxHashMap<String, String> = FxHashMap::default();
        for (at, name) in inputs.iter().enumerate() {
            names.insert(name.clone(), format!("in_{at}"));
        }
        for (at, name) in outputs.iter().enumerate() {
            names.insert(name.clone(), format!("out_{at}"));
        }
        let mut body = run;
        for (at, node) in body.iter_mut().enumerate() {
            for (place, name) in node.output.iter().enumerate() {
                let own = format!("v_{at}_{place}");
                names.entry(name.clone()).or_insert(own);
            }
            for text in node.input.iter_mut().chain(&mut node.output) {
                if let Some(new) = names.get(text) {
                    text.clone_from(new);
                }
            }
            node.name = format!("n_{at}");
            node.metadata_props.clear();
            node.doc_string.clear();
        }
        let mut opset_import = vec![OperatorSetIdProto {
            domain: String::new(),
            version: opset,
        }];
        let own = versions.iter().filter(|(name, _)| domains.contains(name));
        opset_import.extend(own.map(|(domain, version)| OperatorSetIdProto {
            domain: domain.clone(),
            version: *version,
        }));
        let mut function = FunctionProto {
            domain: "fx.layers".to_string(),
            input: (0..inputs.len()).map(|at| format!("in_{at}")).collect(),
            output: (0..outputs.len()).map(|at| format!("out_{at}")).collect(),
            node: body,
            opset_import,
            ..FunctionProto::default()
        };
        let bytes = [ty.as_bytes(), &function.encode_to_vec()].concat();
        let name = known.entry(bytes).or_insert_with(|| {
            let count = taken.entry(ty.clone()).or_default();
            let name = match *count {
                0 => ty.clone(),
                count => format!("{ty}.{count}"),
            };
            *count += 1;
            function.name.clone_from(&name);
            functions.push(function.clone());
            name
        });
        // A module whose nodes do not stand together has several calls.
        let count = calls.entry(path.clone()).or_default();
        let call = match *count {
            0 => path,
            count => format!("{path}:{count}"),
        };
        *count += 1;
        graph.node.push(NodeProto {
            op_type: name.clone(),
            domain: "fx.layers".to_string(),
            name: call,
            input: inputs,
            output: outputs,
            metadata_props: metadata,
            ..NodeProto::default()
        });
    }
    graph.value_info.retain(|info| !inside.contains(&info.name));
    functions
}

fn read_by(nodes: &[NodeProto]) -> FxHashSet<String> {
    let mut names = FxHashSet::default();
    let mut left: Vec<&NodeProto> = nodes.iter().collect();
    while let Some(node) = left.pop() {
        names.extend(node.input.iter().cloned());
        for graph in node.attribute.iter().filter_map(|a| a.g.as_ref()) {
            left.extend(&graph.node);
            names.extend(graph.output.iter().map(|o| o.name.clone()));
        }
    }
    names
}
