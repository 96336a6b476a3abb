//! `Decompositions`: a table of functions with their decompositions into others, written in plain
//! Rust.
//!
//! Invariant: a call is replaced whole; the nodes that its rule records take its place.

use std::fmt;
use std::sync::Arc;

use super::pass::Pass;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::bound::{BoundArgs, default_of};
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::table::FunctionTable;
use crate::ir::value_meta::ValueMeta;
use crate::trace::appending::GraphAppendingTracer;
use crate::trace::context::TraceContext;
use crate::trace::convert::FromValue;
use crate::value::handle::NodeId;
use crate::value::value::{IntoValue, Value};

/// How deeply rules may decompose the results of other rules.
const DEEPEST: usize = 64;

type Rule = Arc<dyn Fn(&DecomposedCall<'_>) -> Result<Value> + Send + Sync>;

/// A table of decompositions: which functions are replaced, each by a rule, an ordinary function of
/// the call's arguments. Run as a [`Pass`], it replaces every call of a function (or of its method)
/// by what the rule records; calls that a rule makes are decomposed too. Leaf layers are not
/// functions: a trace with a tracer that has no leaves shows the functions inside them.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::Decompositions;
/// #[wrap] fn square(x: Float) -> Result<Float> { x * x }
/// #[wrap] fn cube(x: Float) -> Result<Float> { x * square(x)? }
///
/// let table = Decompositions::new()
///     .rule(function!(square), |call| { let x: Float = call.arg("x")?; x * x })
///     .rule(function!(cube), |call| { let x: Float = call.arg("x")?; x * square(x)? });
/// let mut gm = symbolic_trace(traced!(|x: Float| cube(x)? + 1.0))?;
/// gm.apply(&table)?;
/// assert!(gm.graph().find_name("cube").is_none() && gm.graph().find_name("square").is_none());
/// assert_eq!(gm.forward::<f64>(2.0)?, 9.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default, Clone)]
pub struct Decompositions {
    rules: FunctionTable<Rule>,
}

impl Decompositions {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces calls of `function` by the result of `rule` for their arguments. An earlier rule of
    /// the same function is replaced.
    #[must_use]
    pub fn rule<R: IntoValue>(
        mut self,
        function: Function,
        rule: impl Fn(&DecomposedCall<'_>) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        let rule = move |call: &DecomposedCall<'_>| rule(call).map(IntoValue::into_value);
        self.rules.insert(function, Arc::new(rule));
        self
    }

    /// Adds the rules of another table; they take precedence.
    #[must_use]
    pub fn and(mut self, other: &Decompositions) -> Self {
        let others = other.rules.iter();
        self.rules.extend(others.map(|(f, rule)| (f, rule.clone())));
        self
    }

    /// The functions that have a rule, in the order of their paths.
    pub fn functions(&self) -> Vec<Function> {
        self.rules.iter().map(|(function, _)| function).collect()
    }
}

impl fmt::Debug for Decompositions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.functions().into_iter().map(Function::path);
        f.debug_list().entries(paths).finish()
    }
}

/// A call that is being decomposed: its function and its arguments, defaults filled in.
#[derive(Debug)]
pub struct DecomposedCall<'c> {
    function: Function,
    args: &'c [Value],
    /// What is known of each argument.
    metas: &'c [Option<ValueMeta>],
}

impl<'c> DecomposedCall<'c> {
    /// A call of a function with one argument for each of its parameters, and what is known of each.
    ///
    /// # Errors
    /// Returns an error if there are more or fewer than the function has parameters.
    pub fn new(
        function: Function,
        args: &'c [Value],
        metas: &'c [Option<ValueMeta>],
    ) -> Result<Self> {
        let count = function.params().len();
        match args.len() == count && metas.len() == count {
            true => Ok(DecomposedCall {
                function,
                args,
                metas,
            }),
            false => Err(Error::msg(format_args!(
                "`{}` has {count} parameters, and there are {} arguments",
                function.path(),
                args.len()
            ))),
        }
    }
}

impl DecomposedCall<'_> {
    /// The function that was called.
    pub fn function(&self) -> Function {
        self.function
    }

    /// All arguments, in the order of the function's parameters.
    pub fn args(&self) -> &[Value] {
        self.args
    }

    /// The shape and type of a parameter's argument, if it is a node for which they are known; of
    /// a list, those of its items, if they are known of all.
    pub fn meta(&self, name: &str) -> Option<&ValueMeta> {
        self.metas.get(self.place(name)?)?.as_ref()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut params = self.function.params().iter();
        params.position(|param| param.name == name)
    }

    /// The argument of a parameter.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or the argument is of another type.
    pub fn arg<T: FromValue>(&self, name: &str) -> Result<T> {
        let params = self.function.params();
        let value = self.place(name).and_then(|at| self.args.get(at));
        let value = value.ok_or_else(|| {
            let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
            Error::unknown(
                name,
                format_args!(
                    "`{}` has no parameter `{name}`: it takes {}",
                    self.function.path(),
                    names.join(", ")
                ),
            )
        })?;
        T::from_value(value.clone())
    }
}

impl Pass for Decompositions {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        // The tracer holds the attributes while rules run, so what is needed of them is read
        // before.
        let calls = graph.nodes().filter_map(|node| self.call(node, 0));
        let calls: Vec<Call<'_>> = calls.collect();
        if calls.is_empty() {
            return Ok(false);
        }
        GraphAppendingTracer::append(graph, attributes, |cx| {
            // Newest first, so that what a rule makes is decomposed before what follows it.
            let mut pending = Vec::new();
            for call in calls {
                pending.push(call);
                while let Some(call) = pending.pop() {
                    // An item of a rule's result was erased with the call that it was taken from.
                    if cx.graph()?.node(call.node).is_err() {
                        continue;
                    }
                    let before =
                        decompose(cx, &call).map_err(|error| blame(cx, call.node, error))?;
                    self.find_inner(cx, before, &call, &mut pending)?;
                    cx.graph_mut()?.erase_node(call.node)?;
                }
            }
            Ok(())
        })?;
        Ok(true)
    }
}

/// A call that has a rule.
struct Call<'t> {
    node: NodeId,
    function: Function,
    rule: &'t Rule,
    /// How many rules made it, one by one.
    depth: usize,
}

impl Decompositions {
    /// A node's call, if a rule is for it.
    fn call(&self, node: NodeRef<'_>, depth: usize) -> Option<Call<'_>> {
        let function = node.functions().one()?;
        Some(Call {
            node: node.id(),
            function,
            rule: self.rules.get(function)?,
            depth,
        })
    }

    /// The calls that have a rule among those that the rule of `made` recorded, after `before`.
    fn find_inner<'t>(
        &'t self,
        cx: &TraceContext,
        before: Option<NodeId>,
        made: &Call<'t>,
        pending: &mut Vec<Call<'t>>,
    ) -> Result<()> {
        let graph = cx.graph()?;
        let mut at = graph.node(made.node)?.prev();
        while let Some(node) = at.filter(|node| Some(node.id()) != before) {
            if let Some(inner) = self.call(node, made.depth + 1) {
                if inner.depth > DEEPEST {
                    let endless = Error::limit(
                        DEEPEST,
                        format_args!(
                            "the rule for `{}` never ends: {DEEPEST} decompositions deep there is still a call of it; have the rule \
                         not make what the table decomposes",
                            inner.function.path()
                        ),
                    );
                    return Err(node.blame("decomposing", endless));
                }
                pending.push(inner);
            }
            at = node.prev();
        }
        Ok(())
    }
}

/// Replaces one call, which stays unused; returns the node before those that the rule made.
fn decompose(cx: &TraceContext, made: &Call<'_>) -> Result<Option<NodeId>> {
    let &Call {
        node,
        function,
        rule,
        ..
    } = made;
    let (args, metas, before) = {
        let graph = cx.graph()?;
        let call = graph.node(node)?;
        let bound = BoundArgs::of(call, function.path(), function.params())?;
        let of = |arg: &Argument| arg.to_value(&mut |id| Ok(Value::Proxy(cx.proxy(id))));
        let args = bound.places().map(|(param, given)| match given {
            Some(argument) => of(argument),
            None => of(&default_of(param)),
        });
        let args = args.collect::<Result<Vec<Value>>>()?;
        let of_node = |given: &Argument| {
            let node = graph.node(given.as_node()?).ok()?;
            node.meta::<ValueMeta>().cloned()
        };
        let meta_of = |given: &Argument| match given {
            Argument::List(items) | Argument::Tuple(items) => {
                let items = items.iter().map(of_node).collect::<Option<_>>();
                items.map(ValueMeta::List)
            }
            given => of_node(given),
        };
        let metas: Vec<_> = bound.places().map(|(_, given)| meta_of(given?)).collect();
        let before = call.prev().map(|previous| previous.id());
        (args, metas, before)
    };
    let call = DecomposedCall {
        function,
        args: &args,
        metas: &metas,
    };
    let new = cx.recording_before(node, || {
        // A tensor that the rule gives as it is becomes a node, too.
        let result = rule(&call)?;
        cx.default_create_arg(&GraphAppendingTracer, &result)
    })?;
    let mut graph = cx.graph_mut()?;
    let Some(meta) = graph.node(node)?.meta::<ValueMeta>().cloned() else {
        graph.substitute_equal(node, &new)?;
        return Ok(before);
    };
    keep_metas(&mut graph, &meta, &new)?;
    // A rule may change what is known of a number; of a tensor, and of a number that a run decides, it may not.
    let is_kept = match &meta {
        ValueMeta::List(items) | ValueMeta::Tuple(items) => items.iter().all(has_no_value),
        meta => has_no_value(meta),
    };
    match is_kept {
        true => graph.substitute_equal(node, &new)?,
        false => graph.substitute(node, &new)?,
    }
    Ok(before)
}

/// Whether an entry says nothing of a value but its kind, its shape and its type.
fn has_no_value(meta: &ValueMeta) -> bool {
    matches!(
        meta,
        ValueMeta::Single(_) | ValueMeta::Float(None) | ValueMeta::Bool(None)
    )
}

/// Says of the results of a rule which kinds, shapes and types the call has: calls that take them are
/// decomposed too. What else is known, as a number, the rule may change.
fn keep_metas(graph: &mut Graph, meta: &ValueMeta, new: &Argument) -> Result<()> {
    let pairs: Vec<(&Argument, &ValueMeta)> = match (new, meta) {
        (
            Argument::List(items) | Argument::Tuple(items),
            ValueMeta::List(metas) | ValueMeta::Tuple(metas),
        ) => items.iter().zip(metas).collect(),
        _ => vec![(new, meta)],
    };
    for (item, meta) in pairs {
        if let Some(id) = item.as_node()
            && has_no_value(meta)
            && graph.node(id)?.meta::<ValueMeta>().is_none()
        {
            graph.node_mut(id)?.set_meta(meta.clone());
        }
    }
    Ok(())
}

fn blame(cx: &TraceContext, node: NodeId, error: Error) -> Error {
    match cx.graph() {
        Ok(graph) => match graph.node(node) {
            Ok(node) => node.blame("decomposing", error),
            Err(_) => error,
        },
        Err(_) => error,
    }
}
