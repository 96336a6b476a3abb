//! Shapes while a trace records: what a node gives is inferred as soon as it is recorded, so that a
//! mistake is an error at the user's line, and what is known is no node.
//!
//! Invariant: what is recorded in a branch or a loop is inferred with it.

use super::context::TraceContext;
use super::infers::Infers;
use super::report::{Frozen, ReportEntry};
use super::scope::folds;
use crate::error::Result;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::shapes::Contract;
use crate::shapes::relied::ReliedOn;
use crate::value::dim::Dim;
use crate::value::handle::{NodeId, Proxy};
use crate::value::value::Value;

impl TraceContext {
    /// Whether shapes are inferred here. What is recorded in a side of a branch is inferred with the
    /// branch.
    fn infers(&self) -> bool {
        self.shapes.borrow().is_some() && !self.is_in_a_side()
    }

    /// Asks the inference.
    fn ask_shapes<R>(
        &self,
        ask: impl FnOnce(&mut dyn Infers, &Graph, &Attributes) -> Result<R>,
    ) -> Result<Option<R>> {
        if !self.infers() {
            return Ok(None);
        }
        let graph = self.graph()?;
        let attributes = self.attributes.borrow();
        let mut shapes = self.shapes.borrow_mut();
        match shapes.as_mut() {
            Some(infers) => ask(&mut **infers, &graph, &attributes).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn start_shapes(&self, params: &[ParamSpec]) -> Result<()> {
        let trees = self.inputs.borrow();
        self.ask_shapes(|shapes, graph, _| shapes.start(graph, params, &trees))?;
        Ok(())
    }

    /// What a node gives, if shapes are inferred.
    pub(crate) fn shape_of(&self, node: NodeId) -> Result<Option<ValueMeta>> {
        self.ask_shapes(|shapes, graph, attributes| shapes.node(graph, attributes, node))
    }

    /// A value that was just recorded: a number or a list of them that is known instead of a node
    /// for it.
    #[inline]
    pub(super) fn folded(&self, proxy: Proxy) -> Result<Value> {
        match self.infers() {
            true => self.folded_by_shape(proxy),
            false => Ok(Value::Proxy(proxy)),
        }
    }

    fn folded_by_shape(&self, proxy: Proxy) -> Result<Value> {
        let Some(given) = self.shape_of(proxy.node)? else {
            return Ok(Value::Proxy(proxy));
        };
        let known = match given {
            ValueMeta::Plain(Value::None) | ValueMeta::Single(_) => None,
            given => given.known(),
        };
        let mut graph = self.graph_mut()?;
        let node = graph.node(proxy.node)?;
        let is_call = match node.op() {
            Op::CallFunction(_) | Op::CallMethod(_) => node.functions().effects().is_pure(),
            _ => false,
        };
        match known {
            Some(value) if is_call && folds() && node.num_users() == 0 => {
                let inputs: Vec<NodeId> = node.all_input_nodes().map(NodeRef::id).collect();
                graph.erase_node(proxy.node)?;
                drop(graph);
                self.rely_on(&inputs)?;
                Ok(value)
            }
            _ => Ok(Value::Proxy(proxy)),
        }
    }

    /// Has runs compare what these nodes give with what is known of it: a number was taken from it.
    fn rely_on(&self, nodes: &[NodeId]) -> Result<()> {
        for node in nodes {
            if let Some(meta @ ValueMeta::Single(_)) = self.shape_of(*node)? {
                let mut graph = self.graph_mut()?;
                // The contract speaks of the inputs.
                if !matches!(graph.node(*node)?.op(), Op::Placeholder(_) | Op::GetAttr(_)) {
                    graph.node_mut(*node)?.set_meta(ReliedOn::new(meta));
                }
            }
        }
        Ok(())
    }

    /// The truth of a condition, as far as the hints of the inputs say.
    pub(super) fn truth_by_hints(&self, proxy: Proxy) -> Result<Option<bool>> {
        let truth = self
            .ask_shapes(|shapes, graph, attributes| shapes.truth(graph, attributes, proxy.node))?;
        Ok(truth.flatten())
    }

    /// The number that a size is, as far as its range or the hints say.
    pub(super) fn number_by_hints(&self, proxy: Proxy) -> Result<Option<i64>> {
        match self.shape_of(proxy.node)? {
            Some(ValueMeta::Int(dim)) => self.number_of(&dim),
            _ => Ok(None),
        }
    }

    fn number_of(&self, dim: &Dim) -> Result<Option<i64>> {
        match dim.as_number() {
            Some(number) => Ok(Some(number)),
            None => Ok(self
                .ask_shapes(|shapes, _, _| shapes.number(dim))?
                .flatten()),
        }
    }

    /// How many items a value has: a list or a tuple, or a tensor along its first dim.
    pub(super) fn items_of(&self, proxy: Proxy) -> Result<Option<usize>> {
        let count = match self.shape_of(proxy.node)? {
            Some(ValueMeta::List(items) | ValueMeta::Tuple(items)) => return Ok(Some(items.len())),
            Some(ValueMeta::Repeated(_, length)) => self.number_of(&length)?,
            Some(ValueMeta::Single(meta)) => match meta.shape.first() {
                Some(first) => self.number_of(first)?,
                None => None,
            },
            _ => None,
        };
        Ok(count.and_then(|count| usize::try_from(count).ok()))
    }

    /// Ends the inference: entries, and the contract with its guards in the report.
    pub(super) fn finish_shapes(&self) -> Result<Option<Contract>> {
        let Some(mut shapes) = self.shapes.take() else {
            return Ok(None);
        };
        let inferred = shapes.finish(&*self.graph()?, &self.attributes.borrow())?;
        let (contract, metas) = inferred;
        let mut graph = self.graph_mut()?;
        for (node, meta) in metas {
            graph.node_mut(node)?.set_meta(meta);
        }
        drop(graph);
        for guard in contract.guards() {
            self.report.borrow_mut().add(ReportEntry {
                what: Frozen::Guard(guard.claim.clone()),
                location: guard.location.clone(),
                module: guard.module.clone(),
            });
        }
        Ok(Some(contract))
    }
}
