//! What is reduced along dims, running results, and orders.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::reduce_window::{Windows, reduce_window};
use super::{dim_of, dims_of, given, rules};
use crate::out::cx::{Array, Cx, Region};
use crate::out::text;

rules! {
    sum => |cx, call| reduced(cx, call, "add", 0.0), prod => |cx, call| {
        let x = widened_rows(cx, call)?;
        let dims: Vec<i64> = match call.is_none("dim")? || x.rank() == 0 {
            true => (0..x.rank() as i64).collect(),
            false => vec![dim_of(call, "dim", x.rank())? as i64],
        };
        let y = cx.reduce("multiply", &x, 1.0, &dims);
        kept(cx, call, &y)
    },
    mean => |cx, call| {
        let x = widened_rows(cx, call)?;
        let dims = dims_or_all(call, x.rank())?;
        let count: i64 = dims.iter().map(|dim| x.shape[*dim as usize]).product();
        let y = cx.reduce("add", &x, 0.0, &dims);
        let y = cx.with_number("divide", &y, count as f64);
        kept(cx, call, &y)
    },
    var => |cx, call| {
        let x = widened_rows(cx, call)?;
        let dims = dims_or_all(call, x.rank())?;
        let count: i64 = dims.iter().map(|dim| x.shape[*dim as usize]).product();
        let (_, y) = moments(cx, &x, &dims)?;
        let by = count - i64::from(call.flag("unbiased")?);
        let y = cx.with_number("multiply", &y, count as f64);
        let y = cx.with_number("divide", &y, by.max(0) as f64);
        kept(cx, call, &y)
    },
    amax => |cx, call| extreme_of(cx, call, "maximum"), amin => |cx, call| extreme_of(cx, call, "minimum"),
    all => |cx, call| decided(cx, call, "and", 1.0), any => |cx, call| decided(cx, call, "or", 0.0),
    equal => |cx, call| {
        let (a, b) = (cx.tensor(call, "x")?, cx.tensor(call, "other")?);
        if a.shape != b.shape {
            return Ok(Val::Bool(false));
        }
        let b = cx.convert(&b, a.dtype);
        let same = cx.compare("EQ", &a, &b);
        let dims: Vec<i64> = (0..a.rank() as i64).collect();
        Ok(cx.reduce("and", &same, 1.0, &dims).into())
    },
    logsumexp => |cx, call| {
        let x = widened_rows(cx, call)?;
        let dims = dims_or_all(call, x.rank())?;
        let most = cx.reduce("maximum", &x, f64::NEG_INFINITY, &dims);
        // What is infinite is subtracted as zero.
        let finite = cx.op("is_finite", &[&most], "", DType::Bool, &most.shape);
        let zero = cx.splat(0.0, most.dtype, &most.shape);
        let most = cx.select(&finite, &most, &zero);
        let wide = cx.keeping(&most, &dims, &x.shape);
        let wide = cx.expand(&wide, &x.shape)?;
        let apart = cx.binary("subtract", &x, &wide);
        let apart = cx.unary("exponential", &apart);
        let sum = cx.reduce("add", &apart, 0.0, &dims);
        let log = cx.unary("log", &sum);
        let y = cx.binary("add", &log, &most);
        kept(cx, call, &y)
    },
    argmax => |cx, call| place_of(cx, call, "GT"), argmin => |cx, call| place_of(cx, call, "LT"),
    max => |cx, call| extreme(cx, call, "GT"), min => |cx, call| extreme(cx, call, "LT"),
    sort => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let [values, places] = sorted(cx, &x, dim, call.flag("descending")?)?;
        Ok(Val::List(vec![values.into(), places.into()]))
    },
    topk => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let count = call.int("k")?;
        // Those that need no order are in order too.
        call.needs_no(&["sorted"]);
        let [values, places] = sorted(cx, &x, dim, call.flag("largest")?)?;
        if x.rank() == 0 {
            return Ok(Val::List(vec![values.into(), places.into()]));
        }
        let (values, places) = (cx.slice_dim(&values, dim, 0, count, 1), cx.slice_dim(&places, dim, 0, count, 1));
        Ok(Val::List(vec![values.into(), places.into()]))
    },
    kthvalue => |cx, call| {
        let at = call.int("k")? - 1;
        let [value, place] = ordered(cx, call, at)?;
        Ok(Val::List(vec![value.into(), place.into()]))
    },
    median => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let size = x.shape.get(dim).copied().unwrap_or(1);
        let [value, place] = ordered(cx, call, (size - 1) / 2)?;
        if x.rank() == 0 || !x.dtype.is_floating_point() {
            return Ok(Val::List(vec![value.into(), place.into()]));
        }
        // Of a row with NaN, its first NaN.
        let is_nan = cx.compare("NE", &x, &x);
        let places = cx.iota(dim, DType::I64, &x.shape);
        let none = cx.splat(size as f64, DType::I64, &x.shape);
        let places = cx.select(&is_nan, &places, &none);
        let first = cx.reduce("minimum", &places, size as f64, &[dim as i64]);
        let first = cx.reshape(&first, &place.shape);
        let none = cx.splat(size as f64, DType::I64, &place.shape);
        let has_nan = cx.compare("LT", &first, &none);
        let nan = cx.splat(f64::NAN, value.dtype, &value.shape);
        let (value, place) = (cx.select(&has_nan, &nan, &value), cx.select(&has_nan, &first, &place));
        Ok(Val::List(vec![value.into(), place.into()]))
    },
    cumsum => |cx, call| running(cx, call, "add", 0.0), cumprod => |cx, call| running(cx, call, "multiply", 1.0),
    logcumsumexp => |cx, call| {
        let x = widened_rows(cx, call)?;
        let body = sum_of_powers(cx, x.dtype)?;
        cumulative(cx, call, &x, body, f64::NEG_INFINITY)
    },
}

/// `x` in the element type in which the result is computed, in its own shape.
fn widened_rows(cx: &mut Cx, call: &OpCall<'_>) -> Result<Array> {
    let (dtype, _) = cx.result(call)?;
    let x = cx.tensor(call, "x")?;
    let x = cx.convert(&x, dtype);
    Ok(cx.single(&x))
}

/// The dims of a reduction: all where none are named.
fn dims_or_all(call: &OpCall<'_>, rank: usize) -> Result<Vec<i64>> {
    let dims = dims_of(call, "dim", rank)?;
    Ok(match dims.is_empty() {
        true => (0..rank as i64).collect(),
        false => dims,
    })
}

/// A reduction as the call gives it.
fn kept(cx: &mut Cx, call: &OpCall<'_>, y: &Array) -> Result<Val> {
    call.needs_no(&["keepdim"]);
    given(cx, call, y)
}

fn reduced(cx: &mut Cx, call: &OpCall<'_>, op: &str, start: f64) -> Result<Val> {
    let x = widened_rows(cx, call)?;
    let dims = dims_or_all(call, x.rank())?;
    let y = cx.reduce(op, &x, start, &dims);
    kept(cx, call, &y)
}

/// The mean and the mean of squares around it, along dims.
pub(super) fn moments(cx: &mut Cx, x: &Array, dims: &[i64]) -> Result<(Array, Array)> {
    let count: i64 = dims.iter().map(|dim| x.shape[*dim as usize]).product();
    let sum = cx.reduce("add", x, 0.0, dims);
    let mean = cx.with_number("divide", &sum, count as f64);
    let wide = cx.keeping(&mean, dims, &x.shape);
    let wide = cx.expand(&wide, &x.shape)?;
    let apart = cx.binary("subtract", x, &wide);
    let square = cx.binary("multiply", &apart, &apart);
    let squares = cx.reduce("add", &square, 0.0, dims);
    let variance = cx.with_number("divide", &squares, count as f64);
    Ok((mean, variance))
}

/// What every element of a type is at least, or at most.
pub(super) fn limit(dtype: DType, lowest: bool) -> f64 {
    let (low, high) = match dtype {
        DType::Bool => (0.0, 1.0),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    if lowest { low } else { high }
}

fn extreme_of(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let dims = dims_or_all(call, x.rank())?;
    let start = limit(x.dtype, op == "maximum");
    let y = cx.reduce(op, &x, start, &dims);
    kept(cx, call, &y)
}

fn decided(cx: &mut Cx, call: &OpCall<'_>, op: &str, start: f64) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let dims = dims_or_all(call, x.rank())?;
    let x = cx.convert(&x, DType::Bool);
    let y = cx.reduce(op, &x, start, &dims);
    // Of bytes, it gives bytes.
    kept(cx, call, &y)
}

/// A region that takes the better of two pairs of a value and its place: the first of equal ones, and NaN before all.
pub(super) fn better_pair(cx: &mut Cx, dtype: DType, how: &str) -> Result<Region> {
    let (value, place) = ((dtype, Vec::new()), (DType::I64, Vec::new()));
    cx.region(&[value.clone(), place.clone(), value, place], |cx, both| {
        let [a, i, b, j] = both else {
            return Err(Error::msg("a reduction of pairs takes two pairs"));
        };
        let is_better = cx.compare(how, a, b);
        let (a_nan, b_nan) = (cx.compare("NE", a, a), cx.compare("NE", b, b));
        let wins = cx.binary("or", &is_better, &a_nan);
        let b_is_number = cx.unary("not", &b_nan);
        let wins = cx.binary("and", &wins, &b_is_number);
        let (same, both_nan) = (cx.compare("EQ", a, b), cx.binary("and", &a_nan, &b_nan));
        let ties = cx.binary("or", &same, &both_nan);
        let is_first = cx.compare("LT", i, j);
        let ties = cx.binary("and", &ties, &is_first);
        let first = cx.binary("or", &wins, &ties);
        Ok(vec![cx.select(&first, a, b), cx.select(&first, i, j)])
    })
}

/// The extreme element along a dim and its place; the first of equal ones, and NaN before all.
pub(super) fn extreme_with_place(
    cx: &mut Cx,
    x: &Array,
    dim: usize,
    how: &str,
) -> Result<[Array; 2]> {
    let places = cx.iota(dim, DType::I64, &x.shape);
    let start = cx.splat(limit(x.dtype, how == "GT"), x.dtype, &[]);
    // Behind all places: an element beats the start even if it is as extreme.
    let none = cx.splat(i64::MAX as f64, DType::I64, &[]);
    let body = better_pair(cx, x.dtype, how)?;
    let mut shape = x.shape.clone();
    shape.remove(dim);
    let attributes = format!("dimensions = {}", text::array(&[dim as i64]));
    let results = [(x.dtype, shape.clone()), (DType::I64, shape)];
    let made = cx.operations(
        "reduce",
        &[x, &places, &start, &none],
        &attributes,
        vec![body],
        &results,
    );
    <[Array; 2]>::try_from(made).map_err(|_| Error::msg("a reduction of pairs gives a pair"))
}

fn place_of(cx: &mut Cx, call: &OpCall<'_>, how: &str) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let dim = dim_of(call, "dim", x.rank())?;
    call.needs_no(&["keepdim"]);
    if x.rank() == 0 {
        return Ok(cx.splat(0.0, DType::I64, &[]).into());
    }
    let [_, place] = extreme_with_place(cx, &x, dim, how)?;
    kept(cx, call, &place)
}

fn extreme(cx: &mut Cx, call: &OpCall<'_>, how: &str) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let types = cx.results(call)?;
    let [(_, shape), ..] = &*types else {
        return Err(Error::msg("it gives values and places"));
    };
    let shape = shape.clone();
    let dim = dim_of(call, "dim", x.rank())?;
    call.needs_no(&["keepdim"]);
    if x.rank() == 0 {
        let place = cx.splat(0.0, DType::I64, &[]);
        return Ok(Val::List(vec![x.into(), place.into()]));
    }
    let [value, place] = extreme_with_place(cx, &x, dim, how)?;
    let (value, place) = (cx.reshape(&value, &shape), cx.reshape(&place, &shape));
    Ok(Val::List(vec![value.into(), place.into()]))
}

/// The elements along a dim in order, with the places that they had. NaN counts as the largest.
pub(super) fn sorted(cx: &mut Cx, x: &Array, dim: usize, descending: bool) -> Result<[Array; 2]> {
    if x.rank() == 0 {
        let place = cx.splat(0.0, DType::I64, &[]);
        return Ok([x.clone(), place]);
    }
    let places = cx.iota(dim, DType::I64, &x.shape);
    let (value, place) = ((x.dtype, Vec::new()), (DType::I64, Vec::new()));
    let how = if descending { "GT" } else { "LT" };
    let body = cx.region(&[value.clone(), value, place.clone(), place], |cx, both| {
        let (a, b) = (&both[0], &both[1]);
        let before = cx.compare(how, a, b);
        if !a.dtype.is_floating_point() {
            return Ok(vec![before]);
        }
        let (a_nan, b_nan) = (cx.compare("NE", a, a), cx.compare("NE", b, b));
        let (low, high) = if descending {
            (b_nan, a_nan)
        } else {
            (a_nan, b_nan)
        };
        let low = cx.unary("not", &low);
        let nan = cx.binary("and", &low, &high);
        Ok(vec![cx.binary("or", &before, &nan)])
    })?;
    let attributes = format!("dimension = {dim} : i64, is_stable = true");
    let results = [(x.dtype, x.shape.clone()), (DType::I64, x.shape.clone())];
    let made = cx.operations("sort", &[x, &places], &attributes, vec![body], &results);
    <[Array; 2]>::try_from(made).map_err(|_| Error::msg("a sort of pairs gives a pair"))
}

/// The element at a place of the order along a dim.
fn ordered(cx: &mut Cx, call: &OpCall<'_>, at: i64) -> Result<[Array; 2]> {
    let x = cx.tensor(call, "x")?;
    let dim = dim_of(call, "dim", x.rank())?;
    call.needs_no(&["keepdim"]);
    let types = cx.results(call)?;
    let shape = types
        .first()
        .map(|(_, shape)| shape.clone())
        .unwrap_or_default();
    let [values, places] = sorted(cx, &x, dim, false)?;
    if x.rank() == 0 {
        return Ok([values, places]);
    }
    let at = |cx: &mut Cx, of: &Array| {
        let row = cx.slice_dim(of, dim, at, at + 1, 1);
        cx.reshape(&row, &shape)
    };
    Ok([at(cx, &values), at(cx, &places)])
}

fn running(cx: &mut Cx, call: &OpCall<'_>, op: &str, start: f64) -> Result<Val> {
    let x = widened_rows(cx, call)?;
    let body = cx.folding(op, x.dtype);
    cumulative(cx, call, &x, body, start)
}

/// A region that gives `log(exp(a) + exp(b))`: of equal numbers, infinite ones too, the number and `log(2)`.
fn sum_of_powers(cx: &mut Cx, dtype: DType) -> Result<Region> {
    let number = (dtype, Vec::new());
    cx.region(&[number.clone(), number], |cx, both| {
        let (most, least) = (
            cx.binary("maximum", &both[0], &both[1]),
            cx.binary("minimum", &both[0], &both[1]),
        );
        let apart = cx.binary("subtract", &least, &most);
        let share = cx.unary("exponential", &apart);
        let rest = cx.unary("log_plus_one", &share);
        let two = cx.splat(std::f64::consts::LN_2, dtype, &[]);
        let same = cx.compare("EQ", &most, &least);
        let rest = cx.select(&same, &two, &rest);
        Ok(vec![cx.binary("add", &most, &rest)])
    })
}

/// Running results along the call's dim, in the element type of its result, as windows that reach to the front.
fn cumulative(cx: &mut Cx, call: &OpCall<'_>, x: &Array, body: Region, start: f64) -> Result<Val> {
    let (dtype, _) = cx.result(call)?;
    let dim = dim_of(call, "dim", x.rank())?;
    if x.rank() == 0 || x.shape[dim] == 0 {
        return Ok(cx.convert(x, dtype).into());
    }
    let size = x.shape[dim];
    let (mut window, mut around) = (vec![1; x.rank()], vec![[0, 0]; x.rank()]);
    window[dim] = size;
    around[dim] = [size - 1, 0];
    let ones = vec![1; x.rank()];
    let windows = Windows {
        window: &window,
        strides: &ones,
        dilations: &ones,
        around: &around,
    };
    let y = reduce_window(cx, body, x, start, &windows, &x.shape);
    Ok(cx.convert(&y, dtype).into())
}
