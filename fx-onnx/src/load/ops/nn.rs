//! Products, norms, losses.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Result};

use crate::load::checks::{at_least, pieces, rank};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("MatMul", |cx| {
        let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
        cx.like(ops::matmul(&a, &b)?)
    })
    .makes(|of| of.matrices()),
    op("Gemm", gemm).makes(|of| of.products()).weights(&[1, 2]),
    op("Einsum", |cx| {
        let all = (0..cx.inputs.len())
            .map(|at| cx.tensor(at))
            .collect::<Result<Vec<Tensor>>>()?;
        let equation = cx.text("equation", "");
        cx.like(ops::einsum(&equation, &all)?)
    })
    .makes(|of| of.products()),
    op("Det", |cx| {
        let x = cx.tensor(0)?;
        cx.like(ops::linalg::det(&x)?)
    }),
    op("Softmax", |cx| {
        flat_softmax(cx, |x, dim| ops::softmax(x, dim))
    }),
    op("Softmax", |cx| softmax(cx, |x, dim| ops::softmax(x, dim))).since(13),
    op("LogSoftmax", |cx| {
        flat_softmax(cx, |x, dim| ops::log_softmax(x, dim))
    }),
    op("LogSoftmax", |cx| {
        softmax(cx, |x, dim| ops::log_softmax(x, dim))
    })
    .since(13),
    op("BatchNormalization", |cx| {
        let x = cx.tensor(0)?;
        let (scale, bias, mean, var) = (cx.tensor(1)?, cx.tensor(2)?, cx.tensor(3)?, cx.tensor(4)?);
        let eps = cx.float("epsilon", 1e-5);
        if !cx.flag("training_mode") {
            return cx.like(ops::batch_norm(
                &x,
                Some(&mean),
                Some(&var),
                Some(&scale),
                Some(&bias),
                false,
                0.1,
                eps,
            )?);
        }
        let x = cx.single(0)?;
        let [scale, bias, mean, var] = [1, 2, 3, 4].map(|at| cx.single(at));
        let (scale, bias, mean, var) = (scale?, bias?, mean?, var?);
        let momentum = cx.float("momentum", 0.9);
        let rank = cx.rank(0)? as i64;
        let dims: Vec<i64> = (0..rank).filter(|dim| *dim != 1).collect();
        let own_mean = ops::mean(&x, dims.clone(), false)?;
        let mut shape = vec![1i64; rank as usize];
        shape[1] = -1;
        let wide = |of: &Tensor| ops::reshape(of, shape.clone());
        let apart = (&x - wide(&own_mean)?)?;
        let own_var = ops::mean(&(&apart * &apart)?, dims, false)?;
        let y = ((apart / ops::sqrt(&(wide(&own_var)? + eps)?)?)? * wide(&scale)?)?;
        let y = (y + wide(&bias)?)?;
        let moved = |old: &Tensor, new: &Tensor| (old * momentum)? + (new * (1.0 - momentum))?;
        Ok(vec![
            cx.rounded(&y)?,
            cx.rounded(&moved(&mean, &own_mean)?)?,
            cx.rounded(&moved(&var, &own_var)?)?,
        ])
    })
    .check(|cx| rank(cx, 0, 2..))
    .weights(&[1, 2]),
    op("InstanceNormalization", |cx| {
        let (x, scale, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let eps = cx.float("epsilon", 1e-5);
        let rest = cx.shape(0)?;
        let each = rest.get(2..).unwrap_or_default();
        // PyTorch's refuses a channel of one value, of which ONNX's gives the bias.
        if each.iter().all(|size| size.as_known() == Some(1)) {
            let channels = cx.known_shape(1)?.iter().product::<usize>().max(1);
            return cx.like(ops::group_norm(
                &x,
                channels,
                Some(&scale),
                Some(&bias),
                eps,
            )?);
        }
        cx.like(ops::instance_norm(
            &x,
            None,
            None,
            Some(&scale),
            Some(&bias),
            true,
            0.1,
            eps,
        )?)
    })
    .check(|cx| rank(cx, 0, 3..)),
    op("LayerNormalization", |cx| {
        let (x, scale) = (cx.tensor(0)?, cx.tensor(1)?);
        let rank = cx.rank(0)?;
        let axis = cx.axis("axis", -1, rank)?;
        let eps = cx.float("epsilon", 1e-5);
        let dtype = cx.input(0).dtype();
        let shape = cx.shape(0)?;
        let own: Option<Vec<usize>> = shape[axis as usize..]
            .iter()
            .map(|dim| dim.as_known())
            .collect();
        let only = cx.node.output.iter().skip(1).all(String::is_empty);
        if let (Some(own), true) = (own, only)
            && cx.known_shape(1).is_ok_and(|shape| shape == own)
        {
            let bias = cx.optional(2)?;
            return cx.like(ops::layer_norm(&x, own, Some(&scale), bias.as_ref(), eps)?);
        }
        let dims: Vec<i64> = (axis..rank as i64).collect();
        let mean = ops::mean(&x, dims.clone(), true)?;
        let apart = (&x - &mean)?;
        let var = ops::mean(&(&apart * &apart)?, dims, true)?;
        let root = ops::reciprocal(&ops::sqrt(&(var + eps)?)?)?;
        let mut y = ((apart * &root)? * scale)?;
        if let Some(bias) = cx.optional(2)? {
            y = (y + bias)?;
        }
        Ok(vec![
            V::Tensor(y, dtype),
            V::of(mean, DType::F32),
            V::of(root, DType::F32),
        ])
    })
    .weights(&[1, 2]),
    op("RMSNormalization", by_squares),
    // ONNX Runtime's, from before ONNX had one.
    op("SimplifiedLayerNormalization", by_squares),
    op("GroupNormalization", |cx| {
        let (x, scale, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let (groups, eps) = (cx.int("num_groups", 1), cx.float("epsilon", 1e-5));
        if cx.version >= 21 {
            return cx.like(ops::group_norm(
                &x,
                groups as usize,
                Some(&scale),
                Some(&bias),
                eps,
            )?);
        }
        // One number for each group.
        let each = x
            .size(1)?
            .floordiv(groups)?
            .concrete()
            .ok_or_else(|| Error::msg("groups of channels that are not known"))?;
        let (scale, bias) = (
            ops::repeat_interleave(&scale, each, Some(0))?,
            ops::repeat_interleave(&bias, each, Some(0))?,
        );
        cx.like(ops::group_norm(
            &x,
            groups as usize,
            Some(&scale),
            Some(&bias),
            eps,
        )?)
    })
    .check(|cx| {
        at_least(cx, "num_groups", 1)?;
        rank(cx, 0, 3..)
    })
    .weights(&[1, 2]),
    op("LpNormalization", |cx| {
        let x = cx.single(0)?;
        let axis = cx.axis("axis", -1, cx.rank(0)?)?;
        let norm = ops::norm(&x, cx.int("p", 2) as f64, axis, true)?;
        let y = (&x / &norm)?;
        Ok(vec![cx.rounded(&ops::r#where(&norm.eq(0.0)?, 0.0, y)?)?])
    }),
    op("MeanVarianceNormalization", |cx| {
        let x = cx.single(0)?;
        let axes = cx.ints("axes").unwrap_or_else(|| vec![0, 2, 3]);
        let mean = ops::mean(&x, axes.clone(), true)?;
        let square = (ops::mean(&(&x * &x)?, axes, true)? - (&mean * &mean)?)?;
        Ok(vec![cx.rounded(
            &((x - mean)? / (ops::sqrt(&square)? + 1e-9)?)?,
        )?])
    }),
    op("LRN", |cx| {
        let x = cx.single(0)?;
        let size = cx.int("size", 1);
        let (alpha, beta, bias) = (
            cx.float("alpha", 1e-4),
            cx.float("beta", 0.75),
            cx.float("bias", 1.0),
        );
        let channels = cx.known_shape(0)?[1] as i64;
        let square = (&x * &x)?;
        let mut all = Vec::new();
        for channel in 0..channels {
            let (from, to) = (
                (channel - (size - 1) / 2).max(0),
                (channel + size / 2).min(channels - 1),
            );
            all.push(ops::sum(
                &ops::narrow(&square, 1, from, to - from + 1)?,
                1,
                true,
            )?);
        }
        let sums = ops::cat(&all, 1)?;
        Ok(vec![cx.rounded(
            &(x / ((sums * (alpha / size as f64))? + bias)?.pow(beta)?)?,
        )?])
    })
    .check(|cx| {
        pieces(cx, Some(1))?;
        rank(cx, 0, 2..)
    }),
    op("NegativeLogLikelihoodLoss", |cx| loss(cx, false)).check(|cx| rank(cx, 0, 2..)),
    op("SoftmaxCrossEntropyLoss", |cx| loss(cx, true)).check(|cx| rank(cx, 0, 2..)),
];

/// The norm by the mean of squares, and the root that it was divided by, inverted.
fn by_squares(cx: &mut NodeCx<'_>) -> Given {
    let (x, scale) = (cx.single(0)?, cx.single(1)?);
    let rank = cx.rank(0)?;
    let axis = cx.axis("axis", -1, rank)?;
    let dims: Vec<i64> = (axis..rank as i64).collect();
    let mean = ops::mean(&(&x * &x)?, dims, true)?;
    let root = ops::sqrt(&(mean + cx.float("epsilon", 1e-5))?)?;
    let mut given = vec![cx.rounded(&((&x / &root)? * scale)?)?];
    if cx.node.output.len() > 1 {
        given.push(V::of(ops::reciprocal(&root)?, DType::F32));
    }
    Ok(given)
}

pub(super) fn gemm(cx: &mut NodeCx<'_>) -> Given {
    let (mut a, mut b) = (cx.tensor(0)?, cx.tensor(1)?);
    let (alpha, beta) = (cx.float("alpha", 1.0), cx.float("beta", 1.0));
    if cx.flag("transA") {
        a = ops::t(&a)?;
    }
    let bias = cx.optional(2)?;
    let row = match &bias {
        Some(_) => cx.rank(2).is_ok_and(|rank| rank == 1),
        None => true,
    };
    if cx.flag("transB") && row && alpha == 1.0 && beta == 1.0 {
        return cx.like(ops::linear(&a, &b, bias.as_ref())?);
    }
    if cx.flag("transB") {
        b = ops::t(&b)?;
    }
    let mut y = ops::matmul(&a, &b)?;
    if alpha != 1.0 {
        y = (y * alpha)?;
    }
    if let Some(bias) = bias {
        y = if beta == 1.0 {
            (y + bias)?
        } else {
            (y + (bias * beta)?)?
        };
    }
    let dtype = cx.dtype(0)?;
    let y = if dtype.is_floating_point() {
        y
    } else {
        as_type(&y, dtype)?
    };
    cx.of(y, dtype)
}

fn softmax(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, i64) -> Result<Tensor>) -> Given {
    let x = cx.tensor(0)?;
    let axis = cx.axis("axis", -1, cx.rank(0)?)?;
    cx.like(compute(&x, axis)?)
}

/// Over all dims from the axis on.
fn flat_softmax(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, i64) -> Result<Tensor>) -> Given {
    let x = cx.tensor(0)?;
    let rank = cx.rank(0)?;
    let axis = cx.axis("axis", 1, rank)?;
    if axis + 1 == rank as i64 {
        return cx.like(compute(&x, axis)?);
    }
    let flat = ops::flatten(&x, axis, -1)?;
    let sizes = (0..rank as i64)
        .map(|dim| x.size(dim))
        .collect::<Result<Vec<Int>>>()?;
    cx.like(ops::reshape(&compute(&flat, -1)?, sizes)?)
}

/// The loss of classes: one may be beyond the largest half where the sum of all is not.
fn loss(cx: &NodeCx<'_>, logits: bool) -> Given {
    let (x, target) = (cx.single(0)?, cx.tensor(1)?);
    let weight = cx.optional(2)?.map(|_| cx.single(2)).transpose()?;
    let ignore = cx.attribute("ignore_index").and_then(|a| a.i);
    let reduction = cx.text("reduction", "mean");
    let log_probs = if logits { ops::log_softmax(&x, 1)? } else { x };
    let target = as_type(&target, DType::I64)?;
    let ignored = ignore.map(|index| target.eq(index)).transpose()?;
    let safe = match &ignored {
        Some(ignored) => ops::masked_fill(&target, ignored, 0)?,
        None => target.clone(),
    };
    let picked = ops::squeeze(&ops::gather(&log_probs, 1, &ops::unsqueeze(&safe, 1)?)?, 1)?;
    let mut each = (-picked)?;
    let mut weights = match &weight {
        Some(weight) => {
            let flat = ops::index_select(weight, 0, &ops::reshape(&safe, [-1])?)?;
            let sizes = (0..cx.rank(1)? as i64)
                .map(|dim| safe.size(dim))
                .collect::<Result<Vec<Int>>>()?;
            ops::reshape(&flat, sizes)?
        }
        None => ops::ones_like(&each, None)?,
    };
    if let Some(ignored) = &ignored {
        weights = ops::masked_fill(&weights, ignored, 0.0)?;
    }
    each = (each * &weights)?;
    if let Some(ignored) = &ignored {
        // Infinity times a weight of 0 would be none.
        each = ops::masked_fill(&each, ignored, 0.0)?;
    }
    let y = match &*reduction {
        "none" => each,
        "sum" => ops::sum(&each, Dims::All, false)?,
        _ => (ops::sum(&each, Dims::All, false)? / ops::sum(&weights, Dims::All, false)?)?,
    };
    Ok(vec![cx.rounded(&y)?, cx.rounded(&log_probs)?])
}
