//! Along dims.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Number, Result};

use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("ReduceSum", |cx| {
        reduced(cx, |x, dims, keep| ops::sum(x, dims, keep))
    }),
    op("ReduceMean", |cx| {
        reduced(cx, |x, dims, keep| ops::mean(x, dims, keep))
    }),
    op("ReduceMax", |cx| match of_nothing(cx, true)? {
        Some(y) => cx.like(y),
        None => reduced(cx, |x, dims, keep| ops::amax(x, dims, keep)),
    }),
    op("ReduceMin", |cx| match of_nothing(cx, false)? {
        Some(y) => cx.like(y),
        None => reduced(cx, |x, dims, keep| ops::amin(x, dims, keep)),
    }),
    op("ReduceProd", |cx| reduced(cx, product)),
    op("ReduceL1", |cx| {
        reduced(cx, |x, dims, keep| ops::sum(&x.abs()?, dims, keep))
    }),
    op("ReduceL2", |cx| {
        reduced(cx, |x, dims, keep| {
            ops::sqrt(&ops::sum(&(x * x)?, dims, keep)?)
        })
    }),
    op("ReduceSumSquare", |cx| {
        reduced(cx, |x, dims, keep| ops::sum(&(x * x)?, dims, keep))
    }),
    op("ReduceLogSum", |cx| {
        reduced(cx, |x, dims, keep| ops::log(&ops::sum(x, dims, keep)?))
    }),
    op("ReduceLogSumExp", |cx| {
        reduced(cx, |x, dims, keep| ops::logsumexp(x, dims, keep))
    }),
    op("ArgMax", |cx| place_of(cx, true)).indices(),
    op("ArgMin", |cx| place_of(cx, false)).indices(),
    op("CumSum", |cx| {
        cumulated(cx, ops::cumsum, |x| ops::zeros_like(x, None))
    }),
    op("CumProd", |cx| {
        cumulated(cx, ops::cumprod, |x| ops::ones_like(x, None))
    }),
    op("TopK", |cx| {
        let x = cx.tensor(0)?;
        let axis = cx.axis("axis", -1, cx.rank(0)?)?;
        let k = cx
            .input(1)
            .ints()?
            .into_iter()
            .next()
            .ok_or_else(|| Error::msg("no k"))?;
        let largest = cx.int("largest", 1) != 0;
        let (values, places) = ops::topk(&x, k, axis, largest, true)?;
        Ok(vec![
            V::Tensor(values, cx.input(0).dtype()),
            V::of(places, DType::I64),
        ])
    }),
    op("Unique", |cx| {
        let x = cx.tensor(0)?;
        let axis = cx.attribute("axis").and_then(|a| a.i);
        let by_value = cx.int("sorted", 1) != 0;
        let asked = |at: usize| cx.node.output.get(at).is_some_and(|name| !name.is_empty());
        if by_value && !(1..4).any(asked) {
            let (values, ..) = ops::unique(&x, true, false, false, axis)?;
            return cx.like(values);
        }
        let (mut values, inverse, mut counts) = ops::unique(&x, true, true, true, axis)?;
        let mut inverse = ops::reshape(&inverse, [-1])?;
        let places = (ops::cumsum(&ops::ones_like(&inverse, None)?, 0)? - 1)?;
        let none = ops::full_like(&counts, i64::MAX, None)?;
        let mut firsts = ops::scatter_reduce(&none, 0, &inverse, &places, "amin", true)?;
        if !by_value {
            // By their first places: what is at each place now, and where each goes.
            let order = ops::argsort(&firsts, 0, false)?;
            let of = |x: &Tensor, dim: i64| ops::index_select(x, dim, &order);
            values = of(&values, axis.unwrap_or(0))?;
            (firsts, counts) = (of(&firsts, 0)?, of(&counts, 0)?);
            inverse = ops::index_select(&ops::argsort(&order, 0, false)?, 0, &inverse)?;
        }
        Ok(vec![
            V::Tensor(values, cx.input(0).dtype()),
            V::of(firsts, DType::I64),
            V::of(inverse, DType::I64),
            V::of(counts, DType::I64),
        ])
    }),
    op("Hardmax", |cx| {
        let x = cx.tensor(0)?;
        let rank = cx.rank(0)?;
        let axis = cx.axis("axis", if cx.version < 13 { 1 } else { -1 }, rank)?;
        let zeros = ops::zeros_like(&x, None)?;
        if cx.version < 13 && axis + 1 != rank as i64 {
            // Before, over all dims from the axis on.
            let flat = ops::flatten(&zeros, axis, -1)?;
            let best = ops::argmax(&ops::flatten(&x, axis, -1)?, -1, true)?;
            let sizes = (0..rank as i64).map(|dim| x.size(dim));
            let sizes = sizes.collect::<Result<Vec<Int>>>()?;
            let y = ops::scatter_value(&flat, -1, &best, 1.0)?;
            return cx.like(ops::reshape(&y, sizes)?);
        }
        let best = ops::argmax(&x, axis, true)?;
        cx.like(ops::scatter_value(&zeros, axis, &best, 1.0)?)
    }),
];

/// Sums or products of what comes before each element, with it or without.
fn cumulated(
    cx: &NodeCx<'_>,
    compute: impl Fn(&Tensor, i64) -> Result<Tensor>,
    nothing: impl Fn(&Tensor) -> Result<Tensor>,
) -> Given {
    let rank = cx.rank(0)?;
    let axis = cx.whole(1)?;
    let Some(axis) = axis.known() else {
        // Along every dim, of which a run takes one.
        let axis = axis.counted(&(rank as i64).into())?.tensor()?;
        let mut all = cumulated_along(cx, 0, &compute, &nothing)?;
        for dim in 1..rank as i64 {
            let other = cumulated_along(cx, dim, &compute, &nothing)?;
            all = ops::r#where(&axis.eq(dim)?, &other, &all)?;
        }
        return cx.of(all, cx.dtype(0)?);
    };
    let axis = cx.place(axis, rank)?;
    let y = cumulated_along(cx, axis, &compute, &nothing)?;
    cx.of(y, cx.dtype(0)?)
}

fn cumulated_along(
    cx: &NodeCx<'_>,
    axis: i64,
    compute: &impl Fn(&Tensor, i64) -> Result<Tensor>,
    nothing: &impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let x = cx.tensor(0)?;
    let reverse = cx.flag("reverse");
    let mut x = if reverse { ops::flip(&x, axis)? } else { x };
    if cx.flag("exclusive") {
        // The element itself is left out before, not taken back: infinities would leave nothing.
        let size = x.size(axis)?;
        let first = nothing(&ops::narrow(&x, axis, 0, 1)?)?;
        x = ops::cat(&[first, ops::narrow(&x, axis, 0, (size - 1)?)?], axis)?;
    }
    let y = compute(&x, axis)?;
    let y = if reverse { ops::flip(&y, axis)? } else { y };
    as_type(&y, cx.dtype(0)?)
}

fn product(x: &Tensor, dims: Dims, keep: bool) -> Result<Tensor> {
    let mut dims: Vec<i64> = match dims {
        Dims::All => {
            return match keep {
                false => ops::prod(x, None, false),
                true => Err(Error::msg("a product over all dims, kept")),
            };
        }
        Dims::One(dim) => vec![dim],
        Dims::Many(dims) => dims,
    };
    dims.sort_unstable();
    let mut x = x.clone();
    for dim in dims.into_iter().rev() {
        x = ops::prod(&x, Some(dim), keep)?;
    }
    Ok(x)
}

/// The largest or smallest of no elements: the end of the type's numbers. `None` if there are some, or may be.
fn of_nothing(cx: &NodeCx<'_>, largest: bool) -> Result<Option<Tensor>> {
    let Ok(shape) = cx.shape(0) else {
        return Ok(None);
    };
    let axes = cx.axes(1)?.filter(|axes| !axes.is_empty());
    let axes: Vec<i64> = match axes {
        Some(axes) => axes
            .into_iter()
            .map(|axis| cx.place(axis, shape.len()))
            .collect::<Result<_>>()?,
        None if cx.flag("noop_with_empty_axes") => return Ok(None),
        None => (0..shape.len() as i64).collect(),
    };
    if axes
        .iter()
        .all(|axis| shape[*axis as usize].as_number() != Some(0))
    {
        return Ok(None);
    }
    let (x, keep) = (cx.tensor(0)?, cx.int("keepdims", 1) != 0);
    let mut sizes = Vec::new();
    for dim in 0..shape.len() as i64 {
        match (axes.contains(&dim), keep) {
            (true, true) => sizes.push(Int::from(1i64)),
            (true, false) => {}
            (false, _) => sizes.push(x.size(dim)?),
        }
    }
    let known = sizes.iter().filter_map(Int::concrete);
    let count = known.fold(1i64, |n, size| n.saturating_mul(size.max(1)));
    if count > cx.reader.limits.constant_bytes as i64 / 8 {
        return Err(Error::msg(
            "results of more elements than `Limits::constant_bytes` holds",
        ));
    }
    let dtype = cx.dtype(0)?;
    let (low, high) = match dtype {
        DType::Bool => (Number::Bool(false), Number::Bool(true)),
        DType::U8 => (Number::Int(0), Number::Int(u8::MAX.into())),
        DType::U32 => (Number::Int(0), Number::Int(u32::MAX.into())),
        DType::I16 => (Number::Int(i16::MIN.into()), Number::Int(i16::MAX.into())),
        DType::I32 => (Number::Int(i32::MIN.into()), Number::Int(i32::MAX.into())),
        DType::I64 => (Number::Int(i64::MIN), Number::Int(i64::MAX)),
        _ => (
            Number::Float(f64::NEG_INFINITY),
            Number::Float(f64::INFINITY),
        ),
    };
    ops::full(sizes, if largest { low } else { high }, Some(dtype)).map(Some)
}

fn reduced(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, Dims, bool) -> Result<Tensor>) -> Given {
    let x = cx.tensor(0)?;
    let keep = cx.int("keepdims", 1) != 0;
    let axes = cx.axes(1)?.filter(|axes| !axes.is_empty());
    let axes: Vec<i64> = match axes {
        // Dims that are counted from either end need no number of dims.
        Some(axes) => match cx.rank(0) {
            Ok(rank) => axes
                .into_iter()
                .map(|axis| cx.place(axis, rank))
                .collect::<Result<_>>()?,
            Err(_) => axes,
        },
        None if cx.flag("noop_with_empty_axes") => {
            let op = &*cx.node.op_type;
            let x = match op {
                "ReduceL1" | "ReduceL2" => x.abs()?,
                "ReduceSumSquare" => (&x * &x)?,
                "ReduceLogSum" => ops::log(&x)?,
                _ => x,
            };
            return cx.like(x);
        }
        None => (0..cx.rank(0)? as i64).collect(),
    };
    let dtype = cx.dtype(0)?;
    let floats =
        ["ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"].contains(&&*cx.node.op_type);
    let squares = ["ReduceL2", "ReduceSumSquare", "ReduceLogSum"].contains(&&*cx.node.op_type);
    let wide = match dtype {
        DType::Bool => as_type(&x, DType::I32)?,
        DType::F16 | DType::BF16 if squares => as_type(&x, DType::F32)?,
        whole if !whole.is_floating_point() && floats => as_type(&x, DType::F64)?,
        _ => x,
    };
    let y = compute(&wide, Dims::Many(axes), keep)?;
    let y = match dtype {
        DType::Bool => y.ne(0)?,
        dtype => as_type(&y, dtype)?,
    };
    cx.of(y, dtype)
}

fn place_of(cx: &NodeCx<'_>, largest: bool) -> Given {
    let x = cx.tensor(0)?;
    let axis = cx.axis("axis", 0, cx.rank(0)?)?;
    let keep = cx.int("keepdims", 1) != 0;
    let best = |x: &Tensor| {
        if largest {
            ops::argmax(x, axis, keep)
        } else {
            ops::argmin(x, axis, keep)
        }
    };
    let y = match cx.flag("select_last_index") {
        false => best(&x)?,
        true => ((x.size(axis)? - 1)? - best(&ops::flip(&x, axis)?)?)?,
    };
    cx.of(y, DType::I64)
}
