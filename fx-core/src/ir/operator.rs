//! The built-in operators as functions that graphs call: `fx_core::operator::add` is `a + b`.
//!
//! Scalars are computed here, with Python's rules for `/`, `%` and `//`; objects compute themselves
//! through [`Object::operator`](crate::tensor::Object::operator).
#![allow(
    non_upper_case_globals,
    reason = "functions are named as they are called"
)]

use std::cmp::Ordering;

use super::function::{Effects, Function, FunctionDef};
use super::param_type::{ParamType, TypePart};
use super::registry::Registration;
use super::signature::ParamSpec;
use crate::error::{Error, ErrorKind, Result};
use crate::value::operator::Operator;
use crate::value::value::{IntoValue, Value};

/// `Value`
static ANY: ParamType = ParamType::AnyValue;
/// `()`
static NOTHING: ParamType = ParamType::Tuple(TypePart::Fixed(&[]));
/// `&str`
const TEXT: ParamType = ParamType::Reference(TypePart::Fixed(&ParamType::Str));
const UNARY: &[ParamSpec] = &[ParamSpec::positional("a", "Value", ParamType::AnyValue)];
const BINARY: &[ParamSpec] = &[
    ParamSpec::positional("a", "Value", ParamType::AnyValue),
    ParamSpec::positional("b", "Value", ParamType::AnyValue),
];
const ASSERTION: &[ParamSpec] = &[
    ParamSpec::positional("condition", "Value", ParamType::AnyValue),
    ParamSpec::positional("message", "&str", TEXT),
];
const ATTRIBUTE: &[ParamSpec] = &[
    ParamSpec::positional("value", "Value", ParamType::AnyValue),
    ParamSpec::positional("name", "&str", TEXT),
];
const GUARD: &[ParamSpec] = &[
    ParamSpec::positional("value", "Value", ParamType::AnyValue),
    ParamSpec::positional("argument", "&str", TEXT),
    ParamSpec::positional("expected", "Value", ParamType::AnyValue),
];

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident = $op:ident $params:ident;)*) => {$(
        $(#[$doc])*
        pub const $name: Function = {
            static DEF: FunctionDef = FunctionDef::new(
                concat!("fx_core::operator::", stringify!($name)),
                $params,
                |args, out| apply(Operator::$op, args, out),
            )
            .operator(Operator::$op);
            Function::new(&DEF)
        };
        crate::__private::submit! { Registration, Registration($name) }
    )*};
}

operators! {
    /// `a + b`
    add = Add BINARY;
    /// `a - b`
    sub = Sub BINARY;
    /// `a * b`
    mul = Mul BINARY;
    /// `a / b`, true division: two integers give a float
    truediv = Truediv BINARY;
    /// `a % b`, with the divisor's sign
    r#mod = Mod BINARY;
    /// `-a`
    neg = Neg UNARY;
    /// `!a`, torch's `~a`
    invert = Invert UNARY;
    /// `a == b`
    eq = Eq BINARY;
    /// `a != b`
    ne = Ne BINARY;
    /// `a < b`
    lt = Lt BINARY;
    /// `a <= b`
    le = Le BINARY;
    /// `a > b`
    gt = Gt BINARY;
    /// `a >= b`
    ge = Ge BINARY;
    /// `a[b]`
    getitem = Getitem BINARY;
    /// Matrix product
    matmul = Matmul BINARY;
    /// `a` to the power of `b`
    pow = Pow BINARY;
    /// Division rounded down
    floordiv = Floordiv BINARY;
    /// `a & b`
    and_ = And BINARY;
    /// `a | b`
    or_ = Or BINARY;
    /// `a ^ b`
    xor = Xor BINARY;
    /// `a << b`
    lshift = Lshift BINARY;
    /// `a >> b`
    rshift = Rshift BINARY;
    /// The absolute value
    abs = Abs UNARY;
}

/// An attribute of a tensor: `shape`, `dtype` or `ndim`.
pub const getattr: Function = {
    static DEF: FunctionDef =
        FunctionDef::new("fx_core::operator::getattr", ATTRIBUTE, attribute).returns("Value", &ANY);
    Function::new(&DEF)
};
crate::__private::submit! { Registration, Registration(getattr) }

fn attribute(args: &[&Value], out: &mut Value) -> Result<()> {
    let [value, Value::Str(name)] = args else {
        return Err(Error::msg("getattr takes a value and a name"));
    };
    let object = value.as_object();
    let shape = object.and_then(|o| o.shape());
    let found = match &**name {
        "shape" => shape.map(|s| s.to_vec().into_value()),
        "ndim" => shape.map(|s| s.len().into_value()),
        "dtype" => object.and_then(|o| o.dtype()).map(Value::DType),
        _ => None,
    };
    *out = found.ok_or_else(|| {
        Error::msg(format_args!(
            "{} has no attribute `{name}`: tensors have shape, ndim and dtype",
            value.describe()
        ))
    })?;
    Ok(())
}

/// Stops a run if a condition does not hold, with its message.
pub const _assert: Function = {
    static DEF: FunctionDef =
        FunctionDef::new("fx_core::operator::_assert", ASSERTION, check_assertion)
            .returns("()", &NOTHING)
            .effects(Effects::IO);
    Function::new(&DEF)
};
crate::__private::submit! { Registration, Registration(_assert) }

fn check_assertion(args: &[&Value], out: &mut Value) -> Result<()> {
    let [condition, Value::Str(message)] = args else {
        return Err(Error::msg("an assertion takes a condition and a message"));
    };
    if !condition.truth()? {
        return Err(ErrorKind::Assertion(message.to_string()).into());
    }
    *out = Value::None;
    Ok(())
}

/// Guards an argument that tracing specialised: stops a run that passes another value.
pub const assert_specialized: Function = {
    static DEF: FunctionDef = FunctionDef::new(
        "fx_core::operator::assert_specialized",
        GUARD,
        check_specialized,
    )
    .returns("()", &NOTHING)
    .effects(Effects::IO);
    Function::new(&DEF)
};
crate::__private::submit! { Registration, Registration(assert_specialized) }

fn check_specialized(args: &[&Value], out: &mut Value) -> Result<()> {
    let [value, argument, expected] = args else {
        return Err(Error::msg(
            "a guard takes a value, a name and what is expected",
        ));
    };
    let same = match (value, expected) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Int(a), Value::Float(b)) => against(*a, *b) == Some(Ordering::Equal),
        (Value::Str(a), Value::Str(b)) => a == b,
        _ => false,
    };
    if !same {
        let found = match value {
            Value::Object(_) => value.describe(),
            plain => plain.to_string(),
        };
        let fix = match (argument, expected) {
            // A leaf of a structure has no name to bind it by.
            (Value::Str(name), Value::None) if !name.contains(['[', '.', '"']) => {
                format!(
                    "trace it as present, with `.concrete(\"{}\", PH)`",
                    name.as_ref() as &str
                )
            }
            _ => "trace again for other values".to_string(),
        };
        let guard = ErrorKind::Guard {
            argument: argument.to_string(),
            expected: expected.to_string(),
            found,
            fix,
        };
        return Err(guard.into());
    }
    *out = Value::None;
    Ok(())
}

/// The function that implements an operator.
pub fn function_of(op: Operator) -> Function {
    match op {
        Operator::Add => add,
        Operator::Sub => sub,
        Operator::Mul => mul,
        Operator::Truediv => truediv,
        Operator::Mod => r#mod,
        Operator::Neg => neg,
        Operator::Invert => invert,
        Operator::Eq => eq,
        Operator::Ne => ne,
        Operator::Lt => lt,
        Operator::Le => le,
        Operator::Gt => gt,
        Operator::Ge => ge,
        Operator::Getitem => getitem,
        Operator::Matmul => matmul,
        Operator::Pow => pow,
        Operator::Floordiv => floordiv,
        Operator::And => and_,
        Operator::Or => or_,
        Operator::Xor => xor,
        Operator::Lshift => lshift,
        Operator::Rshift => rshift,
        Operator::Abs => abs,
    }
}

/// Runs an operator: the first object operand handles it; without objects, operands are plain
/// values.
fn apply(op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
    for arg in args {
        if let Some(object) = arg.as_object() {
            return object.operator(op, args, out);
        }
    }
    *out = plain(op, args)?;
    Ok(())
}

fn plain(op: Operator, args: &[&Value]) -> Result<Value> {
    let unfit = || {
        let operands: Vec<String> = args.iter().map(|v| v.describe()).collect();
        Error::operator(op, operands.join(" and "))
    };
    if let (Operator::Add, [a, b]) = (op, args)
        && let Some(all) = joined(a, b)
    {
        return Ok(all);
    }
    match (op, args) {
        (Operator::Getitem, [container, index]) => item(container, index),
        (Operator::Neg, [Value::Int(a)]) => a.checked_neg().map(Value::Int).ok_or_else(overflow),
        (Operator::Neg, [Value::Float(a)]) => Ok(Value::Float(-a)),
        (Operator::Abs, [Value::Int(a)]) => a.checked_abs().map(Value::Int).ok_or_else(overflow),
        (Operator::Abs, [Value::Float(a)]) => Ok(Value::Float(a.abs())),
        (Operator::Invert, [Value::Bool(a)]) => Ok(Value::Bool(!a)),
        (Operator::Invert, [Value::Int(a)]) => Ok(Value::Int(!a)),
        (_, [Value::Bool(a), Value::Bool(b)]) => match bools(op, *a, *b) {
            Some(result) => Ok(result),
            None => ints(op, i64::from(*a), i64::from(*b), unfit),
        },
        (_, [Value::Int(a), Value::Int(b)]) => ints(op, *a, *b, unfit),
        (_, [Value::Bool(a), Value::Int(b)]) => ints(op, i64::from(*a), *b, unfit),
        (_, [Value::Int(a), Value::Bool(b)]) => ints(op, *a, i64::from(*b), unfit),
        (_, [Value::Int(a), Value::Float(b)]) if compares(op) => {
            Ok(Value::Bool(ordered(op, against(*a, *b))))
        }
        (_, [Value::Float(a), Value::Int(b)]) if compares(op) => Ok(Value::Bool(ordered(
            op,
            against(*b, *a).map(Ordering::reverse),
        ))),
        (_, [a, b]) => match (number(a), number(b)) {
            (Some(a), Some(b)) => floats(op, a, b)?.ok_or_else(unfit),
            _ => Err(unfit()),
        },
        _ => Err(unfit()),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Int(n) => Some(*n as f64),
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        _ => None,
    }
}

fn compares(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq | Operator::Ne | Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge
    )
}

/// Compares an integer with a float without rounding; `None` for NaN.
fn against(n: i64, x: f64) -> Option<Ordering> {
    // -2^63 and 2^63, which a float represents exactly.
    let (low, high) = (i64::MIN as f64, -(i64::MIN as f64));
    if x.is_nan() {
        None
    } else if x >= high {
        Some(Ordering::Less)
    } else if x < low {
        Some(Ordering::Greater)
    } else {
        // The whole part fits in 64 bits; on a tie, the fraction decides.
        let whole = n.cmp(&(x.trunc() as i64));
        Some(whole.then(0.0.partial_cmp(&x.fract()).unwrap_or(Ordering::Equal)))
    }
}

fn ordered(op: Operator, order: Option<Ordering>) -> bool {
    match op {
        Operator::Eq => order == Some(Ordering::Equal),
        Operator::Ne => order != Some(Ordering::Equal),
        Operator::Lt => order == Some(Ordering::Less),
        Operator::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn overflow() -> Error {
    Error::arithmetic("the integer result does not fit in 64 bits")
}

fn bools(op: Operator, a: bool, b: bool) -> Option<Value> {
    Some(Value::Bool(match op {
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor | Operator::Ne => a != b,
        Operator::Eq => a == b,
        _ => return None,
    }))
}

fn ints(op: Operator, a: i64, b: i64, unfit: impl Fn() -> Error) -> Result<Value> {
    // Shifting by 64 or more shifts out all bits, as by 64.
    let shift = || match b {
        0.. => Ok(u32::try_from(b).unwrap_or(u32::MAX).min(64)),
        _ => Err(Error::arithmetic("a shift must not be negative")),
    };
    let whole = |result: Option<i64>| result.map(Value::Int).ok_or_else(overflow);
    match op {
        Operator::Add => whole(a.checked_add(b)),
        Operator::Sub => whole(a.checked_sub(b)),
        Operator::Mul => whole(a.checked_mul(b)),
        Operator::Truediv if b == 0 => Err(by_zero()),
        Operator::Truediv => Ok(Value::Float(a as f64 / b as f64)),
        Operator::Floordiv | Operator::Mod if b == 0 => Err(by_zero()),
        Operator::Floordiv => {
            let quotient = a.checked_div(b).ok_or_else(overflow)?;
            let inexact = a % b != 0 && (a < 0) != (b < 0);
            Ok(Value::Int(quotient - i64::from(inexact)))
        }
        Operator::Mod => Ok(Value::Int(a.checked_rem(b).map_or(0, |rest| {
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }))),
        Operator::Pow if b < 0 && a == 0 => Err(by_zero()),
        Operator::Pow if b < 0 => Ok(Value::Float((a as f64).powf(b as f64))),
        Operator::Pow => whole(match a {
            0 | 1 => Some(if b == 0 { 1 } else { a }),
            -1 => Some(1 - 2 * (b & 1)),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        }),
        Operator::And => Ok(Value::Int(a & b)),
        Operator::Or => Ok(Value::Int(a | b)),
        Operator::Xor => Ok(Value::Int(a ^ b)),
        Operator::Lshift => {
            let by = shift()?;
            let wide = a.checked_shl(by).filter(|wide| wide >> by == a);
            whole(if a == 0 { Some(0) } else { wide })
        }
        Operator::Rshift => Ok(Value::Int(a >> shift()?.min(63))),
        Operator::Eq => Ok(Value::Bool(a == b)),
        Operator::Ne => Ok(Value::Bool(a != b)),
        Operator::Lt => Ok(Value::Bool(a < b)),
        Operator::Le => Ok(Value::Bool(a <= b)),
        Operator::Gt => Ok(Value::Bool(a > b)),
        Operator::Ge => Ok(Value::Bool(a >= b)),
        _ => Err(unfit()),
    }
}

fn by_zero() -> Error {
    Error::arithmetic("a number is divided by zero, or zero raised to a negative power")
}

/// The floored quotient and the remainder, which has the divisor's sign, as for floats in Python.
fn divided(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = rest.copysign(b);
    } else if (rest < 0.0) != (b < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (quotient.abs().copysign(a / b), rest);
    }
    // The division is off by less than one, so rounding corrects it.
    (quotient.round(), rest)
}

/// As in Python: where it raises an error, this returns one, not an infinity or NaN.
fn floats(op: Operator, a: f64, b: f64) -> Result<Option<Value>> {
    let divides = matches!(op, Operator::Truediv | Operator::Floordiv | Operator::Mod);
    if b == 0.0 && divides || op == Operator::Pow && a == 0.0 && b < 0.0 {
        return Err(by_zero());
    }
    if op == Operator::Pow && a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err(Error::arithmetic(format_args!(
            "`pow`: {a} to the power of {b} is not a real number"
        )));
    }
    Ok(Some(match op {
        Operator::Add => Value::Float(a + b),
        Operator::Sub => Value::Float(a - b),
        Operator::Mul => Value::Float(a * b),
        Operator::Truediv => Value::Float(a / b),
        Operator::Floordiv => Value::Float(divided(a, b).0),
        Operator::Mod => Value::Float(divided(a, b).1),
        Operator::Pow => Value::Float(a.powf(b)),
        Operator::Eq => Value::Bool(a == b),
        Operator::Ne => Value::Bool(a != b),
        Operator::Lt => Value::Bool(a < b),
        Operator::Le => Value::Bool(a <= b),
        Operator::Gt => Value::Bool(a > b),
        Operator::Ge => Value::Bool(a >= b),
        _ => return Ok(None),
    }))
}

/// The items from start to stop, by step; ends outside the list are clamped, as in Python.
fn sliced(items: &[Value], ends: &[Value; 3]) -> Result<Vec<Value>> {
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let end = |value: &Value, default: i64| match value {
        Value::None => Ok(default),
        Value::Int(n) if *n < 0 => Ok(n.saturating_add(len).max(0)),
        Value::Int(n) => Ok((*n).min(len)),
        other => Err(Error::expected("an end of a slice", other.describe())),
    };
    let [start, stop, step] = ends;
    let (start, stop) = (end(start, 0)?, end(stop, len)?);
    let step = match step {
        Value::None => 1,
        Value::Int(n) if *n > 0 => usize::try_from(*n).unwrap_or(usize::MAX),
        other => {
            return Err(Error::expected(
                "a step above 0 in a slice of a list",
                other.describe(),
            ));
        }
    };
    let place = |n: i64| usize::try_from(n).unwrap_or(0);
    let part = items.get(place(start)..place(stop)).unwrap_or(&[]);
    Ok(part.iter().step_by(step).cloned().collect())
}

/// Concatenates two sequences; the result is a list if the first is one.
fn joined(first: &Value, second: &Value) -> Option<Value> {
    let (Value::List(a) | Value::Tuple(a)) = first else {
        return None;
    };
    let (Value::List(b) | Value::Tuple(b)) = second else {
        return None;
    };
    let items = a.iter().chain(b).cloned().collect();
    Some(match first {
        Value::List(_) => Value::List(items),
        _ => Value::Tuple(items),
    })
}

fn item(container: &Value, index: &Value) -> Result<Value> {
    match (container, index) {
        (Value::List(items) | Value::Tuple(items), Value::Int(i)) => {
            let at = if *i < 0 {
                i.checked_add_unsigned(items.len() as u64)
            } else {
                Some(*i)
            };
            at.and_then(|at| usize::try_from(at).ok())
                .and_then(|at| items.get(at))
                .cloned()
                .ok_or_else(|| {
                    Error::from(ErrorKind::Index {
                        index: *i,
                        container: container.describe(),
                    })
                })
        }
        (Value::List(items), Value::Slice(ends)) => {
            Ok(Value::List(sliced(items, ends)?.into_boxed_slice()))
        }
        (Value::Tuple(items), Value::Slice(ends)) => {
            Ok(Value::Tuple(sliced(items, ends)?.into_boxed_slice()))
        }
        (Value::Dict(map), Value::Str(key)) => map.get(key).cloned().ok_or_else(|| {
            Error::from(ErrorKind::Key {
                key: key.to_string(),
            })
        }),
        _ => Err(Error::msg(format_args!(
            "{} cannot be indexed by {}",
            container.describe(),
            index.describe()
        ))),
    }
}
