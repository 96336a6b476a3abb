//! Parts of a graph as separate modules: one at a time or many in one pass, and back again.

#[path = "split/goldens.rs"]
mod goldens;
#[path = "split/nest.rs"]
mod nest;
#[path = "split/options.rs"]
mod options;

use fx_core::ErrorKind;
use fx_core::ir::{Graph, NodeRef, Op};
use fx_core::operator;
use fx_core::passes::{Region, Split, SplitOptions};
use fx_core::prelude::*;
use fx_core::value::NodeId;
use proptest::prelude::*;

/// A graph of one input, whose node `n` adds or multiplies two earlier values; the result is a list
/// of several.
fn random_graph(choices: &[(u8, u8, bool)]) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut values = vec![graph.placeholder("x")?];
    for (a, b, is_sum) in choices {
        let pick = |at: u8| values[usize::from(at) % values.len()];
        let function = if *is_sum {
            operator::add
        } else {
            operator::sub
        };
        values.push(graph.call_function(function, (pick(*a), pick(*b)), ())?);
    }
    let results: Vec<fx_core::ir::Argument> = values
        .iter()
        .skip(1)
        .step_by(3)
        .map(|id| (*id).into())
        .collect();
    graph.output(fx_core::ir::Argument::Tuple(std::sync::Arc::new(results)))?;
    let mut gm = GraphModule::new(Default::default(), graph, "Random")?;
    gm.eliminate_dead_code()?;
    Ok(gm)
}

/// A level for each node, not below that of any input: parts by level never need each other in both
/// directions.
fn levels(gm: &GraphModule, rises: &[bool]) -> Vec<(NodeId, usize)> {
    let mut levels: Vec<(NodeId, usize)> = Vec::new();
    for (at, node) in gm.graph().nodes().enumerate() {
        let inputs = node.all_input_nodes();
        let of = |id| {
            levels
                .iter()
                .find(|(known, _)| *known == id)
                .map_or(0, |(_, level)| *level)
        };
        let level = inputs.map(|input| of(input.id())).max().unwrap_or(0);
        levels.push((node.id(), level + usize::from(rises[at % rises.len()])));
    }
    levels
}

proptest! {
    #[test]
    fn parts_by_level_compute_the_same_and_come_back(
        choices in prop::collection::vec(any::<(u8, u8, bool)>(), 1..40),
        rises in prop::collection::vec(any::<bool>(), 1..20),
        leave in any::<u8>(),
    ) {
        let gm = random_graph(&choices)?;
        let expected = gm.forward::<Value>(3.0)?.to_string();
        let levels = levels(&gm, &rises);
        let path_of = |node: NodeRef<'_>| {
            let (_, level) = levels.iter().find(|(id, _)| *id == node.id())?;
            // Some levels stay where they are.
            (level % 3 != usize::from(leave % 4)).then(|| format!("part{level}"))
        };
        let Split { module: mut split, parts, .. } = gm.split(&SplitOptions::new(), path_of)?;
        split.lint()?;
        prop_assert_eq!(split.forward::<Value>(3.0)?.to_string(), expected.clone());
        let left = split.graph().nodes().filter(|node| path_of(*node).is_some() && gm.graph().node(node.id()).is_ok());
        let is_moved = |node: NodeRef<'_>| matches!(node.op(), Op::Placeholder(_) | Op::Output);
        prop_assert!(left.into_iter().all(is_moved));
        for part in &parts {
            split.inline_module(part.call)?;
        }
        prop_assert_eq!(split.forward::<Value>(3.0)?.to_string(), expected);
        prop_assert_eq!(split.graph().len(), gm.graph().len());
    }
}

fn named(gm: &GraphModule, names: &[&str]) -> Vec<NodeId> {
    let found = names.iter().filter_map(|name| gm.graph().find_name(name));
    found.map(|node| node.id()).collect()
}

#[test]
fn a_region_knows_what_it_takes_and_gives() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float, y: Float| {
        let a = (x + y)?;
        let b = (a * 2.0)?;
        let c = (b - x)?;
        Ok((a, c))
    }))?;
    let region = Region::of(gm.graph(), named(&gm, &["sub", "mul", "mul"]))?;
    assert_eq!(region.nodes(), named(&gm, &["mul", "sub"]));
    assert_eq!(region.inputs(), named(&gm, &["add", "x"]));
    assert_eq!(region.outputs(), named(&gm, &["sub"]));
    assert!(region.is_convex(gm.graph(), gm.attributes()));
    let ends = Region::of(gm.graph(), named(&gm, &["add", "sub"]))?;
    let error = ends.check_convex(gm.graph(), gm.attributes());
    let text = error.expect_err("mul is between").to_string();
    assert!(text.contains("%mul is not among them"), "{text}");
    Ok(())
}

#[test]
fn parts_that_need_each_other_are_refused() -> Result<()> {
    // a -> b -> c -> d, and the parts are {a, c} and {b, d}: neither alone is one piece; nor is {a,
    // d} with {b} and {c}.
    let gm = symbolic_trace(traced!(|x: Float| (((x + 1.0)? * 2.0)? - 3.0)? / 4.0))?;
    let options = SplitOptions::new();
    let by_turns = |node: NodeRef<'_>| match node.name().to_string().as_str() {
        "add" | "sub" => Some("even"),
        _ => Some("odd"),
    };
    let error = gm.split(&options, by_turns).expect_err("they alternate");
    assert!(matches!(error.kind(), ErrorKind::Region(_)));
    insta::assert_snapshot!(error, @"the parts `even`, `odd` need each other: %sub of `even` needs %mul of `odd`, %mul of `odd` needs %add of `even`; make other parts");

    // Two chains, crossed: each part is one piece, and the parts need each other.
    let crossed = symbolic_trace(traced!(|x: Float, y: Float| {
        let (a, b) = ((x + 1.0)?, (y * 2.0)?);
        Ok(((a - 3.0)?, (b / 4.0)?))
    }))?;
    let crosswise = |node: NodeRef<'_>| match node.name().to_string().as_str() {
        "add" | "truediv" => Some("one"),
        _ => Some("other"),
    };
    let error = crossed.split(&options, crosswise).expect_err("they cross");
    insta::assert_snapshot!(error, @"the parts `one`, `other` need each other: %truediv of `one` needs %mul of `other`, %sub of `other` needs %add of `one`; make other parts");
    assert!(gm.split(&options, |_| Some("a.b")).is_ok());
    let nameless = |node: NodeRef<'_>| (node.name() == "add").then_some("");
    assert!(gm.split(&options, nameless).is_err());
    Ok(())
}

#[test]
fn no_part_is_no_change() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    let split = gm.split(&SplitOptions::new(), |_| None::<&str>)?;
    assert!(split.parts.is_empty() && split.qualified_names.is_empty());
    assert_eq!(split.module.to_bytes()?, gm.to_bytes()?);
    Ok(())
}
