//! Element by element: functions of one number, and of two that broadcast.

use std::cmp::Ordering;

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::{nothing, rules, unary};
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    acos => unary("Acos"), acosh => unary("Acosh"), asin => unary("Asin"), asinh => unary("Asinh"),
    atan => unary("Atan"), atanh => unary("Atanh"), ceil => whole("Ceil"), cos => unary("Cos"),
    cosh => unary("Cosh"), erf => unary("Erf"), exp => unary("Exp"), floor => whole("Floor"),
    log => unary("Log"), reciprocal => unary("Reciprocal"), relu => unary("Relu"),
    sigmoid => unary("Sigmoid"), sin => unary("Sin"), sinh => unary("Sinh"),
    sqrt => unary("Sqrt"), tan => unary("Tan"), tanh => unary("Tanh"), neg => unary("Neg"),
    absolute => unary("Abs"),
    sign => |cx, call| {
        if call.elements("x")?.dtype == DType::Bool {
            return call.val("x");
        }
        let x = cx.widened_elements(call, "x")?;
        let name = cx.cast_op("Sign", &[&x])?;
        if !x.dtype.is_floating_point() {
            return call.given(name);
        }
        // PyTorch's sign of NaN is 0, and that of ONNX is NaN.
        let (nan, zero) = (cx.is_nan(&x)?, cx.number(0.0, x.dtype));
        let name = cx.op("Where", &[&nan, &zero, &name]);
        call.given(name)
    },
    softsign => |cx, call| {
        let own = call.elements("x")?;
        if own.dtype.is_floating_point() {
            return unary("Softsign")(cx, call);
        }
        // In the type of whole numbers, which wrap around.
        let one = cx.whole(1, own.dtype);
        let size = Operand { name: cx.cast_op("Abs", &[&own])?, ..own.clone() };
        let more = cx.cast_op("Add", &[&size, &Operand { name: one, dtype: own.dtype, shape: Vec::new() }])?;
        let more = cx.given_as(more, own.dtype, call.dtype()?)?;
        let x = cx.widened_elements(call, "x")?;
        let name = cx.op("Div", &[&x.name, &more]);
        call.given(name)
    },
    isnan => test("IsNaN"), isinf => test("IsInf"),
    rsqrt => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let root = cx.op("Sqrt", &[&x.name]);
        let name = cx.op("Reciprocal", &[&root]);
        call.given(name)
    },
    isfinite => |cx, call| {
        let x = call.elements("x")?;
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
        let x = call.elements("x")?;
        let decimals = call.int("decimals")?;
        if !x.dtype.is_floating_point() {
            return call.val("x");
        }
        if decimals == 0 {
            let name = cx.cast_op("Round", &[&x])?;
            return call.given(name);
        }
        // A negative power of ten has no float of its own: its reciprocal divides, as in PyTorch.
        let scale = cx.number(10f64.powi(decimals.unsigned_abs() as i32), x.dtype);
        let (up, down) = if decimals > 0 { ("Mul", "Div") } else { ("Div", "Mul") };
        let scaled = Operand { name: cx.op(up, &[&x.name, &scale]), ..x };
        let rounded = cx.cast_op("Round", &[&scaled])?;
        let name = cx.op(down, &[&rounded, &scale]);
        call.given(name)
    },
    trunc => |cx, call| {
        let x = call.elements("x")?;
        if !x.dtype.is_floating_point() {
            return call.val("x");
        }
        let (sign, size) = (cx.op("Sign", &[&x.name]), cx.op("Abs", &[&x.name]));
        let floor = cx.op("Floor", &[&size]);
        let name = cx.op("Mul", &[&sign, &floor]);
        call.given(name)
    },
    erfc => |cx, call| {
        let own = cx.widened_elements(call, "x")?;
        let x = exact(cx, &own)?;
        let one = cx.number(1.0, x.dtype);
        let erf = cx.cast_op("Erf", &[&x])?;
        let near = cx.op("Sub", &[&one, &erf]);
        // What is left of one is rounded away far from zero: there, a curve that is right to 1e-7 of itself.
        let tail = erfc_tail(cx, &x);
        let far = cx.op("Greater", &[&x.name, &one]);
        let name = cx.op("Where", &[&far, &tail, &near]);
        let name = cx.given_as(name, x.dtype, own.dtype)?;
        call.given(name)
    },
    // What `1 + x` has lost of x is put back by the factor `x / ((1 + x) - 1)`.
    log1p => |cx, call| {
        let own = cx.widened_elements(call, "x")?;
        let x = exact(cx, &own)?;
        let one = cx.number(1.0, x.dtype);
        let more = cx.op("Add", &[&x.name, &one]);
        let log = cx.op("Log", &[&more]);
        let rest = cx.op("Sub", &[&more, &one]);
        let factor = cx.op("Div", &[&x.name, &rest]);
        let whole = cx.op("Mul", &[&log, &factor]);
        // There is no such factor of 0 and of infinity, where the result is x.
        let infinity = cx.number(f64::INFINITY, x.dtype);
        let (is_small, is_infinite) = (cx.op("Equal", &[&more, &one]), cx.op("Equal", &[&more, &infinity]));
        let is_own = cx.op("Or", &[&is_small, &is_infinite]);
        let name = cx.op("Where", &[&is_own, &x.name, &whole]);
        let name = cx.given_as(name, x.dtype, own.dtype)?;
        call.given(name)
    },
    // `tanh(x / 2)` keeps the digits of small numbers, which `exp(x) - 1` loses.
    expm1 => |cx, call| {
        let own = cx.widened_elements(call, "x")?;
        let x = exact(cx, &own)?;
        let (one, half) = (cx.number(1.0, x.dtype), cx.number(0.5, x.dtype));
        let exp = cx.op("Exp", &[&x.name]);
        let more = cx.op("Add", &[&exp, &one]);
        let middle = cx.op("Mul", &[&x.name, &half]);
        let tanh = cx.op("Tanh", &[&middle]);
        let name = cx.op("Mul", &[&tanh, &more]);
        let name = cx.given_as(name, x.dtype, own.dtype)?;
        call.given(name)
    },
    logical_not => |cx, call| {
        let x = call.elements("x")?;
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
        let name = truncated_rest(cx, &a.name, &b.name);
        call.given(name)
    },
    atan2 => |cx, call| {
        let (y, x) = both(cx, call, "x", "other", call.dtype()?)?;
        let (left, below) = (is_negative(cx, &x), is_negative(cx, &y));
        // Of two zeros or two infinities the signs count alone.
        let infinite = [cx.infinite(&x)?, cx.infinite(&y)?];
        let none = {
            let zero = cx.number(0.0, x.dtype);
            let (nx, ny) = (cx.op("Equal", &[&x.name, &zero]), cx.op("Equal", &[&y.name, &zero]));
            cx.op("And", &[&nx, &ny])
        };
        let both_infinite = cx.op("And", &[&infinite[0], &infinite[1]]);
        let signs = [cx.op("Sign", &[&y.name]), cx.op("Sign", &[&x.name])];
        let (up, along) = (cx.op("Where", &[&both_infinite, &signs[0], &y.name]), cx.op("Where", &[&both_infinite, &signs[1], &x.name]));
        let ratio = cx.op("Div", &[&up, &along]);
        let ratio = cx.op("Where", &[&none, &y.name, &ratio]);
        let angle = cx.cast_op("Atan", &[&Operand { name: ratio, ..x.clone() }])?;
        let (pi, minus) = (cx.number(std::f64::consts::PI, x.dtype), cx.number(-std::f64::consts::PI, x.dtype));
        let turn = cx.op("Where", &[&below, &minus, &pi]);
        let turned = cx.op("Add", &[&angle, &turn]);
        let name = cx.op("Where", &[&left, &turned, &angle]);
        call.given(name)
    },
    clamp => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let (min, max) = (call.val("min")?, call.val("max")?);
        // `Clip` takes bounds without dims, and no NaN, which makes all elements NaN.
        let is_for_clip = |val: &Val| match val {
            Val::Tensor(of) => of.rank() == 0,
            Val::Unranked(..) => false,
            val => val.as_f64().is_none_or(|number| !number.is_nan()),
        };
        if !is_for_clip(&min) || !is_for_clip(&max) {
            let mut name = x.name.clone();
            for (op, bound) in [("Max", &min), ("Min", &max)] {
                if *bound != Val::None {
                    let bound = cx.elements(bound, x.dtype)?;
                    name = cx.op(op, &[&name, &bound.name]);
                }
            }
            return call.given(name);
        }
        // A bound that `Clip` is not given is the largest finite number.
        let bound = |cx: &mut Cx, bound: &Val, infinity: f64| -> Result<Option<Name>> {
            match bound {
                Val::None if x.dtype.is_floating_point() => Ok(Some(cx.number(infinity, x.dtype))),
                Val::None => Ok(None),
                val => Ok(Some(cx.operand(val, x.dtype)?.name)),
            }
        };
        let (min, max) = (bound(cx, &min, f64::NEG_INFINITY)?, bound(cx, &max, f64::INFINITY)?);
        let name = cx.node("Clip").input(&x.name).optional(min.as_ref()).optional(max.as_ref()).output();
        call.given(name)
    },
    r#where => |cx, call| {
        let condition = call.elements("condition")?;
        let condition = truths(cx, &condition)?;
        let (a, b) = both(cx, call, "input", "other", call.dtype()?)?;
        let name = cx.op("Where", &[&condition.name, &a.name, &b.name]);
        call.given(name)
    },
    masked_fill => |cx, call| {
        let (x, mask) = (cx.widened_elements(call, "x")?, call.elements("mask")?);
        let mask = truths(cx, &mask)?;
        let value = cx.elements(&call.val("value")?, x.dtype)?;
        let name = cx.op("Where", &[&mask.name, &value.name, &x.name]);
        call.given(name)
    },
    mask_scores => |cx, call| {
        let (scores, mask) = (call.elements("scores")?, call.elements("mask")?);
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
        // A slope for each channel stands before the dims behind it, the one slope has the dims of `x` at most.
        let is_one = weight.shape.first().is_none_or(|size| size.as_number() == Some(1));
        let slope = match x.rank() {
            rank if is_one => cx.reshape(&weight, &vec![fx_nn::value::Dim::from(1); rank.min(1)])?,
            0..=2 => weight.name.clone(),
            rank => {
                let mut shape = vec![fx_nn::value::Dim::from(1); rank - 1];
                shape[0] = weight.shape[0].clone();
                cx.reshape(&weight, &shape)?
            }
        };
        let slope = Operand { name: slope, ..weight };
        let slope = cx.cast(&slope, x.dtype)?;
        let name = cx.cast_op("PRelu", &[&x, &slope])?;
        call.given(name)
    },
    elu => |cx, call| {
        let alpha = call.float("alpha")?;
        formula(cx, call, "Elu", &[("alpha", alpha)])
    },
    celu => |cx, call| {
        let (x, alpha) = (cx.widened_elements(call, "x")?, call.float("alpha")?);
        if x.dtype != DType::F64 {
            return formula(cx, call, "Celu", &[("alpha", alpha)]);
        }
        let (by, one, zero) = (cx.number(alpha, x.dtype), cx.number(1.0, x.dtype), cx.number(0.0, x.dtype));
        let share = cx.op("Div", &[&x.name, &by]);
        let power = cx.op("Exp", &[&share]);
        let less = cx.op("Sub", &[&power, &one]);
        let curve = cx.op("Mul", &[&less, &by]);
        let (above, below) = (cx.op("Max", &[&x.name, &zero]), cx.op("Min", &[&curve, &zero]));
        let name = cx.op("Add", &[&above, &below]);
        call.given(name)
    },
    selu => |cx, call| {
        formula(cx, call, "Selu", &[("alpha", 1.673_263_242_354_377_2), ("gamma", 1.050_700_987_355_480_5)])
    },
    leaky_relu => |cx, call| {
        let slope = call.float("negative_slope")?;
        formula(cx, call, "LeakyRelu", &[("alpha", slope)])
    },
    hardsigmoid => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        if x.dtype != DType::F64 {
            return formula(cx, call, "HardSigmoid", &[("alpha", 1.0 / 6.0), ("beta", 0.5)]);
        }
        let name = hard_gate(cx, &x);
        call.given(name)
    },
    hardswish => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        if x.dtype != DType::F64 {
            return unary("HardSwish")(cx, call);
        }
        let gate = hard_gate(cx, &x);
        let name = cx.op("Mul", &[&x.name, &gate]);
        call.given(name)
    },
    mish => unary("Mish"),
    relu6 => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let (low, high) = (cx.number(0.0, x.dtype), cx.number(6.0, x.dtype));
        let name = cx.op("Clip", &[&x.name, &low, &high]);
        call.given(name)
    },
    silu => |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let gate = cx.op("Sigmoid", &[&x.name]);
        let name = cx.op("Mul", &[&x.name, &gate]);
        call.given(name)
    },
    gelu => |cx, call| {
        let (x, approximate) = (cx.widened_elements(call, "x")?, call.text("approximate")?);
        if !matches!(&*approximate, "none" | "tanh") {
            return Err(Error::msg(format_args!("`approximate` is \"none\" or \"tanh\", not {approximate:?}")));
        }
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
        let x = cx.widened_elements(call, "x")?;
        call.given(x.name)
    },
    type_as => |cx, call| {
        // Its element type alone counts.
        call.needs_no(&["other"]);
        let x = cx.widened_elements(call, "x")?;
        call.given(x.name)
    },
}

/// `erfc` of numbers above zero, by the curve of Press and others, Numerical Recipes in C, 1992, 6.2.
fn erfc_tail(cx: &mut Cx, x: &Operand) -> Name {
    const CURVE: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let number = |cx: &mut Cx, number: f64| cx.number(number, x.dtype);
    let (one, half) = (number(cx, 1.0), number(cx, 0.5));
    let halved = cx.op("Mul", &[&x.name, &half]);
    let more = cx.op("Add", &[&halved, &one]);
    let t = cx.op("Reciprocal", &[&more]);
    let mut sum = number(cx, CURVE[0]);
    for factor in &CURVE[1..] {
        let factor = number(cx, *factor);
        let product = cx.op("Mul", &[&sum, &t]);
        sum = cx.op("Add", &[&product, &factor]);
    }
    let square = cx.op("Mul", &[&x.name, &x.name]);
    let power = cx.op("Sub", &[&sum, &square]);
    let power = cx.op("Exp", &[&power]);
    cx.op("Mul", &[&t, &power])
}

/// A float of a type that every engine tests and sums.
pub(super) fn exact(cx: &mut Cx, x: &Operand) -> Result<Operand> {
    match x.dtype {
        DType::F32 | DType::F64 => Ok(x.clone()),
        _ => cx.cast(x, DType::F32),
    }
}

/// A test of floats: a whole number passes none.
fn test(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = call.elements("x")?;
        let x = exact(cx, &x)?;
        let name = cx.op(op, &[&x.name]);
        call.given(name)
    }
}

/// An operator with its numbers as attributes, on `x` in the type of the result.
fn formula(cx: &mut Cx, call: &OpCall<'_>, op: &str, numbers: &[(&str, f64)]) -> Result<Val> {
    let x = cx.widened_elements(call, "x")?;
    let carried = cx.carried(op, &x)?;
    let mut node = cx.node(op).input(&carried.name);
    for (name, number) in numbers {
        node = node.float(name, *number);
    }
    let name = node.output();
    let name = cx.given_as(name, carried.dtype, x.dtype)?;
    call.given(name)
}

/// `clip(x + 3, 0, 6) / 6`, whose sixth is no attribute of 32 bits: what is left of it next to -3 would be that of 1/6.
fn hard_gate(cx: &mut Cx, x: &Operand) -> Name {
    let [low, three, six] = [0.0, 3.0, 6.0].map(|number| cx.number(number, x.dtype));
    let sum = cx.op("Add", &[&x.name, &three]);
    let clipped = cx.op("Clip", &[&sum, &low, &six]);
    cx.op("Div", &[&clipped, &six])
}

/// Rounding, which leaves whole numbers as they are.
fn whole(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = call.elements("x")?;
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

/// Two arguments in one element type, for what needs their elements alone.
pub(super) fn both(
    cx: &mut Cx,
    call: &OpCall<'_>,
    a: &str,
    b: &str,
    dtype: DType,
) -> Result<(Operand, Operand)> {
    Ok((
        cx.elements(&call.val(a)?, dtype)?,
        cx.elements(&call.val(b)?, dtype)?,
    ))
}

/// A node of two arguments in the type of the result. Truth values are added and multiplied as such.
pub(super) fn pair(
    op: &'static str,
    a: &'static str,
    b: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let dtype = call.dtype()?;
        let (a, b) = both(cx, call, a, b, dtype)?;
        let name = match (dtype, op) {
            (DType::Bool, "Mul" | "Min") => cx.op("And", &[&a.name, &b.name]),
            (DType::Bool, "Add" | "Max") => cx.op("Or", &[&a.name, &b.name]),
            _ => cx.cast_op(op, &[&a, &b])?,
        };
        call.given(name)
    }
}

/// The type in which two arguments are compared.
pub(super) fn common(a: &Val, b: &Val) -> DType {
    let of = |val: &Val| match val {
        Val::Tensor(of) => of.dtype,
        Val::Unranked(_, dtype) => *dtype,
        Val::Float(_) => DType::F64,
        Val::Bool(_) => DType::Bool,
        _ => DType::I64,
    };
    // A tensor without dims counts less than one with dims, and a number less than both.
    let weight = |val: &Val| match val {
        Val::Tensor(of) => 1 + usize::from(of.rank() > 0),
        Val::Unranked(..) => 2,
        _ => 0,
    };
    let (x, y) = (of(a), of(b));
    match weight(a).cmp(&weight(b)) {
        Ordering::Greater => beside(x, y, matches!(b, Val::Tensor(_))),
        Ordering::Less => beside(y, x, matches!(a, Val::Tensor(_))),
        Ordering::Equal => x.promote(y),
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
        let x = cx.elements(&call.val(argument)?, dtype)?;
        let op = if dtype == DType::Bool {
            "Not"
        } else {
            "BitwiseNot"
        };
        let name = cx.op(op, &[&x.name]);
        call.given(name)
    }
}

/// Shifts as products and quotients by powers of two, in `int64`: ONNX shifts unsigned numbers alone. A shift by the
/// width of the type or more, or by less than 0, leaves the sign of what is shifted to the right, and nothing to the left.
pub(super) fn shift(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str, left: bool) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    let (a, b) = (cx.cast(&a, DType::I64)?.name, cx.cast(&b, DType::I64)?.name);
    let width = 8 * dtype.size_in_bytes() as i64;
    let (zero, most) = (cx.i64(0), cx.i64(width - 1));
    let below = cx.op("Less", &[&b, &zero]);
    let above = cx.op("Greater", &[&b, &most]);
    let beyond = cx.op("Or", &[&below, &above]);
    let powers: Vec<i64> = (0..64).map(|power| 1i64 << power).collect();
    let powers = cx.i64s(&powers);
    let power = |cx: &mut Cx, by: &Name| cx.op("Gather", &[&powers, by]);
    let name = if left {
        let by = cx.op("Where", &[&beyond, &zero, &b]);
        let factor = power(cx, &by);
        let product = cx.op("Mul", &[&a, &factor]);
        cx.op("Where", &[&beyond, &zero, &product])
    } else {
        // In two steps, each by a power that is positive.
        let by = cx.i64(63);
        let by = cx.op("Where", &[&beyond, &by, &b]);
        let two = cx.i64(2);
        let half = cx.op("Div", &[&by, &two]);
        let rest = cx.op("Sub", &[&by, &half]);
        let (half, rest) = (power(cx, &half), power(cx, &rest));
        let once = whole_quotient(cx, &a, &half);
        whole_quotient(cx, &once, &rest)
    };
    let name = cx.given_as(name, DType::I64, dtype)?;
    call.given(name)
}

/// The remainder of a division towards zero, with the sign of `a`.
fn truncated_rest(cx: &mut Cx, a: &Name, b: &Name) -> Name {
    cx.node("Mod").input(a).input(b).int("fmod", 1).output()
}

/// The quotient of whole numbers, rounded down.
fn whole_quotient(cx: &mut Cx, a: &Name, b: &Name) -> Name {
    let rest = cx.op("Mod", &[a, b]);
    let whole = cx.op("Sub", &[a, &rest]);
    cx.op("Div", &[&whole, b])
}

/// The remainder of floats of a division towards zero, and where its sign is not the divisor's: there, a division that
/// rounds down goes a step further.
fn float_rest(cx: &mut Cx, a: &Name, b: &Name, dtype: DType) -> (Name, Name) {
    let zero = cx.number(0.0, dtype);
    let rest = truncated_rest(cx, a, b);
    let is_none = cx.op("Equal", &[&rest, &zero]);
    let is_rest = cx.op("Not", &[&is_none]);
    let (left, right) = (cx.op("Less", &[&rest, &zero]), cx.op("Less", &[b, &zero]));
    let differ = cx.op("Xor", &[&left, &right]);
    let further = cx.op("And", &[&is_rest, &differ]);
    (rest, further)
}

pub(super) fn floor_divide(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    let (a, b) = (a.name, b.name);
    if !dtype.is_floating_point() {
        let name = whole_quotient(cx, &a, &b);
        return call.given(name);
    }
    // Without its remainder, the dividend is a multiple but for rounding: the nearest whole number is the quotient. A
    // quotient of zero has the sign of the division, and one by zero is the division.
    let (rest, further) = float_rest(cx, &a, &b, dtype);
    let whole = cx.op("Sub", &[&a, &rest]);
    let near = Operand {
        name: cx.op("Div", &[&whole, &b]),
        dtype,
        shape: Vec::new(),
    };
    let near = cx.cast_op("Round", &[&near])?;
    let one = cx.number(1.0, dtype);
    let less = cx.op("Sub", &[&near, &one]);
    let near = cx.op("Where", &[&further, &less, &near]);
    let zero = cx.number(0.0, dtype);
    let division = cx.op("Div", &[&a, &b]);
    let nothing = cx.op("Mul", &[&division, &zero]);
    let is_nothing = cx.op("Equal", &[&near, &zero]);
    let quotient = cx.op("Where", &[&is_nothing, &nothing, &near]);
    let by_zero = cx.op("Equal", &[&b, &zero]);
    let name = cx.op("Where", &[&by_zero, &division, &quotient]);
    call.given(name)
}

/// The remainder with the sign of the divisor.
pub(super) fn remainder(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, a, b, dtype)?;
    let name = match dtype.is_floating_point() {
        true => {
            let (rest, further) = float_rest(cx, &a.name, &b.name, dtype);
            let moved = cx.op("Add", &[&rest, &b.name]);
            cx.op("Where", &[&further, &moved, &rest])
        }
        false => cx.op("Mod", &[&a.name, &b.name]),
    };
    call.given(name)
}

/// Where the sign bit is set, NaN aside: of zeros, by their reciprocals.
fn is_negative(cx: &mut Cx, x: &Operand) -> Name {
    let zero = cx.number(0.0, x.dtype);
    let below = cx.op("Less", &[&x.name, &zero]);
    let inverse = cx.op("Reciprocal", &[&x.name]);
    let inverse = cx.op("Less", &[&inverse, &zero]);
    cx.op("Or", &[&below, &inverse])
}

impl Cx {
    /// Where an element is NaN.
    pub(super) fn is_nan(&mut self, x: &Operand) -> Result<Name> {
        let x = exact(self, x)?;
        Ok(self.op("IsNaN", &[&x.name]))
    }

    /// Where a float is infinite.
    fn infinite(&mut self, x: &Operand) -> Result<Name> {
        let x = exact(self, x)?;
        Ok(self.op("IsInf", &[&x.name]))
    }
}
