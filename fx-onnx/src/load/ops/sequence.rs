//! Sequences, whose lengths are known while a file is read, and values that may be left out.

use std::cell::RefCell;

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::control::{Kind, back, inside, values};
use crate::load::checks::pieces;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::texts;
use crate::load::value::{Given, V};
use crate::load::whole::Whole;
use crate::proto::GraphProto;

pub(super) const TABLE: &[Operator] = &[
    op("SequenceEmpty", |_| Ok(vec![V::Seq(Vec::new())])),
    op("SequenceConstruct", |cx| {
        cx.inputs.iter().try_for_each(item)?;
        Ok(vec![V::Seq(cx.inputs.clone())])
    })
    .any_type()
    .reads_text(),
    op("SequenceLength", |cx| {
        if let V::List(list, _) = cx.input(0) {
            return Ok(vec![V::Ints(vec![list.size(0)?], true)]);
        }
        Ok(vec![V::Ints(vec![(items(cx)?.len() as i64).into()], true)])
    }),
    op("SequenceAt", |cx| {
        if let V::List(list, dtype) = cx.input(0) {
            let at = cx.whole(1)?.counted(&list.size(0)?.into())?;
            return Ok(vec![V::Tensor(ops::select(list, 0, at.int()?)?, *dtype)]);
        }
        let all = items(cx)?;
        let at = cx.whole(1)?;
        if at.known().is_none() {
            return picked(&all, &at);
        }
        let at = place(cx, 1, all.len())?;
        all.get(at)
            .cloned()
            .map(|v| vec![v])
            .ok_or_else(|| Error::msg("an item that is not there"))
    })
    .any_type()
    .reads_text(),
    op("SequenceInsert", |cx| {
        if let V::List(list, dtype) = cx.input(0) {
            item(cx.input(1))?;
            if cx.has(2) {
                return Err(Error::msg(
                    "an item put into a sequence whose length a run decides, other than at its end",
                ));
            }
            let item = ops::unsqueeze(&cx.tensor(1)?, 0)?;
            return Ok(vec![V::List(ops::cat(&[list.clone(), item], 0)?, *dtype)]);
        }
        let mut all = items(cx)?;
        let at = if cx.has(2) {
            place(cx, 2, all.len())?
        } else {
            all.len()
        };
        if at > all.len() {
            return Err(Error::msg("an item far behind the end"));
        }
        item(cx.input(1))?;
        all.insert(at, cx.input(1).clone());
        Ok(vec![V::Seq(all)])
    })
    .any_type()
    .reads_text(),
    op("SequenceErase", |cx| {
        let mut all = items(cx)?;
        let at = if cx.has(1) {
            place(cx, 1, all.len())?
        } else {
            all.len().saturating_sub(1)
        };
        if at >= all.len() {
            return Err(Error::msg("an item that is not there"));
        }
        all.remove(at);
        Ok(vec![V::Seq(all)])
    })
    .any_type(),
    op("SequenceMap", mapped).any_type(),
    op("ConcatFromSequence", |cx| {
        if let V::List(list, dtype) = cx.input(0) {
            return together(cx, list, *dtype);
        }
        if items(cx)?.iter().any(|v| matches!(v, V::Texts(_))) {
            let items = items(cx)?;
            let all = items.iter().map(V::texts).collect::<Result<Vec<_>>>()?;
            return texts::joined(&all, |places| joined(cx, places));
        }
        let all = items(cx)?
            .iter()
            .map(V::tensor)
            .collect::<Result<Vec<Tensor>>>()?;
        let dtype = items(cx)?.first().and_then(V::dtype);
        Ok(vec![V::Tensor(joined(cx, &all)?, dtype)])
    })
    .any_type(),
    op("SplitToSequence", |cx| {
        let x = cx.tensor(0)?;
        let axis = cx.axis("axis", 0, cx.rank(0)?)?;
        let size = cx.shape(0)?[axis as usize].as_number();
        if size.is_none() && !cx.has(1) && cx.int("keepdims", 1) == 0 {
            // As many items as a run has.
            let items = ops::movedim(&x, axis, 0)?;
            return Ok(vec![V::List(items, cx.input(0).dtype())]);
        }
        let size = size.ok_or_else(|| Error::msg("pieces of a size that is not known"))?;
        let (sizes, keep) = match cx.has(1) {
            false => (vec![1; size as usize], cx.int("keepdims", 1) != 0),
            true if cx.rank(1)? == 0 => {
                let each = cx.input(1).known_ints()?[0].max(1);
                (
                    (0..(size + each - 1) / each)
                        .map(|at| each.min(size - at * each))
                        .collect(),
                    true,
                )
            }
            true => (cx.input(1).known_ints()?, true),
        };
        let mut at = 0;
        let mut all = Vec::new();
        for length in sizes {
            let mut piece = ops::narrow(&x, axis, at, length)?;
            if !keep {
                piece = ops::squeeze(&piece, axis)?;
            }
            all.push(V::Tensor(piece, cx.input(0).dtype()));
            at += length;
        }
        Ok(vec![V::Seq(all)])
    })
    .check(|cx| pieces(cx, None))
    .moves_text(),
    // What is there or not is known while a file is read.
    op("Optional", |cx| Ok(vec![cx.input(0).clone()]))
        .views()
        .reads_text(),
    op("OptionalHasElement", |cx| {
        let is_there = Tensor::full((), cx.has(0), DType::Bool)?;
        cx.of(is_there, DType::Bool)
    })
    .any_type()
    .reads_text(),
    op("OptionalGetElement", |cx| match cx.has(0) {
        true => Ok(vec![cx.input(0).clone()]),
        false => Err(Error::msg("the element of an optional value that has none")),
    })
    .views()
    .reads_text(),
];

/// What a body gives for each item: sequences of its results. A sequence among the other inputs gives an item too.
fn mapped(cx: &mut NodeCx<'_>) -> Given {
    let body = cx.graph("body")?;
    if let V::List(..) = cx.input(0) {
        return scanned(cx, body);
    }
    let count = items(cx)?.len();
    let mut results: Vec<Vec<V>> = vec![Vec::new(); body.output.len()];
    for at in 0..count {
        let own = cx.inputs.iter().map(|v| match v {
            V::Seq(items) => items.get(at).cloned().ok_or_else(|| {
                Error::msg(format_args!(
                    "sequences of {count} and of {} items are mapped together",
                    items.len()
                ))
            }),
            other => Ok(other.clone()),
        });
        let given = inside(cx, body, own.collect::<Result<_>>()?)?;
        for (all, v) in results.iter_mut().zip(given) {
            item(&v)?;
            all.push(v);
        }
    }
    Ok(results.into_iter().map(V::Seq).collect())
}

/// The same of sequences whose length a run decides: what the body gives is stacked.
fn scanned(cx: &NodeCx<'_>, body: &GraphProto) -> Given {
    let is_list = |v: &&V| matches!(v, V::List(..));
    let lists: Vec<V> = cx.inputs.iter().filter(is_list).cloned().collect();
    let kinds: Vec<Kind> = lists.iter().map(|v| Kind::Tensor(v.dtype())).collect();
    let dtypes = RefCell::new(Vec::new());
    let step = |state: Value, items: Value| -> Result<(Value, Value)> {
        let mut items = back(items, &kinds)?.into_iter();
        let own = cx.inputs.iter().map(|v| match v {
            V::List(..) => Ok(items.next().unwrap_or(V::Absent)),
            V::Seq(_) => Err(Error::msg(
                "sequences are mapped together, and a run decides the length of one alone",
            )),
            other => Ok(other.clone()),
        });
        let given = inside(cx, body, own.collect::<Result<_>>()?)?;
        given.iter().try_for_each(item)?;
        *dtypes.borrow_mut() = given.iter().map(V::dtype).collect();
        Ok((state, values(given)?))
    };
    let (_, stacked): (Value, Value) = control::scan(values(Vec::new())?, values(lists)?, step)?;
    let kinds = dtypes.borrow();
    let kinds: Vec<Kind> = kinds.iter().copied().map(Kind::List).collect();
    back(stacked, &kinds)
}

/// The items of a sequence whose length a run decides, put together.
fn together(cx: &NodeCx<'_>, list: &Tensor, dtype: Option<DType>) -> Given {
    let axis = cx.int("axis", 0);
    let y = match (cx.flag("new_axis"), axis) {
        (true, axis) => ops::movedim(list, 0, axis)?,
        (false, 0..) => ops::flatten(&ops::movedim(list, 0, axis)?, axis, axis + 1)?,
        // Counted from the end, where the items have one dim fewer.
        (false, axis) => ops::flatten(&ops::movedim(list, 0, axis - 1)?, axis - 1, axis)?,
    };
    Ok(vec![V::Tensor(y, dtype)])
}

/// Items put together, as the attributes say.
fn joined(cx: &NodeCx<'_>, all: &[Tensor]) -> Result<Tensor> {
    let axis = cx.int("axis", 0);
    match cx.flag("new_axis") {
        true => ops::stack(all, axis),
        false => ops::cat(all, axis),
    }
}

/// Refuses what is no item of a sequence.
fn item(of: &V) -> Result<()> {
    match of {
        V::Tensor(..) | V::Ints(..) | V::Sizes(_) | V::Texts(_) => Ok(()),
        V::Seq(_) | V::List(..) => Err(Error::msg("a sequence in a sequence")),
        V::Host(_) => Err(Error::msg("maps in a sequence")),
        V::Absent => Err(Error::msg("an item is left out")),
    }
}

fn items(cx: &NodeCx<'_>) -> Result<Vec<V>> {
    match cx.input(0) {
        V::Seq(items) => Ok(items.clone()),
        _ => Err(Error::msg("a sequence is expected")),
    }
}

fn place(cx: &NodeCx<'_>, at: usize, count: usize) -> Result<usize> {
    let place = cx.input(at).known_ints()?.first().copied().unwrap_or(0);
    let place = if place < 0 {
        place + count as i64
    } else {
        place
    };
    usize::try_from(place).map_err(|_| Error::msg("an item before the first"))
}

/// The item at a place that only a run knows, of items of one shape.
fn picked(all: &[V], at: &Whole) -> Given {
    let shapes: Vec<_> = all
        .iter()
        .map(|v| v.meta().map(|meta| meta.shape))
        .collect();
    let first = shapes
        .first()
        .ok_or_else(|| Error::msg("an item of no items"))?;
    if first.is_none() || shapes.iter().any(|shape| shape != first) {
        return Err(Error::msg(
            "an item at a place that only a run knows, of items of several shapes",
        ));
    }
    let tensors = all.iter().map(V::tensor).collect::<Result<Vec<Tensor>>>()?;
    let at = at.counted(&Whole::from(all.len() as i64))?;
    let item = ops::select(&ops::stack(&tensors, 0)?, 0, at.int()?)?;
    Ok(vec![V::Tensor(item, all[0].dtype())])
}
