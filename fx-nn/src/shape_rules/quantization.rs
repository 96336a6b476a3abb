//! Integers of few bits: the shape of x, with a scale and a zero point that fit it.

use fx_core::Result;
use fx_core::ir::{TensorMeta, ValueMeta};
use fx_core::shapes::RuleCall;
use fx_core::value::DType;

use super::{
    Elements, kind, like, place, require, require_number, require_rank, require_type, rules, wrong,
    x,
};
use crate::ops::{self, held_by};

rules! {
    quantize => ops::quantize_affine;
    dequantize => ops::dequantize_affine;
    fake_quantize => ops::fake_quantize_affine;
}

fn quantize(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let (low, high) = (call.int("quant_min")?, call.int("quant_max")?);
    let dtype = call.dtype("dtype")?;
    if let Some(dtype) = dtype
        && !held_by(dtype, low, high)
    {
        return Err(wrong(
            call,
            format_args!(
                "`dtype` is `uint8`, `int8`, `uint16` or `int16`, and holds what is from `quant_min` up to `quant_max`, \
                 and not {dtype} with {low} and {high}"
            ),
        ));
    }
    require_affine(call, x)?;
    Ok(like(x, dtype))
}

fn dequantize(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::WholeNumbers)?;
    require_affine(call, x)?;
    Ok(like(x, Some(DType::F32)))
}

fn fake_quantize(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let (low, high) = (call.int("quant_min")?, call.int("quant_max")?);
    if low >= high {
        return Err(wrong(
            call,
            format_args!("`quant_min` is below `quant_max`, and not {low} with {high}"),
        ));
    }
    require_affine(call, x)?;
    Ok(like(x, x.dtype))
}

/// Returns an error unless scale and zero point are numbers, one element, or as many as there are indices along the axis.
fn require_affine(call: &mut RuleCall<'_>, x: &TensorMeta) -> Result<()> {
    require_number(call, "scale", "above 0", |scale| scale > 0.0)?;
    let axis = match call.arg("axis")?.is_none() {
        true => None,
        false => Some(place(call, "axis", x.shape.len())?),
    };
    for (param, elements) in [
        ("scale", Elements::Fractions),
        ("zero_point", Elements::Any),
    ] {
        if kind(call.arg(param)?).is_some() {
            continue;
        }
        let Some(own) = call.arg(param)?.as_tensor() else {
            continue;
        };
        require_type(call, own.dtype, elements)?;
        require_rank(call, own, ..=1)?;
        let own = match &own.shape[..] {
            [size] if *size != 1 => size,
            _ => continue,
        };
        let Some(size) = axis.and_then(|axis| x.shape.get(axis)) else {
            return Err(wrong(
                call,
                format_args!("`{param}` has {own} elements: give the `axis` that they are along"),
            ));
        };
        call.same(size, own, || format!("the size along `axis` and `{param}`"))?;
    }
    Ok(())
}
