//! `Code`: the executable of a part: a program for each kind of arguments, and the part itself for
//! what no program covers.
//!
//! Invariant: it gives what the part gives, or its error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fx_core::ir::ValueMeta;
use fx_core::module::ComponentExt;
use fx_core::passes::backend::{Executable, StepReport, StepRun};
use fx_core::passes::{FoldConstants, MethodsToFunctions};
use fx_core::trace::CallArgs;
use fx_core::value::{DType, Value};
use fx_core::{GraphModule, Result};

use fx_kernels::Level;

use super::program::Program;
use super::run::OnStep;
use super::{Options, fuse, layout, lower};
use crate::Tensor;
use crate::passes::{FuseBatchNorm, RemoveDropout};
use crate::tensor::is_without_gradients;

/// Which arguments are tensors of `f32`.
type Key = Vec<bool>;

/// The code of a part.
pub(super) struct Code {
    /// The part, as it was given.
    source: GraphModule,
    /// The part without layers, batch norms folded into their convolutions.
    opened: GraphModule,
    options: Options,
    programs: Mutex<Vec<(Key, Arc<Program>)>>,
    needs_gradients: bool,
    failures: Mutex<Vec<String>>,
}

impl Code {
    pub fn of(part: &GraphModule, inputs: &[Option<ValueMeta>], options: Options) -> Result<Code> {
        let mut source = part.clone();
        source.unguarded();
        let mut opened = source.clone();
        opened.apply(&RemoveDropout)?;
        opened.apply(&FuseBatchNorm)?;
        let mut opened = opened.opened()?;
        opened.apply(&MethodsToFunctions)?;
        opened.apply(&FoldConstants::new())?;
        let needs_gradients = part.state_dict().values().any(|value| {
            value
                .downcast_ref::<Tensor>()
                .is_some_and(|tensor| tensor.requires_grad().unwrap_or(false))
        });
        let code = Code {
            source,
            opened,
            options,
            programs: Mutex::default(),
            needs_gradients,
            failures: Mutex::default(),
        };
        let dtype = |meta: &Option<ValueMeta>| meta.as_ref()?.tensor()?.dtype;
        if inputs.iter().all(Option::is_some) {
            let key: Key = inputs
                .iter()
                .map(|meta| dtype(meta) == Some(DType::F32))
                .collect();
            code.program(key)?;
        }
        Ok(code)
    }

    fn program(&self, key: Key) -> Result<Arc<Program>> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(program));
        }
        let mut draft = lower::lower(&self.opened, &key)?;
        draft.without_dead();
        fuse::fuse(&mut draft);
        layout::choose(&mut draft);
        let program = Arc::new(Program::of(draft, &self.options)?);
        programs.push((key, Arc::clone(&program)));
        Ok(program)
    }

    fn run_observed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        let key: Key = inputs.iter().map(|value| is_floats(value)).collect();
        let run = self
            .program(key)
            .and_then(|program| program.run(inputs, out, on_step));
        let Err(error) = run else {
            return Ok(());
        };
        // The part says what is wrong, with its node and line, or does what the program cannot.
        let args = inputs.iter().map(|value| (*value).clone()).collect();
        *out = self.source.forward(CallArgs {
            args,
            kwargs: Vec::new(),
        })?;
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < 8 {
            failures.push(error.to_string());
        }
        Ok(())
    }
}

/// What all threads of the pool do in a second at best.
fn peak_flops(level: Level) -> f64 {
    static PEAKS: Mutex<BTreeMap<Level, f64>> = Mutex::new(BTreeMap::new());
    let mut peaks = PEAKS.lock().unwrap_or_else(PoisonError::into_inner);
    let peak = peaks.entry(level).or_insert_with(|| {
        // The best of some: the machine may do something else meanwhile.
        let runs = (0..5).map(|_| fx_kernels::peak_flops(level));
        runs.fold(0.0, f64::max) * rayon::current_num_threads() as f64
    });
    *peak
}

/// Whether a value is a tensor of `f32`.
fn is_floats(value: &Value) -> bool {
    let tensor = value.downcast_ref::<Tensor>();
    tensor.is_some_and(|tensor| tensor.dtype().is_ok_and(|dtype| dtype == DType::F32))
}

impl Executable for Code {
    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        let gradients = !is_without_gradients();
        if self.needs_gradients && gradients {
            return Err(
                "its parameters need gradients: freeze them, or run it in `no_grad`".into(),
            );
        }
        for input in inputs {
            let Some(tensor) = input.downcast_ref::<Tensor>() else {
                continue;
            };
            let Ok(data) = tensor.candle() else {
                return Err("an argument has no data".into());
            };
            if gradients && data.track_op() {
                return Err("an argument needs gradients".into());
            }
            if !data.device().is_cpu() {
                return Err("an argument is not on the CPU".into());
            }
            let dtype = data.dtype();
            if dtype.is_float() && dtype != candle_core::DType::F32 {
                return Err(format!("an argument has elements of {}", dtype.as_str()).into());
            }
        }
        Ok(())
    }

    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        self.run_observed(inputs, out, None)
    }

    fn run_timed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<()> {
        self.run_observed(inputs, out, Some(on_step))
    }

    fn peak_flops(&self) -> Option<f64> {
        Some(peak_flops(self.options.level))
    }

    fn steps(&self) -> Vec<StepReport> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps: Vec<StepReport> = programs
            .first()
            .map(|(_, program)| program.report())
            .unwrap_or_default();
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        steps.extend(
            failures
                .iter()
                .map(|why| StepReport::new(format!("the graph ran instead: {why}"), [])),
        );
        steps
    }
}
