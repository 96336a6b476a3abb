//! `Graph`: an arena of nodes in columns, with their order, names, arguments and uses.
//!
//! Invariants: a node's inputs are alive in the same graph; the use lists agree with the arguments;
//! an id is valid while its stamp is the one in the node's head.

use std::num::NonZeroU32;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::argument::{Args, Argument, IntoArguments, IntoKwargs, Kwargs};
use super::function::Function;
use super::names::{Name, NameId, NameSpace};
use super::node::{NodeMut, NodeRef};
use super::op::Op;
use super::order::{Order, ROOT};
use super::places::{LocationId, Places, Scope, ScopeId, Site};
use super::signature::Literal;
use super::uses::Uses;
use crate::error::{Error, ErrorKind, Result};
use crate::location::SourceLocation;
use crate::value::handle::NodeId;

/// What every walk over nodes touches.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// `None` while the place is free.
    stamp: Option<NonZeroU32>,
    op: u32,
    name: NameId,
}

/// What few walks touch.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub location: LocationId,
    pub scope: ScopeId,
    pub type_expr: Option<Arc<str>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    pub args: Args,
    pub kwargs: Option<Box<Kwargs>>,
}

/// A computation: nodes of six opcodes in an order.
///
/// ```
/// use fx_core::{Graph, operator};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x")?;
/// let y = graph.call_function(operator::mul, (x, 2.0), ())?;
/// graph.output(y)?;
/// assert_eq!(graph.to_string(), "\
/// graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, 2.0), kwargs = {})
///     return %mul");
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph {
    order: Order,
    heads: Vec<Head>,
    inputs: Vec<Inputs>,
    notes: Vec<Notes>,
    uses: Uses,
    free: Vec<u32>,
    len: usize,
    ops: IndexSet<Op, FxBuildHasher>,
    names: NameSpace,
    places: Places,
    stamps: Stamps,
    cursor: Cursor,
    current_scope: ScopeId,
}

/// Where new nodes go, and the points that living guards put back.
#[derive(Debug, Default)]
struct Cursor {
    /// New nodes go before this one; `ROOT`, the default, is the end.
    before: u32,
    former: Vec<u32>,
}

impl Clone for Cursor {
    /// A clone has no guards.
    fn clone(&self) -> Self {
        Cursor::default()
    }
}

/// Stamps from the process-wide counter, a block at a time.
#[derive(Debug, Default)]
struct Stamps {
    next: u32,
    left: u32,
}

const STAMP_BLOCK: u32 = 1024;

impl Clone for Stamps {
    /// A clone draws its own stamps, so that its new nodes are told from the original's.
    fn clone(&self) -> Self {
        Stamps::default()
    }
}

impl Stamps {
    fn take(&mut self) -> NonZeroU32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if self.left == 0 {
            self.next = NEXT.fetch_add(STAMP_BLOCK, Ordering::Relaxed);
            self.left = STAMP_BLOCK;
        }
        self.left -= 1;
        let stamp = self.next;
        self.next = self.next.wrapping_add(1);
        // 0 marks a free place; the one number it costs is not missed.
        NonZeroU32::new(stamp).unwrap_or(NonZeroU32::MAX)
    }
}

impl Default for Graph {
    fn default() -> Self {
        Graph::new()
    }
}

/// Where nodes are inserted before, and the guard that puts it back.
///
/// Derefs to the graph; the former insertion point returns when it is dropped.
#[derive(Debug)]
pub struct InsertionPoint<'g> {
    graph: &'g mut Graph,
    depth: usize,
}

impl Deref for InsertionPoint<'_> {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl DerefMut for InsertionPoint<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph
    }
}

impl Drop for InsertionPoint<'_> {
    fn drop(&mut self) {
        let cursor = &mut self.graph.cursor;
        if let Some(former) = cursor.former.get(self.depth) {
            cursor.before = *former;
            cursor.former.truncate(self.depth);
        }
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        let mut uses = Uses::default();
        uses.grow();
        Graph {
            order: Order::default(),
            heads: vec![Head {
                stamp: None,
                op: 0,
                name: NameId { base: 0, number: 0 },
            }],
            inputs: vec![Inputs::default()],
            notes: vec![Notes::default()],
            uses,
            free: Vec::new(),
            len: 0,
            ops: IndexSet::default(),
            names: NameSpace::default(),
            places: Places::default(),
            stamps: Stamps::default(),
            cursor: Cursor::default(),
            current_scope: ScopeId::default(),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    // ---- looking -------------------------------------------------------------------------------

    /// The node of an id.
    ///
    /// # Errors
    /// When the node was erased or is another graph's.
    pub fn node(&self, id: NodeId) -> Result<NodeRef<'_>> {
        self.index(id).map(|index| NodeRef::new(self, index))
    }

    /// The node of an id, for editing.
    ///
    /// # Errors
    /// When the node was erased or is another graph's.
    pub fn node_mut(&mut self, id: NodeId) -> Result<NodeMut<'_>> {
        let index = self.index(id)?;
        Ok(NodeMut::new(self, index))
    }

    /// The nodes in order; walk backwards with `.rev()`.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes {
            graph: self,
            front: self.order.next(ROOT),
            back: self.order.prev(ROOT),
            left: self.len,
        }
    }

    /// The placeholders in order.
    pub fn placeholders(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.nodes()
            .filter(|n| matches!(n.op(), Op::Placeholder(_)))
    }

    /// The output node: the last node, if it is one.
    pub fn output_node(&self) -> Option<NodeRef<'_>> {
        self.nodes().next_back().filter(|n| *n.op() == Op::Output)
    }

    /// The node of a name.
    pub fn find_name(&self, name: &str) -> Option<NodeRef<'_>> {
        let id = self.names.find(name)?;
        self.nodes().find(|n| self.heads[n.index()].name == id)
    }

    /// Whether `a` comes before `b`, in constant time.
    ///
    /// # Errors
    /// When either is not in this graph.
    pub fn is_before(&self, a: NodeId, b: NodeId) -> Result<bool> {
        Ok(self.order.is_before(self.index(a)?, self.index(b)?))
    }

    // ---- building ------------------------------------------------------------------------------

    /// Adds a node at the insertion point, named after its target.
    ///
    /// # Errors
    /// When an argument is a node of another graph, or nests too deep.
    #[track_caller]
    pub fn create_node(
        &mut self,
        op: Op,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.insert(
            op,
            args.into_arguments(),
            kwargs.into_kwargs(),
            None,
            Site::Caller(Location::caller()),
        )
    }

    /// Adds an input.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn placeholder(&mut self, name: &str) -> Result<NodeId> {
        self.create_node(Op::Placeholder(name.into()), (), ())
    }

    /// Adds an input with a default.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn placeholder_with_default(&mut self, name: &str, default: &Literal) -> Result<NodeId> {
        self.create_node(Op::Placeholder(name.into()), (Argument::from(default),), ())
    }

    /// Adds a parameter, buffer or constant by its dotted path.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn get_attr(&mut self, path: &str) -> Result<NodeId> {
        self.create_node(Op::GetAttr(path.into()), (), ())
    }

    /// Adds a call of a function.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_function(
        &mut self,
        function: impl Into<Function>,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.create_node(Op::CallFunction(function.into()), args, kwargs)
    }

    /// Adds a call of a method of the first argument.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_method(
        &mut self,
        method: &str,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.create_node(Op::CallMethod(method.into()), args, kwargs)
    }

    /// Adds a call of a module by its dotted path.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_module(
        &mut self,
        path: &str,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.create_node(Op::CallModule(path.into()), args, kwargs)
    }

    /// Adds the result.
    ///
    /// # Errors
    /// As [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn output(&mut self, result: impl Into<Argument>) -> Result<NodeId> {
        self.create_node(Op::Output, (result.into(),), ())
    }

    /// Adds a node, with the name that is wanted and the place in the source that it comes from.
    pub(crate) fn insert(
        &mut self,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
        site: Site<'_>,
    ) -> Result<NodeId> {
        let inputs = self.checked_inputs(args, kwargs)?;
        let name = self.names.create(name.unwrap_or(op.name_candidate()));
        let op = match self.ops.get_index_of(&op) {
            Some(index) => index,
            None => self.ops.insert_full(op).0,
        };
        let stamp = self.stamps.take();
        let head = Head {
            stamp: Some(stamp),
            op: u32::try_from(op).map_err(|_| too_many())?,
            name,
        };
        let notes = Notes {
            location: self.places.site(site),
            scope: self.current_scope,
            type_expr: None,
        };
        let index = match self.free.pop() {
            Some(index) => {
                let i = index as usize;
                self.heads[i] = head;
                self.notes[i] = notes;
                self.inputs[i] = inputs;
                index
            }
            None => {
                let index = u32::try_from(self.heads.len()).map_err(|_| too_many())?;
                self.heads.push(head);
                self.notes.push(notes);
                self.inputs.push(inputs);
                self.order.grow();
                self.uses.grow();
                index
            }
        };
        self.order.insert_before(index, self.cursor.before);
        let Graph { uses, inputs, .. } = self;
        uses.add_inputs(index, input_indices(&inputs[index as usize]).into_iter());
        self.len += 1;
        Ok(NodeId { index, stamp })
    }

    // ---- where new nodes go --------------------------------------------------------------------

    /// New nodes go before `node`, or before the first node for `None`, until the guard is dropped.
    ///
    /// # Errors
    /// When the node is not in this graph.
    ///
    /// ```
    /// # use fx_core::{Graph, operator};
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let out = graph.output(x)?;
    /// let neg = graph.inserting_before(out)?.call_function(operator::neg, (x,), ())?;
    /// assert!(graph.is_before(neg, out)?);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn inserting_before(
        &mut self,
        node: impl Into<Option<NodeId>>,
    ) -> Result<InsertionPoint<'_>> {
        let target = match node.into() {
            Some(id) => self.index(id)?,
            None => self.order.next(ROOT),
        };
        Ok(self.insertion_point(target))
    }

    /// New nodes go after `node`, or at the end for `None`, until the guard is dropped.
    ///
    /// # Errors
    /// When the node is not in this graph.
    pub fn inserting_after(
        &mut self,
        node: impl Into<Option<NodeId>>,
    ) -> Result<InsertionPoint<'_>> {
        let target = match node.into() {
            Some(id) => self.order.next(self.index(id)?),
            None => ROOT,
        };
        Ok(self.insertion_point(target))
    }

    fn insertion_point(&mut self, target: u32) -> InsertionPoint<'_> {
        let depth = self.cursor.former.len();
        self.cursor.former.push(self.cursor.before);
        self.cursor.before = target;
        InsertionPoint { graph: self, depth }
    }

    // ---- taking away ---------------------------------------------------------------------------

    /// Removes a node that nothing uses.
    ///
    /// # Errors
    /// When the node has users, which the error lists, or is not in this graph.
    pub fn erase_node(&mut self, id: NodeId) -> Result<()> {
        let index = self.index(id)?;
        if self.uses.count(index) > 0 {
            return Err(ErrorKind::NodeInUse {
                node: self.name_of(index).to_string(),
                users: self
                    .uses
                    .users(index)
                    .map(|user| self.name_of(user).to_string())
                    .collect(),
            }
            .into());
        }
        let next = self.order.next(index);
        let Cursor { before, former } = &mut self.cursor;
        for point in former.iter_mut().chain([before]) {
            if *point == index {
                *point = next;
            }
        }
        self.uses.clear_inputs(index);
        self.order.remove(index);
        self.heads[index as usize].stamp = None;
        self.inputs[index as usize] = Inputs::default();
        self.notes[index as usize] = Notes::default();
        self.free.push(index);
        self.len -= 1;
        Ok(())
    }

    // ---- for the views and the tracer ----------------------------------------------------------

    pub(super) fn index(&self, id: NodeId) -> Result<u32> {
        match self.heads.get(id.index as usize) {
            Some(head) if head.stamp == Some(id.stamp) => Ok(id.index),
            _ => Err(ErrorKind::StaleNode { id: id.to_string() }.into()),
        }
    }

    pub(super) fn id_of(&self, index: u32) -> NodeId {
        NodeId {
            index,
            stamp: self.heads[index as usize]
                .stamp
                .expect("views are made of live nodes only"),
        }
    }

    pub(super) fn name_of(&self, index: u32) -> Name<'_> {
        self.names.get(self.heads[index as usize].name)
    }

    pub(super) fn op_of(&self, index: u32) -> &Op {
        self.ops
            .get_index(self.heads[index as usize].op as usize)
            .expect("every node's op was interned when it was made")
    }

    pub(super) fn inputs_of(&self, index: u32) -> &Inputs {
        &self.inputs[index as usize]
    }

    pub(super) fn notes_of(&self, index: u32) -> &Notes {
        &self.notes[index as usize]
    }

    pub(super) fn notes_of_mut(&mut self, index: u32) -> &mut Notes {
        &mut self.notes[index as usize]
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    pub(super) fn uses(&self) -> &Uses {
        &self.uses
    }

    pub(crate) fn location_of(&self, id: LocationId) -> Option<&SourceLocation> {
        self.places.get_location(id)
    }

    pub(crate) fn scope_of(&self, id: ScopeId) -> Option<&Scope> {
        self.places.get_scope(id)
    }

    /// Nodes made from now on were recorded inside this module; returns the scope before.
    pub(crate) fn enter_scope(&mut self, path: Arc<str>, type_name: &'static str) -> ScopeId {
        let scope = self.places.scope(Scope {
            path,
            type_name,
            parent: self.current_scope,
        });
        std::mem::replace(&mut self.current_scope, scope)
    }

    pub(crate) fn leave_scope(&mut self, former: ScopeId) {
        self.current_scope = former;
    }

    pub(crate) fn scope_id(&self) -> ScopeId {
        self.current_scope
    }

    pub(crate) fn current_scope(&self) -> Option<&Scope> {
        self.places.get_scope(self.current_scope)
    }

    /// Refuses arguments that name dead or foreign nodes, or nest too deep.
    fn checked_inputs(&self, args: Args, kwargs: Kwargs) -> Result<Inputs> {
        for arg in args.iter().chain(kwargs.iter().map(|(_, a)| a)) {
            if arg.is_leaf() {
                if let Argument::Node(id) = arg {
                    self.index(*id)?;
                }
                continue;
            }
            arg.check_depth()?;
            let mut stale = None;
            arg.for_each_node(&mut |id| {
                if stale.is_none() {
                    stale = self.index(id).err();
                }
            });
            if let Some(error) = stale {
                return Err(error);
            }
        }
        Ok(Inputs {
            args,
            kwargs: (!kwargs.is_empty()).then(|| Box::new(kwargs)),
        })
    }

    pub(super) fn set_inputs(&mut self, index: u32, args: Args, kwargs: Kwargs) -> Result<()> {
        let inputs = self.checked_inputs(args, kwargs)?;
        let defs = input_indices(&inputs);
        self.uses.set_inputs(index, defs.iter().copied());
        self.inputs[index as usize] = inputs;
        Ok(())
    }

    /// Every user of `old` but `new` itself, and those that `keep` refuses, uses `new` instead.
    pub(super) fn replace_uses(
        &mut self,
        old: u32,
        new: NodeId,
        filter: &mut dyn FnMut(NodeRef<'_>) -> bool,
    ) -> Result<Vec<NodeId>> {
        let new_index = self.index(new)?;
        let users: Vec<u32> = self
            .uses
            .users(old)
            .filter(|user| *user != new_index && filter(NodeRef::new(self, *user)))
            .collect();
        for user in &users {
            let mut map = |id: NodeId| Argument::Node(if id.index == old { new } else { id });
            let Inputs { args, kwargs } = std::mem::take(&mut self.inputs[*user as usize]);
            let args = args.iter().map(|a| a.map_nodes(&mut map)).collect();
            let kwargs = kwargs
                .map(|kwargs| {
                    kwargs
                        .iter()
                        .map(|(k, a)| (k.clone(), a.map_nodes(&mut map)))
                        .collect()
                })
                .unwrap_or_default();
            self.set_inputs(*user, args, kwargs)?;
        }
        Ok(users.into_iter().map(|user| self.id_of(user)).collect())
    }
}

fn input_indices(inputs: &Inputs) -> smallvec::SmallVec<[u32; 4]> {
    let mut found = smallvec::SmallVec::new();
    let kwargs = inputs.kwargs.iter().flat_map(|k| k.iter().map(|(_, a)| a));
    for arg in inputs.args.iter().chain(kwargs) {
        match arg {
            Argument::Node(id) => found.push(id.index),
            leaf if leaf.is_leaf() => {}
            nested => nested.for_each_node(&mut |id| found.push(id.index)),
        }
    }
    found
}

fn too_many() -> Error {
    Error::msg("a graph holds at most 2^32 nodes")
}

/// The nodes of a graph in order.
#[derive(Debug, Clone)]
pub struct Nodes<'g> {
    graph: &'g Graph,
    front: u32,
    back: u32,
    left: usize,
}

impl<'g> Iterator for Nodes<'g> {
    type Item = NodeRef<'g>;

    fn next(&mut self) -> Option<NodeRef<'g>> {
        self.left = self.left.checked_sub(1)?;
        let node = NodeRef::new(self.graph, self.front);
        self.front = self.graph.order.next(self.front);
        Some(node)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Nodes<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let node = NodeRef::new(self.graph, self.back);
        self.back = self.graph.order.prev(self.back);
        Some(node)
    }
}

impl ExactSizeIterator for Nodes<'_> {}

impl std::ops::Index<NodeId> for Graph {
    type Output = Op;

    /// The op of a node.
    ///
    /// # Panics
    /// When the node is not in this graph; [`Graph::node`] gives an error instead.
    fn index(&self, id: NodeId) -> &Op {
        match Graph::index(self, id) {
            Ok(index) => self.op_of(index),
            Err(error) => panic!("{error}"),
        }
    }
}
