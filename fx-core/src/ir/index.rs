//! Finding nodes: by opcode and target through an index, and by name.
//!
//! Invariants: each op lists at least its nodes (stale ids and ids with another op are skipped, and
//! swept out once they are the majority); the table of names, once created, is kept up to date.

use rustc_hash::FxHashMap;

use super::columns::Members;
use super::graph::Graph;
use super::journal::Record;
use super::node::NodeRef;
use super::op::{Op, Opcode};
use crate::error::{Error, Result};
use crate::value::handle::NodeId;

impl Graph {
    /// The number of an op in this graph.
    pub(super) fn intern(&mut self, op: Op) -> Result<u32> {
        // The same op often repeats, so the last one is checked first.
        if self.ops.get_index(self.last_op) == Some(&op) {
            return Ok(u32::try_from(self.last_op).expect("ops are numbered by 32 bits"));
        }
        let is_input = matches!(op, Op::Placeholder(_));
        let (index, is_new) = self.ops.insert_full(op);
        if is_new {
            self.members.push(Members {
                is_input,
                ..Members::default()
            });
            if self.journal.is_open() {
                self.journal.record(Record::Interned);
            }
        }
        self.last_op = index;
        u32::try_from(index).map_err(|_| Error::msg("a graph holds at most 2^32 targets"))
    }

    pub(super) fn add_member(&mut self, index: u32) {
        let id = self.id_of(index);
        let op = self.heads[index as usize].op;
        self.members[op as usize].ids.push(id);
    }

    /// Removes the node from its op's list.
    pub(super) fn forget_member(&mut self, index: u32) {
        let op = self.heads[index as usize].op;
        let members = &mut self.members[op as usize];
        members.stale += 1;
        if members.stale as usize * 2 > members.ids.len() + 16 {
            let (heads, order) = (&self.heads, &self.order);
            members.ids.retain(|id| {
                id.index != index
                    && order.stamp(id.index) == Some(id.stamp)
                    && heads[id.index as usize].op == op
            });
            // A node that returned to the op is listed twice.
            members.ids.sort_unstable_by_key(|id| id.index);
            members.ids.dedup();
            members.stale = 0;
        }
    }

    /// Same as [`forget_member`](Graph::forget_member), for the most recently created node.
    pub(super) fn forget_last_member(&mut self, index: u32) {
        let id = self.id_of(index);
        let members = &mut self.members[self.heads[index as usize].op as usize];
        match members.ids.last() == Some(&id) {
            true => drop(members.ids.pop()),
            false => self.forget_member(index),
        }
    }

    /// The nodes with exactly this op, in graph order.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Graph, Op};
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let y = graph.call_function(operator::neg, (x,), ())?;
    /// let z = graph.call_function(operator::neg, (y,), ())?;
    /// let found: Vec<_> = graph.find_nodes(&Op::CallFunction(operator::neg)).iter().map(|n| n.id()).collect();
    /// assert_eq!(found, [y, z]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn find_nodes(&self, op: &Op) -> Vec<NodeRef<'_>> {
        let mut found = self.find_nodes_unsorted(op);
        found.sort_by_key(|node| self.order.key(node.index));
        found
    }

    /// Sorts nodes of this graph into its order.
    pub(crate) fn sort_ids(&self, ids: &mut [NodeId]) {
        ids.sort_unstable_by_key(|id| self.order.key(id.index));
    }

    /// Same as [`find_nodes`](Graph::find_nodes), in unspecified order, without sorting.
    pub fn find_nodes_unsorted(&self, op: &Op) -> Vec<NodeRef<'_>> {
        let Some(number) = self.ops.get_index_of(op) else {
            return Vec::new();
        };
        let ids = &self.members[number].ids;
        let mut found = Vec::with_capacity(ids.len());
        found.extend(
            ids.iter()
                .filter_map(|id| self.node(*id).ok())
                .filter(|node| self.heads[node.index as usize].op as usize == number),
        );
        // A node that was given another op and then this one again is listed twice.
        if self.members[number].stale > 0 {
            found.sort_by_key(|node| node.index);
            found.dedup_by_key(|node| node.index);
        }
        found
    }

    /// Whether any node has exactly this op.
    pub(crate) fn has_op(&self, op: &Op) -> bool {
        let Some(number) = self.ops.get_index_of(op) else {
            return false;
        };
        let mut ids = self.members[number].ids.iter();
        ids.any(|id| {
            let node = self.node(*id);
            node.is_ok_and(|node| self.heads[node.index as usize].op as usize == number)
        })
    }

    /// The nodes with an opcode, whatever their targets, in graph order.
    pub fn find_opcode(&self, opcode: Opcode) -> Vec<NodeRef<'_>> {
        let mut found: Vec<NodeRef<'_>> = self
            .ops
            .iter()
            .filter(|op| op.opcode() == opcode)
            .flat_map(|op| self.find_nodes_unsorted(op))
            .collect();
        found.sort_by_key(|node| self.order.key(node.index));
        found
    }

    /// The node with this name.
    pub fn find_name(&self, name: &str) -> Option<NodeRef<'_>> {
        let id = self.names.find(name)?;
        let table = self.by_name.get_or_init(|| {
            self.nodes()
                .map(|node| (self.heads[node.index as usize].name, node.index))
                .collect::<FxHashMap<_, _>>()
        });
        table.get(&id).map(|index| NodeRef::new(self, *index))
    }

    pub(super) fn add_name(&mut self, index: u32) {
        if let Some(table) = self.by_name.get_mut() {
            table.insert(self.heads[index as usize].name, index);
        }
    }

    pub(super) fn forget_name(&mut self, index: u32) {
        if let Some(table) = self.by_name.get_mut() {
            table.remove(&self.heads[index as usize].name);
        }
    }
}
