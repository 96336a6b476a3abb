//! `CoreSet`: which functions the core set holds, and how every other function is decomposed into them.
//!
//! Invariant: a function is a member or is decomposed, never both.

use std::any::Any;

use super::decompose::{DecomposedCall, Decompositions};
use crate::error::{Error, Result};
use crate::function_table;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::table::FunctionTable;
use crate::module::Module;
use crate::value::value::Value;

/// What the core set says of a function: an entry of a
/// [`FunctionTable`](crate::ir::FunctionTable), registered by the function's crate.
///
/// The core set is what an exporter, a compiler or a differentiator has to know: every function is
/// a member of it, or is [decomposed](Decompositions::core) into members. fx's operators are
/// members.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::function_table;
/// use fx_core::passes::{CoreSet, Decompositions, verify_core};
/// use fx_core::value::IntoValue;
/// #[wrap] fn root(x: Float) -> Result<Float> { x.pow(0.5) }
/// #[wrap] fn length(x: Float, y: Float) -> Result<Float> { root(((x * x)? + (y * y)?)?) }
/// function_table! { CoreSet {
///     function!(root) => CoreSet::Member,
///     function!(length) => CoreSet::decomposed(|call| {
///         let (x, y): (Float, Float) = (call.arg("x")?, call.arg("y")?);
///         root(((x * x)? + (y * y)?)?).map(IntoValue::into_value)
///     }),
/// } }
///
/// let mut gm = symbolic_trace(traced!(|x: Float| length(x, 4.0.into())? * 2.0))?;
/// assert!(verify_core(&gm).is_err());
/// gm.apply(&Decompositions::core()?)?;
/// verify_core(&gm)?;
/// assert_eq!(gm.forward::<f64>(3.0)?, 10.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CoreSet {
    /// The function belongs to the core set.
    Member,
    /// The function is replaced by the result of this rule for its arguments.
    Decomposed(fn(&DecomposedCall<'_>) -> Result<Value>),
}

impl CoreSet {
    /// An entry with a rule, as [`Decompositions::rule`] takes it.
    pub const fn decomposed(rule: fn(&DecomposedCall<'_>) -> Result<Value>) -> Self {
        CoreSet::Decomposed(rule)
    }
}

function_table! { CoreSet {
    operator::_assert => CoreSet::Member,
    operator::abs => CoreSet::Member,
    operator::add => CoreSet::Member,
    operator::and_ => CoreSet::Member,
    operator::assert_specialized => CoreSet::Member,
    operator::eq => CoreSet::Member,
    operator::floordiv => CoreSet::Member,
    operator::ge => CoreSet::Member,
    operator::getattr => CoreSet::Member,
    operator::getitem => CoreSet::Member,
    operator::gt => CoreSet::Member,
    operator::invert => CoreSet::Member,
    operator::le => CoreSet::Member,
    operator::lshift => CoreSet::Member,
    operator::lt => CoreSet::Member,
    operator::matmul => CoreSet::Member,
    operator::r#mod => CoreSet::Member,
    operator::mul => CoreSet::Member,
    operator::ne => CoreSet::Member,
    operator::neg => CoreSet::Member,
    operator::or_ => CoreSet::Member,
    operator::pow => CoreSet::Member,
    operator::rshift => CoreSet::Member,
    operator::sub => CoreSet::Member,
    operator::truediv => CoreSet::Member,
    operator::xor => CoreSet::Member,
} }

impl Decompositions {
    /// The decompositions into the core set that linked crates have registered, as [`CoreSet`]
    /// entries. [`verify_core`] holds after them where the graph calls no layers:
    /// [`opened`](GraphModule::opened) is the graph without.
    ///
    /// # Errors
    /// Returns an error if two entries are registered for one function.
    pub fn core() -> Result<Self> {
        let registered = FunctionTable::<CoreSet>::registered()?.iter();
        let rules = registered.filter_map(|(function, entry)| match entry {
            CoreSet::Decomposed(rule) => Some((function, *rule)),
            CoreSet::Member => None,
        });
        Ok(
            rules.fold(Decompositions::new(), |table, (function, rule)| {
                table.rule(function, rule)
            }),
        )
    }
}

/// Checks that a graph calls nothing but functions of the core set, by name or as methods, inside
/// of branches, loops and nested graph modules too.
///
/// # Errors
/// Returns an error that names the first call of anything else: a layer, a function that
/// [`Decompositions::core`] would replace, or one that no crate has declared.
pub fn verify_core(gm: &GraphModule) -> Result<()> {
    let table = FunctionTable::<CoreSet>::registered()?;
    let mut modules = vec![gm];
    while let Some(module) = modules.pop() {
        for (_, graph_module) in module.with_sides() {
            for node in graph_module.graph().nodes() {
                if let Some(problem) = problem_of(graph_module, node, table)? {
                    return Err(node.blame("verifying the core set", problem));
                }
            }
            modules.extend(graph_module.graph_modules().map(|(_, inner)| inner));
        }
    }
    Ok(())
}

/// What makes a node no call of the core set.
fn problem_of(
    gm: &GraphModule,
    node: NodeRef<'_>,
    table: &FunctionTable<CoreSet>,
) -> Result<Option<Error>> {
    let is_graph = |module: &dyn Module| {
        let any: &dyn Any = module;
        !module.graph_names().is_empty() || any.is::<GraphModule>()
    };
    let call = gm.call(node)?;
    let function = match (node.op(), call.function()) {
        (Op::CallModule(path), _) => {
            let module = gm.attributes().modules.get(path);
            if module.is_some_and(|module| is_graph(&**module)) {
                return Ok(None);
            }
            return Ok(Some(
                match module.is_some_and(|module| module.is_opaque()) {
                    true => Error::msg(format_args!(
                        "`{path}` is a layer whose body works on data, and calls no functions"
                    )),
                    false => Error::msg(format_args!(
                        "`{path}` is a layer: `gm.opened()` is the graph with the functions inside of layers"
                    )),
                },
            ));
        }
        (_, Some(function)) => function,
        (Op::CallMethod(name), None) => {
            return Ok(Some(Error::msg(format_args!(
                "the method `{name}` belongs to no function, or to several"
            ))));
        }
        _ => return Ok(None),
    };
    Ok(match table.get(function) {
        Some(CoreSet::Member) => None,
        Some(CoreSet::Decomposed(_)) => Some(Error::msg(format_args!(
            "`{}` is not in the core set: apply `Decompositions::core()`",
            function.path()
        ))),
        None => Some(Error::msg(format_args!(
            "`{}` is neither in the core set nor decomposed: register it with \
             `function_table! {{ CoreSet {{ .. }} }}`",
            function.path()
        ))),
    })
}
