//! Running a graph on symbolic values, which is tracing it again: node by node through the dispatch.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::trace::context::Attributes;
use crate::trace::dispatch::{self, CallForm};
use crate::trace::tracer::CallArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// Runs a graph on one value for each placeholder, recording what is symbolic.
pub(crate) fn run(graph: &Graph, attributes: &Attributes, inputs: Vec<Value>) -> Result<Value> {
    let mut values: FxHashMap<NodeId, Value> = FxHashMap::default();
    let mut inputs = inputs.into_iter();
    for node in graph.nodes() {
        let value = match node.op() {
            Op::Placeholder(_) => inputs.next().unwrap_or_default(),
            Op::Output => {
                let result = node.args().first().cloned().unwrap_or(Argument::None);
                return value_of(&result, &values);
            }
            _ => dispatch::retracing(node, || step(node, attributes, &values))
                .map_err(|e| node.blame("executing", e))?,
        };
        values.insert(node.id(), value);
    }
    Err(Error::msg("the graph has no output node"))
}

fn step(
    node: NodeRef<'_>,
    attributes: &Attributes,
    values: &FxHashMap<NodeId, Value>,
) -> Result<Value> {
    let missing = |what: &str, path: &str| Error::msg(format_args!("no {what} at `{path}`"));
    let call = CallArgs {
        args: node
            .args()
            .iter()
            .map(|a| value_of(a, values))
            .collect::<Result<_>>()?,
        kwargs: node
            .kwargs()
            .iter()
            .map(|(k, a)| Ok((k.clone(), value_of(a, values)?)))
            .collect::<Result<_>>()?,
    };
    match node.op() {
        Op::GetAttr(path) => attributes
            .tensors
            .get(path)
            .map(|(_, value)| value.clone())
            .ok_or_else(|| missing("parameter, buffer or constant", path)),
        Op::CallFunction(function) => {
            let args = dispatch::bind_values(function.path(), function.params(), call)?;
            dispatch::call_values(*function, CallForm::Function, args)
        }
        Op::CallMethod(name) => dispatch::call_method(name, call),
        Op::CallModule(path) => {
            let module = attributes
                .modules
                .get(path)
                .ok_or_else(|| missing("module", path))?;
            let args = dispatch::bind_values(path, module.params(), call)?;
            dispatch::call_module(&**module, args, std::panic::Location::caller())
        }
        Op::Placeholder(_) | Op::Output => Ok(Value::None),
    }
}

fn value_of(arg: &Argument, values: &FxHashMap<NodeId, Value>) -> Result<Value> {
    let all = |items: &[Argument]| {
        items
            .iter()
            .map(|a| value_of(a, values))
            .collect::<Result<Box<[Value]>>>()
    };
    Ok(match arg {
        Argument::Node(id) => values.get(id).cloned().ok_or_else(|| {
            Error::msg("an argument is used before it is computed: lint the graph")
        })?,
        Argument::List(items) => Value::List(all(items)?),
        Argument::Tuple(items) => Value::Tuple(all(items)?),
        Argument::Dict(items) => Value::Dict(Box::new(
            items
                .iter()
                .map(|(k, a)| Ok((k.clone(), value_of(a, values)?)))
                .collect::<Result<_>>()?,
        )),
        Argument::Slice(parts) => Value::Slice(Box::new(three(parts, values)?)),
        Argument::Range(parts) => Value::Range(Box::new(three(parts, values)?)),
        plain => plain.plain_value().unwrap_or_default(),
    })
}

fn three(parts: &[Argument; 3], values: &FxHashMap<NodeId, Value>) -> Result<[Value; 3]> {
    let [a, b, c] = parts;
    Ok([
        value_of(a, values)?,
        value_of(b, values)?,
        value_of(c, values)?,
    ])
}
