//! The default of each decision of a [`Tracer`].
//!
//! Invariant: a default asks the given tracer for every decision inside it, so no override is
//! bypassed.

use std::any::Any;
use std::sync::Arc;

use super::call_args::CallArgs;
use super::concrete::args_for_root;
use super::context::TraceContext;
use super::tracer::Tracer;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::argument::ModuleArg;
use crate::module::module::Module;
use crate::module::walk::TensorKind;
use crate::value::handle::Proxy;
use crate::value::nested::check_depth;
use crate::value::object::{Object, short_type_name};
use crate::value::value::{IntoValue, Value};

impl TraceContext {
    /// The default of [`Tracer::call_module`]: a leaf is one node, any other module is traced
    /// through.
    ///
    /// # Errors
    /// Returns an error if recording or the body fails.
    pub fn default_call_module<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        module: &dyn Module,
        path: &Arc<str>,
        args: CallArgs,
        forward: &mut dyn FnMut(CallArgs) -> Result<Value>,
    ) -> Result<Value> {
        if tracer.is_leaf_module(self, module, path) {
            self.keep_module(path, module);
            let call = Op::CallModule(path.clone());
            let proxy = self.in_call(path, module, || tracer.create_proxy(self, call, args))?;
            return Ok(Value::Proxy(proxy));
        }
        self.in_scope(path.clone(), module, || forward(args))
    }

    /// The error of a proxy that another trace made.
    #[cold]
    fn foreign(&self, proxy: Proxy) -> Error {
        ErrorKind::ForeignProxy {
            proxy: proxy.to_string(),
            reason: format!(
                "it belongs to trace #{}, and this call is recorded in trace #{}: one call cannot mix two",
                proxy.trace.0,
                self.id().0
            ),
        }
        .into()
    }

    /// The default of [`Tracer::create_arg`]: plain values as they are, structures by their items,
    /// tensors by [`Tracer::getattr`].
    ///
    /// # Errors
    /// Returns an error if the value cannot be in a graph, or nests deeper than 64 levels.
    pub fn default_create_arg<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        value: &Value,
    ) -> Result<Argument> {
        check_depth(value, "an argument")?;
        let of = |value: &Value| tracer.create_arg(self, value);
        let all = |items: &[Value]| items.iter().map(of).collect::<Result<Vec<_>>>();
        let three = |[a, b, c]: &[Value; 3]| Ok::<_, Error>([of(a)?, of(b)?, of(c)?]);
        Ok(match value {
            Value::Proxy(proxy) if proxy.trace == self.id() => Argument::Node(proxy.node),
            Value::Proxy(proxy) => return Err(self.foreign(*proxy)),
            Value::Object(handle) => {
                let object = handle
                    .object()
                    .ok_or_else(|| Error::msg("an argument was freed before it was recorded"))?;
                match object.proxy() {
                    Some(proxy) => return tracer.create_arg(self, &Value::Proxy(proxy)),
                    None => tracer.getattr(self, object)?,
                }
            }
            Value::List(items) => Argument::List(Arc::new(all(items)?)),
            Value::Tuple(items) => Argument::Tuple(Arc::new(all(items)?)),
            Value::Dict(map) => Argument::Dict(Arc::new(
                map.iter()
                    .map(|(k, v)| Ok((k.clone(), of(v)?)))
                    .collect::<Result<_>>()?,
            )),
            Value::Slice(parts) => Argument::Slice(Arc::new(three(parts)?)),
            Value::Range(parts) => Argument::Range(Arc::new(three(parts)?)),
            plain => Argument::of_plain(plain).unwrap_or(Argument::None),
        })
    }

    /// The default of [`Tracer::getattr`]: a `get_attr` node, one for each parameter, a new one for
    /// each use of anything else.
    ///
    /// # Errors
    /// Returns an error if the object is not a tensor, or its node cannot be made.
    pub fn default_getattr<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        object: &dyn Object,
    ) -> Result<Argument> {
        let any: &dyn Any = object;
        if let Some(module) = any.downcast_ref::<ModuleArg>() {
            let path = self.path_of_argument(module)?;
            self.keep_module(&path, module.module());
            let read = Op::GetAttr(path);
            let node = tracer.create_node(self, read, Args::new(), Kwargs::new(), None)?;
            return Ok(Argument::Node(node));
        }
        let read =
            |path| tracer.create_node(self, Op::GetAttr(path), Args::new(), Kwargs::new(), None);
        let known = object.object_id().and_then(|id| self.path_of_tensor(id));
        let Some((path, kind)) = known else {
            if object.object_id().is_none() && object.shape().is_none() {
                return Err(Error::msg(format_args!(
                    "a value of type `{}` cannot be an argument in a graph: only tensors, plain values and structures of them \
                     can (a tensor type of your own gives its node by `Object::proxy`)",
                    short_type_name(object.type_name())
                )));
            }
            return read(self.constant_path(object)).map(Argument::Node);
        };
        if kind == TensorKind::Parameter
            && let Some(proxy) = self.cached_parameter(&path)
        {
            return Ok(Argument::Node(proxy.node));
        }
        self.keep_tensor(&path, kind, object.to_value());
        let node = read(path.clone())?;
        if kind == TensorKind::Parameter {
            self.cache_parameter(path, tracer.proxy(self, node));
        }
        Ok(Argument::Node(node))
    }

    /// The default of [`Tracer::create_proxy`]: [`Tracer::create_arg`] of each argument,
    /// [`Tracer::create_node`] and [`Tracer::proxy`].
    ///
    /// # Errors
    /// The errors of these methods.
    pub fn default_create_proxy<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        op: Op,
        call: CallArgs,
    ) -> Result<Proxy> {
        let args = call.args.iter().map(|v| tracer.create_arg(self, v));
        let args = args.collect::<Result<Args>>()?;
        let kwargs = call.kwargs.iter();
        let kwargs = kwargs
            .map(|(k, v)| Ok((k.clone(), tracer.create_arg(self, v)?)))
            .collect::<Result<Kwargs>>()?;
        let node = tracer.create_node(self, op, args, kwargs, None)?;
        Ok(tracer.proxy(self, node))
    }

    /// The default of [`Tracer::create_args_for_root`]: a placeholder for each argument, and for
    /// each leaf of one that is specialised by a structure.
    ///
    /// # Errors
    /// Returns an error if a plain argument was not specialised.
    pub fn default_create_args_for_root<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        params: &[ParamSpec],
    ) -> Result<Vec<Value>> {
        args_for_root(tracer, self, params)
    }

    /// The default of [`Tracer::to_bool`].
    ///
    /// # Errors
    /// Returns an error, because the truth is known only when the graph runs, unless the shapes of the
    /// [inputs](crate::trace::Trace::inputs) decide it.
    pub fn default_to_bool(&self, proxy: Proxy) -> Result<bool> {
        if let Some(truth) = self.truth_by_hints(proxy)? {
            return Ok(truth);
        }
        if let Some(ValueMeta::Bool(None)) = self.shape_of(proxy.node)? {
            return Err(Error::msg(format_args!(
                "the truth of {} is known only when the graph runs: where it compares sizes, a hint of the spec decides it and is a guard (`Spec::hint`); `#[trace(control_flow)]` and `control::cond` record both ways",
                self.name_of(proxy)
            )));
        }
        Err(ErrorKind::ControlFlow {
            value: self.name_of(proxy),
        }
        .into())
    }

    /// The default of [`Tracer::iter`].
    ///
    /// # Errors
    /// Always returns an error: the number of items is known only when the graph runs.
    pub fn default_iter(&self, proxy: Proxy) -> Result<Vec<Proxy>> {
        self.unanswered("items", "iter", proxy)
    }

    /// The default of [`Tracer::keys`].
    ///
    /// # Errors
    /// Always returns an error: the keys are known only when the graph runs.
    pub fn default_keys(&self, proxy: Proxy) -> Result<Vec<Arc<str>>> {
        self.unanswered("keys", "keys", proxy)
    }

    fn unanswered<R>(&self, what: &'static str, question: &'static str, proxy: Proxy) -> Result<R> {
        Err(ErrorKind::Iteration {
            what,
            question,
            value: self.name_of(proxy),
        }
        .into())
    }

    /// The default of [`Tracer::create_items`]: [`Tracer::create_item`] for each index.
    ///
    /// # Errors
    /// As [`Tracer::create_item`].
    pub fn default_create_items<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        proxy: Proxy,
        count: usize,
    ) -> Result<Vec<Proxy>> {
        let item = |index: usize| tracer.create_item(self, proxy, index.into_value());
        (0..count).map(item).collect()
    }

    /// The default of [`Tracer::create_item`]: a call of `getitem`.
    ///
    /// # Errors
    /// As [`Tracer::create_proxy`].
    pub fn default_create_item<T: Tracer + ?Sized>(
        &self,
        tracer: &T,
        proxy: Proxy,
        index: Value,
    ) -> Result<Proxy> {
        let call = CallArgs {
            args: vec![Value::Proxy(proxy), index],
            kwargs: Vec::new(),
        };
        tracer.create_proxy(self, Op::CallFunction(operator::getitem), call)
    }
}
