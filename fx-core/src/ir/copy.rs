//! Copies: of one node, of a whole graph, and of one graph into another at a node.

use rustc_hash::FxHashMap;

use super::argument::{Args, Argument, Kwargs};
use super::graph::Graph;
use super::node::NodeRef;
use super::op::Op;
use super::places::{ScopeId, Site};
use crate::error::{Error, Result};
use crate::value::handle::NodeId;

/// What the nodes of a copied graph became.
pub type ValueMap = FxHashMap<NodeId, Argument>;

impl Graph {
    /// Adds a copy of a node of this or another graph: name (with a number where it is taken), type, place
    /// in the source and in the modules, and entries whose policy says so. `map` gives its arguments.
    ///
    /// # Errors
    /// When a mapped argument is not of this graph.
    pub fn node_copy(
        &mut self,
        node: NodeRef<'_>,
        mut map: impl FnMut(NodeId) -> Argument,
    ) -> Result<NodeId> {
        self.copy_node(node, &mut map, &mut FxHashMap::default())
    }

    /// Adds copies of all nodes of another graph but its output, and gives what the output returned.
    ///
    /// Nodes that are in `map` already are not copied: what `map` says stands for them. Afterwards `map`
    /// has every node.
    ///
    /// # Errors
    /// When `map` names nodes that are not of this graph, or the other graph is out of order.
    pub fn graph_copy(&mut self, other: &Graph, map: &mut ValueMap) -> Result<Option<Argument>> {
        let mut scopes = FxHashMap::default();
        map.reserve(other.len());
        let mut result = None;
        for node in other.nodes() {
            if map.contains_key(&node.id()) {
                continue;
            }
            if *node.op() == Op::Output {
                let returned = node.args().first().cloned().unwrap_or(Argument::None);
                let mut missing = None;
                let mapped = returned.map_nodes(&mut |id| mapped(map, id, &mut missing));
                refuse_missing(other, node, missing)?;
                result = Some(mapped);
                continue;
            }
            let mut missing = None;
            let copy = self.copy_node(node, &mut |id| mapped(map, id, &mut missing), &mut scopes);
            refuse_missing(other, node, missing)?;
            map.insert(node.id(), Argument::Node(copy?));
        }
        Ok(result)
    }

    /// A copy whose nodes lie in memory in the order of the graph. Ids are new; [`Clone`] keeps them.
    ///
    /// # Errors
    /// When the graph is out of order.
    pub fn compact(&self) -> Result<Graph> {
        let mut copy = Graph::new();
        let result = copy.graph_copy(self, &mut ValueMap::default())?;
        if let (Some(result), Some(output)) = (result, self.output_node()) {
            let scopes = &mut FxHashMap::default();
            let id = copy.copy_node(output, &mut |_| Argument::None, scopes)?;
            copy.node_mut(id)?.set_args((result,))?;
        }
        Ok(copy)
    }

    /// Puts another graph's computation in the place of a node: its inputs are the node's arguments in
    /// order, its result is used where the node was, and the node is erased.
    ///
    /// # Errors
    /// When the numbers of inputs and arguments differ, or the result is no node; nothing is added then
    /// but unused copies.
    pub fn inline(&mut self, node: NodeId, other: &Graph) -> Result<()> {
        let args: Vec<Argument> = self.node(node)?.args().to_vec();
        let inputs: Vec<NodeId> = other.placeholders().map(|n| n.id()).collect();
        if inputs.len() != args.len() {
            return Err(Error::msg(format_args!(
                "inline: the graph has {} inputs, %{} has {} arguments",
                inputs.len(),
                self.node(node)?.name(),
                args.len()
            )));
        }
        let mut map: ValueMap = inputs.into_iter().zip(args).collect();
        let result = self.inserting_before(node)?.graph_copy(other, &mut map)?;
        let Some(Argument::Node(result)) = result else {
            return Err(Error::msg(
                "inline: the graph's result is not one node, so nothing can stand for it",
            ));
        };
        self.node_mut(node)?.replace_all_uses_with(result)?;
        self.erase_node(node)
    }

    fn copy_node(
        &mut self,
        node: NodeRef<'_>,
        map: &mut dyn FnMut(NodeId) -> Argument,
        scopes: &mut FxHashMap<ScopeId, ScopeId>,
    ) -> Result<NodeId> {
        let other = node.graph();
        let args: Args = node
            .args()
            .iter()
            .map(|arg| match arg {
                Argument::Node(id) => map(*id),
                arg => arg.map_nodes(map),
            })
            .collect();
        let kwargs: Kwargs = node
            .kwargs()
            .iter()
            .map(|(k, arg)| (k.clone(), arg.map_nodes(map)))
            .collect();
        let notes = other.notes_of(node.index);
        let former = self.scope_id();
        let scope = self.adopt_scope(other, notes.scope, scopes);
        self.leave_scope(scope);
        let site = other
            .location_of(notes.location)
            .map_or(Site::Unknown, Site::Kept);
        let name = node.name();
        let added = self.insert_named(node.op().clone(), args, kwargs, name, site);
        self.leave_scope(former);
        let id = added?;
        let (type_expr, extra) = (notes.type_expr.clone(), notes.extra.as_ref());
        let extra = extra.and_then(|extra| extra.copied());
        let own = self.notes_of_mut(id.index);
        own.type_expr = type_expr;
        if extra.is_some() {
            own.extra = extra;
        }
        Ok(id)
    }

    /// The scope of another graph in this one.
    fn adopt_scope(
        &mut self,
        other: &Graph,
        scope: ScopeId,
        known: &mut FxHashMap<ScopeId, ScopeId>,
    ) -> ScopeId {
        let mut chain = Vec::new();
        let mut at = scope;
        let mut base = self.scope_id();
        while let Some(found) = other.scope_of(at) {
            if let Some(done) = known.get(&at) {
                base = *done;
                break;
            }
            chain.push((at, found.clone()));
            at = found.parent;
        }
        for (theirs, found) in chain.into_iter().rev() {
            self.leave_scope(base);
            self.enter_scope(found.path, found.type_name);
            base = self.scope_id();
            known.insert(theirs, base);
        }
        base
    }
}

fn mapped(map: &ValueMap, id: NodeId, missing: &mut Option<NodeId>) -> Argument {
    match map.get(&id) {
        Some(arg) => arg.clone(),
        None => {
            missing.get_or_insert(id);
            Argument::None
        }
    }
}

fn refuse_missing(other: &Graph, node: NodeRef<'_>, missing: Option<NodeId>) -> Result<()> {
    let Some(id) = missing else {
        return Ok(());
    };
    let name = other.node(id).map(|n| n.name().to_string());
    Err(Error::msg(format_args!(
        "%{} uses %{} before it is computed: sort the graph before copying it",
        node.name(),
        name.unwrap_or_default()
    )))
}
