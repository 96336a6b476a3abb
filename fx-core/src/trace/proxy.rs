//! Operations on a proxy itself: operators, method calls, attributes, each recorded as a node.

use std::panic::Location;

use super::call_args::{CallForm, IntoArgs};
use super::convert::FromValue;
use super::dispatch::{self, record};
use super::operand::Operand;
use super::scope;
use crate::error::{Error, Result};
use crate::ir::function::Function;
use crate::ir::operator::{function_of, getattr};
use crate::ir::value_meta::ValueMeta;
use crate::value::handle::Proxy;
use crate::value::operator::Operator;
use crate::value::value::{IntoValue, Value};

#[track_caller]
fn apply(op: Operator, values: Vec<Value>) -> Result<Proxy> {
    recorded(function_of(op), values, Location::caller())
}

/// A call on proxies, which is a node, even if what it gives is known.
fn recorded(
    function: Function,
    values: Vec<Value>,
    caller: &'static Location<'static>,
) -> Result<Proxy> {
    let recorded = scope::unfolded(|| record(function, CallForm::Function, values, caller))?;
    proxy_of(recorded.unwrap_or_default())
}

fn proxy_of(value: Value) -> Result<Proxy> {
    value
        .as_proxy()
        .ok_or_else(|| Error::expected("a symbolic value", value.describe()))
}

/// Operators on proxies are recorded in their trace; the typed views (`Tensor`, `Int` ..) do the
/// same.
///
/// ```
/// use fx_core::prelude::*;
/// let f = traced!(|x: Value| {
///     let x = x.as_proxy().ok_or_else(|| Error::msg("symbolic while tracing"))?;
///     let y = (2.0 * (x + 1)?)?;
///     y.call_method("clamp", (0.0, 1.0))?.getitem(0)?.to::<Value>()
/// });
/// let names: Vec<String> = Trace::new(f).graph()?.nodes().map(|n| n.name().to_string()).collect();
/// assert_eq!(names, ["x", "add", "mul", "clamp", "getitem", "output"]);
/// # Ok::<(), fx_core::Error>(())
/// ```
impl Proxy {
    /// The proxy as a value of a type: a tensor, `Int`, `Float`, a structure.
    ///
    /// # Errors
    /// Returns an error if the type cannot be symbolic.
    pub fn to<T: FromValue>(self) -> Result<T> {
        T::from_value(Value::Proxy(self))
    }

    /// The shape and type of the value, if the trace infers them
    /// ([`Trace::inputs`](crate::trace::Trace::inputs)); in a side of a branch it does not.
    ///
    /// # Errors
    /// Returns an error if the proxy's trace is not running here, or its shape cannot be inferred.
    pub fn meta(self) -> Result<Option<ValueMeta>> {
        let active = scope::of_proxy(self)?;
        Ok(active.context.shape_of(self.node)?.map(|fake| fake.entry()))
    }

    /// Records a call of a method by name.
    ///
    /// # Errors
    /// Returns an error if the proxy's trace is not running here, or its tracer refuses.
    #[track_caller]
    pub fn call_method(self, name: &str, args: impl IntoArgs) -> Result<Proxy> {
        let mut call = args.into_args();
        call.args.insert(0, Value::Proxy(self));
        proxy_of(scope::unfolded(|| dispatch::call_method(name, call))?)
    }

    /// Records an attribute: `shape`, `dtype` or `ndim` of a tensor.
    ///
    /// # Errors
    /// Returns an error if the proxy's trace is not running here, or its tracer refuses.
    #[track_caller]
    pub fn attr(self, name: &str) -> Result<Proxy> {
        let values = vec![Value::Proxy(self), name.into_value()];
        recorded(getattr, values, Location::caller())
    }

    /// [`attr`](Proxy::attr) as a value of a type, which may be known: the shape of a tensor in a
    /// trace that knows its [inputs](crate::trace::Trace::inputs).
    ///
    /// # Errors
    /// As `attr`; also if the attribute is of another type.
    #[track_caller]
    pub fn attr_as<T: FromValue>(self, name: &str) -> Result<T> {
        let values = vec![Value::Proxy(self), name.into_value()];
        let given = record(getattr, CallForm::Function, values, Location::caller())?;
        T::from_value(given.unwrap_or_default())
    }

    /// Records `self[index]`.
    ///
    /// # Errors
    /// Returns an error if the proxy's trace is not running here, or its tracer refuses.
    #[track_caller]
    pub fn getitem(self, index: impl IntoValue) -> Result<Proxy> {
        apply(
            Operator::Getitem,
            vec![Value::Proxy(self), index.into_value()],
        )
    }
}

macro_rules! methods {
    ($($name:ident $op:ident $doc:literal),*) => {
        impl Proxy {$(
            #[doc = concat!("Records ", $doc, ".")]
            ///
            /// # Errors
            /// Returns an error if the proxy's trace is not running here, or its tracer refuses.
            #[track_caller]
            pub fn $name(self, other: impl Operand) -> Result<Proxy> {
                apply(Operator::$op, vec![Value::Proxy(self), other.to_operand()])
            }
        )*}
    };
}

methods! {
    gt Gt "`self > other`", lt Lt "`self < other`", ge Ge "`self >= other`", le Le "`self <= other`",
    eq Eq "`self == other`", ne Ne "`self != other`", pow Pow "`self` to the power of `other`",
    floordiv Floordiv "the division rounded down", matmul Matmul "the matrix product"
}

impl Proxy {
    /// Records the absolute value.
    ///
    /// # Errors
    /// Returns an error if the proxy's trace is not running here, or its tracer refuses.
    #[track_caller]
    pub fn abs(self) -> Result<Proxy> {
        apply(Operator::Abs, vec![Value::Proxy(self)])
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<R: Operand> std::ops::$trait<R> for Proxy {
            type Output = Result<Proxy>;
            #[track_caller]
            fn $method(self, rhs: R) -> Self::Output {
                apply(Operator::$op, vec![Value::Proxy(self), rhs.to_operand()])
            }
        }
        operators! { @reflected f64: $trait $method $op }
        operators! { @reflected i64: $trait $method $op }
    )*};
    (@reflected $lhs:ty: $trait:ident $method:ident $op:ident) => {
        impl std::ops::$trait<Proxy> for $lhs {
            type Output = Result<Proxy>;
            #[track_caller]
            fn $method(self, rhs: Proxy) -> Self::Output {
                apply(Operator::$op, vec![self.into_value(), Value::Proxy(rhs)])
            }
        }
    };
}

operators! {
    Add add Add, Sub sub Sub, Mul mul Mul, Div div Truediv, Rem rem Mod, BitAnd bitand And,
    BitOr bitor Or, BitXor bitxor Xor, Shl shl Lshift, Shr shr Rshift
}

macro_rules! unary {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl std::ops::$trait for Proxy {
            type Output = Result<Proxy>;
            #[track_caller]
            fn $method(self) -> Self::Output {
                apply(Operator::$op, vec![Value::Proxy(self)])
            }
        }
    )*};
}

unary! { Neg neg Neg, Not not Invert }
