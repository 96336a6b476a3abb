//! Random nested edits that fail, compared with the graph before, and with a graph that never saw
//! them.

use fx_core::ir::{Argument, Graph, Op};
use fx_core::operator;
use fx_core::prelude::*;
use fx_core::value::NodeId;
use proptest::prelude::*;

use super::mirror::Mirror;
use super::state::{Size, Stage, state};

/// An edit; nodes are chosen by number among the existing ones.
#[derive(Debug, Clone)]
enum Edit {
    Create {
        op: usize,
        args: Vec<usize>,
        nested: bool,
        before: Option<usize>,
        name: Option<usize>,
    },
    SetArgs(usize, Vec<usize>, bool),
    UpdateArg(usize, usize, usize),
    Replace(usize, usize),
    ReplaceSome(usize, usize, usize),
    ReplaceInput(usize, usize, usize),
    Erase(usize),
    Prepend(usize, usize),
    Append(usize, usize),
    Rename(usize, usize),
    SetOp(usize, usize),
    SetType(usize, bool),
    SetStage(usize, usize),
    SetSize(usize),
    Forget(usize),
    Point(Option<usize>),
    Sort,
    DeadCode,
    Inline(usize),
    InPass(usize, usize),
    /// Nested edits, kept or undone.
    Inner(Vec<Edit>, bool),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<usize>;
    // Now and then a node has many arguments.
    let args = || {
        prop_oneof![
            10 => prop::collection::vec(at(), 0..4),
            1 => prop::collection::vec(at(), 36..40),
        ]
    };
    let create = (
        at(),
        args(),
        any::<bool>(),
        prop::option::of(at()),
        prop::option::of(at()),
    );
    let create = create.prop_map(|(op, args, nested, before, name)| Edit::Create {
        op,
        args,
        nested,
        before,
        name,
    });
    let single = prop_oneof![
        6 => create,
        2 => (at(), args(), any::<bool>()).prop_map(|(n, a, k)| Edit::SetArgs(n, a, k)),
        3 => (at(), at(), at()).prop_map(|(n, i, a)| Edit::UpdateArg(n, i, a)),
        3 => (at(), at()).prop_map(|(a, b)| Edit::Replace(a, b)),
        1 => (at(), at(), at()).prop_map(|(a, b, c)| Edit::ReplaceSome(a, b, c)),
        1 => (at(), at(), at()).prop_map(|(a, b, c)| Edit::ReplaceInput(a, b, c)),
        4 => at().prop_map(Edit::Erase),
        1 => (at(), at()).prop_map(|(a, b)| Edit::Prepend(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Edit::Append(a, b)),
        2 => (at(), at()).prop_map(|(a, b)| Edit::Rename(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Edit::SetOp(a, b)),
        1 => (at(), any::<bool>()).prop_map(|(a, b)| Edit::SetType(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Edit::SetStage(a, b)),
        2 => at().prop_map(Edit::SetSize),
        1 => at().prop_map(Edit::Forget),
        1 => prop::option::of(at()).prop_map(Edit::Point),
        1 => Just(Edit::Sort),
        1 => Just(Edit::DeadCode),
        1 => at().prop_map(Edit::Inline),
        1 => (at(), at()).prop_map(|(a, b)| Edit::InPass(a, b)),
    ];
    single.prop_recursive(2, 24, 6, |inner| {
        (prop::collection::vec(inner, 1..6), any::<bool>())
            .prop_map(|(e, keep)| Edit::Inner(e, keep))
    })
}

const OPS: [fx_core::ir::Function; 3] = [operator::neg, operator::abs, operator::add];
const NAMES: [&str; 7] = [
    "neg",
    "neg_2",
    "x",
    "add_7",
    "fresh",
    "renamed_3",
    "renamed",
];

fn id(graph: &Graph, number: usize) -> Option<NodeId> {
    let count = graph.len().max(1);
    graph.nodes().nth(number % count).map(|node| node.id())
}

/// Does an edit as far as possible; that a failing edit changes nothing is tested elsewhere.
fn apply(graph: &mut Graph, edit: &Edit) -> Option<()> {
    let some = |graph: &Graph, number: usize| id(graph, number);
    let arguments = |graph: &Graph, numbers: &[usize], nested: bool| -> Vec<Argument> {
        let nodes = numbers.iter().map(|n| match n % 5 {
            0 => Argument::Int(1),
            _ => id(graph, *n).map_or(Argument::None, Argument::Node),
        });
        match nested {
            true => vec![Argument::List(std::sync::Arc::new(nodes.collect()))],
            false => nodes.collect(),
        }
    };
    match edit {
        Edit::Create {
            op,
            args,
            nested,
            before,
            name,
        } => {
            let args = arguments(graph, args, *nested);
            let op = match op % 4 {
                3 => Op::Placeholder(format!("p{}", op % 3).as_str().into()),
                at => Op::CallFunction(OPS[at]),
            };
            let mut new = fx_core::ir::NewNode::new(op).args(args);
            if let Some(name) = name {
                new = new.name(NAMES[name % NAMES.len()]);
            }
            match before.and_then(|before| some(graph, before)) {
                Some(before) => graph.inserting_before(before).ok()?.add(new).ok()?,
                None => graph.add(new).ok()?,
            };
        }
        Edit::SetArgs(node, args, nested) => {
            let args = arguments(graph, args, *nested);
            graph
                .node_mut(some(graph, *node)?)
                .ok()?
                .set_args(args)
                .ok()?;
        }
        Edit::UpdateArg(node, at, arg) => {
            let node = some(graph, *node)?;
            let arg = some(graph, *arg)?;
            let count = graph.node(node).ok()?.args().len();
            let at = at.checked_rem(count)?;
            graph.node_mut(node).ok()?.update_arg(at, arg).ok()?;
        }
        Edit::Replace(old, new) => {
            let (old, new) = (some(graph, *old)?, some(graph, *new)?);
            graph.node_mut(old).ok()?.replace_all_uses_with(new).ok()?;
        }
        Edit::ReplaceSome(old, new, modulus) => {
            let (old, new) = (some(graph, *old)?, some(graph, *new)?);
            let mut number = 0;
            let mut old = graph.node_mut(old).ok()?;
            old.replace_uses_with_filter(new, |_| {
                number += 1;
                number % (modulus % 3 + 1) == 0
            })
            .ok()?;
        }
        Edit::ReplaceInput(node, old, new) => {
            let [node, old, new] = [*node, *old, *new].map(|number| some(graph, number));
            graph
                .node_mut(node?)
                .ok()?
                .replace_input_with(old?, new?)
                .ok()?;
        }
        Edit::Erase(node) => graph.erase_node(some(graph, *node)?).ok()?,
        Edit::Prepend(node, other) => {
            let (node, other) = (some(graph, *node)?, some(graph, *other)?);
            graph.node_mut(node).ok()?.prepend(other).ok()?;
        }
        Edit::Append(node, other) => {
            let (node, other) = (some(graph, *node)?, some(graph, *other)?);
            graph.node_mut(node).ok()?.append(other).ok()?;
        }
        Edit::Rename(node, name) => {
            let node = some(graph, *node)?;
            graph.node_mut(node).ok()?.rename(NAMES[name % NAMES.len()]);
        }
        Edit::SetOp(node, op) => {
            let node = some(graph, *node)?;
            let op = Op::CallFunction(OPS[op % OPS.len()]);
            graph.node_mut(node).ok()?.set_op(op).ok()?;
        }
        Edit::SetType(node, set) => {
            let node = some(graph, *node)?;
            graph
                .node_mut(node)
                .ok()?
                .set_type_expr(set.then_some("Int"));
        }
        Edit::SetStage(node, stage) => {
            let node = some(graph, *node)?;
            graph.node_mut(node).ok()?.set_meta(Stage(stage % 9));
        }
        Edit::SetSize(node) => {
            let node = some(graph, *node)?;
            let size = Size(node_number(graph, node));
            graph.node_mut(node).ok()?.set_meta(size);
        }
        Edit::Forget(node) => {
            let node = some(graph, *node)?;
            graph.node_mut(node).ok()?.remove_meta::<Stage>();
        }
        Edit::Point(node) => {
            let node = node.and_then(|node| some(graph, node));
            graph.set_insertion_point(node).ok()?;
        }
        Edit::Sort => graph.sort().ok()?,
        Edit::DeadCode => drop(graph.eliminate_dead_code().ok()?),
        Edit::Inline(node) => {
            let mut inner = Graph::new();
            let a = inner.placeholder("a").ok()?;
            let double = inner.call_function(operator::add, (a, a), ()).ok()?;
            inner.output(double).ok()?;
            graph.inline(some(graph, *node)?, &inner).ok()?;
        }
        Edit::InPass(old, new) => {
            let (old, new) = (some(graph, *old)?, some(graph, *new)?);
            let mut graph = graph.in_pass("swapping");
            graph.call_function(operator::neg, (old,), ()).ok()?;
            graph.node_mut(old).ok()?.replace_all_uses_with(new).ok()?;
        }
        Edit::Inner(edits, keep) => {
            let _ = graph.edit(|graph| {
                for edit in edits {
                    apply(graph, edit);
                }
                match keep {
                    true => Ok(()),
                    false => Err(Error::msg("no")),
                }
            });
        }
    }
    Some(())
}

/// A number that is the same in two graphs that were made in the same way.
fn node_number(graph: &Graph, id: NodeId) -> usize {
    graph.nodes().position(|node| node.id() == id).unwrap_or(0)
}

/// Ids differ from graph to graph; everything else is compared.
fn text(graph: &Graph) -> String {
    let nodes = graph.nodes().map(|node| {
        let users: Vec<String> = node.users().map(|user| user.name().to_string()).collect();
        format!(
            "{node} {users:?} {:?} {:?} {:?} {:?}\n",
            node.type_expr(),
            node.meta::<Stage>(),
            node.meta::<Size>(),
            node.sources(),
        )
    });
    nodes.collect()
}

fn made(edits: &[Edit]) -> Graph {
    let mut graph = Graph::new();
    for edit in edits {
        apply(&mut graph, edit);
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_fails_leaves_the_graph_as_it_was(
        before in prop::collection::vec(edit(), 0..24),
        failing in prop::collection::vec(edit(), 0..24),
        after in prop::collection::vec(edit(), 0..12),
    ) {
        let mut graph = made(&before);
        let mut control = made(&before);
        let mirror = Mirror::of(&mut graph);
        let state_before = state(&graph);
        for _ in 0..2 {
            let failed = graph.edit(|graph| {
                for edit in &failing {
                    apply(graph, edit);
                }
                mirror.check(graph);
                Err::<(), Error>(Error::msg("no"))
            });
            prop_assert!(failed.is_err());
            prop_assert_eq!(state(&graph), state_before.as_str());
            mirror.check(&graph);
            mirror.check_replaced();
        }
        // Later edits work as if nothing had happened, at the same insertion point, with the same
        // names.
        for edit in &after {
            apply(&mut graph, edit);
            apply(&mut control, edit);
            prop_assert_eq!(text(&graph), text(&control));
        }
        mirror.check(&graph);
        prop_assert_eq!(graph.lint().is_ok(), control.lint().is_ok());
    }

    /// An edit that is kept equals its changes without it.
    #[test]
    fn what_is_kept_is_what_it_would_be_without_an_edit(
        before in prop::collection::vec(edit(), 0..24),
        kept in prop::collection::vec(edit(), 0..24),
        after in prop::collection::vec(edit(), 0..12),
    ) {
        let mut graph = made(&before);
        let mut control = made(&before);
        let done = graph.edit(|graph| {
            for edit in &kept {
                apply(graph, edit);
            }
            Ok(())
        });
        prop_assert!(done.is_ok());
        for edit in kept.iter().chain(&after) {
            apply(&mut control, edit);
        }
        for edit in &after {
            apply(&mut graph, edit);
        }
        prop_assert_eq!(text(&graph), text(&control));
    }
}
