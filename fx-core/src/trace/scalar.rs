//! Arithmetic and comparisons of `Int`, `Float` and `Bool`: computed by Python's rules, or recorded
//! where an operand is symbolic.

use std::panic::Location;

use super::call_args::CallForm;
use super::convert::FromValue;
use super::dispatch::record;
use super::operand::Operand;
use crate::error::{Error, Result};
use crate::ir::operator::function_of;
use crate::value::object::OperandRef;
use crate::value::operator::Operator;
use crate::value::symbol::{Bool, Float, Int, Sym};
use crate::value::value::Value;

/// Applies an operator to scalars.
///
/// # Errors
/// Returns an error if the result does not fit in 64 bits, on integer division by zero, or if a
/// symbolic operand's trace is not running here.
#[track_caller]
fn apply<R: FromValue>(op: Operator, operands: &[&dyn Operand]) -> Result<R> {
    R::from_value(applied(op, operands)?)
}

#[track_caller]
fn applied(op: Operator, operands: &[&dyn Operand]) -> Result<Value> {
    let values: Vec<Value> = operands.iter().map(|o| o.to_operand()).collect();
    let function = function_of(op);
    if operands.iter().any(|o| o.is_symbolic()) {
        let recorded = record(
            function,
            CallForm::Function,
            values.clone(),
            Location::caller(),
        )?;
        if let Some(value) = recorded {
            return Ok(value);
        }
    }
    let lent: Vec<&Value> = values.iter().collect();
    let mut out = Value::None;
    function.run(&lent, &mut out)?;
    Ok(out)
}

macro_rules! binary {
    ($($lhs:ty, $rhs:ty => $out:ty: $($trait:ident $method:ident $op:ident),+;)*) => {$($(
        impl std::ops::$trait<$rhs> for $lhs {
            type Output = Result<$out>;
            #[track_caller]
            fn $method(self, rhs: $rhs) -> Self::Output {
                apply(Operator::$op, &[&self, &rhs])
            }
        }
    )+)*};
}

macro_rules! arithmetic {
    ($($lhs:ty, $rhs:ty => $out:ty;)*) => {
        binary! { $($lhs, $rhs => $out: Add add Add, Sub sub Sub, Mul mul Mul, Rem rem Mod;)* }
    };
}

macro_rules! bits {
    ($($lhs:ty, $rhs:ty;)*) => {
        binary! { $(
            $lhs, $rhs => Int: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor,
                Shl shl Lshift, Shr shr Rshift;
        )* }
    };
}

// Plain numbers are i64 or f64 on either side: a third type would leave the literal of `2 * n`
// without one.
arithmetic! {
    Int, Int => Int;
    Int, i64 => Int;
    i64, Int => Int;
    Int, Float => Float;
    Int, f64 => Float;
    f64, Int => Float;
    Float, Float => Float;
    Float, f64 => Float;
    Float, i64 => Float;
    f64, Float => Float;
    i64, Float => Float;
    Float, Int => Float;
}

binary! {
    i64, Int => Float: Div div Truediv;
    f64, Int => Float: Div div Truediv;
    Float, Float => Float: Div div Truediv;
    Float, f64 => Float: Div div Truediv;
    Float, i64 => Float: Div div Truediv;
    f64, Float => Float: Div div Truediv;
    i64, Float => Float: Div div Truediv;
    Float, Int => Float: Div div Truediv;
}

// By a trait of ours, which says what to write for another divisor.
impl<R: BesideInt> std::ops::Div<R> for Int {
    type Output = Result<Float>;
    #[track_caller]
    fn div(self, rhs: R) -> Self::Output {
        apply(Operator::Truediv, &[&self, &rhs])
    }
}

bits! {
    Int, Int;
    Int, i64;
    i64, Int;
}

binary! {
    Bool, Bool => Bool: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor;
    Bool, bool => Bool: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor;
    bool, Bool => Bool: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor;
}

macro_rules! unary {
    ($($ty:ty: $trait:ident $method:ident $op:ident;)*) => {$(
        impl std::ops::$trait for $ty {
            type Output = Result<$ty>;
            #[track_caller]
            fn $method(self) -> Self::Output {
                apply(Operator::$op, &[&self])
            }
        }
    )*};
}

unary! {
    Int: Neg neg Neg;
    Float: Neg neg Neg;
    Int: Not not Invert;
    Bool: Not not Invert;
}

crate::impl_comparisons! {
    [Int, Float] with [i64, f64, Int, Float] -> Result<Bool>,
    |op, a, b| apply(op.operator(), &[a, b])
}
crate::impl_comparisons! {
    [i64, f64] with [Int, Float] -> Result<Bool>,
    |op, a, b| apply(op.reflected().operator(), &[b, a])
}

/// A number that an [`Int`] is raised to or divided by: a float makes the result a float, as in
/// Python.
#[diagnostic::on_unimplemented(
    message = "an `Int` is not raised to or divided by `{Self}`",
    label = "expected `i64`, `f64`, `Int` or `Float`",
    note = "a `usize` is written `n as i64`: with more types of integers the literal of `2 * n` would have none",
    note = "`n / 2` is a `Float`, as in Python; `n.floordiv(2)` is the whole number"
)]
pub trait BesideInt: Operand {
    /// The result of an `Int` and this.
    type Result: FromValue;
}

macro_rules! beside_int {
    ($($of:ty => $result:ty),*) => {$(
        impl BesideInt for $of {
            type Result = $result;
        }
    )*};
}

// One type of integers and one of floats, as above.
beside_int! {
    i64 => Int, Int => Int, f64 => Float, Float => Float
}

impl Int {
    /// `self` to the power of `exponent`: a float's power is a float.
    ///
    /// ```
    /// use fx_core::value::{Float, Int, Value};
    /// let width = Int::from(16);
    /// let (square, root): (Int, Float) = (width.pow(2)?, width.pow(0.5)?);
    /// assert_eq!((square.concrete(), root.concrete()), (Some(256), Some(4.0)));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the result does not fit in 64 bits, or an integer exponent is negative:
    /// `Float::from(n)` has such powers.
    #[track_caller]
    pub fn pow<E: BesideInt>(self, exponent: E) -> Result<E::Result> {
        if let OperandRef::Int(n) = exponent.lend()
            && n < 0
        {
            // A trace would record it, and a run would return a float where an integer is expected.
            return Err(Error::msg(format_args!(
                "pow: an integer to the power of {n} is none: write `Float::from(n).pow({n})`"
            )));
        }
        apply(Operator::Pow, &[&self, &exponent])
    }

    /// Division rounded down: by a float it is a float.
    ///
    /// # Errors
    /// Returns an error on integer division by zero, or if the result does not fit in 64 bits.
    #[track_caller]
    pub fn floordiv<E: BesideInt>(self, divisor: E) -> Result<E::Result> {
        apply(Operator::Floordiv, &[&self, &divisor])
    }
}

impl Float {
    /// `self` to the power of `exponent`.
    ///
    /// # Errors
    /// Returns an error if a symbolic operand's trace is not running here.
    #[track_caller]
    pub fn pow(self, exponent: impl Operand) -> Result<Float> {
        apply(Operator::Pow, &[&self, &exponent])
    }

    /// Division rounded down.
    ///
    /// # Errors
    /// Returns an error if a symbolic operand's trace is not running here.
    #[track_caller]
    pub fn floordiv(self, divisor: impl Operand) -> Result<Float> {
        apply(Operator::Floordiv, &[&self, &divisor])
    }
}

macro_rules! methods {
    ($($ty:ty: $out:ty),*) => {$(
        impl $ty {
            /// The absolute value.
            ///
            /// # Errors
            /// Returns an error if it does not fit in 64 bits.
            #[track_caller]
            pub fn abs(self) -> Result<$out> {
                apply(Operator::Abs, &[&self])
            }
        }
        methods! { @compare $ty: gt Gt ">", lt Lt "<", ge Ge ">=", le Le "<=", eq Eq "==", ne Ne "!=" }
    )*};
    (@compare $ty:ty: $($name:ident $op:ident $symbol:literal),*) => {
        impl $ty {$(
            #[doc = concat!("`self ", $symbol, " other`, as inside `#[trace]`.")]
            ///
            /// # Errors
            /// Returns an error if a symbolic operand's trace is not running here.
            #[track_caller]
            pub fn $name(self, other: impl Operand) -> Result<Bool> {
                apply(Operator::$op, &[&self, &other])
            }
        )*}
    };
}

methods! { Int: Int, Float: Float }

/// Changing the type records nothing: a graph's numbers are what they are.
impl From<Int> for Float {
    fn from(n: Int) -> Self {
        match n {
            Sym::Concrete(n) => Sym::Concrete(n as f64),
            Sym::Proxy(proxy) => Sym::Proxy(proxy),
        }
    }
}
