//! Operators that pick and place elements by index.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, rank, same, undone};
use crate::call::{Call, element_type};

fn is_mask(item: &Value) -> bool {
    element_type(item) == Some(DType::Bool)
}

/// The indices by dim; of a mask they are the places of what is true, a dim of it each.
fn indices(call: &Call<'_>) -> Result<Vec<(i64, Tensor)>> {
    let mut given: Vec<(i64, Tensor)> = Vec::new();
    let mut dim = 0;
    for item in call.items("indices")? {
        if matches!(item, Value::None) {
            dim += 1;
            continue;
        }
        let tensor = Tensor::from_value(item.clone())?;
        if !is_mask(item) {
            given.push((dim, tensor));
            dim += 1;
            continue;
        }
        let places = ops::nonzero(&tensor)?;
        for at in 0..rank(&tensor)? {
            given.push((dim, ops::select(&places, 1, at)?));
            dim += 1;
        }
    }
    Ok(given)
}

/// A mask over all dims, if that is what the indices are.
fn whole_mask(call: &Call<'_>) -> Result<Option<Tensor>> {
    let [item] = call.items("indices")? else {
        return Ok(None);
    };
    if !is_mask(item) {
        return Ok(None);
    }
    let mask = Tensor::from_value(item.clone())?;
    Ok((rank(&mask)? == rank(&call.own()?)?).then_some(mask))
}

/// Elements by tensors of indices, which are broadcast together, or of booleans; a dim without one is kept.
fn index(call: &Call<'_>) -> Result<Value> {
    let own = call.own()?;
    if let Some(mask) = whole_mask(call)? {
        return Ok(ops::masked_select(&own, &mask)?.into_value());
    }
    let picked = match indices(call)?.as_slice() {
        [] => own,
        several => picked(&own, several)?,
    };
    Ok(Value::object(picked))
}

/// Indices of a dim counted from its start; those that are known are looked at now.
fn counted(at: &Tensor, size: &Int) -> Result<Tensor> {
    if at.proxy().is_none()
        && let Some(size) = size.concrete()
    {
        let all = at.to_vec()?;
        let size = size as f64;
        if let Some(wrong) = all.iter().find(|at| !(-size..size).contains(*at)) {
            return Err(Error::msg(format_args!(
                "the index {wrong} is out of range for a dim of {size}"
            )));
        }
        let is_plain = all.iter().all(|at| *at >= 0.0);
        if is_plain {
            return Ok(at.clone());
        }
    }
    let end = Tensor::from_value(operator::add.call_as((at.clone(), *size))?)?;
    ops::r#where(&at.lt(0)?, &end, at)
}

/// Elements by tensors of indices of some dims.
fn picked(own: &Tensor, given: &[(i64, Tensor)]) -> Result<Tensor> {
    let dims = rank(own)?;
    let (first, count) = (given[0].0, given.len() as i64);
    let is_row = given[count as usize - 1].0 == first + count - 1;
    // The dims with indices come first, and are one.
    let is_given = |dim: &i64| given.iter().any(|(own, _)| own == dim);
    let others: Vec<i64> = (0..dims).filter(|dim| !is_given(dim)).collect();
    let order: Vec<i64> = given
        .iter()
        .map(|(dim, _)| *dim)
        .chain(others.iter().copied())
        .collect();
    let is_ordered = order.iter().copied().eq(0..dims);
    let front = match is_ordered {
        true => own.clone(),
        false => ops::permute(own, order)?,
    };
    let mut place: Option<Tensor> = None;
    for (dim, at) in given {
        let size = own.size(*dim)?;
        let at = counted(at, &size)?;
        place = Some(match place {
            None => at,
            Some(before) => {
                // What is no index of this dim is none of all, and no other one of the dim before.
                let is_within = ops::logical_and(&at.ge(0)?, &at.lt(size)?)?;
                let both = ((before * size)? + at)?;
                ops::r#where(&is_within, &both, -1)?
            }
        });
    }
    let place = place.ok_or_else(|| Error::msg("there are no indices"))?;
    let mut shape: Vec<Int> = vec![Int::from(-1)];
    let rest = others
        .iter()
        .map(|dim| own.size(*dim))
        .collect::<Result<Vec<Int>>>()?;
    shape.extend(rest.iter().cloned());
    let rows = match count {
        1 => front,
        _ => ops::reshape(&front, shape)?,
    };
    let flat = ops::index_select(&rows, 0, &ops::ravel(&place)?)?;
    // Indices are broadcast together.
    let ranks = given.iter().map(|(_, at)| rank(at));
    let places = ranks.collect::<Result<Vec<i64>>>()?;
    let places = places.into_iter().max().unwrap_or(0);
    let mut shape = (0..places)
        .map(|dim| place.size(dim))
        .collect::<Result<Vec<Int>>>()?;
    shape.extend(rest);
    let picked = ops::reshape(&flat, shape)?;
    if !is_row || first == 0 {
        return Ok(picked);
    }
    // Indices of neighbouring dims stand where these were.
    let order = (places..places + first)
        .chain(0..places)
        .chain(places + first..places + others.len() as i64);
    ops::permute(&picked, order.collect::<Vec<i64>>())
}

/// A tensor with values at places; the dims with indices come first for that, and are put back.
fn index_put(call: &Call<'_>) -> Result<Value> {
    let accumulate: bool = call.or("accumulate", false)?;
    let items = call.items("indices")?;
    let values = call.value("values")?.clone();
    if let [item] = items
        && is_mask(item)
    {
        let mask = Tensor::from_value(item.clone())?;
        return masked_put(call, &mask, values, accumulate);
    }
    let given = indices(call)?;
    let put = |own: Value, values: Value| -> Result<Value> {
        let indices = given.iter().map(|(_, item)| item.clone().into_value());
        let indices = Value::List(indices.collect());
        function!(ops::index_put).call_as(args![own, indices, values, accumulate = accumulate])
    };
    if (0..).zip(&given).all(|(at, (dim, _))| *dim == at) {
        return put(call.at(0)?.clone(), values);
    }
    let Some((first, _)) = given.first() else {
        return Err(Error::msg("there are no indices"));
    };
    let first = *first;
    let own = call.own()?;
    let dims = rank(&own)?;
    let is_given = |dim: &i64| given.iter().any(|(own, _)| own == dim);
    let others: Vec<i64> = (0..dims).filter(|dim| !is_given(dim)).collect();
    let order = given.iter().map(|(dim, _)| *dim);
    let order: Vec<i64> = order.chain(others.iter().copied()).collect();
    let tensors: Vec<Tensor> = given.iter().map(|(_, item)| item.clone()).collect();
    let place = match tensors.as_slice() {
        [one] => one.clone(),
        several => ops::broadcast_tensors(several)?.get(0)?,
    };
    let places = rank(&place)?;
    let mut values = Tensor::from_value(values)?;
    let is_row = given.last().map(|(dim, _)| *dim) == Some(first + given.len() as i64 - 1);
    if is_row && first > 0 && rank(&values)? > 0 {
        // Values stand where the indices are: theirs come first too.
        let own_size = |dim: &i64| own.size(*dim);
        let mut shape = others[..first as usize]
            .iter()
            .map(own_size)
            .collect::<Result<Vec<Int>>>()?;
        for dim in 0..places {
            shape.push(place.size(dim)?);
        }
        for dim in &others[first as usize..] {
            shape.push(own.size(*dim)?);
        }
        let rank = shape.len() as i64;
        let order = (first..first + places)
            .chain(0..first)
            .chain(first + places..rank);
        values = ops::permute(&ops::expand(&values, shape)?, order.collect::<Vec<i64>>())?;
    }
    let moved = ops::permute(&own, order.clone())?;
    let moved = Tensor::from_value(put(Value::object(moved), Value::object(values))?)?;
    Ok(Value::object(ops::permute(&moved, undone(&order))?))
}

/// A tensor with values where a mask of its first dims is true.
fn masked_put(call: &Call<'_>, mask: &Tensor, values: Value, accumulate: bool) -> Result<Value> {
    let (own, values) = (call.own()?, Tensor::from_value(values)?);
    let rest = rank(&own)? - rank(mask)?;
    let whole = (0..rest).try_fold(mask.clone(), |mask, _| ops::unsqueeze(&mask, -1))?;
    let is_one = rank(&values)? <= rest || values.size(0)?.concrete() == Some(1);
    if is_one {
        // The same for each place.
        let put = match accumulate {
            true => (&own + values)?,
            false => values,
        };
        let put = match rank(&put)? > rank(&own)? {
            true => ops::squeeze(&put, 0)?,
            false => put,
        };
        return function!(ops::r#where).call_as((whole, put, own));
    }
    let whole = ops::expand(&whole, own.shape()?)?;
    if !accumulate {
        return Ok(Value::object(ops::masked_scatter(&own, &whole, &values)?));
    }
    let zeros = ops::zeros_like(&own, None)?;
    let put = ops::masked_scatter(&zeros, &whole, &values)?;
    Ok(Value::object((own + put)?))
}

/// The weight comes first.
fn embedding(call: &Call<'_>) -> Result<Value> {
    let weight: Tensor = call.of("weight")?;
    Ok(Value::object(ops::embedding(
        &call.of::<Tensor>("indices")?,
        &weight,
        None,
    )?))
}

fn scatter(call: &Call<'_>) -> Result<Value> {
    let (dim, at) = (call.value("dim")?.clone(), call.value("index")?.clone());
    if call.get("reduce").is_some() {
        return Err(Error::msg("`scatter` with `reduce`: use `scatter_reduce`"));
    }
    match call.get("src") {
        Some(src) => function!(ops::scatter).call_as((call.at(0)?.clone(), dim, at, src.clone())),
        None => function!(ops::scatter_value).call_as((
            call.at(0)?.clone(),
            dim,
            at,
            call.value("value")?.clone(),
        )),
    }
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.index" => index,
    "aten.index_put" => index_put,
    "aten.embedding" => embedding,
    "aten.scatter" => scatter,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.bucketize" => ops::bucketize,
    "aten.gather" => ops::gather,
    "aten.argwhere" => ops::argwhere,
    "aten.index_copy" => ops::index_copy,
    "aten.index_fill.int_Scalar" => ops::index_fill,
    "aten.searchsorted" => ops::searchsorted["self" => "values"],
    "aten.take" => ops::take,
    "aten.index_add" => ops::index_add,
    "aten.index_select" => ops::index_select,
    "aten.isin" => ops::isin,
    "aten.masked_scatter" => ops::masked_scatter,
    "aten.masked_select" => ops::masked_select,
    "aten.nonzero" => ops::nonzero,
    "aten.one_hot" => ops::one_hot,
    "aten.scatter_add" => ops::scatter_add,
    "aten.scatter_reduce" => ops::scatter_reduce,
    "aten.take_along_dim" => ops::take_along_dim,
};
