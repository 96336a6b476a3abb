//! `CallArgs`: a call's positional and keyword arguments, how they are passed, and how they are
//! bound to a signature.
//!
//! Invariant: bound arguments are in the order of the parameters, defaults filled in; split
//! arguments leave defaults out.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::param_type::ParamType;
use crate::ir::signature::{ParamKind, ParamSpec, arguments_error, bind};
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// How a call is written: `f(x)` or `x.f()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// `call_function`.
    Function,
    /// `call_method`.
    Method,
}

/// A call on its way into the graph.
#[derive(Debug, Clone, Default)]
pub struct CallArgs {
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Keyword arguments, in order.
    pub kwargs: Vec<(Arc<str>, Value)>,
}

impl CallArgs {
    /// A node's arguments as values, with the result of `value_of` for each node.
    ///
    /// # Errors
    /// Returns the error of `value_of`.
    pub fn of(
        node: NodeRef<'_>,
        value_of: &mut dyn FnMut(NodeId) -> Result<Value>,
    ) -> Result<CallArgs> {
        let mut args = Vec::with_capacity(node.args().len());
        for arg in node.args() {
            args.push(match arg {
                Argument::Node(id) => value_of(*id)?,
                arg => arg.to_value(value_of)?,
            });
        }
        let mut kwargs = Vec::with_capacity(node.kwargs().len());
        for (name, arg) in node.kwargs() {
            kwargs.push((name.clone(), arg.to_value(value_of)?));
        }
        Ok(CallArgs { args, kwargs })
    }

    /// The argument for one of the parameters, by position or by name; `None` if its default
    /// applies.
    ///
    /// ```
    /// use fx_core::{args, operator};
    /// use fx_core::value::Value;
    /// let call = args![1.5, b = 2];
    /// let b = call.argument(operator::add.params(), "b");
    /// assert!(matches!(b, Some(Value::Int(2))));
    /// ```
    pub fn argument(&self, params: &[ParamSpec], name: &str) -> Option<&Value> {
        let named = || self.kwargs.iter().find(|(key, _)| **key == *name);
        let place = params.iter().position(|param| param.name == name);
        let placed = place.and_then(|at| self.args.get(at));
        placed.or_else(|| named().map(|(_, value)| value))
    }
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
            $crate::__private::IntoValue::into_value($value),
        ));
        $crate::args!(@fill $call $($($rest)*)?);
    };
    (@fill $call:ident $value:expr $(, $($rest:tt)*)?) => {
        $call.args.push($crate::__private::IntoValue::into_value($value));
        $crate::args!(@fill $call $($($rest)*)?);
    };
    ($($all:tt)*) => {{
        #[allow(unused_mut)]
        let mut call = $crate::__private::CallArgs::default();
        $crate::args!(@fill call $($all)*);
        call
    }};
}

/// A call's arguments in the order of the parameters, defaults filled in.
///
/// # Errors
/// Returns an error if they do not fit.
pub fn bind_values(callee: &str, params: &[ParamSpec], call: CallArgs) -> Result<Vec<Value>> {
    if call.kwargs.is_empty() && call.args.len() == params.len() {
        return Ok(call.args);
    }
    let bound = bind(callee, params, call.args, call.kwargs)?;
    let filled = bound.into_iter().zip(params).map(|(given, param)| {
        given.unwrap_or_else(|| param.default.as_ref().map_or(Value::None, Value::from))
    });
    Ok(filled.collect())
}

/// Positional and keyword arguments as the signature wants them recorded: defaults are left out.
pub(crate) fn split_keywords(params: &[ParamSpec], values: Vec<Value>) -> CallArgs {
    let is_plain = |p: &ParamSpec| p.kind == ParamKind::Positional && p.default.is_none();
    if values.len() <= params.len() && params.iter().all(is_plain) {
        return CallArgs {
            args: values,
            kwargs: Vec::new(),
        };
    }
    split_defaults(params, values)
}

fn split_defaults(params: &[ParamSpec], mut values: Vec<Value>) -> CallArgs {
    let positional = params
        .iter()
        .take_while(|p| p.kind == ParamKind::Positional)
        .count();
    let mut call = CallArgs::default();
    if positional < values.len() {
        let keywords = values.drain(positional..).zip(&params[positional..]);
        for (value, param) in keywords {
            if !is_default(&value, param) {
                call.kwargs.push((param.name.as_ref().into(), value));
            }
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

/// Whether a parameter takes a structure of values, which a trace takes apart.
fn is_structure(ty: &ParamType) -> bool {
    matches!(
        ty,
        ParamType::Sequence(_) | ParamType::Slice(_) | ParamType::Map(_) | ParamType::Tuple(_)
    )
}

/// A value of a structure, as `tree!` takes it: of two items where the type leaves their number open.
fn example_tree(ty: &ParamType) -> String {
    match ty {
        ParamType::Reference(of) => example_tree(of),
        ParamType::Sequence(item) | ParamType::Slice(item) => {
            let item = example_tree(item);
            format!("[{item}, {item}]")
        }
        ParamType::Map(item) => format!("{{\"key\": {}}}", example_tree(item)),
        ParamType::Tuple(items) => {
            let items: Vec<String> = items.iter().map(example_tree).collect();
            let end = if items.len() == 1 { "," } else { "" };
            format!("({}{end})", items.join(", "))
        }
        _ => "PH".to_string(),
    }
}

/// The error of one argument, with its name.
pub fn argument_error(callee: &str, params: &[ParamSpec], position: usize, error: Error) -> Error {
    let Some(param) = params.get(position) else {
        return error;
    };
    match error.kind() {
        ErrorKind::Type { expected, found } => arguments_error(
            callee,
            params,
            match is_structure(&param.param_type) && found == "a symbolic value" {
                false => format!("takes {expected} as `{}`, found {found}", param.name),
                true => format!(
                    "takes {expected} as `{0}`, found {found}: give its structure before the trace, with `PH` for each \
                     traced value, as in `Trace::concrete(\"{0}\", tree!({1}))`",
                    param.name,
                    example_tree(&param.param_type)
                ),
            },
        ),
        ErrorKind::Unspecialised { .. } => ErrorKind::Unspecialised {
            argument: param.name.to_string(),
            ty: param.ty.to_string(),
        }
        .into(),
        _ => error,
    }
}
