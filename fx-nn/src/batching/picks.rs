//! Functions that pick and place elements by indices, for many examples at once.

use fx_core::value::{DType, Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::batching;
use super::views::along;
use crate::func::{BatchCall, known};
use crate::ops;
use crate::tensor::{Number, Tensor};

batching! {
    ops::gather => |call| indexed(call, &[]);
    ops::scatter => |call| indexed(call, &["src"]);
    ops::scatter_add => |call| indexed(call, &["src"]);
    ops::scatter_reduce => |call| indexed(call, &["src"]);
    ops::scatter_value => |call| indexed(call, &[]);
    ops::index_select => |call| {
        let rank = call.rank("x")?.max(1);
        let dim = call.dim(call.arg("dim")?, rank)?;
        let x = with_dim(call, "x")?;
        match call.is_batched("index") {
            false => ops::index_select(&x, dim, &call.arg("index")?),
            true => ops::gather(&x, dim, &spread(&with_dim(call, "index")?, &x, dim)?),
        }
    };
    ops::index_add => |call| {
        let (x, source) = (with_dim(call, "x")?, with_dim(call, "source")?);
        let dim = call.dim(call.arg("dim")?, known::rank(&x)? - 1)?;
        let alpha: Number = call.arg("alpha")?;
        match call.is_batched("index") {
            false => ops::index_add(&x, dim, &call.arg("index")?, &source, alpha),
            true => {
                let index = spread(&with_dim(call, "index")?, &source, dim)?;
                let source = if alpha.as_f64() == 1.0 { source } else { (source * alpha.as_f64())? };
                ops::scatter_add(&x, dim, &index, &source)
            }
        }
    };
    ops::index_copy => |call| {
        let (x, source) = (with_dim(call, "x")?, with_dim(call, "source")?);
        let dim = call.dim(call.arg("dim")?, known::rank(&x)? - 1)?;
        match call.is_batched("index") {
            false => ops::index_copy(&x, dim, &call.arg("index")?, &source),
            true => ops::scatter(&x, dim, &spread(&with_dim(call, "index")?, &source, dim)?, &source),
        }
    };
    ops::index_fill => |call| {
        let x = with_dim(call, "x")?;
        let dim = call.dim(call.arg("dim")?, known::rank(&x)? - 1)?;
        match call.is_batched("index") {
            false => ops::index_fill(&x, dim, &call.arg("index")?, call.arg::<Number>("value")?),
            true => {
                let index = with_dim(call, "index")?;
                ops::scatter_value(&x, dim, &spread(&index, &x, dim)?, call.arg::<Number>("value")?)
            }
        }
    };
    ops::embedding => |call| match call.is_batched("weight") {
        false => call.with(&[]),
        true => {
            // One long table, with the rows of each example behind each other.
            let (x, weight): (Tensor, Tensor) = (call.tensor("x")?, call.arg("weight")?);
            let sizes = known::sizes(&weight)?;
            let start = (ops::arange(0, call.size(), 1, None)? * sizes[1])?;
            let start = aligned_vector(&start, known::rank(&x)?)?;
            let rows = ops::reshape(&weight, vec![(sizes[0] * sizes[1])?, sizes[2]])?;
            ops::embedding(&(ops::to_dtype(&x, DType::I64)? + start)?, &rows, None).map(IntoValue::into_value)
        }
    };
    ops::take => |call| {
        let flat = ops::reshape(&call.tensor("x")?, vec![call.size(), Int::from(-1)])?;
        let index = call.tensor("index")?;
        let sizes = known::sizes(&index)?;
        let count = known::size(&flat, 1)?;
        let index = ops::reshape(&index, vec![call.size(), Int::from(-1)])?;
        let index = ops::r#where(&index.lt(0)?, &(&index + count)?, &index)?;
        ops::reshape(&ops::gather(&flat, 1, &index)?, sizes)
    };
    ops::take_along_dim => |call| {
        let (x, indices) = (call.tensor("x")?, call.tensor("indices")?);
        match call.arg::<Option<i64>>("dim")? {
            Some(dim) => ops::take_along_dim(&x, &indices, Some(call.dim(dim, call.rank("x")?)?)),
            None => {
                let flat = |x: &Tensor| ops::reshape(x, vec![call.size(), Int::from(-1)]);
                ops::gather(&flat(&x)?, 1, &flat(&indices)?)
            }
        }
    };
    ops::select_scatter => |call| {
        let dim = call.dim(call.arg("dim")?, call.rank("x")?)?;
        ops::select_scatter(&call.tensor("x")?, &call.tensor("src")?, dim, call.arg::<Int>("index")?)
    };
    ops::slice_scatter => |call| {
        let dim = call.dim(call.arg("dim")?, call.rank("x")?)?;
        call.with(&[("x", call.tensor("x")?.into_value()), ("src", call.tensor("src")?.into_value()), ("dim", Value::Int(dim))])
    };
    ops::diagonal_scatter => |call| {
        let rank = call.rank("x")?;
        let (a, b) = (call.dim(call.arg("dim1")?, rank)?, call.dim(call.arg("dim2")?, rank)?);
        ops::diagonal_scatter(&call.tensor("x")?, &call.tensor("src")?, call.arg("offset")?, a, b)
    };
    ops::one_hot => |call| match call.arg::<i64>("num_classes")? {
        -1 => Err(Error::msg("one_hot: give the number of classes: without it, examples may have several")),
        _ => call.with(&[]),
    };
    ops::masked_select => |_call| Err::<Value, _>(several("masked_select", "where"));
    ops::nonzero => |_call| Err::<Value, _>(several("nonzero", "a mask"));
    ops::argwhere => |_call| Err::<Value, _>(several("argwhere", "a mask"));
    ops::unique => |_call| Err::<Value, _>(several("unique", "sort"));
    ops::unique_consecutive => |_call| Err::<Value, _>(several("unique_consecutive", "sort"));
    ops::repeat_interleave => |call| match (call.arg::<Option<i64>>("dim")?, known::ints(call.arg("repeats")?)?.as_slice()) {
        (Some(_), _) => along(call, "dim"),
        (None, _) => {
            let flat = ops::reshape(&call.tensor("x")?, vec![call.size(), Int::from(-1)])?;
            call.with(&[("x", flat.into_value()), ("dim", Value::Int(1))])
        }
    };
}

fn several(name: &str, instead: &str) -> Error {
    Error::msg(format_args!(
        "{name}: how many elements there are depends on the example, so that the results are no one tensor: use {instead}"
    ))
}

/// An argument with the examples first, and at least one dim behind them.
fn with_dim(call: &BatchCall<'_>, name: &str) -> Result<Tensor> {
    let x = call.tensor(name)?;
    match known::rank(&x)? {
        1 => ops::unsqueeze(&x, 1),
        _ => Ok(x),
    }
}

/// An index `[examples, n]` for each element of the other dims.
fn spread(index: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let mut sizes = known::sizes(x)?;
    let mut own = vec![Int::from(1); sizes.len()];
    let count = known::size(index, 1)?;
    own[0] = known::size(index, 0)?;
    own[dim as usize] = count;
    sizes[dim as usize] = count;
    ops::expand(&ops::reshape(index, own)?, sizes)
}

fn aligned_vector(x: &Tensor, rank: usize) -> Result<Tensor> {
    let mut sizes = vec![Int::from(1); rank];
    sizes[0] = Int::from(-1);
    ops::reshape(x, sizes)
}

/// A function of a tensor and an index of the same rank.
fn indexed(call: &BatchCall<'_>, others: &[&str]) -> Result<Value> {
    let rank = call.rank("x")?;
    let dim = call.dim(call.arg("dim")?, rank)?;
    let mut args = vec![
        ("x", with_dim(call, "x")?.into_value()),
        ("index", with_dim(call, "index")?.into_value()),
        ("dim", Value::Int(dim)),
    ];
    for name in others {
        args.push((name, with_dim(call, name)?.into_value()));
    }
    let found = call.with(&args)?;
    match rank.max(call.rank("index")?) {
        0 => ops::squeeze(
            &<Tensor as fx_core::trace::FromValue>::from_value(found)?,
            1,
        )
        .map(IntoValue::into_value),
        _ => Ok(found),
    }
}
