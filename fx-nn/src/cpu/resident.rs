//! `Resident`: a program whose last arguments stay with it from run to run, and are changed where they are.
//!
//! Invariant: updates are the last steps, and after a run that fails before them what is carried is as it was.

use std::sync::Arc;

use fx_core::ir::{Function, FunctionTable};
use fx_core::passes::backend::{StepReport, StepRun};
use fx_core::passes::{CoreSet, Cse, Decompositions, FoldConstants, MethodsToFunctions};
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Buffer;
use fx_kernels::transpose::contiguous;

use super::array::{Array, Memory};
use super::draft::{Draft, Id, Kind};
use super::frame::{Reading, Register, sizes_differ};
use super::lowering::CpuLowering;
use super::options::Options;
use super::program::{Program, floats_of};
use super::{absorb, fuse, layout, lower};
use crate::Tensor;
use crate::lowering::Composed;

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
        let is_floats: Vec<bool> = gm
            .graph()
            .placeholders()
            .map(|node| lower::dtype_of(node) == Some(DType::F32))
            .collect();
        let given = is_floats.len().checked_sub(carried);
        let given = given.ok_or_else(|| Error::msg("a step carries more than it takes"))?;
        let mut draft = lower::lower(gm, &is_floats)?;
        draft.without_dead();
        absorb::absorb(&mut draft)?;
        fuse::fuse(&mut draft);
        layout::choose(&mut draft);
        last(&mut draft);
        let mut nodes = Vec::new();
        if let Some(output) = &draft.output {
            output.for_each_node(&mut |node| nodes.push(node));
        }
        let mut results = nodes.iter().map(|node| {
            let id = draft.returned.get(node).copied()?;
            let item = &draft.items[id];
            let is_own = matches!(item.kind, Kind::Part(_))
                && matches!(draft.items[item.inputs[0]].kind, Kind::Update(_));
            Some((id, is_own))
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
        };
        let loss = reading.value(self.loss)?;
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

/// Puts updates behind all that may read what they change.
fn last(draft: &mut Draft) {
    let is_late = |draft: &Draft, id: usize| match draft.items[id].kind {
        Kind::Update(_) => true,
        Kind::Part(_) => matches!(draft.items[draft.items[id].inputs[0]].kind, Kind::Update(_)),
        _ => false,
    };
    let order: Vec<usize> = {
        let all = 0..draft.items.len();
        let (late, early): (Vec<usize>, Vec<usize>) = all.partition(|id| is_late(draft, *id));
        early.into_iter().chain(late).collect()
    };
    let mut renamed = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        renamed[*old] = new;
    }
    let mut items: Vec<_> = std::mem::take(&mut draft.items)
        .into_iter()
        .map(Some)
        .collect();
    for old in order {
        if let Some(mut item) = items[old].take() {
            item.visit_uses(&mut |id| *id = renamed[*id]);
            draft.items.push(item);
        }
    }
    draft
        .returned
        .values_mut()
        .for_each(|id| *id = renamed[*id]);
}
