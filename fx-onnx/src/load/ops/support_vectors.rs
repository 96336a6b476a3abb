//! Support vector machines (`ai.onnx.ml`): what rows have in common with the vectors of a model, weighed.
//!
//! Invariant: shares of classes are those that ONNX Runtime's iteration stops at, row by row.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};

use super::classic::DOMAIN;
use super::scores::{Labels, Transform, classified, rows, vector};
use super::trees::table;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};

/// The most classes, each of which is calls of its own where shares are asked for.
const MOST_CLASSES: usize = 64;

/// The most turns of the iteration that finds shares.
const TURNS: i64 = 100;

pub(super) const TABLE: &[Operator] = &[
    op("SVMRegressor", |cx| {
        let x = rows(cx)?;
        let count = cx.int("n_supports", 0);
        let rho = cx.floats("rho").unwrap_or_default();
        let coefficients = vector(cx, "coefficients")?.ok_or_else(missing)?;
        let weights = ops::reshape(&coefficients, [-1, 1])?;
        let y = match count {
            ..=0 => ops::matmul(&x, &weights)?,
            _ => ops::matmul(&Kernel::of(cx)?.with(&x, count)?, &weights)?,
        };
        let y = (y + f64::from(rho.first().copied().unwrap_or(0.0)))?;
        let y = match cx.flag("one_class") {
            true => {
                let is_in = as_type(&y.gt(0.0)?, DType::F32)?;
                ((is_in * 2.0)? - 1.0)?
            }
            false => y,
        };
        cx.of(y, DType::F32)
    })
    .domain(DOMAIN),
    op("SVMClassifier", |cx| {
        let labels = Labels::of(cx, "classlabels_ints")?;
        let counts = cx.ints("vectors_per_class").unwrap_or_default();
        match counts.iter().any(|count| *count > 0) {
            true => by_pairs(cx, &labels, &counts),
            false => by_lines(cx, &labels),
        }
    })
    .domain(DOMAIN),
];

fn missing() -> Error {
    Error::msg("`coefficients` or `support_vectors` are missing")
}

fn wrong() -> Error {
    Error::msg("lists of a support vector machine that do not fit each other")
}

/// How a row and a vector are compared.
struct Kernel<'c, 'n> {
    cx: &'c NodeCx<'n>,
    name: String,
    gamma: f64,
    offset: f64,
    degree: f64,
}

impl<'c, 'n> Kernel<'c, 'n> {
    fn of(cx: &'c NodeCx<'n>) -> Result<Self> {
        let params = cx.floats("kernel_params").unwrap_or_default();
        let name = cx.text("kernel_type", "LINEAR");
        let [gamma, offset, degree] = match <[f32; 3]>::try_from(params) {
            Ok(three) => three.map(f64::from),
            Err(_) if name == "LINEAR" => [0.0; 3],
            Err(_) => return Err(Error::msg("`kernel_params` are not three")),
        };
        Ok(Kernel {
            cx,
            name,
            gamma,
            offset,
            degree,
        })
    }

    /// Rows beside each of the model's vectors, `[rows, count]`.
    fn with(&self, x: &Tensor, count: i64) -> Result<Tensor> {
        let vectors = vector(self.cx, "support_vectors")?.ok_or_else(missing)?;
        let all = vectors.dims()?.iter().product::<usize>() as i64;
        if count < 1 || all % count != 0 {
            return Err(wrong());
        }
        let vectors = ops::reshape(&vectors, [count, -1])?;
        if self.name == "RBF" {
            let apart = (ops::unsqueeze(x, 1)? - ops::unsqueeze(&vectors, 0)?)?;
            let square = ops::sum(&(&apart * &apart)?, -1, false)?;
            return ops::exp(&(square * -self.gamma)?);
        }
        let product = ops::matmul(x, &ops::transpose(&vectors, 0, 1)?)?;
        if self.name == "LINEAR" {
            return Ok(product);
        }
        let line = ((product * self.gamma)? + self.offset)?;
        match &*self.name {
            "POLY" => line.pow(self.degree),
            _ => ops::tanh(&line),
        }
    }
}

/// A line for each class.
fn by_lines(cx: &NodeCx<'_>, labels: &Labels) -> Given {
    let numbers = cx.floats("coefficients").unwrap_or_default();
    let weights = vector(cx, "coefficients")?.ok_or_else(missing)?;
    let classes = labels.len() as i64;
    if numbers.len() as i64 % classes != 0 {
        return Err(wrong());
    }
    let weights = ops::reshape(&weights, [classes, -1])?;
    let rho = cx.floats("rho").unwrap_or_default();
    let scores = ops::matmul(&rows(cx)?, &ops::transpose(&weights, 0, 1)?)?;
    let scores = (scores + f64::from(rho.first().copied().unwrap_or(0.0)))?;
    let mut place = ops::argmax(&scores, -1, false)?;
    if labels.len() == 2 && cx.floats("prob_a").unwrap_or_default().is_empty() {
        let most = ops::amax(&scores, -1, false)?;
        let is_share = numbers.iter().all(|number| *number >= 0.0);
        let is_second = match is_share {
            true => most.ge(0.5)?,
            false => most.gt(0.0)?,
        };
        let second = ops::ones_like(&place, None)?;
        place = ops::r#where(&is_second, &second, &place)?;
    }
    let given = Transform::of(cx).apply(&scores, classes)?;
    classified(labels, &place, given)
}

/// A decision for each pair of classes, and the class that most of them are for.
fn by_pairs(cx: &NodeCx<'_>, labels: &Labels, counts: &[i64]) -> Given {
    let classes = labels.len();
    let total = counts.iter().try_fold(0i64, |sum, count| {
        if *count < 0 {
            None
        } else {
            sum.checked_add(*count)
        }
    });
    let total = total.ok_or_else(wrong)? as usize;
    let coefficients = cx.floats("coefficients").unwrap_or_default();
    let rho = cx.floats("rho").unwrap_or_default();
    let pairs: Vec<(usize, usize)> = (0..classes)
        .flat_map(|one| (one + 1..classes).map(move |other| (one, other)))
        .collect();
    let is_whole = counts.len() == classes
        && classes >= 2
        && rho.len() >= pairs.len()
        && Some(coefficients.len()) >= total.checked_mul(classes - 1);
    if !is_whole {
        return Err(wrong());
    }
    // The weight of each vector in each decision: that of one class is beside the other class.
    let mut weights = table(cx, total, pairs.len(), 0.0)?;
    let mut first = 0;
    for (class, count) in counts.iter().enumerate() {
        for vector in first..first + *count as usize {
            for (at, (one, other)) in pairs.iter().enumerate() {
                let row = match class {
                    class if class == *one => other - 1,
                    class if class == *other => *one,
                    _ => continue,
                };
                weights[vector * pairs.len() + at] = f64::from(coefficients[row * total + vector]);
            }
        }
        first += *count as usize;
    }
    let floats = |all: Vec<f64>, shape: &[usize]| {
        as_type(&Tensor::from_vec(all, shape.to_vec())?, DType::F32)
    };
    let weights = floats(weights, &[total, pairs.len()])?;
    let rho = rho[..pairs.len()].iter().copied().map(f64::from).collect();
    let rho = floats(rho, &[pairs.len()])?;
    let common = Kernel::of(cx)?.with(&rows(cx)?, total as i64)?;
    let sums = (ops::matmul(&common, &weights)? + rho)?;
    // Each decision is a vote for one of its classes.
    let mut votes = vec![0f64; pairs.len() * classes];
    let mut against = votes.clone();
    for (at, (one, other)) in pairs.iter().enumerate() {
        votes[at * classes + one] = 1.0;
        against[at * classes + other] = 1.0;
    }
    let is_one = as_type(&sums.gt(0.0)?, DType::F32)?;
    let votes = ops::matmul(&is_one, &floats(votes, &[pairs.len(), classes])?)?;
    let is_other = (1.0 - &is_one)?;
    let against = ops::matmul(&is_other, &floats(against, &[pairs.len(), classes])?)?;
    let place = ops::argmax(&(votes + against)?, -1, false)?;
    let (by, shares) = (Transform::of(cx), vector(cx, "prob_a")?);
    let scores = match shares {
        Some(slope) => {
            let offset = vector(cx, "prob_b")?.ok_or_else(wrong)?;
            if [&slope, &offset]
                .iter()
                .any(|all| all.dims().ok() != Some(&[pairs.len()][..]))
            {
                return Err(wrong());
            }
            by.apply(
                &shares_of(&sums, &slope, &offset, &pairs, classes)?,
                classes as i64,
            )?
        }
        None if classes == 2 => by.beside(&sums, by != Transform::None)?,
        None => by.apply(&sums, pairs.len() as i64)?,
    };
    classified(labels, &place, scores)
}

/// The shares of classes that agree best with those within pairs (Wu, Lin and Weng's second method).
fn shares_of(
    sums: &Tensor,
    slope: &Tensor,
    offset: &Tensor,
    pairs: &[(usize, usize)],
    classes: usize,
) -> Result<Tensor> {
    if classes > MOST_CLASSES {
        return Err(Error::msg(format_args!(
            "shares of {classes} classes, each of which would be calls of its own"
        )));
    }
    let one = (1.0 - ops::sigmoid(&((sums * slope)? + offset)?)?)?;
    let one = ops::clamp(&one, 1e-7, 1.0 - 1e-7)?;
    // The share of a row's class against a column's, `[rows, classes, classes]`; zeros within a class.
    let place = |a: usize, b: usize| pairs.iter().position(|pair| *pair == (a, b));
    let mut order = Vec::with_capacity(classes * classes);
    for a in 0..classes {
        for b in 0..classes {
            order.push(match (place(a, b), place(b, a)) {
                (Some(at), _) => at as i64,
                (_, Some(at)) => (pairs.len() + at) as i64,
                _ => 2 * pairs.len() as i64,
            });
        }
    }
    let none = ops::zeros_like(&ops::narrow(&one, 1, 0, 1)?, None)?;
    let all = ops::cat(&[one.clone(), (1.0 - &one)?, none], 1)?;
    let order = Tensor::from_vec(order, classes * classes)?;
    let all = ops::index_select(&all, 1, &order)?;
    let r = ops::reshape(&all, [-1, classes as i64, classes as i64])?;
    let turned = ops::transpose(&r, 1, 2)?;
    let own = ops::sum(&(&turned * &turned)?, 2, false)?;
    let diagonal = ops::unsqueeze(&ops::eye(classes, None, Some(DType::F32))?, 0)?;
    let q = ((ops::unsqueeze(&own, 2)? * diagonal)? - (&turned * &r)?)?;
    let even = ops::ones_like(&own, None)?;
    let even = (even / classes as f64)?;
    let (begin, is_open) = (even.clone(), is_open(&q, &even, classes)?);
    let turn = Tensor::from_vec(vec![0i64], ())?;
    let state = |p: Tensor, open: Tensor, turn: Tensor| {
        let all = [p, open, turn].map(IntoValue::into_value);
        Value::Tuple(all.to_vec().into())
    };
    let parts = |of: &Value| -> Result<[Tensor; 3]> {
        match of {
            Value::Tuple(items) if items.len() == 3 => Ok([
                Tensor::from_value(items[0].clone())?,
                Tensor::from_value(items[1].clone())?,
                Tensor::from_value(items[2].clone())?,
            ]),
            _ => Err(Error::msg("a loop lost its state")),
        }
    };
    let given: Value = control::while_loop(
        state(begin, is_open, turn),
        |of: &Value| {
            let [_, open, turn] = parts(of)?;
            let open = ops::any(&open, .., false)?;
            ops::logical_and(&open, &turn.lt(TURNS)?)
        },
        |of: Value| {
            let [p, open, turn] = parts(&of)?;
            let next = ops::r#where(&open, &step(&q, &p, &own, classes)?, &p)?;
            let open = ops::logical_and(&open, &self::is_open(&q, &next, classes)?)?;
            Ok(state(next, open, (turn + 1)?))
        },
    )?;
    let [shares, ..] = parts(&given)?;
    Ok(shares)
}

/// What the shares of each class disagree by, and in all.
fn errors(q: &Tensor, p: &Tensor) -> Result<(Tensor, Tensor)> {
    let each = ops::squeeze(&ops::matmul(q, &ops::unsqueeze(p, 2)?)?, 2)?;
    let all = ops::sum(&(&each * p)?, 1, true)?;
    Ok((each, all))
}

/// Whether a row's shares are not found yet, `[rows, 1]`.
fn is_open(q: &Tensor, p: &Tensor, classes: usize) -> Result<Tensor> {
    let (each, all) = errors(q, p)?;
    let most = ops::amax(&(each - all)?.abs()?, 1, true)?;
    most.ge(0.005 / classes as f64)
}

/// A turn: the share of each class in its turn, and all of them as parts of 1 again.
fn step(q: &Tensor, p: &Tensor, own: &Tensor, classes: usize) -> Result<Tensor> {
    let (mut each, mut all) = errors(q, p)?;
    let mut p = p.clone();
    for class in 0..classes {
        let at = class as i64;
        let column = |of: &Tensor| ops::narrow(of, 1, at, 1);
        let (mine, weight) = (column(&each)?, column(own)?);
        let more = ((&all - &mine)? / &weight)?;
        let sum = (&more + 1.0)?;
        let added = (&more * ((&more * &weight)? + (&mine * 2.0)?)?)?;
        all = ((all + added)? / (&sum * &sum)?)?;
        each = ((each + (&more * ops::select(q, 1, at)?)?)? / &sum)?;
        let mut only = vec![0f32; classes];
        only[class] = 1.0;
        let only = Tensor::from_vec(only, (1, classes))?;
        p = ((p + (&more * only)?)? / &sum)?;
    }
    Ok(p)
}
