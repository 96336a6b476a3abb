//! The one dispatch point: every call passes the modes; then it is recorded if an operand is
//! symbolic, and run otherwise.
//!
//! Invariant: functions, methods, operators and modules all go through `dispatch` if a mode sees
//! them.

use std::any::TypeId;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::blame::blame;
use super::call_args::{CallArgs, CallForm, IntoArgs, bind_values, split_keywords};
use super::convert::FromValue;
use super::mode::{Base, ModeCall, ModeCallee, through_modes};
use super::report::Frozen;
use super::scope::{self, Active};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::function::Function;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::ir::value_meta::ValueMeta;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::shapes::evaluation::{fake_result, lacks_rule};
use crate::shapes::refusal::refusal_of;
use crate::submit::REGISTRY_HINT;
use crate::value::dim::Dim;
use crate::value::fake_tensor::FakeTensor;
use crate::value::handle::Proxy;
use crate::value::object::Object;
use crate::value::value::Value;

/// Passes a call through the modes that see it, and then runs or records it.
fn dispatch(call: ModeCall<'_>, location: &'static Location<'static>) -> Result<Value> {
    let base = Base {
        visible: scope::visible_modes(),
        location,
        run: behind_modes,
    };
    through_modes(call, &base)
}

/// A call after all modes: recorded if anything in it is symbolic, else run.
fn behind_modes(call: ModeCall<'_>, location: &'static Location<'static>) -> Result<Value> {
    match call.callee() {
        ModeCallee::Function(function) => {
            let args = bind_values(function.path(), function.params(), call.args)?;
            match record_in_trace(function, call.form, args.clone(), location)? {
                Some(value) => Ok(value),
                None => run_function(function, &args, Value::None),
            }
        }
        ModeCallee::Method(name) => method(name, call.args, location),
        ModeCallee::Module(module) => {
            let args = bind_values(module.type_name(), module.params(), call.args)?;
            module_in_trace(module, args, location)
        }
    }
}

/// A call of a function on bound values: its result if a mode or a trace took it; `None` means: run
/// it.
///
/// # Errors
/// Returns an error if a proxy is used outside its trace, the tracer or a mode refuses, or a call
/// that a mode saw fails.
#[cold]
pub fn record(
    function: Function,
    form: CallForm,
    args: Vec<Value>,
    location: &'static Location<'static>,
) -> Result<Option<Value>> {
    if scope::visible_modes() == 0 {
        return record_in_trace(function, form, args, location);
    }
    let args = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let call = ModeCall::new(ModeCallee::Function(function), form, args);
    dispatch(call, location).map(Some)
}

/// Records a call if anything in it is symbolic.
fn record_in_trace(
    function: Function,
    form: CallForm,
    args: Vec<Value>,
    location: &'static Location<'static>,
) -> Result<Option<Value>> {
    let Some(active) = recorder(function, &args)? else {
        return match args.iter().any(Value::holds_no_data) {
            true => match fake_call(function, &args, location) {
                // A body that is written by functions with rules needs none.
                Err(error) if lacks_rule(&error) && function.is_pure() => Ok(None),
                given => given.map(Some),
            },
            false => Ok(None),
        };
    };
    active.context.set_location(location);
    let op = match form {
        CallForm::Function => Op::CallFunction(function),
        CallForm::Method => {
            registry::note_method(function);
            Op::CallMethod(function.name().into())
        }
    };
    let call = split_keywords(function.params(), args);
    let result = active.tracer.create_proxy(&active.context, op, call);
    let result = result.and_then(|proxy| {
        if form == CallForm::Method && registry::is_of_several(function.name()) {
            active.context.note_method(proxy, function)?;
        }
        active.context.folded(proxy).map(Some)
    });
    result.map_err(|e| blame(&active, function.name(), e))
}

/// What a function gives for fake tensors, by its shape rule.
fn fake_call(
    function: Function,
    args: &[Value],
    location: &'static Location<'static>,
) -> Result<Value> {
    let given = fake_result(function, args);
    given.map_err(|error| error.in_call(function.name(), location))
}

/// Records a call for tensor types whose methods are written by hand, at the caller's line, if
/// anything in the arguments is symbolic; `None` means: run it.
///
/// # Errors
/// Returns an error if a proxy is used outside its trace, or the tracer refuses.
#[track_caller]
pub fn record_call(function: Function, form: CallForm, args: Vec<Value>) -> Result<Option<Value>> {
    record(function, form, args, Location::caller())
}

/// Reports to the running trace that the shape of a known tensor was read: the graph is for that
/// shape, and the trace's report lists it if the tensor is the root's.
#[inline]
pub fn report_shape(object: &dyn Object) {
    if scope::may_record() {
        read_shape(object);
    }
}

#[cold]
fn read_shape(object: &dyn Object) {
    let Some(active) = scope::innermost() else {
        return;
    };
    let path = object
        .object_id()
        .and_then(|id| active.context.path_of_tensor(id));
    if let (Some((path, _)), Some(shape)) = (path, object.shape()) {
        active.context.report(Frozen::Shape {
            tensor: path.to_string(),
            shape: shape.to_vec(),
        });
    }
}

/// The sizes of a symbolic tensor, if a trace that knows its [inputs](crate::trace::Trace::inputs)
/// infers them.
pub fn known_dims(proxy: Proxy) -> Option<Vec<Dim>> {
    let active = scope::of_proxy(proxy).ok()?;
    match active.context.shape_of(proxy.node).ok()?? {
        ValueMeta::Single(meta) => Some(meta.shape.clone()),
        _ => None,
    }
}

/// [`known_dims`], if all are numbers: kept as long as the program runs, once each.
pub fn known_shape(proxy: Proxy) -> Option<&'static [usize]> {
    static SHAPES: LazyLock<Mutex<FxHashSet<&'static [usize]>>> = LazyLock::new(Mutex::default);
    let shape = Dim::all_known(&known_dims(proxy)?)?;
    let mut shapes = SHAPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = shapes.get(shape.as_slice()) {
        return Some(known);
    }
    let shape: &'static [usize] = Box::leak(shape.into_boxed_slice());
    shapes.insert(shape);
    Some(shape)
}

/// The trace that a call is recorded in, if any.
fn recorder(function: Function, args: &[Value]) -> Result<Option<Rc<Active>>> {
    if let Some(proxy) = first_proxy(args) {
        return scope::of_proxy(proxy).map(Some);
    }
    let Some(innermost) = scope::innermost() else {
        return Ok(None);
    };
    let mut recorded = function.def().always;
    for arg in args {
        arg.for_each(&mut |value| {
            recorded = recorded
                || value
                    .as_object()
                    .is_some_and(|o| innermost.context.is_parameter(o));
        });
    }
    Ok(recorded.then_some(innermost))
}

fn first_proxy(args: &[Value]) -> Option<Proxy> {
    let mut found = None;
    for arg in args {
        match arg {
            Value::Proxy(proxy) if !proxy.is_fake() => return Some(*proxy),
            Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Slice(_)
            | Value::Range(_)
            | Value::Object(_) => {
                arg.for_each(&mut |value| {
                    let proxy = value.as_proxy().filter(|proxy| !proxy.is_fake());
                    found = found.or(proxy);
                });
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
    }
    None
}

/// Calls a function on bound values: recorded if any is symbolic, else run.
///
/// # Errors
/// As [`record`]; also if the function fails.
#[track_caller]
pub fn call_values(function: Function, form: CallForm, args: Vec<Value>) -> Result<Value> {
    call_values_at(function, form, args, Value::None, Location::caller())
}

/// [`call_values`] with a value whose box the result may reuse.
pub(crate) fn call_values_at(
    function: Function,
    form: CallForm,
    args: Vec<Value>,
    out: Value,
    location: &'static Location<'static>,
) -> Result<Value> {
    if is_symbolic_call(&args)
        && let Some(value) = record(function, form, args.clone(), location)?
    {
        return Ok(value);
    }
    run_function(function, &args, out)
}

fn run_function(function: Function, args: &[Value], mut out: Value) -> Result<Value> {
    let lent: SmallVec<[&Value; 8]> = args.iter().collect();
    match function.run(&lent, &mut out) {
        Ok(()) => Ok(out),
        Err(error) => Err(refusal_of(function, args, error)),
    }
}

impl Function {
    /// Calls the function, its arguments bound to its parameters: recorded if one is symbolic,
    /// else run.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::trace::CallArgs;
    /// use fx_core::value::IntoValue;
    /// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// let call = CallArgs { args: vec![1.5.into_value()], kwargs: vec![] };
    /// assert_eq!(f64::from_value(function!(double).call(call)?)?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, or the function fails.
    #[track_caller]
    pub fn call(self, call: CallArgs) -> Result<Value> {
        let args = bind_values(self.path(), self.params(), call)?;
        call_values(self, CallForm::Function, args)
    }

    /// [`call`](Function::call) with arguments as Rust has them, and the result as a type:
    /// generated source uses it where Rust has no operator.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::operator;
    /// let second = traced!(|x: Value| operator::getitem.call_as::<Float>((x, 1)));
    /// assert_eq!(symbolic_trace(second)?.forward::<f64>((vec![1.5, 2.5],))?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// It is also the short form of a call with many defaults, with keywords:
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[wrap]
    /// fn line(x: Float, #[default(1.0)] slope: f64, #[default(0.0)] offset: f64) -> Result<Float> {
    ///     (x * slope)? + offset
    /// }
    /// assert_eq!(function!(line).call_as::<f64>(args![2.5, offset = 2.0])?, 4.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As `call`; also if the result is of another type.
    #[track_caller]
    pub fn call_as<T: FromValue>(self, args: impl IntoArgs) -> Result<T> {
        T::from_value(self.call(args.into_args())?)
    }
}

/// Calls a method of the first argument by name.
///
/// # Errors
/// Returns an error if no linked type has it, and as [`Function::call`].
#[track_caller]
pub fn call_method(name: &str, call: CallArgs) -> Result<Value> {
    registry::open();
    call_known_method(name, call)
}

/// Same as [`call_method`], of a method that a node of a graph names: it is known.
#[track_caller]
pub(crate) fn call_known_method(name: &str, call: CallArgs) -> Result<Value> {
    let location = Location::caller();
    let is_symbolic = first_proxy(call.args.get(..1).unwrap_or_default()).is_some();
    if is_symbolic && scope::visible_modes() > 0 {
        let call = ModeCall::new(ModeCallee::Method(name), CallForm::Method, call);
        return dispatch(call, location);
    }
    method(name, call, location)
}

/// Calls a method: of a symbolic value it is recorded, otherwise it is that of the receiver's type.
fn method(name: &str, call: CallArgs, location: &'static Location<'static>) -> Result<Value> {
    // Only a run shows which type's method it is: it is recorded as written.
    if let Some(proxy) = first_proxy(call.args.get(..1).unwrap_or_default()) {
        let active = scope::of_proxy(proxy)?;
        active.context.set_location(location);
        let op = Op::CallMethod(name.into());
        let result = active.tracer.create_proxy(&active.context, op, call);
        let result = result.and_then(|proxy| {
            active.context.note_named_method(proxy)?;
            active.context.folded(proxy)
        });
        return result.map_err(|e| blame(&active, name, e));
    }
    let receiver = match call.args.first() {
        // Of which library's type a fake tensor is shows when its value is used.
        Some(Value::Object(handle)) => handle
            .object_type()
            .filter(|ty| *ty != TypeId::of::<FakeTensor>()),
        _ => None,
    };
    let is_its = |f: &&Function| receiver.is_none() || f.def().receiver.map(|ty| ty()) == receiver;
    let mut its = registry::methods(name).iter().filter(is_its);
    let found = its.next();
    if receiver.is_none() && its.next().is_some() {
        return Err(Error::ambiguous(
            name,
            format_args!(
                "several types have a method `{name}`, and the receiver, {}, does not say which: call it on a value of the type",
                call.args
                    .first()
                    .map_or_else(|| "nothing".to_string(), Value::describe)
            ),
        ));
    }
    let Some(method) = found else {
        return Err(ErrorKind::NotFound {
            what: "method",
            path: name.to_string(),
            hint: format!(
                " of {}{REGISTRY_HINT}",
                call.args
                    .first()
                    .map_or_else(|| "nothing".to_string(), Value::describe)
            ),
        }
        .into());
    };
    let args = bind_values(name, method.params(), call)?;
    call_values_at(*method, CallForm::Method, args, Value::None, location)
}

/// Same as `call_module`, of functions that give the arguments: a `forward` that calls this holds
/// no values, and has no code that drops them.
#[cold]
pub fn call_forward(
    module: &dyn Module,
    args: &[&dyn Fn() -> Value],
    location: &'static Location<'static>,
) -> Result<Value> {
    let args = args.iter().map(|value| value()).collect();
    call_module(module, args, location)
}

/// Calls a module: asks the innermost tracer; without one, runs the body.
///
/// # Errors
/// As [`record`]; also if the body fails.
#[cold]
pub fn call_module(
    module: &dyn Module,
    args: Vec<Value>,
    location: &'static Location<'static>,
) -> Result<Value> {
    if scope::visible_modes() == 0 {
        return module_in_trace(module, args, location);
    }
    let args = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let call = ModeCall::new(ModeCallee::Module(module), CallForm::Function, args);
    dispatch(call, location)
}

fn module_in_trace(
    module: &dyn Module,
    args: Vec<Value>,
    location: &'static Location<'static>,
) -> Result<Value> {
    let active = match first_proxy(&args) {
        Some(proxy) => Some(scope::of_proxy(proxy)?),
        None => scope::innermost(),
    };
    let Some(active) = active else {
        return run_module(module, &args);
    };
    let Active { tracer, context } = &*active;
    let path = match tracer.path_of_module(context, module) {
        Some(path) => path,
        None if tracer.is_leaf_module(context, module, "") => {
            fresh_layer(&active, module, location)?
        }
        // Not part of the root: traced through, like any helper.
        None => return run_module(module, &args),
    };
    context.set_location(location);
    let call = split_keywords(module.params(), args);
    context
        .numbered_call(&path, |number| {
            let mut forward = |call| {
                let bound = bind_values(module.type_name(), module.params(), call)?;
                run_module(module, &bound)
            };
            let value = tracer.call_module(context, module, &path, call, &mut forward)?;
            context.note_returned(&path, number, &value)?;
            Ok(value)
        })
        .map_err(|e| blame(&active, &path, e))
}

/// A path for a leaf that the root does not have.
#[cold]
fn fresh_layer(
    active: &Active,
    module: &dyn Module,
    location: &'static Location<'static>,
) -> Result<Arc<str>> {
    let Active { tracer, context } = active;
    module.check_paths()?;
    let type_name = crate::value::object::short_type_name(module.type_name());
    let prefix = format!("_{}_", type_name.to_ascii_lowercase());
    let path = tracer.get_fresh_qualname(context, &prefix);
    context.set_location(location);
    context.report(Frozen::Layer {
        path: path.to_string(),
        type_name,
    });
    Ok(path)
}

fn run_module(module: &dyn Module, args: &[Value]) -> Result<Value> {
    let args: Vec<&Value> = args.iter().collect();
    let mut out = Value::None;
    crate::stack::level(|| module.run(&args, &mut out))?;
    Ok(out)
}

/// Runs `body` for a node of another graph: what it records has the node's place in the source and in
/// the modules. For who writes a graph anew by the rules of its calls; outside of a trace only `body`
/// runs.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::trace::retracing;
/// let twice = std::rc::Rc::new(symbolic_trace(traced!(|x: Float| x * 2.0))?);
/// let graph = twice.clone();
/// let gm = symbolic_trace(traced!(move |x: Float| {
///     let mul = graph.graph().find_name("mul").ok_or_else(|| Error::msg("it multiplies"))?;
///     retracing(mul, || x + x)
/// }))?;
/// let place = |gm: &GraphModule, name| gm.graph().find_name(name)?.location().map(ToString::to_string);
/// assert_eq!(place(&gm, "add"), place(&twice, "mul"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the error of `body`.
pub fn retracing<R>(node: NodeRef<'_>, body: impl FnOnce() -> Result<R>) -> Result<R> {
    match scope::innermost() {
        Some(active) => active.context.retracing(node, body)?,
        None => body(),
    }
}

/// Whether a call on these values may have to be recorded.
pub(crate) fn is_symbolic_call(args: &[Value]) -> bool {
    scope::may_record() || args.iter().any(Value::holds_no_data)
}
