//! `counts`: the bytes of each node's result, and its multiply-adds.

use std::fmt;

use fx_core::passes::SizeBytes;
use fx_core::trace::IntoArgs;
use fx_core::value::{Dim, Value};
use fx_core::{Error, GraphModule, Result};

use crate::counter::Counter;

/// The cost of one node in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounts {
    /// Its name.
    pub node: String,
    /// Its target.
    pub target: String,
    /// Its memory.
    pub size: SizeBytes,
    /// Multiplications with an addition, including those inside a called module.
    pub multiply_adds: Dim,
}

/// The costs of a graph's nodes in a run, made by [`counts`]; prints as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The nodes, in the order of the graph.
    pub nodes: Vec<NodeCounts>,
    /// Calls of modules whose multiply-adds could not be counted, with the reason.
    pub uncounted: Vec<String>,
}

/// Runs a graph on sample inputs, which may be fake tensors with sizes that have names, and returns
/// for each node the bytes of its result, the same with the parameters of the module that it calls,
/// and its multiply-adds. They are counted as in [`summary`](crate::summary), which lists them by
/// module. [`get_size_of_all_nodes`](crate::passes::get_size_of_all_nodes) has the bytes without a
/// run.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::counts;
/// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(16, 4)?).push(nn::ReLU::new()))?;
/// let counts = counts(&gm, &Tensor::rand((2, 16))?)?;
/// let linear = counts.node("_0")?;
/// assert_eq!(linear.multiply_adds, 2 * 16 * 4);
/// assert_eq!(linear.size.output_size, 2 * 4 * 4);
/// assert_eq!(linear.size.total_size, 2 * 4 * 4 + (16 * 4 + 4) * 4);
/// println!("{counts}");
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`forward`](GraphModule::forward).
pub fn counts(gm: &GraphModule, args: impl IntoArgs) -> Result<Counts> {
    let mut counter = Counter::default();
    gm.interpret::<Value>(&mut counter, args)?;
    let mut nodes = Vec::with_capacity(counter.nodes.len());
    for seen in counter.nodes {
        let node = gm.graph().node(seen.id)?;
        nodes.push(NodeCounts {
            node: node.name().to_string(),
            target: node.target().to_string(),
            size: SizeBytes::with_output(gm, node, seen.output.memory()?)?,
            multiply_adds: seen.multiply_adds,
        });
    }
    Ok(Counts {
        nodes,
        uncounted: counter.uncounted,
    })
}

impl Counts {
    /// The cost of the node with a name.
    ///
    /// # Errors
    /// Returns an error if there is no such node.
    pub fn node(&self, name: &str) -> Result<&NodeCounts> {
        let found = self.nodes.iter().find(|counts| counts.node == name);
        found.ok_or_else(|| Error::msg(format_args!("the graph has no node `%{name}`")))
    }

    /// Multiply-adds of all nodes.
    ///
    /// # Errors
    /// Returns an error if the number does not fit an `i64`.
    pub fn multiply_adds(&self) -> Result<Dim> {
        let mut counts = self.nodes.iter().map(|counts| &counts.multiply_adds);
        counts.try_fold(Dim::default(), |sum, count| sum + count)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.nodes.iter().map(|counts| counts.node.len());
        let width = names.max().unwrap_or(0).max("node".len());
        writeln!(
            f,
            "{:width$}  {:>14}  {:>14}  {:>16}",
            "node", "output bytes", "with params", "multiply-adds"
        )?;
        for counts in &self.nodes {
            writeln!(
                f,
                "{:width$}  {:>14}  {:>14}  {:>16}",
                counts.node,
                counts.size.output_size.to_string(),
                counts.size.total_size.to_string(),
                counts.multiply_adds.to_string()
            )?;
        }
        for reason in &self.uncounted {
            writeln!(f, "not counted: {reason}")?;
        }
        Ok(())
    }
}
