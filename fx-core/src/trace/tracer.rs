//! `Tracer`: the policy of a trace, a method for each decision; overriding one is enough.

use std::rc::Rc;
use std::sync::Arc;

use super::concrete::args_for_root;
use super::context::{Specialised, TraceContext};
use super::root::{Outcome, Root};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::op::Op;
use crate::ir::operators;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::module::walk::TensorKind;
use crate::value::handle::{NodeId, Proxy};
use crate::value::object::Object;
use crate::value::value::{IntoValue, Value};

/// A call on its way into the graph.
#[derive(Debug, Clone, Default)]
pub struct CallArgs {
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Keyword arguments, in order.
    pub kwargs: Vec<(Arc<str>, Value)>,
}

/// How a trace decides. Every method has torch.fx's default; override the one that matters.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::{Module, TraceContext};
///
/// /// Keeps every module named `head` whole.
/// struct HeadIsLeaf;
/// impl Tracer for HeadIsLeaf {
///     fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, path: &str) -> bool {
///         path.ends_with("head") || module.is_leaf()
///     }
/// }
/// ```
pub trait Tracer: 'static {
    /// Whether a call of the module is recorded as one node instead of being traced through.
    fn is_leaf_module(&self, cx: &TraceContext, module: &dyn Module, path: &str) -> bool {
        let _ = (cx, path);
        module.is_leaf()
    }

    /// A module of the root is called: records it, or runs its body (`forward`) to trace through.
    ///
    /// # Errors
    /// What recording or the body says.
    fn call_module(
        &self,
        cx: &TraceContext,
        module: &dyn Module,
        path: &Arc<str>,
        args: CallArgs,
        forward: &mut dyn FnMut(CallArgs) -> Result<Value>,
    ) -> Result<Value> {
        if self.is_leaf_module(cx, module, path) {
            cx.keep_module(path, module);
            let proxy = self.create_proxy(cx, Op::CallModule(path.clone()), args)?;
            return Ok(Value::Proxy(proxy));
        }
        cx.in_scope(path.clone(), module, || forward(args))
    }

    /// The argument that stands for a value in the graph.
    ///
    /// # Errors
    /// When the value cannot be in a graph.
    fn create_arg(&self, cx: &TraceContext, value: &Value) -> Result<Argument> {
        Ok(match value {
            Value::Proxy(proxy) if proxy.trace == cx.id() => Argument::Node(proxy.node),
            Value::Proxy(proxy) => {
                return Err(ErrorKind::ForeignProxy {
                    proxy: proxy.to_string(),
                    reason: format!(
                        "it belongs to trace #{}, and this call is recorded in trace #{}: one call cannot mix two",
                        proxy.trace.0,
                        cx.id().0
                    ),
                }
                .into());
            }
            Value::Object(handle) => {
                let object = handle
                    .object()
                    .ok_or_else(|| Error::msg("an argument was freed before it was recorded"))?;
                match object.proxy() {
                    Some(proxy) => return self.create_arg(cx, &Value::Proxy(proxy)),
                    None => self.getattr(cx, object)?,
                }
            }
            Value::None => Argument::None,
            Value::Ellipsis => Argument::Ellipsis,
            Value::Bool(x) => Argument::Bool(*x),
            Value::Int(x) => Argument::Int(*x),
            Value::Float(x) => Argument::Float(*x),
            Value::Str(x) => Argument::from(&**x),
            Value::DType(x) => Argument::DType(*x),
            Value::Device(x) => Argument::Device(*x),
            Value::List(items) => Argument::List(Arc::new(self.create_list(cx, items)?)),
            Value::Tuple(items) => Argument::Tuple(Arc::new(self.create_list(cx, items)?)),
            Value::Dict(map) => Argument::Dict(Arc::new(
                map.iter()
                    .map(|(k, v)| Ok((k.clone(), self.create_arg(cx, v)?)))
                    .collect::<Result<_>>()?,
            )),
            Value::Slice(parts) => Argument::Slice(Arc::new(self.create_three(cx, parts)?)),
            Value::Range(parts) => Argument::Range(Arc::new(self.create_three(cx, parts)?)),
        })
    }

    /// [`create_arg`](Tracer::create_arg) of each item.
    ///
    /// # Errors
    /// As `create_arg`.
    fn create_list(&self, cx: &TraceContext, items: &[Value]) -> Result<Vec<Argument>> {
        items.iter().map(|v| self.create_arg(cx, v)).collect()
    }

    /// [`create_arg`](Tracer::create_arg) of start, stop and step.
    ///
    /// # Errors
    /// As `create_arg`.
    fn create_three(&self, cx: &TraceContext, parts: &[Value; 3]) -> Result<[Argument; 3]> {
        let [a, b, c] = parts;
        Ok([
            self.create_arg(cx, a)?,
            self.create_arg(cx, b)?,
            self.create_arg(cx, c)?,
        ])
    }

    /// A concrete tensor is used: a parameter or buffer of the root by its path, any other as a constant.
    ///
    /// # Errors
    /// When the tensor's node cannot be made.
    fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
        let known = object.object_id().and_then(|id| cx.path_of_tensor(id));
        let Some((path, kind)) = known else {
            if object.object_id().is_none() && object.shape().is_none() {
                return Err(Error::msg(
                    "this object cannot be an argument in a graph: only tensors, plain values and structures of them can",
                ));
            }
            let path = cx.constant_path(object);
            let node = self.create_node(cx, Op::GetAttr(path), Args::new(), Kwargs::new(), None)?;
            return Ok(Argument::Node(node));
        };
        if kind == TensorKind::Parameter
            && let Some(proxy) = cx.cached_parameter(&path)
        {
            return Ok(Argument::Node(proxy.node));
        }
        cx.keep_tensor(&path, kind, object.to_value());
        let node = self.create_node(
            cx,
            Op::GetAttr(path.clone()),
            Args::new(),
            Kwargs::new(),
            None,
        )?;
        if kind == TensorKind::Parameter {
            cx.cache_parameter(path, self.proxy(cx, node));
        }
        Ok(Argument::Node(node))
    }

    /// Adds a node to the graph: the place to reject or annotate what is recorded.
    ///
    /// # Errors
    /// When an argument is not of this graph.
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        cx.insert(op, args, kwargs, name)
    }

    /// The symbolic value of a node.
    fn proxy(&self, cx: &TraceContext, node: NodeId) -> Proxy {
        cx.proxy(node)
    }

    /// Records a call and gives its symbolic result.
    ///
    /// # Errors
    /// As [`create_arg`](Tracer::create_arg) and [`create_node`](Tracer::create_node).
    fn create_proxy(&self, cx: &TraceContext, op: Op, call: CallArgs) -> Result<Proxy> {
        let args = call
            .args
            .iter()
            .map(|v| self.create_arg(cx, v))
            .collect::<Result<Args>>()?;
        let kwargs = call
            .kwargs
            .iter()
            .map(|(k, v)| Ok((k.clone(), self.create_arg(cx, v)?)))
            .collect::<Result<Kwargs>>()?;
        let node = self.create_node(cx, op, args, kwargs, None)?;
        Ok(self.proxy(cx, node))
    }

    /// The arguments that the root is called with: a placeholder for each, and for each leaf of one that is
    /// specialised by a structure.
    ///
    /// # Errors
    /// When a plain argument was not specialised.
    fn create_args_for_root(&self, cx: &TraceContext, params: &[ParamSpec]) -> Result<Vec<Value>> {
        args_for_root(self, cx, params)
    }

    /// The truth of a symbolic value, which the program asks for by `x.to_bool()?`.
    ///
    /// # Errors
    /// Always, unless a tracer knows better: the truth is known only when the graph runs.
    fn to_bool(&self, cx: &TraceContext, proxy: Proxy) -> Result<bool> {
        Err(ErrorKind::ControlFlow {
            value: cx.name_of(proxy),
        }
        .into())
    }

    /// The items of a symbolic value, which the program asks for by `x.iter()?`. A tracer that knows how many
    /// there are gives them by [`create_items`](Tracer::create_items).
    ///
    /// # Errors
    /// Always, unless a tracer knows better: how many there are is known only when the graph runs.
    fn iter(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Proxy>> {
        Err(ErrorKind::Iteration {
            what: "items",
            question: "iter",
            value: cx.name_of(proxy),
        }
        .into())
    }

    /// The keys of a symbolic value, which the program asks for by `x.keys()?`.
    ///
    /// # Errors
    /// Always, unless a tracer knows better: the keys are known only when the graph runs.
    fn keys(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Arc<str>>> {
        Err(ErrorKind::Iteration {
            what: "keys",
            question: "keys",
            value: cx.name_of(proxy),
        }
        .into())
    }

    /// Records `value[0]` to `value[count - 1]`.
    ///
    /// # Errors
    /// As [`create_proxy`](Tracer::create_proxy).
    fn create_items(&self, cx: &TraceContext, proxy: Proxy, count: usize) -> Result<Vec<Proxy>> {
        (0..count)
            .map(|index| self.create_item(cx, proxy, index.into_value()))
            .collect()
    }

    /// Records `value[index]`.
    ///
    /// # Errors
    /// As [`create_proxy`](Tracer::create_proxy).
    fn create_item(&self, cx: &TraceContext, proxy: Proxy, index: Value) -> Result<Proxy> {
        let call = CallArgs {
            args: vec![Value::Proxy(proxy), index],
            kwargs: Vec::new(),
        };
        self.create_proxy(cx, Op::CallFunction(operators::getitem), call)
    }

    /// The path of a module of the root.
    fn path_of_module(&self, cx: &TraceContext, module: &dyn Module) -> Option<Arc<str>> {
        cx.path_of(module)
    }

    /// A path for something that the root does not have.
    fn get_fresh_qualname(&self, cx: &TraceContext, prefix: &str) -> Arc<str> {
        cx.fresh_path(prefix)
    }

    /// Traces a root with this tracer.
    ///
    /// # Errors
    /// What the root's forward says, and what cannot be traced.
    fn trace<'r>(self, root: impl Root<'r>) -> Result<Outcome>
    where
        Self: Sized,
    {
        super::root::trace(Rc::new(self), &root.into_rooted(), Specialised::default())
    }
}

/// torch.fx's default policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolicTracer;

impl Tracer for SymbolicTracer {}
