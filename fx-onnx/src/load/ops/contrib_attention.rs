//! ONNX Runtime's own attention and rotary embedding (`com.microsoft`), which its optimizer and its model builder write.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::attention::rotated;
use super::contrib::DOMAIN;
use crate::load::checks::{at_least, rank};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("Attention", attention)
        .domain(DOMAIN)
        .check(|cx| {
            rank(cx, 0, 3..4)?;
            rank(cx, 1, 2..3)?;
            at_least(cx, "num_heads", 1)
        })
        .makes(|of| of.products()),
    op("MultiHeadAttention", several)
        .domain(DOMAIN)
        .check(|cx| {
            rank(cx, 0, 3..6)?;
            at_least(cx, "num_heads", 1)
        })
        .makes(|of| of.products()),
    op("GroupQueryAttention", grouped)
        .domain(DOMAIN)
        .check(|cx| {
            rank(cx, 0, 3..4)?;
            at_least(cx, "num_heads", 1)?;
            at_least(cx, "kv_num_heads", 1)
        })
        .makes(|of| of.products()),
    op("RotaryEmbedding", |cx| {
        if cx.float("scale", 1.0) != 1.0 || cx.flag("is_packed_batching") {
            return Err(Error::msg("a rotary embedding that is scaled or packed"));
        }
        let (x, cos, sin) = (cx.tensor(0)?, cx.tensor(2)?, cx.tensor(3)?);
        let flat = cx.rank(0)? == 3;
        let size = 2 * number(cx, 2, 1)?;
        let x = match flat {
            true => {
                let heads = match cx.int("num_heads", 0) {
                    0 => number(cx, 0, 2)? / size.max(1),
                    heads => heads,
                };
                split(&x, heads)?
            }
            false => x,
        };
        let mut places = as_type(&cx.tensor(1)?, DType::I64)?;
        if cx.rank(1)? == 1 {
            places = ops::unsqueeze(&(cx.numbers(x.size(2)?)? + places)?, 0)?;
        }
        let of = |table: &Tensor| ops::unsqueeze(&ops::embedding(&places, table, None)?, 1);
        let y = rotated(
            &x,
            &of(&cos)?,
            &of(&sin)?,
            size.into(),
            cx.flag("interleaved"),
        )?;
        cx.like(if flat { joined(&y)? } else { y })
    })
    .domain(DOMAIN),
];

/// A size that has to be known.
fn number(cx: &NodeCx<'_>, at: usize, dim: usize) -> Result<i64> {
    let size = cx.shape(at)?.get(dim).and_then(|size| size.as_number());
    size.ok_or_else(|| {
        Error::msg(format_args!(
            "the size of dim {dim} of input {at} is not known"
        ))
    })
}

/// `[batch, steps, heads * width]` as `[batch, heads, steps, width]`.
fn split(x: &Tensor, heads: i64) -> Result<Tensor> {
    let shape = vec![x.size(0)?, x.size(1)?, heads.into(), (-1i64).into()];
    ops::transpose(&ops::reshape(x, shape)?, 1, 2)
}

fn joined(x: &Tensor) -> Result<Tensor> {
    ops::flatten(&ops::transpose(x, 1, 2)?, 2, 3)
}

/// What all operators have in common: `[batch, heads, steps, width]` each.
struct Attend {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: f64,
    softcap: f64,
    /// What is added to the scores.
    bias: Option<Tensor>,
    /// The keys that are there, 1 or 0 each, and what is added to the scores of others.
    mask: Option<(Tensor, f64)>,
    /// Whether a row sees no later keys, and how many before it.
    causal: bool,
    window: i64,
    /// How many keys come before the first row.
    before: Int,
}

impl Attend {
    fn given(self, cx: &NodeCx<'_>) -> Result<Tensor> {
        let scores = ops::matmul(&self.q, &ops::transpose(&self.k, -2, -1)?)?;
        let mut scores = (scores * self.scale)?;
        if self.softcap != 0.0 {
            scores = (ops::tanh(&(scores / self.softcap)?)? * self.softcap)?;
        }
        if let Some(bias) = &self.bias {
            scores = (scores + bias)?;
        }
        if let Some((there, fill)) = &self.mask {
            let there = as_type(&there.ne(0)?, DType::F32)?;
            let added = ((there - 1.0)? * -fill)?;
            scores = (scores + added)?;
        }
        if self.causal || self.window > 0 {
            let rows = ops::unsqueeze(&cx.numbers(self.q.size(2)?)?, 1)?;
            let apart = (cx.numbers(self.k.size(2)?)? - (rows + self.before)?)?;
            let mut hidden = apart.gt(0)?;
            if self.window > 0 {
                hidden = ops::logical_or(&hidden, &apart.le(-self.window)?)?;
            }
            scores = ops::masked_fill(&scores, &hidden, f64::NEG_INFINITY)?;
        }
        ops::matmul(&ops::softmax(&scores, -1)?, &self.v)
    }
}

/// The keys that are there, of a mask as ONNX Runtime's operators take it: a number of keys a row of the batch, or 1 and 0
/// for each key.
fn there(cx: &NodeCx<'_>, at: usize, keys: Int) -> Result<Option<Tensor>> {
    let Some(mask) = cx.optional(at)? else {
        return Ok(None);
    };
    let mask = as_type(&mask, DType::I64)?;
    Ok(Some(match cx.rank(at)? {
        1 if cx.shape(at)?.first() == cx.shape(0)?.first() => {
            let counts = ops::reshape(&mask, [-1, 1, 1, 1])?;
            as_type(&cx.numbers(keys)?.lt(counts)?, DType::I64)?
        }
        2 => ops::unsqueeze(&ops::unsqueeze(&mask, 1)?, 1)?,
        3 => ops::unsqueeze(&mask, 1)?,
        _ => {
            return Err(Error::msg(
                "a mask of places where rows of the batch start and end, or of four dims",
            ));
        }
    }))
}

fn scale_of(cx: &NodeCx<'_>, width: i64) -> f64 {
    match cx.float("scale", 0.0) {
        0.0 => 1.0 / (width.max(1) as f64).sqrt(),
        scale => scale,
    }
}

fn attention(cx: &mut NodeCx<'_>) -> Given {
    if cx.flag("do_rotary") || cx.flag("past_present_share_buffer") {
        return Err(Error::msg(
            "attention that turns its rows, or shares a buffer with its past",
        ));
    }
    let (x, weights) = (cx.single(0)?, cx.single(1)?);
    let heads = cx.int("num_heads", 1);
    let all = number(cx, 1, 1)?;
    let sizes = cx.ints("qkv_hidden_sizes").unwrap_or_default();
    let [q, k, v] = <[i64; 3]>::try_from(sizes).unwrap_or([all / 3; 3]);
    let mut y = ops::matmul(&x, &weights)?;
    if cx.has(2) {
        y = (y + cx.single(2)?)?;
    }
    let part = |start: i64, size: i64| split(&ops::narrow(&y, -1, start, size)?, heads);
    let (width, mut keys, mut values) = (q / heads, part(q, k)?, part(q + k, v)?);
    let mut before = Int::from(0i64);
    if cx.has(4) {
        let past = cx.single(4)?;
        before = past.size(3)?;
        keys = ops::cat(&[ops::select(&past, 0, 0)?, keys], 2)?;
        values = ops::cat(&[ops::select(&past, 0, 1)?, values], 2)?;
    }
    let present = match k == v {
        true => Some(ops::stack(&[keys.clone(), values.clone()], 0)?),
        false => None,
    };
    let mask = there(cx, 3, keys.size(2)?)?;
    let attend = Attend {
        q: part(0, q)?,
        k: keys,
        v: values,
        scale: scale_of(cx, width),
        softcap: 0.0,
        bias: cx.has(5).then(|| cx.single(5)).transpose()?,
        mask: mask.map(|mask| (mask, cx.float("mask_filter_value", -10_000.0))),
        causal: cx.flag("unidirectional"),
        window: 0,
        before,
    };
    let mut given = vec![cx.rounded(&joined(&attend.given(cx)?)?)?];
    if let Some(present) = present {
        given.push(cx.rounded(&present)?);
    }
    Ok(given)
}

fn several(cx: &mut NodeCx<'_>) -> Given {
    if cx.has(8) || cx.has(9) {
        return Err(Error::msg("attention that shares a buffer with its past"));
    }
    let heads = cx.int("num_heads", 1);
    let query = cx.single(0)?;
    let picked = |x: &Tensor, at: i64| ops::transpose(&ops::select(x, 3, at)?, 1, 2);
    let bias = cx.has(3).then(|| cx.single(3)).transpose()?;
    let mut q = match cx.rank(0)? {
        3 => query,
        5 if bias.is_none() => picked(&query, 0)?,
        _ => {
            return Err(Error::msg(
                "a query of four dims, or one with keys and a bias",
            ));
        }
    };
    let (mut k, mut v) = match (cx.rank(0)?, cx.has(1), cx.has(2)) {
        (5, false, false) => (picked(&cx.single(0)?, 1)?, picked(&cx.single(0)?, 2)?),
        (3, true, false) if cx.rank(1)? == 5 => {
            (picked(&cx.single(1)?, 0)?, picked(&cx.single(1)?, 1)?)
        }
        (3, true, true) => (cx.single(1)?, cx.single(2)?),
        _ => return Err(Error::msg("attention without keys or values")),
    };
    let is_flat = |at: usize| cx.has(at) && cx.rank(at).is_ok_and(|rank| rank == 3);
    if let Some(bias) = &bias {
        let own = number(cx, 0, 2)?;
        let part = |start: i64, size: i64| ops::narrow(bias, 0, start, size);
        q = (q + part(0, own)?)?;
        if is_flat(1) && is_flat(2) {
            k = (k + part(own, own)?)?;
            v = (v + part(2 * own, number(cx, 3, 0)? - 2 * own)?)?;
        }
    }
    let width = match cx.rank(0)? {
        3 => number(cx, 0, 2)? / heads,
        _ => number(cx, 0, 4)?,
    };
    if cx.rank(0)? == 3 {
        q = split(&q, heads)?;
    }
    if is_flat(1) {
        k = split(&k, heads)?;
    }
    if is_flat(2) {
        v = split(&v, heads)?;
    }
    let mut before = Int::from(0i64);
    if cx.has(6) {
        let past = cx.single(6)?;
        before = past.size(2)?;
        k = ops::cat(&[past, k], 2)?;
        v = ops::cat(&[cx.single(7)?, v], 2)?;
    }
    let mask = there(cx, 4, k.size(2)?)?;
    let attend = Attend {
        q,
        k: k.clone(),
        v: v.clone(),
        scale: scale_of(cx, width),
        softcap: 0.0,
        bias: cx.has(5).then(|| cx.single(5)).transpose()?,
        mask: mask.map(|mask| (mask, cx.float("mask_filter_value", -10_000.0))),
        causal: cx.flag("unidirectional"),
        window: 0,
        before,
    };
    let y = joined(&attend.given(cx)?)?;
    Ok(vec![cx.rounded(&y)?, cx.rounded(&k)?, cx.rounded(&v)?])
}

/// Attention with fewer keys than queries, whose past is exactly as long as what was before: no buffer with room at its end.
fn grouped(cx: &mut NodeCx<'_>) -> Given {
    if (10..13).any(|at| cx.has(at)) || cx.flag("smooth_softmax") {
        return Err(Error::msg(
            "grouped attention with a bias, a sink or a smooth softmax",
        ));
    }
    let (heads, kv_heads) = (cx.int("num_heads", 1), cx.int("kv_num_heads", 1));
    let x = cx.single(0)?;
    let whole = number(cx, 0, 2)?;
    let (width, mut q, mut k, mut v) = match cx.has(1) {
        true => {
            let (k, v) = (
                split(&cx.single(1)?, kv_heads)?,
                split(&cx.single(2)?, kv_heads)?,
            );
            (whole / heads, split(&x, heads)?, k, v)
        }
        false => {
            let all = split(&x, heads + 2 * kv_heads)?;
            let part = |start: i64, count: i64| ops::narrow(&all, 1, start, count);
            let (k, v) = (part(heads, kv_heads)?, part(heads + kv_heads, kv_heads)?);
            (whole / (heads + 2 * kv_heads), part(0, heads)?, k, v)
        }
    };
    let before = match cx.has(3) {
        true => cx.tensor(3)?.size(2)?,
        false => Int::from(0i64),
    };
    if cx.flag("do_rotary") {
        let places = match cx.optional(9)? {
            Some(places) => as_type(&places, DType::I64)?,
            None => ops::unsqueeze(&(cx.numbers(q.size(2)?)? + before)?, 0)?,
        };
        let of = |at: usize| ops::unsqueeze(&ops::embedding(&places, &cx.single(at)?, None)?, 1);
        let (cos, sin) = (of(7)?, of(8)?);
        let (size, pairs) = (2 * number(cx, 7, 1)?, cx.flag("rotary_interleaved"));
        q = rotated(&q, &cos, &sin, size.into(), pairs)?;
        k = rotated(&k, &cos, &sin, size.into(), pairs)?;
    }
    if cx.has(3) {
        k = ops::cat(&[cx.single(3)?, k], 2)?;
        v = ops::cat(&[cx.single(4)?, v], 2)?;
    }
    let each = |x: &Tensor| match heads == kv_heads {
        true => Ok(x.clone()),
        false => ops::repeat_interleave(x, heads / kv_heads, Some(1)),
    };
    let attend = Attend {
        q,
        k: each(&k)?,
        v: each(&v)?,
        scale: scale_of(cx, width),
        softcap: cx.float("softcap", 0.0),
        bias: None,
        mask: None,
        causal: true,
        window: cx.int("local_window_size", -1),
        before,
    };
    let y = joined(&attend.given(cx)?)?;
    let dtype = cx.dtype(0)?;
    let given = [y, k, v]
        .into_iter()
        .map(|x| Ok(V::of(as_type(&x, dtype)?, dtype)));
    given.collect()
}
