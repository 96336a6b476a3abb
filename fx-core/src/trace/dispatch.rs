//! The one dispatch point: an operation with a symbolic operand is recorded, any other is run.

use std::panic::Location;
use std::rc::Rc;

use smallvec::SmallVec;

use super::context::TraceContext;
use super::report::Frozen;
use super::scope::{self, Active};
use super::tracer::{CallArgs, Tracer};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::ir::signature::{ParamKind, ParamSpec, arguments_error};
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::value::handle::Proxy;
use crate::value::object::Object;
use crate::value::value::Value;

/// How a call is written: `f(x)` or `x.f()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// `call_function`.
    Function,
    /// `call_method`.
    Method,
}

/// Records a call if anything in it is symbolic; `None` says: run it.
///
/// # Errors
/// When a proxy is used outside its trace, or the tracer refuses.
#[cold]
pub fn record(
    function: Function,
    form: CallForm,
    args: Vec<Value>,
    location: &'static Location<'static>,
) -> Result<Option<Value>> {
    let Some(active) = recorder(function, &args)? else {
        return Ok(None);
    };
    active.context.set_location(location);
    let op = match form {
        CallForm::Function => Op::CallFunction(function),
        CallForm::Method => Op::CallMethod(function.name().into()),
    };
    let call = split_keywords(function.params(), args);
    let result = active.tracer.create_proxy(&active.context, op, call);
    let result = result.and_then(|proxy| {
        if form == CallForm::Method && registry::methods(function.name()).len() > 1 {
            active.context.note_method(proxy, function)?;
        }
        Ok(Some(Value::Proxy(proxy)))
    });
    result.map_err(|e| blame(&active, function.name(), e))
}

/// [`record`] for tensor types whose methods are written by hand: records at the caller's line, if anything in
/// the arguments is symbolic; `None` says: run it.
///
/// # Errors
/// When a proxy is used outside its trace, or the tracer refuses.
#[track_caller]
pub fn record_call(function: Function, form: CallForm, args: Vec<Value>) -> Result<Option<Value>> {
    record(function, form, args, Location::caller())
}

/// Tells the running trace that the shape of a known tensor was read: the graph is for that shape, and the trace's
/// report says so where the tensor is the root's.
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
            Value::Proxy(proxy) => return Some(*proxy),
            Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Slice(_)
            | Value::Range(_)
            | Value::Object(_) => {
                arg.for_each(&mut |value| found = found.or_else(|| value.as_proxy()));
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
    }
    None
}

/// Positional and keyword arguments as the signature wants them recorded: defaults are left out.
pub(crate) fn split_keywords(params: &[ParamSpec], mut values: Vec<Value>) -> CallArgs {
    let positional = params
        .iter()
        .take_while(|p| p.kind == ParamKind::Positional)
        .count();
    let mut call = CallArgs::default();
    for (value, param) in values
        .drain(positional.min(values.len())..)
        .zip(&params[positional..])
    {
        if !is_default(&value, param) {
            call.kwargs.push((param.name.as_ref().into(), value));
        }
    }
    call.args = values;
    while call.kwargs.is_empty()
        && let Some(last) = call.args.last()
        && let Some(param) = params.get(call.args.len() - 1)
        && is_default(last, param)
    {
        call.args.pop();
    }
    call
}

fn is_default(value: &Value, param: &ParamSpec) -> bool {
    let Some(default) = &param.default else {
        return false;
    };
    Argument::of_plain(value).is_some_and(|plain| plain.equals_literal(default))
}

/// Calls a function on bound values: recorded if any is symbolic, else run.
///
/// # Errors
/// As [`record`], and what the function says.
#[track_caller]
pub fn call_values(function: Function, form: CallForm, args: Vec<Value>) -> Result<Value> {
    call_values_into(function, form, args, Value::None)
}

/// [`call_values`] with a value whose box the result may be put into.
#[track_caller]
pub(crate) fn call_values_into(
    function: Function,
    form: CallForm,
    args: Vec<Value>,
    mut out: Value,
) -> Result<Value> {
    let lent: SmallVec<[&Value; 8]> = args.iter().collect();
    if is_symbolic_call(&lent)
        && let Some(value) = record(function, form, args.clone(), Location::caller())?
    {
        return Ok(value);
    }
    (function.def().kernel)(&lent, &mut out)?;
    Ok(out)
}

impl Function {
    /// Calls the function, its arguments bound to its parameters: recorded where one is symbolic, else run.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::{CallArgs, IntoValue};
    /// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// let call = CallArgs { args: vec![1.5.into_value()], kwargs: vec![] };
    /// assert_eq!(f64::from_value(function!(double).call(call)?)?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// When the arguments do not fit, and what the function says.
    #[track_caller]
    pub fn call(self, call: CallArgs) -> Result<Value> {
        let args = bind_values(self.path(), self.params(), call)?;
        call_values(self, CallForm::Function, args)
    }
}

/// Calls a method of the first argument by name.
///
/// # Errors
/// When no linked type has it, and as [`Function::call`].
#[track_caller]
pub fn call_method(name: &str, call: CallArgs) -> Result<Value> {
    // Which type's method it is shows only when it runs: it is recorded as it was written.
    if let Some(proxy) = first_proxy(call.args.get(..1).unwrap_or_default()) {
        let active = scope::of_proxy(proxy)?;
        active.context.set_location(Location::caller());
        let op = Op::CallMethod(name.into());
        let result = active.tracer.create_proxy(&active.context, op, call);
        let result = result.and_then(|proxy| {
            active.context.note_named_method(proxy)?;
            Ok(Value::Proxy(proxy))
        });
        return result.map_err(|e| blame(&active, name, e));
    }
    let receiver = match call.args.first() {
        Some(Value::Object(handle)) => handle.object_type(),
        _ => None,
    };
    let is_its = |f: &&Function| receiver.is_none() || f.def().receiver.map(|ty| ty()) == receiver;
    let mut its = registry::methods(name).iter().filter(is_its);
    let found = its.next();
    if receiver.is_none() && its.next().is_some() {
        return Err(Error::msg(format_args!(
            "several types have a method `{name}`, and the receiver, {}, does not say which: call it on a value of the type",
            call.args
                .first()
                .map_or_else(|| "nothing".to_string(), Value::describe)
        )));
    }
    let Some(method) = found else {
        return Err(ErrorKind::NotFound {
            what: "method",
            path: name.to_string(),
            hint: format!(
                " of {}",
                call.args
                    .first()
                    .map_or_else(|| "nothing".to_string(), Value::describe)
            ),
        }
        .into());
    };
    let args = bind_values(name, method.params(), call)?;
    call_values(*method, CallForm::Method, args)
}

/// Calls a module: asks the innermost tracer, and without one runs the body.
///
/// # Errors
/// As [`record`], and what the body says.
#[cold]
pub fn call_module(
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
            module.check_paths()?;
            let type_name = crate::value::object::short_type_name(module.type_name());
            let prefix = format!("_{}_", type_name.to_ascii_lowercase());
            let path = tracer.get_fresh_qualname(context, &prefix);
            context.set_location(location);
            context.report(Frozen::Layer {
                path: path.to_string(),
                type_name,
            });
            path
        }
        // Not part of the root: traced through, as any helper is.
        None => return run_module(module, &args),
    };
    context.set_location(location);
    let call = split_keywords(module.params(), args);
    let number = context.calls_of(&path);
    let result = tracer.call_module(context, module, &path, call, &mut |call| {
        let bound = bind_values(module.type_name(), module.params(), call)?;
        run_module(module, &bound)
    });
    result
        .and_then(|value| {
            context.note_returned(&path, number, &value)?;
            Ok(value)
        })
        .map_err(|e| blame(&active, &path, e))
}

fn run_module(module: &dyn Module, args: &[Value]) -> Result<Value> {
    let args: Vec<&Value> = args.iter().collect();
    let mut out = Value::None;
    module.run(&args, &mut out)?;
    Ok(out)
}

/// A call's arguments in the order of the parameters, defaults filled in.
///
/// # Errors
/// When they do not fit.
pub fn bind_values(callee: &str, params: &[ParamSpec], call: CallArgs) -> Result<Vec<Value>> {
    if call.kwargs.is_empty() && call.args.len() == params.len() {
        return Ok(call.args);
    }
    let bound = crate::ir::signature::bind(callee, params, call.args, call.kwargs)?;
    let filled = bound.into_iter().zip(params).map(|(given, param)| {
        given.unwrap_or_else(|| param.default.as_ref().map_or(Value::None, Value::from))
    });
    Ok(filled.collect())
}

/// Records `value[0]` to `value[count - 1]` of a symbolic value: the results of a call that gives several.
pub(crate) fn unpack(proxy: Proxy, count: usize) -> Result<Vec<Value>> {
    let active = scope::of_proxy(proxy)?;
    let parts = active.tracer.create_items(&active.context, proxy, count)?;
    active.context.remember_parts(proxy, &parts);
    Ok(parts.into_iter().map(Value::Proxy).collect())
}

/// Records `value[key]` for each key of a symbolic value: the fields of a result that is a struct.
pub(crate) fn unpack_fields(proxy: Proxy, keys: &[&str]) -> Result<Vec<Value>> {
    let active = scope::of_proxy(proxy)?;
    keys.iter()
        .map(|key| {
            let index = Value::Str((*key).into());
            let item = active.tracer.create_item(&active.context, proxy, index)?;
            Ok(Value::Proxy(item))
        })
        .collect()
}

/// The error of asking a symbolic value for what only a run knows. It names the caller's line: mark the
/// methods that end here `#[track_caller]`, and it is the user's.
#[track_caller]
pub fn escape(what: &str, proxy: Proxy) -> Error {
    let location = Location::caller();
    let error: Error = ErrorKind::Escape {
        what: what.to_string(),
        value: value_name(proxy),
    }
    .into();
    match scope::of_proxy(proxy) {
        Ok(active) => {
            active.context.set_location(location);
            blame(&active, what, error)
        }
        Err(stray) => stray,
    }
}

/// Asks a proxy's tracer what the program wants to know of it; the answer goes into the trace's report.
pub(super) fn asked<R>(
    proxy: Proxy,
    question: &'static str,
    location: &'static Location<'static>,
    ask: impl FnOnce(&dyn Tracer, &TraceContext) -> Result<(R, String)>,
) -> Result<R> {
    let active = scope::of_proxy(proxy)?;
    active.context.set_location(location);
    let (result, answer) =
        ask(&*active.tracer, &active.context).map_err(|e| blame(&active, question, e))?;
    active.context.report(Frozen::Answer {
        question,
        of: active.context.name_of(proxy),
        answer,
    });
    Ok(result)
}

fn value_name(proxy: Proxy) -> String {
    scope::of_proxy(proxy).map_or_else(|_| proxy.to_string(), |a| a.context.name_of(proxy))
}

fn blame(active: &Active, what: &str, error: Error) -> Error {
    error.at(
        "tracing",
        format_args!("`{what}`"),
        Some(active.context.location()),
        active.context.current_module(),
    )
}

/// The error of one argument, named.
pub fn argument_error(callee: &str, params: &[ParamSpec], position: usize, error: Error) -> Error {
    let Some(param) = params.get(position) else {
        return error;
    };
    match error.kind() {
        ErrorKind::Type { expected, found } => arguments_error(
            callee,
            params,
            format!("takes {expected} as `{}`, found {found}", param.name),
        ),
        ErrorKind::Unspecialised { .. } => ErrorKind::Unspecialised {
            argument: param.name.to_string(),
            ty: param.ty.to_string(),
        }
        .into(),
        _ => error,
    }
}

/// The error of a kernel that was given the wrong number of arguments.
pub fn arity_error(callee: &str, params: &[ParamSpec], given: usize) -> Error {
    arguments_error(
        callee,
        params,
        format!("takes {} arguments but {given} were given", params.len()),
    )
}

/// An argument list: what `forward` and `call` take. A tuple is the whole list.
pub trait IntoArgs {
    /// The values.
    fn into_args(self) -> CallArgs;
}

impl IntoArgs for CallArgs {
    fn into_args(self) -> CallArgs {
        self
    }
}

impl<T: crate::value::value::Arg> IntoArgs for T {
    fn into_args(self) -> CallArgs {
        CallArgs {
            args: vec![self.into_value()],
            kwargs: Vec::new(),
        }
    }
}

impl IntoArgs for () {
    fn into_args(self) -> CallArgs {
        CallArgs::default()
    }
}

macro_rules! tuple_into_args {
    ($($name:ident)+) => {
        impl<$($name: crate::value::value::IntoValue),+> IntoArgs for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_args(self) -> CallArgs {
                let ($($name,)+) = self;
                CallArgs { args: vec![$($name.into_value()),+], kwargs: Vec::new() }
            }
        }
    };
}
tuple_into_args! { A }
tuple_into_args! { A B }
tuple_into_args! { A B C }
tuple_into_args! { A B C D }
tuple_into_args! { A B C D E }
tuple_into_args! { A B C D E F }
tuple_into_args! { A B C D E F G }
tuple_into_args! { A B C D E F G H }

/// Positional and keyword arguments: `args![&x, dim = 1]`.
///
/// ```
/// use fx_core::args;
/// let call = args![1.0, dim = 2];
/// assert_eq!((call.args.len(), call.kwargs.len()), (1, 1));
/// ```
#[macro_export]
macro_rules! args {
    (@fill $call:ident $(,)?) => {};
    (@fill $call:ident $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $call.kwargs.push((
            ::std::sync::Arc::from(stringify!($name)),
            $crate::IntoValue::into_value($value),
        ));
        $crate::args!(@fill $call $($($rest)*)?);
    };
    (@fill $call:ident $value:expr $(, $($rest:tt)*)?) => {
        $call.args.push($crate::IntoValue::into_value($value));
        $crate::args!(@fill $call $($($rest)*)?);
    };
    ($($all:tt)*) => {{
        #[allow(unused_mut)]
        let mut call = $crate::CallArgs::default();
        $crate::args!(@fill call $($all)*);
        call
    }};
}

/// Runs `body` for a node of another graph that is traced again, so that what it records keeps the
/// node's place in the source and in the modules.
pub(crate) fn retracing<R>(node: NodeRef<'_>, body: impl FnOnce() -> Result<R>) -> Result<R> {
    match scope::innermost() {
        Some(active) => active.context.retracing(node, body)?,
        None => body(),
    }
}

/// Whether a call on these values may have to be recorded.
pub(crate) fn is_symbolic_call(args: &[&Value]) -> bool {
    scope::may_record() || args.iter().any(|value| value.holds_proxy())
}
