//! Views of one node: `NodeRef` for reading, `NodeMut` for editing.

use std::fmt;
use std::sync::Arc;

use super::argument::{Args, Argument, IntoArguments, IntoKwargs, Kwargs};
use super::graph::Graph;
use super::names::Name;
use super::op::{Op, Opcode};
use super::order::ROOT;
use super::places::{LocationId, Scope, ScopeId};
use super::registry;
use crate::error::{Error, ErrorKind, Result};
use crate::location::SourceLocation;
use crate::value::handle::NodeId;

/// A node, for reading.
#[derive(Clone, Copy)]
pub struct NodeRef<'g> {
    graph: &'g Graph,
    pub(super) index: u32,
}

impl From<NodeRef<'_>> for NodeId {
    fn from(node: NodeRef<'_>) -> Self {
        node.id()
    }
}

impl<'g> NodeRef<'g> {
    pub(super) fn new(graph: &'g Graph, index: u32) -> Self {
        NodeRef { graph, index }
    }

    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    /// Its id.
    pub fn id(self) -> NodeId {
        self.graph.id_of(self.index)
    }

    /// Its graph.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Its name, without `%`.
    pub fn name(self) -> Name<'g> {
        self.graph.name_of(self.index)
    }

    /// Its opcode and target.
    pub fn op(self) -> &'g Op {
        self.graph.op_of(self.index)
    }

    /// The number of its op in this graph; nodes with the same op have the same number.
    pub(crate) fn op_number(self) -> u32 {
        self.graph.op_number(self.index)
    }

    /// Its opcode.
    pub fn opcode(self) -> Opcode {
        self.op().opcode()
    }

    /// Its target as text.
    pub fn target(self) -> &'g str {
        self.op().target()
    }

    /// Its positional arguments.
    pub fn args(self) -> &'g [Argument] {
        &self.graph.inputs_of(self.index).args
    }

    /// Its keyword arguments, in order.
    pub fn kwargs(self) -> &'g [(Arc<str>, Argument)] {
        match &self.graph.inputs_of(self.index).kwargs {
            Some(kwargs) => kwargs,
            None => &[],
        }
    }

    /// The nodes that use it, in order of first use, each once.
    pub fn users(self) -> impl Iterator<Item = NodeRef<'g>> {
        let graph = self.graph;
        graph
            .uses()
            .users(self.index)
            .map(move |index| NodeRef { graph, index })
    }

    /// How many nodes use it.
    pub fn num_users(self) -> usize {
        self.graph.uses().count(self.index) as usize
    }

    /// The nodes that it uses, in order of first appearance, each once.
    pub fn all_input_nodes(self) -> impl Iterator<Item = NodeRef<'g>> {
        let graph = self.graph;
        graph
            .uses()
            .inputs(self.index)
            .map(move |index| NodeRef { graph, index })
    }

    /// The node after it.
    pub fn next(self) -> Option<NodeRef<'g>> {
        let index = self.graph.order().next(self.index);
        (index != ROOT).then_some(NodeRef { index, ..self })
    }

    /// The node before it.
    pub fn prev(self) -> Option<NodeRef<'g>> {
        let index = self.graph.order().prev(self.index);
        (index != ROOT).then_some(NodeRef { index, ..self })
    }

    /// The user's source location that created it.
    pub fn location(self) -> Option<&'g SourceLocation> {
        self.graph
            .location_of(self.graph.notes_of(self.index).location)
    }

    /// Its position: keys increase along the graph's order.
    pub(crate) fn order_key(self) -> u64 {
        self.graph.order.key(self.index)
    }

    /// The positions of its location and scope in its graph's tables.
    pub(crate) fn places(self) -> (LocationId, ScopeId) {
        let notes = self.graph.notes_of(self.index);
        (notes.location, notes.scope)
    }

    /// The module calls that it was recorded in, innermost first; for a node that calls a module,
    /// starting with that call.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// # #[derive(Module)] struct Scale { by: f64 }
    /// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// # #[derive(Module)] struct Net { scale: Scale }
    /// # #[trace] impl Net { fn forward(&self, x: Float) -> Result<Float> { self.scale.forward(self.scale.forward(x)?) } }
    /// let gm = symbolic_trace(&Net { scale: Scale { by: 2.0 } })?;
    /// let second = gm.graph().find_name("scale_1").ok_or_else(|| Error::msg("called twice"))?;
    /// let stack: Vec<(&str, u32)> = second.module_stack().map(|scope| (&*scope.path, scope.call)).collect();
    /// assert_eq!(stack, [("scale", 1), ("", 0)]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn module_stack(self) -> impl Iterator<Item = &'g Scope> {
        let graph = self.graph;
        let mut at = graph.scope_of(graph.notes_of(self.index).scope);
        std::iter::from_fn(move || {
            let scope = at?;
            at = graph.scope_of(scope.parent);
            Some(scope)
        })
    }

    /// The enclosing modules: [`module_stack`](NodeRef::module_stack) without the module that the
    /// node itself calls.
    pub(crate) fn modules_around(self) -> impl Iterator<Item = &'g Scope> {
        let is_called = |scope: &&Scope| match self.op() {
            // If the module was moved, its path has become longer.
            Op::CallModule(path) => {
                let rest = path.strip_suffix(&*scope.path);
                !scope.path.is_empty()
                    && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            _ => false,
        };
        let mut scopes = self.module_stack().peekable();
        scopes.next_if(is_called);
        scopes
    }

    /// Its type, if it was annotated; an input without one is a tensor.
    pub fn type_expr(self) -> Option<&'g str> {
        self.graph.notes_of(self.index).type_expr.as_deref()
    }

    /// Adds this node, with its name, source line and module, to an error that happened while
    /// working on it. A place that the error already has stays.
    ///
    /// ```
    /// # use fx_core::Error;
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let error = graph.node(x)?.blame("fusing", Error::msg("it is an input"));
    /// assert!(error.to_string().starts_with("while fusing %x"));
    /// assert_eq!(error.node(), Some("x"));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn blame(self, doing: &'static str, error: Error) -> Error {
        error.at(
            doing,
            format_args!("%{}", self.name()),
            self.location().cloned(),
            self.modules_around()
                .next()
                .map(|s| s.path.to_string())
                .filter(|path| !path.is_empty()),
        )
    }
}

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.name())
    }
}

/// A node, for editing.
#[derive(Debug)]
pub struct NodeMut<'g> {
    graph: &'g mut Graph,
    index: u32,
}

impl<'g> NodeMut<'g> {
    pub(super) fn new(graph: &'g mut Graph, index: u32) -> Self {
        NodeMut { graph, index }
    }

    /// The node, for reading.
    pub fn as_ref(&self) -> NodeRef<'_> {
        NodeRef::new(self.graph, self.index)
    }

    /// Replaces the positional arguments and updates the use lists. Entries that must be recomputed
    /// (shapes) are removed from the node and from everything that depends on it.
    ///
    /// # Errors
    /// Returns an error if an argument is not a live node of this graph or nests too deep, or the
    /// node would depend on itself; nothing changes then.
    pub fn set_args(&mut self, args: impl IntoArguments) -> Result<()> {
        let kwargs: Kwargs = self.as_ref().kwargs().to_vec();
        self.set_inputs(args, kwargs)
    }

    /// Replaces the keyword arguments, like [`set_args`](NodeMut::set_args).
    ///
    /// # Errors
    /// Same as `set_args`.
    pub fn set_kwargs(&mut self, kwargs: impl IntoKwargs) -> Result<()> {
        let args: Args = self.as_ref().args().iter().cloned().collect();
        self.set_inputs(args, kwargs)
    }

    /// Replaces both positional and keyword arguments, like [`set_args`](NodeMut::set_args).
    ///
    /// # Errors
    /// Same as `set_args`.
    pub fn set_inputs(&mut self, args: impl IntoArguments, kwargs: impl IntoKwargs) -> Result<()> {
        let (args, kwargs) = (args.into_arguments(), kwargs.into_kwargs());
        self.graph.set_inputs(self.index, args, kwargs)?;
        self.graph.forget(self.index);
        Ok(())
    }

    /// Rewrites the inputs without changing the node's value.
    pub(crate) fn write_inputs(&mut self, args: Args, kwargs: Kwargs) -> Result<()> {
        self.graph.set_inputs(self.index, args, kwargs)?;
        self.graph.still_knows(self.index);
        Ok(())
    }

    /// Replaces one positional argument, in time independent of the number of arguments.
    ///
    /// # Errors
    /// Returns an error if there is no such position, or as for [`set_args`](NodeMut::set_args).
    pub fn update_arg(&mut self, position: usize, arg: impl Into<Argument>) -> Result<()> {
        let count = self.as_ref().args().len();
        if position >= count {
            return Err(Error::msg(format_args!(
                "%{} has {count} positional arguments, so there is none at {position}",
                self.as_ref().name()
            )));
        }
        self.set_argument(position, arg.into())
    }

    /// Replaces this node by `new` in all of its users except `new` itself. Returns the changed
    /// users.
    ///
    /// # Errors
    /// Returns an error if `new` is not in this graph, or a user would depend on itself; nothing
    /// changes then.
    pub fn replace_all_uses_with(&mut self, new: NodeId) -> Result<Vec<NodeId>> {
        let users = self.graph.replace_uses(self.index, new, &mut |_| true)?;
        Ok(users.into_vec())
    }

    /// Same as [`replace_all_uses_with`](NodeMut::replace_all_uses_with), without the list of
    /// users.
    pub(crate) fn give_uses_to(&mut self, new: NodeId) -> Result<()> {
        let users = self.graph.replace_uses(self.index, new, &mut |_| true);
        users.map(drop)
    }

    /// Same as [`replace_all_uses_with`](NodeMut::replace_all_uses_with), for the users that
    /// `filter` accepts. It is called for every user, in order of first use, like PyTorch's
    /// `delete_user_cb`; `new` always keeps its use.
    ///
    /// # Errors
    /// Same as `replace_all_uses_with`.
    pub fn replace_uses_with_filter(
        &mut self,
        new: NodeId,
        mut filter: impl FnMut(NodeRef<'_>) -> bool,
    ) -> Result<Vec<NodeId>> {
        let users = self.graph.replace_uses(self.index, new, &mut filter)?;
        Ok(users.into_vec())
    }

    /// Inserts a positional argument at a position.
    ///
    /// # Errors
    /// Returns an error if the position is beyond the end, or as for
    /// [`set_args`](NodeMut::set_args).
    pub fn insert_arg(&mut self, position: usize, arg: impl Into<Argument>) -> Result<()> {
        let mut args = self.as_ref().args().to_vec();
        if position > args.len() {
            return Err(Error::msg(format_args!(
                "insert_arg: %{} has {} positional arguments, so the position must be between 0 and {1}, not {position}",
                self.as_ref().name(),
                args.len()
            )));
        }
        args.insert(position, arg.into());
        self.set_args(args)
    }

    /// Sets one keyword argument.
    ///
    /// # Errors
    /// Same as [`set_args`](NodeMut::set_args).
    pub fn update_kwarg(&mut self, name: &str, arg: impl Into<Argument>) -> Result<()> {
        let kwargs = self.as_ref().kwargs();
        if let Some(at) = kwargs.iter().position(|(known, _)| &**known == name) {
            let count = self.as_ref().args().len();
            return self.set_argument(count + at, arg.into());
        }
        let mut kwargs = kwargs.to_vec();
        kwargs.push((name.into(), arg.into()));
        self.set_kwargs(kwargs)
    }

    /// Replaces one argument, by its position among positional and then keyword arguments.
    fn set_argument(&mut self, at: usize, arg: Argument) -> Result<()> {
        let at =
            u32::try_from(at).map_err(|_| Error::msg("a node holds at most 2^32 arguments"))?;
        self.graph.set_argument(self.index, at, arg)?;
        self.graph.forget(self.index);
        Ok(())
    }

    /// Changes the node's opcode or target. Arguments, name and users stay; entries that must be
    /// recomputed (shapes) are removed from the node and from everything that depends on it.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::operator;
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// let add = gm.graph().find_name("add").map(|node| node.id());
    /// let add = add.ok_or_else(|| Error::msg("it is recorded"))?;
    /// gm.graph_mut().node_mut(add)?.set_op(operator::mul)?;
    /// assert_eq!(gm.forward::<f64>(2.5)?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the graph has no room for another target.
    pub fn set_op(&mut self, op: impl Into<Op>) -> Result<()> {
        let op = op.into();
        registry::open_for(&op);
        self.write_op(op)?;
        self.graph.forget(self.index);
        Ok(())
    }

    /// Rewrites the call without changing the node's value.
    pub(crate) fn write_op(&mut self, op: Op) -> Result<()> {
        self.graph.set_op(self.index, op)
    }

    /// Renames the node; a number is appended if the name is taken.
    pub fn rename(&mut self, name: &str) {
        self.graph.rename(self.index, name);
    }

    /// Replaces `old` by `new` in this node only.
    ///
    /// # Errors
    /// Returns an error if either is not in this graph, or the node would depend on itself; nothing
    /// changes then.
    pub fn replace_input_with(&mut self, old: NodeId, new: NodeId) -> Result<()> {
        let old = self.graph.index(old)?;
        self.graph.replace_in(self.index, old, new)
    }

    /// Moves another node directly before this one.
    ///
    /// # Errors
    /// Returns an error if the other is not in this graph.
    pub fn prepend(&mut self, other: NodeId) -> Result<()> {
        let other = self.graph.index(other)?;
        self.graph.move_before(other, self.index);
        Ok(())
    }

    /// Moves another node directly after this one.
    ///
    /// # Errors
    /// Returns an error if the other is not in this graph.
    pub fn append(&mut self, other: NodeId) -> Result<()> {
        let other = self.graph.index(other)?;
        self.graph.move_after(other, self.index);
        Ok(())
    }

    /// Marks that a computed entry about the node's value was added.
    pub(super) fn mark_known(&mut self) {
        self.graph.mark_known(self.index);
    }

    pub(super) fn tell_changed(&self) {
        self.graph.tell_changed(self.index);
    }

    pub(super) fn extra_mut(&mut self) -> &mut super::meta::Extra {
        self.graph.extra_of_mut(self.index)
    }

    /// Takes the source location and modules of another node of the graph.
    pub(crate) fn come_from(&mut self, other: NodeId) -> Result<()> {
        let other = self.graph.index(other)?;
        self.graph.come_from(self.index, other);
        Ok(())
    }

    /// Moves the node into a call of a module.
    pub(crate) fn stand_in(&mut self, scope: ScopeId) {
        self.graph.notes_of_mut(self.index).scope = scope;
        self.tell_changed();
    }

    /// Sets the type annotation of its value.
    pub fn set_type_expr(&mut self, ty: Option<&str>) {
        self.graph.notes_of_mut(self.index).type_expr = ty.map(Arc::from);
        self.tell_changed();
    }
}

/// A finding about a node, as an error.
pub(crate) fn finding(node: NodeRef<'_>, text: String) -> Error {
    node.blame("checking", ErrorKind::Graph(text).into())
}
