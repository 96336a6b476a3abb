//! Products of other forms than that of two matrices.

use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::reductions::{summed, without};
use super::{count, like, named, require_equal, rules, tensor, wrong, x};
use crate::ops;

rules! {
    added_outer => ops::addr;
    added_batches => ops::addbmm;
    inner => ops::inner;
    number => ops::vdot;
    trace => ops::trace;
    kron => ops::kron;
    |call| chain(call, "tensors") => ops::multi_dot;
    |call| chain(call, "matrices") => ops::chain_matmul;
    cross => ops::cross;
    cdist => ops::cdist;
    bilinear => ops::bilinear;
    tensordot => ops::tensordot;
    tensordot_dims => ops::tensordot_dims;
    vander => ops::vander;
}

fn added_outer(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, a, b) = (x(call)?, call.tensor("vec1")?, call.tensor("vec2")?);
    let product: Vec<Dim> = a.shape.iter().chain(&b.shape).cloned().collect();
    let shape = call.broadcast(&[&x.shape, &product])?;
    Ok(tensor(shape, result_type(call.args().iter().take(3))))
}

/// The sum of the products of a batch.
fn added_batches(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, a, b) = (x(call)?, call.tensor("batch1")?, call.tensor("batch2")?);
    let ([many, a @ ..], [other, b @ ..]) = (&a.shape[..], &b.shape[..]) else {
        return Err(Error::msg("addbmm: the batches have three dims"));
    };
    call.same(many, other, || "the batches differ".to_string())?;
    let product = call.matmul(a, b)?;
    let shape = call.broadcast(&[&x.shape, &product])?;
    Ok(tensor(shape, result_type(call.args().iter().take(3))))
}

/// The product over the last dims.
fn inner(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    let dtype = result_type(call.args().iter().take(2));
    let ([a @ .., left], [b @ .., right]) = (&x.shape[..], &other.shape[..]) else {
        let shape = x.shape.iter().chain(&other.shape).cloned().collect();
        return Ok(tensor(shape, dtype));
    };
    call.same(left, right, || {
        format!("the shapes {:?} and {:?} do not fit", x.shape, other.shape)
    })?;
    Ok(tensor(a.iter().chain(b).cloned().collect(), dtype))
}

fn number(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = x(call)?.dtype;
    Ok(tensor(Vec::new(), dtype))
}

/// Whole numbers are summed as `i64`.
fn trace(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = x(call)?.dtype.map(summed);
    Ok(tensor(Vec::new(), dtype))
}

fn kron(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    let rank = x.shape.len().max(other.shape.len());
    let size = |shape: &[Dim], at: usize| match (at + shape.len()).checked_sub(rank) {
        Some(at) => shape[at].clone(),
        None => Dim::known(1),
    };
    let shape = (0..rank).map(|at| size(&x.shape, at) * size(&other.shape, at));
    let dtype = x.dtype.zip(other.dtype).map(|(a, b)| a.promote(b));
    Ok(tensor(shape.collect::<Result<_>>()?, dtype))
}

/// The product of several matrices.
fn chain(call: &mut RuleCall<'_>, param: &str) -> Result<Fake> {
    let tensors = call.tensors(param)?;
    let dtype = result_type(call.arg(param)?.items().unwrap_or_default());
    let [first, rest @ ..] = &tensors[..] else {
        return Err(Error::msg("a product of no matrices"));
    };
    let mut shape = first.shape.clone();
    for next in rest {
        shape = call.matmul(&shape, &next.shape)?;
    }
    Ok(tensor(shape, dtype))
}

fn cross(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    let shape = call.broadcast(&[&x.shape, &other.shape])?;
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

/// The distances of the rows of two matrices.
fn cdist(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let ([before_a @ .., rows, inner], [before_b @ .., others, size]) =
        (&a.shape[..], &b.shape[..])
    else {
        return Err(Error::msg("cdist: the tensors have two dims or more"));
    };
    call.same(inner, size, || {
        format!("the shapes {:?} and {:?} do not fit", a.shape, b.shape)
    })?;
    let mut shape = call.broadcast(&[before_a, before_b])?;
    shape.extend([rows.clone(), others.clone()]);
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

fn bilinear(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (input, weight) = (call.tensor("input1")?, call.tensor("weight")?);
    let mut shape = input.shape.clone();
    if let (Some(last), Some(outputs)) = (shape.last_mut(), weight.shape.first()) {
        *last = outputs.clone();
    }
    Ok(like(&fx_core::ir::TensorMeta::new(shape), input.dtype))
}

/// The product over the last dims of one and the first of the other.
fn tensordot(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("a")?, call.tensor("b")?);
    let dims = usize::try_from(count(call, "dims")?).map_err(Error::other)?;
    let kept = a.shape.len().checked_sub(dims);
    let (Some(kept), true) = (kept, dims <= b.shape.len()) else {
        return Err(wrong(
            call,
            format_args!(
                "the shapes {:?} and {:?} have {dims} dims",
                a.shape, b.shape
            ),
        ));
    };
    let (outer, left) = a.shape.split_at(kept);
    let (right, rest) = b.shape.split_at(dims);
    require_equal(call, left, right)?;
    let shape = outer.iter().chain(rest).cloned().collect();
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

/// The product over dims that are named.
fn tensordot_dims(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("a")?, call.tensor("b")?);
    let of = |param: &str, shape: &[Dim]| {
        let places = named(call, param, shape.len())?;
        let places = places.unwrap_or_else(|| (0..shape.len()).collect());
        let sizes = places.iter().filter_map(|at| shape.get(*at)).cloned();
        let sizes: Vec<Dim> = sizes.collect();
        Ok::<_, Error>((without(shape, &places, false), sizes))
    };
    let ((outer, left), (rest, right)) = (of("dims_a", &a.shape)?, of("dims_b", &b.shape)?);
    require_equal(call, &left, &right)?;
    let shape = outer.into_iter().chain(rest).collect();
    Ok(tensor(shape, result_type(call.args().iter().take(2))))
}

/// Powers of whole numbers are `int64`.
fn vander(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let [size] = &x.shape[..] else {
        return Err(wrong(
            call,
            format_args!("the shape {:?} is not that of a vector", x.shape),
        ));
    };
    let powers = match call.arg("n")?.is_none() {
        true => size.clone(),
        false => count(call, "n")?.into(),
    };
    Ok(tensor(vec![size.clone(), powers], x.dtype.map(summed)))
}
