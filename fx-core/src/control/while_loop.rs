//! `while_loop` and `While`: a body that runs while a condition holds, which is known when the
//! graph runs.
//!
//! Invariant: a turn gives whether there is another one, and as many carried values as it takes.

use std::panic::Location;
use std::sync::{Arc, OnceLock};

use super::decide::{Decide, Truth};
use super::record;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::args::Args;
use crate::ir::argument::{Argument, Kwargs};
use crate::ir::function::Effects;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::module::registry::ModuleType;
use crate::module::walk::Component;
use crate::trace::blame::blame;
use crate::trace::convert::Output;
use crate::trace::scope;
use crate::trace::side::Side;
use crate::value::handle::{NodeId, Proxy};
use crate::value::value::Value;

/// Runs a body on a state while a condition of the state holds (`jax.lax.while_loop`).
///
/// While the condition is known, the loop runs as it is written, and each turn is recorded. From
/// the turn on where it is traced, one turn is recorded as the body of a [`While`], which the graph
/// runs as often as the condition holds. The structure of the state stays the same; shapes and
/// dtypes may change from turn to turn.
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
        match condition(&state)?.decide()?.or_tracers()? {
            Truth::Known(false) => return Ok(state),
            Truth::Known(true) => state = body(state)?,
            Truth::Traced(go) => {
                let mut turn = |state| {
                    let state = body(S::from_value(state)?)?;
                    let go = condition(&state)?.decide()?;
                    Ok((go, state.into_value()))
                };
                let state = repeated(go, state.into_value(), &mut turn, caller)?;
                return S::from_value(state);
            }
        }
    }
}

/// A turn of a loop: whether there is another one, and the state after it.
type Turn<'t> = dyn FnMut(Value) -> Result<(Truth, Value)> + 't;

/// Records one turn as the body of a loop.
fn repeated(
    go: Proxy,
    state: Value,
    turn: &mut Turn<'_>,
    caller: &'static Location<'static>,
) -> Result<Value> {
    let active = scope::of_proxy(go)?;
    let context = &active.context;
    let (tree, init) = record::flat(state)?;
    // What is no number and no tensor cannot change.
    let carried: Vec<usize> = (0..init.len())
        .filter(|at| is_carried(&init[*at]))
        .collect();
    let init_arguments = {
        let leaves: Vec<Value> = carried.iter().map(|at| init[*at].clone()).collect();
        record::arguments(&active, &leaves)?
    };
    let mut leaves = init.clone();
    let mut carries: Vec<NodeId> = Vec::with_capacity(carried.len());
    for at in &carried {
        let op = Op::Placeholder(Arc::from("carry"));
        let node = context.insert(op, Args::new(), Kwargs::new(), Some("carry"))?;
        leaves[*at] = Value::Proxy(context.proxy(node));
        carries.push(node);
    }
    let mark = context.mark()?;
    let (again, next) = turn(tree.unflatten(leaves)?)?;
    let recorded = context.recorded_since(mark)?;
    context.set_location(caller);
    let (after, mut next) = record::flat(next)?;
    if after != tree {
        let error = Error::msg(format_args!(
            "the body turns the state `{tree}` into `{after}`: every turn of a loop gives one structure"
        ));
        return Err(blame(&active, "while_loop", error));
    }
    for at in 0..init.len() {
        if !is_carried(&init[at]) && !record::is_same(&init[at], &next[at]) {
            let error = Error::msg(format_args!(
                "the body changes {}: in a loop whose condition is traced only tensors and numbers can change",
                init[at].describe()
            ));
            return Err(blame(&active, "while_loop", error));
        }
    }
    let mut results = vec![match again {
        Truth::Known(again) => Argument::Bool(again),
        Truth::Traced(again) => Argument::Node(again.node()),
    }];
    let given: Vec<Value> = carried
        .iter()
        .map(|at| std::mem::take(&mut next[*at]))
        .collect();
    results.extend(record::arguments(&active, &given)?);
    let side = Side {
        nodes: recorded,
        results,
    };
    let captured = context.operands(&[&side], &carries)?;
    let inputs: Vec<NodeId> = carries.iter().chain(&captured).copied().collect();
    let module = While {
        body: record::side_module(&active, &side, &inputs, true, "body")?,
        carries: carries.len(),
        limit: None,
        params: OnceLock::new(),
    };
    context.cut(&[&side], &carries, "a loop", caller)?;
    let args = init_arguments.into_iter().chain(record::nodes(&captured));
    let results = record::call(&active, "while_loop", &module, go, args, carried.len())?;
    let mut leaves = init;
    for (at, result) in carried.into_iter().zip(results) {
        leaves[at] = result;
    }
    tree.unflatten(leaves)
}

/// Whether a leaf of the state can change from turn to turn.
fn is_carried(leaf: &Value) -> bool {
    matches!(
        leaf,
        Value::Proxy(_) | Value::Object(_) | Value::Bool(_) | Value::Int(_) | Value::Float(_)
    )
}

/// A loop of a graph: runs `body` while it says so. [`while_loop`] makes it.
///
/// Its inputs are whether to run at all, the carried values, and what the body reads from outside.
/// Its body takes the carried values and the rest, and gives whether there is another turn, and the
/// carried values after it (ONNX's `Loop` without a count).
#[derive(Debug, fx_macros::Module)]
pub struct While {
    body: GraphModule,
    carries: usize,
    limit: Option<usize>,
    #[module(skip)]
    params: OnceLock<Vec<ParamSpec>>,
}

impl While {
    /// One turn.
    pub fn body(&self) -> &GraphModule {
        &self.body
    }

    /// How many values a turn carries to the next.
    pub fn carries(&self) -> usize {
        self.carries
    }

    /// Sets how many turns a run may take; `None` is no limit.
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
        let [go, rest @ ..] = args else {
            return Err(Error::expected("a condition", "no argument"));
        };
        let Some((init, captured)) = rest.split_at_checked(self.carries) else {
            return Err(Error::expected(
                format_args!("{} carried values", self.carries),
                rest.len(),
            ));
        };
        let mut again = go.truth()?;
        let mut state: Vec<Value> = init.iter().map(|value| (*value).clone()).collect();
        let mut given = Value::None;
        let mut turns = 0;
        while again {
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
            self.body.run(&inputs, &mut given)?;
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
            again = go.truth()?;
            state.swap_with_slice(next);
        }
        *out = match <[Value; 1]>::try_from(state) {
            Ok([only]) => only,
            Err(state) => Value::Tuple(state.into()),
        };
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

    fn source_problem(&self) -> Option<&'static str> {
        Some("is a loop, which generated source does not have yet")
    }
}

inventory::submit! { ModuleType::named::<While>(|| "fx_core::control::While") }
