//! The parts and parents that torch.fx makes of the same graphs: `splits.txt`, by `torch_splits.py`.

use std::collections::BTreeSet;
use std::sync::Arc;

use fx_core::ir::{Argument, Graph, NodeRef, Op};
use fx_core::module::{Attributes, Tag, TensorKind};
use fx_core::operator;
use fx_core::passes::{Split, SplitOptions};
use fx_core::prelude::*;
use fx_core::value::NodeId;

use crate::support::Array;

#[derive(Debug, Default, Module)]
struct Identity {
    tag: Tag,
}

#[trace(leaf)]
impl Identity {
    fn forward(&self, x: Value) -> Result<Value> {
        Ok(x)
    }
}

/// A graph, the number of each call's part, and what is left of the lines.
fn read<'t>(lines: &mut impl Iterator<Item = &'t str>) -> Result<(Graph, Vec<(NodeId, usize)>)> {
    let mut graph = Graph::new();
    let mut parts = Vec::new();
    for line in lines {
        let (line, part) = line.split_once(" = ").unwrap_or((line, ""));
        let words: Vec<&str> = line.split(' ').collect();
        let value = |name: &&str| graph.find_name(name).map(|node| node.id());
        let inputs = |from: usize| {
            words
                .iter()
                .skip(from)
                .filter_map(value)
                .collect::<Vec<_>>()
        };
        let node = match words.get(1).copied() {
            Some("placeholder") => graph.placeholder(words[0])?,
            Some("get_attr") => graph.get_attr(words[2])?,
            Some("call_module") => {
                let inputs = inputs(3);
                graph.call_module(words[2], (inputs[0],), ())?
            }
            Some("call_function") => match inputs(3).as_slice() {
                [one] => graph.call_function(operator::neg, (*one,), ())?,
                [a, b] => graph.call_function(operator::add, (*a, *b), ())?,
                _ => return Err(Error::msg("a call has one or two inputs")),
            },
            _ => {
                let results = inputs(1).into_iter().map(Argument::Node).collect();
                graph.output(Argument::Tuple(Arc::new(results)))?;
                return Ok((graph, parts));
            }
        };
        graph.node_mut(node)?.rename(words[0]);
        if let Ok(part) = part.parse() {
            parts.push((node, part));
        }
    }
    Err(Error::msg("a graph ends with its output"))
}

/// A module of a graph, with what the graphs of the goldens name.
fn module(graph: Graph) -> Result<GraphModule> {
    let mut root = Attributes::default();
    let weight = Value::object(Array::vec(&[1.0, -2.0]));
    root.tensors
        .insert("w".into(), (TensorKind::Buffer, weight));
    root.modules
        .insert("block.layer".into(), Box::<Identity>::default());
    GraphModule::new(root, graph, "Random")
}

fn names<'g>(graph: &'g Graph, ids: impl IntoIterator<Item = &'g NodeId>) -> String {
    let nodes = ids.into_iter().filter_map(|id| graph.node(*id).ok());
    let names: Vec<String> = nodes.map(|node| node.name().to_string()).collect();
    names.join(" ")
}

fn inputs(node: NodeRef<'_>) -> String {
    let names = node.all_input_nodes().map(|input| input.name().to_string());
    names.collect::<Vec<_>>().join(" ")
}

/// The position that a `getitem` takes.
fn at(node: NodeRef<'_>) -> i64 {
    match node.args().get(1) {
        Some(Argument::Int(at)) => *at,
        _ => -1,
    }
}

/// What the script says of a split graph.
fn described(before: &GraphModule, split: &Split, with_names: bool) -> Result<Vec<String>> {
    let paths: BTreeSet<&Arc<str>> = split.parts.iter().map(|part| &part.path).collect();
    let mut lines = Vec::new();
    for node in split.module.graph().nodes() {
        let name = node.name();
        lines.push(match node.op() {
            Op::Output => format!("output {}", inputs(node)),
            Op::CallModule(path) => format!("{name} call {path} {}", inputs(node)),
            Op::CallFunction(_) => {
                format!("{name} getitem {} {}", inputs(node), at(node))
            }
            other => format!("{name} {}", other.opcode().name()),
        });
    }
    for path in paths {
        let part = split.parts.iter().find(|part| part.path == *path);
        let region = &part.ok_or_else(|| Error::msg("it has a part"))?.region;
        let graph = split.module.submodule_as::<GraphModule>(path)?.graph();
        let named = |op: &dyn Fn(&Op) -> bool| -> String {
            let nodes = graph.nodes().filter(|node| op(node.op()));
            nodes
                .map(|node| node.name().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let reads: BTreeSet<&str> = graph
            .nodes()
            .filter(|node| matches!(node.op(), Op::GetAttr(_)))
            .map(|node| node.op().target())
            .collect();
        let output = graph
            .output_node()
            .ok_or_else(|| Error::msg("it has an output"))?;
        let is_tuple = matches!(output.args().first(), Some(Argument::Tuple(_)));
        assert_eq!(inputs(output), {
            let outputs: BTreeSet<&NodeId> = region.outputs().iter().collect();
            assert_eq!(outputs.len(), region.outputs().len());
            names(before.graph(), region.outputs())
        });
        lines.push(format!(
            "part {path}: {} | {} | {} | {} | {}",
            named(&|op| matches!(op, Op::Placeholder(_))),
            named(&Op::is_call),
            inputs(output),
            if is_tuple { "True" } else { "False" },
            reads.into_iter().collect::<Vec<_>>().join(" "),
        ));
    }
    if with_names {
        for (path, old) in &split.qualified_names {
            let part = path.split('.').next().unwrap_or_default();
            lines.push(format!("name {part} {old}"));
        }
    }
    Ok(lines)
}

/// Lines, with those in front whose order says nothing: where attributes are read, and the names,
/// which PyTorch lists by the numbers of the parts. It also keeps attributes that nothing reads, or
/// not, with the way of splitting.
fn compared<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> Vec<String> {
    let lines = lines.into_iter().map(|line| line.as_ref().to_string());
    let (mut free, fixed): (Vec<String>, Vec<String>) =
        lines.partition(|line| line.starts_with("name ") || line.ends_with(" get_attr"));
    free.retain(|line| {
        let name = line.strip_suffix(" get_attr");
        let reads = |line: &String, name| line.split(' ').skip(3).any(|word| word == name);
        name.is_none_or(|name| fixed.iter().any(|line| reads(line, name)))
    });
    free.sort();
    free.extend(fixed);
    free
}

#[test]
fn parts_and_parents_are_those_of_torch_fx() -> Result<()> {
    let mut ways = 0;
    for block in include_str!("splits.txt").split("\n\n") {
        let mut lines = block.lines().peekable();
        let title = lines.next().unwrap_or_default();
        let (graph, parts) = read(&mut lines)?;
        let gm = module(graph)?;
        let x = || (Array::vec(&[0.5, 2.0]), Array::vec(&[-1.0, 3.0]));
        let expected = gm.forward::<Value>(x())?.to_string();
        let part = |node: NodeRef<'_>| {
            parts
                .iter()
                .find(|(id, _)| *id == node.id())
                .map(|(_, part)| *part)
        };
        while let Some(way) = lines.next() {
            let words: Vec<&str> = way.split(' ').collect();
            let split = match words.as_slice() {
                ["split_module", keep_order, tuple, keep_names, affix] => {
                    let options = SplitOptions::new()
                        .keep_original_order(*keep_order == "True")
                        .tuple_return(*tuple == "True")
                        .keep_original_input_name(*keep_names == "True");
                    let options = match *affix {
                        "None" => options,
                        affix => options.affix(affix),
                    };
                    gm.split(&options, part)?
                }
                [_, tags @ ..] => {
                    let tag = |node: NodeRef<'_>| part(node).map(|part| format!("tag_{part}"));
                    gm.split_by_tags(&SplitOptions::new(), tags, tag)?
                }
                [] => return Err(Error::msg("a block is ways of splitting")),
            };
            let is_of_way = |line: &&str| !line.starts_with("split_");
            let golden: Vec<&str> = std::iter::from_fn(|| lines.next_if(is_of_way)).collect();
            let found = described(&gm, &split, words[0] == "split_module")?;
            assert_eq!(compared(found), compared(golden), "{title}: {way}");
            assert_eq!(split.module.forward::<Value>(x())?.to_string(), expected);
            ways += 1;
        }
    }
    assert_eq!(ways, 20 * 4);
    Ok(())
}
