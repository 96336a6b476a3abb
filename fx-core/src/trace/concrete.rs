//! The root's arguments: a placeholder for each leaf, and a guard for each specialised leaf.

use std::fmt;
use std::sync::Arc;

use super::call_args::CallArgs;
use super::context::TraceContext;
use super::report::Frozen;
use super::tracer::Tracer;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::graph::Graph;
use crate::ir::meta::Meta;
use crate::ir::node::NodeMut;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::signature::{Literal, ParamSpec};
use crate::value::object::Object;
use crate::value::tree::Tree;
use crate::value::value::{Arg, IntoValue, Value};

type Annotation = Arc<dyn Fn(&mut NodeMut<'_>) + Send + Sync>;

/// A leaf of a specialised argument that stays symbolic; see [`PH`].
#[derive(Clone, Default)]
pub struct Placeholder {
    annotations: Vec<Annotation>,
}

/// The leaf of a [`tree!`](crate::tree) that stays symbolic: an input of the graph.
///
/// ```
/// use fx_core::prelude::*;
/// use indexmap::IndexMap;
/// let sum = traced!(|x: IndexMap<String, Value>| {
///     Ok(x.into_iter().map(|(_, v)| v).collect::<Vec<Value>>())
/// });
/// let gm = Trace::new(sum).concrete("x", tree!({"a": PH, "b": PH})).graph_module()?;
/// assert_eq!(gm.graph().placeholders().count(), 2);
/// let y: Vec<i64> = gm.forward(tree!({"b": 2, "a": 1}))?;
/// assert_eq!(y, [1, 2]);
/// # Ok::<(), fx_core::Error>(())
/// ```
pub const PH: Placeholder = Placeholder {
    annotations: Vec::new(),
};

impl Placeholder {
    /// A placeholder whose node gets an entry of metadata.
    #[must_use]
    pub fn with_meta<M: Meta + Clone>(mut self, meta: M) -> Self {
        self.annotations
            .push(Arc::new(move |node: &mut NodeMut<'_>| {
                node.set_meta(meta.clone());
            }));
        self
    }
}

impl fmt::Debug for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PH")
    }
}

impl Object for Placeholder {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }
}

impl IntoValue for Placeholder {
    fn into_value(self) -> Value {
        Value::object(self)
    }
}
impl Arg for Placeholder {}

/// One leaf of an argument: its input, and what it is specialised to.
struct Leaf {
    /// Its name in errors and reports: `x`, or `x["mask"]`.
    place: String,
    input: Value,
    concrete: Option<Value>,
}

/// The arguments of the root's call, by the default of [`Tracer::create_args_for_root`].
pub(super) fn args_for_root<T: Tracer + ?Sized>(
    tracer: &T,
    cx: &TraceContext,
    params: &[ParamSpec],
) -> Result<Vec<Value>> {
    let mut arguments = Vec::with_capacity(params.len());
    for param in params {
        arguments.push(placeholders(tracer, cx, params, param)?);
    }
    cx.set_inputs(arguments.iter().map(|(tree, _)| tree.clone()).collect());
    // Guards come after all placeholders.
    arguments
        .into_iter()
        .map(|(tree, leaves)| {
            let leaves = leaves
                .into_iter()
                .map(|leaf| specialised(tracer, cx, leaf))
                .collect::<Result<_>>()?;
            tree.unflatten(leaves)
        })
        .collect()
}

fn placeholders<T: Tracer + ?Sized>(
    tracer: &T,
    cx: &TraceContext,
    params: &[ParamSpec],
    param: &ParamSpec,
) -> Result<(Tree, Vec<Leaf>)> {
    // A plain argument that is left open takes its default, guarded; so does an optional argument.
    let given = cx
        .concrete(&param.name)
        .or_else(|| fixed_default(param).map(Value::from));
    let Some(value) = given else {
        if !param.symbolic {
            return Err(ErrorKind::Unspecialised {
                argument: param.name.to_string(),
                ty: param.ty.to_string(),
            }
            .into());
        }
        let leaf = Leaf {
            place: param.name.to_string(),
            input: whole(tracer, cx, param, param.default.as_ref())?,
            concrete: None,
        };
        return Ok((Tree::Leaf, vec![leaf]));
    };
    let tree = Tree::of(&value)?;
    if tree.is_leaf() {
        // An argument that is present has no default for its absence.
        let is_there = is_bound_as_there(param, &value);
        if is_there {
            cx.report(Frozen::Present {
                argument: param.name.to_string(),
            });
        }
        let default = param.default.as_ref().filter(|_| !is_there);
        let input = whole(tracer, cx, param, default)?;
        let leaf = leaf_of(cx, param.name.to_string(), input, value)?;
        return Ok((tree, vec![leaf]));
    }
    let mut number = 0usize;
    let mut fresh = || loop {
        number += 1;
        let name = format!("{}_{number}", param.name);
        if !params.iter().any(|p| p.name == name.as_str()) {
            return name;
        }
    };
    let leaves = tree
        .paths()
        .into_iter()
        .zip(tree.flatten(value)?)
        .map(|(path, value)| {
            let op = Op::Placeholder(fresh().into());
            let node = tracer.create_node(cx, op, Args::new(), Kwargs::new(), None)?;
            if let Some(ty) = plain_type(&value) {
                cx.graph_mut()?.node_mut(node)?.set_type_expr(Some(ty));
            }
            let input = Value::Proxy(tracer.proxy(cx, node));
            leaf_of(cx, format!("{}{path}", param.name), input, value)
        })
        .collect::<Result<_>>()?;
    Ok((tree, leaves))
}

/// The default that a parameter takes if nobody binds it.
fn fixed_default(param: &ParamSpec) -> Option<&Literal> {
    let is_fixed = |default: &&Literal| !param.symbolic || **default == Literal::None;
    param.default.as_ref().filter(is_fixed)
}

/// What a graph was specialised to, of the parameters that would take their defaults in a new trace.
///
/// # Errors
/// Returns an error if the graph calls with a node that it does not have.
pub(super) fn specialised_to(graph: &Graph, params: &[ParamSpec]) -> Result<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for node in graph.find_nodes(&Op::CallFunction(operator::assert_specialized)) {
        let [Argument::Node(input), _, value] = node.args() else {
            continue;
        };
        let Op::Placeholder(name) = graph.node(*input)?.op() else {
            continue;
        };
        let mut params = params.iter().filter(|param| fixed_default(param).is_some());
        // A value that a node gives is none of a trace.
        let value = value.to_value(&mut |_| Err(Error::msg("a node")));
        if let (true, Ok(value)) = (params.any(|param| *param.name == **name), value) {
            found.push((name.to_string(), value));
        }
    }
    Ok(found)
}

/// Whether an optional argument is bound as present.
fn is_bound_as_there(param: &ParamSpec, bound: &Value) -> bool {
    param.symbolic
        && param.default == Some(Literal::None)
        && bound.downcast_ref::<Placeholder>().is_some()
}

/// The parameters of the traced root: one that was bound as present no longer has a default.
pub(super) fn params_of_trace(params: &[ParamSpec], cx: &TraceContext) -> Vec<ParamSpec> {
    let mut params = params.to_vec();
    for param in &mut params {
        let bound = cx.concrete(&param.name);
        if bound.is_some_and(|bound| is_bound_as_there(param, &bound)) {
            param.default = None;
        }
    }
    params
}

/// The placeholder of a parameter that is one leaf.
fn whole<T: Tracer + ?Sized>(
    tracer: &T,
    cx: &TraceContext,
    param: &ParamSpec,
    default: Option<&Literal>,
) -> Result<Value> {
    let args: Args = match default {
        Some(Literal::None) if param.symbolic => Args::from_iter([Argument::None]),
        Some(default) => Args::from_iter([Argument::from(default)]),
        None => Args::new(),
    };
    let op = Op::Placeholder(param.name.as_ref().into());
    let node = tracer.create_node(cx, op, args, Kwargs::new(), None)?;
    if !param.param_type.goes_without_saying() {
        let ty = param.annotation();
        cx.graph_mut()?.node_mut(node)?.set_type_expr(Some(&ty));
    }
    Ok(Value::Proxy(tracer.proxy(cx, node)))
}

fn leaf_of(cx: &TraceContext, place: String, input: Value, value: Value) -> Result<Leaf> {
    let concrete = match value.downcast_ref::<Placeholder>() {
        Some(placeholder) => {
            if let Some(proxy) = input.as_proxy() {
                let mut graph = cx.graph_mut()?;
                let mut node = graph.node_mut(proxy.node)?;
                for annotate in &placeholder.annotations {
                    annotate(&mut node);
                }
            }
            None
        }
        None => Some(value),
    };
    Ok(Leaf {
        place,
        input,
        concrete,
    })
}

/// The root's value for a leaf; a specialised leaf is guarded if a run can compare its values.
fn specialised<T: Tracer + ?Sized>(tracer: &T, cx: &TraceContext, leaf: Leaf) -> Result<Value> {
    let Some(concrete) = leaf.concrete else {
        return Ok(leaf.input);
    };
    // A tensor has no equality that a run could check cheaply.
    let guarded = cx.is_guarded()
        && matches!(
            concrete,
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_)
        );
    if guarded {
        let call = CallArgs {
            args: vec![
                leaf.input,
                Value::Str(leaf.place.as_str().into()),
                concrete.clone(),
            ],
            kwargs: Vec::new(),
        };
        let guard = Op::CallFunction(operator::assert_specialized);
        tracer.create_proxy(cx, guard, call)?;
    }
    cx.report(Frozen::Argument {
        argument: leaf.place,
        value: concrete.to_string(),
        guarded,
    });
    Ok(concrete)
}

/// The Rust type of a plain value.
fn plain_type(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "i64",
        Value::Float(_) => "f64",
        Value::Str(_) => "&str",
        Value::DType(_) => "DType",
        Value::Device(_) => "Device",
        _ => return None,
    })
}

/// A value of a tree with every leaf symbolic.
pub(super) fn all_symbolic(tree: &Tree) -> Result<Value> {
    let leaves = vec![Value::object(PH); tree.leaves()];
    tree.unflatten(leaves)
}
