//! Functions of the core set that are written by others of it, which every format has.
//!
//! Invariant: a composition gives the function's numbers.

use fx_core::passes::DecomposedCall;
use fx_core::value::{DType, IntoValue};
use fx_core::{Error, Result, function, function_table};

use super::rule::Composed;
use crate::decompositions::{dtype_of, rank_of, reduced, widened};
use crate::ops;
use crate::tensor::{Dims, Number, Tensor, TensorOrNumber};

/// The function with the parameters that its composition reads, the call where it asks for types, and a result of them.
macro_rules! composed {
    ($($($function:ident)::+ ($($param:ident: $ty:ty),* $(,)?) $(|$asked:ident|)? => $result:expr;)*) => {$(
        function_table! { Composed {
            function!(ops::$($function)::+) => Composed(|call| {
                $(let $asked = call;)?
                $(let $param: $ty = call.arg(stringify!($param))?;)*
                let result: Result<_> = $result;
                result.map(IntoValue::into_value)
            })
        } }
    )*};
}

composed! {
    hypot(x: Tensor, other: Tensor) |call| => in_floats(call, [&x, &other], |x, other| {
        let (x, other) = (x.abs()?, other.abs()?);
        let most = ops::maximum(&x, &other)?;
        // The square of a share is at most 1, where that of a large side overflows.
        let share = (ops::minimum(&x, &other)? / &most)?;
        let length = (&most * (1.0 + (&share * &share)?)?.sqrt()?)?;
        let length = ops::r#where(&most.eq(0.0)?, &most, length)?;
        let is_infinite = ops::logical_or(&x.eq(f64::INFINITY)?, &other.eq(f64::INFINITY)?)?;
        ops::r#where(&is_infinite, f64::INFINITY, length)
    });
    // No format has gradients.
    detach(x: Tensor) => Ok(x);
    copysign(x: Tensor, other: TensorOrNumber) => {
        let (x, other) = as_floats(&x, other)?;
        let size = x.abs()?;
        ops::r#where(&is_negative(&other)?, (-&size)?, size)
    };
    signbit(x: Tensor) => is_negative(&x);
    xlogy(x: Tensor, other: TensorOrNumber) => {
        let (x, other) = as_floats(&x, other)?;
        let product = (&x * ops::log(&other)?)?;
        let is_nothing = ops::logical_and(&x.eq(0.0)?, &ops::logical_not(&ops::isnan(&other)?)?)?;
        ops::r#where(&is_nothing, 0.0, product)
    };
    special::xlog1py(x: Tensor, other: TensorOrNumber) => {
        let (x, other) = as_floats(&x, other)?;
        let product = (&x * ops::log1p(&other)?)?;
        let is_nothing = ops::logical_and(&x.eq(0.0)?, &ops::logical_not(&ops::isnan(&other)?)?)?;
        ops::r#where(&is_nothing, 0.0, product)
    };
    special::entr(x: Tensor) |call| => widened(call, ("x", &as_float(call, "x", x)?), |x| {
        let product = (-(x * ops::log(x)?)?)?;
        let product = ops::r#where(&x.eq(0.0)?, 0.0, product)?;
        ops::r#where(&x.lt(0.0)?, f64::NEG_INFINITY, product)
    });
    logaddexp(x: Tensor, other: Tensor) |call| => in_floats(call, [&x, &other], |x, other| {
        let apart = (-apart(x, other)?)?;
        ops::maximum(x, other)? + ops::log1p(&ops::exp(&apart)?)?
    });
    logaddexp2(x: Tensor, other: Tensor) |call| => in_floats(call, [&x, &other], |x, other| {
        let apart = (apart(x, other)? * -std::f64::consts::LN_2)?;
        ops::maximum(x, other)? + (ops::log1p(&ops::exp(&apart)?)? / std::f64::consts::LN_2)?
    });
    nan_to_num(x: Tensor, nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>) |call| => {
        let dtype = dtype_of(call, "x").ok_or_else(|| Error::msg("the element type of `x` is not known"))?;
        match Number::limits(dtype) {
            Some((least, most, ..)) if dtype.is_floating_point() => {
                let y = ops::r#where(&ops::isnan(&x)?, nan.unwrap_or(0.0), &x)?;
                let y = ops::r#where(&x.eq(f64::INFINITY)?, posinf.unwrap_or(most), y)?;
                ops::r#where(&x.eq(f64::NEG_INFINITY)?, neginf.unwrap_or(least), y)
            }
            _ => Ok(x),
        }
    };
    isclose(x: Tensor, other: Tensor, rtol: f64, atol: f64, equal_nan: bool) |call| => {
        let mut found = x.eq(&other)?;
        if equal_nan {
            found = ops::logical_or(&found, &ops::logical_and(&x.ne(&x)?, &other.ne(&other)?)?)?;
        }
        let (x, other) = (as_float(call, "x", x)?, as_float(call, "other", other)?);
        let allowed = ((&other * rtol)?.abs()? + atol)?;
        let distance = (&x - &other)?.abs()?;
        let is_within = ops::logical_and(&distance.le(&allowed)?, &distance.lt(f64::INFINITY)?)?;
        ops::logical_or(&found, &is_within)
    };
    allclose(x: Tensor, other: Tensor, rtol: f64, atol: f64, equal_nan: bool) => {
        let close = ops::isclose(&x, &other, rtol, atol, equal_nan)?;
        ops::equal(&close, &ops::ones_like(&close, None)?)
    };
    binary_cross_entropy(x: Tensor, target: Tensor, weight: Option<Tensor>, reduction: String) =>
        reduced(cross_entropy(&x, &target, weight.as_ref()), &reduction);
    var(x: Tensor, dim: Dims, unbiased: bool, keepdim: bool) |call| => widened(call, ("x", &x), |x| {
        let mean = ops::mean(x, dim.clone(), true)?;
        let apart = (x - mean)?;
        let sum = ops::sum(&(&apart * &apart)?, dim.clone(), keepdim)?;
        let ones = ops::ones_like(x, None)?;
        let count = ops::sum(&ones, dim, keepdim)?;
        let count = if unbiased { ops::relu(&(count - 1.0)?)? } else { count };
        sum / count
    });
    inner(x: Tensor, other: Tensor) |call| => match [rank_of(call, "x"), rank_of(call, "other")] {
        // A number scales the other.
        [Some(0), _] | [_, Some(0)] => &x * &other,
        _ => ops::tensordot_dims(&x, &other, Dims::One(-1), Dims::One(-1)),
    };
    diff(x: Tensor, n: i64, dim: i64, prepend: Option<Tensor>, append: Option<Tensor>) |call| => {
        let is_truth = dtype_of(call, "x") == Some(DType::Bool);
        let given = [("x", true), ("prepend", prepend.is_some()), ("append", append.is_some())];
        let sizes = given.into_iter().filter(|(_, is_given)| *is_given);
        let sizes = sizes.map(|(name, _)| known_size(call, name, dim));
        let most = sizes.sum::<Option<usize>>().map_or(n, |all| i64::try_from(all).unwrap_or(n));
        let mut parts: Vec<Tensor> = prepend.into_iter().collect();
        parts.push(x);
        parts.extend(append);
        let mut x = if parts.len() > 1 { ops::cat(&parts, dim)? } else { parts.remove(0) };
        // Of nothing, nothing is left.
        for _ in 0..n.min(most) {
            let count = (x.size(dim)? - 1)?;
            let (next, last) = (ops::narrow(&x, dim, 1, count)?, ops::narrow(&x, dim, 0, count)?);
            // Truth values differ or not.
            x = if is_truth { (next ^ last)? } else { (next - last)? };
        }
        Ok(x)
    };
    gru_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) |call| => {
        let h = hidden(call, &x, &w_hh, hx)?;
        let [r, z, n] = ops::linear(&x, &w_ih, b_ih.as_ref())?.chunk(3, -1)?.unpack()?;
        let [hr, hz, hn] = ops::linear(&h, &w_hh, b_hh.as_ref())?.chunk(3, -1)?.unpack()?;
        let (r, z) = (ops::sigmoid(&(r + hr)?)?, ops::sigmoid(&(z + hz)?)?);
        let n = ops::tanh(&(n + (r * hn)?)?)?;
        (&n - (&z * &n)?)? + (z * h)?
    };
    lstm_cell(x: Tensor, h: Option<Tensor>, c: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) |call| => {
        let (h, c) = (hidden(call, &x, &w_hh, h)?, hidden(call, &x, &w_hh, c)?);
        let sum = (ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?;
        let [i, f, g, o] = sum.chunk(4, -1)?.unpack()?;
        let c = ((ops::sigmoid(&f)? * c)? + (ops::sigmoid(&i)? * ops::tanh(&g)?)?)?;
        let h = (ops::sigmoid(&o)? * ops::tanh(&c)?)?;
        Ok((h, c))
    };
    rnn_tanh_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) |call| => {
        let h = hidden(call, &x, &w_hh, hx)?;
        ops::tanh(&(ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?)
    };
    rnn_relu_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) |call| => {
        let h = hidden(call, &x, &w_hh, hx)?;
        ops::relu(&(ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?)
    };
    vstack(tensors: Vec<Tensor>) => {
        let tensors = tensors.iter().map(ops::atleast_2d).collect::<Result<Vec<_>>>()?;
        ops::cat(&tensors, 0)
    };
    dstack(tensors: Vec<Tensor>) => {
        let tensors = tensors.iter().map(ops::atleast_3d).collect::<Result<Vec<_>>>()?;
        ops::cat(&tensors, 2)
    };
    isin(elements: Tensor, test_elements: Tensor, invert: bool) => {
        let tests = ops::reshape(&test_elements, [-1i64])?;
        let same = ops::unsqueeze(&elements, -1)?.eq(&tests)?;
        let found = ops::any(&same, Dims::One(-1), false)?;
        if invert { ops::logical_not(&found) } else { Ok(found) }
    };
    bucketize(x: Tensor, boundaries: Tensor, out_int32: bool, right: bool) => {
        let x = ops::unsqueeze(&x, -1)?;
        // NaN is above every boundary.
        let above = if right { x.lt(&boundaries)? } else { x.le(&boundaries)? };
        let count = ops::sum(&ops::logical_not(&above)?, Dims::One(-1), false)?;
        if out_int32 { ops::to_dtype(&count, DType::I32) } else { Ok(count) }
    };
    bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Option<Tensor>) => {
        let y = ops::einsum("...i,oij,...j->...o", &[input1, weight, input2])?;
        match bias { Some(bias) => y + bias, None => Ok(y) }
    };
}

/// The size of a dim of an argument, if it is known.
fn known_size(call: &DecomposedCall<'_>, name: &str, dim: i64) -> Option<usize> {
    let shape = &call.meta(name)?.tensor()?.shape;
    let at = if dim < 0 {
        dim + shape.len() as i64
    } else {
        dim
    };
    shape.get(usize::try_from(at).ok()?)?.as_known()
}

/// A float tensor as it is, whole numbers and truth values as `f32`.
fn as_float(call: &DecomposedCall<'_>, name: &str, x: Tensor) -> Result<Tensor> {
    match dtype_of(call, name) {
        Some(dtype) if dtype.is_floating_point() => Ok(x),
        Some(_) => ops::to_dtype(&x, DType::F32),
        None => x / 1.0,
    }
}

/// Both operands in the float type that a quotient of them has.
fn as_floats(x: &Tensor, other: TensorOrNumber) -> Result<(Tensor, Tensor)> {
    let (quotient, other) = match other {
        TensorOrNumber::Tensor(other) => ((x / &other)?, other),
        TensorOrNumber::Number(number) => {
            let quotient = (x / 1.0)?;
            let other = ops::full_like(&quotient, number, None)?;
            (quotient, other)
        }
    };
    Ok((
        ops::type_as(x, &quotient)?,
        ops::type_as(&other, &quotient)?,
    ))
}

/// Where the sign bit is set, NaN aside: of zeros, by their reciprocals.
fn is_negative(x: &Tensor) -> Result<Tensor> {
    ops::logical_or(&x.lt(0)?, &ops::reciprocal(x)?.lt(0)?)
}

/// How far two numbers are apart; equal infinities are not.
fn apart(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    ops::r#where(&x.eq(other)?, 0.0, (x - other)?.abs()?)
}

/// The same of two operands, `x` and `other`, of one half type.
fn in_floats(
    call: &DecomposedCall<'_>,
    [x, other]: [&Tensor; 2],
    compute: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match (dtype_of(call, "x"), dtype_of(call, "other")) {
        (own, theirs) if own == theirs => widened(call, ("x", x), |x| match own {
            Some(DType::F16 | DType::BF16) => compute(x, &ops::to_dtype(other, DType::F32)?),
            _ => compute(x, other),
        }),
        _ => compute(x, other),
    }
}

/// The state of a cell, zeros if it is not given.
fn hidden(
    call: &DecomposedCall<'_>,
    x: &Tensor,
    w_hh: &Tensor,
    given: Option<Tensor>,
) -> Result<Tensor> {
    match given {
        Some(given) => Ok(given),
        None => {
            let size = w_hh.size(1)?;
            let rank = call
                .meta("x")
                .and_then(|meta| Some(meta.tensor()?.shape.len()));
            match rank {
                None => Err(Error::msg("the number of dims of `x` is not known")),
                Some(1) => ops::new_zeros(x, vec![size], None),
                _ => ops::new_zeros(x, vec![x.size(0)?, size], None),
            }
        }
    }
}

/// The cross entropy of probabilities and shares; NaN of numbers that are none, which the function refuses.
fn cross_entropy(p: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    let held = |log: Tensor| ops::clamp(&log, -100.0, None);
    let (yes, no) = (held(p.log()?)?, held(ops::log1p(&(-p)?)?)?);
    let losses = (((target - 1.0)? * no)? - (target * yes)?)?;
    let is_share = |x: &Tensor| x.ge(0.0)? & x.le(1.0)?;
    let losses = ops::r#where(&(is_share(p)? & is_share(target)?)?, losses, f64::NAN)?;
    match weight {
        Some(weight) => losses * weight,
        None => Ok(losses),
    }
}
