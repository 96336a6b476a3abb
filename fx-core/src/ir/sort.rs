//! Topological sorting of graphs that were built out of order; stable and deterministic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Graph;
use super::node::{NodeRef, finding};
use super::op::{Op, Opcode};
use crate::error::Result;

impl Graph {
    /// Moves every node after its inputs, with placeholders first and outputs last; nodes that need
    /// not move keep their relative order.
    ///
    /// # Errors
    /// Returns an error if nodes form a cycle, which no edit allows; nothing changes then.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let a = graph.call_function(operator::neg, (x,), ())?;
    /// let b = graph.call_function(operator::neg, (x,), ())?;
    /// graph.node_mut(a)?.set_args((b,))?;
    /// assert!(graph.lint().is_err());
    /// graph.sort()?;
    /// assert!(graph.is_before(b, a)?);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn sort(&mut self) -> Result<()> {
        let mut waiting = vec![0u32; self.heads.len()];
        let mut ready: BinaryHeap<Reverse<(u8, u64, u32)>> = BinaryHeap::new();
        let rank = |op: &Op| match op.opcode() {
            Opcode::Placeholder => 0u8,
            Opcode::Output => 2,
            _ => 1,
        };
        // In memory order: the order of this pass does not affect which nodes are ready.
        let alive = (1..self.heads.len())
            .filter_map(|index| u32::try_from(index).ok())
            .filter(|index| self.order.stamp(*index).is_some());
        for node in alive.map(|index| NodeRef::new(self, index)) {
            let inputs = node.all_input_nodes().count();
            waiting[node.index as usize] =
                u32::try_from(inputs).expect("uses are numbered by 32 bits");
            if inputs == 0 {
                ready.push(Reverse((
                    rank(node.op()),
                    self.order.key(node.index),
                    node.index,
                )));
            }
        }
        let mut sorted = Vec::with_capacity(self.len());
        while let Some(Reverse((_, _, index))) = ready.pop() {
            sorted.push(index);
            for user in self.uses.users(index) {
                let left = &mut waiting[user as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse((
                        rank(self.op_of(user)),
                        self.order.key(user),
                        user,
                    )));
                }
            }
        }
        if sorted.len() < self.len() {
            let stuck = self.nodes().find(|node| waiting[node.index as usize] > 0);
            let stuck = stuck.map(|node| {
                let text = format!(
                    "%{} depends on itself through its inputs: break the circle, then sort",
                    node.name()
                );
                finding(node, text)
            });
            return stuck.map_or(Ok(()), Err);
        }
        self.rearrange_to(&sorted);
        self.order_is_topological();
        Ok(())
    }
}
