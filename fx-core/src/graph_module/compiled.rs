//! `Compiled`: the code that a backend made of a graph module, which runs in place of the graph.
//!
//! Invariant: it runs only while graph, modules and tensors are those that it was made of. Whatever
//! may have changed a module or a tensor advances the version of the contents, and then the backend
//! is asked for other code before the next run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use smallvec::SmallVec;
use web_time::Instant;

use super::GraphModule;
use super::around::Around;
use super::kept::Contents;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::Op;
use crate::ir::version::Version;
use crate::module::call::Call;
use crate::module::hierarchy::ComponentExt;
use crate::module::walk::{TensorKind, Visitor, walk};
use crate::outlined::Outlined;
use crate::trace::scope::visible_modes;
use crate::value::handle::NodeId;
use crate::value::object::Object;
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

    /// Code of the same kind for the module as it is now: since this code was made, a module or a
    /// tensor in it was replaced or changed in place, training flags among them.
    ///
    /// # Errors
    /// Returns the reason why there is none; the graph runs then, and
    /// [`Compiled::fallbacks`] counts it.
    fn renewed(&self, part: &GraphModule) -> Result<Arc<dyn Executable>> {
        let _ = part;
        Err(Error::msg(
            "its modules or tensors were changed after it was compiled",
        ))
    }

    /// What a graph runs in that has this code beside other parts, if entering each part by itself costs something.
    /// It is asked where all other calls of the graph are pure, and no trace or mode sees them.
    fn around(&self) -> Option<Arc<dyn Around>> {
        None
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
pub struct Compiled {
    backend: Arc<str>,
    fallbacks: Arc<Mutex<BTreeMap<Cow<'static, str>, usize>>>,
    graph: Version,
    state: Mutex<State>,
}

/// The code, and what it is of.
#[derive(Clone)]
struct State {
    executable: Arc<dyn Executable>,
    /// `None` if the module may have been changed since.
    of: Option<Made>,
    /// Why there is no code of the module as it is.
    refused: Option<Cow<'static, str>>,
    /// Whether the module has no data of its tensors.
    is_released: bool,
}

/// The state of a module of which code was made.
#[derive(Clone)]
struct Made {
    contents: Contents,
    /// Which modules and tensors there were; a walk changes only what is in them.
    items: Contents,
    walked: Walked,
}

/// What a walk can change, but for the elements of tensors, whose writes a backend notices itself.
#[derive(Clone, Default, PartialEq)]
struct Walked {
    training: Vec<bool>,
    tensors: Vec<u64>,
    /// Whether a tensor has no identity, so that another one in its place is not noticed.
    any_unknown: bool,
}

impl Visitor for Walked {
    fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
        match tensor.object_id() {
            Some(id) => self.tensors.push(id),
            None => self.any_unknown = true,
        }
    }

    fn training(&mut self, _: &str, training: bool) {
        self.training.push(training);
    }
}

impl Made {
    fn of(module: &GraphModule) -> Self {
        let mut walked = Walked::default();
        walk(module, &mut walked);
        let [_, items @ ..] = module.versions();
        Made {
            contents: module.contents(),
            items,
            walked,
        }
    }

    /// Whether the module is still the same, or is again: another look at its contents alone shows
    /// that they may have been changed.
    fn is_of(&self, now: &Made) -> bool {
        self.items == now.items && self.walked == now.walked && !now.walked.any_unknown
    }
}

impl State {
    /// With code of the module as it is now.
    fn renewed(mut self, module: &GraphModule) -> Self {
        if self.is_released && module.lacks_data() {
            self.refused = Some("the module was edited".into());
            return self;
        }
        // Without the code that is out of date.
        let mut part = module.clone();
        part.remove_executable();
        self.is_released = false;
        self.refused = None;
        match self.executable.renewed(&part) {
            Ok(executable) => self.executable = executable,
            Err(error) => self.refused = Some(error.to_string().into()),
        }
        self
    }

    fn result(&self) -> Result<Arc<dyn Executable>, Refusal> {
        match &self.refused {
            None => Ok(self.executable.clone()),
            Some(reason) => Err(Refusal {
                reason: reason.clone(),
                is_released: self.is_released,
            }),
        }
    }
}

impl Clone for Compiled {
    fn clone(&self) -> Self {
        Compiled {
            backend: self.backend.clone(),
            fallbacks: self.fallbacks.clone(),
            graph: self.graph,
            state: Mutex::new(self.state().clone()),
        }
    }
}

impl Compiled {
    /// The name of the backend.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// The same code, for a copy of a module.
    pub(super) fn of(&self, original: &GraphModule, copy: &GraphModule) -> Self {
        let mut state = self.state().clone();
        let made = state.of.take();
        let made = made.filter(|made| made.contents == original.contents());
        state.of = made.map(|_| Made::of(copy));
        Compiled {
            backend: self.backend.clone(),
            fallbacks: self.fallbacks.clone(),
            graph: copy.graph.version(),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executable(&self) -> Arc<dyn Executable> {
        self.state().executable.clone()
    }

    /// The code of a module as it is now; otherwise why there is none, and whether the graph cannot
    /// run either.
    fn current(&self, module: &GraphModule) -> Result<Arc<dyn Executable>, Refusal> {
        let before = {
            let state = self.state();
            let now = module.contents();
            if state.of.as_ref().is_some_and(|made| made.contents == now) {
                return state.result();
            }
            state.clone()
        };
        let now = Made::of(module);
        // It may have been lent to be changed, and not changed.
        let is_same = before.of.as_ref().is_some_and(|made| made.is_of(&now));
        let mut after = match is_same {
            true => before,
            false => before.renewed(module),
        };
        after.of = Some(now);
        let result = after.result();
        *self.state() = after;
        result
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
        self.executable().steps()
    }

    /// The floating-point operations that the machine does in a second at best, if the backend
    /// knows.
    pub fn peak_flops(&self) -> Option<f64> {
        self.executable().peak_flops()
    }

    /// How many programs the backend has made so far.
    pub fn plans(&self) -> usize {
        self.executable().plans()
    }

    /// Runs the code by `run` on what it covers.
    #[inline]
    fn run(
        &self,
        module: &GraphModule,
        args: &[Value],
        run: impl FnOnce(&dyn Executable, &[&Value], &mut Value) -> Result<()>,
    ) -> Option<Result<Value>> {
        let inputs: SmallVec<[&Value; 4]> = args.iter().collect();
        let code = self.current(module).and_then(|code| {
            let covered = code.covers(&inputs);
            covered.map(|()| code).map_err(|reason| Refusal {
                reason,
                is_released: self.state().is_released,
            })
        });
        match code {
            Ok(code) => {
                let mut out = Value::None;
                Some(run(&*code, &inputs, &mut out).map(|()| out))
            }
            Err(refusal) => self.fallen_back(refusal).map(Err),
        }
    }

    /// Counts a run that the graph does; returns an error if it cannot.
    #[cold]
    fn fallen_back(&self, refusal: Refusal) -> Option<Error> {
        if refusal.is_released {
            return Some(released(&refusal.reason));
        }
        let fallbacks = self.fallbacks.lock();
        let mut fallbacks = fallbacks.unwrap_or_else(PoisonError::into_inner);
        *fallbacks.entry(refusal.reason).or_default() += 1;
        None
    }
}

/// Why the code does not run.
struct Refusal {
    reason: Cow<'static, str>,
    /// Whether the graph cannot run either.
    is_released: bool,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled by {}", self.backend)
    }
}

impl GraphModule {
    /// The code that [`lower`](GraphModule::lower) had a backend make of this module; `None` if
    /// there is none, or the graph was edited since: then the graph runs. After a change of its
    /// modules or tensors the backend is asked for other code before the next run.
    pub fn compiled(&self) -> Option<&Compiled> {
        let compiled = self.compiled.as_deref()?;
        (compiled.graph == self.graph.version()).then_some(compiled)
    }

    /// Has runs use a backend's code from now on.
    pub(crate) fn set_executable(&mut self, backend: &str, executable: Arc<dyn Executable>) {
        self.compiled = Some(Outlined::new(Compiled {
            backend: backend.into(),
            fallbacks: Arc::default(),
            graph: self.graph.version(),
            state: Mutex::new(State {
                executable,
                of: Some(Made::of(self)),
                refused: None,
                is_released: false,
            }),
        }));
    }

    /// Has the parts in it, and those in branches and loops, run their graphs: what they hold is
    /// replaced for one call.
    pub(super) fn forget_code(&mut self) -> Result<()> {
        self.remove_executable();
        self.for_each_part(GraphModule::forget_code)?;
        self.for_each_side(|_, side| side.forget_code())
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
            let is_released = compiled.state().is_released;
            return is_released.then(|| Err(released("a mode has to see every call")));
        }
        compiled.run(self, args, |code, inputs, out| code.run(inputs, out))
    }

    /// Runs the backend's code, if there is any, and reports what each step took.
    pub(crate) fn run_compiled_timed(
        &self,
        args: &[Value],
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Option<Result<Value>> {
        let compiled = self.compiled()?;
        compiled.run(self, args, |code, inputs, out| {
            code.run_timed(inputs, out, on_step)
        })
    }

    /// The error of a module without data of its tensors that was edited after it was compiled.
    #[cold]
    fn error_of_released(&self) -> Option<Error> {
        let compiled = self.compiled.as_deref()?;
        let is_released = compiled.state().is_released;
        (is_released && self.lacks_data()).then(|| released("the module was edited"))
    }

    /// Whether a tensor in it has no data.
    fn lacks_data(&self) -> bool {
        let is_fake = |value: &Value| value.as_object().is_some_and(|object| object.is_fake());
        self.state_dict().values().any(is_fake)
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

    /// What the graph runs in, if it has two compiled parts or more, and all its other calls are pure.
    pub(super) fn around(&self) -> Option<Arc<dyn Around>> {
        let parts: IndexMap<NodeId, Arc<str>> = (self.compiled_parts())
            .map(|(path, call)| (call, path))
            .collect();
        if parts.len() < 2 {
            return None;
        }
        let mut calls = self.graph().nodes().filter(|node| node.op().is_call());
        let is_pure = calls.all(|node| {
            parts.contains_key(&node.id()) || Call::of(node, &self.attributes).effects().is_pure()
        });
        let around = |path: &Arc<str>| {
            let module = self.submodule_as::<GraphModule>(path).ok()?;
            module.compiled()?.executable().around()
        };
        (parts.values()).filter(|_| is_pure).find_map(around)
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
                compiled.executable().refresh();
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
            let Some(compiled) = module.compiled.take() else {
                return Ok(());
            };
            let done = match compiled.current(module) {
                Ok(code) => {
                    let done = code.release(module);
                    let mut state = compiled.state();
                    state.of = Some(Made::of(module));
                    state.is_released |= done.is_ok();
                    done
                }
                Err(refusal) => Err(Error::msg(refusal.reason)),
            };
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
