//! Element by element: functions of one number, and of two that broadcast.

use fx_nn::prelude::*;

use super::{nothing, rules, unary};
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    acos => unary("Acos"), acosh => unary("Acosh"), asin => unary("Asin"), asinh => unary("Asinh"),
    atan => unary("Atan"), atanh => unary("Atanh"), ceil => whole("Ceil"), cos => unary("Cos"),
    cosh => unary("Cosh"), erf => unary("Erf"), exp => unary("Exp"), floor => whole("Floor"),
    log => unary("Log"), reciprocal => unary("Reciprocal"), relu => unary("Relu"),
    sigmoid => unary("Sigmoid"), sign => unary("Sign"), sin => unary("Sin"), sinh => unary("Sinh"),
    sqrt => unary("Sqrt"), tan => unary("Tan"), tanh => unary("Tanh"), neg => unary("Neg"),
    absolute => unary("Abs"), softsign => unary("Softsign"),
    isnan => test("IsNaN"), isinf => test("IsInf"),
    rsqrt => |cx, call| {
        let x = cx.widened(call, "x")?;
        let root = cx.op("Sqrt", &[&x.name]);
        let name = cx.op("Reciprocal", &[&root]);
        call.given(name)
    },
    isfinite => |cx, call| {
        let x = call.tensor("x")?;
        if !x.dtype.is_floating_point() {
            let name = cx.op("Equal", &[&x.name, &x.name]);
            return call.given(name);
        }
        let x = exact(cx, &x)?;
        let (nan, inf) = (cx.op("IsNaN", &[&x.name]), cx.op("IsInf", &[&x.name]));
        let either = cx.op("Or", &[&nan, &inf]);
        let name = cx.op("Not", &[&either]);
        call.given(name)
    },
    round => |cx, call| {
        let x = call.tensor("x")?;
        let decimals = call.int("decimals")?;
        if !x.dtype.is_floating_point() {
            return call.val("x");
        }
        if decimals == 0 {
            let name = cx.op("Round", &[&x.name]);
            return call.given(name);
        }
        let scale = cx.number(10f64.powi(decimals as i32), x.dtype);
        let scaled = cx.op("Mul", &[&x.name, &scale]);
        let rounded = cx.op("Round", &[&scaled]);
        let name = cx.op("Div", &[&rounded, &scale]);
        call.given(name)
    },
    trunc => |cx, call| {
        let x = call.tensor("x")?;
        if !x.dtype.is_floating_point() {
            return call.val("x");
        }
        let (sign, size) = (cx.op("Sign", &[&x.name]), cx.op("Abs", &[&x.name]));
        let floor = cx.op("Floor", &[&size]);
        let name = cx.op("Mul", &[&sign, &floor]);
        call.given(name)
    },
    erfc => |cx, call| {
        let x = cx.widened(call, "x")?;
        let (erf, one) = (cx.op("Erf", &[&x.name]), cx.number(1.0, x.dtype));
        let name = cx.op("Sub", &[&one, &erf]);
        call.given(name)
    },
    log1p => |cx, call| {
        let x = cx.widened(call, "x")?;
        let one = cx.number(1.0, x.dtype);
        let more = cx.op("Add", &[&x.name, &one]);
        let name = cx.op("Log", &[&more]);
        call.given(name)
    },
    expm1 => |cx, call| {
        let x = cx.widened(call, "x")?;
        let one = cx.number(1.0, x.dtype);
        let exp = cx.op("Exp", &[&x.name]);
        let name = cx.op("Sub", &[&exp, &one]);
        call.given(name)
    },
    logical_not => |cx, call| {
        let x = call.tensor("x")?;
        let x = truths(cx, &x)?;
        let name = cx.op("Not", &[&x.name]);
        call.given(name)
    },
    logical_and => logical("And"), logical_or => logical("Or"), logical_xor => logical("Xor"),
    maximum => pair("Max", "x", "other"), minimum => pair("Min", "x", "other"),
    bitwise_and => bits("BitwiseAnd", "And", "x", "other"),
    bitwise_or => bits("BitwiseOr", "Or", "x", "other"),
    bitwise_xor => bits("BitwiseXor", "Xor", "x", "other"),
    bitwise_not => inverted("x"),
    bitwise_left_shift => |cx, call| shift(cx, call, "x", "other", true),
    bitwise_right_shift => |cx, call| shift(cx, call, "x", "other", false),
    floor_divide => |cx, call| floor_divide(cx, call, "x", "other"),
    remainder => |cx, call| remainder(cx, call, "x", "other"),
    fmod => |cx, call| {
        let (a, b) = both(cx, call, "x", "other", call.dtype()?)?;
        let name = cx.node("Mod").input(&a.name).input(&b.name).int("fmod", 1).output();
        call.given(name)
    },
    atan2 => |cx, call| {
        let (y, x) = both(cx, call, "x", "other", call.dtype()?)?;
        let (zero, pi) = (cx.number(0.0, x.dtype), cx.number(std::f64::consts::PI, x.dtype));
        let ratio = cx.op("Div", &[&y.name, &x.name]);
        let angle = cx.op("Atan", &[&ratio]);
        let (left, above) = (cx.op("Less", &[&x.name, &zero]), cx.op("Less", &[&y.name, &zero]));
        let minus = cx.number(-std::f64::consts::PI, x.dtype);
        let turn = cx.op("Where", &[&above, &minus, &pi]);
        let turned = cx.op("Add", &[&angle, &turn]);
        let quadrant = cx.op("Where", &[&left, &turned, &angle]);
        let (nx, ny) = (cx.op("Equal", &[&x.name, &zero]), cx.op("Equal", &[&y.name, &zero]));
        let none = cx.op("And", &[&nx, &ny]);
        let name = cx.op("Where", &[&none, &zero, &quadrant]);
        call.given(name)
    },
    clamp => |cx, call| {
        let x = cx.widened(call, "x")?;
        let bound = |cx: &mut Cx, name: &str| -> Result<Option<Name>> {
            match call.val(name)? {
                Val::None => Ok(None),
                val => Ok(Some(cx.operand(&val, x.dtype)?.name)),
            }
        };
        let (min, max) = (bound(cx, "min")?, bound(cx, "max")?);
        let name = cx.node("Clip").input(&x.name).optional(min.as_ref()).optional(max.as_ref()).output();
        call.given(name)
    },
    r#where => |cx, call| {
        let condition = call.tensor("condition")?;
        let condition = truths(cx, &condition)?;
        let (a, b) = both(cx, call, "input", "other", call.dtype()?)?;
        let name = cx.op("Where", &[&condition.name, &a.name, &b.name]);
        call.given(name)
    },
    masked_fill => |cx, call| {
        let (x, mask) = (cx.widened(call, "x")?, call.tensor("mask")?);
        let mask = truths(cx, &mask)?;
        let value = cx.operand(&call.val("value")?, x.dtype)?;
        let name = cx.op("Where", &[&mask.name, &value.name, &x.name]);
        call.given(name)
    },
    mask_scores => |cx, call| {
        let (scores, mask) = (call.tensor("scores")?, call.tensor("mask")?);
        if mask.dtype == DType::Bool {
            let least = cx.number(f64::NEG_INFINITY, scores.dtype);
            let name = cx.op("Where", &[&mask.name, &least, &scores.name]);
            return call.given(name);
        }
        let mask = cx.cast(&mask, call.dtype()?)?;
        let scores = cx.cast(&scores, call.dtype()?)?;
        let name = cx.op("Add", &[&scores.name, &mask.name]);
        call.given(name)
    },
    prelu => |cx, call| {
        let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
        let slope = match (x.rank(), weight.shape.first().and_then(|d| d.as_number())) {
            (0..=2, _) | (_, Some(1)) => weight.name.clone(),
            (rank, _) => {
                let mut shape = vec![fx_nn::value::Dim::from(1); rank - 1];
                shape[0] = weight.shape[0].clone();
                cx.reshape(&weight, &shape)?
            }
        };
        let name = cx.op("PRelu", &[&x.name, &slope]);
        call.given(name)
    },
    elu => |cx, call| {
        let (x, alpha) = (call.tensor("x")?, call.float("alpha")?);
        let name = cx.node("Elu").input(&x.name).float("alpha", alpha).output();
        call.given(name)
    },
    celu => |cx, call| {
        let (x, alpha) = (call.tensor("x")?, call.float("alpha")?);
        if x.dtype == DType::F32 {
            let name = cx.node("Celu").input(&x.name).float("alpha", alpha).output();
            return call.given(name);
        }
        let by = cx.number(alpha, x.dtype);
        let scaled = cx.op("Div", &[&x.name, &by]);
        let elu = cx.op("Elu", &[&scaled]);
        let name = cx.op("Mul", &[&elu, &by]);
        call.given(name)
    },
    selu => |cx, call| {
        let x = call.tensor("x")?;
        let node = cx.node("Selu").input(&x.name);
        let name = node.float("alpha", 1.673_263_242_354_377_2).float("gamma", 1.050_700_987_355_480_5).output();
        call.given(name)
    },
    leaky_relu => |cx, call| {
        let (x, slope) = (call.tensor("x")?, call.float("negative_slope")?);
        let name = cx.node("LeakyRelu").input(&x.name).float("alpha", slope).output();
        call.given(name)
    },
    hardsigmoid => |cx, call| {
        let x = call.tensor("x")?;
        let name = cx.node("HardSigmoid").input(&x.name).float("alpha", 1.0 / 6.0).float("beta", 0.5).output();
        call.given(name)
    },
    hardswish => unary("HardSwish"), mish => unary("Mish"),
    relu6 => |cx, call| {
        let x = call.tensor("x")?;
        let (low, high) = (cx.number(0.0, x.dtype), cx.number(6.0, x.dtype));
        let name = cx.op("Clip", &[&x.name, &low, &high]);
        call.given(name)
    },
    silu => |cx, call| {
        let x = cx.widened(call, "x")?;
        let gate = cx.op("Sigmoid", &[&x.name]);
        let name = cx.op("Mul", &[&x.name, &gate]);
        call.given(name)
    },
    gelu => |cx, call| {
        let (x, approximate) = (call.tensor("x")?, call.text("approximate")?);
        if cx.opset() >= 20 {
            let name = cx.node("Gelu").input(&x.name).text("approximate", &approximate).output();
            return call.given(name);
        }
        let half = cx.number(0.5, x.dtype);
        let one = cx.number(1.0, x.dtype);
        let inner = match &*approximate {
            "tanh" => {
                let (cubic, scale) = (cx.number(0.044_715, x.dtype), cx.number((2.0 / std::f64::consts::PI).sqrt(), x.dtype));
                let three = cx.number(3.0, x.dtype);
                let cube = cx.op("Pow", &[&x.name, &three]);
                let cube = cx.op("Mul", &[&cube, &cubic]);
                let sum = cx.op("Add", &[&x.name, &cube]);
                let scaled = cx.op("Mul", &[&sum, &scale]);
                cx.op("Tanh", &[&scaled])
            }
            _ => {
                let root = cx.number(std::f64::consts::SQRT_2, x.dtype);
                let scaled = cx.op("Div", &[&x.name, &root]);
                cx.op("Erf", &[&scaled])
            }
        };
        let sum = cx.op("Add", &[&inner, &one]);
        let product = cx.op("Mul", &[&x.name, &sum]);
        let name = cx.op("Mul", &[&product, &half]);
        call.given(name)
    },
    contiguous => nothing("x"), to_device => nothing("x"), positive => nothing("x"),
    to_dtype => |cx, call| {
        let x = call.tensor("x")?;
        Ok(Val::Tensor(cx.cast(&x, call.dtype()?)?))
    },
    type_as => |cx, call| {
        let x = call.tensor("x")?;
        Ok(Val::Tensor(cx.cast(&x, call.dtype()?)?))
    },
}

/// A float of a type that every engine tests.
fn exact(cx: &mut Cx, x: &Operand) -> Result<Operand> {
    match x.dtype {
        DType::F32 | DType::F64 => Ok(x.clone()),
        _ => cx.cast(x, DType::F32),
    }
}

fn test(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = call.tensor("x")?;
        let x = exact(cx, &x)?;
        let name = cx.op(op, &[&x.name]);
        call.given(name)
    }
}

/// Rounding, which leaves whole numbers as they are.
fn whole(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = call.tensor("x")?;
        if !x.dtype.is_floating_point() {
            return call.val("x");
        }
        let name = cx.op(op, &[&x.name]);
        call.given(name)
    }
}

/// A tensor of truths: whether elements are not zero.
pub(super) fn truths(cx: &mut Cx, x: &Operand) -> Result<Operand> {
    cx.cast(x, DType::Bool)
}

fn logical(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let (a, b) = both(cx, call, "x", "other", DType::Bool)?;
        let name = cx.op(op, &[&a.name, &b.name]);
        call.given(name)
    }
}

/// Two arguments in one element type.
pub(super) fn both(
    cx: &mut Cx,
    call: &OpCall<'_>,
    a: &str,
    b: &str,
    dtype: DType,
) -> Result<(Operand, Operand)> {
    Ok((
        cx.operand(&call.val(a)?, dtype)?,
        cx.operand(&call.val(b)?, dtype)?,
    ))
}

/// A node of two arguments in the type of the result.
pub(super) fn pair(
    op: &'static str,
    a: &'static str,
    b: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let dtype = call.dtype()?;
        if dtype == DType::Bool {
            // Truths are added and multiplied as such.
            let (a, b) = both(cx, call, a, b, dtype)?;
            let op = if matches!(op, "Mul" | "Min") {
                "And"
            } else {
                "Or"
            };
            let name = cx.op(op, &[&a.name, &b.name]);
            return call.given(name);
        }
        let (a, b) = both(cx, call, a, b, dtype)?;
        let name = cx.op(op, &[&a.name, &b.name]);
        call.given(name)
    }
}

/// The type in which two arguments are compared.
pub(super) fn common(a: &Val, b: &Val) -> DType {
    let of = |val: &Val| match val {
        Val::Tensor(of) => of.dtype,
        Val::Float(_) => DType::F64,
        Val::Bool(_) => DType::Bool,
        _ => DType::I64,
    };
    let weak = |val: &Val| !matches!(val, Val::Tensor(of) if of.rank() > 0);
    let (x, y) = (of(a), of(b));
    match (weak(a), weak(b)) {
        (false, true) => beside(x, y, matches!(b, Val::Tensor(_))),
        (true, false) => beside(y, x, matches!(a, Val::Tensor(_))),
        _ => x.promote(y),
    }
}

/// The type of a tensor beside a number: of its own kind if it can hold the number's kind.
fn beside(tensor: DType, number: DType, is_tensor: bool) -> DType {
    let is_whole = |dtype: DType| !dtype.is_floating_point() && dtype != DType::Bool;
    match (tensor, number) {
        (tensor, number) if tensor.is_floating_point() || tensor == number => tensor,
        (_, number) if number.is_floating_point() && !is_tensor => DType::F32,
        (_, number) if number.is_floating_point() => number,
        (tensor, _) if is_whole(tensor) => tensor,
        (_, number) => number,
    }
}

pub(super) fn bits(
    op: &'static str,
    truths: &'static str,
    a: &'static str,
    b: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let dtype = call.dtype()?;
        let (a, b) = both(cx, call, a, b, dtype)?;
        let op = if dtype == DType::Bool { truths } else { op };
        let name = cx.op(op, &[&a.name, &b.name]);
        call.given(name)
    }
}

pub(super) fn inverted(
    argument: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let dtype = call.dtype()?;
        let x = cx.operand(&call.val(argument)?, dtype)?;
        let op = if dtype == DType::Bool {
            "Not"
        } else {
            "BitwiseNot"
        };
        let name = cx.op(op, &[&x.name]);
        call.given(name)
    }
}

/// Shifts as products and quotients by powers of two: ONNX shifts unsigned numbers alone.
pub(super) fn shift(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str, left: bool) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    let two = cx.number(2.0, DType::F64);
    let by = cx.cast(&b, DType::F64)?;
    let factor = cx.op("Pow", &[&two, &by.name]);
    let factor = Operand {
        name: factor,
        dtype: DType::F64,
        shape: b.shape,
    };
    let factor = cx.cast(&factor, dtype)?;
    let name = match left {
        true => cx.op("Mul", &[&a.name, &factor.name]),
        false => floored(cx, &a.name, &factor.name, dtype),
    };
    call.given(name)
}

/// The quotient rounded down.
fn floored(cx: &mut Cx, a: &Name, b: &Name, dtype: DType) -> Name {
    if dtype.is_floating_point() {
        let quotient = cx.op("Div", &[a, b]);
        return cx.op("Floor", &[&quotient]);
    }
    let rest = cx.op("Mod", &[a, b]);
    let whole = cx.op("Sub", &[a, &rest]);
    cx.op("Div", &[&whole, b])
}

pub(super) fn floor_divide(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    let name = floored(cx, &a.name, &b.name, dtype);
    call.given(name)
}

/// The remainder with the sign of the divisor.
pub(super) fn remainder(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    if !dtype.is_floating_point() {
        let name = cx.op("Mod", &[&a.name, &b.name]);
        return call.given(name);
    }
    let whole = floored(cx, &a.name, &b.name, dtype);
    let product = cx.op("Mul", &[&whole, &b.name]);
    let name = cx.op("Sub", &[&a.name, &product]);
    call.given(name)
}
