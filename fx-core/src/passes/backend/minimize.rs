//! `Minimizer`: the smallest part of a graph for which a backend gives other numbers than the graph.
//!
//! Invariant: each part is run on the values of the graph's own run, so that an error elsewhere does
//! not reach it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::lower::Backend;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::location::SourceLocation;
use crate::module::module::Module;
use crate::module::walk::TensorKind;
use crate::passes::closeness::{Difference, difference};
use crate::region::region::Region;
use crate::run::interpreter::{Interpretation, PlainInterpreter};
use crate::trace::call_args::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// Finds the smallest part of a graph for which a backend fails, or gives numbers that are not
/// close to the graph's: one node, or nodes that only fail together. It takes two binary searches,
/// about 2 log₂ N compilations for N calls.
///
/// The file that [`Minimized::save`] writes reproduces the failure; [`check`](Minimizer::check)
/// runs it.
#[derive(Debug)]
pub struct Minimizer<'b, B: ?Sized> {
    backend: &'b B,
    rtol: f64,
    atol: f64,
}

impl<'b, B: Backend + ?Sized> Minimizer<'b, B> {
    /// For a backend, with tolerances for `float32`: 1e-4 of the expected number, and 1e-5.
    pub fn new(backend: &'b B) -> Self {
        Minimizer {
            backend,
            rtol: 1e-4,
            atol: 1e-5,
        }
    }

    /// Sets how far numbers may be apart: `atol + rtol · |expected|`.
    #[must_use]
    pub fn tolerance(mut self, rtol: f64, atol: f64) -> Self {
        (self.rtol, self.atol) = (rtol, atol);
        self
    }

    /// What is wrong if the backend runs the supported parts of a graph; `None` if nothing is.
    ///
    /// # Errors
    /// Returns an error if the graph itself fails.
    pub fn check(&self, gm: &GraphModule, args: impl IntoArgs) -> Result<Option<String>> {
        self.compare(gm, &gm.process_inputs(args)?)
    }

    /// The smallest part of a graph for which the backend is wrong; `None` if it is right for the
    /// whole.
    ///
    /// # Errors
    /// Returns an error if the graph itself fails.
    pub fn run(&self, gm: &GraphModule, args: impl IntoArgs) -> Result<Option<Minimized>> {
        let mut run = gm.interpretation().keep_values();
        run.run(&mut PlainInterpreter, gm.process_inputs(args)?)?;
        let calls = gm.graph().nodes().filter(|node| node.op().is_call());
        let calls: Vec<NodeId> = calls.map(NodeRef::id).collect();
        let mut compilations = 0;
        let mut problem_of = |from: usize, to: usize| -> Result<Option<(GraphModule, String)>> {
            let Some((part, inputs)) = part_of(gm, &run, &calls[from..to])? else {
                return Ok(None);
            };
            compilations += 1;
            let problem = self.compare(&part, &inputs)?;
            Ok(match problem {
                Some(problem) => Some((with_inputs(part, &inputs)?, problem)),
                None => None,
            })
        };
        let Some(mut smallest) = problem_of(0, calls.len())? else {
            return Ok(None);
        };
        // The first end at which a part from the beginning is wrong, then the last beginning.
        let (mut right, mut to) = (0, calls.len());
        while to - right > 1 {
            let middle = right.midpoint(to);
            match problem_of(0, middle)? {
                Some(found) => (smallest, to) = (found, middle),
                None => right = middle,
            }
        }
        let (mut from, mut right) = (0, to);
        while right - from > 1 {
            let middle = from.midpoint(right);
            match problem_of(middle, to)? {
                Some(found) => (smallest, from) = (found, middle),
                None => right = middle,
            }
        }
        let (module, problem) = smallest;
        let mut nodes = Vec::with_capacity(to - from);
        let mut location = None;
        for id in &calls[from..to] {
            let node = gm.graph().node(*id)?;
            nodes.push(node.name().to_string());
            location = node.location().cloned();
        }
        Ok(Some(Minimized {
            nodes,
            location,
            problem,
            module,
            compilations,
        }))
    }

    fn compare(&self, gm: &GraphModule, inputs: &[Value]) -> Result<Option<String>> {
        let run = |gm: &GraphModule| {
            let mut out = Value::None;
            let inputs: Vec<&Value> = inputs.iter().collect();
            gm.run(&inputs, &mut out).map(|()| out)
        };
        let expected = run(gm)?;
        let mut lowered = gm.clone();
        let report = lowered.lower(self.backend)?;
        if let Some((_, error)) = report.failed.first() {
            return Ok(Some(error.clone()));
        }
        Ok(match run(&lowered) {
            Err(error) => Some(error.to_string()),
            Ok(found) => difference(&found, &expected, self.rtol, self.atol)
                .as_ref()
                .map(Difference::to_string),
        })
    }
}

/// The part for which a backend is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub struct Minimized {
    /// The names of its calls in the graph.
    pub nodes: Vec<String>,
    /// The line of the last one.
    pub location: Option<SourceLocation>,
    /// The backend's error, or how far its numbers are from the graph's.
    pub problem: String,
    /// The part, with the values that it was run on as its tensors: a module without inputs.
    pub module: GraphModule,
    /// How many parts were compiled to find it.
    pub compilations: usize,
}

impl Minimized {
    /// Saves the part with its inputs: `Minimizer::new(&backend).check(&GraphModule::load(path)?, ())`
    /// reproduces the problem.
    ///
    /// # Errors
    /// Returns an error if a module in it cannot be saved, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.module.save(path)
    }
}

impl fmt::Display for Minimized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.nodes.join(", %"))?;
        if let Some(location) = &self.location {
            write!(f, " ({location})")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// The module of some calls, and the values of its inputs in a run; `None` if nothing outside uses
/// them.
fn part_of(
    gm: &GraphModule,
    run: &Interpretation<'_>,
    calls: &[NodeId],
) -> Result<Option<(GraphModule, Vec<Value>)>> {
    let region = Region::of(gm.graph(), calls.iter().copied())?;
    if region.outputs().is_empty() {
        return Ok(None);
    }
    let inputs = region.inputs().iter().map(|id| {
        let value = run.value(*id).cloned();
        value.ok_or_else(|| Error::msg("the run keeps the value of each node"))
    });
    let inputs = inputs.collect::<Result<Vec<Value>>>()?;
    let mut whole = gm.clone();
    let path = "minimized";
    whole.lift_subgraph(calls, path)?;
    Ok(Some((
        whole.submodule_as::<GraphModule>(path)?.clone(),
        inputs,
    )))
}

/// A part whose inputs are tensors and literals of its own.
fn with_inputs(mut part: GraphModule, inputs: &[Value]) -> Result<GraphModule> {
    let placeholders: Vec<NodeId> = part.graph().placeholders().map(NodeRef::id).collect();
    let mut edit = part.graph_mut();
    let (graph, attributes) = edit.parts();
    for (number, (placeholder, value)) in placeholders.into_iter().zip(inputs).enumerate() {
        let argument = match value.as_object() {
            Some(_) => {
                let path: Arc<str> = format!("input_{number}").into();
                attributes
                    .tensors
                    .insert(path.clone(), (TensorKind::Buffer, value.clone()));
                Argument::Node(read_before(graph, placeholder, &path)?)
            }
            // A structure of tensors stays an input.
            None => match Argument::of_plain(value) {
                Some(argument) => argument,
                None => continue,
            },
        };
        graph.substitute(placeholder, &argument)?;
        graph.erase_node(placeholder)?;
    }
    drop(edit);
    part.lint()?;
    Ok(part)
}

fn read_before(graph: &mut Graph, placeholder: NodeId, path: &Arc<str>) -> Result<NodeId> {
    let mut place = graph.inserting_before(placeholder)?;
    let read = place.get_attr(path)?;
    place.learn_from(read, placeholder)?;
    Ok(read)
}
