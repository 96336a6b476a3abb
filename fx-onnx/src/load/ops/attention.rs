//! Attention and rotary embedding, as operators of opset 23.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Result};

use super::control::inside;
use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("RotaryEmbedding", |cx| {
        let (x, cos, sin) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let flat = cx.rank(0)? == 3;
        let heads = cx.int("num_heads", 0);
        let x = match flat {
            true => {
                let split = ops::reshape(
                    &x,
                    vec![x.size(0)?, x.size(1)?, heads.into(), (-1i64).into()],
                )?;
                ops::transpose(&split, 1, 2)?
            }
            false => x,
        };
        let (cos, sin) = match cx.optional(3)? {
            Some(places) => {
                let of = |table: &Tensor| ops::embedding(&places, table, None);
                (of(&cos)?, of(&sin)?)
            }
            None => (cos, sin),
        };
        let (cos, sin) = (ops::unsqueeze(&cos, 1)?, ops::unsqueeze(&sin, 1)?);
        let size = match cx.int("rotary_embedding_dim", 0) {
            0 => x.size(-1)?,
            size => size.into(),
        };
        let y = rotated(&x, &cos, &sin, size, cx.flag("interleaved"))?;
        let y = match flat {
            true => ops::flatten(&ops::transpose(&y, 1, 2)?, 2, 3)?,
            false => y,
        };
        cx.like(y)
    }),
    op("Attention", |cx| {
        let (mut q, mut k, mut v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let flat = cx.rank(0)? == 3;
        if flat {
            let heads = |x: &Tensor, count: i64| -> Result<Tensor> {
                let split = ops::reshape(
                    x,
                    vec![x.size(0)?, x.size(1)?, count.into(), (-1i64).into()],
                )?;
                ops::transpose(&split, 1, 2)
            };
            let (q_heads, kv_heads) = (cx.int("q_num_heads", 1), cx.int("kv_num_heads", 1));
            (q, k, v) = (
                heads(&q, q_heads)?,
                heads(&k, kv_heads)?,
                heads(&v, kv_heads)?,
            );
        }
        let past = cx.has(4);
        // How many keys come before the first row: one number, or one for each image of the batch.
        let padded = cx.optional(6)?;
        let before = match (past, &padded) {
            (true, _) => Before::All(cx.tensor(4)?.size(2)?),
            (_, Some(counts)) => Before::Each((counts - q.size(2)?)?),
            _ => Before::All(Int::from(0i64)),
        };
        if past {
            k = ops::cat(&[cx.tensor(4)?, k], 2)?;
            v = ops::cat(&[cx.tensor(5)?, v], 2)?;
        }
        let (present_k, present_v) = (k.clone(), v.clone());
        let dtype = cx.dtype(0)?;
        let width = q
            .size(-1)?
            .concrete()
            .ok_or_else(|| Error::msg("attention of a width that is not known"))?;
        let scale = cx
            .attribute("scale")
            .and_then(|a| a.f)
            .map_or(1.0 / (width as f64).sqrt(), f64::from);
        let known = |x: &Tensor, dim: i64| {
            x.size(dim)?
                .concrete()
                .ok_or_else(|| Error::msg("attention of sizes that are not known"))
        };
        let (q_heads, kv_heads) = (known(&q, 1)?, known(&k, 1)?);
        if q_heads != kv_heads {
            let times = q_heads / kv_heads.max(1);
            k = ops::repeat_interleave(&k, times, Some(1))?;
            v = ops::repeat_interleave(&v, times, Some(1))?;
        }
        let root = scale.sqrt();
        let scores = ops::matmul(&(&q * root)?, &ops::transpose(&(&k * root)?, -2, -1)?)?;
        let raw = scores.clone();
        let cap = cx.float("softcap", 0.0);
        let mut masked = match cap {
            0.0 => scores,
            cap => (ops::tanh(&(scores / cap)?)? * cap)?,
        };
        let capped = masked.clone();
        let left = cx.int("left_window_size", -1);
        let right = match cx.flag("is_causal") {
            true => 0,
            false => cx.int("right_window_size", -1),
        };
        if left >= 0 || right >= 0 {
            let hidden = outside(cx, &q, &k, before, left, right)?;
            masked = ops::masked_fill(&masked, &hidden, f64::NEG_INFINITY)?;
        }
        if let Some(counts) = &padded {
            let places = cx.numbers(k.size(2)?)?;
            let counts = ops::reshape(counts, [-1, 1, 1, 1])?;
            masked = ops::masked_fill(&masked, &places.ge(counts)?, f64::NEG_INFINITY)?;
        }
        if cx.has(3) {
            let mask = cx.tensor(3)?;
            let mut mask = match cx.dtype(3)? {
                DType::Bool => ops::r#where(&mask, 0.0, f64::NEG_INFINITY)?,
                _ => mask,
            };
            let (have, want) = (known(&mask, -1)?, known(&k, 2)?);
            if have < want {
                let more = vec![0, want - have];
                mask = ops::pad(&mask, more, "constant", Bound::from(f64::NEG_INFINITY))?;
            }
            masked = (masked + as_type(&mask, dtype)?)?;
        }
        let with_mask = masked.clone();
        let weights = match cx.type_of("softmax_precision")? {
            Some(wide) if wide != dtype => {
                as_type(&ops::softmax(&as_type(&masked, wide)?, -1)?, dtype)?
            }
            _ => ops::softmax(&masked, -1)?,
        };
        // A row that sees nothing gives zeros.
        let weights = ops::r#where(&ops::isnan(&weights)?, 0.0, &weights)?;
        let y = ops::matmul(&as_type(&weights, dtype)?, &v)?;
        let y = match flat {
            true => ops::flatten(&ops::transpose(&y, 1, 2)?, 2, 3)?,
            false => y,
        };
        let inside = match cx.int("qk_matmul_output_mode", 0) {
            0 => raw,
            1 => capped,
            2 => with_mask,
            _ => weights,
        };
        let all = [y, present_k, present_v, inside];
        Ok(all.into_iter().map(|x| V::of(x, dtype)).collect())
    }),
    op("FlexAttention", |cx| {
        let (q, mut k, mut v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let known = |at: usize, dim: usize| -> Result<i64> {
            let size = cx.shape(at)?[dim].as_number();
            size.ok_or_else(|| Error::msg("attention of sizes that are not known"))
        };
        let (heads, own, width) = (known(0, 1)?, known(1, 1)?, known(0, 3)?);
        if own < 1 || heads % own != 0 {
            return Err(Error::msg(format_args!(
                "{heads} heads of queries and {own} of keys"
            )));
        }
        if heads != own {
            k = ops::repeat_interleave(&k, heads / own, Some(1))?;
            v = ops::repeat_interleave(&v, heads / own, Some(1))?;
        }
        let dtype = cx.dtype(0)?;
        let wide = match (cx.type_of("softmax_precision")?, dtype) {
            (Some(wide), _) => wide,
            (None, DType::F64) => DType::F64,
            _ => DType::F32,
        };
        let scale = cx.attribute("scale").and_then(|a| a.f);
        let root = scale.map_or(1.0 / (width as f64).sqrt(), f64::from).sqrt();
        let scores = ops::matmul(&(&q * root)?, &ops::transpose(&(&k * root)?, -2, -1)?)?;
        // A graph of the node changes what is between, if it has one.
        let changed = |name: &str, x: Tensor| -> Result<Tensor> {
            if cx.attribute(name).is_none() {
                return Ok(x);
            }
            let given = inside(cx, cx.graph(name)?, vec![V::of(x, wide)])?;
            let one = given.first().map(V::tensor).transpose()?;
            let one = one.ok_or_else(|| Error::msg(format_args!("`{name}` gives nothing")))?;
            as_type(&one, wide)
        };
        let scores = changed("score_mod", as_type(&scores, wide)?)?;
        let weights = changed("prob_mod", ops::softmax(&scores, -1)?)?;
        let y = ops::matmul(&weights, &as_type(&v, wide)?)?;
        cx.of(as_type(&y, dtype)?, dtype)
    })
    .domain("ai.onnx.preview")
    .check(|cx| (0..3).try_for_each(|at| rank(cx, at, 4..5))),
];

/// The first elements of rows turned in pairs by angles; with `interleaved`, neighbours are pairs.
pub(super) fn rotated(
    x: &Tensor,
    cos: &Tensor,
    sin: &Tensor,
    size: Int,
    interleaved: bool,
) -> Result<Tensor> {
    let whole = x.size(-1)?;
    let turned = ops::narrow(x, -1, 0, size)?;
    let half = size.floordiv(2)?;
    let both = |a: &Tensor, b: &Tensor| -> Result<[Tensor; 2]> {
        Ok([((cos * a)? - (sin * b)?)?, ((sin * a)? + (cos * b)?)?])
    };
    let y = match interleaved {
        false => {
            let a = ops::narrow(&turned, -1, 0, half)?;
            let b = ops::narrow(&turned, -1, half, half)?;
            ops::cat(&both(&a, &b)?, -1)?
        }
        true => {
            let pairs = ops::unflatten(&turned, -1, vec![half, 2i64.into()])?;
            let (a, b) = (ops::select(&pairs, -1, 0)?, ops::select(&pairs, -1, 1)?);
            ops::flatten(&ops::stack(&both(&a, &b)?, -1)?, -2, -1)?
        }
    };
    match (size.concrete(), whole.concrete()) {
        (Some(size), Some(whole)) if size == whole => Ok(y),
        _ => ops::cat(&[y, ops::narrow(x, -1, size, (whole - size)?)?], -1),
    }
}

/// How many keys come before the first row.
enum Before {
    All(Int),
    Each(Tensor),
}

/// The keys that a row does not see, as it sees `left` before its own place and `right` after it; -1 is all of them.
fn outside(
    cx: &NodeCx<'_>,
    q: &Tensor,
    k: &Tensor,
    before: Before,
    left: i64,
    right: i64,
) -> Result<Tensor> {
    let (rows, columns) = (q.size(2)?, k.size(2)?);
    let known = match &before {
        Before::All(before) => before.concrete(),
        Before::Each(_) => None,
    };
    if let (Some(before), Some(rows), Some(columns)) = (known, rows.concrete(), columns.concrete())
    {
        if rows.saturating_mul(columns) > 1 << 28 {
            return Err(Error::msg(format_args!(
                "a mask of {rows} rows and {columns} keys as a constant: leave the sizes open with `Load::input`"
            )));
        }
        let all = (0..rows).flat_map(|row| {
            (0..columns).map(move |column| {
                let apart = column - row - before;
                u8::from(left >= 0 && -apart > left || right >= 0 && apart > right)
            })
        });
        let all: Vec<u8> = all.collect();
        return Tensor::from_vec(all, (rows as usize, columns as usize))?.ne(0);
    }
    let rows = ops::unsqueeze(&cx.numbers(rows)?, 1)?;
    let rows = match before {
        Before::All(before) => (rows + before)?,
        Before::Each(before) => (rows + ops::reshape(&before, [-1, 1, 1, 1])?)?,
    };
    let apart = (cx.numbers(columns)? - rows)?;
    let sides = [
        (left >= 0).then(|| apart.lt(-left)),
        (right >= 0).then(|| apart.gt(right)),
    ];
    match sides {
        [Some(left), Some(right)] => ops::logical_or(&left?, &right?),
        [Some(side), None] | [None, Some(side)] => side,
        [None, None] => Err(Error::msg("a window without sides")),
    }
}
