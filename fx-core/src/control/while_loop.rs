//! `while_loop` and `While`: a body that runs while a condition holds, which is known when the
//! graph runs.
//!
//! Invariant: an iteration gives whether there is another one, and as many carried values as it takes.

use std::panic::Location;
use std::sync::OnceLock;

use super::decide::{Decide, Truth};
use super::loop_recorder::LoopRecorder;
use super::record;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::function::Effects;
use crate::ir::signature::ParamSpec;
use crate::module::module::{Module, RunGraph};
use crate::module::registry::ModuleType;
use crate::module::walk::Component;
use crate::trace::convert::Output;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// Runs a body on a state while a condition of the state holds (`jax.lax.while_loop`).
///
/// While the condition is known, the loop runs as it is written, and each iteration is recorded. From
/// the iteration on where it is traced, one iteration is recorded as the body of a [`While`], which the graph
/// runs as often as the condition holds. The structure of the state stays the same; shapes and
/// dtypes may change from iteration to iteration.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::{control, operator};
/// let collatz = traced!(|n: Int| {
///     let (_, steps) = control::while_loop(
///         (n, Int::from(0)),
///         |(n, _)| operator::gt.call_as::<Bool>((*n, 1)),
///         |(n, steps)| {
///             let even: Bool = operator::eq.call_as(((n % 2)?, 0))?;
///             let next = control::cond(even, || n.floordiv(2), || (n * 3)? + 1)?;
///             Ok((next, (steps + 1)?))
///         },
///     )?;
///     Ok(steps)
/// });
/// let gm = symbolic_trace(collatz)?;
/// assert_eq!(gm.forward::<i64>(27)?, 111);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the condition or the body fails, or the state changes its structure.
#[track_caller]
pub fn while_loop<S: Output, C: Decide>(
    init: S,
    mut condition: impl FnMut(&S) -> Result<C>,
    mut body: impl FnMut(S) -> Result<S>,
) -> Result<S> {
    let caller = Location::caller();
    let mut state = init;
    loop {
        match condition(&state)?.decide()?.or_tracers(caller)? {
            Truth::Known(false) => return Ok(state),
            Truth::Known(true) => state = body(state)?,
            Truth::Traced(go) => {
                let (recorder, state) = While::record(go, vec![state.into_value()], caller)?;
                let state = body(only(state)?)?;
                let again = condition(&state)?.decide()?;
                let name = |_| "the state".to_string();
                return only(recorder.end(again, vec![state.into_value()], &name)?);
            }
        }
    }
}

/// The state of a loop with one value.
fn only<S: Output>(mut state: Vec<Value>) -> Result<S> {
    S::from_value(state.pop().unwrap_or_default())
}

/// A loop of a graph: runs `body` while it says so. [`while_loop`] makes it.
///
/// Its inputs are whether to run at all, the carried values, and what the body reads from outside.
/// Its body takes the carried values and the rest, and gives whether there is another iteration, and the
/// carried values after it (ONNX's `Loop` without a count).
#[derive(Debug, fx_macros::Module)]
pub struct While {
    pub(super) body: GraphModule,
    pub(super) limit: Option<usize>,
    #[module(skip)]
    pub(super) params: OnceLock<Vec<ParamSpec>>,
}

impl While {
    /// Begins to record an iteration on a state; returns the state of any iteration.
    pub(super) fn record(
        go: Proxy,
        state: Vec<Value>,
        caller: &'static Location<'static>,
    ) -> Result<(LoopRecorder, Vec<Value>)> {
        LoopRecorder::begin(go, state, caller, |body, limit| {
            Box::new(While {
                body,
                limit,
                params: OnceLock::new(),
            })
        })
    }

    /// One iteration.
    pub fn body(&self) -> &GraphModule {
        &self.body
    }

    /// How many values an iteration carries to the next.
    pub fn carries(&self) -> usize {
        self.body.graph().results().len().saturating_sub(1)
    }

    /// How many iterations a run may take; `None` is no limit.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Sets how many iterations a run may take; `None` is no limit.
    ///
    /// ```
    /// use fx_core::control::{While, while_loop};
    /// use fx_core::operator;
    /// use fx_core::prelude::*;
    /// let endless = traced!(|x: Float| while_loop(x, |x| operator::gt.call_as::<Bool>((*x, 0.0)), |x| x + 1.0));
    /// let mut gm = symbolic_trace(endless)?;
    /// gm.submodule_as_mut::<While>("while_loop_0")?.set_limit(Some(1000));
    /// let error = gm.forward::<f64>(1.0).unwrap_err();
    /// assert!(error.to_string().contains("the loop has run 1000 turns, its limit"));
    /// assert_eq!(error.node(), Some("while_loop"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_limit(&mut self, turns: Option<usize>) {
        self.limit = turns;
    }
}

impl Module for While {
    fn params(&self) -> &[ParamSpec] {
        self.params
            .get_or_init(|| record::with_condition(self.body.params()))
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        self.run_graphs(args, out, &mut record::run_side)
    }

    fn run_graphs(&self, args: &[&Value], out: &mut Value, run: RunGraph<'_>) -> Result<()> {
        let [go, rest @ ..] = args else {
            return Err(Error::expected("a condition", "no argument"));
        };
        let Some((init, captured)) = rest.split_at_checked(self.carries()) else {
            return Err(Error::expected(
                format_args!("{} carried values", self.carries()),
                rest.len(),
            ));
        };
        let caller = Location::caller();
        let mut again = record::truth_of(go, caller)?;
        let mut state: Vec<Value> = init.iter().map(|value| (*value).clone()).collect();
        let mut given = Value::None;
        let mut turns = 0;
        // A trace that opens the loop records an iteration anew, from the one on whose condition it does not know.
        let mut recorder: Option<LoopRecorder> = None;
        loop {
            match again {
                Truth::Known(false) => break,
                Truth::Known(true) => {}
                Truth::Traced(go) => {
                    let (begun, inside) = While::record(go, std::mem::take(&mut state), caller)?;
                    recorder = Some(begun.with_limit(self.limit));
                    state = inside;
                }
            }
            if self.limit.is_some_and(|limit| turns >= limit) {
                return Err(Error::limit(
                    turns,
                    format_args!(
                        "the loop has run {turns} turns, its limit, and its condition still holds: raise the limit with `While::set_limit`"
                    ),
                ));
            }
            turns += 1;
            let inputs: Vec<&Value> = state.iter().chain(captured.iter().copied()).collect();
            run("body", &self.body, &inputs, &mut given)?;
            let Value::Tuple(items) = &mut given else {
                return Err(Error::expected("a tuple from the body", given.describe()));
            };
            let Some((go, next)) = items.split_first_mut() else {
                return Err(Error::expected("whether to go on", "an empty tuple"));
            };
            if next.len() != state.len() {
                return Err(Error::expected(
                    format_args!("{} carried values from the body", state.len()),
                    next.len(),
                ));
            }
            again = record::truth_of(go, caller)?;
            state.swap_with_slice(next);
            if let Some(recorder) = recorder.take() {
                state = recorder.end(again, state, &|_| "the state".to_string())?;
                break;
            }
        }
        *out = record::given(state);
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.duplicate())
    }

    fn is_leaf(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        self.body.effects()
    }

    fn graph_names(&self) -> &'static [&'static str] {
        &["body"]
    }

    fn carried(&self) -> usize {
        self.carries()
    }

    fn open_edit(&mut self) -> bool {
        self.body.open_edit()
    }

    fn close_edit(&mut self, keep: bool) {
        self.body.close_edit(keep);
        self.graphs_changed();
    }

    fn graphs_changed(&mut self) {
        self.params = OnceLock::new();
    }

    fn source_problem(&self) -> Option<&'static str> {
        Some("is a loop inside of 16 branches and loops, and source is written to that depth")
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<While>(|| "fx_core::control::While") }
