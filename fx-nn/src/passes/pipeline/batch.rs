//! A batch as micro-batches, and back.
//!
//! Invariant: the rows of the micro-batches are those of the batch, in order.

use std::ops::Range;

use fx_core::value::{Tree, Value};
use fx_core::{Error, GraphModule, Result};

use crate::ops;
use crate::tensor::Tensor;

/// The rows of each micro-batch. Their numbers differ by at most one; the first ones have more.
pub(super) fn rows_of(rows: usize, micro_batches: usize) -> Result<Vec<Range<usize>>> {
    if micro_batches == 0 || rows < micro_batches {
        return Err(Error::msg(format_args!(
            "a batch of {rows} rows cannot be {micro_batches} micro-batches: each has a row, and there is at least one"
        )));
    }
    let (each, more) = (rows / micro_batches, rows % micro_batches);
    let begin = |at: usize| at * each + at.min(more);
    Ok((0..micro_batches)
        .map(|at| begin(at)..begin(at + 1))
        .collect())
}

/// Some rows of a tensor.
pub(super) fn part(x: &Tensor, rows: &Range<usize>) -> Result<Tensor> {
    let number = |n: usize| i64::try_from(n).map_err(Error::other);
    ops::narrow(x, 0, number(rows.start)?, number(rows.len())?)
}

/// The number of rows of a tensor; `None` for a single number and for what is no tensor.
fn rows(value: &Value) -> Result<Option<usize>> {
    match value.downcast_ref::<Tensor>() {
        Some(tensor) => Ok(tensor.data("pipeline")?.dims().first().copied()),
        None => Ok(None),
    }
}

/// A batch in parts.
pub(super) struct MicroBatches {
    /// The inputs of each.
    pub inputs: Vec<Vec<Value>>,
    /// The rows of the batch that each has.
    pub ranges: Vec<Range<usize>>,
}

/// The micro-batches of a batch: rows of every tensor that has a dim, unless its input is to be
/// given whole; everything else as it is.
pub(super) fn split(
    gm: &GraphModule,
    inputs: Vec<Value>,
    micro_batches: usize,
    whole: &[String],
) -> Result<MicroBatches> {
    let names = gm
        .graph()
        .placeholders()
        .map(|node| node.name().to_string());
    let names: Vec<String> = names.collect();
    if let Some(unknown) = whole.iter().find(|name| !names.contains(name)) {
        return Err(Error::msg(format_args!(
            "the model has no input `{unknown}` to give whole; its inputs are {}",
            names.join(", ")
        )));
    }
    // The leaves of each input, and the rows of those that are split.
    let mut leaves = Vec::with_capacity(inputs.len());
    let mut first: Option<(&str, usize)> = None;
    for (name, value) in names.iter().zip(inputs) {
        let tree = Tree::of(&value)?;
        let values = tree.flatten(value)?;
        let is_whole = whole.contains(name);
        let mut is_split = Vec::with_capacity(values.len());
        for value in &values {
            let rows = rows(value)?.filter(|_| !is_whole);
            is_split.push(rows.is_some());
            match (rows, first) {
                (Some(rows), None) => first = Some((name, rows)),
                (Some(rows), Some((other, expected))) if rows != expected => {
                    return Err(Error::msg(format_args!(
                        "the input `{name}` has {rows} rows, and `{other}` has {expected}: one that is no batch is given whole to each micro-batch by `.replicate(&[\"{name}\"])`"
                    )));
                }
                _ => {}
            }
        }
        leaves.push((tree, values, is_split));
    }
    let (_, rows) = first.ok_or_else(|| {
        Error::msg("no input of the model is a batch: a tensor with at least one dim, which is not given whole")
    })?;
    let ranges = rows_of(rows, micro_batches)?;
    let batches = ranges.iter().map(|range| {
        let inputs = leaves.iter().map(|(tree, values, is_split)| {
            let parts = values.iter().zip(is_split);
            let parts = parts.map(|(value, is_split)| match value.downcast_ref::<Tensor>() {
                Some(tensor) if *is_split => Ok(Value::object(part(tensor, range)?)),
                _ => Ok(value.clone()),
            });
            tree.unflatten(parts.collect::<Result<_>>()?)
        });
        inputs.collect::<Result<Vec<Value>>>()
    });
    Ok(MicroBatches {
        inputs: batches.collect::<Result<_>>()?,
        ranges,
    })
}

/// The result for the batch, from those of its micro-batches.
pub(super) fn joined(results: Vec<Value>, ranges: &[Range<usize>]) -> Result<Value> {
    let Some(first) = results.first() else {
        return Err(Error::msg("there is at least one micro-batch"));
    };
    let tree = Tree::of(first)?;
    let flat = results.into_iter().map(|result| tree.flatten(result));
    let flat = flat.collect::<Result<Vec<Vec<Value>>>>()?;
    let paths = tree.paths();
    let leaves = paths.iter().enumerate().map(|(at, path)| {
        let mut parts = Vec::with_capacity(flat.len());
        for (leaves, range) in flat.iter().zip(ranges) {
            match leaves.get(at) {
                Some(leaf) if rows(leaf)? == Some(range.len()) => {
                    parts.extend(leaf.downcast_ref::<Tensor>());
                }
                Some(leaf) => return Err(not_rows(path, leaf, range.len())),
                None => {}
            }
        }
        match parts.as_slice() {
            [one] => Ok(Value::object((*one).clone())),
            _ => ops::cat(&parts, 0).map(Value::object),
        }
    });
    tree.unflatten(leaves.collect::<Result<_>>()?)
}

fn not_rows(path: &str, leaf: &Value, rows: usize) -> Error {
    Error::msg(format_args!(
        "the result{}{path} of a micro-batch of {rows} rows is {}, which has not a row for each: it cannot be joined to one of the batch; `Pipeline::run` returns the result of each micro-batch",
        if path.is_empty() { "" } else { " " },
        leaf.describe()
    ))
}
