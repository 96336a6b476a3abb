//! `Source`: what a transform is of, as a graph of functions for some arguments.
//!
//! Invariant: the graph has no layers and no methods, and one input for each leaf of the arguments.

use fx_core::ir::{Args, Function, Kwargs, Op};
use fx_core::ir::{ParamSpec, ValueMeta};
use fx_core::module::{Module, TensorKind};
use fx_core::passes::MethodsToFunctions;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::shapes::Spec;
use fx_core::tensor::Object;
use fx_core::trace::{
    CallArgs, FromValue, PH, Recorder, Root, Rooted, Trace, TraceContext, TracedFn, Tracer,
    with_context,
};
use fx_core::value::{IntoValue, NodeId, Tree, Value};
use fx_core::{Error, GraphModule, Result};
use rustc_hash::FxHashMap;

use super::derivative::args_of;
use super::region::Region;

/// A function or a module.
pub(crate) enum Source {
    Function(TracedFn),
    Module(Box<dyn Module>),
    /// Another transform.
    Recorder(Box<dyn Recorder>),
}

impl Clone for Source {
    fn clone(&self) -> Self {
        match self {
            Source::Function(function) => Source::Function(function.clone()),
            Source::Module(module) => Source::Module(module.duplicate_box()),
            Source::Recorder(recorder) => Source::Recorder(recorder.duplicate()),
        }
    }
}

impl Source {
    pub fn of<'r>(root: impl Root<'r>) -> Self {
        match root.into_rooted() {
            Rooted::Function(function) => Source::Function(function),
            Rooted::Module(module) => Source::Module(module.duplicate_box()),
            Rooted::Recorder(recorder) => Source::Recorder(recorder.duplicate()),
        }
    }

    pub fn params(&self) -> &[ParamSpec] {
        match self {
            Source::Function(function) => function.params(),
            Source::Module(module) => module.params(),
            Source::Recorder(recorder) => recorder.params(),
        }
    }

    /// The module whose parameters it reads.
    pub fn module(&self) -> Option<&dyn Module> {
        match self {
            Source::Function(_) => None,
            Source::Module(module) => Some(&**module),
            Source::Recorder(recorder) => recorder.module(),
        }
    }

    /// The structure of each parameter.
    pub fn trees(&self) -> Vec<Tree> {
        let trees = match self {
            Source::Function(_) => &[],
            Source::Module(module) => module.input_trees(),
            Source::Recorder(recorder) => recorder.input_trees(),
        };
        match trees.is_empty() {
            true => vec![Tree::Leaf; self.params().len()],
            false => trees.to_vec(),
        }
    }

    /// Its parameters and their structures, with one argument more behind them.
    pub fn with_argument(&self, name: &str) -> (Vec<ParamSpec>, Vec<Tree>) {
        let mut params = self.params().to_vec();
        add_param(&mut params, name);
        let mut trees = self.trees();
        trees.push(Tree::Leaf);
        (params, trees)
    }

    fn trace(&self) -> Trace<'_> {
        match self {
            Source::Function(function) => Trace::new(function.clone()),
            Source::Module(module) => Trace::new(&**module),
            Source::Recorder(recorder) => Trace::new(&**recorder),
        }
    }

    /// The graph for these arguments, which are known or symbolic: where they are structures, each tensor is an input.
    pub fn graph(&self, args: &[Value]) -> Result<GraphModule> {
        let mut trace = self.trace().tracer(FunctionsOnly).unguarded();
        trace = with_arguments(trace, self.params(), args)?;
        let mut gm = trace.graph_module()?;
        gm.apply(&MethodsToFunctions)?;
        gm.eliminate_dead_code()?;
        Ok(gm)
    }
}

/// Adds a parameter, of another name if there is one of this name.
pub(crate) fn add_param(params: &mut Vec<ParamSpec>, name: &str) {
    let mut name = name.to_string();
    while params.iter().any(|param| param.name == name.as_str()) {
        name.push('_');
    }
    params.push(ParamSpec::of_text(name, "Value"));
}

/// Every layer is opened, and branches and loops are recorded anew: so are the layers inside of them.
pub(crate) struct FunctionsOnly;

impl Tracer for FunctionsOnly {
    fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, _: &str) -> bool {
        false
    }
}

/// A trace for arguments: plain ones are what they are, and of structures each leaf is an input.
pub(crate) fn with_arguments<'t>(
    mut trace: Trace<'t>,
    params: &[ParamSpec],
    args: &[Value],
) -> Result<Trace<'t>> {
    let mut specs = Vec::with_capacity(args.len());
    for (param, arg) in params.iter().zip(args) {
        specs.push(Spec::of_meta(&meta_of(arg)?)?);
        if let Some(fixed) = fixed(arg) {
            trace = trace.concrete(&param.name, fixed);
        }
    }
    Ok(trace.inputs(specs))
}

/// What is known of a value, which may be symbolic.
pub(crate) fn meta_of(value: &Value) -> Result<ValueMeta> {
    let all = |items: &[Value]| items.iter().map(meta_of).collect::<Result<Vec<_>>>();
    Ok(match value {
        Value::List(items) => ValueMeta::List(all(items)?),
        Value::Tuple(items) => ValueMeta::Tuple(all(items)?),
        Value::Dict(items) => {
            let items = items.iter();
            ValueMeta::Dict(items.map(|(key, item)| Ok((key.clone(), meta_of(item)?))).collect::<Result<_>>()?)
        }
        Value::Proxy(proxy) if !proxy.is_fake() => proxy.meta()?.ok_or_else(|| {
            Error::msg(format_args!(
                "the shape of {proxy} is not known: trace with `Trace::inputs`, or call the transform with tensors"
            ))
        })?,
        Value::Object(_) => crate::tensor::Tensor::from_value(value.clone())
            .ok()
            .and_then(|tensor| tensor.proxy())
            .and_then(|proxy| proxy.meta().ok().flatten())
            .unwrap_or_else(|| ValueMeta::of(value)),
        other => ValueMeta::of(other),
    })
}

/// What is known of values, as inputs of a trace.
pub(crate) fn specs_of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Result<Vec<Spec>> {
    let each = values.into_iter();
    each.map(|value| Spec::of_meta(&meta_of(value)?)).collect()
}

/// The results of a graph, one by one: the items of a tuple, or the one result.
pub(crate) fn items_of(given: Value) -> Vec<Value> {
    match &given {
        Value::Tuple(items) => items.to_vec(),
        _ => vec![given],
    }
}

/// What an argument is specialised to, with what stays symbolic in it: nothing for a tensor alone.
fn fixed(value: &Value) -> Option<Value> {
    match value {
        Value::Proxy(_) | Value::Object(_) => None,
        Value::List(items) => Some(Value::List(items.iter().map(leaf).collect())),
        Value::Tuple(items) => Some(Value::Tuple(items.iter().map(leaf).collect())),
        Value::Dict(items) => {
            let items = items.iter().map(|(key, item)| (key.clone(), leaf(item)));
            Some(Value::Dict(Box::new(items.collect())))
        }
        plain => Some(plain.clone()),
    }
}

fn leaf(value: &Value) -> Value {
    fixed(value).unwrap_or_else(|| PH.into_value())
}

/// The inputs of a graph for arguments.
pub(crate) fn flat(gm: &GraphModule, args: &[Value]) -> Result<Vec<Value>> {
    let trees = gm.input_trees();
    if trees.is_empty() {
        return Ok(args.to_vec());
    }
    let mut found = Vec::with_capacity(args.len());
    for (tree, arg) in trees.iter().zip(args) {
        found.extend(tree.flatten(arg.clone())?);
    }
    Ok(found)
}

/// One value for each parameter of what a graph calls.
pub(crate) fn bound(params: &[ParamSpec], call: CallArgs) -> Vec<Value> {
    let mut args = call.args;
    let mut named = call.kwargs;
    for param in params.iter().skip(args.len()) {
        let at = named.iter().position(|(name, _)| **name == *param.name);
        args.push(match (at, &param.default) {
            (Some(at), _) => named.swap_remove(at).1,
            (None, Some(default)) => Value::from(default),
            (None, None) => Value::None,
        });
    }
    args
}

/// Gives what stands for a call, if not the call itself.
pub(crate) type Instead<'h> = dyn FnMut(Function, &[Value]) -> Result<Option<Value>> + 'h;

/// Runs a graph on symbolic values of the trace that runs. Parameters and buffers are read anew, each by a node of its own.
///
/// Branches and loops are recorded anew. The parameters that they read are read before them, so that they are arguments.
pub(crate) struct Replay<'h> {
    /// What stands for a call, if not the call itself.
    instead: &'h mut Instead<'h>,
    /// The nodes that read parameters and buffers, with their paths.
    pub attributes: Vec<(String, TensorKind, NodeId)>,
    /// The parameters that branches and loops read, by the identity of the tensor.
    outside: FxHashMap<u64, Value>,
}

/// Runs a graph on symbolic values of the trace that runs.
pub(crate) fn replayed(gm: &GraphModule, inputs: Vec<Value>) -> Result<Value> {
    let mut instead = |_: Function, _: &[Value]| Ok(None);
    gm.interpretation()
        .run(&mut Replay::new(&mut instead), inputs)
}

impl<'h> Replay<'h> {
    pub fn new(instead: &'h mut Instead<'h>) -> Self {
        Replay {
            instead,
            attributes: Vec::new(),
            outside: FxHashMap::default(),
        }
    }

    /// The same, with values for some parameters and buffers, by the identity of the tensor.
    pub fn with(instead: &'h mut Instead<'h>, given: FxHashMap<u64, Value>) -> Self {
        Replay {
            outside: given,
            ..Replay::new(instead)
        }
    }

    /// Reads the parameters that a branch or a loop, and those inside of it, read.
    fn read_before(&mut self, module: &dyn Module) -> Result<()> {
        let mut left: Vec<&GraphModule> =
            Region::of(module).map_or_else(Vec::new, |of| of.graphs());
        while let Some(gm) = left.pop() {
            for node in gm.graph().nodes() {
                match node.op() {
                    Op::GetAttr(path) => {
                        let value = gm.interpretation().fetch_attr(path)?;
                        let Some(id) = value.as_object().and_then(|object| object.object_id())
                        else {
                            continue;
                        };
                        let is_parameter = with_context(|context| context.path_of_tensor(id))
                            .flatten()
                            .is_some_and(|(_, kind)| kind == TensorKind::Parameter);
                        if is_parameter && !self.outside.contains_key(&id) {
                            let read = self.read(value)?;
                            self.outside.insert(id, read);
                        }
                    }
                    Op::CallModule(path) => {
                        if let Some(inner) = gm.attributes().modules.get(path) {
                            left.extend(
                                Region::of(&**inner).map_or_else(Vec::new, |of| of.graphs()),
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A parameter, a buffer or a constant, as a value of the trace.
    fn read(&mut self, value: Value) -> Result<Value> {
        let Some(id) = value.as_object().and_then(|object| object.object_id()) else {
            return Ok(value);
        };
        if let Some(outside) = self.outside.get(&id) {
            return Ok(outside.clone());
        }
        let kept = with_context(|context| {
            // What no module of the root holds is a constant.
            let Some((path, kind)) = context.path_of_tensor(id) else {
                return Ok(None);
            };
            context.keep_tensor(&path, kind, value.clone());
            let node =
                context.insert(Op::GetAttr(path.clone()), Args::new(), Kwargs::new(), None)?;
            Ok::<_, Error>(Some((path, kind, node, context.proxy(node))))
        });
        match kept.transpose()?.flatten() {
            Some((path, kind, node, proxy)) => {
                self.attributes.push((path.to_string(), kind, node));
                Ok(Value::Proxy(proxy))
            }
            None => Ok(value),
        }
    }
}

impl Interpreter for Replay<'_> {
    fn get_attr(&mut self, run: &mut Interpretation<'_>, path: &str) -> Result<Value> {
        let value = run.fetch_attr(path)?;
        self.read(value)
    }

    fn call_module(
        &mut self,
        run: &mut Interpretation<'_>,
        path: &str,
        call: CallArgs,
    ) -> Result<Value> {
        let module = run.fetch_module(path)?;
        if module.graph_names().is_empty() {
            return run.call_module(self, path, call);
        }
        self.read_before(module)?;
        let args = bound(module.params(), call);
        let lent: Vec<&Value> = args.iter().collect();
        // Inside, calls stay as they are: shapes are not known there.
        let mut instead = |_: Function, _: &[Value]| Ok(None);
        let mut inside = Replay::new(&mut instead);
        std::mem::swap(&mut inside.outside, &mut self.outside);
        let mut each = |_: &'static str, side: &dyn Module, args: &[&Value], out: &mut Value| {
            let Some((graph, attributes)) = side.as_graph() else {
                return side.run(args, out);
            };
            let inputs = args.iter().map(|arg| (*arg).clone()).collect();
            *out = Interpretation::new(graph, attributes).run(&mut inside, inputs)?;
            Ok(())
        };
        let mut out = Value::None;
        module.run_graphs(&lent, &mut out, &mut each)?;
        std::mem::swap(&mut inside.outside, &mut self.outside);
        Ok(out)
    }

    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        let args = bound(function.params(), call);
        match (self.instead)(function, &args)? {
            Some(value) => Ok(value),
            None => run.call_function(function, args_of(args)),
        }
    }
}
