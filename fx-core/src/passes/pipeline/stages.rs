//! `pipeline`: a graph in stages of about the same cost, as graph modules.
//!
//! Invariant: the stages are a chain; each takes what the one before gives, in the same order, and
//! shares its tensors with the module that was split.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::balance::TooLarge;
use super::load::Calls;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::passes::split::parts::describe_input;
use crate::text::count;
use crate::trace::call_args::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// How stages are chosen.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::pipeline::PipelineOptions;
/// let gm = symbolic_trace(traced!(|x: Float| ((x * 2.0)? + 1.0)? / 3.0))?;
/// let options = PipelineOptions::new().cost(|node| if node.name() == "truediv" { 5 } else { 1 });
/// let pipeline = options.pipeline(&gm, 2)?;
/// let costs: Vec<u64> = pipeline.stages().iter().map(|stage| stage.cost).collect();
/// assert_eq!(costs, [2, 5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct PipelineOptions<'c> {
    cost: Option<Box<CostOf<'c>>>,
    memory_limit: Option<u64>,
}

type CostOf<'c> = dyn FnMut(NodeRef<'_>) -> u64 + 'c;

impl fmt::Debug for PipelineOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PipelineOptions { cost, memory_limit } = self;
        f.debug_struct("PipelineOptions")
            .field("cost", &cost.is_some())
            .field("memory_limit", memory_limit)
            .finish()
    }
}

impl<'c> PipelineOptions<'c> {
    /// Each call costs 1, and stages may hold any number of bytes.
    pub fn new() -> Self {
        PipelineOptions::default()
    }

    /// What a call costs, in any unit: multiply-adds (`fx_nn::passes::pipeline::multiply_adds`), or
    /// the nanoseconds of a [`profile`](GraphModule::profile).
    #[must_use]
    pub fn cost(mut self, cost: impl FnMut(NodeRef<'_>) -> u64 + 'c) -> Self {
        self.cost = Some(Box::new(cost));
        self
    }

    /// The most bytes of parameters, buffers and constants that a stage may hold. A tensor that
    /// several calls of a stage use counts once.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// As [`pipeline`], with these options.
    ///
    /// # Errors
    /// As [`pipeline`]; and if the weights do not fit: the error says how many bytes or stages are
    /// needed.
    pub fn pipeline(self, gm: &GraphModule, stages: usize) -> Result<Pipeline> {
        let calls = match self.cost {
            Some(cost) => Calls::of(gm, cost),
            None => Calls::of(gm, |_| 1),
        };
        if stages == 0 || calls.ids.len() < stages {
            return Err(Error::region(format_args!(
                "a graph of {} cannot have {}: each stage has a call, and there is at least one",
                count(calls.ids.len(), "call"),
                count(stages, "stage"),
            )));
        }
        let starts = calls.load.starts(stages, self.memory_limit);
        let starts = starts.map_err(|e| does_not_fit(gm, &calls, stages, &e))?;
        Ok(Pipeline {
            stages: stages_of(gm, &calls, &starts)?,
            module: gm.clone(),
        })
    }
}

/// Cuts a graph into stages for machines or threads that work at once. Cuts are between calls as
/// they stand in the graph. The largest stage costs at most 5 % more than it has to; among such cuts,
/// the fewest bytes go from stage to stage, as far as
/// [shapes are known](GraphModule::propagate_shapes). Each call costs 1: [`PipelineOptions`] has
/// other costs, and a limit for the memory of a stage. Takes time proportional to the nodes times
/// the stages.
///
/// See [the module](crate::passes::pipeline) for an example.
///
/// # Errors
/// Returns an error if there is no stage, or fewer calls than stages.
pub fn pipeline(gm: &GraphModule, stages: usize) -> Result<Pipeline> {
    PipelineOptions::new().pipeline(gm, stages)
}

/// A model in stages: made by [`pipeline`]; prints as a table.
#[derive(Debug, Clone)]
pub struct Pipeline {
    stages: Vec<Stage>,
    module: GraphModule,
}

/// A stage of a [`Pipeline`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stage {
    /// What it runs, a module named `stage_0`, `stage_1`, and so on. It may be changed, saved,
    /// lowered and sent elsewhere.
    ///
    /// The inputs of the first stage are those of the whole graph, structures taken apart
    /// ([`Pipeline::inputs`]). Every other one has an input for each value that it or a later stage
    /// needs of those before, in the order of the whole graph, under the name of the value. It
    /// returns the tuple of the inputs of the next one, even if that is one value; the last stage
    /// returns what the whole graph returns.
    pub module: GraphModule,
    /// What its calls cost.
    pub cost: u64,
    /// The bytes of its parameters, buffers and constants.
    pub weight_bytes: u64,
    /// The bytes that it takes from the stage before, as far as shapes are known; a value of unknown
    /// size counts as a byte.
    pub input_bytes: u64,
    pub(super) is_last: bool,
}

impl Pipeline {
    /// The stages, in their order.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The stages, to change: to lower one to a backend, for instance.
    pub fn stages_mut(&mut self) -> &mut [Stage] {
        &mut self.stages
    }

    /// The whole model, whose tensors the stages share.
    pub fn module(&self) -> &GraphModule {
        &self.module
    }

    /// The inputs of the first stage for a call of the whole model: arguments bound to the
    /// parameters, defaults filled in, structures taken apart, and checked.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit.
    pub fn inputs(&self, args: impl IntoArgs) -> Result<Vec<Value>> {
        let inputs = self.module.process_inputs(args)?;
        if let Some(contract) = self.module.contract() {
            contract.check(&inputs)?;
        }
        Ok(inputs)
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5}  {:>6}  {:>16}  {:>14}  {:>14}",
            "stage", "calls", "cost", "weight bytes", "input bytes"
        )?;
        for (at, stage) in self.stages.iter().enumerate() {
            let nodes = stage.module.graph().nodes();
            let calls = nodes.filter(|node| node.op().is_call()).count();
            let Stage {
                cost,
                weight_bytes,
                input_bytes,
                ..
            } = stage;
            writeln!(
                f,
                "{at:>5}  {calls:>6}  {cost:>16}  {weight_bytes:>14}  {input_bytes:>14}"
            )?;
        }
        Ok(())
    }
}

/// The modules of the stages that begin at these calls.
fn stages_of(gm: &GraphModule, calls: &Calls, starts: &[usize]) -> Result<Vec<Stage>> {
    let graph = gm.graph();
    let stage_of = |call: usize| starts.partition_point(|start| *start <= call) - 1;
    let mut inputs: Vec<Vec<NodeId>> = vec![Vec::new(); starts.len()];
    inputs[0] = graph.placeholders().map(NodeRef::id).collect();
    for (id, given, last) in &calls.values {
        for taken in &mut inputs[stage_of(*given) + 1..=stage_of(*last)] {
            taken.push(*id);
        }
    }
    let output = graph.output_node();
    let result = output.and_then(|node| node.args().first());
    let result = result.ok_or_else(|| Error::region("the graph has no output"))?;
    let mut stages = Vec::with_capacity(starts.len());
    for (at, start) in starts.iter().enumerate() {
        let is_last = at + 1 == starts.len();
        let end = starts.get(at + 1).copied().unwrap_or(calls.ids.len());
        let own = &calls.ids[*start..end];
        let gives = match inputs.get(at + 1) {
            Some(next) => Argument::Tuple(Arc::new(next.iter().copied().map(Into::into).collect())),
            None => result.clone(),
        };
        let readers = own.iter().copied();
        let readers = readers.chain(output.filter(|_| is_last).map(NodeRef::id));
        let mut nodes = Vec::with_capacity(own.len());
        let mut read = FxHashSet::default();
        for reader in readers {
            for input in graph.node(reader)?.all_input_nodes() {
                if matches!(input.op(), Op::GetAttr(_)) && read.insert(input.id()) {
                    nodes.push(input.id());
                }
            }
        }
        nodes.extend(own);
        let (mut part, mut results) = graph.part(&inputs[at], &nodes, &[gives], describe_input)?;
        part.output(results.swap_remove(0))?;
        let attributes = gm.attributes().named_by(&part);
        let cost = calls.load.costs[*start..end].iter();
        stages.push(Stage {
            module: GraphModule::new(attributes, part, &format!("stage_{at}"))?,
            cost: cost.fold(0, |sum, cost| sum.saturating_add(*cost)),
            weight_bytes: calls.load.bytes_of(*start..end),
            input_bytes: if at == 0 {
                0
            } else {
                calls.load.crossing[*start]
            },
            is_last,
        });
    }
    Ok(stages)
}

fn does_not_fit(gm: &GraphModule, calls: &Calls, stages: usize, why: &TooLarge) -> Error {
    let each = format!(
        "the weights do not fit: {} need a limit of {} bytes",
        count(stages, "stage"),
        why.bytes
    );
    match why.stages {
        Some(enough) => Error::region(format_args!(
            "{each}, or there must be {} of them",
            enough.max(stages + 1)
        )),
        None => {
            let error = Error::region(format_args!(
                "{each}; this call alone reads more than the limit, so that more stages do not help"
            ));
            match gm.graph().node(calls.ids[why.largest]) {
                Ok(node) => node.blame("placing", error),
                Err(_) => error,
            }
        }
    }
}
