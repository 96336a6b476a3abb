//! `cond` and `Cond`: one of two sides, by a condition that is known when the graph runs.
//!
//! Invariant: both sides take the same inputs and give the same number of results.

use std::panic::Location;
use std::sync::OnceLock;

use super::decide::{Decide, Truth};
use super::record;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::function::Effects;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::module::registry::ModuleType;
use crate::module::walk::Component;
use crate::trace::blame::blame;
use crate::trace::convert::Output;
use crate::trace::scope;
use crate::trace::side::Side;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// Gives what one of two closures gives, by a condition (`torch.cond`).
///
/// If the condition is known, only its closure runs. If it is traced, both run while tracing, each
/// once, and the graph has a call of a [`Cond`]: only one side runs with the graph. The results may
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
    match condition.decide()?.or_tracers()? {
        Truth::Known(true) => then(),
        Truth::Known(false) => otherwise(),
        Truth::Traced(condition) => {
            let mut then = Some(then);
            let mut otherwise = Some(otherwise);
            let value = both(
                condition,
                &mut || given(then.take()),
                &mut || given(otherwise.take()),
                Location::caller(),
            )?;
            T::from_value(value)
        }
    }
}

/// The value of a side, which runs once.
fn given<T: Output>(side: Option<impl FnOnce() -> Result<T>>) -> Result<Value> {
    match side {
        Some(side) => side().map(T::into_value),
        None => Ok(Value::None),
    }
}

/// Records both sides.
fn both(
    condition: Proxy,
    then: &mut dyn FnMut() -> Result<Value>,
    otherwise: &mut dyn FnMut() -> Result<Value>,
    caller: &'static Location<'static>,
) -> Result<Value> {
    let active = scope::of_proxy(condition)?;
    let context = &active.context;
    let one_side = |side: &mut dyn FnMut() -> Result<Value>| {
        let mark = context.mark()?;
        let (tree, leaves) = record::flat(side()?)?;
        Ok::<_, Error>((tree, leaves, context.recorded_since(mark)?))
    };
    let (tree, first, then) = one_side(then)?;
    let (other, second, otherwise) = one_side(otherwise)?;
    context.set_location(caller);
    if tree != other {
        let error = Error::msg(format_args!(
            "one side gives `{tree}`, the other `{other}`: both sides of a branch give one structure"
        ));
        return Err(blame(&active, "cond", error));
    }
    let differing: Vec<usize> = (0..first.len())
        .filter(|at| !record::is_same(&first[*at], &second[*at]))
        .collect();
    let side = |nodes, leaves: &[Value]| {
        let leaves: Vec<Value> = differing.iter().map(|at| leaves[*at].clone()).collect();
        let results = record::arguments(&active, &leaves)?;
        Ok::<_, Error>(Side { nodes, results })
    };
    let sides = [side(then, &first)?, side(otherwise, &second)?];
    let sides = [&sides[0], &sides[1]];
    let inputs = context.operands(&sides, &[])?;
    let module = Cond {
        then: record::side_module(&active, sides[0], &inputs, false, "then")?,
        otherwise: record::side_module(&active, sides[1], &inputs, false, "otherwise")?,
        params: OnceLock::new(),
    };
    context.cut(&sides, &[], "a branch", caller)?;
    let mut leaves = first;
    if differing.is_empty() && module.effects().is_pure() {
        return tree.unflatten(leaves);
    }
    let args = record::nodes(&inputs);
    let results = record::call(&active, "cond", &module, condition, args, differing.len())?;
    for (at, result) in differing.into_iter().zip(results) {
        leaves[at] = result;
    }
    tree.unflatten(leaves)
}

/// A branch of a graph: runs `then` or `otherwise` by its first input. [`cond`] makes it.
///
/// Its sides are graph modules at `then` and `otherwise`, which can be looked at, edited and
/// replaced by path.
#[derive(Debug, fx_macros::Module)]
pub struct Cond {
    then: GraphModule,
    otherwise: GraphModule,
    #[module(skip)]
    params: OnceLock<Vec<ParamSpec>>,
}

impl Cond {
    /// The side that runs if the condition is true.
    pub fn then(&self) -> &GraphModule {
        &self.then
    }

    /// The side that runs if it is false.
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
        let [condition, rest @ ..] = args else {
            return Err(Error::expected("a condition", "no argument"));
        };
        match condition.truth()? {
            true => self.then.run(rest, out),
            false => self.otherwise.run(rest, out),
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

    fn source_problem(&self) -> Option<&'static str> {
        Some("is a branch, which generated source does not have yet")
    }
}

inventory::submit! { ModuleType::named::<Cond>(|| "fx_core::control::Cond") }
