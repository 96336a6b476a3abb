//! Tensors put together: side by side, as blocks, and in all combinations.

use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::{RuleCall, result_type};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{count, promoted, require_one_type, rules, tensor, wide, word, wrong, x};
use crate::{control, ops};

rules! {
    cat => ops::cat;
    stack => ops::stack;
    stacked => control::stacked;
    |call| with_dims(call, 1) => ops::atleast_1d;
    |call| with_dims(call, 2) => ops::atleast_2d;
    |call| with_dims(call, 3) => ops::atleast_3d;
    |call| joined(call, 2, 0) => ops::vstack, ops::row_stack;
    |call| joined(call, 1, 1) => ops::hstack;
    |call| joined(call, 3, 2) => ops::dstack;
    columns => ops::column_stack;
    blocks => ops::block_diag;
    broadcast => ops::broadcast_tensors;
    meshgrid => ops::meshgrid;
    product => ops::cartesian_prod;
    combinations => ops::combinations;
}

/// How long combinations of a vector of a size with a name can be.
const LONGEST: i64 = 16;

fn empty(call: &RuleCall<'_>) -> Error {
    wrong(call, "the list of tensors is empty: give one at least")
}

/// The shape of all, with the sum of the sizes of one dim; without such a dim all are equal.
pub(super) fn one_shape(
    call: &mut RuleCall<'_>,
    shapes: &[Vec<Dim>],
    along: Option<usize>,
) -> Result<Vec<Dim>> {
    let [first, rest @ ..] = shapes else {
        return Err(empty(call));
    };
    let mut shape = first.clone();
    for other in rest {
        if other.len() != shape.len() {
            return Err(wrong(
                call,
                format_args!("the shapes {first:?} and {other:?} differ in their dims"),
            ));
        }
        for (at, (size, own)) in shape.iter_mut().zip(other).enumerate() {
            match along == Some(at) {
                true => *size = (&*size + own)?,
                false => call.same(size, own, || {
                    format!("the shapes {first:?} and {other:?} do not fit")
                })?,
            }
        }
    }
    Ok(shape)
}

pub(super) fn shapes_of(tensors: &[&TensorMeta]) -> Vec<Vec<Dim>> {
    tensors.iter().map(|meta| meta.shape.clone()).collect()
}

/// The shapes without empty vectors, which fit everything, if there are others.
pub(super) fn without_empty(mut shapes: Vec<Vec<Dim>>) -> Vec<Vec<Dim>> {
    let is_empty = |shape: &[Dim]| matches!(shape, [size] if *size == 0);
    if shapes.iter().any(|shape| !is_empty(shape)) {
        shapes.retain(|shape| !is_empty(shape));
    }
    shapes
}

fn cat(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let dtype = promoted(&tensors);
    let shapes = without_empty(shapes_of(&tensors));
    // Of empty vectors alone, any dim is right.
    if let Some(first) = shapes.first()
        && matches!(&first[..], [size] if *size == 0)
    {
        return Ok(tensor(first.clone(), dtype));
    }
    let rank = shapes.first().ok_or_else(|| empty(call))?.len();
    if rank == 0 {
        return Err(wrong(call, "a number has no dim: use `stack`"));
    }
    let along = super::place(call, "dim", rank)?;
    Ok(tensor(one_shape(call, &shapes, Some(along))?, dtype))
}

fn stack(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dim = call.int("dim")?;
    put_together(call, "tensors", dim)
}

fn stacked(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    if let ValueMeta::Repeated(item, length) = call.arg("items")?
        && let ValueMeta::Single(item) = &**item
    {
        let shape = std::iter::once(length).chain(&item.shape).cloned();
        return Ok(tensor(shape.collect(), item.dtype));
    }
    put_together(call, "items", 0)
}

fn put_together(call: &mut RuleCall<'_>, param: &str, dim: i64) -> Result<ValueMeta> {
    let tensors = call.tensors(param)?;
    let mut shape = one_shape(call, &shapes_of(&tensors), None)?;
    let place = call.place(dim, shape.len() + 1)?;
    shape.insert(place, Dim::from(tensors.len()));
    Ok(tensor(shape, promoted(&tensors)))
}

/// At least so many dims.
fn lifted(shape: &[Dim], dims: usize) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    if dims == 3 && shape.len() == 1 {
        shape.insert(0, Dim::known(1));
    }
    if dims == 3 && shape.len() == 2 {
        shape.push(Dim::known(1));
    }
    wide(&shape, dims)
}

fn with_dims(call: &mut RuleCall<'_>, dims: usize) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(tensor(lifted(&x.shape, dims), x.dtype))
}

/// Joined along a dim, each with some dims at least; vectors along their only one.
fn joined(call: &mut RuleCall<'_>, dims: usize, along: usize) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let lifted = tensors.iter().map(|meta| lifted(&meta.shape, dims));
    let shapes: Vec<Vec<Dim>> = lifted.collect();
    let along = match shapes.first().map(Vec::len) {
        Some(1) => 0,
        _ => along,
    };
    let shape = one_shape(call, &without_empty(shapes), Some(along))?;
    Ok(tensor(shape, promoted(&tensors)))
}

/// Numbers and vectors are columns.
fn columns(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let column = |meta: &&TensorMeta| match &meta.shape[..] {
        [] => vec![Dim::known(1); 2],
        [size] => vec![size.clone(), Dim::known(1)],
        other => other.to_vec(),
    };
    let shapes: Vec<Vec<Dim>> = tensors.iter().map(column).collect();
    let shape = one_shape(call, &shapes, Some(1))?;
    Ok(tensor(shape, promoted(&tensors)))
}

/// The sums of the rows and of the columns.
fn blocks(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let dtype = result_type(call.arg("tensors")?.items().unwrap_or_default());
    let (mut rows, mut columns) = (Dim::known(0), Dim::known(0));
    for meta in &tensors {
        let [high, wide] = &lifted(&meta.shape, 2)[..] else {
            return Err(wrong(
                call,
                format_args!("the shape {:?} has more than two dims", meta.shape),
            ));
        };
        (rows, columns) = ((rows + high)?, (columns + wide)?);
    }
    Ok(match tensors.is_empty() {
        true => tensor(vec![Dim::known(1), columns], Some(DType::F32)),
        false => tensor(vec![rows, columns], dtype),
    })
}

fn broadcast(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let shapes: Vec<&[Dim]> = tensors.iter().map(|meta| &meta.shape[..]).collect();
    let shape = call.broadcast(&shapes)?;
    let each = tensors.iter().map(|meta| tensor(shape.clone(), meta.dtype));
    Ok(ValueMeta::List(each.collect()))
}

/// The sizes of vectors of one type, in order; a number is one of an element.
fn axes(call: &RuleCall<'_>, tensors: &[&TensorMeta]) -> Result<Vec<Dim>> {
    let first = tensors.first().ok_or_else(|| empty(call))?;
    let size = |meta: &&TensorMeta| {
        require_one_type(call, first, meta)?;
        match &meta.shape[..] {
            [] => Ok(Dim::known(1)),
            [size] => Ok(size.clone()),
            other => Err(wrong(
                call,
                format_args!("the shape {other:?} has more than one dim"),
            )),
        }
    };
    tensors.iter().map(size).collect()
}

fn meshgrid(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let mut shape = axes(call, &tensors)?;
    if word(call, "indexing", &["ij", "xy"])? == "xy" && shape.len() > 1 {
        shape.swap(0, 1);
    }
    let each = tensors.iter().map(|meta| tensor(shape.clone(), meta.dtype));
    Ok(ValueMeta::List(each.collect()))
}

fn product(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let tensors = call.tensors("tensors")?;
    let sizes = axes(call, &tensors)?;
    if tensors.iter().any(|meta| meta.shape.is_empty()) {
        return Err(wrong(call, "each tensor is a vector, and one has no dims"));
    }
    let shape = match &sizes[..] {
        [one] => vec![one.clone()],
        all => vec![Dim::product(all)?, all.len().into()],
    };
    Ok(tensor(shape, promoted(&tensors)))
}

/// A row for each combination.
fn combinations(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let r = count(call, "r")?;
    let [size] = &x.shape[..] else {
        return Err(wrong(
            call,
            format_args!("the shape {:?} is not that of a vector", x.shape),
        ));
    };
    if r == 0 {
        return Ok(tensor(vec![Dim::known(0)], x.dtype));
    }
    let many = match (call.flag("with_replacement")?, size.as_number()) {
        (false, Some(size)) if size < r => Dim::known(0),
        (true, Some(0)) => Dim::known(0),
        (false, _) => chosen(call, size, r)?,
        (true, _) => chosen(call, &((size + r)? - 1)?, r)?,
    };
    Ok(tensor(vec![many, r.into()], x.dtype))
}

/// How often `r` of a number of things are chosen.
fn chosen(call: &RuleCall<'_>, of: &Dim, r: i64) -> Result<Dim> {
    let r = match of.as_number() {
        // Choosing is leaving out the others.
        Some(all) => r.min(all.saturating_sub(r)),
        None if r <= LONGEST => r,
        None => {
            return Err(wrong(
                call,
                format_args!("combinations of {r} of {of} are known only when the graph runs"),
            ));
        }
    };
    let mut many = Dim::known(1);
    for at in 0..r {
        // Each step is whole.
        many = (many * (of - at)?)?.div(at + 1)?;
    }
    Ok(many)
}
