//! What is done to a graph before it is written: layers opened, methods as functions, shapes inferred, and functions
//! without a rule of their own written by others.
//!
//! Invariant: what comes out has a rule for every call, and knows the shape of every value.

use fx_nn::ir::{Function, FunctionTable, Op, ValueMeta};
use fx_nn::module::Module;
use fx_nn::passes::{CoreSet, Decompositions, MethodsToFunctions};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::{TraceContext, Tracer};
use fx_nn::{Error, Result};

use super::options::Export;
use super::rule::Kind;
use crate::opaque::Opaque;

/// Opens every layer that is not a graph of its own kind.
struct Opening;

impl Tracer for Opening {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, _: &str) -> bool {
        let any: &dyn std::any::Any = module;
        any.is::<Opaque>() || !module.graph_names().is_empty()
    }
}

/// The graph module of flat inputs without layers.
pub(super) fn opened(gm: &GraphModule) -> Result<GraphModule> {
    let opened = Trace::new(gm).tracer(Opening).graph_module()?;
    // One input each: the structures of arguments are of no use to a file.
    let name = gm.class_name().to_string();
    GraphModule::new(opened.attributes().clone(), opened.graph().clone(), &name)
}

/// Makes it ready to be written.
pub(super) fn prepare(gm: &GraphModule, specs: &[Spec], export: &Export) -> Result<GraphModule> {
    let mut gm = opened(gm)?;
    if export.half {
        gm = halved(&gm)?;
    }
    gm.apply(&MethodsToFunctions)?;
    gm.eliminate_dead_code()?;
    gm.infer_shapes(specs)?;
    let table = decompositions(&gm, export)?;
    if gm.apply(&table)?.changed {
        gm.apply(&MethodsToFunctions)?;
        gm.eliminate_dead_code()?;
        gm.infer_shapes(specs)?;
    }
    without_rule(&gm, export)?;
    Ok(gm)
}

/// The same with `float16` in place of `float32`.
fn halved(gm: &GraphModule) -> Result<GraphModule> {
    let mut attributes = gm.attributes().clone();
    let tensors = gm.attributes().tensors.iter();
    for (path, (kind, value)) in tensors {
        if let Some(tensor) = value.downcast_ref::<Tensor>()
            && Tensor::dtype(tensor)? == DType::F32
        {
            let half = tensor.detach()?.to_dtype(DType::F16)?;
            attributes
                .tensors
                .insert(path.clone(), (*kind, Value::object(half)));
        }
    }
    GraphModule::new(attributes, gm.graph().clone(), gm.class_name())
}

/// How functions without nodes of their own are written by others.
fn decompositions(gm: &GraphModule, export: &Export) -> Result<Decompositions> {
    let core = FunctionTable::<CoreSet>::registered()?;
    let mut table = Decompositions::new();
    let mut left: Vec<Function> = core.iter().map(|(function, _)| function).collect();
    left.extend(super::rules()?.iter().map(|(function, _)| function));
    left.extend(export.rules.iter().map(|(function, _)| function));
    let _ = gm;
    for function in left {
        match (
            export.rule_of(function)?.map(|rule| &rule.0),
            core.get(function),
        ) {
            (Some(Kind::As(rule)), _) | (None, Some(CoreSet::Decomposed(rule))) => {
                table = table.rule(function, *rule);
            }
            _ => {}
        }
    }
    Ok(table)
}

/// An error with every call that ONNX cannot have.
fn without_rule(gm: &GraphModule, export: &Export) -> Result<()> {
    let mut problems: Vec<String> = Vec::new();
    for node in gm.graph().nodes() {
        let problem = match node.op() {
            Op::CallFunction(function) => match export.rule_of(*function)? {
                Some(rule) => match rule.reason() {
                    // A number that is known is written as a number.
                    Some(reason) if !is_known(node.meta()) => reason,
                    _ => continue,
                },
                None if is_known(node.meta()) => continue,
                None => "has no rule",
            },
            Op::CallMethod(_) => {
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
    match problems.len() {
        0 => Ok(()),
        count => Err(Error::msg(format_args!(
            "{count} call{} cannot be written as ONNX:\n  {}\nGive a function nodes with `Export::op`, or replace its calls first with `Decompositions`",
            if count == 1 { "" } else { "s" },
            problems.join("\n  ")
        ))),
    }
}

/// Whether a value is numbers, which are in a file what they are.
pub(super) fn is_known(meta: Option<&ValueMeta>) -> bool {
    match meta {
        Some(ValueMeta::Plain(text)) => !(text.starts_with("a ")),
        Some(ValueMeta::Size(_)) => true,
        Some(ValueMeta::Sequence(items)) => items.iter().all(|item| is_known(Some(item))),
        _ => false,
    }
}
