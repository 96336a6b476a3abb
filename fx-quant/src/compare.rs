//! How far a quantized graph is from the floats that it stands for, node by node.
//!
//! Invariant: a node is compared with the node of the same name in the plan's graph, by what readers of it read.

use std::fmt;

use fx_core::trace::IntoArgs;
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::observer::floats;
use crate::plan::{Plan, path_of};
use crate::run::{as_floats, watched};

/// How far a node's value is from that of the plan's graph.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NodeError {
    /// The node's name.
    pub node: String,
    /// The path of the module that it is in.
    pub path: String,
    /// Signal over noise in decibels: 20 log10 of the norm of the value over the norm of the difference; infinite where
    /// there is no difference.
    pub sqnr: f64,
    /// The cosine of the angle between both.
    pub cosine: f64,
    /// The largest difference.
    pub max_abs: f64,
}

/// The distance of two graphs: of each node, and of the result. It prints as a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// The nodes with values of floats in both, in the order of the graph.
    pub nodes: Vec<NodeError>,
    result: Sums,
}

/// Sums over all pairs of numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    of_first: f64,
    of_second: f64,
    of_both: f64,
    of_difference: f64,
    max_abs: f64,
}

impl Sums {
    pub(crate) fn add(&mut self, first: &[f32], second: &[f32]) -> Result<()> {
        if first.len() != second.len() {
            return Err(Error::msg(format_args!(
                "{} numbers are beside {}: compare graphs of one model",
                first.len(),
                second.len()
            )));
        }
        for (&a, &b) in first.iter().zip(second) {
            let (a, b) = (f64::from(a), f64::from(b));
            self.of_first += a * a;
            self.of_second += b * b;
            self.of_both += a * b;
            self.of_difference += (a - b) * (a - b);
            self.max_abs = self.max_abs.max((a - b).abs());
        }
        Ok(())
    }

    pub(crate) fn sqnr(&self) -> f64 {
        match self.of_difference == 0.0 {
            true => f64::INFINITY,
            false => 10.0 * (self.of_first / self.of_difference).log10(),
        }
    }

    fn cosine(&self) -> f64 {
        match self.of_first == 0.0 && self.of_second == 0.0 {
            true => 1.0,
            false => self.of_both / (self.of_first * self.of_second).sqrt(),
        }
    }
}

impl Comparison {
    /// Signal over noise of the results, in decibels.
    pub fn sqnr(&self) -> f64 {
        self.result.sqnr()
    }

    /// The nodes, the one with the least signal over noise first.
    pub fn worst(&self) -> Vec<&NodeError> {
        let mut nodes: Vec<&NodeError> = self.nodes.iter().collect();
        nodes.sort_by(|a, b| a.sqnr.total_cmp(&b.sqnr));
        nodes
    }
}

/// Runs the plan's graph in floats and a graph that it was converted to on the same inputs, and compares their values: the
/// error of all nodes before one and of itself.
///
/// # Errors
/// Returns an error if a run fails, there are no inputs, or the graphs are of different models.
pub fn compare<A: IntoArgs + Clone>(
    plan: &Plan,
    quantized: &GraphModule,
    inputs: impl IntoIterator<Item = A>,
) -> Result<Comparison> {
    let float = plan.graph_module();
    let mut sums: IndexMap<String, Sums> = IndexMap::new();
    let mut result = Sums::default();
    let mut runs = 0;
    for args in inputs {
        runs += 1;
        let mut found: FxHashMap<String, Vec<f32>> = FxHashMap::default();
        let of_quantized = watched(quantized, args.clone(), |node, value| {
            if let Some(tensor) = as_floats(value) {
                let name = node.name().to_string();
                // What readers read stands for the value.
                let name = name
                    .strip_suffix("_dequantized")
                    .map(str::to_string)
                    .unwrap_or(name);
                found.insert(name, floats(&tensor)?);
            }
            Ok(())
        })?;
        let of_float = watched(float, args, |node, value| {
            let name = node.name().to_string();
            if let (Some(tensor), Some(other)) = (as_floats(value), found.get(&name))
                && plan.decision(&name).is_some()
            {
                sums.entry(name)
                    .or_default()
                    .add(&floats(&tensor)?, other)?;
            }
            Ok(())
        })?;
        result.add(&leaves(&of_float)?, &leaves(&of_quantized)?)?;
    }
    if runs == 0 {
        return Err(Error::msg(
            "there are no inputs to compare graphs on: give some",
        ));
    }
    let nodes = sums.into_iter().map(|(node, sums)| NodeError {
        path: float
            .graph()
            .find_name(&node)
            .map(|node| path_of(node).to_string())
            .unwrap_or_default(),
        node,
        sqnr: sums.sqnr(),
        cosine: sums.cosine(),
        max_abs: sums.max_abs,
    });
    Ok(Comparison {
        nodes: nodes.collect(),
        result,
    })
}

/// All floats of a result.
pub(crate) fn leaves(value: &Value) -> Result<Vec<f32>> {
    let (mut all, mut failed) = (Vec::new(), None);
    value.for_each(&mut |leaf| {
        if let Some(tensor) = as_floats(leaf) {
            match floats(&tensor) {
                Ok(numbers) => all.extend(numbers),
                Err(error) => failed = Some(error),
            }
        }
    });
    failed.map_or(Ok(all), Err)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>8} {:>9} {:>10}  node",
            "sqnr_db", "cosine", "max_abs"
        )?;
        for NodeError {
            node,
            path,
            sqnr,
            cosine,
            max_abs,
        } in &self.nodes
        {
            writeln!(
                f,
                "{sqnr:>8.2} {cosine:>9.6} {max_abs:>10.3e}  %{node} {path}"
            )?;
        }
        writeln!(
            f,
            "{:>8.2} {:>9.6}             the result",
            self.sqnr(),
            self.result.cosine()
        )
    }
}
