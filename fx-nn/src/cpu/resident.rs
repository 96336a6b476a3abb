//! `Resident`: a program whose last arguments stay with it from run to run, and are changed where they are.
//!
//! Invariant: nothing that can fail runs behind an update, so that after a run that fails what is carried is as it was.

use std::sync::Arc;

use fx_core::ir::{Function, FunctionTable};
use fx_core::passes::backend::{StepReport, StepRun};
use fx_core::passes::{CoreSet, Cse, Decompositions, FoldConstants, MethodsToFunctions};
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Buffer;
use fx_kernels::transpose::contiguous;
use rustc_hash::FxHashSet;

use super::array::{Array, Memory};
use super::draft::{Draft, Id, Kind};
use super::frame::{Reading, Register, sizes_differ};
use super::lowering::CpuLowering;
use super::options::Options;
use super::program::{Program, floats_of};
use super::types::dtype_of;
use super::{absorb, fuse, layout, lower};
use crate::Tensor;
use crate::lowering::Composed;
use crate::op_kind::OpKind;

/// A program, and what is carried from run to run.
pub(crate) struct Resident {
    program: Program,
    /// The results that are carried, in the order of the arguments that they become, and whether each is in memory of
    /// its own.
    results: Vec<(Id, bool)>,
    loss: Id,
    /// How many arguments are given to each run.
    given: usize,
}

/// A tensor that is carried.
#[derive(Debug, Clone)]
pub(crate) struct Carried(Register);

impl Carried {
    pub fn of(value: &Value) -> Result<Self> {
        let tensor = value.downcast_ref::<Tensor>();
        let tensor = tensor.ok_or_else(|| Error::msg("what is carried is a tensor"))?;
        Ok(Carried(match tensor.dtype()? {
            DType::F32 => {
                let dims = tensor.dims()?.iter().copied().collect();
                let memory = Memory::Buffer(Arc::new(floats_of(tensor)?));
                Register::Array(Array::of(memory, dims))
            }
            _ => Register::Value(value.clone()),
        }))
    }

    /// All of some tensors, which are given up one by one, so that there are not two copies of all of them at once.
    pub fn all(tensors: &mut [Value]) -> Result<Vec<Self>> {
        let mut found: Vec<Carried> = Vec::with_capacity(tensors.len());
        for at in 0..tensors.len() {
            match Carried::of(&tensors[at]) {
                Ok(carried) => found.push(carried),
                Err(error) => {
                    for (tensor, carried) in tensors.iter_mut().zip(&found) {
                        *tensor = carried.tensor()?;
                    }
                    return Err(error);
                }
            }
            tensors[at] = Value::None;
        }
        Ok(found)
    }

    /// The bytes of its memory.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Register::Array(Array {
                memory: Memory::Buffer(buffer),
                ..
            }) => size_of_val::<[f32]>(buffer) as u64,
            _ => 0,
        }
    }

    /// A copy of it, as a tensor.
    pub fn tensor(&self) -> Result<Value> {
        match &self.0 {
            Register::Value(value) => Ok(value.clone()),
            Register::Array(Array {
                memory: Memory::Buffer(buffer),
                start,
                dims,
                ..
            }) => {
                let count: usize = dims.iter().product();
                let floats = buffer[*start..][..count].to_vec();
                Ok(Tensor::from_vec(floats, &dims[..])?.into_value())
            }
            _ => Err(Error::msg("what is carried is no tensor")),
        }
    }
}

impl Resident {
    /// A graph in the functions that have kernels, each value computed once.
    pub fn prepared(gm: &GraphModule) -> Result<GraphModule> {
        let mut gm = gm.clone();
        gm.apply(&MethodsToFunctions)?;
        gm.apply(&decompositions()?)?;
        gm.apply(&FoldConstants::new())?;
        gm.apply(&Cse::new())?;
        gm.eliminate_dead_code()?;
        Ok(gm)
    }

    /// The program of a [prepared](Resident::prepared) graph whose last arguments are carried: it gives a number, then
    /// dicts of what these become.
    pub(super) fn of(gm: &GraphModule, carried: usize, options: &Options) -> Result<Self> {
        let floats: Vec<Option<DType>> = gm
            .graph()
            .placeholders()
            .map(|node| dtype_of(node).filter(|dtype| *dtype == DType::F32))
            .collect();
        let given = floats.len().checked_sub(carried);
        let given = given.ok_or_else(|| Error::msg("a step carries more than it takes"))?;
        let mut draft = lower::lower(gm, &floats, false)?;
        draft.without_dead();
        absorb::absorb(&mut draft)?;
        fuse::fuse(&mut draft);
        layout::choose(&mut draft);
        place_updates(&mut draft)?;
        let mut nodes = Vec::new();
        if let Some(output) = &draft.output {
            output.for_each_node(&mut |node| nodes.push(node));
        }
        let mut results = nodes.iter().map(|node| {
            let id = draft.returned.get(node).copied()?;
            Some((id, update_of(&draft, id).is_some()))
        });
        let loss = results.next().flatten();
        let results = results.collect::<Option<Vec<(Id, bool)>>>();
        let (Some((loss, _)), Some(results)) = (loss, results) else {
            return Err(Error::msg("a step gives a loss, and whatever it carries"));
        };
        if results.len() != carried {
            return Err(Error::msg("a step gives what it carries"));
        }
        let program = Program::of(draft, options)?;
        Ok(Resident {
            program,
            results,
            loss,
            given,
        })
    }

    /// The bytes in which a run computes.
    pub fn bytes(&self) -> u64 {
        self.program.bytes()
    }

    /// What the steps do.
    pub fn report(&self) -> Vec<StepReport> {
        self.program.report()
    }

    /// Runs it once: gives the number, and changes what is carried.
    pub fn run(
        &self,
        given: &[Value],
        carried: &mut [Carried],
        on_step: Option<&mut dyn FnMut(StepRun<'_>)>,
    ) -> Result<Value> {
        let program = &self.program;
        let mut frame = program.frame();
        for (place, id, is_floats) in &program.arguments {
            frame.registers[*id] = match place.checked_sub(self.given) {
                // What is changed in place is read by nothing else meanwhile.
                Some(at) => match self.results[at] {
                    (_, true) => std::mem::take(&mut carried[at].0),
                    (_, false) => carried[at].0.clone(),
                },
                None => match (&given[*place], is_floats) {
                    (value, true) => Carried::of(value)?.0,
                    (value, false) => Register::Value(value.clone()),
                },
            };
        }
        let run = program.steps_in(&mut frame, &[], on_step);
        if let Err(error) = run {
            for (place, id, _) in &program.arguments {
                if let Some(at) = place.checked_sub(self.given)
                    && self.results[at].1
                {
                    carried[at].0 = std::mem::take(&mut frame.registers[*id]);
                }
            }
            return Err(error);
        }
        let reading = Reading {
            registers: &frame.registers,
            inputs: &[],
            level: program.level,
            halves: &program.halves,
        };
        let loss = reading.value(self.loss, None)?;
        for (carry, (id, is_own)) in carried.iter_mut().zip(&self.results) {
            let register = frame.registers[*id].clone();
            carry.0 = match is_own {
                true => register,
                false => copied(&reading, register)?,
            };
        }
        for (_, id, _) in &program.arguments {
            frame.registers[*id] = Register::Empty;
        }
        program.keep(frame);
        Ok(loss)
    }
}

/// The decompositions of functions that have no kernel.
fn decompositions() -> Result<Decompositions> {
    let has_kernel = |function: Function| {
        let lowering = CpuLowering::of(function)?;
        Ok::<_, Error>(lowering.is_some() || !function.def().effects.is_pure())
    };
    let mut found = Decompositions::new();
    for (function, Composed(rule)) in FunctionTable::<Composed>::registered()?.iter() {
        if !has_kernel(function)? {
            found = found.rule(function, *rule);
        }
    }
    for (function, entry) in FunctionTable::<CoreSet>::registered()?.iter() {
        if let CoreSet::Decomposed(rule) = entry
            && !has_kernel(function)?
        {
            found = found.rule(function, *rule);
        }
    }
    Ok(found)
}

/// What a register holds, in memory that is not of the run.
fn copied(reading: &Reading<'_>, register: Register) -> Result<Register> {
    let Register::Array(array) = register else {
        return Ok(register);
    };
    let mut floats = Buffer::zeros(array.numel());
    let Array {
        start,
        dims,
        strides,
        ..
    } = &array;
    let memory = reading.memory(&array);
    contiguous(reading.level, memory, *start, dims, strides, &mut floats).map_err(sizes_differ)?;
    let memory = Memory::Buffer(Arc::new(floats));
    Ok(Register::Array(Array::of(memory, array.dims.clone())))
}

/// Puts updates where nothing that follows reads what they change, or can fail: as soon as their gradients are there, so
/// that these do not wait for each other.
fn place_updates(draft: &mut Draft) -> Result<()> {
    let from = first_without_failure(draft)?;
    // The item whose memory an item looks at.
    let mut viewed: Vec<Id> = (0..draft.items.len()).collect();
    let mut last_read = vec![0; draft.items.len()];
    for id in 0..draft.items.len() {
        if update_of(draft, id).is_some() {
            continue;
        }
        let item = &mut draft.items[id];
        item.visit_uses(&mut |used| last_read[viewed[*used]] = id);
        if let (Kind::View(_), [of, ..]) = (&item.kind, &item.inputs[..]) {
            viewed[id] = viewed[*of];
        }
    }
    // Behind which item each update runs.
    let behind = |update: Id| {
        let item = &draft.items[update];
        let read = item
            .inputs
            .iter()
            .map(|id| (*id).max(last_read[viewed[*id]]));
        read.chain(from).max()
    };
    let mut order: Vec<(Option<Id>, Id)> = (0..draft.items.len())
        .map(|id| match update_of(draft, id) {
            Some(update) => (behind(update), id),
            None => (Some(id), id),
        })
        .collect();
    order.sort_unstable_by_key(|(behind, id)| (*behind, update_of(draft, *id).is_some(), *id));
    let mut renamed = vec![0; order.len()];
    for (new, (_, old)) in order.iter().enumerate() {
        renamed[*old] = new;
    }
    let mut items: Vec<_> = std::mem::take(&mut draft.items)
        .into_iter()
        .map(Some)
        .collect();
    for (_, old) in order {
        if let Some(mut item) = items[old].take() {
            item.visit_uses(&mut |id| *id = renamed[*id]);
            draft.items.push(item);
        }
    }
    draft
        .returned
        .values_mut()
        .for_each(|id| *id = renamed[*id]);
    Ok(())
}

/// The update that an item is, or is one of the results of.
fn update_of(draft: &Draft, id: Id) -> Option<Id> {
    let of = match draft.items[id].kind {
        Kind::Part(_) => draft.items[id].inputs[0],
        _ => id,
    };
    matches!(draft.items[of].kind, Kind::Update(_)).then_some(of)
}

/// The last item that can fail where another run has succeeded: a function of the host, but for views, or one that reads
/// at indices of a run that none before it has read at.
fn first_without_failure(draft: &Draft) -> Result<Option<Id>> {
    let kinds = FunctionTable::<OpKind>::registered()?;
    let mut indices: Vec<Id> = (0..draft.items.len()).collect();
    let mut read: FxHashSet<Id> = FxHashSet::default();
    let mut last = None;
    for (id, item) in draft.items.iter().enumerate() {
        let is_known = |at: usize| {
            let of = indices[item.inputs[at]];
            matches!(draft.items[of].kind, Kind::Constant(_)) || read.contains(&of)
        };
        let can_fail = match &item.kind {
            Kind::Host {
                function, items, ..
            } if kinds.get(*function) == Some(&OpKind::View) => {
                // The same indices, in another shape.
                if let [of] = items.values().collect::<Vec<_>>()[..] {
                    indices[id] = indices[*of];
                }
                false
            }
            Kind::Host { .. } | Kind::Floats => true,
            Kind::EmbeddingOf => !is_known(0),
            Kind::TakeAlong(_) | Kind::AddRows | Kind::AddAlong(_) => !is_known(1),
            _ => false,
        };
        match item.kind {
            Kind::EmbeddingOf => read.insert(indices[item.inputs[0]]),
            Kind::TakeAlong(_) => read.insert(indices[item.inputs[1]]),
            _ => false,
        };
        if can_fail {
            last = Some(id);
        }
    }
    Ok(last)
}
