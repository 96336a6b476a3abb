//! Operators on values that may be symbolic: one generic path for every operand type.

use std::panic::Location;

use super::call_args::CallForm;
use super::convert::FromValue;
use super::dispatch::record;
use super::scope;
use crate::error::{Error, Result};
use crate::ir::operator::function_of;
use crate::shapes::refusal::refusal_of;
use crate::value::handle::Proxy;
use crate::value::object::{OperandRef, Traced};
use crate::value::operator::Operator;
use crate::value::symbol::{Bool, Float, Int, Sym};
use crate::value::value::Value;

/// What can stand on either side of an operator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of a tensor",
    label = "expected a tensor, a number, `Int` or `Float`",
    note = "operations on tensors give a `Result`: write `?` after them"
)]
pub trait Operand {
    /// The operand, borrowed.
    fn lend(&self) -> OperandRef<'_>;

    /// Whether it is symbolic.
    #[inline]
    fn is_symbolic(&self) -> bool {
        match self.lend() {
            OperandRef::Proxy(_) => true,
            OperandRef::Object(object) => object.proxy().is_some() || object.is_fake(),
            _ => false,
        }
    }

    /// The operand as a tensor of a type: known to the compiler, so that the common case costs
    /// nothing.
    #[inline(always)]
    fn as_traced<U: Traced>(&self) -> Option<&U>
    where
        Self: Sized,
    {
        None
    }

    /// The operand as a value.
    fn to_operand(&self) -> Value {
        match self.lend() {
            OperandRef::Object(object) => match object.proxy() {
                Some(proxy) => Value::Proxy(proxy),
                None => object.to_value(),
            },
            OperandRef::Bool(x) => Value::Bool(x),
            OperandRef::Int(x) => Value::Int(x),
            OperandRef::Float(x) => Value::Float(x),
            OperandRef::Proxy(x) => Value::Proxy(x),
        }
    }
}

impl<T: Traced> Operand for &T {
    #[inline]
    fn lend(&self) -> OperandRef<'_> {
        OperandRef::Object(*self)
    }

    #[inline(always)]
    fn is_symbolic(&self) -> bool {
        self.has_no_data()
    }

    #[inline(always)]
    fn as_traced<U: Traced>(&self) -> Option<&U> {
        let any: &dyn std::any::Any = *self;
        any.downcast_ref()
    }
}

macro_rules! scalar_operand {
    ($($t:ty => |$x:ident| $lend:expr;)*) => {$(
        impl Operand for $t {
            #[inline]
            fn lend(&self) -> OperandRef<'_> {
                let $x = *self;
                $lend
            }
        }

        /// A reference, as an iteration over numbers yields it.
        impl Operand for &$t {
            #[inline]
            fn lend(&self) -> OperandRef<'_> {
                let $x = **self;
                $lend
            }
        }
    )*};
}

scalar_operand! {
    f64 => |x| OperandRef::Float(x);
    f32 => |x| OperandRef::Float(x.into());
    i64 => |x| OperandRef::Int(x);
    i32 => |x| OperandRef::Int(x.into());
    // Lengths of things in memory do not exceed i64::MAX.
    usize => |x| OperandRef::Int(i64::try_from(x).unwrap_or(i64::MAX));
    bool => |x| OperandRef::Bool(x);
    Bool => |x| match x {
        Sym::Concrete(x) => OperandRef::Bool(x),
        Sym::Proxy(proxy) => OperandRef::Proxy(proxy),
    };
    Proxy => |x| OperandRef::Proxy(x);
    Int => |x| match x {
        Sym::Concrete(x) => OperandRef::Int(x),
        Sym::Proxy(proxy) => OperandRef::Proxy(proxy),
    };
    Float => |x| match x {
        Sym::Concrete(x) => OperandRef::Float(x),
        Sym::Proxy(proxy) => OperandRef::Proxy(proxy),
    };
}

/// Applies a binary operator to a tensor type: recorded if an operand is symbolic, else run.
///
/// # Errors
/// Returns an error if the operands do not fit.
#[track_caller]
#[inline]
pub fn binary<T: Traced>(op: Operator, lhs: &impl Operand, rhs: &impl Operand) -> Result<T> {
    if scope::may_record() || lhs.is_symbolic() || rhs.is_symbolic() {
        let operands = [lhs.to_operand(), rhs.to_operand()];
        if let Some(value) = recorded_pair(op, operands, Location::caller())? {
            return T::from_value(value);
        }
    }
    let result = match (lhs.as_traced::<T>(), rhs.as_traced::<T>()) {
        (Some(lhs), Some(rhs)) => T::apply_pair(op, lhs, rhs),
        _ => T::apply(op, &[lhs.lend(), rhs.lend()]),
    };
    let caller = Location::caller();
    result.map_err(|error| match cfg!(feature = "registry") {
        true => refused(op, &[lhs.to_operand(), rhs.to_operand()], error, caller),
        false => error.in_call(op.name(), caller),
    })
}

/// The error of an operator: what its shape rule refuses the operands for, if it does.
#[cold]
fn refused(
    op: Operator,
    operands: &[Value],
    error: Error,
    caller: &'static Location<'static>,
) -> Error {
    refusal_of(function_of(op), operands, error).in_call(op.name(), caller)
}

/// The result of a binary operator, if a trace or a mode took it.
#[cold]
fn recorded_pair(
    op: Operator,
    operands: [Value; 2],
    caller: &'static Location<'static>,
) -> Result<Option<Value>> {
    record(function_of(op), CallForm::Function, operands.into(), caller)
}

/// The result of a unary operator, if a trace or a mode took it.
#[cold]
fn recorded(
    op: Operator,
    operand: Value,
    caller: &'static Location<'static>,
) -> Result<Option<Value>> {
    record(function_of(op), CallForm::Function, vec![operand], caller)
}

/// Applies a unary operator to a tensor type, as [`binary`] does.
///
/// # Errors
/// Returns an error if the type has no such operator.
#[track_caller]
#[inline]
pub fn unary<T: Traced>(op: Operator, operand: &impl Operand) -> Result<T> {
    if (scope::may_record() || operand.is_symbolic())
        && let Some(value) = recorded(op, operand.to_operand(), Location::caller())?
    {
        return T::from_value(value);
    }
    let caller = Location::caller();
    T::apply(op, &[operand.lend()]).map_err(|error| match cfg!(feature = "registry") {
        true => refused(op, &[operand.to_operand()], error, caller),
        false => error.in_call(op.name(), caller),
    })
}
