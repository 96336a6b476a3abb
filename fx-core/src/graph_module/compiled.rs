//! `Compiled`: the code that a backend made of a graph module, which runs in place of the graph.
//!
//! Invariant: it runs only while graph, modules and tensors are those that it was made of.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::GraphModule;
use super::edit::Versions;
use crate::error::Result;
use crate::trace::scope::visible_modes;
use crate::value::value::Value;

/// What a backend made of a graph: runs on one value for each placeholder, and puts the result of
/// the graph into `out`, whose former value may be overwritten in place.
pub trait Executable: Send + Sync {
    /// Whether it can run on these inputs: the guards. If it cannot, the graph runs, and
    /// [`Compiled::fallbacks`] counts the reason.
    ///
    /// # Errors
    /// Returns the reason why it cannot.
    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        let _ = inputs;
        Ok(())
    }

    /// Runs it on inputs that it covers.
    ///
    /// # Errors
    /// Returns an error if the inputs do not fit, or the engine fails.
    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()>;

    /// What a run does, in order, for reports.
    fn steps(&self) -> Vec<StepReport> {
        Vec::new()
    }

    /// Runs it as [`run`](Executable::run) does, and reports what each step took. By default the
    /// whole run is one step.
    ///
    /// # Errors
    /// As [`run`](Executable::run).
    fn run_timed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<()> {
        let start = Instant::now();
        self.run(inputs, out)?;
        on_step(StepRun {
            step: &StepReport::new("run", []),
            time: start.elapsed(),
            flops: 0,
        });
        Ok(())
    }

    /// The floating-point operations that the machine does in a second at best, for profiles;
    /// `None` if the backend does not know.
    fn peak_flops(&self) -> Option<f64> {
        None
    }
}

/// A step of a run that is timed.
#[derive(Debug, Clone, Copy)]
pub struct StepRun<'r> {
    /// The step.
    pub step: &'r StepReport,
    /// How long it took.
    pub time: Duration,
    /// The floating-point operations that it did: a multiplication and an addition are two. 0 where
    /// they are not counted.
    pub flops: u64,
}

/// A step of an [`Executable`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StepReport {
    /// What the step does, in the backend's words.
    pub name: String,
    /// The names of the nodes that it computes.
    pub nodes: Vec<String>,
}

impl StepReport {
    /// Creates the report of a step.
    pub fn new(name: impl Into<String>, nodes: impl IntoIterator<Item = String>) -> Self {
        StepReport {
            name: name.into(),
            nodes: nodes.into_iter().collect(),
        }
    }
}

/// The code that a backend made of a graph module.
#[derive(Clone)]
pub struct Compiled {
    backend: Arc<str>,
    executable: Arc<dyn Executable>,
    fallbacks: Arc<Mutex<BTreeMap<Cow<'static, str>, usize>>>,
    of: Versions,
}

impl Compiled {
    /// The name of the backend.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// The same code, for a copy of the module.
    pub(super) fn of(&self, versions: Versions) -> Self {
        Compiled {
            of: versions,
            ..self.clone()
        }
    }

    /// Why runs used the graph instead of the code, and how often: what the guards said.
    pub fn fallbacks(&self) -> Vec<(String, usize)> {
        let fallbacks = self.fallbacks.lock();
        let fallbacks = fallbacks.unwrap_or_else(PoisonError::into_inner);
        let all = fallbacks.iter();
        all.map(|(why, count)| (why.to_string(), *count)).collect()
    }

    /// What a run does, as the backend reports it.
    pub fn steps(&self) -> Vec<StepReport> {
        self.executable.steps()
    }

    /// The floating-point operations that the machine does in a second at best, if the backend
    /// knows.
    pub fn peak_flops(&self) -> Option<f64> {
        self.executable.peak_flops()
    }

    /// Runs the code by `run` on what it covers.
    #[inline]
    fn run(
        &self,
        args: &[Value],
        run: impl FnOnce(&[&Value], &mut Value) -> Result<()>,
    ) -> Option<Result<Value>> {
        let inputs: Vec<&Value> = args.iter().collect();
        if let Err(reason) = self.executable.covers(&inputs) {
            let fallbacks = self.fallbacks.lock();
            let mut fallbacks = fallbacks.unwrap_or_else(PoisonError::into_inner);
            *fallbacks.entry(reason).or_default() += 1;
            return None;
        }
        let mut out = Value::None;
        Some(run(&inputs, &mut out).map(|()| out))
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled by {}", self.backend)
    }
}

impl GraphModule {
    /// The code that [`lower`](GraphModule::lower) had a backend make of this module; `None` if
    /// there is none, or the module was edited since: then the graph runs.
    pub fn compiled(&self) -> Option<&Compiled> {
        let compiled = self.compiled.as_deref()?;
        (compiled.of == self.versions()).then_some(compiled)
    }

    /// Has runs use a backend's code from now on.
    pub(crate) fn set_executable(&mut self, backend: &str, executable: Arc<dyn Executable>) {
        self.compiled = Some(Box::new(Compiled {
            backend: backend.into(),
            executable,
            fallbacks: Arc::default(),
            of: self.versions(),
        }));
    }

    /// Has runs use the graph again. Returns `false` if they did.
    pub(crate) fn remove_executable(&mut self) -> bool {
        self.compiled.take().is_some()
    }

    /// Runs the backend's code, if there is any.
    #[inline]
    pub(super) fn run_compiled(&self, args: &[Value]) -> Option<Result<Value>> {
        let compiled = self.compiled()?;
        if visible_modes() > 0 {
            // A mode sees every call.
            return None;
        }
        compiled.run(args, |inputs, out| compiled.executable.run(inputs, out))
    }

    /// Runs the backend's code, if there is any, and reports what each step took.
    pub(crate) fn run_compiled_timed(
        &self,
        args: &[Value],
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Option<Result<Value>> {
        let compiled = self.compiled()?;
        compiled.run(args, |inputs, out| {
            compiled.executable.run_timed(inputs, out, on_step)
        })
    }
}
