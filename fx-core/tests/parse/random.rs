//! Random graphs, and random damage to their text.

use std::sync::Arc;

use fx_core::ir::{Argument, Graph, Op};
use fx_core::operator;
use fx_core::prelude::*;
use fx_core::value::{DType, NodeId};
use proptest::prelude::*;

use super::facts;

fn round_trip(graph: &Graph) -> Result<(), TestCaseError> {
    let text = graph.to_string();
    let parsed = text.parse::<Graph>();
    prop_assert!(parsed.is_ok(), "{text}\n{parsed:?}");
    let parsed = parsed.unwrap_or_default();
    prop_assert_eq!(parsed.to_string(), text);
    prop_assert_eq!(facts(&parsed), facts(graph));
    Ok(())
}

/// An argument whose nodes are chosen by number when it is used.
#[derive(Debug, Clone)]
enum Shape {
    Node(usize),
    Leaf(Argument),
    List(Vec<Shape>),
    Tuple(Vec<Shape>),
    Dict(Vec<(String, Shape)>),
    Slice(Box<[Shape; 3]>),
}

impl Shape {
    fn argument(&self, nodes: &[NodeId]) -> Argument {
        let all = |items: &[Shape]| Arc::new(items.iter().map(|s| s.argument(nodes)).collect());
        match self {
            Shape::Node(_) if nodes.is_empty() => Argument::None,
            Shape::Node(at) => Argument::Node(nodes[at % nodes.len()]),
            Shape::Leaf(leaf) => leaf.clone(),
            Shape::List(items) => Argument::List(all(items)),
            Shape::Tuple(items) => Argument::Tuple(all(items)),
            Shape::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(k, s)| (k.as_str().into(), s.argument(nodes)));
                Argument::Dict(Arc::new(items.collect()))
            }
            Shape::Slice(parts) => {
                Argument::Slice(Arc::new(std::array::from_fn(|i| parts[i].argument(nodes))))
            }
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{1,5}(_[0-9]{1,2})?",
        2 => "[a-zA-Z0-9_.\\]\\[\"\\\\ %=:{}(),]{0,8}",
        1 => prop::collection::vec(any::<char>(), 0..4).prop_map(String::from_iter),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let literal = prop_oneof![
        Just(Argument::None),
        Just(Argument::Ellipsis),
        any::<bool>().prop_map(Argument::Bool),
        any::<i64>().prop_map(Argument::Int),
        any::<u64>().prop_map(|bits| Argument::Float(f64::from_bits(bits))),
        (-9i32..9).prop_map(|n| Argument::Float(f64::from(n) / 2.0)),
        text().prop_map(Argument::from),
        prop::sample::select(vec![DType::Bool, DType::BF16, DType::I64]).prop_map(Argument::DType),
    ];
    let leaf = prop_oneof![
        any::<usize>().prop_map(Shape::Node),
        literal.prop_map(Shape::Leaf)
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Shape::List),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Shape::Tuple),
            prop::collection::vec((text(), inner.clone()), 0..3).prop_map(Shape::Dict),
            prop::array::uniform3(inner).prop_map(|parts| Shape::Slice(Box::new(parts))),
        ]
    })
}

fn op() -> impl Strategy<Value = Op> {
    let functions = vec![
        operator::add,
        operator::r#mod,
        operator::and_,
        operator::getitem,
    ];
    prop_oneof![
        text().prop_map(|t| Op::Placeholder(t.into())),
        text().prop_map(|t| Op::GetAttr(t.into())),
        text().prop_map(|t| Op::CallMethod(t.into())),
        text().prop_map(|t| Op::CallModule(t.into())),
        prop::sample::select(functions).prop_map(Op::CallFunction),
        Just(Op::Output),
    ]
}

/// A node to make: op, type, arguments, keywords and where it goes.
type Draft = (Op, Option<String>, Vec<Shape>, Vec<(String, Shape)>, usize);

fn draft() -> impl Strategy<Value = Draft> {
    let args = prop::collection::vec(shape(), 0..4);
    let kwargs = prop::collection::btree_map(text(), shape(), 0..3);
    let kwargs = kwargs.prop_map(|map| map.into_iter().collect());
    (
        op(),
        prop::option::weighted(0.2, text()),
        args,
        kwargs,
        any::<usize>(),
    )
}

/// The graph of some drafts, some of its nodes erased.
fn build(drafts: &[Draft], erased: &[usize]) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut order: Vec<NodeId> = Vec::new();
    for (op, ty, args, kwargs, place) in drafts {
        let place = order.len().saturating_sub(place % 3);
        let args: Vec<Argument> = args.iter().map(|s| s.argument(&order[..place])).collect();
        let kwargs: fx_core::ir::Kwargs = kwargs
            .iter()
            .map(|(k, s)| (k.as_str().into(), s.argument(&order[..place])))
            .collect();
        let id = match order.get(place) {
            Some(next) => graph
                .inserting_before(*next)?
                .create_node(op.clone(), args, kwargs)?,
            None => graph.create_node(op.clone(), args, kwargs)?,
        };
        graph.node_mut(id)?.set_type_expr(ty.as_deref());
        order.insert(place, id);
    }
    for at in erased {
        if let Some(id) = order.get(*at)
            && graph.node(*id)?.num_users() == 0
        {
            graph.erase_node(*id)?;
            order.remove(*at);
        }
    }
    Ok(graph)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_are_what_they_print(
        drafts in prop::collection::vec(draft(), 0..12),
        erased in prop::collection::vec(0usize..12, 0..3),
    ) {
        let graph = build(&drafts, &erased);
        prop_assert!(graph.is_ok(), "{graph:?}");
        round_trip(&graph.unwrap_or_default())?;
    }

    /// Text with a piece replaced is refused, or is the text of some graph.
    #[test]
    fn damaged_text_does_no_harm(
        drafts in prop::collection::vec(draft(), 1..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, text()), 1..4),
    ) {
        let mut chars: Vec<char> = build(&drafts, &[]).unwrap_or_default().to_string().chars().collect();
        for (at, length, new) in damage {
            let at = at.index(chars.len().max(1)).min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, new.chars());
        }
        if let Ok(graph) = String::from_iter(chars).parse::<Graph>() {
            round_trip(&graph)?;
        }
    }
}
