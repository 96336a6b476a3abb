//! Functions of the core set that are written by others of it, which every format has.
//!
//! Invariant: a composition gives the function's numbers.

use fx_core::value::{DType, IntoValue};
use fx_core::{Result, function, function_table};

use super::rule::Composed;
use crate::ops;
use crate::tensor::{Dims, Tensor, TensorOrNumber};

/// The function with the parameters that its composition reads, and a result of them.
macro_rules! composed {
    ($($($function:ident)::+ ($($param:ident: $ty:ty),* $(,)?) => $result:expr;)*) => {$(
        function_table! { Composed {
            function!(ops::$($function)::+) => Composed(|call| {
                $(let $param: $ty = call.arg(stringify!($param))?;)*
                let result: Result<_> = $result;
                result.map(IntoValue::into_value)
            })
        } }
    )*};
}

composed! {
    hypot(x: Tensor, other: Tensor) => ((&x * &x)? + (&other * &other)?)?.sqrt();
    copysign(x: Tensor, other: TensorOrNumber) => {
        let other = as_tensor(&x, other)?;
        let size = x.abs()?;
        ops::r#where(&other.lt(0.0)?, (-&size)?, size)
    };
    signbit(x: Tensor) => x.lt(0.0);
    xlogy(x: Tensor, other: TensorOrNumber) => {
        let other = as_tensor(&x, other)?;
        let product = (&x * ops::log(&other)?)?;
        ops::r#where(&x.eq(0.0)?, ops::zeros_like(&product, None)?, product)
    };
    logaddexp(x: Tensor, other: Tensor) => {
        let most = ops::maximum(&x, &other)?;
        let apart = (-(&x - &other)?.abs()?)?;
        most + ops::log1p(&ops::exp(&apart)?)?
    };
    logaddexp2(x: Tensor, other: Tensor) => {
        let most = ops::maximum(&x, &other)?;
        let apart = (-(&x - &other)?.abs()?)?;
        most + (ops::log1p(&ops::exp(&(apart * std::f64::consts::LN_2)?)?)? / std::f64::consts::LN_2)?
    };
    nan_to_num(x: Tensor, nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>) => {
        let most = f64::from(f32::MAX);
        let x = ops::r#where(&ops::isnan(&x)?, nan.unwrap_or(0.0), x)?;
        let x = ops::r#where(&x.eq(f64::INFINITY)?, posinf.unwrap_or(most), x)?;
        ops::r#where(&x.eq(f64::NEG_INFINITY)?, neginf.unwrap_or(-most), x)
    };
    isclose(x: Tensor, other: Tensor, rtol: f64, atol: f64, equal_nan: bool) => {
        let _ = equal_nan;
        let bound = ((other.abs()? * rtol)? + atol)?;
        ops::logical_or(&x.eq(&other)?, &(&x - &other)?.abs()?.le(&bound)?)
    };
    allclose(x: Tensor, other: Tensor, rtol: f64, atol: f64, equal_nan: bool) => {
        let close = ops::isclose(&x, &other, rtol, atol, equal_nan)?;
        ops::equal(&close, &ops::ones_like(&close, None)?)
    };
    var(x: Tensor, dim: Dims, unbiased: bool, keepdim: bool) => {
        let mean = ops::mean(&x, dim.clone(), true)?;
        let apart = (&x - mean)?;
        let sum = ops::sum(&(&apart * &apart)?, dim.clone(), keepdim)?;
        let ones = ops::ones_like(&x, None)?;
        let count = ops::sum(&ones, dim, true)?;
        let count = ops::amax(&count, Dims::All, false)?;
        let count = if unbiased { ops::relu(&(count - 1.0)?)? } else { count };
        sum / count
    };
    inner(x: Tensor, other: Tensor) => ops::tensordot_dims(&x, &other, Dims::One(-1), Dims::One(-1));
    diff(x: Tensor, n: i64, dim: i64, prepend: Option<Tensor>, append: Option<Tensor>) => {
        let mut parts: Vec<Tensor> = prepend.into_iter().collect();
        parts.push(x);
        parts.extend(append);
        let mut x = if parts.len() > 1 { ops::cat(&parts, dim)? } else { parts.remove(0) };
        for _ in 0..n {
            let count = (x.size(dim)? - 1)?;
            x = (ops::narrow(&x, dim, 1, count)? - ops::narrow(&x, dim, 0, count)?)?;
        }
        Ok(x)
    };
    gru_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) => {
        let h = hidden(&x, &w_hh, hx)?;
        let [r, z, n] = ops::linear(&x, &w_ih, b_ih.as_ref())?.chunk(3, -1)?.unpack()?;
        let [hr, hz, hn] = ops::linear(&h, &w_hh, b_hh.as_ref())?.chunk(3, -1)?.unpack()?;
        let (r, z) = (ops::sigmoid(&(r + hr)?)?, ops::sigmoid(&(z + hz)?)?);
        let n = ops::tanh(&(n + (r * hn)?)?)?;
        (&n - (&z * &n)?)? + (z * h)?
    };
    lstm_cell(x: Tensor, h: Option<Tensor>, c: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) => {
        let (h, c) = (hidden(&x, &w_hh, h)?, hidden(&x, &w_hh, c)?);
        let sum = (ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?;
        let [i, f, g, o] = sum.chunk(4, -1)?.unpack()?;
        let c = ((ops::sigmoid(&f)? * c)? + (ops::sigmoid(&i)? * ops::tanh(&g)?)?)?;
        let h = (ops::sigmoid(&o)? * ops::tanh(&c)?)?;
        Ok((h, c))
    };
    rnn_tanh_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) => {
        let h = hidden(&x, &w_hh, hx)?;
        ops::tanh(&(ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?)
    };
    rnn_relu_cell(x: Tensor, hx: Option<Tensor>, w_ih: Tensor, w_hh: Tensor, b_ih: Option<Tensor>, b_hh: Option<Tensor>) => {
        let h = hidden(&x, &w_hh, hx)?;
        ops::relu(&(ops::linear(&x, &w_ih, b_ih.as_ref())? + ops::linear(&h, &w_hh, b_hh.as_ref())?)?)
    };
    hstack(tensors: Vec<Tensor>) => {
        let tensors = tensors.iter().map(ops::atleast_1d).collect::<Result<Vec<_>>>()?;
        let flat = tensors[0].dim()?.concrete().unwrap_or(2) == 1;
        ops::cat(&tensors, i64::from(!flat))
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
        let below = if right { x.ge(&boundaries)? } else { x.gt(&boundaries)? };
        let count = ops::sum(&below, Dims::One(-1), false)?;
        if out_int32 { ops::to_dtype(&count, DType::I32) } else { Ok(count) }
    };
    bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Option<Tensor>) => {
        let y = ops::einsum("...i,oij,...j->...o", &[input1, weight, input2])?;
        match bias { Some(bias) => y + bias, None => Ok(y) }
    };
}

fn as_tensor(x: &Tensor, other: TensorOrNumber) -> Result<Tensor> {
    match other {
        TensorOrNumber::Tensor(other) => Ok(other),
        TensorOrNumber::Number(number) => ops::full_like(x, number, None),
    }
}

/// The state of a cell, zeros if it is not given.
fn hidden(x: &Tensor, w_hh: &Tensor, given: Option<Tensor>) -> Result<Tensor> {
    match given {
        Some(given) => Ok(given),
        None => {
            let size = w_hh.size(1)?;
            match x.dim()?.concrete() {
                Some(1) => ops::new_zeros(x, vec![size], None),
                _ => ops::new_zeros(x, vec![x.size(0)?, size], None),
            }
        }
    }
}
