//! The steps of a part as a backend's code.
//!
//! Invariant: an input of another type than the steps read runs the graph instead.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use fx_core::passes::backend::{Around, Executable, StepReport, StepRun};
use fx_core::value::{DType, Value};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::{Level, Pace};
use fx_nn::{Tensor, threads_awake};

use super::run::{Register, Rooms, Run};
use super::step::{Floats, Id, Kernel, Step};

/// The steps of a part.
#[derive(Debug)]
pub(super) struct Program {
    pub level: Level,
    pub steps: Vec<Step>,
    pub registers: usize,
    /// The registers of the results, and whether there are several.
    pub results: Vec<Id>,
    pub is_tuple: bool,
    /// Makes the steps of the part as it is now.
    pub make: fn(&GraphModule, Level) -> Result<Program>,
    /// Whether threads stay awake between steps.
    pub pace: Pace,
    /// Memory between runs.
    pub rooms: Mutex<Rooms>,
}

impl Executable for Program {
    fn around(&self) -> Option<Arc<dyn Around>> {
        Some(threads_awake())
    }

    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        for step in &self.steps {
            let (input, dtype) = match &step.kernel {
                Kernel::Quantize {
                    from: Floats::Input(input),
                    ..
                }
                | Kernel::QuantizeOfRun {
                    from: Floats::Input(input),
                    ..
                } => (input, DType::F32),
                Kernel::Load { input, is_signed } => match is_signed {
                    true => (input, DType::I8),
                    false => (input, DType::U8),
                },
                _ => continue,
            };
            let tensor = inputs
                .get(*input)
                .and_then(|value| value.downcast_ref::<Tensor>());
            let Some(tensor) = tensor else {
                return Err("an input is no tensor".into());
            };
            if tensor.dtype().ok() != Some(dtype) || tensor.candle().is_err() {
                return Err(format!("an input is not of {dtype}").into());
            }
            if tensor.requires_grad().unwrap_or(true) {
                return Err("an input needs a gradient".into());
            }
        }
        Ok(())
    }

    fn renewed(&self, part: &GraphModule) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new((self.make)(part, self.level)?))
    }

    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        self.pace.run(|| self.run_timed(inputs, out, &mut |_| {}))
    }

    fn steps(&self) -> Vec<StepReport> {
        self.steps.iter().map(|step| step.report.clone()).collect()
    }

    fn run_timed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<()> {
        // Runs at the same time have memory of their own.
        let rooms = self
            .rooms
            .try_lock()
            .map(|mut rooms| std::mem::take(&mut *rooms))
            .unwrap_or_default();
        let mut registers = Vec::new();
        registers.resize_with(self.registers, || Register::Empty);
        let mut run = Run {
            level: self.level,
            inputs,
            registers,
            rooms,
        };
        for step in &self.steps {
            let start = Instant::now();
            run.step(step)?;
            on_step(StepRun {
                step: &step.report,
                time: start.elapsed(),
                flops: 0,
            });
        }
        let mut results = Vec::with_capacity(self.results.len());
        for id in &self.results {
            match &run.registers[*id] {
                Register::Tensor(tensor) => results.push(Value::object(tensor.clone())),
                _ => return Err(Error::msg("a result is no tensor")),
            }
        }
        for register in run.registers {
            if let Register::Bytes(bytes, _) = register {
                run.rooms.free.push(bytes.into_words());
            }
        }
        if let Ok(mut rooms) = self.rooms.try_lock() {
            *rooms = run.rooms;
        }
        *out = match (self.is_tuple, results.pop()) {
            (false, Some(only)) => only,
            (_, last) => {
                results.extend(last);
                Value::Tuple(results.into())
            }
        };
        Ok(())
    }
}
