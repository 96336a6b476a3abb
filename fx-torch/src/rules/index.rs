//! Operators that pick and place elements by index.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::{Entry, by, same};
use crate::call::Call;

/// Elements by tensors of indices, or of booleans; a dim without one is kept.
fn index(call: &Call<'_>) -> Result<Value> {
    let all = || Value::Slice(Box::new([Value::None, Value::None, Value::None]));
    let items = call.items("indices")?.iter().map(|item| match item {
        Value::None => all(),
        item => item.clone(),
    });
    operator::getitem.call_as((call.at(0)?.clone(), Value::Tuple(items.collect())))
}

fn index_put(call: &Call<'_>) -> Result<Value> {
    if call
        .items("indices")?
        .iter()
        .any(|item| matches!(item, Value::None))
    {
        return Err(Error::msg(
            "`index_put` leaves out a dim before one with indices",
        ));
    }
    let accumulate: bool = call.or("accumulate", false)?;
    let (indices, values) = (
        call.value("indices")?.clone(),
        call.value("values")?.clone(),
    );
    function!(ops::index_put).call_as(args![
        call.at(0)?.clone(),
        indices,
        values,
        accumulate = accumulate
    ])
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
    "aten.index_add" => ops::index_add,
    "aten.index_select" => ops::index_select,
    "aten.isin" => ops::isin,
    "aten.masked_scatter" => ops::masked_scatter,
    "aten.masked_select" => ops::masked_select,
    "aten.nonzero" => ops::nonzero,
    "aten.one_hot" => ops::one_hot,
    "aten.scatter_add" => ops::scatter_add,
    "aten.scatter_reduce" => ops::scatter_reduce,
    "aten.take_along_dim" => ops::take_along_dim["indices" => "indices"],
};
