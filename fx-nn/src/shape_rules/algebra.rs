//! Products of other forms than that of two matrices.

use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::{RuleCall, result_type};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::products::require_factors;
use super::reductions::{summed, without};
use super::{
    Elements, count, named, place, promoted, require, require_equal, require_number,
    require_one_type, require_rank, require_type_of, rules, tensor, wide, word, wrong, x,
};
use crate::ops;

rules! {
    inner => ops::inner;
    trace => ops::trace;
    kron => ops::kron;
    multi_dot => ops::multi_dot;
    chain_matmul => ops::chain_matmul;
    cross => ops::cross;
    cdist => ops::cdist;
    bilinear => ops::bilinear;
    tensordot => ops::tensordot;
    tensordot_dims => ops::tensordot_dims;
    vander => ops::vander;
}

/// The product over the last dims; of a number with each element.
fn inner(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    let ([a @ .., left], [b @ .., right]) = (&x.shape[..], &other.shape[..]) else {
        let shape = x.shape.iter().chain(&other.shape).cloned().collect();
        return Ok(tensor(shape, result_type(call.args().iter().take(2))));
    };
    require_factors(call, x, other)?;
    call.same(left, right, || {
        format!("the shapes {:?} and {:?} do not fit", x.shape, other.shape)
    })?;
    Ok(tensor(a.iter().chain(b).cloned().collect(), x.dtype))
}

/// Whole numbers are summed as `i64`.
fn trace(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require_rank(call, x, 2..=2)?;
    require(call, x, Elements::Numbers)?;
    Ok(tensor(Vec::new(), x.dtype.map(summed)))
}

fn kron(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    let rank = x.shape.len().max(other.shape.len());
    let sizes = wide(&x.shape, rank)
        .into_iter()
        .zip(wide(&other.shape, rank));
    let shape: Result<_> = sizes.map(|(a, b)| a * b).collect();
    Ok(tensor(shape?, promoted(&[x, other])))
}

/// The product over the last dims of one and the first of the other.
fn tensordot(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
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
    require_factors(call, a, b)?;
    require_equal(call, left, right)?;
    let shape = outer.iter().chain(rest).cloned().collect();
    Ok(tensor(shape, a.dtype))
}

/// The product over dims that are named.
fn tensordot_dims(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("a")?, call.tensor("b")?);
    let of = |param: &str, shape: &[Dim]| {
        let places = named(call, param, shape.len())?;
        let places = places.unwrap_or_else(|| (0..shape.len()).collect());
        let sizes = places.iter().filter_map(|at| shape.get(*at)).cloned();
        let sizes: Vec<Dim> = sizes.collect();
        Ok::<_, Error>((without(shape, &places, false), sizes))
    };
    let ((outer, left), (rest, right)) = (of("dims_a", &a.shape)?, of("dims_b", &b.shape)?);
    require_factors(call, a, b)?;
    require_equal(call, &left, &right)?;
    let shape = outer.into_iter().chain(rest).collect();
    Ok(tensor(shape, a.dtype))
}

/// Powers of whole numbers are `int64`.
fn vander(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
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

/// The ends may be vectors.
fn multi_dot(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let [first, middle @ .., last] = &tensors[..] else {
        return Err(wrong(call, "give two matrices at least"));
    };
    for meta in middle {
        require_rank(call, meta, 2..=2)?;
    }
    for end in [first, last] {
        require_rank(call, end, 1..=2)?;
    }
    chain(call, &tensors)
}

fn chain_matmul(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let matrices = call.tensors("matrices")?;
    for meta in &matrices {
        require_rank(call, meta, 2..=2)?;
    }
    chain(call, &matrices)
}

/// The product of several matrices; one is itself.
fn chain(call: &mut RuleCall<'_>, tensors: &[&TensorMeta]) -> Result<ValueMeta> {
    let [first, rest @ ..] = tensors else {
        return Err(wrong(
            call,
            "the list of matrices is empty: give one at least",
        ));
    };
    let mut shape = first.shape.clone();
    for next in rest {
        require_factors(call, first, next)?;
        shape = call.matmul(&shape, &next.shape)?;
    }
    Ok(tensor(shape, first.dtype))
}

/// Vectors of three elements; without a dim along the first of that size.
fn cross(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    require_factors(call, x, other)?;
    let rank = x.shape.len();
    require_rank(call, other, rank..=rank)?;
    let place = match call.arg("dim")?.is_none() {
        true => x.shape.iter().position(|size| *size == 3),
        false => Some(place(call, "dim", rank)?),
    };
    let sizes = place.and_then(|at| x.shape.get(at).zip(other.shape.get(at)));
    let Some((own, theirs)) = sizes else {
        return Err(wrong(
            call,
            "the tensors have no dim of size 3 to multiply along",
        ));
    };
    for size in [own, theirs] {
        call.same(size, &3.into(), || {
            "the dim of the vectors has the size 3".to_string()
        })?;
    }
    Ok(tensor(call.broadcast(&[&x.shape, &other.shape])?, x.dtype))
}

/// The distances of the rows of two matrices.
fn cdist(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    require(call, a, Elements::Fractions)?;
    require_one_type(call, a, b)?;
    require_number(call, "p", "0 or above", |p| p >= 0.0)?;
    let modes = [
        "use_mm_for_euclid_dist_if_necessary",
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ];
    word(call, "compute_mode", &modes)?;
    let ([before_a @ .., rows, inner], [before_b @ .., others, size]) =
        (&a.shape[..], &b.shape[..])
    else {
        return Err(wrong(
            call,
            format_args!("{:?} and {:?} have two dims at least", a.shape, b.shape),
        ));
    };
    call.same(inner, size, || {
        format!("the shapes {:?} and {:?} do not fit", a.shape, b.shape)
    })?;
    let mut shape = call.broadcast(&[before_a, before_b])?;
    shape.extend([rows.clone(), others.clone()]);
    Ok(tensor(shape, a.dtype))
}

fn bilinear(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("input1")?, call.tensor("input2")?);
    let weight = call.tensor("weight")?;
    require_type_of(call, a, &["input2", "weight", "bias"])?;
    let ([lead, rows], [others, columns]) = (last_of(call, a)?, last_of(call, b)?);
    let [outputs, sizes @ ..] = &weight.shape[..] else {
        return Err(wrong(
            call,
            "the weight has three dims: [outputs, rows, columns]",
        ));
    };
    require_equal(call, lead, others)?;
    require_equal(call, &[rows, columns].concat(), sizes)?;
    if let Some(bias) = call.optional_tensor("bias")? {
        require_equal(call, &bias.shape, std::slice::from_ref(outputs))?;
    }
    let shape = lead.iter().chain([outputs]).cloned().collect();
    Ok(tensor(shape, a.dtype))
}

/// The sizes before the last, and the last.
fn last_of<'m>(call: &RuleCall<'_>, meta: &'m TensorMeta) -> Result<[&'m [Dim]; 2]> {
    match meta.shape.len().checked_sub(1) {
        Some(last) => {
            let (lead, last) = meta.shape.split_at(last);
            Ok([lead, last])
        }
        None => Err(wrong(call, "an input has a dim of features at least")),
    }
}
