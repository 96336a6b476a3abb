//! Products of matrices, and layers that are such products.

use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::{rules, tensor, x};
use crate::ops;

rules! {
    |call| matmul(call, "other") => ops::matmul;
    |call| matmul(call, "mat2") => ops::mm, ops::bmm;
    |call| matmul(call, "vec") => ops::mv;
    |call| matmul(call, "tensor") => ops::dot;
    |call| outer(call, "vec2") => ops::outer, ops::ger;
    linear => ops::linear;
    |call| added(call, "mat1", "mat2") => ops::addmm;
    |call| added(call, "batch1", "batch2") => ops::baddbmm;
    |call| added(call, "mat", "vec") => ops::addmv;
    attention => ops::scaled_dot_product_attention;
}

fn matmul(call: &mut RuleCall<'_>, other: &str) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor(other)?);
    let shape = call.matmul(&x.shape, &other.shape)?;
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

fn outer(call: &mut RuleCall<'_>, other: &str) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor(other)?);
    let shape = x.shape.iter().chain(&other.shape).cloned().collect();
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

fn linear(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    let ([before @ .., inner], [outputs, inputs]) = (&x.shape[..], &weight.shape[..]) else {
        return Err(Error::msg(format_args!(
            "linear: the shapes {:?} and {:?} do not fit",
            x.shape, weight.shape
        )));
    };
    call.same(inner, inputs, || {
        format!(
            "the input {:?} does not fit the weight {:?}",
            x.shape, weight.shape
        )
    })?;
    let mut shape: Vec<Dim> = before.to_vec();
    shape.push(outputs.clone());
    Ok(tensor(shape, x.dtype))
}

/// A product that is added to a tensor.
fn added(call: &mut RuleCall<'_>, a: &str, b: &str) -> Result<Fake> {
    let (x, a, b) = (x(call)?, call.tensor(a)?, call.tensor(b)?);
    let product = call.matmul(&a.shape, &b.shape)?;
    let shape = call.broadcast(&[&x.shape, &product])?;
    Ok(tensor(shape, result_type(call.args().iter().take(3))))
}

fn attention(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (query, key, value) = (
        call.tensor("query")?,
        call.tensor("key")?,
        call.tensor("value")?,
    );
    let rank = query.shape.len();
    if rank < 2 || key.shape.len() < 2 || value.shape.len() < 2 {
        return Err(Error::msg(
            "scaled_dot_product_attention: the tensors have two dims or more",
        ));
    }
    let of = |shape: &[Dim], from_end: usize| shape[shape.len() - from_end].clone();
    let differ = || {
        format!(
            "the shapes {:?}, {:?} and {:?} do not fit",
            query.shape, key.shape, value.shape
        )
    };
    call.same(&of(&query.shape, 1), &of(&key.shape, 1), differ)?;
    call.same(&of(&key.shape, 2), &of(&value.shape, 2), differ)?;
    let mut shape = query.shape.clone();
    shape[rank - 1] = of(&value.shape, 1);
    Ok(tensor(shape, query.dtype))
}
