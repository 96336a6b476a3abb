//! Element by element.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};

use crate::dtype::TEXT;
use crate::load::leaves::bit_cast;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::text_leaves::{text_equal, text_numbers, text_of};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("Abs", |cx| unary(cx, |x| x.abs())),
    op("Acos", |cx| unary(cx, ops::acos)),
    op("Acosh", |cx| unary(cx, ops::acosh)),
    op("Asin", |cx| unary(cx, ops::asin)),
    op("Asinh", |cx| unary(cx, ops::asinh)),
    op("Atan", |cx| unary(cx, ops::atan)),
    op("Atanh", |cx| unary(cx, ops::atanh)),
    op("Ceil", |cx| unary(cx, ops::ceil)),
    op("Cos", |cx| unary(cx, ops::cos)),
    op("Cosh", |cx| unary(cx, ops::cosh)),
    op("Erf", |cx| unary(cx, ops::erf)),
    op("Exp", |cx| unary(cx, ops::exp)),
    op("Floor", |cx| unary(cx, ops::floor)),
    op("Identity", |cx| Ok(vec![cx.input(0).clone()]))
        .views()
        .reads_text(),
    op("Log", |cx| unary(cx, ops::log)),
    op("Neg", |cx| match cx.input(0) {
        V::Ints(items, scalar) => {
            let items = items
                .iter()
                .map(|n| *n * -1)
                .collect::<Result<Vec<Int>>>()?;
            Ok(vec![V::Ints(items, *scalar)])
        }
        _ => unary(cx, |x| -x),
    }),
    op("Reciprocal", |cx| unary(cx, ops::reciprocal)),
    op("Relu", |cx| {
        unary(cx, |x| match x.dtype() {
            Ok(dtype) if !dtype.is_floating_point() => {
                ops::clamp(x, 0, fx_nn::Bound::from(None::<f64>))
            }
            _ => ops::relu(x),
        })
    }),
    op("Round", |cx| unary(cx, |x| ops::round(x, 0))),
    op("Sigmoid", |cx| unary(cx, ops::sigmoid)),
    op("Sign", |cx| match cx.is_float(0) {
        // Of what is no number it is none, where PyTorch's is 0.
        true => unary(cx, |x| ops::r#where(&ops::isnan(x)?, x, ops::sign(x)?)),
        false => unary(cx, ops::sign),
    }),
    op("Sin", |cx| unary(cx, ops::sin)),
    op("Sinh", |cx| unary(cx, ops::sinh)),
    op("Softsign", |cx| unary(cx, ops::softsign)),
    op("Sqrt", |cx| unary(cx, ops::sqrt)),
    op("Tan", |cx| unary(cx, ops::tan)),
    op("Tanh", |cx| unary(cx, ops::tanh)),
    op("Not", |cx| {
        let x = cx.tensor(0)?;
        cx.of(ops::logical_not(&x)?, DType::Bool)
    }),
    op("BitwiseNot", |cx| unary(cx, ops::bitwise_not)),
    op("Add", |cx| {
        match with_number(cx, |a, b| a + b, |a, b| a + b)? {
            Some(y) => cx.like(y),
            None => arithmetic(cx, |a, b| a + b, |a, b| *a + *b),
        }
    }),
    op("Sub", |cx| {
        match with_number(cx, |a, b| a - b, |a, b| a - b)? {
            Some(y) => cx.like(y),
            None => arithmetic(cx, |a, b| a - b, |a, b| *a - *b),
        }
    }),
    op("Mul", |cx| {
        match with_number(cx, |a, b| a * b, |a, b| a * b)? {
            Some(y) => cx.like(y),
            None => arithmetic(cx, |a, b| a * b, |a, b| *a * *b),
        }
    }),
    op("Div", |cx| match cx.is_float(0) {
        true => match with_number(cx, |a, b| a / b, |a, b| a / b)? {
            Some(y) => cx.like(y),
            None => arithmetic(cx, |a, b| a / b, |a, b| (*a).floordiv(*b)),
        },
        // Toward zero.
        false => arithmetic(cx, truncated, |a, b| (*a).floordiv(*b)),
    }),
    op("Mod", |cx| match cx.flag("fmod") {
        true => {
            let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
            cx.like(ops::fmod(&a, &b)?)
        }
        false => arithmetic(
            cx,
            |a, b| ops::remainder(a, b),
            |a, b| *a - ((*a).floordiv(*b)? * *b)?,
        ),
    }),
    op("Pow", |cx| {
        let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
        let dtype = cx.dtype(0)?;
        let b = match (dtype.is_floating_point(), cx.dtype(1)?.is_floating_point()) {
            (false, true) => {
                let wide = as_type(&a, DType::F64)?;
                let y = wide.pow(&as_type(&b, DType::F64)?)?;
                return cx.of(as_type(&y, dtype)?, dtype);
            }
            _ if cx.dtype(1)? != dtype => as_type(&b, dtype)?,
            _ => b,
        };
        cx.of(a.pow(&b)?, dtype)
    }),
    op("And", |cx| pair(cx, ops::logical_and)),
    op("Or", |cx| pair(cx, ops::logical_or)),
    op("Xor", |cx| pair(cx, ops::logical_xor)),
    op("BitwiseAnd", |cx| pair(cx, |a, b| ops::bitwise_and(a, b))),
    op("BitwiseOr", |cx| pair(cx, |a, b| ops::bitwise_or(a, b))),
    op("BitwiseXor", |cx| pair(cx, |a, b| ops::bitwise_xor(a, b))),
    op("BitShift", |cx| {
        let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
        let y = match &*cx.text("direction", "") {
            "LEFT" => ops::bitwise_left_shift(&a, &b)?,
            _ => ops::bitwise_right_shift(&a, &b)?,
        };
        cx.like(y)
    }),
    op("Equal", |cx| {
        if cx.inputs.iter().any(|v| matches!(v, V::Texts(_))) {
            let is = text_equal(&cx.input(0).texts()?, &cx.input(1).texts()?)?;
            return cx.of(is, DType::Bool);
        }
        compared(cx, |a, b| a.eq(b))
    })
    .reads_text(),
    op("Less", |cx| compared(cx, |a, b| a.lt(b))),
    op("LessOrEqual", |cx| compared(cx, |a, b| a.le(b))),
    op("Greater", |cx| compared(cx, |a, b| a.gt(b))),
    op("GreaterOrEqual", |cx| compared(cx, |a, b| a.ge(b))),
    op("Max", |cx| many(cx, ops::maximum)),
    op("Min", |cx| many(cx, ops::minimum)),
    op("Sum", |cx| many(cx, |a, b| a + b)),
    op("Mean", |cx| {
        let count = cx.inputs.len() as f64;
        let sum = many(cx, |a, b| a + b)?.remove(0).tensor()?;
        cx.like((sum / count)?)
    }),
    op("Where", |cx| {
        let (c, a, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let dtype = cx.input(1).dtype();
        Ok(vec![V::Tensor(ops::r#where(&c, &a, &b)?, dtype)])
    })
    .any_type()
    .moves_text(),
    op("Clip", clip),
    op("IsNaN", |cx| {
        let x = cx.tensor(0)?;
        cx.of(ops::isnan(&x)?, DType::Bool)
    }),
    op("IsInf", |cx| {
        let x = cx.tensor(0)?;
        let y = match (cx.int("detect_negative", 1), cx.int("detect_positive", 1)) {
            (0, 0) => ops::zeros_like(&x, Some(DType::Bool))?,
            (0, _) => ops::isposinf(&x)?,
            (_, 0) => ops::isneginf(&x)?,
            _ => ops::isinf(&x)?,
        };
        cx.of(y, DType::Bool)
    }),
    op("Cast", |cx| {
        match (cx.input(0), cx.int("to", 0) == i64::from(TEXT)) {
            (V::Texts(_), true) => return Ok(vec![cx.input(0).clone()]),
            (V::Texts(x), false) => {
                let dtype = cx.type_of("to")?.unwrap_or(DType::F32);
                return cx.of(text_numbers(x, dtype)?, dtype);
            }
            (_, true) => return Ok(vec![V::Texts(text_of(&cx.tensor(0)?)?)]),
            (_, false) => {}
        }
        let dtype = cx
            .type_of("to")?
            .ok_or_else(|| Error::msg("the type to cast to is missing"))?;
        let given = cx.node.output.first();
        let is_untyped = given.is_some_and(|name| cx.reader.flow.untyped.contains(name));
        // Sizes stay sizes, also where another cast makes them wide again.
        if (dtype == DType::I64 || dtype == DType::I32 && is_untyped)
            && cx.input(0).as_sizes().is_some()
            && matches!(cx.input(0), V::Ints(..))
        {
            return Ok(vec![cx.input(0).clone()]);
        }
        cast(cx, dtype)
    })
    .any_type()
    .reads_text(),
    op("BitCast", |cx| {
        let dtype = cx
            .type_of("to")?
            .ok_or_else(|| Error::msg("the type to read the bits as is missing"))?;
        cx.of(bit_cast(&cx.tensor(0)?, dtype)?, dtype)
    })
    .any_type(),
    op("CastLike", |cx| {
        let dtype = cx.dtype(1)?;
        cast(cx, dtype)
    })
    .any_type(),
    op("Elu", |cx| {
        let alpha = cx.float("alpha", 1.0);
        unary(cx, |x| ops::elu(x, alpha))
    }),
    op("Celu", |cx| {
        let alpha = cx.float("alpha", 1.0);
        unary(cx, |x| ops::celu(x, alpha))
    }),
    op("Selu", |cx| {
        let (alpha, gamma) = (
            cx.float("alpha", 1.673_263_192_176_818_8),
            cx.float("gamma", 1.050_701_022_148_132_3),
        );
        unary(cx, |x| ops::elu(x, alpha)? * gamma)
    }),
    op("LeakyRelu", |cx| {
        let alpha = cx.float("alpha", 0.01);
        unary(cx, |x| ops::leaky_relu(x, alpha))
    }),
    op("ThresholdedRelu", |cx| {
        let alpha = cx.float("alpha", 1.0);
        // What is no number is not above it, where PyTorch's threshold keeps it.
        unary(cx, |x| ops::r#where(&x.gt(alpha)?, x, 0.0))
    }),
    op("HardSigmoid", |cx| {
        let (alpha, beta) = (cx.float("alpha", 0.2), cx.float("beta", 0.5));
        unary(cx, |x| ops::clamp(&((x * alpha)? + beta)?, 0.0, 1.0))
    }),
    op("HardSwish", |cx| unary(cx, ops::hardswish)),
    op("Mish", |cx| unary(cx, ops::mish)),
    op("Softplus", |cx| {
        unary(cx, |x| {
            ops::maximum(x, &ops::zeros_like(x, None)?)? + ops::log1p(&ops::exp(&(-x.abs()?)?)?)?
        })
    }),
    op("Shrink", |cx| {
        let (bias, lambd) = (cx.float("bias", 0.0), cx.float("lambd", 0.5));
        let x = cx.tensor(0)?;
        let zero = ops::zeros_like(&x, None)?;
        let low = ops::r#where(&x.lt(-lambd)?, (&x + bias)?, zero)?;
        cx.like(ops::r#where(&x.gt(lambd)?, (&x - bias)?, low)?)
    }),
    op("Gelu", |cx| {
        let approximate = cx.text("approximate", "none");
        unary(cx, |x| ops::gelu(x, &approximate))
    }),
    op("Swish", |cx| {
        let alpha = cx.float("alpha", 1.0);
        unary(cx, |x| x * ops::sigmoid(&(x * alpha)?)?)
    }),
    op("SwiGLU", |cx| {
        let (gate, linear) = (cx.single(0)?, cx.single(1)?);
        let gate = match cx.float("alpha", 1.0) {
            1.0 => ops::silu(&gate)?,
            alpha => (&gate * ops::sigmoid(&(&gate * alpha)?)?)?,
        };
        Ok(vec![cx.rounded(&(gate * linear)?)?])
    }),
    op("PRelu", |cx| {
        let (x, slope) = (cx.tensor(0)?, cx.tensor(1)?);
        cx.like(ops::r#where(&x.gt(0.0)?, &x, (&x * slope)?)?)
    }),
];

/// Between two bounds. One that is left out is the largest number of the type, as ONNX defines it: infinities become
/// finite.
fn clip(cx: &mut NodeCx<'_>) -> Given {
    let x = cx.tensor(0)?;
    let dtype = cx.input(0).dtype();
    let largest = match cx.dtype(0)? {
        DType::F64 => Some(f64::MAX),
        DType::F32 => Some(f64::from(f32::MAX)),
        DType::BF16 => Some(half::bf16::MAX.to_f64()),
        DType::F16 => Some(half::f16::MAX.to_f64()),
        _ => None,
    };
    let lowest = largest.map(|largest| -largest);
    if cx.version < 11 {
        let bound = |name: &str| cx.attribute(name).and_then(|a| a.f).map(f64::from);
        let (min, max) = (bound("min").or(lowest), bound("max").or(largest));
        return cx.like(ops::clamp(&x, min, max)?);
    }
    // A bound of the file as a number; one that is no number, or beyond all of them, bounds nothing.
    let number = |at: usize, or: Option<f64>, nothing: f64| match cx.has(at) {
        false => Some(or),
        true => {
            let number = cx.input(at).number(dtype)?;
            Some((!number.is_nan() && number != nothing).then_some(number))
        }
    };
    let min = number(1, lowest, f64::NEG_INFINITY);
    let max = number(2, largest, f64::INFINITY);
    match (min, max) {
        (Some(None), Some(None)) => return cx.like(x),
        (Some(min), Some(max)) if min.zip(max).is_none_or(|(min, max)| min <= max) => {
            return cx.like(ops::clamp(&x, min, max)?);
        }
        _ => {}
    }
    let bound = |at: usize, known: Option<Option<f64>>| match (known, cx.optional(at)?) {
        (Some(None), _) => Ok(None),
        (_, Some(given)) => Ok(Some(given)),
        (Some(Some(number)), None) => Tensor::full((), number, cx.dtype(0)?).map(Some),
        (None, None) => Ok::<_, Error>(None),
    };
    let mut y = x;
    if let Some(min) = bound(1, min)? {
        y = ops::maximum(&y, &min)?;
    }
    if let Some(max) = bound(2, max)? {
        y = ops::minimum(&y, &max)?;
    }
    cx.like(y)
}

fn unary(cx: &NodeCx<'_>, compute: impl Fn(&Tensor) -> Result<Tensor>) -> Given {
    let x = cx.tensor(0)?;
    cx.like(compute(&x)?)
}

fn pair(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Given {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.like(compute(&a, &b)?)
}

fn compared(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Given {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.of(compute(&a, &b)?, DType::Bool)
}

/// The quotient of whole numbers, toward zero.
fn truncated(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let whole = (a - ops::fmod(a, b)?)?;
    ops::floor_divide(&whole, b)
}

/// Arithmetic, on sizes where both sides are sizes.
fn arithmetic(
    cx: &NodeCx<'_>,
    compute: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    on_sizes: impl Fn(&Int, &Int) -> Result<Int>,
) -> Given {
    let sized = matches!(cx.input(0), V::Ints(..)) || matches!(cx.input(1), V::Ints(..));
    if sized
        && let (Some((a, a_scalar)), Some((b, b_scalar))) =
            (cx.input(0).as_sizes(), cx.input(1).as_sizes())
    {
        let count = if a.len() == 1 { b.len() } else { a.len() };
        let at = |of: &[Int], at: usize| {
            of.get(if of.len() == 1 { 0 } else { at })
                .cloned()
                .ok_or_else(|| Error::msg("sizes that do not broadcast"))
        };
        let items = (0..count)
            .map(|i| on_sizes(&at(&a, i)?, &at(&b, i)?))
            .collect::<Result<Vec<Int>>>()?;
        return Ok(vec![V::Ints(items, a_scalar && b_scalar)]);
    }
    pair(cx, compute)
}

/// A sum, a difference, a product or a quotient with a number of the file; `None` if neither side is one.
fn with_number(
    cx: &NodeCx<'_>,
    right: impl Fn(&Tensor, f64) -> Result<Tensor>,
    left: impl Fn(f64, &Tensor) -> Result<Tensor>,
) -> Result<Option<Tensor>> {
    let (a, b) = (cx.input(0), cx.input(1));
    let is_symbolic = |v: &V| matches!(v, V::Tensor(x, _) if Object::proxy(x).is_some());
    if let (true, Some(number)) = (is_symbolic(a), b.scalar(a.dtype())) {
        return right(&a.tensor()?, number).map(Some);
    }
    if let (true, Some(number)) = (is_symbolic(b), a.scalar(b.dtype())) {
        return left(number, &b.tensor()?).map(Some);
    }
    Ok(None)
}

fn many(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Given {
    let mut result = cx.tensor(0)?;
    for at in 1..cx.inputs.len() {
        result = compute(&result, &cx.tensor(at)?)?;
    }
    cx.like(result)
}

fn cast(cx: &NodeCx<'_>, dtype: DType) -> Given {
    let x = cx.tensor(0)?;
    if cx.input(0).dtype() == Some(dtype) {
        return cx.of(x, dtype);
    }
    let y = match dtype {
        DType::Bool => x.ne(0)?,
        _ => as_type(&x, dtype)?,
    };
    cx.of(y, dtype)
}
