//! fx's operators.

use fx_nn::lowering::{OpCall, Operand, Val, wrapped};
use fx_nn::prelude::*;
use fx_nn::value::DType;
use fx_nn::{function_table, operator};

use super::elementwise::{floor_divide, inverted, pair, remainder, shifted_right};
use super::picks::take_rows;
use super::products::matmul;
use crate::out::Rule;
use crate::out::cx::{Array, Cx};

function_table! { Rule {
    operator::add => Rule::new(|cx, call| match (call.val("a")?, call.val("b")?) {
        (Val::List(mut a), Val::List(b)) => {
            a.extend(b);
            Ok(Val::List(a))
        }
        _ => pair("add", "a", "b")(cx, call),
    }),
    operator::sub => Rule::new(pair("subtract", "a", "b")),
    operator::mul => Rule::new(pair("multiply", "a", "b")),
    operator::truediv => Rule::new(pair("divide", "a", "b")),
    operator::floordiv => Rule::new(|cx, call| floor_divide(cx, call, "a", "b")),
    operator::r#mod => Rule::new(|cx, call| remainder(cx, call, "a", "b")),
    operator::pow => Rule::new(|cx, call| {
        let a = cx.widened(call, "a")?;
        Ok(match call.val("b")?.as_f64() {
            Some(2.0) => cx.binary("multiply", &a, &a),
            // What minus infinity gives tells a root from a power.
            Some(0.5) if a.dtype.is_floating_point() && a.dtype != DType::F16 => cx.unary("sqrt", &a),
            Some(-0.5) if a.dtype.is_floating_point() && a.dtype != DType::F16 => {
                cx.unary("rsqrt", &a)
            }
            _ => {
                let b = cx.widened(call, "b")?;
                cx.binary("power", &a, &b)
            }
        }.into())
    }),
    operator::neg => Rule::new(|cx, call| {
        let x = cx.widened(call, "a")?;
        Ok(cx.unary("negate", &x).into())
    }),
    operator::abs => Rule::new(|cx, call| {
        let x = cx.widened(call, "a")?;
        let unsigned = matches!(x.dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32);
        Ok(if unsigned { x } else { cx.unary("abs", &x) }.into())
    }),
    operator::matmul => Rule::new(|cx, call| matmul(cx, call, "a", "b")),
    operator::eq => Rule::new(|cx, call| compared(cx, call, "EQ")),
    operator::ne => Rule::new(|cx, call| compared(cx, call, "NE")),
    operator::lt => Rule::new(|cx, call| compared(cx, call, "LT")),
    operator::le => Rule::new(|cx, call| compared(cx, call, "LE")),
    operator::gt => Rule::new(|cx, call| compared(cx, call, "GT")),
    operator::ge => Rule::new(|cx, call| compared(cx, call, "GE")),
    operator::and_ => Rule::new(pair("and", "a", "b")),
    operator::or_ => Rule::new(pair("or", "a", "b")),
    operator::xor => Rule::new(pair("xor", "a", "b")),
    operator::invert => Rule::new(inverted("a")),
    operator::lshift => Rule::new(pair("shift_left", "a", "b")),
    operator::rshift => Rule::new(|cx, call| shifted_right(cx, call, "a", "b")),
    operator::_assert => Rule::new(|_, call| {
        call.needs_no(&["condition", "message"]);
        Ok(Val::None)
    }),
    operator::assert_specialized => Rule::new(|_, call| {
        call.needs_no(&["value", "argument", "expected"]);
        Ok(Val::None)
    }),
    operator::getattr => Rule::refused("an attribute that is not a size is not part of a program"),
    operator::getitem => Rule::new(getitem),
} }

/// The element type that holds two values, as PyTorch promotes them.
fn common(a: &Val, b: &Val) -> DType {
    match (a, b) {
        (Val::Tensor(a), Val::Tensor(b)) => match (a.shape.is_empty(), b.shape.is_empty()) {
            // A number that a run knows counts as a number.
            (true, false) if class(a.dtype) <= class(b.dtype) => b.dtype,
            (false, true) if class(b.dtype) <= class(a.dtype) => a.dtype,
            _ => a.dtype.promote(b.dtype),
        },
        (Val::Tensor(of), number) | (number, Val::Tensor(of)) => match number {
            Val::Float(_) if !of.dtype.is_floating_point() => DType::F32,
            Val::Dim(_) if of.dtype == DType::Bool => DType::I64,
            _ => of.dtype,
        },
        (Val::Float(_), _) | (_, Val::Float(_)) => DType::F64,
        _ => DType::I64,
    }
}

fn class(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_floating_point() => 2,
        _ => 1,
    }
}

/// A comparison, in the type that holds both.
fn compared(cx: &mut Cx, call: &OpCall<'_>, how: &str) -> Result<Val> {
    let (a, b) = (call.val("a")?, call.val("b")?);
    let dtype = common(&a, &b);
    let (_, shape) = cx.result(call)?;
    let (a, b) = (cx.value(&a, dtype, &shape)?, cx.value(&b, dtype, &shape)?);
    Ok(cx.compare(how, &a, &b).into())
}

fn getitem(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let index = call.val("b")?;
    match call.val("a")? {
        Val::List(items) => match index {
            Val::Slice(parts) => {
                let [start, stop, step] = bounds(&parts, items.len() as i64)?;
                // `bounds` gives steps above 0 alone.
                let step = usize::try_from(step).unwrap_or(usize::MAX);
                let (start, stop) = (start as usize, stop as usize);
                let items = items.into_iter().take(stop).skip(start);
                Ok(Val::List(items.step_by(step).collect()))
            }
            index => {
                let at = index.as_int().map(|at| wrapped(at, items.len()));
                let item = at.and_then(|at| items.get(usize::try_from(at).ok()?).cloned());
                item.ok_or_else(|| {
                    Error::msg("a list is indexed by a number that only a run knows")
                })
            }
        },
        Val::Dict(items) => {
            let Val::Str(key) = index else {
                return Err(Error::msg("a dict is indexed by something that is no text"));
            };
            let item = items.into_iter().find(|(known, _)| *known == key);
            item.map(|(_, item)| item)
                .ok_or_else(|| Error::msg(format_args!("there is no `{key}`")))
        }
        Val::Tensor(x) => indexed(cx, call, &x, index),
        other => Err(Error::msg(format_args!(
            "{} has no items",
            other.describe()
        ))),
    }
}

/// Start, stop and step of a slice along a dim of this size.
fn bounds(parts: &[Val; 3], size: i64) -> Result<[i64; 3]> {
    let number = |val: &Val, or: i64| match val {
        Val::None => Ok(or),
        val => val
            .as_int()
            .ok_or_else(|| Error::msg("a slice by a number that only a run knows")),
    };
    let place = |val: &Val, or: i64| -> Result<i64> {
        let at = number(val, or)?;
        Ok(if at < 0 { at.saturating_add(size) } else { at }.clamp(0, size))
    };
    let (start, stop) = (place(&parts[0], 0)?, place(&parts[1], size)?);
    match number(&parts[2], 1)? {
        step if step > 0 => Ok([start, stop.max(start), step]),
        step => Err(Error::msg(format_args!(
            "a slice by {step}: use `flip`, and a step above 0"
        ))),
    }
}

/// The elements of a tensor at an index: slices and numbers first, then new dims, then places that a run knows.
fn indexed(cx: &mut Cx, call: &OpCall<'_>, x: &Operand, index: Val) -> Result<Val> {
    let mut x = cx.array(x)?;
    let given = match index {
        Val::List(parts) => parts,
        one => vec![one],
    };
    let uses = |val: &Val| match val {
        Val::None | Val::Ellipsis => 0,
        Val::Tensor(of) if of.dtype == DType::Bool => of.rank(),
        _ => 1,
    };
    let rest = x.rank().saturating_sub(given.iter().map(uses).sum());
    let mut parts: Vec<Val> = Vec::new();
    for val in given {
        match val {
            Val::Ellipsis => parts.extend((0..rest).map(|_| whole())),
            val => parts.push(val),
        }
    }
    // Slices and numbers.
    let (mut starts, mut limits) = (vec![0; x.rank()], x.shape.clone());
    let mut strides = vec![1; x.rank()];
    let mut shape = Vec::new();
    let mut picks: Vec<(usize, Array)> = Vec::new();
    let mut dim = 0;
    for part in parts {
        match part {
            Val::None => shape.push(1),
            Val::Slice(bounded) => {
                let size = size_of(&x, dim)?;
                let [start, stop, step] = bounds(&bounded, size)?;
                (starts[dim], limits[dim], strides[dim]) = (start, stop, step);
                shape.push((stop - start + step - 1) / step);
                dim += 1;
            }
            Val::Tensor(of) if of.dtype == DType::Bool => {
                return Err(Error::msg(
                    "how many elements a mask picks is known by a run alone: use `where` or `masked_fill`",
                ));
            }
            Val::Tensor(of) => {
                let of = cx.array(&of)?;
                picks.push((shape.len(), of));
                shape.push(size_of(&x, dim)?);
                dim += 1;
            }
            part => {
                let at = match &part {
                    Val::Dim(at) => at.as_number(),
                    _ => None,
                };
                let Some(at) = at else {
                    return Err(Error::msg(format_args!("{} is no index", part.describe())));
                };
                let size = size_of(&x, dim)?;
                let at = if at < 0 { at + size } else { at };
                (starts[dim], limits[dim]) = (at, at + 1);
                dim += 1;
            }
        }
    }
    shape.extend(x.shape.iter().skip(dim));
    x = cx.slice(&x, &starts, &limits, &strides);
    x = cx.reshape(&x, &shape);
    if picks.is_empty() {
        return Ok(x.into());
    }
    let (_, result) = cx.result(call)?;
    picked(cx, &x, picks, &result)
}

fn whole() -> Val {
    Val::Slice(Box::new([Val::None, Val::None, Val::None]))
}

fn size_of(x: &Array, dim: usize) -> Result<i64> {
    x.shape
        .get(dim)
        .copied()
        .ok_or_else(|| Error::msg(format_args!("more indices than the {} dims", x.rank())))
}

/// The elements at places of some dims, which all broadcast to one shape.
fn picked(cx: &mut Cx, x: &Array, picks: Vec<(usize, Array)>, result: &[i64]) -> Result<Val> {
    let dims: Vec<usize> = picks.iter().map(|(dim, _)| *dim).collect();
    let rank = picks.iter().map(|(_, of)| of.rank()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for (_, of) in &picks {
        for (at, size) in of.shape.iter().rev().enumerate() {
            if *size != 1 {
                shape[rank - 1 - at] = *size;
            }
        }
    }
    let together = dims.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let mut places = Vec::new();
    for (dim, of) in &picks {
        let of = cx.convert(of, DType::I64);
        let of = cx.expand(&of, &shape)?;
        places.push((*dim, of));
    }
    let rows = take_rows(cx, x, &places);
    if !together || dims[0] == 0 {
        return Ok(cx.reshape(&rows, result).into());
    }
    // The dims of the places stand where those of the tensor stood.
    let (count, front) = (shape.len() as i64, dims[0] as i64);
    let mut order: Vec<i64> = (count..count + front).collect();
    order.extend(0..count);
    order.extend(count + front..rows.rank() as i64);
    let rows = cx.transpose(&rows, &order);
    Ok(cx.reshape(&rows, result).into())
}
