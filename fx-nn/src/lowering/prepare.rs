//! What is done to a graph before it is written: layers opened, methods as functions, shapes inferred, and functions
//! without a rule of their own written by others.
//!
//! Invariant: what comes out has a rule for every call, and knows the shape of every value.

use std::any::Any;

use fx_core::ir::{Op, ValueMeta};
use fx_core::module::Module;
use fx_core::passes::MethodsToFunctions;
use fx_core::shapes::{ShapeEnv, Spec};
use fx_core::trace::{Trace, TraceContext, Tracer};
use fx_core::{Error, GraphModule, Result};

use super::rule::Rules;
use super::value::Val;

/// Opens every layer that is not a graph of its own kind, and that the format has no form for.
struct Opening(fn(&dyn Any) -> bool);

impl Tracer for Opening {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, _: &str) -> bool {
        !module.graph_names().is_empty() || (self.0)(module)
    }
}

/// The graph module of flat inputs without layers, but those that the format has a form for.
///
/// # Errors
/// Returns an error if a layer cannot be traced.
pub fn opened(gm: &GraphModule, is_leaf: fn(&dyn Any) -> bool) -> Result<GraphModule> {
    let opened = Trace::new(gm).tracer(Opening(is_leaf)).graph_module()?;
    // One input each: the structures of arguments are of no use to a format.
    let name = gm.class_name().to_string();
    GraphModule::new(opened.attributes().clone(), opened.graph().clone(), &name)
}

/// Makes an opened graph ready to be written in a format: each call has a rule, and each value a
/// shape. Returns what is known of the symbols of sizes.
///
/// # Errors
/// Returns an error that lists every call without a rule, with its place; or one of the inference
/// of shapes.
pub fn prepare<C>(
    gm: &mut GraphModule,
    specs: &[Spec],
    rules: &Rules<C>,
    format: &str,
) -> Result<ShapeEnv> {
    made_ready(gm, rules, format, |gm| gm.infer_shapes(specs))
}

/// [`prepare`] for a graph inside of another one, such as a side of a branch: its symbols are those of `env`.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_within<C>(
    gm: &mut GraphModule,
    specs: &[Spec],
    env: &ShapeEnv,
    rules: &Rules<C>,
    format: &str,
) -> Result<ShapeEnv> {
    made_ready(gm, rules, format, |gm| gm.infer_shapes_within(specs, env))
}

fn made_ready<C>(
    gm: &mut GraphModule,
    rules: &Rules<C>,
    format: &str,
    infer: impl Fn(&mut GraphModule) -> Result<ShapeEnv>,
) -> Result<ShapeEnv> {
    gm.apply(&MethodsToFunctions)?;
    gm.eliminate_dead_code()?;
    let mut env = infer(gm)?;
    let before = results(gm);
    if gm.apply(&rules.decompositions()?)?.changed {
        gm.apply(&MethodsToFunctions)?;
        gm.eliminate_dead_code()?;
        env = infer(gm)?;
        let changed = before.iter().zip(&results(gm)).find_map(|(a, b)| {
            let (Some(a), Some(b)) = (a.tensor(), b.tensor()) else {
                return None;
            };
            (a.dtype != b.dtype || a.shape.len() != b.shape.len()).then(|| (a.clone(), b.clone()))
        });
        if let Some((before, after)) = changed {
            return Err(Error::msg(format_args!(
                "written by other functions, {before} would be {after}: give the function a rule with `Export::op`"
            )));
        }
    }
    without_rule(gm, rules, format)?;
    Ok(env)
}

/// What is known of each result.
fn results(gm: &GraphModule) -> Vec<ValueMeta> {
    let output = gm.graph().output_node();
    match output.and_then(|node| node.meta::<ValueMeta>()) {
        Some(ValueMeta::List(items) | ValueMeta::Tuple(items)) => items.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    }
}

/// An error with every call that the format cannot have.
fn without_rule<C>(gm: &GraphModule, rules: &Rules<C>, format: &str) -> Result<()> {
    let mut problems: Vec<String> = Vec::new();
    let mut is_known_to_lack = true;
    for node in gm.graph().nodes() {
        let problem = match node.op() {
            Op::CallFunction(function) => match rules.get(*function)? {
                Some(rule) => match rule.reason() {
                    // A number that is known is written as a number.
                    Some(reason) if !is_known(node.meta()) => reason,
                    _ => continue,
                },
                None if is_known(node.meta()) => continue,
                None => {
                    is_known_to_lack = false;
                    "has no rule"
                }
            },
            Op::CallMethod(_) => {
                is_known_to_lack = false;
                "is a method of no type or of several, which the graph does not know"
            }
            _ => continue,
        };
        let at = node.location().map(|place| format!(" ({place})"));
        let module = node.module_stack().next().map(|scope| scope.path.clone());
        let module = module.filter(|path| !path.is_empty());
        problems.push(format!(
            "%{} = {}{}{}: {problem}",
            node.name(),
            node.target(),
            at.unwrap_or_default(),
            module.map_or(String::new(), |path| format!(" in {path}")),
        ));
    }
    let count = problems.len();
    if count == 0 {
        return Ok(());
    }
    let text = format!(
        "{count} call{} cannot be written as {format}:\n  {}\nGive a function a rule with `Export::op`, or replace its calls first with `Decompositions`",
        if count == 1 { "" } else { "s" },
        problems.join("\n  ")
    );
    Err(match is_known_to_lack {
        true => Error::not_in_format(text),
        false => Error::msg(text),
    })
}

/// Whether a value is numbers, which are written as what they are.
fn is_known(meta: Option<&ValueMeta>) -> bool {
    meta.is_some_and(|meta| Val::known(meta, &|_| true).is_some())
}
