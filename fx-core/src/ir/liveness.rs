//! Liveness: the last user of each value. Everything is indexed by node index, for tables built
//! once per run.

use super::graph::Graph;

impl Graph {
    /// One more than the largest node index that this graph uses or has used.
    pub(crate) fn index_bound(&self) -> usize {
        self.heads.len()
    }

    /// The index of each node's last user, by the node's index.
    pub(crate) fn last_users(&self) -> Vec<Option<u32>> {
        let mut last = vec![None; self.index_bound()];
        for node in self.nodes() {
            let index = node.index;
            for input in node.all_input_nodes() {
                last[input.index()] = Some(index);
            }
        }
        last
    }
}
