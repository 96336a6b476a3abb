//! Elements picked by places, by truths or by their values, and where elements are.

use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{
    Elements, are_equal, at_least, count, like, number, place, require, require_equal,
    require_rank, resized, rules, tensor, word, wrong, x,
};
use crate::ops;

rules! {
    index_select => ops::index_select;
    gather => ops::gather;
    take => ops::take;
    take_along_dim => ops::take_along_dim;
    embedding => ops::embedding;
    one_hot => ops::one_hot;
    nonzero => ops::nonzero, ops::argwhere;
    masked_select => ops::masked_select;
    unique => ops::unique, ops::unique_consecutive;
    searchsorted => ops::searchsorted;
    bucketize => ops::bucketize;
    isin => ops::isin;
    bincount => ops::bincount;
    histc => ops::histc;
    multinomial => ops::multinomial;
    repeat_interleave => ops::repeat_interleave;
}

/// Whether an index has no elements, or a run may find that it has none: then it names no place.
pub(super) fn may_be_empty(call: &mut RuleCall<'_>, index: &[Dim]) -> bool {
    let env = call.env();
    let mut least = index.iter().map(|size| env.bounds(size).0);
    least.any(|least| least.is_none_or(|least| least <= 0))
}

/// Returns an error if an index of some elements names one of an empty dim.
pub(super) fn not_of_nothing(call: &RuleCall<'_>, size: Option<&Dim>, index: &[Dim]) -> Result<()> {
    let is_named = index
        .iter()
        .all(|size| size.as_number().is_some_and(|size| size > 0));
    match size.is_some_and(|size| *size == 0) && is_named {
        true => Err(wrong(call, "the index names an element of an empty dim")),
        false => Ok(()),
    }
}

/// Returns an error unless a whole number is a place of a dim; a negative one counts from the end.
pub(super) fn inside(call: &mut RuleCall<'_>, size: Option<&Dim>, param: &str) -> Result<()> {
    let Some(size) = size else {
        return Err(wrong(call, "a tensor without dims has no index"));
    };
    let index = call.size(param)?;
    let Some(number) = index.as_number() else {
        // A run decides whether it counts from the end.
        return Ok(());
    };
    let least = match number {
        0.. => number.saturating_add(1),
        _ => number.saturating_neg(),
    };
    at_least(
        call,
        size,
        least,
        format_args!("the index {number} is out of range for a dim of {size}"),
    )
}

fn index_select(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    require(call, index, Elements::Places)?;
    require_rank(call, index, ..=1)?;
    let place = place(call, "dim", x.shape.len())?;
    let many = Dim::product(&index.shape)?;
    not_of_nothing(call, x.shape.get(place), &index.shape)?;
    if x.shape.is_empty() {
        call.same(&many, &1.into(), || {
            "a tensor without dims has one element".to_string()
        })?;
    }
    Ok(tensor(resized(&x.shape, place, many), x.dtype))
}

/// An index of no elements names no place, whatever its dims are.
fn gather(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    let along = place(call, "dim", x.shape.len())?;
    if may_be_empty(call, &index.shape) {
        return Ok(like(index, x.dtype));
    }
    require(call, index, Elements::Places)?;
    if x.shape.len().max(1) != index.shape.len().max(1) {
        return Err(wrong(
            call,
            format_args!(
                "the index {:?} has as many dims as {:?}",
                index.shape, x.shape
            ),
        ));
    }
    for (at, (own, size)) in x.shape.iter().zip(&index.shape).enumerate() {
        if at != along {
            at_least(
                call,
                &(own - size)?,
                0,
                format_args!("an index of {size} is more than {own}"),
            )?;
        }
    }
    not_of_nothing(call, x.shape.get(along), &index.shape)?;
    Ok(like(index, x.dtype))
}

fn take(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    require(call, index, Elements::Long)?;
    not_of_nothing(call, Some(&Dim::product(&x.shape)?), &index.shape)?;
    Ok(like(index, x.dtype))
}

/// Broadcast, but for the dim; without one both are flattened.
fn take_along_dim(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, indices) = (x(call)?, call.tensor("indices")?);
    require(call, indices, Elements::Long)?;
    if call.arg("dim")?.is_none() {
        not_of_nothing(call, Some(&Dim::product(&x.shape)?), &indices.shape)?;
        return Ok(tensor(vec![Dim::product(&indices.shape)?], x.dtype));
    }
    let place = place(call, "dim", x.shape.len())?;
    if x.shape.len() != indices.shape.len() {
        return Err(wrong(
            call,
            format_args!(
                "the shapes {:?} and {:?} have as many dims",
                x.shape, indices.shape
            ),
        ));
    }
    let others = [&x.shape, &indices.shape].map(|shape| resized(shape, place, Dim::known(1)));
    let shape = call.broadcast(&others.each_ref().map(|shape| &shape[..]))?;
    Ok(match indices.shape.get(place) {
        Some(size) => tensor(resized(&shape, place, size.clone()), x.dtype),
        None => tensor(shape, x.dtype),
    })
}

fn embedding(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    require(call, x, Elements::Places)?;
    let [rows, size] = &weight.shape[..] else {
        return Err(wrong(
            call,
            format_args!("the weight has two dims, and not {:?}", weight.shape),
        ));
    };
    if let Some(padding) = call.optional_int("padding_idx")? {
        let left = ((rows - padding)? - 1)?;
        at_least(
            call,
            &left,
            0,
            format_args!("`padding_idx` {padding} is none of {rows} rows"),
        )?;
    }
    not_of_nothing(call, Some(rows), &x.shape)?;
    let mut shape = x.shape.clone();
    shape.push(size.clone());
    Ok(tensor(shape, weight.dtype))
}

fn one_hot(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Long)?;
    let is_empty = x.shape.iter().any(|size| *size == 0);
    let classes = match call.size("num_classes")? {
        any if any.as_number() == Some(-1) && !is_empty => call.env().fresh(1, None)?,
        classes => {
            at_least(
                call,
                &classes,
                1,
                format_args!("there is one class at least, and not {classes}"),
            )?;
            classes
        }
    };
    let mut shape = x.shape.clone();
    shape.push(classes);
    Ok(tensor(shape, Some(DType::I64)))
}

/// A number of elements of a shape that only the data decides.
fn some_of(call: &mut RuleCall<'_>, shape: &[Dim], least: i64) -> Result<Dim> {
    let all = Dim::product(shape)?;
    let (low, most) = call.env().bounds(&all);
    let least = if low.is_some_and(|low| low >= least) {
        least
    } else {
        0
    };
    call.env().fresh(least, most)
}

fn nonzero(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let found = some_of(call, &x.shape, 0)?;
    let rank = Dim::from(x.shape.len());
    Ok(tensor(vec![found, rank], Some(DType::I64)))
}

fn masked_select(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, mask) = (x(call)?, call.tensor("mask")?);
    require(call, mask, Elements::Truths)?;
    let shape = call.broadcast(&[&x.shape, &mask.shape])?;
    Ok(tensor(vec![some_of(call, &shape, 0)?], x.dtype))
}

/// The distinct elements or slices; the group of each, and the sizes of the groups, where wanted.
fn unique(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let (whole, place) = match (call.arg("dim")?.is_none(), &x.shape[..]) {
        (true, shape) => (vec![Dim::product(shape)?], 0),
        (false, []) => {
            let dim = call.int("dim")?;
            return Err(wrong(
                call,
                format_args!("a tensor without dims has no dim {dim}: take no `dim`"),
            ));
        }
        (false, shape) => (shape.to_vec(), place(call, "dim", shape.len())?),
    };
    let others = whole.iter().enumerate().filter(|(at, _)| *at != place);
    if others.into_iter().any(|(_, size)| *size == 0) {
        return Err(wrong(call, "the slices along the dim have no elements"));
    }
    let size = whole.get(place).cloned().unwrap_or(Dim::known(1));
    let found = some_of(call, std::slice::from_ref(&size), 1)?;
    let groups = match call.arg("dim")?.is_none() {
        true => x.shape.clone(),
        false => vec![size],
    };
    let wanted = |param: &str, shape: Vec<Dim>| {
        let shape = match call.flag(param)? {
            true => shape,
            false => vec![Dim::known(0)],
        };
        Ok::<_, Error>(tensor(shape, Some(DType::I64)))
    };
    let groups = wanted("return_inverse", groups)?;
    let counts = wanted("return_counts", vec![found.clone()])?;
    let values = tensor(resized(&whole, place, found), x.dtype);
    Ok(ValueMeta::Tuple(vec![values, groups, counts]))
}

/// Places are `int32` where that is asked for.
fn place_type(call: &RuleCall<'_>) -> Result<Option<DType>> {
    Ok(Some(match call.flag("out_int32")? {
        true => DType::I32,
        false => DType::I64,
    }))
}

/// A place for each value, in its row of the sequence or in the only one.
fn searchsorted(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (sequence, values) = (call.tensor("sorted_sequence")?, call.tensor("values")?);
    if !call.arg("side")?.is_none()
        && word(call, "side", &["left", "right"])? == "left"
        && call.flag("right")?
    {
        return Err(wrong(call, "`side` is \"left\", and `right` is true"));
    }
    let [lead @ .., _] = &sequence.shape[..] else {
        return Err(wrong(
            call,
            "the sequence has one dim at least, and is sorted along the last",
        ));
    };
    if !lead.is_empty() {
        let rows = values.shape.split_last().map(|(_, rows)| rows);
        if !are_equal(call, lead, rows.unwrap_or_default())? {
            return Err(wrong(
                call,
                format_args!(
                    "the values {:?} have a row for each of {:?}",
                    values.shape, sequence.shape
                ),
            ));
        }
    }
    if let Some(sorter) = call.optional_tensor("sorter")? {
        require_equal(call, &sorter.shape, &sequence.shape)?;
        require(call, sorter, Elements::Long)?;
    }
    Ok(like(values, place_type(call)?))
}

fn bucketize(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, boundaries) = (x(call)?, call.tensor("boundaries")?);
    match boundaries.shape.len() {
        1 => Ok(like(x, place_type(call)?)),
        rank => Err(wrong(
            call,
            format_args!("the boundaries are a vector, and have not {rank} dims"),
        )),
    }
}

fn isin(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (elements, others) = (call.tensor("elements")?, call.tensor("test_elements")?);
    require(call, elements, Elements::Numbers)?;
    require(call, others, Elements::Numbers)?;
    Ok(like(elements, Some(DType::Bool)))
}

/// The largest number decides how many there are.
fn bincount(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::WholeNumbers)?;
    let least = count(call, "minlength")?;
    let [size] = &x.shape[..] else {
        return Err(wrong(
            call,
            format_args!("a vector is counted, and not {:?}", x.shape),
        ));
    };
    if *size == 0 {
        return Ok(tensor(vec![least.into()], Some(DType::I64)));
    }
    let weights = call.optional_tensor("weights")?;
    if let Some(weights) = weights {
        require_equal(call, &weights.shape, &x.shape)?;
    }
    let dtype = match weights.map(|weights| weights.dtype) {
        None => Some(DType::I64),
        Some(Some(DType::F32)) => Some(DType::F32),
        Some(_) => Some(DType::F64),
    };
    let many = call.env().fresh(least.max(1), None)?;
    Ok(tensor(vec![many], dtype))
}

fn histc(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let bins = call.size("bins")?;
    at_least(
        call,
        &bins,
        1,
        format_args!("one bin at least, and not {bins}"),
    )?;
    if let (Some(min), Some(max)) = (number(call, "min")?, number(call, "max")?)
        && (min > max || !min.is_finite() || !max.is_finite())
    {
        return Err(wrong(
            call,
            format_args!(
                "the bins are from a finite number to a larger one, and not from {min} to {max}"
            ),
        ));
    }
    Ok(tensor(vec![bins], x.dtype))
}

fn multinomial(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let samples = call.size("num_samples")?;
    let (1 | 2, [.., size]) = (x.shape.len(), &x.shape[..]) else {
        return Err(wrong(
            call,
            format_args!("the shares are a vector or rows, and not {:?}", x.shape),
        ));
    };
    at_least(
        call,
        &samples,
        1,
        format_args!("one sample at least, and not {samples}"),
    )?;
    if !call.flag("replacement")? {
        at_least(
            call,
            &(size - &samples)?,
            0,
            format_args!("{samples} samples of {size} are drawn with `replacement` only"),
        )?;
    }
    let last = x.shape.len() - 1;
    Ok(tensor(resized(&x.shape, last, samples), Some(DType::I64)))
}

/// One number for all slices, or one for each.
fn repeat_interleave(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let (shape, place) = match call.arg("dim")?.is_none() {
        true => (vec![Dim::product(&x.shape)?], 0),
        false if x.shape.is_empty() => {
            return Err(wrong(call, "a number has no dim: take no `dim`"));
        }
        false => (x.shape.clone(), place(call, "dim", x.shape.len())?),
    };
    let repeats = call.sizes("repeats")?;
    for repeats in &repeats {
        at_least(
            call,
            repeats,
            0,
            format_args!("a number of times is 0 or above, and not {repeats}"),
        )?;
    }
    let size = shape.get(place).cloned().unwrap_or(Dim::known(1));
    let total = match &repeats[..] {
        [all] => (&size * all)?,
        each => {
            call.same(&size, &each.len().into(), || {
                "a number of times is given for each slice".to_string()
            })?;
            each.iter().try_fold(Dim::known(0), |sum, n| sum + n)?
        }
    };
    Ok(tensor(resized(&shape, place, total), x.dtype))
}
