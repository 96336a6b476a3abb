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
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::Op;
use crate::module::hierarchy::ComponentExt;
use crate::outlined::Outlined;
use crate::trace::scope::visible_modes;
use crate::value::handle::NodeId;
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

    /// How many programs it has made so far: one that takes sizes at run time makes one for all.
    fn plans(&self) -> usize {
        1
    }

    /// Reads its tensors again before the next run: they were written in place, by something that
    /// it does not notice.
    fn refresh(&self) {}

    /// Keeps only what runs need: has the module that it was made of hold tensors without data.
    /// Errors of runs are its own from now on, since the graph can no longer run.
    ///
    /// # Errors
    /// Returns an error if it needs the tensors; the module is as before then.
    fn release(&self, source: &mut GraphModule) -> Result<()> {
        let _ = source;
        Err(Error::msg(
            "this backend's code runs on the tensors of its source, which cannot be released",
        ))
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
    /// Whether the module has no data of its tensors.
    is_released: bool,
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

    /// How many programs the backend has made so far.
    pub fn plans(&self) -> usize {
        self.executable.plans()
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
            if self.is_released {
                return Some(Err(released(&reason)));
            }
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
        self.compiled = Some(Outlined::new(Compiled {
            backend: backend.into(),
            executable,
            fallbacks: Arc::default(),
            of: self.versions(),
            is_released: false,
        }));
    }

    /// Has runs use the graph again. Returns `false` if they did.
    pub(crate) fn remove_executable(&mut self) -> bool {
        self.compiled.take().is_some()
    }

    /// Runs the backend's code, if there is any.
    #[inline]
    pub(super) fn run_compiled(&self, args: &[Value]) -> Option<Result<Value>> {
        let Some(compiled) = self.compiled() else {
            return self.error_of_released().map(Err);
        };
        if visible_modes() > 0 {
            // A mode sees every call.
            return compiled
                .is_released
                .then(|| Err(released("a mode has to see every call")));
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

    /// The error of a module without data of its tensors that was edited after it was compiled.
    #[cold]
    fn error_of_released(&self) -> Option<Error> {
        let compiled = self.compiled.as_deref()?;
        let is_fake = |value: &Value| value.as_object().is_some_and(|object| object.is_fake());
        let lacks_data = || self.state_dict().values().any(is_fake);
        (compiled.is_released && lacks_data()).then(|| released("the module was edited"))
    }

    /// The module, and those in it that a backend made code of, inner ones of branches and loops
    /// too.
    fn for_each_compiled(
        &mut self,
        change: &mut dyn FnMut(&mut GraphModule) -> Result<()>,
    ) -> Result<()> {
        if self.compiled().is_some() {
            return change(self);
        }
        let paths: Vec<Arc<str>> = self.compiled_parts().map(|(path, _)| path).collect();
        for path in paths {
            change(self.submodule_as_mut::<GraphModule>(&path)?)?;
        }
        self.for_each_side(|_, side| side.for_each_compiled(change))
    }

    /// The parts that the graph calls and a backend made code of, with their calls.
    pub(crate) fn compiled_parts(&self) -> impl Iterator<Item = (Arc<str>, NodeId)> {
        self.graph().nodes().filter_map(|node| match node.op() {
            Op::CallModule(path) => {
                let module = self.submodule_as::<GraphModule>(path).ok()?;
                module.compiled()?;
                Some((path.clone(), node.id()))
            }
            _ => None,
        })
    }

    /// Has the code of backends read its tensors again before the next run. Needed only after
    /// writes that the backend does not notice; its documentation names them.
    pub fn refresh(&self) {
        for (_, module) in self.with_sides() {
            if let Some(compiled) = module.compiled() {
                compiled.executable.refresh();
            }
            for (path, _) in module.compiled_parts() {
                if let Ok(part) = module.submodule_as::<GraphModule>(&path) {
                    part.refresh();
                }
            }
        }
    }

    /// Drops the tensors of compiled parts whose data the backend has in its own form: the module
    /// still runs, prints and describes itself, and its parts hold tensors without data. What the
    /// code does not cover is an error then, since the graph cannot run. To edit, save or compile
    /// it again, load the weights first.
    ///
    /// # Errors
    /// Returns an error if a backend runs on the tensors themselves, or nothing is compiled. Parts
    /// before it are released then.
    pub fn release_source(&mut self) -> Result<()> {
        let mut any = false;
        self.for_each_compiled(&mut |module| {
            any = true;
            let Some(mut compiled) = module.compiled.take() else {
                return Ok(());
            };
            let done = compiled.executable.release(module);
            compiled.of = module.versions();
            compiled.is_released |= done.is_ok();
            module.compiled = Some(compiled);
            done
        })?;
        match any {
            true => Ok(()),
            false => Err(Error::msg(
                "nothing of this module is compiled, so that there is no source to release",
            )),
        }
    }
}

/// The error of a run that the code does not cover and the graph cannot do.
fn released(reason: &str) -> Error {
    ErrorKind::Weights(format!(
        "the compiled code cannot run here ({reason}), and its source was released: load the weights again to run the graph"
    ))
    .into()
}
