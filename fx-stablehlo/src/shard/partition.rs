//! `Partitioned`: the program that each device of a mesh runs, with its collectives as steps of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use fx_nn::ir::{Argument, Effects, Function, NodeRef, Op, ValueMeta};
use fx_nn::module::Call;
use fx_nn::value::{NodeId, Value};
use fx_nn::{Error, GraphModule, Result};
use rustc_hash::FxHashMap;

use super::factors::{Local, ShardCall};
use super::flow::{Flow, Layout};
use super::mesh::Mesh;
use super::plan::{CallPlan, CollectiveKind, Move, along, moves, part};

/// What a step computes, into its slot.
pub(super) enum What {
    /// An input.
    Input(usize),
    /// A parameter, a buffer, or a number that is known.
    Stored(Value),
    /// A value in another layout.
    Move { from: usize, moves: Vec<Move> },
    /// A call.
    Call(Box<LocalCall>),
}

/// A call on parts.
pub(super) struct LocalCall {
    pub function: Function,
    /// One for each parameter.
    pub args: Vec<Argument>,
    /// The slots of the nodes that they name.
    pub slots: FxHashMap<NodeId, usize>,
    /// The parameter that only devices at the start of the partial axes add.
    pub once: Option<usize>,
    /// The axes along which the result is partial.
    pub partial: Vec<usize>,
    /// The axes of the rows of a look-up, with the places of the index and of the table.
    pub rows: Option<(Vec<usize>, usize, usize)>,
}

/// One step of the program.
pub(super) struct Step {
    pub slot: usize,
    pub name: String,
    pub what: What,
}

/// A collective of the program, with what it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collective {
    /// What it does.
    pub kind: CollectiveKind,
    /// The axes of the mesh along which devices take part.
    pub axes: Vec<String>,
    /// The node whose value is moved.
    pub node: String,
    /// The bytes that a device has of it behind an `all_gather`, or before the others.
    pub bytes: usize,
}

/// The program of each device of a mesh. [`run`](Partitioned::run) runs all of them, a thread for each.
pub struct Partitioned {
    pub(super) mesh: Mesh,
    pub(super) steps: Vec<Step>,
    pub(super) slots: usize,
    /// The slots that no step behind a step uses, by step.
    pub(super) dropped: Vec<Vec<usize>>,
    /// How each input is shared.
    pub(super) inputs: Vec<(String, Layout, Vec<usize>)>,
    /// Each returned value, and its layout.
    pub(super) outputs: Vec<(usize, Layout)>,
    collectives: Vec<Collective>,
}

/// The program that each device runs, by the shardings that [`shard`](super::shard()) has set.
///
/// It is the reference for compilers: each call is computed on the parts that a device has, where its factors allow it,
/// and on whole values elsewhere, with a collective wherever values have to move.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::shard::{CollectiveKind, mesh, reference, shard, shard_rules};
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::Linear::new(16, 8)?);
/// let mut gm = symbolic_trace(&model)?.opened()?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let mesh = mesh!["model" = 2]?;
/// shard(&mut gm, &mesh, &shard_rules! { "0.weight" => ["model", _], "1.weight" => [_, "model"] })?;
/// let parts = reference(&gm, &mesh)?;
/// assert_eq!(parts.counts(), [(CollectiveKind::AllReduce, 1)]);
/// let x = Tensor::randn((4, 8))?;
/// let (whole, shared) = (gm.forward::<Tensor>(&x)?, parts.run(&[x])?);
/// assert!(fx_nn::allclose(&whole, &shared[0], 1e-5, 1e-6)?.close);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if no node has a sharding, one does not fit the mesh, a size is no number, or a node cannot be
/// called: the error names it.
pub fn reference(gm: &GraphModule, mesh: &Mesh) -> Result<Partitioned> {
    let flow = Flow::read(gm, mesh)?;
    let mut writer = Writer {
        gm,
        flow: &flow,
        steps: Vec::new(),
        slots: flow.nodes.len(),
        moved: FxHashMap::default(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        collectives: Vec::new(),
    };
    for (at, id) in flow.nodes.iter().enumerate() {
        let node = gm.graph().node(*id)?;
        writer
            .node(at, node)
            .map_err(|error| node.blame("partitioning", error))?;
    }
    Ok(Partitioned {
        mesh: mesh.clone(),
        dropped: dropped(&writer.steps, &writer.outputs),
        steps: writer.steps,
        slots: writer.slots,
        inputs: writer.inputs,
        outputs: writer.outputs,
        collectives: writer.collectives,
    })
}

/// The slots that are not used any more behind each step.
fn dropped(steps: &[Step], outputs: &[(usize, Layout)]) -> Vec<Vec<usize>> {
    let mut last: FxHashMap<usize, usize> = FxHashMap::default();
    for (at, step) in steps.iter().enumerate() {
        last.insert(step.slot, at);
        match &step.what {
            What::Move { from, .. } => {
                last.insert(*from, at);
            }
            What::Call(call) => last.extend(call.slots.values().map(|slot| (*slot, at))),
            What::Input(_) | What::Stored(_) => {}
        }
    }
    for (slot, _) in outputs {
        last.remove(slot);
    }
    let mut dropped = vec![Vec::new(); steps.len()];
    for (slot, at) in last {
        dropped[at].push(slot);
    }
    dropped
}

struct Writer<'w> {
    gm: &'w GraphModule,
    flow: &'w Flow<'w>,
    steps: Vec<Step>,
    slots: usize,
    /// The slots of values in layouts other than their own, by place and layout.
    moved: FxHashMap<(usize, Layout), usize>,
    inputs: Vec<(String, Layout, Vec<usize>)>,
    outputs: Vec<(usize, Layout)>,
    collectives: Vec<Collective>,
}

fn is_tensor(node: NodeRef<'_>) -> bool {
    let meta = node.meta::<ValueMeta>();
    meta.is_some_and(|meta| meta.tensor().is_some())
}

impl Writer<'_> {
    fn node(&mut self, at: usize, node: NodeRef<'_>) -> Result<()> {
        let name = node.name().to_string();
        let mut put = |slot: usize, what: What| {
            let name = name.clone();
            self.steps.push(Step { slot, name, what });
        };
        let value = self.flow.values[at].as_ref();
        let layout = value.map(|value| value.layout.clone());
        match node.op() {
            Op::Placeholder(_) => {
                let Some(value) = value.filter(|_| is_tensor(node)) else {
                    return Err(Error::msg(
                        "it is no tensor whose sizes are numbers: give `infer_shapes` numbers, and fix other inputs",
                    ));
                };
                put(at, What::Input(self.inputs.len()));
                self.inputs
                    .push((name, value.layout.clone(), value.shape.clone()));
            }
            Op::GetAttr(path) => {
                let whole = self.gm.attributes().tensor(path)?.clone();
                let Some(layout) = layout.filter(|layout| layout.iter().any(|a| !a.is_empty()))
                else {
                    put(at, What::Stored(whole));
                    return Ok(());
                };
                let slot = self.slots;
                self.slots += 1;
                put(slot, What::Stored(whole));
                let moves = moves(&vec![Vec::new(); layout.len()], &layout);
                put(at, What::Move { from: slot, moves });
            }
            Op::Output => {
                let mut returned = Vec::new();
                for argument in node.args() {
                    argument.for_each_node(&mut |id| returned.push(id));
                }
                for id in returned {
                    let at = self.flow.places[&id];
                    let returned = node.graph().node(id)?;
                    let value = self.flow.values[at].as_ref();
                    let Some(value) = value.filter(|_| is_tensor(returned)) else {
                        return Err(Error::msg(format_args!(
                            "%{} is no tensor whose sizes are numbers: return tensors, one by one",
                            returned.name()
                        )));
                    };
                    self.outputs.push((at, value.layout.clone()));
                }
            }
            Op::CallModule(path) => {
                return Err(Error::msg(format_args!(
                    "it calls the layer `{path}`: call `gm.opened()` before `shard`"
                )));
            }
            Op::CallFunction(_) | Op::CallMethod(_) => {
                if let Some(value) = node.meta::<ValueMeta>().and_then(ValueMeta::known) {
                    put(at, What::Stored(value));
                    return Ok(());
                }
                self.call(at, node)?;
            }
        }
        Ok(())
    }

    /// The slot of a value in a layout.
    fn in_layout(&mut self, place: usize, layout: &Layout, name: &str) -> usize {
        let flow = self.flow;
        let Some(value) = &flow.values[place] else {
            return place;
        };
        let moves = moves(&value.layout, layout);
        if moves.is_empty() {
            return place;
        }
        let key = (place, layout.clone());
        if let Some(slot) = self.moved.get(&key) {
            return *slot;
        }
        let slot = self.slots;
        self.slots += 1;
        self.count(&value.layout, &moves, value.bytes, name);
        self.steps.push(Step {
            slot,
            name: name.to_string(),
            what: What::Move { from: place, moves },
        });
        self.moved.insert(key, slot);
        slot
    }

    /// Notes the collectives among moves.
    fn count(&mut self, from: &Layout, moves: &[Move], bytes: usize, name: &str) {
        let mesh = self.flow.mesh;
        let mut before = from.clone();
        for (one, after) in moves.iter().zip(along(from, moves)) {
            if let Some(kind) = one.kind() {
                let counted = match kind {
                    CollectiveKind::AllGather => &after,
                    _ => &before,
                };
                let axes = one.axes().iter();
                self.collectives.push(Collective {
                    kind,
                    axes: axes.map(|axis| mesh.name(*axis).to_string()).collect(),
                    node: name.to_string(),
                    bytes: part(mesh, bytes, counted),
                });
            }
            before = after;
        }
    }

    fn call(&mut self, at: usize, node: NodeRef<'_>) -> Result<()> {
        let flow = self.flow;
        let call = ShardCall::of(node, self.gm.attributes())?.ok_or_else(|| {
            Error::msg(format_args!(
                "`{}` is a method of no type or of several, which the graph does not know",
                node.target()
            ))
        })?;
        let plan = flow.plan(at);
        let effects = Call::of(node, self.gm.attributes()).effects();
        let is_impure = effects.contains(Effects::RANDOM) || effects.contains(Effects::WRITES);
        if plan.is_whole && is_impure && !is_evaluated(&call) {
            return Err(Error::msg(
                "each device would draw other numbers, or change the same state: call `eval()` on the model",
            ));
        }
        let mut slots = FxHashMap::default();
        for input in node.all_input_nodes() {
            let place = flow.places[&input.id()];
            let planned = plan.operands.iter().find(|(known, _)| *known == place);
            let rank = flow.values[place].as_ref().map_or(0, |v| v.shape.len());
            let whole = vec![Vec::new(); rank];
            let layout = planned.map_or(&whole, |(_, layout)| layout);
            let slot = self.in_layout(place, layout, &input.name().to_string());
            slots.insert(input.id(), slot);
        }
        let name = node.name().to_string();
        let local = self.local(at, &call, &plan, slots)?;
        let moves = &plan.after;
        let slot = match moves.is_empty() {
            true => at,
            false => {
                self.slots += 1;
                self.slots - 1
            }
        };
        self.steps.push(Step {
            slot,
            name: name.clone(),
            what: What::Call(Box::new(local)),
        });
        if !moves.is_empty() {
            let bytes = flow.values[at].as_ref().map_or(0, |value| value.bytes);
            self.count(&plan.computed, moves, bytes, &name);
            let moves = moves.clone();
            self.steps.push(Step {
                slot: at,
                name,
                what: What::Move { from: slot, moves },
            });
        }
        Ok(())
    }

    /// The call on parts.
    fn local(
        &self,
        at: usize,
        call: &ShardCall<'_>,
        plan: &CallPlan,
        slots: FxHashMap<NodeId, usize>,
    ) -> Result<LocalCall> {
        let flow = self.flow;
        let mut args: Vec<Argument> = Vec::new();
        for (_, argument) in call.bound().iter() {
            args.push(argument.into_owned());
        }
        let params = call.function().params();
        let place = |name: &str| params.iter().position(|param| param.name == name);
        let factors = flow.calls[at].as_ref().filter(|_| !plan.is_whole);
        let mut rows = None;
        if let (Some(factors), Some(value)) = (factors, &flow.values[at]) {
            match &factors.local {
                Local::Sizes(param, dims) => {
                    let sizes = self.sizes(&value.shape, &plan.computed, dims);
                    let param = place(param).ok_or_else(|| {
                        Error::msg(format_args!("there is no parameter `{param}`"))
                    })?;
                    args[param] = Argument::from(sizes);
                }
                Local::Rows if !plan.partial.is_empty() => {
                    rows = place("x").zip(place("weight"));
                }
                _ => {}
            }
        }
        let once = factors.and_then(|factors| factors.once);
        Ok(LocalCall {
            function: call.function(),
            args,
            slots,
            once: once.and_then(place),
            rows: rows.map(|(x, weight)| (plan.partial.clone(), x, weight)),
            partial: plan.partial.clone(),
        })
    }

    /// The sizes of a part.
    fn sizes(&self, shape: &[usize], layout: &Layout, dims: &Range<usize>) -> Vec<i64> {
        let dims = dims.clone().filter(|dim| *dim < shape.len());
        dims.map(|dim| (shape[dim] / self.flow.mesh.product(&layout[dim]).max(1)) as i64)
            .collect()
    }
}

impl Partitioned {
    /// The collectives in their order.
    pub fn collectives(&self) -> &[Collective] {
        &self.collectives
    }

    /// How many collectives there are of each kind.
    pub fn counts(&self) -> Vec<(CollectiveKind, usize)> {
        let mut counts: BTreeMap<CollectiveKind, usize> = BTreeMap::new();
        for collective in &self.collectives {
            *counts.entry(collective.kind).or_default() += 1;
        }
        counts.into_iter().collect()
    }
}

impl fmt::Debug for Partitioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioned")
            .field("mesh", &self.mesh)
            .field("steps", &self.steps.len())
            .field("collectives", &self.collectives.len())
            .finish()
    }
}

/// The steps of a device, a line each.
impl fmt::Display for Partitioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.mesh)?;
        for step in &self.steps {
            match &step.what {
                What::Input(at) => writeln!(f, "%{} = input {at}", step.name)?,
                What::Stored(_) => writeln!(f, "%{} = stored", step.name)?,
                What::Call(call) => writeln!(f, "%{} = {}", step.name, call.function.path())?,
                What::Move { moves, .. } => {
                    for one in moves {
                        let axes = one.axes().iter();
                        let axes: Vec<&str> = axes.map(|axis| &**self.mesh.name(*axis)).collect();
                        let kind = one
                            .kind()
                            .map_or("slice".to_string(), |kind| kind.to_string());
                        writeln!(f, "%{0} = {kind}(%{0}, [{1}])", step.name, axes.join(", "))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a call says that nothing is trained: it draws nothing then, and leaves what it reads as it is.
fn is_evaluated(call: &ShardCall<'_>) -> bool {
    let is_off = |argument: &Argument| matches!(argument, Argument::Bool(false));
    let mut given = call.bound().iter();
    given.any(|(param, argument)| matches!(&*param.name, "training" | "train") && is_off(&argument))
}
