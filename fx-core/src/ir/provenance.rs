//! Provenance as text: what passes did to produce the nodes of a graph.
//!
//! Invariant: both forms tell what [`NodeRef::sources`](super::node::NodeRef::sources) lists.

use serde_json::{Map, Value as Json, json};

use super::graph::Graph;
use super::meta::NodeAction;
use crate::error::Result;
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;

impl Graph {
    /// A node's history: what it computes, where it was written, in which modules, and what passes
    /// did.
    ///
    /// # Errors
    /// Returns an error if the node is not in this graph.
    pub fn explain(&self, id: NodeId) -> Result<String> {
        let node = self.node(id)?;
        let mut lines = vec![node.to_string()];
        if let Some(location) = node.location() {
            lines.push(format!("  written at {location}"));
        }
        for scope in node.modules_around() {
            let name = short_type_name(&scope.type_name);
            lines.push(if scope.path.is_empty() {
                format!("  in the root, a {name}")
            } else {
                format!("  in {}, a {name}", scope.path)
            });
        }
        for source in node.sources() {
            let names: Vec<String> = source.from.iter().map(|n| format!("%{n}")).collect();
            lines.push(match source.action {
                NodeAction::Create if names.is_empty() => {
                    format!("  made by pass `{}`", source.pass)
                }
                NodeAction::Create => {
                    format!("  made by pass `{}` from {}", source.pass, names.join(", "))
                }
                NodeAction::Replace => format!(
                    "  stands for {} since pass `{}`",
                    names.join(", "),
                    source.pass
                ),
            });
        }
        Ok(lines.join("\n"))
    }

    /// What passes did to produce the nodes, as JSON: an object with the list of
    /// [`sources`](crate::ir::NodeRef::sources) of each node that has any, under the node's name and
    /// in the order of the graph.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::operator;
    /// use fx_core::passes::pass_fn;
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * 2.0))?;
    /// gm.apply(&pass_fn("add_to_sub", |gm| {
    ///     let mut graph = gm.graph_mut();
    ///     let add = graph.find_name("add").map(|node| node.id()).ok_or_else(|| Error::msg("it is there"))?;
    ///     let x = graph.node(add)?.args().to_vec().swap_remove(0);
    ///     let sub = graph.inserting_before(add)?.call_function(operator::sub, (x, 3.0), ())?;
    ///     graph.node_mut(add)?.replace_all_uses_with(sub)?;
    ///     graph.erase_node(add)?;
    ///     Ok(true)
    /// }))?;
    /// assert_eq!(
    ///     gm.graph().provenance_json(),
    ///     r#"{"sub":[{"pass":"add_to_sub","action":"create","from":[]},{"pass":"add_to_sub","action":"replace","from":["add"]}]}"#
    /// );
    /// # Ok::<(), Error>(())
    /// ```
    pub fn provenance_json(&self) -> String {
        let mut nodes = Map::new();
        for node in self.nodes().filter(|node| !node.sources().is_empty()) {
            let sources = node.sources().iter().map(|source| {
                json!({"pass": &*source.pass, "action": source.action.name(), "from": source.from})
            });
            nodes.insert(node.name().to_string(), sources.collect());
        }
        Json::Object(nodes).to_string()
    }
}
