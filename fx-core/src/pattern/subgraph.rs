//! `IntoSubgraph`: what can be a pattern or a replacement; it defines the shape of both, inputs in
//! and values out.

use crate::error::{Error, Result};
use crate::graph_module::{GraphModule, symbolic_trace};
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::module::attributes::Attributes;
use crate::trace::root::TracedFn;
use crate::value::handle::NodeId;

/// A graph with what it names.
#[derive(Debug, Clone)]
pub struct Subgraph {
    pub(super) graph: Graph,
    pub(super) attributes: Attributes,
}

/// What a pattern or a replacement can be written as: a [`traced!`](crate::traced) function, a
/// graph, a graph module.
pub trait IntoSubgraph {
    /// The graph with what it names.
    ///
    /// # Errors
    /// Returns an error if it cannot be traced.
    fn into_subgraph(self) -> Result<Subgraph>;
}

impl IntoSubgraph for TracedFn {
    fn into_subgraph(self) -> Result<Subgraph> {
        symbolic_trace(self)?.into_subgraph()
    }
}

impl IntoSubgraph for &GraphModule {
    fn into_subgraph(self) -> Result<Subgraph> {
        Ok(Subgraph {
            graph: self.graph().clone(),
            attributes: self.attributes().clone(),
        })
    }
}

impl IntoSubgraph for GraphModule {
    fn into_subgraph(self) -> Result<Subgraph> {
        let (graph, attributes) = self.into_parts();
        Ok(Subgraph { graph, attributes })
    }
}

impl IntoSubgraph for Graph {
    fn into_subgraph(self) -> Result<Subgraph> {
        Ok(Subgraph {
            graph: self,
            attributes: Attributes::default(),
        })
    }
}

impl IntoSubgraph for &Graph {
    fn into_subgraph(self) -> Result<Subgraph> {
        self.clone().into_subgraph()
    }
}

/// What a sub-graph returns: its values in order, and nodes that are only named.
pub(super) struct Returned {
    pub values: Vec<Argument>,
    pub named: Vec<(String, NodeId)>,
}

impl Subgraph {
    /// The values that the output returns, structures taken apart; in a tuple that ends in a dict,
    /// the dict names nodes.
    pub(super) fn returned(&self) -> Result<Returned> {
        let output = self.graph.output_node();
        let result = output.and_then(|node| node.args().first());
        let mut returned = Returned {
            values: Vec::new(),
            named: Vec::new(),
        };
        let Some(result) = result else {
            return Err(Error::msg(
                "it has no output node: give it one that returns what is to be replaced",
            ));
        };
        let values = match result {
            Argument::Tuple(items) => match items.split_last() {
                Some((Argument::Dict(names), values)) if !values.is_empty() => {
                    for (name, arg) in names.iter() {
                        let node = arg.as_node().ok_or_else(|| {
                            Error::msg(format_args!(
                                "`{name}` names a plain value, and only nodes can be named"
                            ))
                        })?;
                        returned.named.push((name.to_string(), node));
                    }
                    values
                }
                _ => items,
            },
            one => std::slice::from_ref(one),
        };
        for value in values {
            take_apart(value, &mut returned.values);
        }
        Ok(returned)
    }
}

/// The leaves of a structure, in order.
fn take_apart(value: &Argument, into: &mut Vec<Argument>) {
    match value {
        Argument::List(items) | Argument::Tuple(items) => {
            items.iter().for_each(|item| take_apart(item, into));
        }
        Argument::Dict(items) => items.iter().for_each(|(_, item)| take_apart(item, into)),
        leaf => into.push(leaf.clone()),
    }
}
