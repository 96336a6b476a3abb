//! Elements written to places: the shape of what is written to.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::{RuleCall, result_type};
use fx_core::value::Dim;

use super::diagonals::of_dims;
use super::picks::{inside, may_be_empty, not_of_nothing};
use super::reductions::without;
use super::{
    Elements, are_equal, at_least, kind, like, place, require, require_fits, require_held,
    require_rank, require_type_of, resized, rules, tensor, word, wrong, x,
};
use crate::ops;
use crate::tensor::Number;

rules! {
    scatter => ops::scatter;
    scatter_value => ops::scatter_value;
    added => ops::scatter_add;
    reduced => ops::scatter_reduce;
    index_add => ops::index_add;
    index_copy => ops::index_copy;
    index_fill => ops::index_fill;
    index_put => ops::index_put;
    masked_scatter => ops::masked_scatter;
    select_scatter => ops::select_scatter;
    slice_scatter => ops::slice_scatter;
    diagonal_scatter => ops::diagonal_scatter;
}

/// A tensor without dims counts as one of an element.
fn with_a_dim(shape: &[Dim]) -> Vec<Dim> {
    match shape {
        [] => vec![Dim::known(1)],
        shape => shape.to_vec(),
    }
}

/// Returns an error unless an index names places of a tensor, and a source has as many elements.
fn require_index(call: &mut RuleCall<'_>, source: Option<&TensorMeta>) -> Result<()> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    require(call, index, Elements::Places)?;
    let along = place(call, "dim", x.shape.len())?;
    if may_be_empty(call, &index.shape) {
        return Ok(());
    }
    let (own, wanted) = (with_a_dim(&x.shape), with_a_dim(&index.shape));
    let from = source.map_or(wanted.clone(), |source| with_a_dim(&source.shape));
    if own.len() != wanted.len() || from.len() != wanted.len() {
        return Err(wrong(
            call,
            format_args!(
                "the index {:?} has as many dims as {own:?} and {from:?}",
                index.shape
            ),
        ));
    }
    for (at, size) in wanted.iter().enumerate() {
        let own = own.get(at).filter(|_| at != along);
        for room in from.get(at).into_iter().chain(own) {
            at_least(
                call,
                &(room - size)?,
                0,
                format_args!("an index of {size} is more than {room}"),
            )?;
        }
    }
    not_of_nothing(call, own.get(along), &index.shape)
}

fn written(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(like(x, x.dtype))
}

fn scatter(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type_of(call, x(call)?, &["src"])?;
    require_index(call, Some(call.tensor("src")?))?;
    written(call)
}

fn scatter_value(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_held(call, "value", x(call)?.dtype)?;
    require_index(call, None)?;
    written(call)
}

fn added(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, x(call)?, Elements::Numbers)?;
    scatter(call)
}

fn reduced(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    word(call, "reduce", &["sum", "prod", "mean", "amax", "amin"])?;
    added(call)
}

/// The shape of the slices that an index names.
fn slices(call: &mut RuleCall<'_>) -> Result<Vec<Dim>> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    let along = place(call, "dim", x.shape.len())?;
    require_rank(call, index, ..=1)?;
    let many = Dim::product(&index.shape)?;
    Ok(resized(&with_a_dim(&x.shape), along, many))
}

/// Returns an error unless what is written has the shape of the part that it is written to.
fn require_shape(
    call: &mut RuleCall<'_>,
    what: &str,
    source: &TensorMeta,
    shape: &[Dim],
) -> Result<()> {
    match are_equal(call, &source.shape, shape)? {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!(
                "the {what} {:?} is not of the shape {shape:?} of what it replaces",
                source.shape
            ),
        )),
    }
}

fn require_source(call: &mut RuleCall<'_>) -> Result<()> {
    let (x, source) = (x(call)?, call.tensor("source")?);
    let shape = slices(call)?;
    // A number is a slice of a vector, and of a number.
    match x.shape.len() <= 1 && source.shape.is_empty() {
        true => {
            let many = Dim::product(&call.tensor("index")?.shape)?;
            call.same(&Dim::known(1), &many, || {
                "the source is a number, for one index".to_string()
            })
        }
        false => require_shape(call, "source", source, &shape),
    }
}

/// The source is multiplied before it is added.
fn index_add(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, alpha) = (x(call)?, kind(call.arg("alpha")?));
    require(call, x, Elements::Numbers)?;
    require(call, call.tensor("index")?, Elements::Places)?;
    let is_float = x.dtype.is_some_and(|dtype| dtype.is_floating_point());
    let by = match (alpha, is_float) {
        (Some(Number::Int(1)) | None, _) => None,
        (Some(Number::Int(_)), false) => Some(ValueMeta::Int(1.into())),
        (_, true) => Some(ValueMeta::Float(None)),
        (Some(alpha), false) => {
            return Err(wrong(
                call,
                format_args!("`alpha` of integers is an integer, and not {alpha}"),
            ));
        }
    };
    let dtype = result_type([call.arg("source")?].into_iter().chain(&by));
    if let (Some(own), Some(dtype)) = (x.dtype, dtype)
        && own != dtype
    {
        return Err(wrong(
            call,
            format_args!("the dtypes {own} and {dtype} differ: convert one with `to_dtype`"),
        ));
    }
    let source = call.tensor("source")?;
    if source.shape.len() != x.shape.len() {
        return Err(wrong(
            call,
            format_args!(
                "the source {:?} has as many dims as the input {:?}",
                source.shape, x.shape
            ),
        ));
    }
    require_source(call)?;
    written(call)
}

fn index_copy(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type_of(call, x(call)?, &["source"])?;
    require(call, call.tensor("index")?, Elements::Long)?;
    require_source(call)?;
    written(call)
}

fn index_fill(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, call.tensor("index")?, Elements::Long)?;
    require_held(call, "value", x(call)?.dtype)?;
    slices(call)?;
    written(call)
}

/// The indices of the first dims are broadcast, the values to them and the rest.
fn index_put(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, values) = (x(call)?, call.tensor("values")?);
    require_type_of(call, x, &["values"])?;
    let indices = call.tensors("indices")?;
    let (1.., Some(rest)) = (indices.len(), x.shape.get(indices.len()..)) else {
        return Err(wrong(
            call,
            format_args!(
                "{} indices of {:?}: give one for each of the first dims",
                indices.len(),
                x.shape
            ),
        ));
    };
    for index in &indices {
        require(call, index, Elements::Places)?;
    }
    let shapes: Vec<&[Dim]> = indices.iter().map(|index| &index.shape[..]).collect();
    let mut shape = call.broadcast(&shapes)?;
    for size in x.shape.iter().take(indices.len()) {
        not_of_nothing(call, Some(size), &shape)?;
    }
    shape.extend_from_slice(rest);
    require_fits(call, &values.shape, &shape)?;
    if call.flag("accumulate")? {
        require(call, x, Elements::Numbers)?;
    }
    written(call)
}

fn masked_scatter(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, mask) = (x(call)?, call.tensor("mask")?);
    require_type_of(call, x, &["source"])?;
    require(call, mask, Elements::Truths)?;
    Ok(tensor(call.broadcast(&[&x.shape, &mask.shape])?, x.dtype))
}

/// Returns an error unless the source has the shape of a part.
fn require_part(call: &mut RuleCall<'_>, shape: &[Dim]) -> Result<ValueMeta> {
    require_type_of(call, x(call)?, &["src"])?;
    require_shape(call, "src", call.tensor("src")?, shape)?;
    written(call)
}

fn select_scatter(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    inside(call, x.shape.get(place), "index")?;
    require_part(call, &without(&x.shape, &[place], false))
}

fn slice_scatter(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let (Some(size), step @ 1..) = (x.shape.get(place), call.int("step")?) else {
        return Err(wrong(
            call,
            format_args!(
                "`step` is 1 or above, and the shape {:?} has the dim",
                x.shape
            ),
        ));
    };
    let start = match call.optional_int("start")? {
        Some(start) => super::pieces::end_of(call, size, start)?,
        None => Dim::known(0),
    };
    let end = match call.optional_int("end")? {
        Some(end) => super::pieces::end_of(call, size, end)?,
        None => size.clone(),
    };
    let length = super::pieces::between(call, &start, &end)?;
    let many = (length + (step - 1))?.div(step)?;
    require_part(call, &resized(&x.shape, place, many))
}

fn diagonal_scatter(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dims = [call.int("dim1")?, call.int("dim2")?];
    let shape = of_dims(call, &x.shape, call.int("offset")?, dims)?;
    require_part(call, &shape)
}
