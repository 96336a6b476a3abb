//! Random edits on a `Graph` and on a model of plain lists, compared after every step.

use std::fmt::Write;

use fx_core::ErrorKind;
use fx_core::ir::{Argument, Graph, NodeRef, Op};
use fx_core::prelude::*;
use fx_core::value::NodeId;
use proptest::prelude::*;

/// An argument whose nodes are chosen by number when it is used.
#[derive(Debug, Clone)]
enum Shape {
    Node(usize),
    Int(i64),
    List(Vec<Shape>),
    Tuple(Vec<Shape>),
}

#[derive(Debug, Clone)]
enum Place {
    End,
    Front,
    Before(usize),
    After(usize),
}

#[derive(Debug, Clone)]
enum Edit {
    Create(Place, Vec<Shape>, Vec<Shape>),
    SetArgs(usize, Vec<Shape>),
    SetKwargs(usize, Vec<Shape>),
    UpdateArg(usize, usize, Shape),
    Replace(usize, usize),
    Erase(usize),
    InsertArg(usize, usize, Shape),
    ReplaceInput(usize, usize, usize),
    Prepend(usize, usize),
    Append(usize, usize),
    Rename(usize),
    Sort,
    Copy,
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        4 => any::<usize>().prop_map(Shape::Node),
        1 => (-9i64..9).prop_map(Shape::Int),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Shape::List),
            prop::collection::vec(inner, 0..3).prop_map(Shape::Tuple),
        ]
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    // Now and then a node has many arguments.
    let shapes = || {
        prop_oneof![
            12 => prop::collection::vec(shape(), 0..4),
            1 => prop::collection::vec(shape(), 40..50),
        ]
    };
    let place = prop_oneof![
        Just(Place::End),
        Just(Place::Front),
        any::<usize>().prop_map(Place::Before),
        any::<usize>().prop_map(Place::After),
    ];
    let at = any::<usize>;
    prop_oneof![
        6 => (place, shapes(), shapes()).prop_map(|(p, a, k)| Edit::Create(p, a, k)),
        2 => (at(), shapes()).prop_map(|(n, a)| Edit::SetArgs(n, a)),
        1 => (at(), shapes()).prop_map(|(n, a)| Edit::SetKwargs(n, a)),
        2 => (at(), 0usize..4, shape()).prop_map(|(n, i, a)| Edit::UpdateArg(n, i, a)),
        2 => (at(), at()).prop_map(|(a, b)| Edit::Replace(a, b)),
        3 => at().prop_map(Edit::Erase),
        1 => (at(), 0usize..4, shape()).prop_map(|(n, i, a)| Edit::InsertArg(n, i, a)),
        1 => (at(), at(), at()).prop_map(|(n, a, b)| Edit::ReplaceInput(n, a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Edit::Prepend(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Edit::Append(a, b)),
        1 => at().prop_map(Edit::Rename),
        1 => Just(Edit::Sort),
        1 => Just(Edit::Copy),
    ]
}

#[derive(Debug, Clone)]
struct ModelNode {
    id: NodeId,
    name: String,
    args: Vec<Argument>,
    kwargs: Vec<Argument>,
    users: Vec<NodeId>,
}

impl ModelNode {
    fn inputs(&self) -> Vec<NodeId> {
        let mut found = Vec::new();
        for arg in self.args.iter().chain(&self.kwargs) {
            collect(arg, &mut found);
        }
        found
    }
}

/// The nodes in an argument, each once, in order.
fn collect(arg: &Argument, found: &mut Vec<NodeId>) {
    match arg {
        Argument::Node(id) if !found.contains(id) => found.push(*id),
        Argument::List(items) | Argument::Tuple(items) => {
            items.iter().for_each(|a| collect(a, found));
        }
        _ => {}
    }
}

fn substitute(arg: &Argument, old: NodeId, new: NodeId) -> Argument {
    let all = |items: &[Argument]| items.iter().map(|a| substitute(a, old, new)).collect();
    match arg {
        Argument::Node(id) if *id == old => Argument::Node(new),
        Argument::List(items) => Argument::List(std::sync::Arc::new(all(items))),
        Argument::Tuple(items) => Argument::Tuple(std::sync::Arc::new(all(items))),
        other => other.clone(),
    }
}

#[derive(Debug, Clone, Default)]
struct Model {
    nodes: Vec<ModelNode>,
    erased: Vec<NodeId>,
    created: usize,
}

impl Model {
    fn argument(&self, shape: &Shape) -> Argument {
        let all = |items: &[Shape]| items.iter().map(|s| self.argument(s)).collect();
        match shape {
            Shape::Node(n) if self.nodes.is_empty() => Argument::Int(*n as i64),
            Shape::Node(n) => Argument::Node(self.nodes[n % self.nodes.len()].id),
            Shape::Int(n) => Argument::Int(*n),
            Shape::List(items) => Argument::List(std::sync::Arc::new(all(items))),
            Shape::Tuple(items) => Argument::Tuple(std::sync::Arc::new(all(items))),
        }
    }

    fn arguments(&self, shapes: &[Shape]) -> Vec<Argument> {
        shapes.iter().map(|s| self.argument(s)).collect()
    }

    fn at(&self, id: NodeId) -> usize {
        let position = self.nodes.iter().position(|n| n.id == id);
        position.expect("the model has the node")
    }

    /// Sets a node's arguments; a kept input keeps its place among its users.
    fn set(&mut self, at: usize, args: Vec<Argument>, kwargs: Vec<Argument>) {
        let user = self.nodes[at].id;
        let old = self.nodes[at].inputs();
        (self.nodes[at].args, self.nodes[at].kwargs) = (args, kwargs);
        let new = self.nodes[at].inputs();
        for gone in old.iter().filter(|id| !new.contains(id)) {
            let def = self.at(*gone);
            self.nodes[def].users.retain(|u| *u != user);
        }
        for come in new.iter().filter(|id| !old.contains(id)) {
            let def = self.at(*come);
            self.nodes[def].users.push(user);
        }
    }

    fn insert(&mut self, at: usize, id: NodeId, args: Vec<Argument>, kwargs: Vec<Argument>) {
        let name = match self.created {
            0 => "m".to_string(),
            n => format!("m_{n}"),
        };
        self.created += 1;
        let node = ModelNode {
            id,
            name,
            args: Vec::new(),
            kwargs: Vec::new(),
            users: Vec::new(),
        };
        self.nodes.insert(at, node);
        self.set(at, args, kwargs);
    }

    fn replace(&mut self, old: NodeId, new: NodeId) -> Vec<NodeId> {
        let users = self.nodes[self.at(old)].users.clone();
        let users: Vec<NodeId> = users.into_iter().filter(|u| *u != new).collect();
        for user in &users {
            self.substitute_in(self.at(*user), old, new);
        }
        users
    }

    fn substitute_in(&mut self, at: usize, old: NodeId, new: NodeId) {
        let all = |args: &[Argument]| args.iter().map(|a| substitute(a, old, new)).collect();
        let (args, kwargs) = (all(&self.nodes[at].args), all(&self.nodes[at].kwargs));
        self.set(at, args, kwargs);
    }

    /// Moves node `from` next to node `to`: before it (0), or after it (1).
    fn relocate(&mut self, graph: &mut Graph, to: usize, from: usize, after: usize) -> Result<()> {
        let (anchor, moved) = (self.nodes[to].id, self.nodes[from].id);
        match after {
            0 => graph.node_mut(anchor)?.prepend(moved)?,
            _ => graph.node_mut(anchor)?.append(moved)?,
        }
        if anchor != moved {
            let node = self.nodes.remove(from);
            let at = self.at(anchor) + after;
            self.nodes.insert(at, node);
        }
        Ok(())
    }

    /// Repeatedly takes the first node, in the current order, whose inputs have all been taken.
    fn sort(&mut self) {
        let mut sorted: Vec<ModelNode> = Vec::new();
        while !self.nodes.is_empty() {
            let came = |id: &NodeId| sorted.iter().any(|n| n.id == *id);
            let next = self
                .nodes
                .iter()
                .position(|n| n.inputs().iter().all(came))
                .expect("the graph was sorted, so there is no circle");
            sorted.push(self.nodes.remove(next));
        }
        self.nodes = sorted;
    }

    /// Whether a node is among others, or depends on one of them directly or indirectly.
    fn depends_on(&self, node: NodeId, others: &[NodeId]) -> bool {
        let mut seen = vec![node];
        let mut pending = vec![node];
        while let Some(id) = pending.pop() {
            if others.contains(&id) {
                return true;
            }
            for input in self.nodes[self.at(id)].inputs() {
                if !seen.contains(&input) {
                    seen.push(input);
                    pending.push(input);
                }
            }
        }
        false
    }

    /// Whether a node with these arguments would depend on itself; a result must report that.
    fn is_refused<T: std::fmt::Debug>(
        &self,
        result: &Result<T>,
        user: NodeId,
        args: &[Argument],
    ) -> bool {
        let mut inputs = Vec::new();
        args.iter().for_each(|arg| collect(arg, &mut inputs));
        let cycle = inputs.iter().any(|input| self.depends_on(*input, &[user]));
        self.says_cycle(result, cycle);
        cycle
    }

    fn says_cycle<T: std::fmt::Debug>(&self, result: &Result<T>, cycle: bool) {
        let is_cycle = |error: &Error| matches!(error.kind(), ErrorKind::Cycle { .. });
        assert_eq!(result.as_ref().is_err_and(is_cycle), cycle, "{result:?}");
    }

    fn show(&self, arg: &Argument) -> String {
        let all =
            |items: &[Argument]| -> Vec<String> { items.iter().map(|a| self.show(a)).collect() };
        match arg {
            Argument::Node(id) => format!("%{}", self.nodes[self.at(*id)].name),
            Argument::Int(n) => n.to_string(),
            Argument::List(items) => format!("[{}]", all(items).join(", ")),
            Argument::Tuple(items) => tuple(&all(items)),
            other => format!("{other:?}"),
        }
    }

    fn print(&self) -> String {
        let mut text = "graph():".to_string();
        for node in &self.nodes {
            let args: Vec<String> = node.args.iter().map(|a| self.show(a)).collect();
            let kwargs: Vec<String> = node
                .kwargs
                .iter()
                .enumerate()
                .map(|(i, a)| format!("k{i}: {}", self.show(a)))
                .collect();
            let _ = write!(
                text,
                "\n    %{} : [num_users={}] = call_method[target=m](args = {}, kwargs = {{{}}})",
                node.name,
                node.users.len(),
                tuple(&args),
                kwargs.join(", ")
            );
        }
        text
    }

    fn apply(&mut self, graph: &mut Graph, edit: &Edit) -> Result<()> {
        let count = self.nodes.len();
        match edit {
            Edit::Create(place, args, kwargs) => {
                let (args, kwargs) = (self.arguments(args), self.arguments(kwargs));
                let named = keywords(&kwargs);
                let (at, id) = match place {
                    Place::Before(n) if count > 0 => {
                        let node = self.nodes[n % count].id;
                        let mut guard = graph.inserting_before(node)?;
                        (n % count, guard.call_method("m", args.clone(), named)?)
                    }
                    Place::After(n) if count > 0 => {
                        let node = self.nodes[n % count].id;
                        let mut guard = graph.inserting_after(node)?;
                        (n % count + 1, guard.call_method("m", args.clone(), named)?)
                    }
                    Place::Front => {
                        let mut guard = graph.inserting_before(None)?;
                        (0, guard.call_method("m", args.clone(), named)?)
                    }
                    _ => (count, graph.call_method("m", args.clone(), named)?),
                };
                self.insert(at, id, args, kwargs);
            }
            Edit::Erase(n) if count > 0 => {
                let at = n % count;
                let node = self.nodes[at].clone();
                let result = graph.erase_node(node.id);
                assert_eq!(
                    result.is_ok(),
                    node.users.is_empty(),
                    "erasing {}",
                    node.name
                );
                if result.is_ok() {
                    self.set(at, Vec::new(), Vec::new());
                    self.nodes.remove(at);
                    self.erased.push(node.id);
                }
            }
            Edit::SetArgs(n, args) if count > 0 => {
                let (at, args) = (n % count, self.arguments(args));
                let id = self.nodes[at].id;
                let result = graph.node_mut(id)?.set_args(args.clone());
                if !self.is_refused(&result, id, &args) {
                    result?;
                    let kwargs = self.nodes[at].kwargs.clone();
                    self.set(at, args, kwargs);
                }
            }
            Edit::SetKwargs(n, kwargs) if count > 0 => {
                let (at, kwargs) = (n % count, self.arguments(kwargs));
                let named = keywords(&kwargs);
                let id = self.nodes[at].id;
                let result = graph.node_mut(id)?.set_kwargs(named);
                if !self.is_refused(&result, id, &kwargs) {
                    result?;
                    let args = self.nodes[at].args.clone();
                    self.set(at, args, kwargs);
                }
            }
            Edit::UpdateArg(n, i, arg) if count > 0 => {
                let (at, arg) = (n % count, self.argument(arg));
                let id = self.nodes[at].id;
                let (mut args, kwargs) =
                    (self.nodes[at].args.clone(), self.nodes[at].kwargs.clone());
                // A place deep in the middle of many, too.
                let i = match args.len() > 8 {
                    true => i * args.len() / 4,
                    false => *i,
                };
                let result = graph.node_mut(id)?.update_arg(i, arg.clone());
                match args.get_mut(i) {
                    Some(slot) => {
                        if !self.is_refused(&result, id, std::slice::from_ref(&arg)) {
                            result?;
                            *slot = arg;
                            self.set(at, args, kwargs);
                        }
                    }
                    None => assert!(result.is_err()),
                }
            }
            Edit::Replace(a, b) if count > 0 => {
                let (old, new) = (self.nodes[a % count].id, self.nodes[b % count].id);
                let users = self.nodes[self.at(old)].users.iter().copied();
                let users: Vec<NodeId> = users.filter(|user| *user != new).collect();
                let result = graph.node_mut(old)?.replace_all_uses_with(new);
                let cycle = old != new && self.depends_on(new, &users);
                self.says_cycle(&result, cycle);
                if !cycle {
                    match old == new {
                        true => assert_eq!(result?, []),
                        false => assert_eq!(result?, self.replace(old, new)),
                    }
                }
            }
            Edit::InsertArg(n, i, arg) if count > 0 => {
                let (at, arg) = (n % count, self.argument(arg));
                let (mut args, kwargs) =
                    (self.nodes[at].args.clone(), self.nodes[at].kwargs.clone());
                let id = self.nodes[at].id;
                let result = graph.node_mut(id)?.insert_arg(*i, arg.clone());
                if *i > args.len() {
                    assert!(result.is_err());
                } else if !self.is_refused(&result, id, std::slice::from_ref(&arg)) {
                    result?;
                    args.insert(*i, arg);
                    self.set(at, args, kwargs);
                }
            }
            Edit::ReplaceInput(n, a, b) if count > 0 => {
                let (at, old, new) = (
                    n % count,
                    self.nodes[a % count].id,
                    self.nodes[b % count].id,
                );
                let id = self.nodes[at].id;
                let result = graph.node_mut(id)?.replace_input_with(old, new);
                let changes = self.nodes[at].inputs().contains(&old) && old != new;
                let cycle = changes && self.depends_on(new, &[id]);
                self.says_cycle(&result, cycle);
                if !cycle {
                    result?;
                }
                if changes && !cycle {
                    self.substitute_in(at, old, new);
                }
            }
            Edit::Prepend(a, b) if count > 0 => self.relocate(graph, a % count, b % count, 0)?,
            Edit::Append(a, b) if count > 0 => self.relocate(graph, a % count, b % count, 1)?,
            Edit::Rename(n) if count > 0 => {
                let node = &mut self.nodes[n % count];
                graph.node_mut(node.id)?.rename("renamed");
                node.name = graph.node(node.id)?.name().to_string();
                assert!(node.name.starts_with("renamed"));
            }
            Edit::Sort => {
                graph.sort()?;
                self.sort();
            }
            Edit::Copy => *graph = graph.clone(),
            _ => {}
        }
        Ok(())
    }

    fn compare(&self, graph: &Graph) -> Result<()> {
        let ids = |nodes: &mut dyn Iterator<Item = NodeRef<'_>>| -> Vec<NodeId> {
            nodes.map(|n| n.id()).collect()
        };
        let order: Vec<NodeId> = self.nodes.iter().map(|n| n.id).collect();
        assert_eq!(ids(&mut graph.nodes()), order);
        let reversed: Vec<NodeId> = order.iter().rev().copied().collect();
        assert_eq!(ids(&mut graph.nodes().rev()), reversed);
        assert_eq!(graph.len(), order.len());
        for node in &self.nodes {
            let found = graph.node(node.id)?;
            assert_eq!(
                ids(&mut found.users()),
                node.users,
                "users of {}",
                node.name
            );
            assert_eq!(found.num_users(), node.users.len());
            assert_eq!(
                ids(&mut found.all_input_nodes()),
                node.inputs(),
                "inputs of {}",
                node.name
            );
        }
        for (i, a) in order.iter().enumerate() {
            for (j, b) in order.iter().enumerate() {
                assert_eq!(
                    graph.is_before(*a, *b)?,
                    i < j,
                    "nodes {i} and {j} of the order"
                );
            }
        }
        for node in &self.nodes {
            assert_eq!(graph.find_name(&node.name).map(|n| n.id()), Some(node.id));
        }
        let calls = graph.find_nodes(&Op::CallMethod("m".into()));
        assert_eq!(ids(&mut calls.into_iter()), order);
        assert_eq!(graph.to_string(), self.print());
        assert!(self.erased.iter().all(|id| graph.node(*id).is_err()));
        Ok(())
    }
}

fn keywords(args: &[Argument]) -> fx_core::ir::Kwargs {
    let named = args.iter().enumerate();
    named
        .map(|(i, a)| (format!("k{i}").into(), a.clone()))
        .collect()
}

fn tuple(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

/// 96 sequences of edits, or as many as make `FX_GRAPH_STEPS` edits.
fn cases() -> u32 {
    const EDITS: u32 = 20;
    let steps = std::env::var("FX_GRAPH_STEPS").ok();
    steps
        .and_then(|steps| steps.parse::<u32>().ok())
        .map_or(96, |steps| steps / EDITS)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_and_a_model_stay_in_step(edits in prop::collection::vec(edit(), 1..40)) {
        let (mut graph, mut model) = (Graph::new(), Model::default());
        for edit in &edits {
            let step = model.apply(&mut graph, edit).and_then(|()| model.compare(&graph));
            prop_assert!(step.is_ok(), "{edit:?}: {step:?}");
        }
    }
}
