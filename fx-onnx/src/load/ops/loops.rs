//! Loops: turn by turn while what decides is known, else as a loop of the graph, which carries values, lists of what its
//! turns give, and sequences.
//!
//! Invariant: a list has the results of all turns along a new first dim, and so does a sequence of its items.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::{Dim, IntoValue};
use fx_nn::{Error, Result};

use super::control::{Kind, back, inside, values};
use crate::load::known::address;
use crate::load::look::look;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::scope::Scope;
use crate::load::value::{Given, V};
use crate::proto::GraphProto;

pub(super) const TABLE: &[Operator] = &[op("Loop", turns).any_type().reads_text()];

/// The inputs of a turn before those that are carried.
fn counters() -> Result<Vec<V>> {
    Ok(vec![
        V::of(Tensor::from_vec(vec![0i64], ())?, DType::I64),
        V::of(Tensor::full((), true, DType::Bool)?, DType::Bool),
    ])
}

/// Looks at a turn, so that what its values are is known.
fn first_look(cx: &NodeCx<'_>, body: &GraphProto, carried: &[V]) {
    let Ok(mut first) = counters() else {
        return;
    };
    first.extend(carried.iter().cloned());
    look(cx.reader, cx.scopes, body, &first, 2..first.len(), 1);
}

fn turns(cx: &mut NodeCx<'_>) -> Given {
    let body = cx.graph("body")?;
    let carried: Vec<V> = (2..cx.inputs.len())
        .map(|at| cx.input(at).clone())
        .collect();
    let results = body.output.len().saturating_sub(1 + carried.len());
    let known = |at: usize| -> Result<Option<f64>> {
        match cx.has(at) {
            false => Ok(None),
            true => match cx.input(at) {
                V::Tensor(tensor, _) if tensor.proxy().is_some() => {
                    Err(Error::msg("known only to a run"))
                }
                V::Ints(items, _) => items
                    .first()
                    .and_then(Int::concrete)
                    .map(|n| Some(n as f64))
                    .ok_or_else(|| Error::msg("known only to a run")),
                other => other.tensor()?.item().map(Some),
            },
        }
    };
    let (most, goes) = (known(0), known(1));
    // Turn by turn, for as long as what decides is known.
    if let (Ok(most), Ok(goes)) = (&most, &goes) {
        let most = most.unwrap_or(f64::INFINITY);
        let mut goes = goes.is_none_or(|g| g != 0.0);
        let mut state = carried.clone();
        let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); results];
        let mut dtypes = vec![None; results];
        let mut turn = 0i64;
        let mut decided = true;
        while goes && (turn as f64) < most {
            if turn as usize > cx.reader.limits.nodes {
                return Err(Error::msg("a loop of more turns than `Limits::nodes`"));
            }
            let mut inputs = vec![
                V::of(Tensor::from_vec(vec![turn], ())?, DType::I64),
                V::of(Tensor::full((), true, DType::Bool)?, DType::Bool),
            ];
            inputs.extend(state.iter().cloned());
            let given = inside(cx, body, inputs)?;
            let condition = given.first().cloned().unwrap_or(V::Absent);
            match &condition {
                V::Tensor(tensor, _) if tensor.proxy().is_some() => {
                    decided = false;
                    break;
                }
                other => goes = other.tensor()?.item()? != 0.0,
            }
            state = given[1..=carried.len()].to_vec();
            for (at, v) in given[1 + carried.len()..].iter().enumerate() {
                dtypes[at] = v.dtype();
                lists[at].push(v.tensor()?);
            }
            turn += 1;
        }
        if decided {
            if turn == 0 && results > 0 {
                // No turn says what the lists are of.
                first_look(cx, body, &carried);
                let lists = Lists::of(cx, body, carried.len())?;
                state.extend(
                    lists
                        .begin
                        .into_iter()
                        .zip(lists.dtypes)
                        .map(|(x, d)| V::Tensor(x, d)),
                );
                return Ok(state);
            }
            for (list, dtype) in lists.into_iter().zip(dtypes) {
                state.push(V::Tensor(ops::stack(&list, 0)?, dtype));
            }
            return Ok(state);
        }
    }
    recorded(cx, body, carried)
}

/// The lists of what turns give, without any turn.
struct Lists {
    begin: Vec<Tensor>,
    dtypes: Vec<Option<DType>>,
}

impl Lists {
    fn of(cx: &NodeCx<'_>, body: &GraphProto, carried: usize) -> Result<Self> {
        let mut scopes = cx.scopes.clone();
        scopes.push(Scope {
            values: rustc_hash::FxHashMap::default(),
            body: Some(address(body)),
        });
        let mut lists = Lists {
            begin: Vec::new(),
            dtypes: Vec::new(),
        };
        for output in body.output.iter().skip(1 + carried) {
            let known = cx.reader.known.find(&scopes, &output.name);
            let meta = known.or_else(|| cx.reader.hints.get(&output.name).cloned());
            let meta = meta.ok_or_else(|| {
                Error::msg(format_args!(
                    "a loop stacks `{}`, whose shape is not known: add its types with `onnx.shape_inference`",
                    output.name
                ))
            })?;
            lists.begin.push(empty(cx, &meta.shape, meta.dtype)?);
            lists.dtypes.push(meta.dtype);
        }
        Ok(lists)
    }
}

/// No items of a shape.
fn empty(cx: &NodeCx<'_>, item: &[Dim], dtype: Option<DType>) -> Result<Tensor> {
    let mut sizes = vec![Int::from(0i64)];
    for dim in item {
        sizes.push(cx.reader.size_of(dim)?.int()?);
    }
    ops::zeros(sizes, dtype)
}

/// The list with one more item.
fn longer(list: &Tensor, item: &Tensor) -> Result<Tensor> {
    ops::cat(&[list.clone(), ops::unsqueeze(item, 0)?], 0)
}

/// A sequence that is carried, as one tensor: what it begins with, with the items of a turn where it has none.
fn as_list(cx: &NodeCx<'_>, items: &[V], turn: &V) -> Result<V> {
    if !items.is_empty() {
        let all = items
            .iter()
            .map(V::tensor)
            .collect::<Result<Vec<Tensor>>>()?;
        return Ok(V::List(ops::stack(&all, 0)?, items[0].dtype()));
    }
    let item = match turn {
        V::Seq(items) => items.first(),
        _ => None,
    };
    let meta = item.and_then(V::meta);
    let meta = meta.ok_or_else(|| {
        Error::msg("a loop carries a sequence, of whose items the shape is not known")
    })?;
    Ok(V::List(empty(cx, &meta.shape, meta.dtype)?, meta.dtype))
}

/// A loop whose end only a run knows.
fn recorded(cx: &NodeCx<'_>, body: &GraphProto, mut carried: Vec<V>) -> Given {
    first_look(cx, body, &carried);
    if carried.iter().any(|v| matches!(v, V::Seq(_))) {
        let mut inputs = counters()?;
        inputs.extend(carried.iter().cloned());
        let turn = inside(cx, body, inputs)?;
        for (at, v) in carried.iter_mut().enumerate() {
            if let V::Seq(items) = v {
                *v = as_list(cx, items, turn.get(1 + at).unwrap_or(&V::Absent))?;
            }
        }
    }
    let kinds = Kind::all(&carried);
    let lists = Lists::of(cx, body, carried.len())?;
    let rows_of: Vec<Kind> = lists.dtypes.iter().copied().map(Kind::Tensor).collect();
    let limit = if cx.has(0) { Some(cx.tensor(0)?) } else { None };
    let start = if cx.has(1) {
        cx.tensor(1)?
    } else {
        Tensor::full((), true, DType::Bool)?
    };
    let tuple =
        |all: Vec<Tensor>| Value::Tuple(all.into_iter().map(IntoValue::into_value).collect());
    let begin = vec![
        Tensor::from_vec(vec![0i64], ())?.into_value(),
        ops::reshape(&start, ())?.into_value(),
        values(carried)?,
        tuple(lists.begin),
    ];
    let parts = |state: &Value| -> Result<(Tensor, Tensor, Value, Value)> {
        match state {
            Value::Tuple(items) if items.len() == 4 => Ok((
                Tensor::from_value(items[0].clone())?,
                Tensor::from_value(items[1].clone())?,
                items[2].clone(),
                items[3].clone(),
            )),
            _ => Err(Error::msg("a loop lost its state")),
        }
    };
    let given: Value = control::while_loop(
        Value::Tuple(begin.into()),
        |state: &Value| {
            let (turn, goes, ..) = parts(state)?;
            match &limit {
                Some(limit) => ops::logical_and(&goes, &turn.lt(ops::reshape(limit, ())?)?),
                None => Ok(goes),
            }
        },
        |state: Value| {
            let (turn, goes, carried, rows) = parts(&state)?;
            let mut inputs = vec![V::of(turn.clone(), DType::I64), V::of(goes, DType::Bool)];
            inputs.extend(back(carried, &kinds)?);
            let mut given = inside(cx, body, inputs)?.into_iter();
            let goes = given.next().unwrap_or(V::Absent).tensor()?;
            let next: Vec<V> = given.by_ref().take(kinds.len()).collect();
            let rows = back(rows, &rows_of)?.into_iter().zip(given);
            let rows = rows.map(|(list, row)| longer(&list.tensor()?, &row.tensor()?));
            let state = vec![
                (turn + 1)?.into_value(),
                ops::reshape(&goes, ())?.into_value(),
                values(next)?,
                tuple(rows.collect::<Result<_>>()?),
            ];
            Ok(Value::Tuple(state.into()))
        },
    )?;
    let (_, _, carried, rows) = parts(&given)?;
    let mut all = back(carried, &kinds)?;
    all.extend(back(rows, &rows_of)?);
    Ok(all)
}
