//! Complex tensors: while a program is read, one is a pair of tensors, its real and its imaginary parts.
//!
//! Invariant: an operator that is not listed here takes no pair, and so refuses complex tensors.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, same_function};
use crate::call::Call;

/// Operators that do the same to both parts.
const EACH: [&str; 29] = [
    "aten.alias",
    "aten.cat",
    "aten.chunk",
    "aten.clone",
    "aten.contiguous",
    "aten.detach",
    "aten.expand",
    "aten.fft_fftshift",
    "aten.fft_ifftshift",
    "aten.flatten",
    "aten.flip",
    "aten.index_select",
    "aten.mean",
    "aten.neg",
    "aten.permute",
    "aten.repeat",
    "aten.reshape",
    "aten.roll",
    "aten.select",
    "aten.slice",
    "aten.split",
    "aten.stack",
    "aten.squeeze",
    "aten.sum",
    "aten.transpose",
    "aten.unflatten",
    "aten.unsqueeze",
    "aten.view",
    "aten.zeros_like",
];

/// The two parts of a value that is complex.
fn parts(value: &Value) -> Option<[Tensor; 2]> {
    match value {
        Value::Tuple(both) => match &**both {
            [re, im] => {
                let part = |x: &Value| Tensor::from_value(x.clone()).ok();
                Some([part(re)?, part(im)?])
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value is a complex tensor.
pub(crate) fn is_complex(value: &Value) -> bool {
    parts(value).is_some()
}

fn pair(re: Tensor, im: Tensor) -> Value {
    Value::Tuple(vec![Value::object(re), Value::object(im)].into())
}

/// What an operator gives of complex arguments, if it has one.
pub(crate) fn run(
    operator: &str,
    call: &Call<'_>,
    each: impl Fn(&Call<'_>) -> Result<Value>,
) -> Option<Result<Value>> {
    let has_pair = |value: &Value| match value {
        Value::List(items) => items.iter().any(is_complex),
        value => is_complex(value),
    };
    if !call.args.iter().any(|(_, value)| has_pair(value)) {
        return None;
    }
    match operator {
        "aten.mul" | "aten.multiply" => Some(product(call)),
        "aten.add" => Some(sum(operator::add, call)),
        "aten.sub" => Some(sum(operator::sub, call)),
        "aten.div" => Some(quotient(call)),
        "aten.abs" => Some(absolute(call)),
        "aten.to" | "aten._to_copy" => Some(to(call)),
        _ if EACH.contains(&operator) => {
            let part = |at: usize| -> Result<Value> {
                let of = |value: &Value| match parts(value) {
                    Some(both) => Value::object(both[at].clone()),
                    None => value.clone(),
                };
                let args = call.args.iter().map(|(name, value)| {
                    let own = match value {
                        Value::List(items) => Value::List(items.iter().map(of).collect()),
                        value => of(value),
                    };
                    (*name, own)
                });
                each(&call.with_args(args.collect()))
            };
            let both = part(0).and_then(|re| Ok((re, part(1)?)));
            Some(both.and_then(|(re, im)| joined(re, im)))
        }
        _ => None,
    }
}

/// Pairs of what two parts give: tensors, or lists of as many.
fn joined(re: Value, im: Value) -> Result<Value> {
    match (&re, &im) {
        (Value::List(re), Value::List(im)) => {
            let both = re.iter().zip(im.iter());
            let items = both.map(|(re, im)| joined(re.clone(), im.clone()));
            Ok(Value::List(items.collect::<Result<Vec<Value>>>()?.into()))
        }
        _ => Ok(Value::Tuple(vec![re, im].into())),
    }
}

/// The parts of an operand; a real one has none that is imaginary.
fn operand(value: &Value) -> Result<(Value, Option<Value>)> {
    Ok(match parts(value) {
        Some([re, im]) => (Value::object(re), Some(Value::object(im))),
        None => (value.clone(), None),
    })
}

fn two(function: Function, a: &Value, b: &Value) -> Result<Value> {
    function.call_as((a.clone(), b.clone()))
}

fn product(call: &Call<'_>) -> Result<Value> {
    let ((a, b), (c, d)) = (operand(call.at(0)?)?, operand(call.value("other")?)?);
    let mul = |a: &Value, b: &Value| two(operator::mul, a, b);
    let (re, im) = match (b, d) {
        (Some(b), Some(d)) => (
            two(operator::sub, &mul(&a, &c)?, &mul(&b, &d)?)?,
            two(operator::add, &mul(&a, &d)?, &mul(&b, &c)?)?,
        ),
        (Some(b), None) => (mul(&a, &c)?, mul(&b, &c)?),
        (None, Some(d)) => (mul(&a, &c)?, mul(&a, &d)?),
        (None, None) => return Err(Error::msg("neither operand is complex")),
    };
    joined(re, im)
}

fn quotient(call: &Call<'_>) -> Result<Value> {
    match (operand(call.at(0)?)?, operand(call.value("other")?)?) {
        ((a, Some(b)), (c, None)) => joined(
            two(operator::truediv, &a, &c)?,
            two(operator::truediv, &b, &c)?,
        ),
        _ => Err(Error::msg("a division by a complex tensor is not read")),
    }
}

/// A sum or a difference.
fn sum(function: Function, call: &Call<'_>) -> Result<Value> {
    if !matches!(call.get("alpha"), None | Some(Value::Int(1))) {
        return Err(Error::msg("`alpha` of a complex sum is not 1"));
    }
    let ((a, b), (c, d)) = (operand(call.at(0)?)?, operand(call.value("other")?)?);
    match (b, d) {
        (Some(b), Some(d)) => joined(two(function, &a, &c)?, two(function, &b, &d)?),
        _ => Err(Error::msg(
            "a sum of a complex and a real operand is not read",
        )),
    }
}

/// The tensor in another type of complex numbers, if one is named.
/// A complex tensor, or a real one, as a complex one of the type that is named.
pub(super) fn to(call: &Call<'_>) -> Result<Value> {
    let dtype = match call.get("dtype") {
        None => return Ok(call.at(0)?.clone()),
        Some(Value::Str(name)) if &**name == "complex64" => DType::F32,
        Some(Value::Str(name)) if &**name == "complex128" => DType::F64,
        Some(other) => {
            return Err(Error::msg(format_args!(
                "a complex tensor as {}",
                other.describe()
            )));
        }
    };
    let [re, im] = both_parts(call)?;
    Ok(pair(ops::to_dtype(&re, dtype)?, ops::to_dtype(&im, dtype)?))
}

fn own(call: &Call<'_>) -> Result<[Tensor; 2]> {
    parts(call.at(0)?).ok_or_else(|| Error::msg("the tensor is not complex"))
}

fn absolute(call: &Call<'_>) -> Result<Value> {
    let [re, im] = own(call)?;
    Ok(Value::object(ops::hypot(&re, &im)?))
}

fn real(call: &Call<'_>) -> Result<Value> {
    match parts(call.at(0)?) {
        Some([re, _]) => Ok(Value::object(re)),
        None => Ok(call.at(0)?.clone()),
    }
}

fn imag(call: &Call<'_>) -> Result<Value> {
    let [_, im] = own(call)?;
    Ok(Value::object(im))
}

fn angle(call: &Call<'_>) -> Result<Value> {
    let [re, im] = own(call)?;
    Ok(Value::object(ops::atan2(&im, &re)?))
}

fn conjugate(call: &Call<'_>) -> Result<Value> {
    match parts(call.at(0)?) {
        Some([re, im]) => Ok(pair(re, ops::neg(&im)?)),
        None => Ok(call.at(0)?.clone()),
    }
}

/// As fx has complex tensors: their last dim has both parts.
fn stacked(both: &[Tensor; 2]) -> Result<Tensor> {
    ops::stack(both, -1)
}

fn unstacked(x: &Tensor) -> Result<Value> {
    Ok(pair(ops::select(x, -1, 0)?, ops::select(x, -1, 1)?))
}

fn view_as_real(call: &Call<'_>) -> Result<Value> {
    Ok(Value::object(stacked(&own(call)?)?))
}

fn view_as_complex(call: &Call<'_>) -> Result<Value> {
    unstacked(&call.own()?)
}

fn complex(call: &Call<'_>) -> Result<Value> {
    Ok(pair(call.of("real")?, call.of("imag")?))
}

fn polar(call: &Call<'_>) -> Result<Value> {
    let (length, angle): (Tensor, Tensor) = (call.of("abs")?, call.of("angle")?);
    Ok(pair(
        (&length * ops::cos(&angle)?)?,
        (&length * ops::sin(&angle)?)?,
    ))
}

/// A real tensor with imaginary parts of zero.
fn of_real(re: Tensor) -> Result<[Tensor; 2]> {
    let im = ops::zeros_like(&re, None)?;
    Ok([re, im])
}

/// The parts of the first argument, which may be real.
fn both_parts(call: &Call<'_>) -> Result<[Tensor; 2]> {
    match parts(call.at(0)?) {
        Some(both) => Ok(both),
        None => of_real(call.own()?),
    }
}

/// The complex tensor of an argument, which may be real.
fn wide(call: &Call<'_>) -> Result<Tensor> {
    stacked(&both_parts(call)?)
}

/// A transform of complex numbers: the dims of its result count without the one of the parts.
fn transform(function: Function, call: &Call<'_>) -> Result<Value> {
    let x = wide(call)?;
    let call = call.with_own(Value::object(x));
    unstacked(&Tensor::from_value(same_function(function, &[], &call)?)?)
}

/// A transform of real numbers along one dim.
fn forward(function: Function, call: &Call<'_>) -> Result<Value> {
    unstacked(&Tensor::from_value(same_function(function, &[], call)?)?)
}

/// A spectrum of each frame of a signal, `[.., frequencies, frames]`; what is before its start and behind its end stands in
/// it.
fn stft(call: &Call<'_>) -> Result<Value> {
    if call.or("center", false)? || !call.or("return_complex", true)? {
        return Err(Error::msg(
            "`torch.stft` is read with `return_complex=True`, and pads before it calls this",
        ));
    }
    let size: usize = call.of("n_fft")?;
    let (hop, length) = (call.maybe("hop_length")?, call.maybe("win_length")?);
    let window: Option<Tensor> = call.maybe("window")?;
    let (normalized, onesided) = (call.or("normalized", false)?, call.or("onesided", true)?);
    unstacked(&ops::stft(
        &call.own()?,
        size,
        hop,
        length,
        window.as_ref(),
        false,
        "constant",
        normalized,
        onesided,
    )?)
}

/// The signal of spectra `[.., frequencies, frames]`.
fn istft(call: &Call<'_>) -> Result<Value> {
    if call.or("return_complex", false)? {
        return Err(Error::msg(
            "`torch.istft` is read with `return_complex=False`",
        ));
    }
    let without = |(name, _): &&(&str, Value)| *name != "return_complex";
    let call = call.with_args(call.args.iter().filter(without).cloned().collect());
    inverse(function!(ops::istft), &call)
}

/// A transform of complex numbers that gives real ones.
fn inverse(function: Function, call: &Call<'_>) -> Result<Value> {
    let call = call.with_own(Value::object(wide(call)?));
    same_function(function, &[], &call)
}

/// The norms that PyTorch numbers.
fn norm(call: &Call<'_>, is_forward: bool) -> Result<&'static str> {
    match (call.of::<i64>("normalization")?, is_forward) {
        (0, true) | (2, false) => Ok("backward"),
        (1, _) => Ok("ortho"),
        (2, true) | (0, false) => Ok("forward"),
        (other, _) => Err(Error::msg(format_args!("`normalization` is {other}"))),
    }
}

/// A transform of real numbers along several dims: the last of them first, and the others as of complex numbers.
fn real_to_complex(call: &Call<'_>) -> Result<Value> {
    let dims: Vec<i64> = call.of("dim")?;
    let norm = norm(call, true)?;
    let (last, others) = dims
        .split_last()
        .ok_or_else(|| Error::msg("there are no dims"))?;
    let is_half: bool = call.of("onesided")?;
    let x = match is_half {
        true => ops::fft::rfft(&call.own()?, None, *last, Some(norm))?,
        false => ops::fft::fft(&wide(call)?, None, *last, Some(norm))?,
    };
    let all = others
        .iter()
        .try_fold(x, |x, dim| ops::fft::fft(&x, None, *dim, Some(norm)))?;
    unstacked(&all)
}

/// A transform of complex numbers along several dims, or its inverse.
fn complex_to_complex(call: &Call<'_>) -> Result<Value> {
    let dims: Vec<i64> = call.of("dim")?;
    let is_forward: bool = call.of("forward")?;
    let norm = norm(call, is_forward)?;
    let all = dims
        .iter()
        .try_fold(wide(call)?, |x, dim| match is_forward {
            true => ops::fft::fft(&x, None, *dim, Some(norm)),
            false => ops::fft::ifft(&x, None, *dim, Some(norm)),
        })?;
    unstacked(&all)
}

/// Its inverse, of which the last dim comes last.
fn complex_to_real(call: &Call<'_>) -> Result<Value> {
    let dims: Vec<i64> = call.of("dim")?;
    let norm = norm(call, false)?;
    let (last, others) = dims
        .split_last()
        .ok_or_else(|| Error::msg("there are no dims"))?;
    let size: Int = call.of("last_dim_size")?;
    let x = others.iter().try_fold(wide(call)?, |x, dim| {
        ops::fft::ifft(&x, None, *dim, Some(norm))
    })?;
    Ok(Value::object(ops::fft::irfft(
        &x,
        Some(size),
        *last,
        Some(norm),
    )?))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.real" => real,
    "aten.imag" => imag,
    "aten.angle" => angle,
    "aten.conj" => conjugate,
    "aten._conj" => conjugate,
    "aten.conj_physical" => conjugate,
    "aten.view_as_real" => view_as_real,
    "aten.view_as_complex" => view_as_complex,
    "aten.complex" => complex,
    "aten.polar" => polar,
    "aten.fft_fft" => |call| transform(function!(ops::fft::fft), call),
    "aten.fft_fft2" => |call| transform(function!(ops::fft::fft2), call),
    "aten.fft_fftn" => |call| transform(function!(ops::fft::fftn), call),
    "aten.fft_ifft" => |call| transform(function!(ops::fft::ifft), call),
    "aten.fft_ifft2" => |call| transform(function!(ops::fft::ifft2), call),
    "aten.fft_ifftn" => |call| transform(function!(ops::fft::ifftn), call),
    "aten.fft_rfft" => |call| forward(function!(ops::fft::rfft), call),
    "aten.fft_rfft2" => |call| forward(function!(ops::fft::rfft2), call),
    "aten.fft_rfftn" => |call| forward(function!(ops::fft::rfftn), call),
    "aten.fft_ihfft" => |call| forward(function!(ops::fft::ihfft), call),
    "aten.fft_ihfft2" => |call| forward(function!(ops::fft::ihfft2), call),
    "aten.fft_ihfftn" => |call| forward(function!(ops::fft::ihfftn), call),
    "aten.fft_irfft2" => |call| inverse(function!(ops::fft::irfft2), call),
    "aten.fft_irfftn" => |call| inverse(function!(ops::fft::irfftn), call),
    "aten.fft_hfft" => |call| inverse(function!(ops::fft::hfft), call),
    "aten.fft_hfft2" => |call| inverse(function!(ops::fft::hfft2), call),
    "aten.fft_hfftn" => |call| inverse(function!(ops::fft::hfftn), call),
    "aten.fft_irfft" => |call| inverse(function!(ops::fft::irfft), call),
    "aten.stft.default" => stft,
    "aten.istft" => istft,
    "aten._fft_c2c" => complex_to_complex,
    "aten._fft_r2c" => real_to_complex,
    "aten._fft_c2r" => complex_to_real,
};
