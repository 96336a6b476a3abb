//! Models that are no networks (`ai.onnx.ml`): linear ones, trees, and what prepares their inputs.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::scores::{Labels, Transform, best, classified, rows, vector};
use super::trees::Trees;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};

pub(super) const DOMAIN: &str = "ai.onnx.ml";

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
    .domain(DOMAIN)
    .moves_text(),
    op("LinearRegressor", |cx| {
        let targets = cx.int("targets", 1);
        let y = linear(cx, targets)?;
        cx.of(Transform::of(cx).apply(&y, targets)?, DType::F32)
    })
    .domain(DOMAIN),
    op("LinearClassifier", |cx| {
        let labels = Labels::of(cx, "classlabels_ints")?;
        let lines = cx.floats("intercepts").unwrap_or_default().len();
        if lines == 1 && labels.len() == 2 {
            let score = linear(cx, 1)?;
            let scores = Transform::of(cx).beside(&score, true)?;
            return classified(&labels, &score.gt(0.0)?, scores);
        }
        let scores = linear(cx, labels.len() as i64)?;
        best(cx, &labels, &scores)
    })
    .domain(DOMAIN),
    op("TreeEnsembleRegressor", |cx| {
        let targets = cx.int("n_targets", 1);
        let by = match &*cx.text("aggregate_function", "SUM") {
            "SUM" => Join::Sum,
            "AVERAGE" => Join::Mean,
            "MIN" => Join::Least,
            "MAX" => Join::Most,
            other => {
                return Err(Error::msg(format_args!(
                    "trees that are put together by {other}"
                )));
            }
        };
        let trees = Trees::of(cx, "target", targets, by.none())?;
        let mut y = by.joined(cx, &trees)?;
        if let Some(base) = base_values(cx, targets)? {
            y = (y + base)?;
        }
        let y = by.filled(y)?;
        let y = Transform::of(cx).apply(&y, targets)?;
        cx.of(as_type(&y, DType::F32)?, DType::F32)
    })
    .domain(DOMAIN),
    op("TreeEnsemble", |cx| {
        let results = cx.int("n_targets", 1);
        let by = match cx.int("aggregate_function", 1) {
            0 => Join::Mean,
            1 => Join::Sum,
            2 => Join::Least,
            3 => Join::Most,
            other => return Err(Error::msg(format_args!("trees put together by {other}"))),
        };
        let y = by.joined(cx, &Trees::of_leaves(cx, results, by.none())?)?;
        let y = by.filled(y)?;
        let transform = Transform::numbered(cx.int("post_transform", 0));
        Ok(vec![cx.rounded(&transform.apply(&y, results)?)?])
    })
    .domain(DOMAIN),
    op("TreeEnsembleClassifier", |cx| {
        let labels = Labels::of(cx, "classlabels_int64s")?;
        let classes = labels.len() as i64;
        let scores = Trees::of(cx, "class", classes, 0.0)?.sums(cx)?;
        let scores = as_type(&scores, DType::F32)?;
        if classes == 2 {
            return of_two(cx, &labels, &scores);
        }
        let scores = match base_values(cx, classes)? {
            Some(base) => (scores + base)?,
            None => scores,
        };
        best(cx, &labels, &scores)
    })
    .domain(DOMAIN),
];

/// How what the trees of a row give is put together.
#[derive(Debug, Clone, Copy)]
enum Join {
    Sum,
    Mean,
    Least,
    Most,
}

impl Join {
    /// What a leaf has for the results that it is not for.
    fn none(self) -> f64 {
        match self {
            Join::Sum | Join::Mean => 0.0,
            Join::Least => f64::INFINITY,
            Join::Most => f64::NEG_INFINITY,
        }
    }

    fn joined(self, cx: &NodeCx<'_>, trees: &Trees) -> Result<Tensor> {
        match self {
            Join::Sum => trees.sums(cx),
            Join::Mean => trees.sums(cx)? / trees.roots.len().max(1) as f64,
            Join::Least => ops::amin(&trees.leaves(cx)?, 1, false),
            Join::Most => ops::amax(&trees.leaves(cx)?, 1, false),
        }
    }

    /// A result that no leaf of a row is for is 0.
    fn filled(self, y: Tensor) -> Result<Tensor> {
        match self {
            Join::Sum | Join::Mean => Ok(y),
            Join::Least | Join::Most => ops::masked_fill(&y, &y.eq(self.none())?, 0.0),
        }
    }
}

/// What is added to results, if there is a number for each.
fn base_values(cx: &NodeCx<'_>, results: i64) -> Result<Option<Tensor>> {
    let base = cx.floats("base_values").unwrap_or_default();
    match base.len() as i64 == results {
        true => vector(cx, "base_values"),
        false => Ok(None),
    }
}

/// The scores of two classes, of which leaves may score one alone: by ONNX Runtime's rules.
fn of_two(cx: &NodeCx<'_>, labels: &Labels, scores: &Tensor) -> Given {
    let ids = cx.ints("class_ids").unwrap_or_default();
    let (transform, base) = (
        Transform::of(cx),
        cx.floats("base_values").unwrap_or_default(),
    );
    let column = |at: i64| ops::narrow(scores, 1, at, 1);
    let add = |x: Tensor, at: usize| match base.get(at) {
        Some(base) => x + f64::from(*base),
        None => Ok(x),
    };
    let one = ids
        .first()
        .filter(|first| ids.iter().all(|id| id == *first));
    let weights = cx.floats("class_weights").unwrap_or_default();
    let is_share = weights.iter().all(|weight| *weight >= 0.0);
    let least = if one.is_some() && is_share { 0.5 } else { 0.0 };
    let (decides, given) = match (one, base.len()) {
        (Some(0), 0 | 1) => {
            let score = add(column(0)?, 0)?;
            let given = transform.beside(&score, is_share)?;
            return classified(labels, &score.gt(least)?, given);
        }
        (Some(0), _) => {
            let score = add(column(0)?, 0)?;
            let none = ops::zeros_like(&score, None)?;
            (score.clone(), [score, none])
        }
        (Some(_), 0 | 1) => (column(1)?, [column(0)?, column(1)?]),
        (Some(_), _) => {
            return Err(Error::msg(
                "trees that score the second of two classes alone, with a base value for each",
            ));
        }
        (None, 0 | 1) => (column(1)?, [add(column(0)?, 0)?, column(1)?]),
        (None, _) => {
            let score = add(column(0)?, 1)?;
            (score.clone(), [(-&score)?, score])
        }
    };
    let given = transform.apply(&ops::cat(&given, 1)?, 2)?;
    classified(labels, &decides.gt(least)?, given)
}

/// Rows times coefficients, with intercepts.
fn linear(cx: &NodeCx<'_>, targets: i64) -> Result<Tensor> {
    let coefficients = vector(cx, "coefficients")?;
    let coefficients = coefficients.ok_or_else(|| Error::msg("`coefficients` are missing"))?;
    let count = coefficients.dims()?.iter().product::<usize>() as i64;
    if targets < 1 || count % targets != 0 {
        return Err(Error::msg(format_args!(
            "{count} coefficients for {targets} results: export the model with a row of coefficients for each"
        )));
    }
    let w = ops::reshape(&coefficients, [targets, -1])?;
    ops::linear(&rows(cx)?, &w, vector(cx, "intercepts")?.as_ref())
}
