//! fx's operators, on tensors and on numbers that a run knows.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result, function_table, operator};

use super::arithmetic::{bits, both, common, floor_divide, inverted, pair, remainder, shift};
use crate::out::Rule;
use crate::out::context::Cx;
use fx_nn::lowering::{OpCall, wrapped};
use fx_nn::lowering::{Operand, Val};

function_table! { Rule {
    operator::add => Rule::new(|cx, call| match (call.val("a")?, call.val("b")?) {
        (Val::List(mut a), Val::List(b)) => {
            a.extend(b);
            Ok(Val::List(a))
        }
        _ => pair("Add", "a", "b")(cx, call),
    }),
    operator::sub => Rule::new(pair("Sub", "a", "b")),
    operator::mul => Rule::new(pair("Mul", "a", "b")),
    operator::truediv => Rule::new(pair("Div", "a", "b")),
    operator::floordiv => Rule::new(|cx, call| floor_divide(cx, call, "a", "b")),
    operator::r#mod => Rule::new(|cx, call| remainder(cx, call, "a", "b")),
    operator::pow => Rule::new(|cx, call| {
        let dtype = call.dtype()?;
        let (a, b) = both(cx, call, "a", "b", dtype)?;
        let name = match call.val("b")?.as_f64() {
            Some(2.0) => cx.op("Mul", &[&a.name, &a.name]),
            Some(0.5) if dtype.is_floating_point() => cx.op("Sqrt", &[&a.name]),
            _ => cx.op("Pow", &[&a.name, &b.name]),
        };
        call.given(name)
    }),
    operator::neg => Rule::new(|cx, call| {
        let x = cx.operand(&call.val("a")?, call.dtype()?)?;
        let name = cx.op("Neg", &[&x.name]);
        call.given(name)
    }),
    operator::abs => Rule::new(|cx, call| {
        let x = cx.operand(&call.val("a")?, call.dtype()?)?;
        let name = cx.op("Abs", &[&x.name]);
        call.given(name)
    }),
    operator::matmul => Rule::new(|cx, call| {
        let (a, b) = both(cx, call, "a", "b", call.dtype()?)?;
        let name = cx.op("MatMul", &[&a.name, &b.name]);
        call.given(name)
    }),
    operator::eq => Rule::new(|cx, call| compared(cx, call, "Equal", false)),
    operator::ne => Rule::new(|cx, call| compared(cx, call, "Equal", true)),
    operator::lt => Rule::new(|cx, call| compared(cx, call, "Less", false)),
    operator::le => Rule::new(|cx, call| compared(cx, call, "LessOrEqual", false)),
    operator::gt => Rule::new(|cx, call| compared(cx, call, "Greater", false)),
    operator::ge => Rule::new(|cx, call| compared(cx, call, "GreaterOrEqual", false)),
    operator::and_ => Rule::new(bits("BitwiseAnd", "And", "a", "b")),
    operator::or_ => Rule::new(bits("BitwiseOr", "Or", "a", "b")),
    operator::xor => Rule::new(bits("BitwiseXor", "Xor", "a", "b")),
    operator::invert => Rule::new(inverted("a")),
    operator::lshift => Rule::new(|cx, call| shift(cx, call, "a", "b", true)),
    operator::rshift => Rule::new(|cx, call| shift(cx, call, "a", "b", false)),
    operator::_assert => Rule::new(|_, _| Ok(Val::None)),
    operator::assert_specialized => Rule::new(|_, _| Ok(Val::None)),
    operator::getattr => Rule::refused("an attribute that is not a size is not part of a file"),
    operator::getitem => Rule::new(getitem),
} }

/// A comparison, in the type that holds both.
fn compared(cx: &mut Cx, call: &OpCall<'_>, op: &str, not: bool) -> Result<Val> {
    let dtype = common(&call.val("a")?, &call.val("b")?);
    let dtype = if dtype == DType::Bool && op != "Equal" {
        DType::I32
    } else {
        dtype
    };
    let (a, b) = both(cx, call, "a", "b", dtype)?;
    let name = cx.op(op, &[&a.name, &b.name]);
    let name = if not { cx.op("Not", &[&name]) } else { name };
    call.given(name)
}

/// One part of an index.
enum Part {
    At(Val),
    Slice(Box<[Val; 3]>),
    New,
    Whole,
    Pick(Operand),
}

fn getitem(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let index = call.val("b")?;
    match call.val("a")? {
        Val::List(items) => match index {
            Val::Slice(parts) => {
                let size = items.len() as i64;
                let end = |val: &Val, or: i64| {
                    val.as_int()
                        .map_or(or, |at| if at < 0 { at + size } else { at })
                        .clamp(0, size) as usize
                };
                let (start, stop) = (end(&parts[0], 0), end(&parts[1], size));
                let step = parts[2].as_int().unwrap_or(1).max(1) as usize;
                Ok(Val::List(
                    items
                        .into_iter()
                        .take(stop)
                        .skip(start)
                        .step_by(step)
                        .collect(),
                ))
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
        Val::Tensor(x) => indexed(cx, call, x, index),
        other => Err(Error::msg(format_args!(
            "{} has no items",
            other.describe()
        ))),
    }
}

/// The elements of a tensor at an index.
fn indexed(cx: &mut Cx, call: &OpCall<'_>, x: Operand, index: Val) -> Result<Val> {
    let given = match index {
        Val::List(parts) => parts,
        one => vec![one],
    };
    let takes = |val: &Val| !matches!(val, Val::None | Val::Str(_));
    let used: usize = given
        .iter()
        .filter(|val| takes(val))
        .map(|val| match val {
            Val::Tensor(of) if of.dtype == DType::Bool => of.rank(),
            _ => 1,
        })
        .sum();
    let rest = x.rank().saturating_sub(used);
    let mut parts = Vec::new();
    for val in given {
        match val {
            Val::None => parts.push(Part::New),
            Val::Str(_) => parts.extend((0..rest).map(|_| Part::Whole)),
            Val::Slice(ends) => parts.push(Part::Slice(ends)),
            Val::Tensor(of) if of.rank() > 0 => parts.push(Part::Pick(of)),
            other => parts.push(Part::At(other)),
        }
    }
    let picks = parts
        .iter()
        .filter(|part| matches!(part, Part::Pick(_)))
        .count();
    let mut name = x.name.clone();
    if let [Part::Pick(mask)] = &*parts
        && mask.dtype == DType::Bool
        && mask.rank() <= x.rank()
    {
        let places = cx.op("NonZero", &[&mask.name]);
        let places = cx
            .node("Transpose")
            .input(&places)
            .ints("perm", [1, 0])
            .output();
        let name = cx.op("GatherND", &[&name, &places]);
        return call.given(name);
    }
    if picks > 1 {
        return picked(cx, call, &x, &parts);
    }
    // All slices are one node.
    let (mut starts, mut ends, mut axes, mut steps) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut axis = 0i64;
    for part in &parts {
        if let Part::Slice(of) = part {
            let step = of[2].as_int().unwrap_or(1);
            let is_whole = of[0].as_int().is_none_or(|at| at == 0)
                && matches!(of[0], Val::None | Val::Dim(_))
                && of[1] == Val::None
                && step == 1
                && (of[0] == Val::None || of[0].as_int() == Some(0));
            if !is_whole {
                let end = |val: &Val, or: i64| match val {
                    Val::Dim(dim) => dim.clone(),
                    _ => Dim::from(or),
                };
                starts.push(end(&of[0], if step < 0 { i64::MAX } else { 0 }));
                ends.push(end(&of[1], if step < 0 { i64::MIN } else { i64::MAX }));
                axes.push(axis);
                steps.push(step);
            }
        }
        axis += i64::from(!matches!(part, Part::New));
    }
    if !axes.is_empty() {
        let (starts, ends) = (cx.sizes(&starts)?, cx.sizes(&ends)?);
        let mut node_inputs = vec![name.clone(), starts, ends];
        node_inputs.push(cx.i64s(&axes));
        if steps.iter().any(|s| *s != 1) {
            node_inputs.push(cx.i64s(&steps));
        }
        let inputs: Vec<&fx_nn::lowering::Name> = node_inputs.iter().collect();
        name = cx.op("Slice", &inputs);
    }
    let mut axis = 0i64;
    let mut new = Vec::new();
    for part in parts {
        match part {
            Part::At(val) => {
                let at = cx.operand(&val, DType::I64)?;
                name = cx
                    .node("Gather")
                    .input(&name)
                    .input(&at.name)
                    .int("axis", axis)
                    .output();
            }
            Part::Pick(of) => {
                let of = cx.cast(&of, DType::I64)?;
                name = cx
                    .node("Gather")
                    .input(&name)
                    .input(&of.name)
                    .int("axis", axis)
                    .output();
                axis += of.rank() as i64;
            }
            Part::New => {
                new.push(axis);
                axis += 1;
                if !new.is_empty() {
                    let at = cx.i64s(&[new.pop().unwrap_or(0)]);
                    name = cx.op("Unsqueeze", &[&name, &at]);
                }
            }
            Part::Slice(_) | Part::Whole => axis += 1,
        }
    }
    call.given(name)
}

/// Elements at several tensors of places, for the first dims.
fn picked(cx: &mut Cx, call: &OpCall<'_>, x: &Operand, parts: &[Part]) -> Result<Val> {
    let mut places = Vec::new();
    for part in parts {
        let Part::Pick(of) = part else {
            return Err(Error::msg(
                "tensors of places beside slices: index in two steps",
            ));
        };
        places.push(cx.cast(of, DType::I64)?);
    }
    let rank = places.iter().map(Operand::rank).max().unwrap_or(0);
    let shape = &call.result()?.shape[..rank.min(call.result()?.shape.len())];
    let mut columns = Vec::new();
    for of in &places {
        let wide = Operand {
            name: cx.expand(of, shape)?,
            dtype: DType::I64,
            shape: shape.to_vec(),
        };
        let last = cx.i64s(&[-1]);
        columns.push(cx.op("Unsqueeze", &[&wide.name, &last]));
    }
    let mut node = cx.node("Concat").int("axis", -1);
    for column in &columns {
        node = node.input(column);
    }
    let places = node.output();
    let name = cx.op("GatherND", &[&x.name, &places]);
    call.given(name)
}
