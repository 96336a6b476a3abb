//! Functions of elements, as steps of a pointwise item.
//!
//! Invariant: a function that is written here gives PyTorch's value for every float, NaN and
//! infinities included.

use fx_core::ir::Argument;
use fx_core::{function, function_table, operator};

use super::lowering::CpuLowering;
use super::points::{Point, Points};
use super::{Activation, Binary, Unary};
use crate::ops;

/// Functions of one tensor.
macro_rules! unary {
    ($($function:expr => $f:expr;)*) => {
        function_table! { CpuLowering {
            $($function => CpuLowering::pointwise(|points| {
                let x = points.tensor_at(0)?;
                Some(points.unary($f, x))
            }),)*
        } }
    };
}

unary! {
    function!(ops::relu) => Unary::Activation(Activation::Relu);
    function!(ops::relu6) => Unary::Activation(Activation::Relu6);
    function!(ops::silu) => Unary::Activation(Activation::Silu);
    function!(ops::hardswish) => Unary::Activation(Activation::Hardswish);
    function!(ops::sigmoid) => Unary::Activation(Activation::Sigmoid);
    function!(ops::tanh) => Unary::Activation(Activation::Tanh);
    function!(ops::exp) => Unary::Exp;
    function!(ops::expm1) => Unary::ExpMinusOne;
    function!(ops::tanhshrink) => Unary::Tanhshrink;
    function!(ops::log) => Unary::Log;
    function!(ops::sqrt) => Unary::Sqrt;
    function!(ops::rsqrt) => Unary::Rsqrt;
    function!(ops::sin) => Unary::Sin;
    function!(ops::cos) => Unary::Cos;
    function!(ops::absolute) => Unary::Abs;
    operator::abs => Unary::Abs;
    function!(ops::neg) => Unary::Neg;
    operator::neg => Unary::Neg;
    function!(ops::reciprocal) => Unary::Recip;
    function!(ops::erf) => Unary::Erf;
    function!(ops::square) => Unary::Pow(2.0);
}

/// Functions of two numbers, of which one is a tensor.
macro_rules! binary {
    ($($function:expr => $f:expr;)*) => {
        function_table! { CpuLowering {
            $($function => CpuLowering::pointwise(|points| both(points, $f)),)*
        } }
    };
}

binary! {
    operator::add => Binary::Add;
    operator::sub => Binary::Sub;
    operator::mul => Binary::Mul;
    operator::truediv => Binary::Div;
    function!(ops::maximum) => Binary::Max;
    function!(ops::minimum) => Binary::Min;
}

fn both(points: &mut Points<'_, '_>, f: Binary) -> Option<Point> {
    if !points.is_tensor_at(0) && !points.is_tensor_at(1) {
        return None;
    }
    let (a, b) = (points.at(0)?, points.at(1)?);
    Some(points.binary(f, a, b))
}

/// Functions that take some steps.
macro_rules! steps {
    ($($($function:ident)::+ => $steps:expr;)*) => {
        function_table! { CpuLowering {
            $(function!($($function)::+) => CpuLowering::pointwise($steps),)*
        } }
    };
}

function_table! { CpuLowering {
    operator::pow => CpuLowering::pointwise(power),
} }

steps! {
    ops::r#where => choice;
    ops::clamp => |points| clamp(points, ["min", "max"]);
    ops::clip => |points| clamp(points, ["min", "max"]);
    ops::hardtanh => |points| clamp(points, ["min_val", "max_val"]);
    ops::leaky_relu => |points| {
        let (x, slope) = (points.tensor("x")?, points.float("negative_slope")?);
        let zero = points.number(0.0);
        let is_below = points.binary(Binary::Less, x, zero);
        let small = points.mul(x, slope);
        Some(points.select(is_below, small, x))
    };
    ops::gelu => |points| {
        let x = points.tensor("x")?;
        let f = match points.argument("approximate").as_deref() {
            Some(Argument::Str(form)) if **form == "tanh" => Activation::GeluTanh,
            Some(Argument::Str(form)) if **form == "none" => Activation::Gelu,
            _ => return None,
        };
        Some(points.unary(Unary::Activation(f), x))
    };
    ops::elu => |points| {
        let (x, alpha) = (points.tensor("x")?, points.float("alpha")?);
        Some(bent(points, x, [1.0, alpha, 1.0]))
    };
    ops::celu => |points| {
        let x = points.tensor("x")?;
        // 0 is an error, which the graph returns.
        let alpha = points.float("alpha").filter(|alpha| *alpha != 0.0)?;
        Some(bent(points, x, [1.0, alpha, 1.0 / alpha]))
    };
    ops::selu => |points| {
        let x = points.tensor("x")?;
        let (alpha, slope) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        Some(bent(points, x, [slope, alpha * slope, 1.0]))
    };
    ops::softplus => |points| {
        let x = points.tensor("x")?;
        let (beta, threshold) = (points.float("beta")?, points.float("threshold")?);
        Some(softplus(points, x, beta, threshold))
    };
    ops::softsign => |points| {
        let x = points.tensor("x")?;
        let size = points.unary(Unary::Abs, x);
        let sum = points.add(size, 1.0);
        Some(points.binary(Binary::Div, x, sum))
    };
    ops::mish => |points| {
        let x = points.tensor("x")?;
        let y = softplus(points, x, 1.0, 20.0);
        let y = points.unary(Unary::Activation(Activation::Tanh), y);
        Some(points.binary(Binary::Mul, x, y))
    };
    ops::hardsigmoid => |points| {
        let x = points.tensor("x")?;
        let y = points.add(x, 3.0);
        let y = points.unary(Unary::Clamp(0.0, 6.0), y);
        Some(points.mul(y, 1.0 / 6.0))
    };
    ops::threshold => |points| {
        let x = points.tensor("x")?;
        let limit = points.literal("threshold")?;
        let is_below = points.binary(Binary::LessEqual, x, limit);
        let value = points.literal("value")?;
        Some(points.select(is_below, value, x))
    };
    ops::masked_fill => |points| {
        let (x, mask) = (points.tensor("x")?, points.any("mask")?);
        let value = points.literal("value")?;
        Some(points.select(mask, value, x))
    };
    ops::addcmul => |points| added(points, Binary::Mul);
    ops::addcdiv => |points| added(points, Binary::Div);
    ops::lerp => lerp;
}

fn power(points: &mut Points<'_, '_>) -> Option<Point> {
    if let Some(power) = points.float("b") {
        let base = points.tensor("a")?;
        // An exponent that is too large for `f32` is an error, which the function returns.
        let power = Some(power as f32).filter(|power| power.is_finite())?;
        return Some(points.unary(Unary::Pow(power), base));
    }
    both(points, Binary::Pow)
}

fn choice(points: &mut Points<'_, '_>) -> Option<Point> {
    let condition = points.any("condition")?;
    if !points.is_tensor("input") && !points.is_tensor("other") {
        return None;
    }
    let (yes, no) = (points.operand("input")?, points.operand("other")?);
    Some(points.select(condition, yes, no))
}

fn clamp(points: &mut Points<'_, '_>, [low, high]: [&str; 2]) -> Option<Point> {
    let x = points.tensor("x")?;
    let bound = |name: &str, missing: f64| match points.is_none(name) {
        true => Some(missing),
        false => points.float(name),
    };
    let low = bound(low, f64::NEG_INFINITY)? as f32;
    let high = bound(high, f64::INFINITY)? as f32;
    match low.is_nan() || high.is_nan() {
        true => None,
        false => Some(points.unary(Unary::Clamp(low, high), x)),
    }
}

/// `x + value * tensor1 * tensor2`, or divided by it.
fn added(points: &mut Points<'_, '_>, f: Binary) -> Option<Point> {
    let x = points.tensor("x")?;
    let (a, b) = (points.tensor("tensor1")?, points.tensor("tensor2")?);
    let factor = points.float("value")?;
    // In PyTorch's order: the first tensor times the number may overflow.
    let y = points.mul(a, factor);
    let y = points.binary(f, y, b);
    Some(points.binary(Binary::Add, x, y))
}

fn lerp(points: &mut Points<'_, '_>) -> Option<Point> {
    let (x, end) = (points.tensor("x")?, points.tensor("end")?);
    let weight = points.operand("weight")?;
    let way = points.binary(Binary::Sub, end, x);
    let one = points.number(1.0);
    // From the nearer end, as PyTorch does.
    let from_start = points.binary(Binary::Mul, way, weight);
    let from_start = points.binary(Binary::Add, x, from_start);
    let rest = points.binary(Binary::Sub, one, weight);
    let from_end = points.binary(Binary::Mul, way, rest);
    let from_end = points.binary(Binary::Sub, end, from_end);
    Some(match points.float("weight") {
        Some(weight) if weight.abs() < 0.5 => from_start,
        Some(_) => from_end,
        None => {
            let half = points.number(0.5);
            let size = points.unary(Unary::Abs, weight);
            let is_near = points.binary(Binary::Less, size, half);
            points.select(is_near, from_start, from_end)
        }
    })
}

/// `slope * x` where x is above 0, else `bottom * (exp(rate * x) - 1)`.
fn bent(points: &mut Points<'_, '_>, x: Point, [slope, bottom, rate]: [f64; 3]) -> Point {
    let zero = points.number(0.0);
    let is_above = points.binary(Binary::Less, zero, x);
    let scaled = points.mul(x, rate);
    let below = points.unary(Unary::ExpMinusOne, scaled);
    let below = points.mul(below, bottom);
    let above = points.mul(x, slope);
    points.select(is_above, above, below)
}

/// `log(1 + x)` of a finite number: what `1 + x` has lost of x is added, over the sum.
fn log_of_more(points: &mut Points<'_, '_>, x: Point) -> Point {
    let sum = points.add(x, 1.0);
    let log = points.unary(Unary::Log, sum);
    let kept = points.add(sum, -1.0);
    let lost = points.binary(Binary::Sub, x, kept);
    let lost = points.binary(Binary::Div, lost, sum);
    points.binary(Binary::Add, log, lost)
}

/// `log(1 + exp(beta * x)) / beta`, and x where `beta * x` is above the threshold.
fn softplus(points: &mut Points<'_, '_>, x: Point, beta: f64, threshold: f64) -> Point {
    let scaled = points.mul(x, beta);
    // max(y, 0) + log(1 + exp(-|y|)): nothing overflows.
    let size = points.unary(Unary::Abs, scaled);
    let less = points.unary(Unary::Neg, size);
    let e = points.unary(Unary::Exp, less);
    let log = log_of_more(points, e);
    let relu = points.unary(Unary::Activation(Activation::Relu), scaled);
    let y = points.binary(Binary::Add, relu, log);
    let y = points.mul(y, 1.0 / beta);
    let limit = points.number(threshold);
    let is_above = points.binary(Binary::Less, limit, scaled);
    points.select(is_above, x, y)
}
