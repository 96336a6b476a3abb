//! `Tracer`: the policy of a trace, one method per decision; overriding one is enough.

use std::sync::Arc;

use super::call_args::CallArgs;
use super::context::TraceContext;
use super::root::{Outcome, Root, Trace};
use crate::error::Result;
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::value::handle::{NodeId, Proxy};
use crate::value::object::Object;
use crate::value::value::Value;

/// The decisions of a trace. Every method has torch.fx's default; override those that matter.
///
/// A default asks this tracer for each decision inside it, so overrides work together. An override
/// that wants the default for some cases calls it on the context:
/// `cx.default_create_arg(self, value)`, or the parts of the default, such as
/// [`TraceContext::insert`] and [`TraceContext::proxy`].
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::trace::Tracer;
/// use fx_core::module::Module;
/// use fx_core::trace::TraceContext;
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
    ///
    /// Trace one level deep: whatever the root calls is one node.
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Graph;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::module::Module;
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// # #[derive(Module, Default)] struct Act { tag: fx_core::module::Tag }
    /// # #[trace] impl Act { fn forward(&self, x: Float) -> Result<Float> { double(x) } }
    /// # #[derive(Module, Default)] struct Block { act: Act }
    /// # #[trace] impl Block { fn forward(&self, x: Float) -> Result<Float> { self.act.forward(x) } }
    /// # #[derive(Module, Default)] struct Model { block: Block, head: Act }
    /// # #[trace] impl Model { fn forward(&self, x: Float) -> Result<Float> { self.head.forward(self.block.forward(x)?) } }
    /// struct OneLevel;
    /// impl Tracer for OneLevel {
    ///     fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
    ///         !path.is_empty()
    ///     }
    /// }
    /// let model = Model::default();
    /// let called = |graph: Graph| -> Vec<String> { graph.nodes().map(|n| n.target().to_string()).collect() };
    /// assert_eq!(called(Trace::new(&model).tracer(OneLevel).graph()?), ["x", "block", "head", "output"]);
    /// # Ok::<(), Error>(())
    /// ```
    fn is_leaf_module(&self, cx: &TraceContext, module: &dyn Module, path: &str) -> bool {
        let _ = (cx, path);
        module.is_leaf()
    }

    /// A module of the root is called: records the call, or runs its body (`forward`) to trace
    /// through it.
    ///
    /// Make every module a graph module of its own, nested as the modules are:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Op;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::module::Module;
    /// # use fx_core::trace::CallArgs;
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// # #[derive(Module, Default)] struct Act { tag: fx_core::module::Tag }
    /// # #[trace] impl Act { fn forward(&self, x: Float) -> Result<Float> { double(x) } }
    /// # #[derive(Module, Default)] struct Model { act: Act }
    /// # #[trace] impl Model { fn forward(&self, x: Float) -> Result<Float> { self.act.forward(x) } }
    /// struct Nested;
    /// impl Tracer for Nested {
    ///     fn call_module(
    ///         &self,
    ///         cx: &TraceContext,
    ///         module: &dyn Module,
    ///         path: &Arc<str>,
    ///         args: CallArgs,
    ///         _: &mut dyn FnMut(CallArgs) -> Result<Value>,
    ///     ) -> Result<Value> {
    ///         let inner = Trace::new(module).tracer(Nested).graph_module()?;
    ///         cx.keep_module(path, &inner);
    ///         Ok(Value::Proxy(self.create_proxy(cx, Op::CallModule(path.clone()), args)?))
    ///     }
    /// }
    /// let gm = Trace::new(&Model::default()).tracer(Nested).graph_module()?;
    /// assert!(gm.graph().find_name("act").is_some());
    /// assert_eq!(gm.forward::<f64>(1.5)?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if recording or the body fails.
    fn call_module(
        &self,
        cx: &TraceContext,
        module: &dyn Module,
        path: &Arc<str>,
        args: CallArgs,
        forward: &mut dyn FnMut(CallArgs) -> Result<Value>,
    ) -> Result<Value> {
        cx.default_call_module(self, module, path, args, forward)
    }

    /// The argument that stands for a value in the graph.
    ///
    /// Round every number that goes into the graph:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::ir::Argument;
    /// # #[wrap] fn scale(x: Float, by: Vec<f64>) -> Result<Float> { x * by.into_iter().fold(0.0, f64::max) }
    /// struct Rounded;
    /// impl Tracer for Rounded {
    ///     fn create_arg(&self, cx: &TraceContext, value: &Value) -> Result<Argument> {
    ///         match value {
    ///             Value::Float(x) => Ok(Argument::Float(x.round())),
    ///             other => cx.default_create_arg(self, other),
    ///         }
    ///     }
    /// }
    /// let gm = Trace::new(traced!(|x: Float| scale(x, vec![1.9, 0.2]))).tracer(Rounded).graph_module()?;
    /// assert_eq!(gm.forward::<f64>(3.0)?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the value cannot be in a graph, or nests deeper than 64 levels.
    fn create_arg(&self, cx: &TraceContext, value: &Value) -> Result<Argument> {
        cx.default_create_arg(self, value)
    }

    /// A concrete tensor is used: records a parameter or buffer of the root by its path, any other
    /// as a constant.
    ///
    /// Record buffers like parameters, one `get_attr` node for each:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::{Graph, Op};
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Args, Argument, Kwargs};
    /// # use fx_core::module::{Component, TensorKind, Walk, WalkMut};
    /// # use fx_core::tensor::{Object, Traced};
    /// # use fx_core::trace::CallArgs;
    /// # #[derive(Clone, Debug)]
    /// # enum Scalar { Known(std::sync::Arc<f64>), Traced(Proxy) }
    /// # impl Object for Scalar {
    /// #     fn to_value(&self) -> Value { Value::object(self.clone()) }
    /// #     fn object_id(&self) -> Option<u64> {
    /// #         match self { Scalar::Known(x) => Some(std::sync::Arc::as_ptr(x) as u64), Scalar::Traced(_) => None }
    /// #     }
    /// #     fn shape(&self) -> Option<&[usize]> { Some(&[]) }
    /// #     fn proxy(&self) -> Option<Proxy> { match self { Scalar::Traced(p) => Some(*p), Scalar::Known(_) => None } }
    /// # }
    /// # impl Traced for Scalar { fn from_proxy(proxy: Proxy) -> Self { Scalar::Traced(proxy) } }
    /// # impl Component for Scalar {
    /// #     fn visit(&self, walk: &mut Walk<'_, '_>) { walk.tensor(self); }
    /// #     fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) { walk.tensor(self); }
    /// #     fn duplicate(&self) -> Self { self.clone() }
    /// # }
    /// # fx_core::tensor::tensor_type!(Scalar);
    /// # #[derive(Module)] struct Norm { #[module(buffer)] mean: Scalar }
    /// # #[trace] impl Norm { fn forward(&self, x: &Scalar) -> Result<Scalar> { (x - &self.mean)? * &self.mean } }
    /// struct ProxyBuffers;
    /// impl Tracer for ProxyBuffers {
    ///     fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
    ///         let known = object.object_id().and_then(|id| cx.path_of_tensor(id));
    ///         if let Some((path, TensorKind::Buffer)) = known
    ///             && let Some(node) = cx.graph()?.find_nodes(&Op::GetAttr(path)).first()
    ///         {
    ///             return Ok(Argument::Node(node.id()));
    ///         }
    ///         cx.default_getattr(self, object)
    ///     }
    /// }
    /// let norm = Norm { mean: Scalar::Known(2.0.into()) };
    /// let read = |graph: Graph| graph.find_nodes(&Op::GetAttr("mean".into())).len();
    /// assert_eq!(read(Trace::new(&norm).graph()?), 2);
    /// assert_eq!(read(Trace::new(&norm).tracer(ProxyBuffers).graph()?), 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Represent parameters differently, here each by its double:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Op;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Args, Argument, Kwargs};
    /// # use fx_core::module::{Component, TensorKind, Walk, WalkMut};
    /// # use fx_core::tensor::{Object, Traced};
    /// # use fx_core::trace::CallArgs;
    /// # #[derive(Clone, Debug)]
    /// # enum Scalar { Known(std::sync::Arc<f64>), Traced(Proxy) }
    /// # impl Object for Scalar {
    /// #     fn to_value(&self) -> Value { Value::object(self.clone()) }
    /// #     fn object_id(&self) -> Option<u64> {
    /// #         match self { Scalar::Known(x) => Some(std::sync::Arc::as_ptr(x) as u64), Scalar::Traced(_) => None }
    /// #     }
    /// #     fn shape(&self) -> Option<&[usize]> { Some(&[]) }
    /// #     fn proxy(&self) -> Option<Proxy> { match self { Scalar::Traced(p) => Some(*p), Scalar::Known(_) => None } }
    /// # }
    /// # impl Traced for Scalar { fn from_proxy(proxy: Proxy) -> Self { Scalar::Traced(proxy) } }
    /// # impl Component for Scalar {
    /// #     fn visit(&self, walk: &mut Walk<'_, '_>) { walk.tensor(self); }
    /// #     fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) { walk.tensor(self); }
    /// #     fn duplicate(&self) -> Self { self.clone() }
    /// # }
    /// # fx_core::tensor::tensor_type!(Scalar);
    /// # #[derive(Module)] struct Scale { by: Scalar }
    /// # #[trace] impl Scale { fn forward(&self, x: &Scalar) -> Result<Scalar> { x * &self.by } }
    /// struct Doubled;
    /// impl Tracer for Doubled {
    ///     fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
    ///         let read = cx.default_getattr(self, object)?;
    ///         let double = Op::CallFunction(operator::mul);
    ///         let args = Args::from_iter([read, Argument::Int(2)]);
    ///         Ok(Argument::Node(self.create_node(cx, double, args, Kwargs::new(), None)?))
    ///     }
    /// }
    /// let scale = Scale { by: Scalar::Known(3.0.into()) };
    /// let names: Vec<String> = Trace::new(&scale).tracer(Doubled).graph()?.nodes().map(|n| n.name().to_string()).collect();
    /// assert_eq!(names, ["x", "by", "mul", "mul_1", "output"]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the tensor's node cannot be made.
    fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
        cx.default_getattr(self, object)
    }

    /// Adds a node to the graph: the place to reject or annotate what is recorded.
    ///
    /// Reject an operation, and annotate all others:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Op;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::NodeId;
    /// # use fx_core::ir::{Args, Kwargs, Meta, MetaPolicy};
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// # #[wrap] fn print(x: Float) -> Result<Float> { Ok(x) }
    /// #[derive(Debug, Clone, Copy)]
    /// struct Step(usize);
    /// impl Meta for Step {
    ///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    ///     const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
    /// }
    ///
    /// struct NoPrinting;
    /// impl Tracer for NoPrinting {
    ///     fn create_node(&self, cx: &TraceContext, op: Op, args: Args, kwargs: Kwargs, name: Option<&str>) -> Result<NodeId> {
    ///         if op == Op::CallFunction(function!(print)) {
    ///             return Err(Error::msg("printing is not exported: remove it from the forward"));
    ///         }
    ///         let step = Step(cx.graph()?.len());
    ///         let node = cx.insert(op, args, kwargs, name)?;
    ///         cx.graph_mut()?.node_mut(node)?.set_meta(step);
    ///         Ok(node)
    ///     }
    /// }
    /// let graph = Trace::new(traced!(|x: Float| double(x))).tracer(NoPrinting).graph()?;
    /// assert_eq!(graph.find_name("double").and_then(|n| n.meta::<Step>()).map(|s| s.0), Some(1));
    /// let error = Trace::new(traced!(|x: Float| print(x))).tracer(NoPrinting).graph().unwrap_err();
    /// assert!(error.to_string().contains("printing is not exported"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if an argument is not of this graph.
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        cx.insert_known(op, args, kwargs, name)
    }

    /// The symbolic value of a node.
    ///
    /// Count the values of a trace:
    ///
    /// ```
    /// # use std::cell::Cell;
    /// # use std::rc::Rc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::{NodeId, Proxy};
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// struct Counting(Rc<Cell<usize>>);
    /// impl Tracer for Counting {
    ///     fn proxy(&self, cx: &TraceContext, node: NodeId) -> Proxy {
    ///         self.0.set(self.0.get() + 1);
    ///         cx.proxy(node)
    ///     }
    /// }
    /// let count = Rc::new(Cell::new(0));
    /// Trace::new(traced!(|x: Float| double(double(x)?))).tracer(Counting(count.clone())).graph()?;
    /// assert_eq!(count.get(), 3);
    /// # Ok::<(), Error>(())
    /// ```
    fn proxy(&self, cx: &TraceContext, node: NodeId) -> Proxy {
        cx.proxy(node)
    }

    /// Records a call and returns its symbolic result.
    ///
    /// Record one function in place of another:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Op;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// # use fx_core::trace::CallArgs;
    /// # #[wrap] fn exact(x: Float) -> Result<Float> { Ok(x) }
    /// # #[wrap] fn fast(x: Float) -> Result<Float> { Ok(x) }
    /// struct Fast;
    /// impl Tracer for Fast {
    ///     fn create_proxy(&self, cx: &TraceContext, op: Op, call: CallArgs) -> Result<Proxy> {
    ///         let op = if op == Op::CallFunction(function!(exact)) { Op::CallFunction(function!(fast)) } else { op };
    ///         cx.default_create_proxy(self, op, call)
    ///     }
    /// }
    /// let graph = Trace::new(traced!(|x: Float| exact(x))).tracer(Fast).graph()?;
    /// assert!(graph.find_name("fast").is_some());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`create_arg`](Tracer::create_arg) and [`create_node`](Tracer::create_node).
    fn create_proxy(&self, cx: &TraceContext, op: Op, call: CallArgs) -> Result<Proxy> {
        cx.default_create_proxy(self, op, call)
    }

    /// The arguments that the root is called with: a placeholder for each, and for each leaf of one
    /// that is specialised by a structure.
    ///
    /// Give every input a name with a prefix:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::ir::Op;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::ir::{Args, Kwargs, ParamSpec};
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// struct Prefixed;
    /// impl Tracer for Prefixed {
    ///     fn create_args_for_root(&self, cx: &TraceContext, params: &[ParamSpec]) -> Result<Vec<Value>> {
    ///         let inputs = params.iter().map(|param| {
    ///             let op = Op::Placeholder(format!("in_{}", param.name).into());
    ///             let node = self.create_node(cx, op, Args::new(), Kwargs::new(), None)?;
    ///             Ok(Value::Proxy(self.proxy(cx, node)))
    ///         });
    ///         inputs.collect()
    ///     }
    /// }
    /// let graph = Trace::new(traced!(|x: Float| double(x))).tracer(Prefixed).graph()?;
    /// assert!(graph.find_name("in_x").is_some());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a plain argument was not specialised.
    fn create_args_for_root(&self, cx: &TraceContext, params: &[ParamSpec]) -> Result<Vec<Value>> {
        cx.default_create_args_for_root(self, params)
    }

    /// The truth of a symbolic value, which the program requests by `x.to_bool()?`.
    ///
    /// Answer from what is known of the node:
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// /// In deployment no input is empty.
    /// struct Deployed;
    /// impl Tracer for Deployed {
    ///     fn to_bool(&self, cx: &TraceContext, proxy: Proxy) -> Result<bool> {
    ///         let is_empty = cx.graph()?.node(proxy.node())?.name() == "is_empty";
    ///         if is_empty { Ok(false) } else { cx.default_to_bool(proxy) }
    ///     }
    /// }
    /// #[trace]
    /// fn guarded(x: Float, is_empty: Bool) -> Result<Float> {
    ///     if is_empty.to_bool()? { Ok(x) } else { double(x) }
    /// }
    /// let gm = Trace::new(traced!(guarded)).tracer(Deployed).graph_module()?;
    /// assert_eq!(gm.forward::<f64>((1.5, false))?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error unless a tracer knows better: the truth is known only when the graph runs.
    fn to_bool(&self, cx: &TraceContext, proxy: Proxy) -> Result<bool> {
        cx.default_to_bool(proxy)
    }

    /// The truth of the condition of a branch or a loop (see [`control`](crate::control)), if it is
    /// to be decided now: the graph then has the side that was taken, and no branch. `None`
    /// records the branch.
    ///
    /// ```
    /// use fx_core::control;
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// /// In deployment nothing is refined.
    /// struct Deployed;
    /// impl Tracer for Deployed {
    ///     fn branch(&self, cx: &TraceContext, condition: Proxy) -> Result<Option<bool>> {
    ///         let graph = cx.graph()?;
    ///         Ok((graph.node(condition.node())?.name() == "refine").then_some(false))
    ///     }
    /// }
    /// let f = traced!(|x: Float, refine: Bool| control::cond(refine, || x * 2.0, || x + 1.0));
    /// let gm = Trace::new(f.clone()).tracer(Deployed).graph_module()?;
    /// assert!(gm.graph().find_name("cond").is_none());
    /// assert_eq!(gm.forward::<f64>((1.5, true))?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the tracer refuses the branch.
    fn branch(&self, cx: &TraceContext, condition: Proxy) -> Result<Option<bool>> {
        let _ = (cx, condition);
        Ok(None)
    }

    /// The items of a symbolic value, which the program requests by `x.iter()?`. A tracer that
    /// knows their number returns them by [`create_items`](Tracer::create_items).
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// /// Every list in this program is a pair.
    /// struct Pairs;
    /// impl Tracer for Pairs {
    ///     fn iter(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Proxy>> {
    ///         self.create_items(cx, proxy, 2)
    ///     }
    /// }
    /// let swap = traced!(|pair: Value| {
    ///     let mut items: Vec<Value> = pair.iter()?.collect();
    ///     items.reverse();
    ///     Ok(items)
    /// });
    /// let gm = Trace::new(swap).tracer(Pairs).graph_module()?;
    /// assert_eq!(gm.forward::<Vec<i64>>(vec![1, 2])?, [2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error unless a tracer knows better: their number is known only when the graph
    /// runs.
    fn iter(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Proxy>> {
        match cx.items_of(proxy)? {
            Some(count) => self.create_items(cx, proxy, count),
            None => cx.default_iter(proxy),
        }
    }

    /// The keys of a symbolic value, which the program requests by `x.keys()?`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::value::Proxy;
    /// struct Batches;
    /// impl Tracer for Batches {
    ///     fn keys(&self, _: &TraceContext, _: Proxy) -> Result<Vec<Arc<str>>> {
    ///         Ok(vec!["ids".into(), "mask".into()])
    ///     }
    /// }
    /// let count = traced!(|batch: Value| Ok((batch.keys()?.count().into(), batch)) as Result<(Int, Value)>);
    /// let gm = Trace::new(count).tracer(Batches).graph_module()?;
    /// assert_eq!(gm.forward::<(i64, Value)>((tree!({"ids": 1, "mask": 2}),))?.0, 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error unless a tracer knows better: the keys are known only when the graph runs.
    fn keys(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Arc<str>>> {
        cx.default_keys(proxy)
    }

    /// Records `value[0]` to `value[count - 1]`.
    ///
    /// # Errors
    /// As [`create_proxy`](Tracer::create_proxy).
    fn create_items(&self, cx: &TraceContext, proxy: Proxy, count: usize) -> Result<Vec<Proxy>> {
        cx.default_create_items(self, proxy, count)
    }

    /// Records `value[index]`.
    ///
    /// # Errors
    /// As [`create_proxy`](Tracer::create_proxy).
    fn create_item(&self, cx: &TraceContext, proxy: Proxy, index: Value) -> Result<Proxy> {
        cx.default_create_item(self, proxy, index)
    }

    /// The path of a module of the root.
    ///
    /// Show the weights' new layout in the graph:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # use fx_core::module::Module;
    /// # #[derive(Module, Default)] struct Head { tag: fx_core::module::Tag }
    /// # #[trace(leaf)] impl Head { fn forward(&self, x: Float) -> Result<Float> { Ok(x) } }
    /// # #[derive(Module, Default)] struct Model { head: Head }
    /// # #[trace] impl Model { fn forward(&self, x: Float) -> Result<Float> { self.head.forward(x) } }
    /// struct Moved;
    /// impl Tracer for Moved {
    ///     fn path_of_module(&self, cx: &TraceContext, module: &dyn Module) -> Option<Arc<str>> {
    ///         Some(format!("model.{}", cx.path_of(module)?).into())
    ///     }
    /// }
    /// let graph = Trace::new(&Model::default()).tracer(Moved).graph()?;
    /// assert!(graph.find_name("model_head").is_some());
    /// # Ok::<(), Error>(())
    /// ```
    fn path_of_module(&self, cx: &TraceContext, module: &dyn Module) -> Option<Arc<str>> {
        cx.path_of(module)
    }

    /// A path for something that the root does not have.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{TraceContext, Tracer};
    /// # #[derive(Module, Default)] struct Head { tag: fx_core::module::Tag }
    /// # #[trace(leaf)] impl Head { fn forward(&self, x: Float) -> Result<Float> { Ok(x) } }
    /// struct Adapters;
    /// impl Tracer for Adapters {
    ///     fn get_fresh_qualname(&self, cx: &TraceContext, prefix: &str) -> Arc<str> {
    ///         cx.fresh_path(&format!("adapter{prefix}"))
    ///     }
    /// }
    /// let head = Head::default();
    /// let graph = Trace::new(traced!(move |x: Float| head.forward(x))).tracer(Adapters).graph()?;
    /// assert!(graph.find_name("adapter_head_0").is_some());
    /// # Ok::<(), Error>(())
    /// ```
    fn get_fresh_qualname(&self, cx: &TraceContext, prefix: &str) -> Arc<str> {
        cx.fresh_path(prefix)
    }

    /// Traces a root with this tracer.
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::trace::{SymbolicTracer, Tracer};
    /// # #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// let tracer = SymbolicTracer;
    /// let outcome = tracer.trace(traced!(|x: Float| double(x)))?;
    /// assert_eq!(outcome.graph.len(), 3);
    /// assert_eq!(GraphModule::from(outcome).forward::<f64>(2.0)?, 4.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the root's forward fails, or something cannot be traced.
    fn trace<'r>(self, root: impl Root<'r>) -> Result<Outcome>
    where
        Self: Sized,
    {
        Trace::new(root).tracer(self).run()
    }
}

/// Traces through every module: layers show the operations that they are made of.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::trace::NoLeaves;
/// #[derive(Module, Default)]
/// struct Double { tag: fx_core::module::Tag }
/// #[trace(leaf)]
/// impl Double { fn forward(&self, x: Float) -> Result<Float> { x * 2.0 } }
///
/// let double = Double::default();
/// let gm = Trace::new(&double).tracer(NoLeaves).graph_module()?;
/// assert!(gm.graph().find_name("mul").is_some());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLeaves;

impl Tracer for NoLeaves {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, _: &str) -> bool {
        module.is_opaque()
    }
}

/// torch.fx's default policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolicTracer;

impl Tracer for SymbolicTracer {}
