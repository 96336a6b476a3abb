//! Linear algebra: decompositions, inverses, norms, and products of other forms.

use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::reductions::summed;
use super::{like, rules, tensor, x};
use crate::ops;

rules! {
    |call| square(call, "a", 0) => ops::linalg::inv, ops::linalg::cholesky;
    |call| square(call, "x", 0) => ops::linalg::inverse, ops::linalg::matrix_power;
    |call| square(call, "x", 2) => ops::linalg::det;
    |call| square(call, "a", 1) => ops::linalg::eigvalsh;
    eigh => ops::linalg::eigh;
    slogdet => ops::linalg::slogdet;
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
}

/// A square matrix, or batches of them, without some of the last dims.
fn square(call: &mut RuleCall<'_>, param: &str, without: usize) -> Result<Fake> {
    let meta = call.tensor(param)?;
    let [.., rows, columns] = &meta.shape[..] else {
        return Err(Error::msg(format_args!(
            "{}: {:?} is no matrix",
            call.function().name(),
            meta.shape
        )));
    };
    call.same(rows, columns, || {
        format!("the matrix {:?} is not square", meta.shape)
    })?;
    let kept = meta.shape.len() - without;
    Ok(tensor(meta.shape[..kept].to_vec(), meta.dtype))
}

fn eigh(call: &mut RuleCall<'_>) -> Result<Fake> {
    Ok(Fake::Tuple(vec![
        square(call, "a", 1)?,
        square(call, "a", 0)?,
    ]))
}

fn slogdet(call: &mut RuleCall<'_>) -> Result<Fake> {
    let one = square(call, "x", 2)?;
    Ok(Fake::Tuple(vec![one.clone(), one]))
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
