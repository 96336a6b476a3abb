//! `Graph`: an arena of nodes in columns, with their order, names, arguments and uses.
//!
//! Invariants: a node's inputs are alive in the same graph and do not depend on it; the use lists
//! agree with the arguments; an id is valid while its stamp is the one at its index.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::argument::{Args, Argument, Kwargs};
use super::columns::{Head, Inputs, Members, Notes, input_indices};
use super::cursor::Cursor;
use super::journal::{Journal, Record};
use super::marks::Marks;
use super::mentions::Wide;
use super::meta::{CurrentPass, Extra};
use super::names::{Name, NameId, NameSpace};
use super::node::{NodeMut, NodeRef};
use super::observe::Observers;
use super::op::Op;
use super::order::{Order, ROOT};
use super::places::{LocationId, Places, Scope, ScopeId, Site};
use super::uses::Uses;
use super::version::{Version, Versions};
use crate::error::{Error, ErrorKind, Result};
use crate::location::SourceLocation;
use crate::value::handle::NodeId;

/// A computation: an ordered list of nodes with six opcodes.
///
/// ```
/// use fx_core::operator;
/// use fx_core::ir::Graph;
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
#[derive(Debug)]
pub struct Graph {
    pub(super) order: Order,
    /// While the list is out of order: an order in which every node comes after its inputs.
    pub(super) detour: Option<Box<Order>>,
    pub(super) heads: Vec<Head>,
    pub(super) inputs: Vec<Inputs>,
    pub(super) notes: Vec<Notes>,
    pub(super) uses: Uses,
    pub(super) wide: Wide,
    pub(super) free: Vec<u32>,
    pub(super) len: usize,
    pub(super) ops: IndexSet<Op, FxBuildHasher>,
    pub(super) names: NameSpace,
    pub(super) places: Places,
    stamps: Stamps,
    pub(super) cursor: Cursor,
    /// The op that was interned last.
    pub(super) last_op: usize,
    /// The nodes of each op, by the op's number.
    pub(super) members: Vec<Members>,
    /// Created at the first lookup of a node by name.
    pub(super) by_name: OnceLock<FxHashMap<NameId, u32>>,
    pub(super) observers: Observers,
    /// The running pass.
    pub(super) pass: CurrentPass,
    pub(super) current_scope: ScopeId,
    /// Which nodes may have computed entries about their values.
    pub(super) marks: Marks,
    /// Whether replacements give the value of what they replace.
    pub(super) values_stay: bool,
    pub(super) journal: Journal<Graph>,
    /// The version of what is computed: nodes, their ops, arguments and order.
    pub(super) version: Versions,
    /// The version of the placeholders.
    pub(super) inputs_version: Versions,
}

impl Clone for Graph {
    /// The ids stay valid. Observers, the running pass and open edits stay with the original.
    fn clone(&self) -> Self {
        let mut copy = Graph {
            order: self.order.clone(),
            detour: self.detour.clone(),
            heads: self.heads.clone(),
            inputs: self.inputs.clone(),
            notes: self.notes.clone(),
            uses: self.uses.clone(),
            wide: self.wide.clone(),
            free: self.free.clone(),
            len: self.len,
            ops: self.ops.clone(),
            names: self.names.clone(),
            places: self.places.clone(),
            stamps: self.stamps.clone(),
            cursor: self.cursor.clone(),
            last_op: self.last_op,
            members: self.members.clone(),
            by_name: self.by_name.clone(),
            observers: self.observers.clone(),
            pass: self.pass.clone(),
            current_scope: self.current_scope,
            marks: self.marks.clone(),
            values_stay: false,
            journal: Journal::default(),
            version: self.version.clone(),
            inputs_version: self.inputs_version.clone(),
        };
        // The copy does not need what the original keeps for undoing edits.
        for record in self.records() {
            copy.release(record);
        }
        copy
    }
}

/// Stamps from the process-wide counter, taken in blocks; blocks grow with the graph, so that many
/// small graphs do not exhaust the counter.
#[derive(Debug, Default)]
struct Stamps {
    next: u32,
    left: u32,
    block: u32,
}

const FIRST_STAMP_BLOCK: u32 = 16;
const LAST_STAMP_BLOCK: u32 = 4096;

impl Clone for Stamps {
    /// A clone takes its own stamps, so that its new nodes differ from the original's.
    fn clone(&self) -> Self {
        Stamps::default()
    }
}

impl Stamps {
    fn take(&mut self) -> NonZeroU32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if self.left == 0 {
            self.block = (self.block * 2).clamp(FIRST_STAMP_BLOCK, LAST_STAMP_BLOCK);
            self.next = NEXT.fetch_add(self.block, Ordering::Relaxed);
            self.left = self.block;
        }
        self.left -= 1;
        let stamp = self.next;
        self.next = self.next.wrapping_add(1);
        // 0 marks a free place; losing that one stamp does not matter.
        NonZeroU32::new(stamp).unwrap_or(NonZeroU32::MAX)
    }
}

impl Default for Graph {
    fn default() -> Self {
        Graph::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Graph::with_capacity(0)
    }

    /// An empty graph with room for some nodes.
    pub fn with_capacity(nodes: usize) -> Self {
        fn column<T>(first: T, nodes: usize) -> Vec<T> {
            let mut column = Vec::with_capacity(nodes + 1);
            column.push(first);
            column
        }
        // The first place of every column belongs to the sentinel.
        let head = Head {
            op: 0,
            name: NameId { base: 0, number: 0 },
        };
        Graph {
            order: Order::with_capacity(nodes),
            detour: None,
            heads: column(head, nodes),
            inputs: column(Inputs::default(), nodes),
            notes: column(Notes::default(), nodes),
            uses: Uses::with_capacity(nodes),
            wide: Wide::default(),
            free: Vec::new(),
            len: 0,
            ops: IndexSet::with_capacity_and_hasher(nodes, FxBuildHasher),
            names: NameSpace::with_capacity(nodes),
            places: Places::default(),
            stamps: Stamps::default(),
            cursor: Cursor::default(),
            last_op: 0,
            members: Vec::with_capacity(nodes),
            by_name: OnceLock::new(),
            observers: Observers::default(),
            pass: CurrentPass::default(),
            current_scope: ScopeId::default(),
            marks: Marks::default(),
            values_stay: false,
            journal: Journal::default(),
            version: Versions::default(),
            inputs_version: Versions::default(),
        }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    // ---- looking -------------------------------------------------------------------------------

    /// The node with this id.
    ///
    /// # Errors
    /// Returns an error if the node was erased or belongs to another graph.
    pub fn node(&self, id: NodeId) -> Result<NodeRef<'_>> {
        self.index(id).map(|index| NodeRef::new(self, index))
    }

    /// The node with this id, for editing.
    ///
    /// # Errors
    /// Returns an error if the node was erased or belongs to another graph.
    pub fn node_mut(&mut self, id: NodeId) -> Result<NodeMut<'_>> {
        let index = self.index(id)?;
        Ok(NodeMut::new(self, index))
    }

    /// The nodes in order; use `.rev()` to walk backwards.
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

    /// What the graph gives, one by one: the items of a tuple, or the one result.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| Ok((x, (x * 2.0)?))))?;
    /// assert_eq!(gm.graph().results().len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn results(&self) -> &[Argument] {
        match self.output_node().and_then(|node| node.args().first()) {
            Some(Argument::Tuple(items)) => items,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// Whether `a` comes before `b`, in constant time.
    ///
    /// # Errors
    /// Returns an error if either is not in this graph.
    pub fn is_before(&self, a: NodeId, b: NodeId) -> Result<bool> {
        Ok(self.order.is_before(self.index(a)?, self.index(b)?))
    }

    /// Adds a node with the wanted name and its source location.
    pub(crate) fn insert(
        &mut self,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
        site: Site<'_>,
    ) -> Result<NodeId> {
        // A failed insertion takes no name.
        let inputs = self.checked_inputs(args, kwargs)?;
        let name = match name {
            Some(name) => self.names.create(name),
            None => self.names.create(op.name_candidate()),
        };
        let name = self.note_named(name);
        let op = self.intern(op)?;
        let notes = Notes {
            location: self.places.site(site),
            scope: self.current_scope,
            type_expr: None,
            extra: None,
        };
        self.push(op, inputs, name, notes)
    }

    /// Adds a node that is known to be valid.
    pub(super) fn push(
        &mut self,
        op: u32,
        inputs: Inputs,
        name: NameId,
        notes: Notes,
    ) -> Result<NodeId> {
        let stamp = self.stamps.take();
        let knows = notes.extra.as_deref().is_some_and(Extra::is_computed);
        let head = Head { op, name };
        let reused = self.free.pop();
        let index = match reused {
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
        self.order.set_stamp(index, Some(stamp));
        let inputs = input_indices(&self.inputs[index as usize]);
        self.uses.add_inputs(index, inputs.iter().copied());
        self.order_new(index, &inputs);
        self.len += 1;
        if self.journal.is_open() {
            let is_reused = reused.is_some();
            self.journal.record(Record::Created { index, is_reused });
        }
        if knows {
            self.mark_known(index);
        }
        self.add_member(index);
        self.add_name(index);
        self.note_created(index);
        self.touch(index);
        self.tell(|observer, graph| observer.created(NodeRef::new(graph, index)));
        Ok(NodeId { index, stamp })
    }

    // ---- for the views and the tracer ----------------------------------------------------------

    pub(super) fn index(&self, id: NodeId) -> Result<u32> {
        if self.order.stamp(id.index) == Some(id.stamp) {
            return Ok(id.index);
        }
        Err(ErrorKind::StaleNode { id: id.to_string() }.into())
    }

    /// The live node at an index.
    pub(crate) fn node_at(&self, index: u32) -> NodeRef<'_> {
        NodeRef::new(self, index)
    }

    pub(super) fn id_of(&self, index: u32) -> NodeId {
        NodeId {
            index,
            stamp: self
                .order
                .stamp(index)
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

    pub(super) fn op_number(&self, index: u32) -> u32 {
        self.heads[index as usize].op
    }

    pub(super) fn inputs_of(&self, index: u32) -> &Inputs {
        &self.inputs[index as usize]
    }

    pub(super) fn notes_of(&self, index: u32) -> &Notes {
        &self.notes[index as usize]
    }

    /// A node's notes, mutable; call [`tell_changed`](Graph::tell_changed) afterwards.
    pub(super) fn notes_of_mut(&mut self, index: u32) -> &mut Notes {
        if self.journal.is_open() {
            self.keep_notes(index);
        }
        &mut self.notes[index as usize]
    }

    #[cold]
    fn keep_notes(&mut self, index: u32) {
        if !self.journal.has_just_kept_notes(index) {
            let notes = Box::new(self.notes[index as usize].clone());
            self.journal.record(Record::Notes { index, notes });
        }
    }

    /// Notes that the computation changed at a node.
    #[inline]
    pub(super) fn touch(&mut self, index: u32) {
        self.version.advance();
        if self.members[self.heads[index as usize].op as usize].is_input {
            self.inputs_version.advance();
        }
    }

    /// A version that identifies the state of what the graph computes.
    pub(crate) fn version(&self) -> Version {
        self.version.now()
    }

    /// A version that identifies the state of the placeholders.
    pub(crate) fn inputs_version(&self) -> Version {
        self.inputs_version.now()
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

    /// Reserves room for calls of modules, if their number is known.
    pub(crate) fn expect_scopes(&mut self, calls: usize) {
        self.places.reserve_scopes(calls);
    }

    /// Records new nodes inside this call of a module; returns the previous scope.
    pub(crate) fn enter_scope(
        &mut self,
        path: Arc<str>,
        type_name: impl Into<Cow<'static, str>>,
        call: u32,
    ) -> ScopeId {
        let scope = self.inner_scope(path, type_name.into(), call);
        let scope = self.places.scope(scope);
        std::mem::replace(&mut self.current_scope, scope)
    }

    /// Same as [`enter_scope`](Graph::enter_scope), for a call that is entered only once.
    pub(crate) fn enter_new_scope(
        &mut self,
        path: Arc<str>,
        type_name: &'static str,
        call: u32,
    ) -> ScopeId {
        let scope = self.inner_scope(path, type_name.into(), call);
        let scope = self.places.new_scope(scope);
        std::mem::replace(&mut self.current_scope, scope)
    }

    fn inner_scope(&self, path: Arc<str>, type_name: Cow<'static, str>, call: u32) -> Scope {
        Scope {
            path,
            type_name,
            call,
            parent: self.current_scope,
        }
    }

    /// Records new nodes in the scope of this node; returns the previous scope.
    pub(crate) fn enter_scope_of(&mut self, node: NodeId) -> Result<ScopeId> {
        let index = self.index(node)?;
        let scope = self.notes_of(index).scope;
        Ok(std::mem::replace(&mut self.current_scope, scope))
    }

    /// Records new nodes outside of all modules; returns the previous scope.
    pub(crate) fn enter_root_scope(&mut self) -> ScopeId {
        std::mem::take(&mut self.current_scope)
    }

    pub(crate) fn leave_scope(&mut self, former: ScopeId) {
        self.current_scope = former;
    }

    /// Adds a source location to the graph's table.
    pub(crate) fn intern_location(&mut self, location: SourceLocation) -> LocationId {
        self.places.location(location)
    }

    pub(crate) fn scope_id(&self) -> ScopeId {
        self.current_scope
    }

    pub(crate) fn current_scope(&self) -> Option<&Scope> {
        self.places.get_scope(self.current_scope)
    }
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

    // What visits all nodes, such as `for_each` and `max`, only follows the links.
    fn fold<A, F: FnMut(A, NodeRef<'g>) -> A>(self, first: A, mut add: F) -> A {
        let (mut so_far, mut at) = (first, self.front);
        for _ in 0..self.left {
            so_far = add(so_far, NodeRef::new(self.graph, at));
            at = self.graph.order.next(at);
        }
        so_far
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

impl<'g> IntoIterator for &'g Graph {
    type Item = NodeRef<'g>;
    type IntoIter = Nodes<'g>;

    fn into_iter(self) -> Nodes<'g> {
        self.nodes()
    }
}

impl std::ops::Index<NodeId> for Graph {
    type Output = Op;

    /// The op of a node.
    ///
    /// # Panics
    /// Panics if the node is not in this graph; [`Graph::node`] returns an error instead.
    fn index(&self, id: NodeId) -> &Op {
        match Graph::index(self, id) {
            Ok(index) => self.op_of(index),
            Err(error) => panic!("{error}"),
        }
    }
}
