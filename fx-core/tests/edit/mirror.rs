//! A mirror of a graph, which an observer maintains by events alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fx_core::ir::{Argument, Graph, GraphObserver, NodeRef, Op};
use fx_core::operator;
use fx_core::prelude::*;
use fx_core::value::NodeId;

use super::state::Stage;

#[derive(Debug, Clone, PartialEq)]
struct Seen {
    name: String,
    op: Op,
    args: Vec<Argument>,
    kwargs: Vec<(Arc<str>, Argument)>,
    ty: Option<String>,
    stage: Option<Stage>,
}

fn seen(node: NodeRef<'_>) -> Seen {
    Seen {
        name: node.name().to_string(),
        op: node.op().clone(),
        args: node.args().to_vec(),
        kwargs: node.kwargs().to_vec(),
        ty: node.type_expr().map(str::to_string),
        stage: node.meta::<Stage>().cloned(),
    }
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Nodes {
    order: Vec<NodeId>,
    nodes: HashMap<NodeId, Seen>,
    /// For each pair of an old and a new node: how often users moved from one to the other, minus
    /// how often they moved back.
    replaced: HashMap<(NodeId, NodeId), i64>,
}

impl Nodes {
    fn of(graph: &Graph) -> Self {
        Nodes {
            order: graph.nodes().map(|node| node.id()).collect(),
            nodes: graph.nodes().map(|node| (node.id(), seen(node))).collect(),
            replaced: HashMap::new(),
        }
    }

    fn put(&mut self, node: NodeRef<'_>) {
        self.order.retain(|id| *id != node.id());
        let prev = node.prev().map(|prev| prev.id());
        let at = prev.and_then(|prev| self.order.iter().position(|id| *id == prev));
        self.order.insert(at.map_or(0, |at| at + 1), node.id());
        self.nodes.insert(node.id(), seen(node));
    }
}

/// Follows a graph.
#[derive(Debug, Default)]
pub struct Mirror(Mutex<Nodes>);

impl Mirror {
    pub fn of(graph: &mut Graph) -> Arc<Mirror> {
        let mirror = Arc::new(Mirror(Mutex::new(Nodes::of(graph))));
        graph.observe(mirror.clone());
        mirror
    }

    fn with<R>(&self, see: impl FnOnce(&mut Nodes) -> R) -> R {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that the mirror equals the graph.
    #[track_caller]
    pub fn check(&self, graph: &Graph) {
        let mut own = self.with(|nodes| nodes.clone());
        own.replaced.clear();
        assert_eq!(own, Nodes::of(graph));
    }

    /// Checks that every move of users that was notified was also notified as undone.
    #[track_caller]
    pub fn check_replaced(&self) {
        let replaced = self.with(|nodes| nodes.replaced.clone());
        assert!(replaced.values().all(|count| *count == 0), "{replaced:?}");
    }
}

impl GraphObserver for Mirror {
    fn created(&self, node: NodeRef<'_>) {
        self.with(|nodes| {
            assert!(!nodes.nodes.contains_key(&node.id()), "{node:?}");
            nodes.put(node);
        });
    }

    fn erased(&self, node: NodeRef<'_>) {
        self.with(|nodes| {
            assert!(nodes.nodes.remove(&node.id()).is_some(), "{node:?}");
            nodes.order.retain(|id| *id != node.id());
        });
    }

    fn replaced(&self, old: NodeRef<'_>, new: NodeRef<'_>, user: NodeRef<'_>) {
        let uses = user.all_input_nodes().any(|input| input.id() == old.id());
        assert!(uses, "{user:?} does not use {old:?}");
        self.with(|nodes| {
            *nodes.replaced.entry((old.id(), new.id())).or_default() += 1;
            *nodes.replaced.entry((new.id(), old.id())).or_default() -= 1;
        });
    }

    fn changed(&self, node: NodeRef<'_>) {
        self.with(|nodes| nodes.put(node));
    }
}

#[test]
fn a_mirror_shows_the_graph_after_edits_and_after_edits_that_fail() -> Result<()> {
    let mut graph = Graph::new();
    let mirror = Mirror::of(&mut graph);
    let x = graph.placeholder("x")?;
    let a = graph.call_function(operator::neg, (x,), ())?;
    let b = graph.call_function(operator::add, (a, x), [("unused", a)])?;
    graph.output(b)?;
    mirror.check(&graph);

    let failed = graph.edit(|graph| {
        let c = graph
            .inserting_after(a)?
            .call_function(operator::abs, (a,), ())?;
        graph
            .node_mut(a)?
            .replace_uses_with_filter(c, |user| user.id() != c)?;
        graph.node_mut(b)?.set_kwargs(())?;
        graph.node_mut(b)?.set_op(Op::CallFunction(operator::sub))?;
        graph.node_mut(b)?.rename("difference");
        graph.node_mut(x)?.set_type_expr(Some("Int"));
        graph.node_mut(x)?.set_meta(Stage(1));
        graph.node_mut(b)?.append(c)?;
        mirror.check(graph);
        graph.sort()?;
        mirror.check(graph);
        let d = graph.call_function(operator::neg, (c,), ())?;
        graph.erase_node(d)?;
        mirror.check(graph);
        Err::<(), Error>(Error::msg("no"))
    });
    assert!(failed.is_err());
    mirror.check(&graph);
    mirror.check_replaced();

    graph.node_mut(a)?.replace_all_uses_with(x)?;
    graph.erase_node(a)?;
    mirror.check(&graph);
    Ok(())
}

#[test]
fn an_observer_that_panics_while_an_edit_is_taken_back_does_not_stop_it() -> Result<()> {
    struct Panicky;
    impl GraphObserver for Panicky {
        fn erased(&self, _: NodeRef<'_>) {
            panic!("not this one");
        }
    }
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.observe(Arc::new(Panicky));
    let before = super::state::state(&graph);
    let edit = std::panic::AssertUnwindSafe(|| {
        graph.edit(|graph| {
            graph.call_function(operator::neg, (x,), ())?;
            graph.call_function(operator::abs, (x,), ())?;
            Err::<(), Error>(Error::msg("no"))
        })
    });
    assert!(std::panic::catch_unwind(edit).is_err());
    assert_eq!(super::state::state(&graph), before);
    Ok(())
}
