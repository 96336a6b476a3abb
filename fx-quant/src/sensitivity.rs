//! Which layer hurts: the error of the result when one node alone is quantized, and a plan within an error.
//!
//! Invariant: each figure is of the whole model on the given inputs, not of a node's own output.

use std::fmt;

use fx_core::trace::IntoArgs;
use fx_core::{Error, GraphModule, Result};

use crate::calibrate::Calibration;
use crate::compare::{Sums, leaves};
use crate::plan::{Decision, Plan, path_of};
use crate::role::Role;

/// What quantizing one node alone does to the result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sensitivity {
    /// The node's name.
    pub node: String,
    /// The path of the module that it is in.
    pub path: String,
    /// Signal over noise of the result, in decibels.
    pub sqnr: f64,
}

/// The nodes of a plan by what each does to the result alone, the worst first. It prints as a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SensitivityReport {
    /// The nodes, the one with the least signal over noise first.
    pub nodes: Vec<Sensitivity>,
}

impl fmt::Display for SensitivityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>8}  node", "sqnr_db")?;
        for Sensitivity { node, path, sqnr } in &self.nodes {
            writeln!(f, "{sqnr:>8.2}  %{node} {path}")?;
        }
        Ok(())
    }
}

impl Plan {
    /// The error of the result when each quantized node is quantized alone.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_quant::{QConfig, Quantize};
    /// fx_nn::manual_seed(0);
    /// let mut model = nn::Sequential::new();
    /// for _ in 0..3 {
    ///     model = model.push(nn::Linear::new(16, 16)?).push(nn::ReLU::new());
    /// }
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let batches: Vec<Tensor> = (0..4).map(|_| Tensor::randn((8, 16))).collect::<Result<_>>()?;
    /// let plan = Quantize::new(QConfig::default()).plan(&gm)?;
    /// let calibration = plan.calibrate(&batches)?;
    /// let report = plan.sensitivity(&calibration, &batches)?;
    /// assert_eq!(report.nodes.len(), 3);
    /// println!("{report}");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a run fails, or there are no inputs.
    pub fn sensitivity<A: IntoArgs + Clone>(
        &self,
        calibration: &Calibration,
        inputs: impl IntoIterator<Item = A>,
    ) -> Result<SensitivityReport> {
        let inputs: Vec<A> = inputs.into_iter().collect();
        let expected = results(&self.gm, &inputs)?;
        let mut nodes = Vec::new();
        for (name, decision) in &self.decisions {
            if !matches!(decision, Decision::Quantized(_)) || self.is_shared(name)? {
                continue;
            }
            let alone = self.only(|other| other == name)?;
            let found = results(&alone.convert(&calibration.of(&alone))?, &inputs)?;
            let path = self
                .gm
                .graph()
                .find_name(name)
                .map(|node| path_of(node).to_string());
            nodes.push(Sensitivity {
                node: name.clone(),
                path: path.unwrap_or_default(),
                sqnr: sqnr(&expected, &found)?,
            });
        }
        nodes.sort_by(|a, b| a.sqnr.total_cmp(&b.sqnr));
        Ok(SensitivityReport { nodes })
    }

    /// A plan whose result has at least a signal over noise, in decibels: nodes go back to floats, those first that hurt
    /// most alone, until it holds; each is then tried in integers again.
    ///
    /// # Errors
    /// Returns an error if a run fails, there are no inputs, or floats alone reach it.
    pub fn within<A: IntoArgs + Clone>(
        &self,
        calibration: &Calibration,
        inputs: impl IntoIterator<Item = A>,
        sqnr_db: f64,
    ) -> Result<Plan> {
        let inputs: Vec<A> = inputs.into_iter().collect();
        let expected = results(&self.gm, &inputs)?;
        let report = self.sensitivity(calibration, inputs.iter().cloned())?;
        let reached = |off: &[&str]| -> Result<(Plan, bool)> {
            let plan = self.only(|name| !off.contains(&name))?;
            let found = results(&plan.convert(&calibration.of(&plan))?, &inputs)?;
            let reached = sqnr(&expected, &found)? >= sqnr_db;
            Ok((plan, reached))
        };
        let order: Vec<&str> = report.nodes.iter().map(|node| &*node.node).collect();
        let mut count = 0;
        let mut found = reached(&[])?;
        while !found.1 {
            count += 1;
            if count > order.len() {
                return Err(Error::msg(format_args!(
                    "no node can be of integers within {sqnr_db} dB: ask for less"
                )));
            }
            found = reached(&order[..count])?;
        }
        let mut off: Vec<&str> = order[..count].to_vec();
        let mut best = found.0;
        for name in order[..count].iter().rev() {
            let fewer: Vec<&str> = off.iter().copied().filter(|other| other != name).collect();
            if let (plan, true) = reached(&fewer)? {
                (off, best) = (fewer, plan);
            }
        }
        Ok(best)
    }

    fn is_shared(&self, name: &str) -> Result<bool> {
        let role = self
            .gm
            .graph()
            .find_name(name)
            .map(Role::of_node)
            .transpose()?;
        Ok(matches!(role.flatten(), Some(Role::Shared | Role::Bounded)))
    }
}

impl Calibration {
    /// The same numbers for a plan of fewer nodes, whose values are among this one's.
    fn of(&self, plan: &Plan) -> Calibration {
        let mut own = self.clone();
        own.params.retain(|name, _| plan.values.contains_key(name));
        own
    }
}

/// All floats that a graph gives for inputs.
fn results<A: IntoArgs + Clone>(gm: &GraphModule, inputs: &[A]) -> Result<Vec<Vec<f32>>> {
    if inputs.is_empty() {
        return Err(Error::msg(
            "there are no inputs to measure the error on: give some",
        ));
    }
    let of = |args: &A| leaves(&gm.forward(args.clone())?);
    inputs.iter().map(of).collect()
}

fn sqnr(expected: &[Vec<f32>], found: &[Vec<f32>]) -> Result<f64> {
    let mut sums = Sums::default();
    for (expected, found) in expected.iter().zip(found) {
        sums.add(expected, found)?;
    }
    Ok(sums.sqnr())
}
