//! Derivatives of functions of the elements along a dim, in order.

use fx_core::Result;
use fx_core::value::DType;

use super::derivatives;
use crate::func::{Pullback, known};
use crate::ops;
use crate::tensor::Tensor;

derivatives! {
    ops::cumsum => |call| along(call, |grad, _, dim| from_the_end(&grad, dim));
    ops::cumprod => |call| along(call, |grad, x, dim| products(&grad, x, dim));
    ops::logcumsumexp => |call| {
        let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
        call.give("x", |call| {
            let (grad, y): (Tensor, Tensor) = (call.grad()?, call.result()?);
            if known::rank(&x)? == 0 {
                return Ok(grad);
            }
            // Less than the logarithm of any number, and not infinite: infinities have no difference.
            let least = match known::dtype(&grad)? {
                DType::F16 => -6e4,
                _ => -1e30,
            };
            // Each part by itself in logarithms, so that nothing overflows.
            let part = |is_part: Tensor, grad: &Tensor| {
                let logs = ops::log(&ops::r#where(&is_part, grad, 1)?)?;
                let logs = ops::r#where(&is_part, &logs, least)?;
                let all = ops::flip(&ops::logcumsumexp(&ops::flip(&(logs - &y)?, dim)?, dim)?, dim)?;
                ops::exp(&(all + &x)?)
            };
            part(grad.gt(0)?, &grad)? - part(grad.lt(0)?, &(-&grad)?)?
        })
    };
    ops::cummax => |call| running(call);
    ops::cummin => |call| running(call);
    ops::flip => |call| call.give("x", |call| ops::flip(&call.grad()?, call.arg::<crate::tensor::Dims>("dims")?));
}

fn along(
    call: &mut Pullback<'_>,
    rule: impl FnOnce(Tensor, &Tensor, i64) -> Result<Tensor>,
) -> Result<()> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    call.give("x", |call| match known::rank(&x)? {
        0 => call.grad(),
        _ => rule(call.grad()?, &x, dim),
    })
}

/// The sum of each element and those behind it.
fn from_the_end(x: &Tensor, dim: i64) -> Result<Tensor> {
    ops::flip(&ops::cumsum(&ops::flip(x, dim)?, dim)?, dim)
}

/// The gradient of running products: for each pair of places the product without the element. Where no element is 0
/// this is a sum of shares; where one is, products are made of those between.
fn products(grad: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let length =
        known::shape(x, "the derivative of `cumprod`")?[known::place(dim, known::rank(x)?)?];
    let mut parts = Vec::with_capacity(length);
    let at = |x: &Tensor, from: usize, count: usize| ops::narrow(x, dim, from as i64, count as i64);
    for own in 0..length {
        let ones = ops::ones_like(&at(x, own, 1)?, None)?;
        let before = match own {
            0 => ones.clone(),
            _ => {
                let all = ops::cumprod(&at(x, 0, own)?, dim)?;
                at(&all, own - 1, 1)?
            }
        };
        let after = match length - own - 1 {
            0 => ones,
            rest => ops::cumprod(&ops::cat(&[ones, at(x, own + 1, rest)?], dim)?, dim)?,
        };
        let slopes = (before * after)?;
        let grad = at(grad, own, length - own)?;
        parts.push(ops::sum(&(grad * slopes)?, dim, true)?);
    }
    match parts.is_empty() {
        true => Ok(grad.clone()),
        false => ops::cat(&parts, dim),
    }
}

/// Running extremes, with the indices of their elements.
fn running(call: &mut Pullback<'_>) -> Result<()> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    call.give("x", |call| {
        let (grads, items) = (call.grads()?, call.items()?);
        match known::rank(&x)? {
            0 => Ok(grads[0].clone()),
            _ => ops::scatter_add(&ops::zeros_like(&x, None)?, dim, &items[1], &grads[0]),
        }
    })
}
