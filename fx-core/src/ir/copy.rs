//! Copies: of one node, of a whole graph, and of a graph into another in place of a node.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::argument::{Args, Argument};
use super::columns::{Inputs, Notes};
use super::graph::Graph;
use super::node::{NodeMut, NodeRef};
use super::op::Op;
use super::places::{LocationId, ScopeId, Site};
use super::value_meta::ValueMeta;
use crate::error::{Error, Result};
use crate::text::count;
use crate::value::handle::NodeId;

/// The replacements of a copied graph's nodes.
pub type ValueMap = HashMap<NodeId, Argument>;

impl Graph {
    /// Adds a copy of a node of this or another graph, with its name (numbered if taken), type,
    /// source location, modules, and the entries whose policy says so. `map` supplies its
    /// arguments. Computed entries (shapes) are copied if the new arguments are known to match the
    /// original ones.
    ///
    /// # Errors
    /// Returns an error if a mapped argument is not in this graph.
    pub fn node_copy(
        &mut self,
        node: NodeRef<'_>,
        mut map: impl FnMut(NodeId) -> Argument,
    ) -> Result<NodeId> {
        let mut gives_same = true;
        let inputs = mapped_inputs(node, &mut |id| {
            let mapped = map(id);
            let is_alike = || match node.graph().node(id) {
                Ok(input) => mapped == Argument::Node(id) || self.gives_same(&mapped, input),
                Err(_) => false,
            };
            gives_same = gives_same && (!node.graph().knows_anything() || is_alike());
            mapped
        });
        let kwargs = inputs.kwargs.map(Arc::unwrap_or_clone).unwrap_or_default();
        let inputs = self.checked_inputs(inputs.args, kwargs)?;
        Copier::new(node.graph()).copy(self, node, inputs, gives_same)
    }

    /// Adds copies of all nodes of another graph except its output, and returns the copied output
    /// value.
    ///
    /// Nodes already in `map` are not copied; their mapped arguments are used. Afterwards `map`
    /// contains every node.
    ///
    /// # Errors
    /// Returns an error if `map` names nodes that are not in this graph, or the other graph is out
    /// of order.
    pub fn graph_copy(&mut self, other: &Graph, map: &mut ValueMap) -> Result<Option<Argument>> {
        let mut table: Vec<Option<Argument>> = vec![None; other.heads.len()];
        for (id, arg) in map.iter() {
            self.check_argument(arg)?;
            table[other.index(*id)? as usize] = Some(arg.clone());
        }
        other.check_order(&table)?;
        let mut copier = Copier::new(other);
        for id in map.keys() {
            copier.note_given(self, other.node(*id)?, &table);
        }
        let result = self.copy_all(&mut copier, &mut table)?;
        for node in other.nodes() {
            if let Some(arg) = table[node.index as usize].take() {
                map.insert(node.id(), arg);
            }
        }
        Ok(result)
    }

    /// Copies of some nodes, in order, as a graph of `inputs`, which become placeholders of their
    /// names; with the results, to be returned by an output node. `describe` adds to each
    /// placeholder what is known of its input.
    ///
    /// # Errors
    /// Returns an error if an id is not in this graph.
    pub(crate) fn part(
        &self,
        inputs: &[NodeId],
        nodes: &[NodeId],
        results: &[Argument],
        describe: impl Fn(&mut NodeMut<'_>, NodeRef<'_>),
    ) -> Result<(Graph, Vec<Argument>)> {
        let mut part = Graph::with_capacity(inputs.len() + nodes.len() + 1);
        let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        copies.reserve(inputs.len() + nodes.len());
        for input in inputs {
            let node = self.node(*input)?;
            let placeholder = part.placeholder(&node.name().to_string())?;
            describe(&mut part.node_mut(placeholder)?, node);
            copies.insert(*input, placeholder);
        }
        let now = |copies: &FxHashMap<NodeId, NodeId>, id: NodeId| {
            let copy = copies.get(&id).copied();
            copy.map_or(Argument::None, Argument::Node)
        };
        let mut copier = Copier::new(self);
        for id in nodes {
            let node = self.node(*id)?;
            let inputs = mapped_inputs(node, &mut |input| now(&copies, input));
            // The inputs stand for the same values, so that what is known of the nodes stays true.
            copies.insert(*id, copier.copy(&mut part, node, inputs, true)?);
        }
        let results = results.iter();
        let results = results.map(|result| result.map_nodes(&mut |id| now(&copies, id)));
        Ok((part, results.collect()))
    }

    /// A copy whose nodes are stored in the order of the graph. It has new ids; [`Clone`] keeps
    /// them.
    ///
    /// # Errors
    /// Returns an error if the graph is out of order.
    pub fn compact(&self) -> Result<Graph> {
        let mut copy = Graph::with_capacity(self.len());
        let mut table = vec![None; self.heads.len()];
        let result = copy.copy_all(&mut Copier::new(self), &mut table)?;
        if let (Some(result), Some(output)) = (result, self.output_node()) {
            let inputs = Inputs {
                args: Args::from_iter([result]),
                kwargs: None,
            };
            Copier::new(self).copy(&mut copy, output, inputs, true)?;
        }
        Ok(copy)
    }

    /// Rejects a node with an input that is neither in the table nor before the node.
    fn check_order(&self, table: &[Option<Argument>]) -> Result<()> {
        for node in self.nodes().filter(|node| table[node.index()].is_none()) {
            let missing = node.all_input_nodes().find(|input| {
                let is_copied =
                    *input.op() != Op::Output && self.order.is_before(input.index, node.index);
                table[input.index()].is_none() && !is_copied
            });
            if let Some(missing) = missing {
                return Err(out_of_order(node, missing));
            }
        }
        Ok(())
    }

    /// Copies every node except the output and those in the table, and fills the table, by index.
    fn copy_all(
        &mut self,
        copier: &mut Copier<'_>,
        table: &mut [Option<Argument>],
    ) -> Result<Option<Argument>> {
        let other = copier.other;
        let mut result = None;
        for node in other.nodes() {
            if table[node.index as usize].is_some() {
                continue;
            }
            let mut missing = None;
            let inputs = mapped_inputs(node, &mut |id| {
                table[id.index as usize].clone().unwrap_or_else(|| {
                    missing.get_or_insert(id);
                    Argument::None
                })
            });
            if let Some(id) = missing {
                return Err(out_of_order(node, other.node(id)?));
            }
            if *node.op() == Op::Output {
                result = Some(inputs.args.into_iter().next().unwrap_or(Argument::None));
                continue;
            }
            let gives_same = copier.gives_same(node);
            let copy = copier.copy(self, node, inputs, gives_same)?;
            table[node.index as usize] = Some(Argument::Node(copy));
        }
        Ok(result)
    }

    /// Replaces a node by another graph's computation. The graph's inputs are the node's arguments,
    /// by position or name, or their own defaults. Its result replaces the node
    /// ([`substitute`](Graph::substitute)), and the node is erased.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// let mut inner = Graph::new();
    /// let a = inner.placeholder("a")?;
    /// let b = inner.placeholder("b")?;
    /// let difference = inner.call_function(operator::sub, (a, b), ())?;
    /// inner.output(difference)?;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let call = graph.call_function(operator::add, (x,), [("b", 1)])?;
    /// graph.output(call)?;
    /// graph.inline(call, &inner)?;
    /// assert_eq!(graph.find_name("sub").map(|node| node.args().len()), Some(2));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// If the graph returns several values, users that take items of the node receive them:
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Argument, Graph};
    /// let mut inner = Graph::new();
    /// let a = inner.placeholder("a")?;
    /// let (less, more) = (inner.call_function(operator::neg, (a,), ())?, inner.call_function(operator::abs, (a,), ())?);
    /// inner.output(vec![less, more])?;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let call = graph.call_method("both", (x,), ())?;
    /// let second = graph.call_function(operator::getitem, (call, 1), ())?;
    /// let output = graph.output(second)?;
    /// graph.inline(call, &inner)?;
    /// let abs = graph.find_name("abs").map(|node| Argument::Node(node.id()));
    /// assert_eq!(graph.node(output)?.args().first(), abs.as_ref());
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit the inputs, the graph has no output, or it
    /// lacks an item that a user takes. Nothing changes then.
    pub fn inline(&mut self, node: NodeId, other: &Graph) -> Result<()> {
        let mut map = self.bound_inputs(node, other)?;
        other.lint()?;
        self.edit(|graph| graph.replace_by_body(node, other, &mut map))
    }

    /// Replaces a call by a graph, whose inputs are in `map`.
    pub(crate) fn replace_by_body(
        &mut self,
        call: NodeId,
        body: &Graph,
        map: &mut ValueMap,
    ) -> Result<()> {
        let result = self.inserting_before(call)?.graph_copy(body, map)?;
        let result = result.ok_or_else(|| {
            Error::region("the graph has no output, so nothing can replace the call")
        })?;
        // The result has the same value as the call.
        if let Some(meta) = self.node(call)?.meta::<ValueMeta>().cloned() {
            self.learn(&result, &meta)?;
        }
        self.substitute(call, &result)?;
        self.erase_node(call)
    }

    /// Maps the inputs of a called graph to a node's arguments.
    fn bound_inputs(&self, node: NodeId, other: &Graph) -> Result<ValueMap> {
        let node = self.node(node)?;
        let fail = |text: String| {
            Err(Error::region(format_args!(
                "inline: %{} {text}",
                node.name()
            )))
        };
        let mut map = ValueMap::default();
        let mut given = node.args().iter();
        let mut named: Vec<(&str, &Argument)> =
            node.kwargs().iter().map(|(k, arg)| (&**k, arg)).collect();
        for input in other.placeholders() {
            let at = named.iter().position(|(name, _)| *name == input.target());
            let argument = match (given.next(), at) {
                (Some(_), Some(_)) => {
                    return fail(format!("gives `{}` twice", input.target()));
                }
                (Some(argument), None) => argument,
                (None, Some(at)) => named.swap_remove(at).1,
                (None, None) => match input.args().first() {
                    Some(default) => default,
                    None => return fail(format!("gives no `{}`", input.target())),
                },
            };
            map.insert(input.id(), argument.clone());
        }
        if given.next().is_some() {
            let (given, inputs) = (node.args().len(), other.placeholders().count());
            let (given, inputs) = (count(given, "argument"), count(inputs, "input"));
            return fail(format!("has {given}, the graph has {inputs}"));
        }
        match named.first() {
            Some((name, _)) => fail(format!("gives `{name}`, which is no input of the graph")),
            None => Ok(map),
        }
    }
}

fn out_of_order(node: NodeRef<'_>, input: NodeRef<'_>) -> Error {
    Error::msg(format_args!(
        "%{} uses %{} before it is computed: sort the graph before copying it",
        node.name(),
        input.name()
    ))
}

/// Copies one graph into another repeatedly, with new inputs each time.
pub(crate) struct Stamp<'o> {
    copier: Copier<'o>,
    /// The replacement of each node in the last copy, by its index.
    table: Vec<Option<Argument>>,
}

impl<'o> Stamp<'o> {
    pub fn new(other: &'o Graph) -> Self {
        Stamp {
            table: vec![None; other.heads.len()],
            copier: Copier::new(other),
        }
    }

    /// Adds a copy to a graph, with `inputs` replacing the placeholders in order.
    ///
    /// # Errors
    /// Returns an error if an input is not in that graph.
    pub fn copy(&mut self, target: &mut Graph, inputs: &[Argument]) -> Result<()> {
        self.copier.forget_target();
        self.table.fill(None);
        for (node, input) in self.copier.other.placeholders().zip(inputs) {
            target.check_argument(input)?;
            self.table[node.index as usize] = Some(input.clone());
            self.copier.note_given(target, node, &self.table);
        }
        target.copy_all(&mut self.copier, &mut self.table)?;
        Ok(())
    }

    /// The replacement of an argument in the last copy.
    pub fn now(&self, argument: &Argument) -> Argument {
        argument.map_nodes(&mut |id| {
            let copied = self.table.get(id.index as usize);
            copied.cloned().flatten().unwrap_or(Argument::None)
        })
    }

    /// The nodes that the last copy created, in order.
    pub fn made(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.copier.other.nodes();
        let made = nodes.filter(|node| !matches!(node.op(), Op::Placeholder(_)));
        made.filter_map(|node| self.table[node.index as usize].as_ref()?.as_node())
    }
}

/// A node's arguments with its inputs mapped.
pub(super) fn mapped_inputs(node: NodeRef<'_>, map: &mut dyn FnMut(NodeId) -> Argument) -> Inputs {
    let Inputs { args, kwargs } = node.graph().inputs_of(node.index);
    Inputs {
        args: args
            .iter()
            .map(|arg| match arg {
                Argument::Node(id) => map(*id),
                arg => arg.map_nodes(map),
            })
            .collect(),
        kwargs: kwargs.as_ref().map(|kwargs| {
            let mapped = kwargs
                .iter()
                .map(|(k, arg)| (k.clone(), arg.map_nodes(map)));
            Arc::new(mapped.collect())
        }),
    }
}

/// Copies nodes of one graph, caching their ops and places in the other.
struct Copier<'o> {
    other: &'o Graph,
    ops: FxHashMap<u32, u32>,
    last_op: Option<(u32, u32)>,
    locations: FxHashMap<LocationId, LocationId>,
    last_location: (LocationId, LocationId),
    scopes: FxHashMap<ScopeId, ScopeId>,
    last_scope: Option<(ScopeId, ScopeId)>,
    /// Whether anything is known about the other graph's values.
    knows: bool,
    /// Nodes whose copies may have other values, because their inputs were replaced.
    changed: FxHashSet<u32>,
}

impl<'o> Copier<'o> {
    fn new(other: &'o Graph) -> Self {
        Copier {
            knows: other.knows_anything(),
            other,
            ops: FxHashMap::default(),
            last_op: None,
            locations: FxHashMap::default(),
            last_location: Default::default(),
            scopes: FxHashMap::default(),
            last_scope: None,
            changed: FxHashSet::default(),
        }
    }

    /// Forgets scopes, which are below the target's current one, and inputs: both have changed.
    fn forget_target(&mut self) {
        self.scopes.clear();
        self.last_scope = None;
        self.changed.clear();
    }

    /// Notes that a node is replaced: its dependents have other values, unless both are known to be
    /// alike.
    fn note_given(&mut self, target: &Graph, node: NodeRef<'_>, table: &[Option<Argument>]) {
        if !self.knows {
            return;
        }
        let given = table[node.index as usize].as_ref();
        if !given.is_some_and(|given| target.gives_same(given, node)) {
            self.changed.insert(node.index);
        }
    }

    /// Whether a copy of a node has the same value as the node, as far as the inputs show.
    fn gives_same(&mut self, node: NodeRef<'_>) -> bool {
        if self.changed.is_empty() {
            return true;
        }
        let mut inputs = self.other.uses().inputs(node.index);
        let is_changed = inputs.any(|input| self.changed.contains(&input));
        if is_changed {
            self.changed.insert(node.index);
        }
        !is_changed
    }

    /// Adds a copy of a node with these inputs of the target, and with its shape if `gives_same`.
    fn copy(
        &mut self,
        target: &mut Graph,
        node: NodeRef<'_>,
        inputs: Inputs,
        gives_same: bool,
    ) -> Result<NodeId> {
        let notes = self.other.notes_of(node.index);
        let notes = Notes {
            location: self.location(target, notes.location),
            scope: self.scope(target, notes.scope),
            type_expr: notes.type_expr.clone(),
            extra: notes
                .extra
                .as_ref()
                .and_then(|extra| extra.copied(gives_same)),
        };
        let op = self.op(target, self.other.heads[node.index as usize].op)?;
        let name = target.names.create_like(node.name());
        let name = target.note_named(name);
        target.push(op, inputs, name, notes)
    }

    fn op(&mut self, target: &mut Graph, theirs: u32) -> Result<u32> {
        if let Some((last, own)) = self.last_op
            && last == theirs
        {
            return Ok(own);
        }
        let own = match self.ops.get(&theirs) {
            Some(own) => *own,
            None => {
                let op = self.other.ops.get_index(theirs as usize).cloned();
                let own = target.intern(op.unwrap_or(Op::Output))?;
                self.ops.insert(theirs, own);
                own
            }
        };
        self.last_op = Some((theirs, own));
        Ok(own)
    }

    fn location(&mut self, target: &mut Graph, theirs: LocationId) -> LocationId {
        if self.last_location.0 != theirs {
            let own = self.locations.entry(theirs).or_insert_with(|| {
                let found = self.other.location_of(theirs);
                target.places.site(found.map_or(Site::Unknown, Site::Kept))
            });
            self.last_location = (theirs, *own);
        }
        self.last_location.1
    }

    /// The counterpart of the other graph's scope in the target, below the target's current one.
    fn scope(&mut self, target: &mut Graph, theirs: ScopeId) -> ScopeId {
        if let Some((last, own)) = self.last_scope
            && last == theirs
        {
            return own;
        }
        let former = target.scope_id();
        let mut chain = Vec::new();
        let mut at = theirs;
        let mut own = former;
        while let Some(found) = self.other.scope_of(at) {
            if let Some(known) = self.scopes.get(&at) {
                own = *known;
                break;
            }
            chain.push((at, found.clone()));
            at = found.parent;
        }
        for (id, found) in chain.into_iter().rev() {
            target.leave_scope(own);
            target.enter_scope(found.path, found.type_name, found.call);
            own = target.scope_id();
            self.scopes.insert(id, own);
        }
        target.leave_scope(former);
        self.last_scope = Some((theirs, own));
        own
    }
}
