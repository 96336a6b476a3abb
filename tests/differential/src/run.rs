//! A call in several ways: eager, traced and run, traced and interpreted, normalized, compiled, decomposed. They are one
//! call, so they must agree.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_nn::cpu::Cpu;
use fx_nn::ir::{Function, Graph, registry};
use fx_nn::module::{ComponentExt, Module};
use fx_nn::passes::backend::Compile;
use fx_nn::passes::{Decompositions, MethodsToFunctions, NormalizeArguments, verify_core};
use fx_nn::prelude::*;
use fx_nn::run::Interpreter;
use fx_nn::testing::EveryCall;
use fx_nn::trace::{CallArgs, call_method};
use fx_nn::value::IntoValue;
use fx_nn::{Error, GraphModule, Result};

use crate::call::{Call, Kind};
use crate::judge::{Difference, Kind as DifferenceKind, judge};
use crate::{layers, operators, spectral};

/// How a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// At once.
    Eager,
    /// As a graph module that runs.
    Traced,
    /// As a graph module, node by node.
    Interpreted,
    /// As a graph module whose calls are normalized: methods are functions, every parameter has its argument.
    Normalized,
    /// As a graph module that the compiler for the CPU made code of.
    Compiled,
    /// As a graph module of functions of the core set.
    Decomposed,
    /// As compiled code of which gradients are asked.
    CompiledToLearn,
    /// As a graph module whose gradients `func::vjp` writes as a graph.
    Transformed,
}

impl Mode {
    /// Those that every call is made in.
    pub const ALL: [Mode; 5] = [
        Mode::Eager,
        Mode::Traced,
        Mode::Interpreted,
        Mode::Normalized,
        Mode::Compiled,
    ];

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Eager => "eager",
            Mode::Traced => "traced",
            Mode::Interpreted => "interpreted",
            Mode::Normalized => "normalized",
            Mode::Compiled => "compiled",
            Mode::Decomposed => "decomposed",
            Mode::CompiledToLearn => "compiled to learn",
            Mode::Transformed => "transformed",
        }
    }
}

/// A result that is changed on its way to the judge: a kernel that is wrong on purpose.
pub type Plant<'p> = &'p dyn Fn(&Call, Value) -> Value;

/// A float tensor, its elements moved by a thousandth; other values as they are.
pub fn wrong(value: Value) -> Value {
    let moved = value
        .downcast_ref::<Tensor>()
        .filter(|x| x.dtype().is_ok_and(|d| d.is_floating_point()))
        .and_then(|x| (x * 1.001).ok());
    moved.map_or(value, Value::object)
}

/// Compares what a call gave with PyTorch's.
pub fn compared(call: &Call, result: &Result<Value>) -> Option<Difference> {
    judge(&call.outcome, result)
}

/// Makes the call and compares it with PyTorch's.
pub fn difference(call: &Call, mode: Mode, plant: Option<Plant<'_>>) -> Option<Difference> {
    // Reading a result's elements may panic as well as making it.
    unless_it_panics(|| {
        let result = run(call, mode);
        let result = match plant {
            Some(plant) => result.map(|value| plant(call, value)),
            None => result,
        };
        judge(&call.outcome, &result)
    })
}

/// What is found, or the panic.
pub(crate) fn unless_it_panics(find: impl FnOnce() -> Option<Difference>) -> Option<Difference> {
    catch_unwind(AssertUnwindSafe(find)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Some(Difference::new(
            DifferenceKind::Panic,
            text.unwrap_or("a panic"),
        ))
    })
}

/// What a call gives at once.
///
/// # Errors
/// When the call is refused.
pub fn eager(call: &Call) -> Result<Value> {
    run(call, Mode::Eager)
}

fn run(call: &Call, mode: Mode) -> Result<Value> {
    let tensors = &call.tensors()?;
    match &call.made {
        Some(made) => {
            let layer = make_layer(call)?;
            let (result, run) = forward(call, &*layer, tensors, mode)?;
            with_buffers(result, run.as_ref().map_or(&*layer, |gm| gm), made.training)
        }
        None => run_on(call, tensors, mode),
    }
}

/// The call of a function, a method or an operator on these tensors.
pub(crate) fn run_on(call: &Call, tensors: &[Tensor], mode: Mode) -> Result<Value> {
    match call.kind {
        Kind::Operator if operators::is_plain(&call.name, &call.args) => plain(call, tensors, mode),
        _ if mode == Mode::Eager => made(call, tensors),
        _ => {
            let gm = recorded_call(call, tensors)?;
            let xs: Vec<Value> = tensors.iter().map(IntoValue::into_value).collect();
            step(&gm, vec![Value::List(xs.into())], mode)
        }
    }
}

/// The call of a function or a method as a graph of its tensors, which are one list.
pub(crate) fn recorded_call(call: &Call, tensors: &[Tensor]) -> Result<GraphModule> {
    let owned = call.clone();
    let root = traced!(move |xs: Vec<Tensor>| made(&owned, &xs));
    let holes = vec![PH.into_value(); tensors.len()];
    let trace = Trace::new(root).concrete("xs", Value::List(holes.into()));
    trace.graph_module()
}

/// The call, made on these tensors: at once, or recorded where they are symbolic.
///
/// # Errors
/// When the call is refused.
pub fn run_call(call: &Call, tensors: &[Tensor]) -> Result<Value> {
    made(call, tensors)
}

/// The layer that a call is of, with its weights and in its mode.
///
/// # Errors
/// When the call is not one of a layer.
pub fn make_layer(call: &Call) -> Result<Box<dyn Module>> {
    let made = call.made.as_ref();
    let made = made.ok_or_else(|| Error::msg("a layer without its options"))?;
    layers::layer(&call.name, made)
}

/// The arguments of a layer's `forward`, with these tensors.
///
/// # Errors
/// When one is no value.
pub fn layer_arguments(call: &Call, tensors: &[Tensor]) -> Result<Vec<Value>> {
    call.args
        .iter()
        .map(|arg| arg.value(tensors, Value::Tuple))
        .collect()
}

/// Whether the call is of an operator on plain values alone.
pub fn is_plain(call: &Call) -> bool {
    call.kind == Kind::Operator && operators::is_plain(&call.name, &call.args)
}

/// The call of a function, a method or an operator on tensors that may be symbolic.
fn made(call: &Call, tensors: &[Tensor]) -> Result<Value> {
    let several = match call.kind {
        Kind::Operator => Value::Tuple,
        _ => Value::List,
    };
    let args = call.args.iter().map(|arg| arg.value(tensors, several));
    let mut args: Vec<Value> = args.collect::<Result<_>>()?;
    // The name of a device is text in a recorded call.
    if let ("to_device", [_, Value::Str(device)]) = (&*call.name, &args[..]) {
        args[1] = Value::Device(device.parse()?);
    }
    let tensor = || args.first().and_then(Value::downcast_ref::<Tensor>);
    match (call.kind, &*call.name, tensor(), &args[..]) {
        (Kind::Operator, name, ..) => operators::operator(name, &args),
        (Kind::Method, name, ..) => call_method(
            name,
            CallArgs {
                args,
                kwargs: Vec::new(),
            },
        ),
        (_, "svd", Some(x), [_, Value::Bool(full)]) => Ok(spectral::svd(x, *full)?.into_value()),
        (_, "eigh", Some(x), [_, Value::Str(uplo)]) => Ok(spectral::eigh(x, uplo)?.into_value()),
        (_, name, ..) => registered(name)?.call(CallArgs {
            args,
            kwargs: Vec::new(),
        }),
    }
}

/// The function of `fx_nn::ops` with a name.
fn registered(name: &str) -> Result<Function> {
    let all = registry::functions().into_iter();
    let own = all.filter(|function| function.path().starts_with("fx_nn::ops::"));
    let named = own.filter(|function| function.name() == name);
    // `ops::norm` rather than `ops::linalg::norm`.
    let function = named.min_by_key(|function| function.path().len());
    function.ok_or_else(|| Error::msg(format_args!("no function is called `{name}`")))
}

/// The module compiled for the arguments of a call.
pub(crate) fn compiled(gm: &GraphModule, call: &CallArgs) -> Result<GraphModule> {
    gm.compile(Compile::new(EveryCall(Cpu::new())).like(call.clone()))
}

fn step(gm: &GraphModule, args: Vec<Value>, mode: Mode) -> Result<Value> {
    struct AsItIs;
    impl Interpreter for AsItIs {}
    let call = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    if mode == Mode::Decomposed {
        let mut core = gm.opened()?;
        core.propagate_shapes(call.clone())?;
        core.apply(&Decompositions::core()?)?;
        verify_core(&core)?;
        return core.forward(call);
    }
    if mode == Mode::Normalized {
        let mut normal = gm.clone();
        normal.apply(&MethodsToFunctions)?;
        normal.apply(&NormalizeArguments::by_name())?;
        for node in normal.graph().nodes().filter(|node| node.op().is_call()) {
            normal.call(node)?.bind()?;
        }
        return normal.forward(call);
    }
    match mode {
        // The weights of a layer need gradients, which compiled code does not give.
        Mode::Compiled => fx_nn::no_grad(|| compiled(gm, &call)?.forward(call)),
        Mode::CompiledToLearn => compiled(gm, &call)?.forward(call),
        Mode::Interpreted => gm.interpret(&mut AsItIs, call),
        _ => gm.forward(call),
    }
}

/// A function of an operator on plain values.
fn plain(call: &Call, tensors: &[Tensor], mode: Mode) -> Result<Value> {
    let function = operators::registered(&call.name)?;
    let values: Vec<Value> = call
        .args
        .iter()
        .map(|arg| arg.value(tensors, Value::Tuple))
        .collect::<Result<_>>()?;
    if mode == Mode::Eager {
        let mut out = Value::None;
        let lent: Vec<&Value> = values.iter().collect();
        function.run(&lent, &mut out)?;
        return Ok(out);
    }
    step(&plain_graph(function)?, values, mode)
}

/// A call of a function on plain values, as a graph of them.
fn plain_graph(function: Function) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let inputs = function
        .params()
        .iter()
        .map(|param| {
            graph
                .placeholder(&param.name)
                .map(fx_nn::ir::Argument::from)
        })
        .collect::<Result<Vec<_>>>()?;
    let result = graph.call_function(function, inputs, ())?;
    graph.output(result)?;
    GraphModule::new(fx_nn::module::Attributes::default(), graph, "Plain")
}

/// A call as a graph module, with the arguments that a run of it takes. The buffers of a layer are not among its results.
///
/// # Errors
/// Returns an error if the call cannot be traced.
pub fn graph_of(call: &Call) -> Result<(GraphModule, Vec<Value>)> {
    graph_of_tensors(call, &call.tensors()?)
}

/// [`graph_of`] with these tensors.
pub(crate) fn graph_of_tensors(
    call: &Call,
    tensors: &[Tensor],
) -> Result<(GraphModule, Vec<Value>)> {
    match call.kind {
        Kind::Layer => traced_layer(call, &*make_layer(call)?, tensors),
        Kind::Operator if operators::is_plain(&call.name, &call.args) => {
            let values = call.args.iter().map(|arg| arg.value(tensors, Value::Tuple));
            let function = operators::registered(&call.name)?;
            Ok((plain_graph(function)?, values.collect::<Result<_>>()?))
        }
        _ => {
            let xs = tensors.iter().map(IntoValue::into_value).collect();
            Ok((recorded_call(call, tensors)?, vec![Value::List(xs)]))
        }
    }
}

/// The layer of a call, traced, and the arguments of its `forward`.
fn traced_layer(
    call: &Call,
    layer: &dyn Module,
    tensors: &[Tensor],
) -> Result<(GraphModule, Vec<Value>)> {
    let values = layer_arguments(call, tensors)?;
    let mut trace = Trace::new(layer);
    for (param, value) in layer.params().iter().zip(&values) {
        let symbolic = matches!(value, Value::Object(_) | Value::Tuple(_));
        match value {
            Value::Tuple(items) => {
                let holes = vec![PH.into_value(); items.len()];
                trace = trace.concrete(&param.name, Value::Tuple(holes.into()));
            }
            _ if symbolic => trace = trace.concrete(&param.name, PH),
            _ => trace = trace.concrete(&param.name, value.clone()),
        }
    }
    Ok((trace.graph_module()?, values))
}

/// A layer's `forward`, and the module that ran for it where it is another.
pub(crate) fn forward(
    call: &Call,
    layer: &dyn Module,
    tensors: &[Tensor],
    mode: Mode,
) -> Result<(Value, Option<GraphModule>)> {
    if mode == Mode::Eager {
        let result = layer.forward(CallArgs {
            args: layer_arguments(call, tensors)?,
            kwargs: Vec::new(),
        })?;
        return Ok((result, None));
    }
    let (gm, values) = traced_layer(call, layer, tensors)?;
    let result = step(&gm, values, mode)?;
    Ok((result, Some(gm)))
}

fn with_buffers(result: Value, module: &dyn Module, training: bool) -> Result<Value> {
    let state = module.state_dict();
    let moved = |name: &str| state.get(name).cloned();
    Ok(
        match (training, moved("running_mean"), moved("running_var")) {
            (true, Some(mean), Some(var)) => Value::List(Box::new([result, mean, var])),
            _ => result,
        },
    )
}
