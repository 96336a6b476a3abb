//! Scores of classes, as classic models give them: transformed, and the class that they are for.
//!
//! Invariant: a single score is transformed by ONNX Runtime's rules, by which one of two classes has what the other lacks.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use crate::load::node::NodeCx;
use crate::load::texts;
use crate::load::value::{Given, V, as_type};

/// An attribute of floats as a vector.
pub(super) fn vector(cx: &NodeCx<'_>, name: &str) -> Result<Option<Tensor>> {
    let numbers = cx.floats(name).filter(|numbers| !numbers.is_empty());
    let vector = numbers.map(|numbers| {
        let count = numbers.len();
        Tensor::from_vec(numbers, count)
    });
    vector.transpose()
}

/// The input as rows of floats; one without rows is a row.
pub(super) fn rows(cx: &NodeCx<'_>) -> Result<Tensor> {
    let x = as_type(&cx.tensor(0)?, DType::F32)?;
    match cx.rank(0) {
        Ok(1) => ops::unsqueeze(&x, 0),
        _ => Ok(x),
    }
}

/// What is done to scores, by an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    None,
    Logistic,
    Softmax,
    SoftmaxZero,
    Probit,
}

impl Transform {
    pub fn of(cx: &NodeCx<'_>) -> Self {
        match &*cx.text("post_transform", "NONE") {
            "LOGISTIC" => Transform::Logistic,
            "SOFTMAX" => Transform::Softmax,
            "SOFTMAX_ZERO" => Transform::SoftmaxZero,
            "PROBIT" => Transform::Probit,
            _ => Transform::None,
        }
    }

    /// By its number.
    pub fn numbered(number: i64) -> Self {
        match number {
            1 => Transform::Softmax,
            2 => Transform::Logistic,
            3 => Transform::SoftmaxZero,
            4 => Transform::Probit,
            _ => Transform::None,
        }
    }

    /// Of scores in so many columns: one alone is not changed, unless to a quantile.
    pub fn apply(self, scores: &Tensor, columns: i64) -> Result<Tensor> {
        match self {
            Transform::Probit => probit(scores),
            _ if columns == 1 => Ok(scores.clone()),
            Transform::None => Ok(scores.clone()),
            Transform::Logistic => ops::sigmoid(scores),
            Transform::Softmax => ops::softmax(scores, -1),
            Transform::SoftmaxZero => {
                let is_any = scores.abs()?.gt(1e-7)?;
                let apart = (scores - ops::amax(scores, -1, true)?)?;
                let each = (ops::exp(&apart)? * as_type(&is_any, DType::F32)?)?;
                &each / ops::sum(&each, -1, true)?
            }
        }
    }

    /// Two columns of one score, of the second of two classes. `is_share`: the scores are shares of 1.
    pub fn beside(self, score: &Tensor, is_share: bool) -> Result<Tensor> {
        let (first, second) = match self {
            Transform::Probit => {
                return Err(Error::msg(
                    "a quantile (PROBIT) of the score of one of two classes",
                ));
            }
            Transform::Logistic => (ops::sigmoid(&(-score)?)?, ops::sigmoid(score)?),
            _ if is_share => ((1.0 - score)?, score.clone()),
            _ => ((-score)?, score.clone()),
        };
        ops::cat(&[first, second], 1)
    }
}

/// The quantile of the normal distribution, by the approximation that ONNX Runtime computes.
fn probit(share: &Tensor) -> Result<Tensor> {
    const A: f64 = 0.147;
    let x = ((share * 2.0)? - 1.0)?;
    let log = ops::log(&((1.0 - &x)? * (&x + 1.0)?)?)?;
    let half = ((&log * 0.5)? + 2.0 / (std::f64::consts::PI * A))?;
    let root = ops::sqrt(&((&half * &half)? - (&log / A)?)?)?;
    let size = (ops::sqrt(&(root - half)?)? * std::f64::consts::SQRT_2)?;
    ops::r#where(&x.lt(0.0)?, &(-&size)?, &size)
}

/// What classes are called.
#[derive(Debug, Clone)]
pub(super) enum Labels {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl Labels {
    /// The attribute of numbers of this name, or that of texts.
    pub fn of(cx: &NodeCx<'_>, numbers: &str) -> Result<Self> {
        if let Some(labels) = cx.ints(numbers).filter(|labels| !labels.is_empty()) {
            return Ok(Labels::Numbers(labels));
        }
        let texts = cx
            .texts("classlabels_strings")
            .filter(|labels| !labels.is_empty());
        texts.map(Labels::Texts).ok_or_else(|| {
            Error::msg(format_args!(
                "`{numbers}` and `classlabels_strings` are missing: the classes have no names"
            ))
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Labels::Numbers(labels) => labels.len(),
            Labels::Texts(labels) => labels.len(),
        }
    }
}

/// The labels of classes by their places, one a row, and the scores.
pub(super) fn classified(labels: &Labels, places: &Tensor, scores: Tensor) -> Given {
    let places = as_type(&ops::reshape(places, [-1])?, DType::I64)?;
    let names = match labels {
        Labels::Numbers(labels) => {
            let names = Tensor::from_vec(labels.clone(), labels.len())?;
            V::of(ops::index_select(&names, 0, &places)?, DType::I64)
        }
        Labels::Texts(labels) => texts::picked(labels, &places)?,
    };
    Ok(vec![names, V::of(scores, DType::F32)])
}

/// The class with the best score, and the scores as an attribute asks for them.
pub(super) fn best(cx: &NodeCx<'_>, labels: &Labels, scores: &Tensor) -> Given {
    let place = ops::argmax(scores, -1, false)?;
    let given = Transform::of(cx).apply(scores, labels.len() as i64)?;
    classified(labels, &place, given)
}
