//! Models that are no networks (`ai.onnx.ml`): linear ones, trees, and what prepares their inputs.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::trees::Trees;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

const DOMAIN: &str = "ai.onnx.ml";

pub(super) const TABLE: &[Operator] = &[
    op("Scaler", |cx| {
        let x = as_type(&cx.tensor(0)?, DType::F32)?;
        let mut y = x;
        if let Some(offset) = vector(cx, "offset")? {
            y = (y - offset)?;
        }
        if let Some(scale) = vector(cx, "scale")? {
            y = (y * scale)?;
        }
        cx.of(y, DType::F32)
    })
    .domain(DOMAIN),
    op("Normalizer", |cx| {
        let x = as_type(&cx.tensor(0)?, DType::F32)?;
        let norm = match &*cx.text("norm", "MAX") {
            "L1" => ops::sum(&x.abs()?, -1, true)?,
            "L2" => ops::sqrt(&ops::sum(&(&x * &x)?, -1, true)?)?,
            _ => ops::amax(&x, -1, true)?,
        };
        // Of zeros there is no norm: they stay.
        let one = ops::ones_like(&norm, None)?;
        cx.of(
            (x / ops::r#where(&norm.eq(0.0)?, &one, &norm)?)?,
            DType::F32,
        )
    })
    .domain(DOMAIN),
    op("Binarizer", |cx| {
        let (x, threshold) = (cx.tensor(0)?, cx.float("threshold", 0.0));
        let dtype = cx.dtype(0)?;
        cx.of(as_type(&x.gt(threshold)?, dtype)?, dtype)
    })
    .domain(DOMAIN),
    op("ArrayFeatureExtractor", |cx| {
        let (x, places) = (cx.tensor(0)?, cx.tensor(1)?);
        let places = ops::reshape(&as_type(&places, DType::I64)?, [-1])?;
        let y = ops::index_select(&x, -1, &places)?;
        cx.like(match cx.rank(0)? {
            1 => ops::unsqueeze(&y, 0)?,
            _ => y,
        })
    })
    .domain(DOMAIN),
    op("LinearRegressor", |cx| {
        let y = linear(cx, cx.int("targets", 1))?;
        cx.of(
            transformed(&cx.text("post_transform", "NONE"), &y)?,
            DType::F32,
        )
    })
    .domain(DOMAIN),
    op("LinearClassifier", |cx| {
        let labels = labels(cx, "classlabels_ints")?;
        let scores = linear(cx, labels.len() as i64)?;
        classified(cx, &labels, &scores)
    })
    .domain(DOMAIN),
    op("TreeEnsembleRegressor", |cx| {
        let trees = Trees::of(cx, "target", cx.int("n_targets", 1))?;
        let mut y = trees.sums(cx)?;
        match &*cx.text("aggregate_function", "SUM") {
            "SUM" => {}
            "AVERAGE" => y = (y / trees.roots.len().max(1) as f64)?,
            other => {
                return Err(Error::msg(format_args!(
                    "trees that are put together by {other}"
                )));
            }
        }
        if let Some(base) = vector(cx, "base_values")? {
            y = (y + base)?;
        }
        cx.of(
            transformed(&cx.text("post_transform", "NONE"), &y)?,
            DType::F32,
        )
    })
    .domain(DOMAIN),
    op("TreeEnsemble", |cx| {
        let results = cx.int("n_targets", 1);
        let (y, count) = match cx.int("aggregate_function", 1) {
            0 => {
                let trees = Trees::of_leaves(cx, results, 0.0)?;
                (trees.sums(cx)?, trees.roots.len())
            }
            1 => (Trees::of_leaves(cx, results, 0.0)?.sums(cx)?, 1),
            by @ (2 | 3) => {
                let none = if by == 2 {
                    f64::INFINITY
                } else {
                    f64::NEG_INFINITY
                };
                let leaves = Trees::of_leaves(cx, results, none)?.leaves(cx)?;
                let best = match by {
                    2 => ops::amin(&leaves, 1, false)?,
                    _ => ops::amax(&leaves, 1, false)?,
                };
                // A result that no leaf of a row is for is 0.
                (ops::masked_fill(&best, &best.eq(none)?, 0.0)?, 1)
            }
            other => return Err(Error::msg(format_args!("trees put together by {other}"))),
        };
        let y = if count == 1 { y } else { (y / count as f64)? };
        let by = match cx.int("post_transform", 0) {
            0 => "NONE",
            1 => "SOFTMAX",
            2 => "LOGISTIC",
            3 => "SOFTMAX_ZERO",
            _ => "PROBIT",
        };
        Ok(vec![cx.rounded(&transformed(by, &y)?)?])
    })
    .domain(DOMAIN),
    op("TreeEnsembleClassifier", |cx| {
        let labels = labels(cx, "classlabels_int64s")?;
        let ids = cx.ints("class_ids").unwrap_or_default();
        if labels.len() == 2 && ids.iter().all(|id| Some(id) == ids.first()) {
            return Err(Error::msg(
                "trees that score one of two classes alone: export the model with a score for each",
            ));
        }
        let mut scores = Trees::of(cx, "class", labels.len() as i64)?.sums(cx)?;
        if let Some(base) = vector(cx, "base_values")? {
            scores = (scores + base)?;
        }
        classified(cx, &labels, &scores)
    })
    .domain(DOMAIN),
];

/// An attribute of floats as a vector.
fn vector(cx: &NodeCx<'_>, name: &str) -> Result<Option<Tensor>> {
    let numbers = cx.floats(name).filter(|numbers| !numbers.is_empty());
    let vector = numbers.map(|numbers| {
        let count = numbers.len();
        Tensor::from_vec(numbers, count)
    });
    vector.transpose()
}

/// The whole numbers that classes are called.
fn labels(cx: &NodeCx<'_>, name: &str) -> Result<Vec<i64>> {
    match cx.ints(name).filter(|labels| !labels.is_empty()) {
        Some(labels) => Ok(labels),
        None => Err(Error::msg(format_args!(
            "`{name}` is missing: classes that are texts have no tensor; export the model with numbers for classes"
        ))),
    }
}

/// Rows times coefficients, with intercepts.
fn linear(cx: &NodeCx<'_>, targets: i64) -> Result<Tensor> {
    let x = as_type(&cx.tensor(0)?, DType::F32)?;
    let coefficients = vector(cx, "coefficients")?;
    let coefficients = coefficients.ok_or_else(|| Error::msg("`coefficients` are missing"))?;
    let count = coefficients.dims()?.iter().product::<usize>() as i64;
    if targets < 1 || count % targets != 0 {
        return Err(Error::msg(format_args!(
            "{count} coefficients for {targets} results: export the model with a row of coefficients for each"
        )));
    }
    let w = ops::reshape(&coefficients, [targets, -1])?;
    ops::linear(&x, &w, vector(cx, "intercepts")?.as_ref())
}

/// The scores as an attribute asks for them.
fn transformed(by: &str, scores: &Tensor) -> Result<Tensor> {
    match by {
        "NONE" => Ok(scores.clone()),
        "SOFTMAX" => ops::softmax(scores, -1),
        "LOGISTIC" => ops::sigmoid(scores),
        other => Err(Error::msg(format_args!("scores transformed by {other}"))),
    }
}

/// The class with the best score, and the scores.
fn classified(cx: &NodeCx<'_>, labels: &[i64], scores: &Tensor) -> Given {
    let best = ops::argmax(scores, -1, false)?;
    let names = Tensor::from_vec(labels.to_vec(), labels.len())?;
    Ok(vec![
        V::of(ops::index_select(&names, 0, &best)?, DType::I64),
        V::of(
            transformed(&cx.text("post_transform", "NONE"), scores)?,
            DType::F32,
        ),
    ])
}
