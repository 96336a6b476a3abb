//! `Infers`: what a trace asks of the inference of shapes, which is above.
//!
//! Invariant: a node is asked about after it is recorded, and before anything that uses it.

use crate::error::Result;
use crate::ir::graph::Graph;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::shapes::Contract;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;

/// What a graph has when its trace ends: the contract, and the entries of its nodes.
pub(crate) type Inferred = (Contract, Vec<(NodeId, ValueMeta)>);

/// Infers what the nodes of a trace give.
pub(crate) trait Infers {
    /// Takes the placeholders, of parameters with these structures.
    fn start(&mut self, graph: &Graph, params: &[ParamSpec], trees: &[Tree]) -> Result<()>;

    /// What a node gives.
    fn node(&mut self, graph: &Graph, attributes: &Attributes, node: NodeId) -> Result<ValueMeta>;

    /// The truth of a comparison of sizes by the hints; then it is a guard.
    fn truth(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        node: NodeId,
    ) -> Result<Option<bool>>;

    /// The value of a size by the hints; then it is a guard.
    fn number(&mut self, dim: &Dim) -> Result<Option<i64>>;

    /// What the trace knows at its end.
    fn finish(&mut self, graph: &Graph, attributes: &Attributes) -> Result<Inferred>;
}
