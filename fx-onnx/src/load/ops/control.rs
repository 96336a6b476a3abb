//! Branches and scans.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::{Dim, IntoValue};
use fx_nn::{Error, Result};

use crate::load::known::address;
use crate::load::look::look;
use crate::load::node::{NodeCx, of_rank};
use crate::load::operator::{Operator, op};
use crate::load::scope::{Scope, Scopes};
use crate::load::value::{Given, V};
use crate::proto::GraphProto;
use crate::texts::Texts;

pub(super) const TABLE: &[Operator] = &[
    op("If", branch).any_type().reads_text(),
    op("Scan", scan_of_batch).any_type(),
    op("Scan", scan).since(9).any_type(),
];

/// What a graph gives for inputs.
pub(super) fn inside(cx: &NodeCx<'_>, graph: &GraphProto, inputs: Vec<V>) -> Given {
    let mut scopes: Scopes = cx.scopes.clone();
    let names = graph.input.iter().map(|input| input.name.clone());
    scopes.push(Scope {
        values: names.zip(inputs).collect(),
        body: Some(address(graph)),
    });
    cx.reader.graph(graph, &mut scopes, false)
}

/// What a value of a graph inside of another one is, as the outer one finds it again.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Tensor(Option<DType>),
    Texts,
    /// A sequence of such items.
    Seq(Vec<Kind>),
    /// A sequence whose length a run decides.
    List(Option<DType>),
    Absent,
}

impl Kind {
    pub fn of(v: &V) -> Self {
        match v {
            V::Texts(_) => Kind::Texts,
            V::Seq(items) => Kind::Seq(items.iter().map(Kind::of).collect()),
            V::List(_, dtype) => Kind::List(*dtype),
            V::Absent => Kind::Absent,
            other => Kind::Tensor(other.dtype()),
        }
    }

    pub fn all(given: &[V]) -> Vec<Self> {
        given.iter().map(Kind::of).collect()
    }

    /// Whether values of both are built alike.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Kind::Tensor(_), Kind::Tensor(_)) | (Kind::List(_), Kind::List(_)) => true,
            (Kind::Seq(a), Kind::Seq(b)) => a.len() == b.len(),
            (a, b) => a == b,
        }
    }

    fn back(&self, value: &Value) -> Result<V> {
        Ok(match (self, value) {
            (Kind::Tensor(dtype), value) => V::Tensor(Tensor::from_value(value.clone())?, *dtype),
            (Kind::List(dtype), value) => V::List(Tensor::from_value(value.clone())?, *dtype),
            (Kind::Texts, value) => V::Texts(Texts::from_value(value.clone())?),
            (Kind::Seq(kinds), Value::List(items)) if kinds.len() == items.len() => {
                let items = kinds.iter().zip(items).map(|(kind, item)| kind.back(item));
                V::Seq(items.collect::<Result<_>>()?)
            }
            (Kind::Seq(_), _) => return Err(Error::msg("a sequence was lost")),
            (Kind::Absent, _) => V::Absent,
        })
    }
}

/// Values as one of a graph.
pub(super) fn values(given: Vec<V>) -> Result<Value> {
    let one = |v: V| match v {
        V::List(list, _) => Ok(list.into_value()),
        V::Texts(texts) => Ok(texts.into_value()),
        V::Absent => Ok(Value::None),
        other => Ok(other.tensor()?.into_value()),
    };
    let all = given.into_iter().map(|v| match v {
        V::Seq(items) => {
            let items = items.into_iter().map(one);
            Ok(Value::List(items.collect::<Result<_>>()?))
        }
        other => one(other),
    });
    Ok(Value::Tuple(all.collect::<Result<_>>()?))
}

/// Values of these kinds, of one of a graph.
pub(super) fn back(value: Value, kinds: &[Kind]) -> Given {
    let Value::Tuple(items) = &value else {
        return Err(Error::msg("a graph gives no list of values"));
    };
    let unknown = Kind::Tensor(None);
    items
        .iter()
        .enumerate()
        .map(|(at, item)| kinds.get(at).unwrap_or(&unknown).back(item))
        .collect()
}

fn branch(cx: &mut NodeCx<'_>) -> Given {
    let condition = cx.tensor(0)?;
    let (then, otherwise) = (cx.graph("then_branch")?, cx.graph("else_branch")?);
    if condition.proxy().is_none() {
        return inside(
            cx,
            if condition.item()? != 0.0 {
                then
            } else {
                otherwise
            },
            Vec::new(),
        );
    }
    if cx.scopes.len() == 1 || cx.input(0).meta().is_some() {
        for graph in [then, otherwise] {
            look(cx.reader, cx.scopes, graph, &[], 0..0, 0);
        }
    }
    let kinds = std::cell::RefCell::new(Vec::new());
    let side = |graph: &GraphProto| -> Result<Value> {
        let given = inside(cx, graph, Vec::new())?;
        let own = Kind::all(&given);
        let mut kinds = kinds.borrow_mut();
        let mut pairs = own.iter().zip(kinds.iter());
        if pairs.any(|(own, other): (&Kind, &Kind)| !own.is_like(other)) {
            return Err(Error::msg(
                "the sides of a branch that only a run decides give sequences of other lengths, or one of them gives none",
            ));
        }
        *kinds = own;
        drop(kinds);
        values(given)
    };
    let condition = ops::reshape(&condition, [1])?;
    let given = control::cond(condition, || side(then), || side(otherwise))?;
    let mut given = back(given, &kinds.borrow())?;
    if cx.scopes.len() > 1 {
        // A look may know which side is taken, where the graph knows nothing that both have in common.
        for (v, name) in given.iter_mut().zip(&cx.node.output) {
            if let (V::Tensor(x, _), Some(meta)) = (&mut *v, cx.reader.known.find(cx.scopes, name))
            {
                *x = of_rank(x, meta.shape.len())?;
            }
        }
    }
    Ok(given)
}

/// A scan of opset 8 goes over a batch: it is one for each row.
fn scan_of_batch(cx: &mut NodeCx<'_>) -> Given {
    let sequences = cx.int("num_scan_inputs", 1) as usize;
    let values = &cx.inputs[1.min(cx.inputs.len())..];
    let carries = values
        .len()
        .checked_sub(sequences)
        .ok_or_else(|| Error::msg("a scan over more than its inputs"))?;
    let size = |at: usize, dim: usize| {
        let shape = cx.shape(at)?;
        let size = shape.get(dim).and_then(Dim::as_number);
        size.ok_or_else(|| {
            Error::msg("a scan of opset 8 over a batch of a size that is not known: fix it with `Load::dim`")
        })
    };
    let batch = size(1, 0)?;
    if !(1..=1 << 14).contains(&batch) {
        return Err(Error::msg(format_args!(
            "a batch of {batch} rows, each of which would be a scan of its own"
        )));
    }
    if cx.has(0) {
        let lengths = cx.input(0).known_ints()?;
        let whole = size(1 + carries, 1)?;
        if lengths.iter().any(|length| *length != whole) {
            return Err(Error::msg("sequences of several lengths"));
        }
    }
    let turned = cx.ints("directions").unwrap_or_default();
    let mut rows: Vec<Vec<V>> = Vec::new();
    for row in 0..batch {
        let own = values.iter().map(|v| {
            let x = ops::select(&v.tensor()?, 0, row)?;
            Ok(V::Tensor(x, v.dtype()))
        });
        let own = own.collect::<Result<Vec<V>>>()?;
        rows.push(scanned(cx, own, &vec![0; sequences], &turned)?);
    }
    let count = rows.first().map_or(0, Vec::len);
    let stacked = (0..count).map(|at| {
        let each = rows.iter().map(|row| row[at].tensor());
        let each = each.collect::<Result<Vec<Tensor>>>()?;
        Ok(V::Tensor(ops::stack(&each, 0)?, rows[0][at].dtype()))
    });
    stacked.collect()
}

fn scan(cx: &mut NodeCx<'_>) -> Given {
    let sequences = cx.int("num_scan_inputs", 1) as usize;
    if sequences > cx.inputs.len() {
        return Err(Error::msg("a scan over more than its inputs"));
    }
    let axes = |name: &str, count: usize| {
        cx.ints(name)
            .filter(|a| !a.is_empty())
            .unwrap_or_else(|| vec![0; count])
    };
    let in_axes = axes("scan_input_axes", sequences);
    let in_turned = axes("scan_input_directions", sequences);
    let given = scanned(cx, cx.inputs.clone(), &in_axes, &in_turned)?;
    let carries = cx.inputs.len().saturating_sub(sequences);
    let results = given.len().saturating_sub(carries);
    let out_axes = axes("scan_output_axes", results);
    let out_turned = axes("scan_output_directions", results);
    let mut all = Vec::new();
    for (at, v) in given.into_iter().enumerate() {
        let Some(at) = at.checked_sub(carries) else {
            all.push(v);
            continue;
        };
        let dtype = v.dtype();
        let mut x = v.tensor()?;
        if out_turned.get(at).is_some_and(|t| *t != 0) {
            x = ops::flip(&x, 0)?;
        }
        if out_axes.get(at).is_some_and(|a| *a != 0) {
            x = ops::movedim(&x, 0, out_axes[at])?;
        }
        all.push(V::Tensor(x, dtype));
    }
    Ok(all)
}

/// The states after a scan, and its results, stacked along a new first dim.
fn scanned(cx: &NodeCx<'_>, inputs: Vec<V>, axes: &[i64], turned: &[i64]) -> Given {
    let body = cx.graph("body")?;
    let sequences = cx.int("num_scan_inputs", 1) as usize;
    let carries = inputs
        .len()
        .checked_sub(sequences)
        .ok_or_else(|| Error::msg("a scan over more than its inputs"))?;
    let dtypes: Vec<Option<DType>> = inputs.iter().map(V::dtype).collect();
    let kinds = Kind::all(&inputs);
    let mut lists = Vec::new();
    let mut first = inputs[..carries].to_vec();
    for at in 0..sequences {
        let mut x = inputs[carries + at].tensor()?;
        let axis = axes.get(at).copied().unwrap_or(0);
        if axis != 0 {
            x = ops::movedim(&x, axis, 0)?;
        }
        if turned.get(at).is_some_and(|t| *t != 0) {
            x = ops::flip(&x, 0)?;
        }
        let v = V::Tensor(x.clone(), dtypes[carries + at]);
        if v.meta().is_some() {
            first.push(V::Tensor(ops::select(&x, 0, 0)?, v.dtype()));
        }
        lists.push(x.into_value());
    }
    if first.len() == inputs.len() {
        look(cx.reader, cx.scopes, body, &first, 0..carries, 0);
    }
    let begin = values(inputs[..carries].to_vec())?;
    let given_types = std::cell::RefCell::new(Vec::new());
    let step = |state: Value, items: Value| -> Result<(Value, Value)> {
        let mut inputs = back(state, &kinds[..carries])?;
        inputs.extend(back(items, &kinds[carries..])?);
        let mut given = inside(cx, body, inputs)?;
        let rest = given.split_off(carries.min(given.len()));
        *given_types.borrow_mut() = Kind::all(&rest);
        Ok((values(given)?, values(rest)?))
    };
    let (state, stacked): (Value, Value) = control::scan(begin, Value::Tuple(lists.into()), step)?;
    let mut all = back(state, &kinds)?;
    all.extend(back(stacked, &given_types.borrow())?);
    Ok(all)
}
