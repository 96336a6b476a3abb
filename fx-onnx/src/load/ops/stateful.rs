//! Layers that hand a state on from call to call: linear attention, and convolutions of what came before.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};

use super::recurrent::tensors;
use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("LinearAttention", linear_attention).check(rows),
    op("CausalConvWithState", |cx| {
        let (x, weight) = (cx.tensor(0)?, cx.tensor(1)?);
        let shape = cx.known_shape(1)?;
        let [channels, 1, width @ 1..=usize::MAX] = shape[..] else {
            return Err(Error::msg(format_args!(
                "a weight of {shape:?}, and [channels, 1, width] is expected"
            )));
        };
        let before = width as i64 - 1;
        let whole = match cx.optional(3)? {
            _ if before == 0 => x.clone(),
            Some(past) => ops::cat(&[past, x.clone()], 2)?,
            None => ops::pad(&x, vec![before, 0], "constant", 0.0)?,
        };
        let bias = cx.optional(2)?;
        let y = ops::conv1d(&whole, &weight, bias.as_ref(), 1, 0, 1, channels)?;
        let y = match &*cx.text("activation", "none") {
            "none" => y,
            "silu" | "swish" => ops::silu(&y)?,
            other => return Err(Error::msg(format_args!("the activation {other:?}"))),
        };
        let state = ops::narrow(&whole, 2, x.size(2)?, before)?;
        let dtype = cx.input(0).dtype();
        Ok(vec![V::Tensor(y, dtype), V::Tensor(state, dtype)])
    })
    .check(|cx| {
        rank(cx, 0, 3..4)?;
        rank(cx, 1, 3..4)
    })
    .weights(&[1, 2]),
];

/// What linear attention asks.
fn rows(cx: &NodeCx<'_>) -> Result<()> {
    (0..3).try_for_each(|at| rank(cx, at, 3..4))
}

/// A step of linear attention: its query, key and value, how much of the state it keeps, and how much it adds.
struct Step<'s> {
    /// `[batch, heads, queries of a head, width]`.
    query: &'s Tensor,
    /// `[batch, heads, 1, width]`, and so is the value.
    key: &'s Tensor,
    value: &'s Tensor,
    /// `[batch, heads, width or 1, 1]`.
    kept: Option<&'s Tensor>,
    /// `[batch, heads or 1, 1, 1]`.
    rate: Option<&'s Tensor>,
}

impl Step<'_> {
    /// The state after the step, and what the queries find in it.
    fn after(&self, state: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut state = match self.kept {
            Some(kept) => (state * kept)?,
            None => state.clone(),
        };
        let mut value = self.value.clone();
        if let Some(rate) = self.rate {
            // What the state has for the key already is not added again.
            value = (rate * (value - ops::matmul(self.key, &state)?)?)?;
        }
        state = (state + (ops::transpose(self.key, -2, -1)? * value)?)?;
        let found = ops::matmul(self.query, &state)?;
        Ok((state, found))
    }
}

fn linear_attention(cx: &mut NodeCx<'_>) -> Given {
    let (queries, heads) = (cx.int("q_num_heads", 0), cx.int("kv_num_heads", 0));
    if heads < 1 || queries < heads || queries % heads != 0 {
        return Err(Error::msg(format_args!(
            "{queries} heads of queries and {heads} of keys"
        )));
    }
    let rule = cx.text("update_rule", "gated_delta");
    let (gated, corrected) = match &*rule {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Error::msg(format_args!("the rule {other:?}"))),
    };
    if cx.has(4) != gated || cx.has(5) != corrected {
        return Err(Error::msg(format_args!(
            "the rule {rule:?} with other inputs than it takes"
        )));
    }
    // Steps first, then the batch and the heads.
    let by_step = |at: usize, sizes: [i64; 3]| -> Result<Tensor> {
        ops::transpose(&ops::unflatten(&cx.single(at)?, 2, sizes)?, 0, 1)
    };
    let q = by_step(0, [heads, queries / heads, -1])?;
    let (k, v) = (by_step(1, [heads, 1, -1])?, by_step(2, [heads, 1, -1])?);
    let mut items = vec![q.clone(), k.clone(), v.clone()];
    if gated {
        items.push(ops::exp(&by_step(4, [heads, -1, 1])?)?);
    }
    if corrected {
        items.push(by_step(5, [-1, 1, 1])?);
    }
    let state = match cx.has(3) {
        true => cx.single(3)?,
        false => {
            let sizes = vec![q.size(1)?, heads.into(), k.size(-1)?, v.size(-1)?];
            ops::new_zeros(&q, sizes, None)?
        }
    };
    let step = |state: &Tensor, items: &[Tensor]| -> Result<(Tensor, Tensor)> {
        let [query, key, value, rest @ ..] = items else {
            return Err(Error::msg("linear attention lost its items"));
        };
        let step = Step {
            query,
            key,
            value,
            kept: rest.first().filter(|_| gated),
            rate: rest.last().filter(|_| corrected),
        };
        step.after(state)
    };
    let (state, y) = match cx.shape(0)?[1].as_number() {
        Some(1) => {
            let items = items.iter().map(|item| ops::select(item, 0, 0));
            let (state, y) = step(&state, &items.collect::<Result<Vec<Tensor>>>()?)?;
            (state, ops::unsqueeze(&y, 0)?)
        }
        _ => {
            let items = items.into_iter().map(IntoValue::into_value);
            let (state, y): (Value, Value) = control::scan(
                state.into_value(),
                Value::Tuple(items.collect()),
                |state: Value, items: Value| {
                    let (state, y) = step(&Tensor::from_value(state)?, &tensors(&items)?)?;
                    Ok((state.into_value(), y.into_value()))
                },
            )?;
            (Tensor::from_value(state)?, Tensor::from_value(y)?)
        }
    };
    // Without a scale, the root of the width, which a run may decide.
    let y = match (cx.float("scale", 0.0), q.size(-1)?) {
        (0.0, width) if let Some(width) = width.concrete() => (y * (1.0 / (width as f64).sqrt()))?,
        (0.0, width) => {
            let width = as_type(&Whole::from(width).tensor()?, DType::F32)?;
            (y / ops::sqrt(&width)?)?
        }
        (scale, _) => (y * scale)?,
    };
    let y = ops::flatten(&ops::transpose(&y, 0, 1)?, 2, 4)?;
    let held = match cx.has(3) {
        true => cx.dtype(3)?,
        false => cx.dtype(0)?,
    };
    Ok(vec![cx.rounded(&y)?, V::of(as_type(&state, held)?, held)])
}
