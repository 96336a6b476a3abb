//! Integers of few bits: `QuantizeLinear` and `DequantizeLinear` where the operator set has them for the type, and
//! products and sums elsewhere.

use fx_nn::Result;
use fx_nn::lowering::{Name, OpCall, Operand};
use fx_nn::value::{DType, Dim};

use super::rules;
use crate::dtype::ends;
use crate::out::context::Cx;

rules! {
    quantize_affine => |cx, call| {
        let x = cx.cast(&call.tensor("x")?, DType::F32)?;
        let dtype = call.dtype()?;
        let (low, high) = (call.int("quant_min")?, call.int("quant_max")?);
        if !has_form(cx, dtype) {
            let name = Affine::of(cx, call, &x)?.levels(cx, &x, (low, high));
            let name = cx.given_as(name, DType::F32, dtype)?;
            return call.given(name);
        }
        let mut name = linear(cx, call, "QuantizeLinear", &x, dtype)?;
        if ends(dtype) != Some((low, high)) {
            let (low, high) = (cx.whole(low, dtype), cx.whole(high, dtype));
            name = cx.op("Clip", &[&name, &low, &high]);
        }
        call.given(name)
    },
    dequantize_affine => |cx, call| {
        let x = call.tensor("x")?;
        // Integers of 32 bits have a form without a zero point alone.
        let is_bias = x.dtype == DType::I32 && call.val("zero_point")?.as_f64() == Some(0.0);
        let name = if has_form(cx, x.dtype) || is_bias {
            linear(cx, call, "DequantizeLinear", &x, x.dtype)?
        } else {
            let x = cx.cast(&x, DType::F32)?;
            Affine::of(cx, call, &x)?.values(cx, &x.name)
        };
        call.given(name)
    },
    // Its range may be of any size, and its numbers stay floats.
    fake_quantize_affine => |cx, call| {
        let x = cx.cast(&call.tensor("x")?, DType::F32)?;
        let range = (call.int("quant_min")?, call.int("quant_max")?);
        let affine = Affine::of(cx, call, &x)?;
        let levels = affine.levels(cx, &x, range);
        let values = affine.values(cx, &levels);
        let name = cx.given_as(values, DType::F32, call.dtype()?)?;
        call.given(name)
    },
}

/// Whether the operator set has the two operators for a type.
fn has_form(cx: &Cx, dtype: DType) -> bool {
    match dtype {
        DType::U8 | DType::I8 => true,
        _ => ends(dtype).is_some() && cx.opset() >= 21,
    }
}

/// `QuantizeLinear` or `DequantizeLinear`, whose zero point has the type of the integers; those of 32 bits have none.
fn linear(cx: &mut Cx, call: &OpCall<'_>, op: &str, x: &Operand, integers: DType) -> Result<Name> {
    let scale = parameter(cx, call, "scale", DType::F32)?;
    let node = match integers {
        DType::I32 => cx.node(op).input(&x.name).input(&scale.name),
        _ => {
            let zero_point = match (call.val("zero_point")?.as_f64(), many(&scale)) {
                // A constant for each scale, which engines look for beside weights.
                (Some(zero), Some(count)) => Operand {
                    name: cx.numbers(&vec![zero; count], integers),
                    dtype: integers,
                    shape: scale.shape.clone(),
                },
                _ => parameter(cx, call, "zero_point", integers)?,
            };
            let (scale, zero_point) = alike(cx, scale, zero_point)?;
            cx.node(op).input(&x.name).input(&scale).input(&zero_point)
        }
    };
    let node = match call.is_none("axis")? {
        true => node,
        false => node.int("axis", call.place("axis", x.rank())?),
    };
    Ok(node.output())
}

/// A scale or a zero point: a number, or a tensor without dims or with one.
fn parameter(cx: &mut Cx, call: &OpCall<'_>, name: &str, dtype: DType) -> Result<Operand> {
    if let Some(number) = call.val(name)?.as_f64() {
        return Ok(Operand {
            name: cx.number(number, dtype),
            dtype,
            shape: Vec::new(),
        });
    }
    cx.cast(&call.tensor(name)?, dtype)
}

/// How many scales there are, if there are several and the count is known.
fn many(scale: &Operand) -> Option<usize> {
    match &scale.shape[..] {
        [size] => size.as_known().filter(|size| *size != 1),
        _ => None,
    }
}

/// Both with the same shape: one element alone has no dims, and beside many it is repeated.
fn alike(cx: &mut Cx, scale: Operand, zero_point: Operand) -> Result<(Name, Name)> {
    let is_one = |own: &Operand| own.shape.first().is_none_or(|size| *size == 1);
    let flat = |cx: &mut Cx, own: &Operand| match own.shape.is_empty() {
        true => Ok(own.name.clone()),
        false => cx.reshape(own, &[]),
    };
    match (is_one(&scale), is_one(&zero_point)) {
        (true, true) => Ok((flat(cx, &scale)?, flat(cx, &zero_point)?)),
        (false, false) => Ok((scale.name, zero_point.name)),
        (false, true) => {
            let one = flat(cx, &zero_point)?;
            let sizes = cx.op("Shape", &[&scale.name]);
            Ok((scale.name, cx.op("Expand", &[&one, &sizes])))
        }
        (true, false) => {
            let one = flat(cx, &scale)?;
            let sizes = cx.op("Shape", &[&zero_point.name]);
            Ok((cx.op("Expand", &[&one, &sizes]), zero_point.name))
        }
    }
}

/// Scales and zero points in `float32`, as they stand beside the elements of a tensor.
struct Affine {
    scale: Name,
    inverse: Name,
    zero_point: Name,
}

impl Affine {
    fn of(cx: &mut Cx, call: &OpCall<'_>, x: &Operand) -> Result<Self> {
        let axis = match call.is_none("axis")? {
            true => None,
            false => usize::try_from(call.place("axis", x.rank())?).ok(),
        };
        let mut along = |name: &str| {
            let own = parameter(cx, call, name, DType::F32)?;
            let size = match &own.shape[..] {
                [] => return Ok(own.name),
                [size] => size.clone(),
                _ => Dim::from(1),
            };
            let mut shape = vec![Dim::from(1); axis.map_or(0, |_| x.rank())];
            if let Some(place) = axis.and_then(|axis| shape.get_mut(axis)) {
                *place = size;
            }
            cx.reshape(&own, &shape)
        };
        let (scale, zero_point) = (along("scale")?, along("zero_point")?);
        // The inverse of a number is rounded once, as in fx.
        let inverse = match call.val("scale")?.as_f64() {
            Some(scale) => cx.number(1.0 / scale, DType::F32),
            None => cx.op("Reciprocal", &[&scale]),
        };
        Ok(Affine {
            scale,
            inverse,
            zero_point,
        })
    }

    /// The integers, as floats.
    fn levels(&self, cx: &mut Cx, x: &Operand, (low, high): (i64, i64)) -> Name {
        let scaled = cx.op("Mul", &[&x.name, &self.inverse]);
        let rounded = cx.op("Round", &[&scaled]);
        let moved = cx.op("Add", &[&rounded, &self.zero_point]);
        let (low, high) = (
            cx.number(low as f64, DType::F32),
            cx.number(high as f64, DType::F32),
        );
        cx.op("Clip", &[&moved, &low, &high])
    }

    /// What integers that are held as floats stand for.
    fn values(&self, cx: &mut Cx, levels: &Name) -> Name {
        let moved = cx.op("Sub", &[levels, &self.zero_point]);
        cx.op("Mul", &[&moved, &self.scale])
    }
}
