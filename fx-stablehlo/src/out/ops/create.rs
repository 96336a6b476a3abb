//! New tensors.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::rules;
use crate::out::cx::Cx;

rules! {
    full => |cx, call| filled(cx, call, "fill_value"), full_like => |cx, call| filled(cx, call, "fill_value"),
    new_full => |cx, call| filled(cx, call, "fill_value"),
    arange => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["end"]);
        let (start, step) = (call.float("start")?, call.float("step")?);
        let places = cx.iota(0, dtype, &shape);
        let by = if step == 1.0 { places } else { cx.with_number("multiply", &places, step) };
        Ok(if start == 0.0 { by } else { cx.with_number("add", &by, start) }.into())
    },
    eye => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["n", "m"]);
        let (row, column) = (cx.iota(0, DType::I32, &shape), cx.iota(1, DType::I32, &shape));
        let same = cx.compare("EQ", &row, &column);
        Ok(cx.convert(&same, dtype).into())
    },
    linspace => |cx, call| {
        let numbers = spaced(cx, call)?;
        let (dtype, _) = cx.result(call)?;
        Ok(cx.numbers(&numbers, dtype).into())
    },
    logspace => |cx, call| {
        let base = call.float("base")?;
        let numbers: Vec<f64> = spaced(cx, call)?.into_iter().map(|power| base.powf(power)).collect();
        let (dtype, _) = cx.result(call)?;
        Ok(cx.numbers(&numbers, dtype).into())
    },
    tril_indices => |cx, call| places(cx, call, |row, column, offset| column <= row + offset),
    triu_indices => |cx, call| places(cx, call, |row, column, offset| column >= row + offset),
}

fn filled(cx: &mut Cx, call: &OpCall<'_>, number: &str) -> Result<Val> {
    let (dtype, shape) = cx.result(call)?;
    call.needs_no(&["x", "shape", "size"]);
    Ok(cx.value(&call.val(number)?, dtype, &shape)?.into())
}

/// Numbers from start to end in equal steps.
fn spaced(cx: &Cx, call: &OpCall<'_>) -> Result<Vec<f64>> {
    let (_, shape) = cx.result(call)?;
    call.needs_no(&["steps"]);
    let count = shape.first().copied().unwrap_or(0);
    let (start, end) = (call.float("start")?, call.float("end")?);
    let step = if count > 1 {
        (end - start) / (count - 1) as f64
    } else {
        0.0
    };
    // From both ends, as PyTorch does.
    let number = |at: i64| match at < count / 2 {
        true => start + step * at as f64,
        false => end - step * (count - 1 - at) as f64,
    };
    Ok(match count {
        1 => vec![start],
        count => (0..count).map(number).collect(),
    })
}

fn places(cx: &mut Cx, call: &OpCall<'_>, keeps: impl Fn(i64, i64, i64) -> bool) -> Result<Val> {
    let (dtype, shape) = cx.result(call)?;
    let (rows, columns, offset) = (call.int("row")?, call.int("col")?, call.int("offset")?);
    let pairs = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let kept: Vec<(i64, i64)> = pairs
        .filter(|(row, column)| keeps(*row, *column, offset))
        .collect();
    let all: Vec<i64> = kept
        .iter()
        .map(|(row, _)| *row)
        .chain(kept.iter().map(|(_, column)| *column))
        .collect();
    let all = cx.ints(&all, dtype);
    Ok(cx.reshape(&all, &shape).into())
}
