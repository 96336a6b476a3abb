//! A golden's module compiled for the CPU: what ran, and how far the numbers are from the traced run's.

use std::fmt;

use fx_core::passes::backend::{Compile, LowerReport};
use fx_core::trace::CallArgs;
use fx_core::{Error, GraphModule, Result};
use fx_nn::cpu::Cpu;
use fx_nn::{Tensor, no_grad};

use super::Made;
use crate::model;

/// The largest error over the largest element, without Winograd's algorithm.
pub const DIRECT: f64 = 1e-5;

/// The same with it.
pub const WINOGRAD: f64 = 2e-5;

/// How a compiled golden went.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The golden's name.
    pub name: &'static str,
    /// The parts that kernels run.
    pub parts: usize,
    /// The calls that stay in the graph, each with its reason.
    pub left: Vec<String>,
    /// The steps of all parts.
    pub steps: usize,
    /// The calls of functions without a kernel among them.
    pub calls: usize,
    /// The largest error over the largest element, without Winograd's algorithm.
    pub direct: f64,
    /// The same with it.
    pub winograd: f64,
    /// Why a part ran its graph instead, if one did.
    pub instead: Option<String>,
}

impl Compiled {
    /// Compiles a golden's module, and runs it.
    ///
    /// # Errors
    /// When it cannot be compiled or run.
    pub fn of(name: &'static str, made: &Made) -> Result<Compiled> {
        let scale = largest(made)?;
        let mut errors = [0.0; 2];
        let mut row = Compiled {
            name,
            parts: 0,
            left: Vec::new(),
            steps: 0,
            calls: 0,
            direct: 0.0,
            winograd: 0.0,
            instead: None,
        };
        for (error, winograd) in errors.iter_mut().zip([false, true]) {
            let like = CallArgs {
                args: made.inputs.clone(),
                kwargs: Vec::new(),
            };
            let cpu = Cpu::new().winograd(winograd);
            let fast = made.traced.compile(Compile::new(cpu).like(like))?;
            // The second run uses what the first has left.
            for _ in 0..2 {
                let found = no_grad(|| model::run(&fast, made.inputs.clone()))?;
                *error = model::max_abs_err(&made.result, &found)? / scale;
            }
            row.count(&fast)?;
        }
        [row.direct, row.winograd] = errors;
        Ok(row)
    }

    fn count(&mut self, fast: &GraphModule) -> Result<()> {
        let report = fast.meta::<LowerReport>();
        let report = report.ok_or_else(|| Error::msg("a compiled module has a report"))?;
        self.parts = report.parts.len();
        self.left = report.left.iter().map(ToString::to_string).collect();
        (self.steps, self.calls) = (0, 0);
        if let Some((path, why)) = report.failed.first() {
            self.instead = Some(format!("{path}: {why}"));
        }
        for part in &report.parts {
            let module = fast.submodule_as::<GraphModule>(&part.path)?;
            let Some(code) = module.compiled() else {
                return Err(Error::msg("a part lost its code"));
            };
            for step in code.steps() {
                self.steps += 1;
                self.calls += usize::from(step.name.starts_with("call of "));
                if step.name.contains("instead") {
                    self.instead = Some(step.name);
                }
            }
            if let Some((why, _)) = code.fallbacks().into_iter().next() {
                self.instead = Some(why);
            }
        }
        Ok(())
    }

    /// Whether the numbers are those of the traced run, and kernels made them.
    pub fn passed(&self) -> bool {
        self.direct <= DIRECT && self.winograd <= WINOGRAD && self.instead.is_none()
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<34} parts={} left={:<3} steps={:<4} calls={:<3} rel_err={:.1e} winograd={:.1e}",
            self.name,
            self.parts,
            self.left.len(),
            self.steps,
            self.calls,
            self.direct,
            self.winograd
        )?;
        match &self.instead {
            Some(why) => write!(f, "\n    the graph ran instead: {why}"),
            None => Ok(()),
        }?;
        self.left
            .iter()
            .try_for_each(|left| write!(f, "\n    left: {left}"))
    }
}

/// The largest absolute element of the results; 1 if all are smaller than that by much.
fn largest(made: &Made) -> Result<f64> {
    let mut largest: f64 = 1e-3;
    let mut problem = Ok(());
    made.result.for_each(&mut |value| {
        if let Some(tensor) = value.downcast_ref::<Tensor>() {
            match tensor.to_vec() {
                Ok(data) => largest = data.iter().fold(largest, |m, x| m.max(x.abs())),
                Err(error) => problem = Err(error),
            }
        }
    });
    problem.map(|()| largest)
}
