//! Running a program of several devices, a thread for each; a device that fails ends the others, so that none waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use fx_nn::tensor::Tensor;
use fx_nn::value::{DType, IntoValue, Value};
use fx_nn::{Error, Result, no_grad, ops};

use super::factors::Reduction;
use super::flow::Layout;
use super::partition::{LocalCall, Partitioned, Step, What};
use super::plan::Move;

/// The most devices of a run.
const MOST_THREADS: usize = 512;

/// What devices hand each other.
struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
    devices: usize,
}

#[derive(Default)]
struct State {
    /// What each device has brought.
    brought: Vec<Option<Value>>,
    /// How many have come, and how many times all have.
    waiting: usize,
    turn: usize,
    /// Why the first device that failed did.
    failed: Option<Error>,
}

impl Exchange {
    fn new(devices: usize) -> Self {
        let state = State {
            brought: vec![None; devices],
            ..State::default()
        };
        Exchange {
            state: Mutex::new(state),
            changed: Condvar::new(),
            devices,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waiting of all devices, for one has failed.
    fn end(&self, error: Error) {
        self.state().failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Waits until all devices have come here.
    fn meet<'e>(&'e self, mut state: MutexGuard<'e, State>) -> Result<MutexGuard<'e, State>> {
        let turn = state.turn;
        state.waiting += 1;
        if state.waiting == self.devices {
            state.waiting = 0;
            state.turn += 1;
            self.changed.notify_all();
            return Ok(state);
        }
        while state.turn == turn && state.failed.is_none() {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        match state.turn == turn {
            true => Err(Error::msg("another device has failed")),
            false => Ok(state),
        }
    }

    /// Brings a value, and takes those of a group of devices.
    fn swap(&self, device: usize, value: Value, group: &[usize]) -> Result<Vec<Value>> {
        let mut state = self.state();
        state.brought[device] = Some(value);
        let state = self.meet(state)?;
        let taken = group.iter().map(|at| state.brought[*at].clone());
        let taken: Option<Vec<Value>> = taken.collect();
        // No device brings the next value before all have taken this one.
        drop(self.meet(state)?);
        taken.ok_or_else(|| Error::msg("a device brought nothing"))
    }
}

/// One device of a run.
struct Device<'r> {
    program: &'r Partitioned,
    exchange: &'r Exchange,
    number: usize,
    place: Vec<usize>,
    slots: Vec<Option<Value>>,
}

/// Applies a change to a tensor, or to each of several.
fn each(value: &Value, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Value> {
    let all = |items: &[Value], change: &mut dyn FnMut(&Tensor) -> Result<Tensor>| {
        let items = items.iter().map(|item| match tensor(item) {
            Ok(x) => change(x).map(IntoValue::into_value),
            Err(error) => Err(error),
        });
        items.collect::<Result<Box<[Value]>>>()
    };
    Ok(match value {
        Value::List(items) => Value::List(all(items, change)?),
        Value::Tuple(items) => Value::Tuple(all(items, change)?),
        one => change(tensor(one)?)?.into_value(),
    })
}

fn tensor(value: &Value) -> Result<&Tensor> {
    value
        .downcast_ref::<Tensor>()
        .ok_or_else(|| Error::expected("a tensor", value.describe()))
}

/// Block `at` of a dim that is cut into `count`.
fn cut(x: &Tensor, dim: usize, at: usize, count: usize) -> Result<Tensor> {
    let size = x.dims()?.get(dim).copied().unwrap_or(0);
    if !size.is_multiple_of(count.max(1)) {
        return Err(Error::msg(format_args!(
            "{count} devices do not divide dim {dim}, which is {size}"
        )));
    }
    let (dim, length) = (dim as i64, (size / count.max(1)) as i64);
    ops::contiguous(&ops::narrow(x, dim, at as i64 * length, length)?)
}

fn reduced(by: Reduction, parts: &[Tensor]) -> Result<Tensor> {
    let (first, others) = parts
        .split_first()
        .ok_or_else(|| Error::msg("a group of devices is empty"))?;
    let mut sum = first.clone();
    for other in others {
        sum = match by {
            Reduction::Sum | Reduction::Mean => (&sum + other)?,
            Reduction::Max => ops::maximum(&sum, other)?,
            Reduction::Min => ops::minimum(&sum, other)?,
        };
    }
    match by {
        Reduction::Mean => sum / parts.len() as f64,
        _ => Ok(sum),
    }
}

impl Device<'_> {
    fn slot(&self, slot: usize) -> Result<&Value> {
        let value = self.slots.get(slot).and_then(Option::as_ref);
        value.ok_or_else(|| Error::msg("a value is used before it is there"))
    }

    fn step(&mut self, step: &Step, inputs: &[Value]) -> Result<()> {
        let value = match &step.what {
            What::Input(at) => inputs
                .get(*at)
                .cloned()
                .ok_or_else(|| Error::msg("an input is missing"))?,
            What::Stored(value) => value.clone(),
            What::Move { from, moves } => {
                let mut value = self.slot(*from)?.clone();
                for one in moves {
                    value = self.moved(value, one)?;
                }
                value
            }
            What::Call(call) => self.call(call)?,
        };
        self.slots[step.slot] = Some(value);
        Ok(())
    }

    fn moved(&self, value: Value, one: &Move) -> Result<Value> {
        let mesh = &self.program.mesh;
        let here = mesh.block(&self.place, one.axes());
        let count = mesh.product(one.axes());
        if let Move::Slice { dim, .. } = one {
            return each(&value, &mut |x| cut(x, *dim, here, count));
        }
        let group = mesh.group(self.number, one.axes());
        let brought = self.exchange.swap(self.number, value.clone(), &group)?;
        let mut next = 0;
        each(&value, &mut |_| {
            // The same tensor of each device.
            let parts = brought.iter().map(|value| match value {
                Value::List(items) | Value::Tuple(items) => items
                    .get(next)
                    .ok_or_else(|| Error::msg("devices have different numbers of tensors"))
                    .and_then(tensor),
                one => tensor(one),
            });
            let parts: Vec<Tensor> = parts.map(|part| part.cloned()).collect::<Result<_>>()?;
            next += 1;
            match one {
                Move::Gather { dim, .. } => ops::cat(&parts, *dim as i64),
                Move::Reduce { by, .. } => reduced(*by, &parts),
                Move::Scatter { dim, .. } => {
                    let sum = reduced(Reduction::Sum, &parts)?;
                    cut(&sum, *dim, here, count)
                }
                Move::Slice { .. } => Err(Error::msg("a slice is no collective")),
            }
        })
    }

    fn call(&self, call: &LocalCall) -> Result<Value> {
        let mut value_of = |id| match call.slots.get(&id) {
            Some(slot) => self.slot(*slot).cloned(),
            None => Err(Error::msg("an argument has no slot")),
        };
        let args = call.args.iter();
        let mut args: Vec<Value> = args
            .map(|argument| argument.to_value(&mut value_of))
            .collect::<Result<_>>()?;
        let is_first = call.partial.iter().all(|axis| self.place[*axis] == 0);
        if let Some(once) = call.once.filter(|_| !is_first) {
            args[once] = Value::None;
        }
        // Words in rows that other devices have are looked up there; here they give zeros.
        let mut foreign = None;
        if let Some((axes, x, table)) = &call.rows {
            let rows = tensor(&args[*table])?.dims()?[0] as i64;
            let from = self.program.mesh.block(&self.place, axes) as i64 * rows;
            let local = (tensor(&args[*x])?.to_dtype(DType::I64)? - from)?;
            foreign = Some(ops::logical_or(&local.lt(0)?, &local.ge(rows)?)?);
            let last = (rows - 1).max(0);
            args[*x] = ops::clamp(&local, 0, last)?.into_value();
        }
        let references: Vec<&Value> = args.iter().collect();
        let mut out = Value::None;
        call.function.run(&references, &mut out)?;
        match foreign {
            Some(foreign) => {
                let found = tensor(&out)?.masked_fill(&foreign.unsqueeze(-1)?, 0.0)?;
                Ok(found.into_value())
            }
            None => Ok(out),
        }
    }

    fn run(mut self, inputs: &[Value]) -> Result<Vec<Value>> {
        for (step, gone) in self.program.steps.iter().zip(&self.program.dropped) {
            self.step(step, inputs).map_err(|error| {
                Error::msg(format_args!(
                    "%{} on device {}: {error}",
                    step.name, self.number
                ))
            })?;
            for slot in gone {
                self.slots[*slot] = None;
            }
        }
        let outputs = self.program.outputs.iter();
        outputs.map(|(slot, _)| self.slot(*slot).cloned()).collect()
    }
}

impl Partitioned {
    /// Runs the program on all devices, and returns the whole of each returned tensor.
    ///
    /// # Errors
    /// Returns an error if the inputs do not fit, or a device fails: the first one that did.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check(inputs)?;
        let devices = self.mesh.devices();
        if devices > MOST_THREADS {
            return Err(Error::msg(format_args!(
                "{devices} devices are too many for a thread each: run on at most {MOST_THREADS}"
            )));
        }
        let exchange = Exchange::new(devices);
        let run = |number: usize| -> Result<Vec<Value>> {
            let place = self.mesh.place(number);
            let parts = inputs.iter().zip(&self.inputs);
            let parts = parts.map(|(x, (_, layout, _))| self.own(x, layout, &place));
            let parts: Vec<Value> = parts.collect::<Result<_>>()?;
            let device = Device {
                program: self,
                exchange: &exchange,
                number,
                place,
                slots: vec![None; self.slots],
            };
            no_grad(|| device.run(&parts))
        };
        // Only the first failure is kept: the others are failures to wait for it.
        let caught = |number: usize| -> Vec<Value> {
            let result = catch_unwind(AssertUnwindSafe(|| run(number)));
            let panicked = |_| Err(Error::msg(format_args!("device {number} panicked")));
            result.unwrap_or_else(panicked).unwrap_or_else(|error| {
                exchange.end(error);
                Vec::new()
            })
        };
        let caught = &caught;
        let parts: Vec<Vec<Value>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..devices)
                .map(|number| scope.spawn(move || caught(number)))
                .collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    exchange.end(Error::msg("a device panicked"));
                    Vec::new()
                })
            });
            joined.collect()
        });
        if let Some(error) = exchange.state().failed.take() {
            return Err(error);
        }
        let outputs = self.outputs.iter().enumerate();
        outputs
            .map(|(at, (_, layout))| self.joined(&parts, at, layout))
            .collect()
    }

    fn check(&self, inputs: &[Tensor]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::expected(
                format_args!("{} inputs", self.inputs.len()),
                inputs.len(),
            ));
        }
        for (x, (name, _, shape)) in inputs.iter().zip(&self.inputs) {
            if x.dims()? != shape {
                return Err(Error::msg(format_args!(
                    "the input `{name}` is {:?}, and the program is for {shape:?}",
                    x.dims()?
                )));
            }
        }
        Ok(())
    }

    /// The part of an input that a device has.
    fn own(&self, x: &Tensor, layout: &Layout, place: &[usize]) -> Result<Value> {
        let mut part = x.clone();
        for (dim, axes) in layout.iter().enumerate() {
            if !axes.is_empty() {
                let at = self.mesh.block(place, axes);
                part = cut(&part, dim, at, self.mesh.product(axes))?;
            }
        }
        Ok(part.into_value())
    }

    /// A returned tensor, of the parts that devices have.
    fn joined(&self, parts: &[Vec<Value>], at: usize, layout: &Layout) -> Result<Tensor> {
        let of = |device: usize| tensor(&parts[device][at]);
        // Blocks of the last dim are put together first.
        let mut blocks: Vec<(Vec<usize>, Tensor)> = Vec::new();
        for device in 0..parts.len() {
            let place = self.mesh.place(device);
            let block = layout.iter().map(|axes| self.mesh.block(&place, axes));
            let block: Vec<usize> = block.collect();
            if blocks.iter().all(|(known, _)| *known != block) {
                blocks.push((block, of(device)?.clone()));
            }
        }
        blocks.sort_by(|(a, _), (b, _)| a.cmp(b));
        for dim in (0..layout.len()).rev() {
            let count = self.mesh.product(&layout[dim]).max(1);
            if count == 1 {
                continue;
            }
            let groups = blocks.chunks(count).map(|group| {
                let tensors: Vec<Tensor> = group.iter().map(|(_, x)| x.clone()).collect();
                Ok((group[0].0.clone(), ops::cat(&tensors, dim as i64)?))
            });
            blocks = groups.collect::<Result<_>>()?;
        }
        let whole = blocks.into_iter().next();
        whole
            .map(|(_, x)| x)
            .ok_or_else(|| Error::msg("no device has a result"))
    }
}
