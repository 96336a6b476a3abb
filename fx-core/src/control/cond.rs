//! `cond` and `Cond`: one of two branches, by a condition that is known when the graph runs.
//!
//! Invariant: both branches take the same inputs and give the same number of results.

use std::panic::Location;
use std::sync::OnceLock;

use super::branch_recorder::BranchRecorder;
use super::decide::{Decide, Truth};
use super::record;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::function::Effects;
use crate::ir::signature::ParamSpec;
use crate::module::module::{Module, RunGraph};
use crate::module::registry::ModuleType;
use crate::module::walk::Component;
use crate::trace::convert::Output;
use crate::trace::open_side::Region;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// Gives what one of two closures gives, by a condition (`torch.cond`).
///
/// If the condition is known, only its closure runs. If it is traced, both run while tracing, each
/// once, and the graph has a call of a [`Cond`]: only one branch runs with the graph. The results may
/// differ in shape and dtype, but not in structure. What both closures give alike is no result of
/// the branch; other locals that they change keep the value of the second, so give what changes.
///
/// ```
/// use fx_core::control;
/// use fx_core::prelude::*;
/// let gm = symbolic_trace(traced!(|x: Float, twice: Bool| {
///     let (y, shift) = control::cond(twice, || Ok(((x * 2.0)?, x)), || Ok(((x + 1.0)?, x)))?;
///     y - shift
/// }))?;
/// assert_eq!(gm.forward::<f64>((3.0, true))?, 3.0);
/// assert_eq!(gm.forward::<f64>((3.0, false))?, 1.0);
/// let side = gm.submodule_as::<GraphModule>("cond_0.then")?;
/// assert_eq!(side.graph().placeholders().count(), 1);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if a closure fails, the condition is neither true nor false, or the structures
/// differ.
#[track_caller]
pub fn cond<T: Output>(
    condition: impl Decide,
    then: impl FnOnce() -> Result<T>,
    otherwise: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let caller = Location::caller();
    match condition.decide()?.or_tracers(caller)? {
        Truth::Known(true) => then(),
        Truth::Known(false) => otherwise(),
        Truth::Traced(condition) => {
            let mut sides = (Some(then), Some(otherwise));
            let mut side = |is_then: bool| match is_then {
                true => given(sides.0.take()),
                false => given(sides.1.take()),
            };
            let value = both(condition, &mut side, caller)?;
            T::from_value(value)
        }
    }
}

/// The value of a branch, which runs once.
fn given<T: Output>(side: Option<impl FnOnce() -> Result<T>>) -> Result<Value> {
    match side {
        Some(side) => side().map(T::into_value),
        None => Ok(Value::None),
    }
}

/// Records both branches, each of which runs once: first the one for a true condition.
fn both(
    condition: Proxy,
    side: &mut dyn FnMut(bool) -> Result<Value>,
    caller: &'static Location<'static>,
) -> Result<Value> {
    let mut recorder = Cond::record(condition, false, Region::Branch, caller)?;
    let name = |_| "the value of the branch".to_string();
    recorder.end_branch(vec![side(true)?], &name)?;
    let joined = recorder.end_branch(vec![side(false)?], &name)?;
    Ok(joined
        .and_then(|mut values| values.pop())
        .unwrap_or_default())
}

/// A branch of a graph: runs `then` or `otherwise` by its first input. [`cond`] makes it.
///
/// Its branches are graph modules at `then` and `otherwise`, which can be looked at, edited and
/// replaced by path.
#[derive(Debug, fx_macros::Module)]
pub struct Cond {
    pub(super) then: GraphModule,
    pub(super) otherwise: GraphModule,
    #[module(skip)]
    pub(super) params: OnceLock<Vec<ParamSpec>>,
}

impl Cond {
    /// Begins to record a branch; `negated` if the first one is for a false condition.
    pub(super) fn record(
        condition: Proxy,
        negated: bool,
        region: Region,
        caller: &'static Location<'static>,
    ) -> Result<BranchRecorder> {
        BranchRecorder::begin(condition, negated, region, caller, |then, otherwise| {
            Box::new(Cond {
                then,
                otherwise,
                params: OnceLock::new(),
            })
        })
    }

    /// The branch that runs if the condition is true.
    pub fn then(&self) -> &GraphModule {
        &self.then
    }

    /// The branch that runs if it is false.
    pub fn otherwise(&self) -> &GraphModule {
        &self.otherwise
    }
}

impl Module for Cond {
    fn params(&self) -> &[ParamSpec] {
        self.params
            .get_or_init(|| record::with_condition(self.then.params()))
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        self.run_graphs(args, out, &mut record::run_side)
    }

    fn run_graphs(&self, args: &[&Value], out: &mut Value, run: RunGraph<'_>) -> Result<()> {
        let [condition, rest @ ..] = args else {
            return Err(Error::expected("a condition", "no argument"));
        };
        let mut side = |is_then: bool, out: &mut Value| match is_then {
            true => run("then", &self.then, rest, out),
            false => run("otherwise", &self.otherwise, rest, out),
        };
        let caller = Location::caller();
        match record::truth_of(condition, caller)? {
            Truth::Known(truth) => side(truth, out),
            // A trace that opens the branch records it anew.
            Truth::Traced(condition) => {
                let mut given = |is_then| {
                    let mut value = Value::None;
                    side(is_then, &mut value).map(|()| value)
                };
                *out = both(condition, &mut given, caller)?;
                Ok(())
            }
        }
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
        self.then.effects().union(self.otherwise.effects())
    }

    fn graph_names(&self) -> &'static [&'static str] {
        &["then", "otherwise"]
    }

    fn open_edit(&mut self) -> bool {
        self.then.open_edit() && self.otherwise.open_edit()
    }

    fn close_edit(&mut self, keep: bool) {
        self.then.close_edit(keep);
        self.otherwise.close_edit(keep);
        self.graphs_changed();
    }

    fn graphs_changed(&mut self) {
        self.params = OnceLock::new();
    }

    fn source_problem(&self) -> Option<&'static str> {
        Some("is a branch inside of 16 branches and loops, and source is written to that depth")
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<Cond>(|| "fx_core::control::Cond") }
