//! Losses, and the distances and angles that some are of.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::{DType, Dim};

use super::reductions::without;
use super::{
    Elements, are_equal, at_least, fractional, number, place, require, require_equal, require_type,
    rules, shape_of, tensor, word, wrong, x,
};
use crate::ops;

rules! {
    loss => ops::mse_loss, ops::l1_loss, ops::smooth_l1_loss, ops::huber_loss,
        ops::binary_cross_entropy_with_logits, ops::binary_cross_entropy, ops::kl_div,
        ops::poisson_nll_loss, ops::soft_margin_loss, ops::hinge_embedding_loss;
    loss_of_three => ops::margin_ranking_loss;
    class_loss => ops::cross_entropy, ops::nll_loss;
    gaussian => ops::gaussian_nll_loss;
    multi_margin => ops::multi_margin_loss;
    multilabel_margin => ops::multilabel_margin_loss;
    multilabel_soft_margin => ops::multilabel_soft_margin_loss;
    triplet_margin => ops::triplet_margin_loss;
    cosine_embedding => ops::cosine_embedding_loss;
    ctc => ops::ctc_loss;
    pairwise_distance => ops::pairwise_distance;
    cosine_similarity => ops::cosine_similarity;
}

/// The mean or the sum is a number, otherwise there is one per element.
fn reduced(call: &RuleCall<'_>, shape: Vec<Dim>, dtype: Option<DType>) -> Result<Fake> {
    let words: &[&str] = match call.function().name() {
        "kl_div" => &["mean", "sum", "none", "batchmean"],
        _ => &["mean", "sum", "none"],
    };
    Ok(match word(call, "reduction", words)? {
        "none" => tensor(shape, dtype),
        _ => tensor(Vec::new(), dtype),
    })
}

fn loss(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (x(call)?, call.tensor("target")?);
    let shape = call.broadcast(&[&a.shape, &b.shape])?;
    let dtype = a.dtype.zip(b.dtype).map(|(a, b)| a.promote(b));
    reduced(call, shape, fractional(dtype))
}

fn loss_of_three(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b, target) = (
        call.tensor("x1")?,
        call.tensor("x2")?,
        call.tensor("target")?,
    );
    let shape = call.broadcast(&[&a.shape, &b.shape, &target.shape])?;
    let dtype = a.dtype.zip(b.dtype).map(|(a, b)| a.promote(b));
    reduced(call, shape, dtype)
}

/// One number per place of the classes' dim.
fn class_loss(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let mut shape = x.shape.clone();
    if !shape.is_empty() {
        shape.remove(usize::from(shape.len() > 1));
    }
    if target.shape.len() == shape.len() {
        require_equal(call, &shape, &target.shape)?;
    }
    reduced(call, shape, x.dtype)
}

/// The type of tensors of which one holds fractions.
fn common<'f>(
    call: &RuleCall<'_>,
    args: impl IntoIterator<Item = &'f Fake>,
) -> Result<Option<DType>> {
    let dtype = result_type(args);
    require_type(call, dtype, Elements::Fractions)?;
    Ok(dtype)
}

/// The variances may be one per row.
fn gaussian(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target, var) = (x(call)?, call.tensor("target")?, call.arg("var")?);
    let dtype = common(call, call.args().iter().take(3))?;
    let mut own = shape_of(var).to_vec();
    if let [rows @ .., _] = &x.shape[..]
        && !own.is_empty()
        && are_equal(call, rows, &own)?
    {
        own.push(Dim::known(1));
    }
    if var.as_tensor().is_none() && number(call, "var")?.is_some_and(|var| var < 0.0) {
        return Err(wrong(call, "a variance is not below 0"));
    }
    let shape = call.broadcast(&[&x.shape, &target.shape, &own])?;
    reduced(call, shape, dtype)
}

/// The rows of scores and their classes.
fn rows(call: &mut RuleCall<'_>, x: &TensorMeta) -> Result<(Dim, Dim)> {
    require(call, x, Elements::Single)?;
    let (rows, classes) = match &x.shape[..] {
        [] => (Dim::known(1), Dim::known(1)),
        [classes] => (Dim::known(1), classes.clone()),
        [rows, classes] => (rows.clone(), classes.clone()),
        other => {
            return Err(wrong(
                call,
                format_args!("the scores are rows or one row, and not {other:?}"),
            ));
        }
    };
    at_least(call, &classes, 1, "there is one class at least")?;
    Ok((rows, classes))
}

fn require_classes(call: &RuleCall<'_>, target: &TensorMeta) -> Result<()> {
    match target.dtype {
        Some(dtype) if dtype != DType::I64 => Err(wrong(
            call,
            format_args!(
                "the classes are of `int64`, and not of {dtype}: convert them with `to_dtype`"
            ),
        )),
        _ => Ok(()),
    }
}

fn multi_margin(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let (rows, classes) = rows(call, x)?;
    require_classes(call, target)?;
    if !matches!(call.int("p")?, 1 | 2) {
        return Err(wrong(call, "`p` is 1 or 2"));
    }
    match &target.shape[..] {
        [] | [_] => call.same(&rows, &Dim::product(&target.shape)?, || {
            "each row has one class".to_string()
        })?,
        other => {
            return Err(wrong(
                call,
                format_args!("the classes are a vector, and not {other:?}"),
            ));
        }
    }
    if let Some(weight) = call.optional_tensor("weight")? {
        require_equal(call, &weight.shape, &[classes])?;
    }
    let shape = match x.shape.len() < 2 && target.shape.is_empty() {
        true => Vec::new(),
        false => vec![rows],
    };
    reduced(call, shape, x.dtype)
}

fn multilabel_margin(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let (rows, _) = rows(call, x)?;
    require_classes(call, target)?;
    require_equal(call, &x.shape, &target.shape)?;
    let shape = match x.shape.len() < 2 {
        true => Vec::new(),
        false => vec![rows],
    };
    reduced(call, shape, x.dtype)
}

/// Returns an error unless a tensor of weights broadcasts to a shape.
fn require_weight(call: &mut RuleCall<'_>, shape: &[Dim], param: &str) -> Result<()> {
    if let Some(weight) = call.optional_tensor(param)? {
        let both = call.broadcast(&[shape, &weight.shape])?;
        require_equal(call, shape, &both)?;
    }
    Ok(())
}

fn multilabel_soft_margin(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require(call, x, Elements::Fractions)?;
    require(call, target, Elements::Numbers)?;
    require_weight(call, &x.shape, "weight")?;
    let Some(classes) = x.shape.len().checked_sub(1) else {
        return Err(wrong(call, "the scores have a dim of classes"));
    };
    let dtype = common(call, call.args().iter().take(2))?;
    let shape = call.broadcast(&[&x.shape, &target.shape])?;
    reduced(call, without(&shape, &[classes], false), dtype)
}

/// The distances of rows, which are broadcast.
fn distances(call: &mut RuleCall<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<Vec<Dim>> {
    let mut shape = call.broadcast(&[&a.shape, &b.shape])?;
    match shape.pop() {
        Some(_) => Ok(shape),
        None => Err(wrong(call, "a point has a dim at least")),
    }
}

fn triplet_margin(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (anchor, positive, negative) = (
        call.tensor("anchor")?,
        call.tensor("positive")?,
        call.tensor("negative")?,
    );
    let rank = anchor.shape.len();
    if positive.shape.len() != rank || negative.shape.len() != rank {
        return Err(wrong(call, "the tensors have one number of dims"));
    }
    if number(call, "margin")?.is_some_and(|margin| margin.is_nan() || margin <= 0.0) {
        return Err(wrong(call, "the margin is above 0"));
    }
    let dtype = common(call, call.args().iter().take(3))?;
    let near = distances(call, anchor, positive)?;
    let mut away = distances(call, anchor, negative)?;
    if call.flag("swap")? {
        let other = distances(call, positive, negative)?;
        away = call.broadcast(&[&away, &other])?;
    }
    let shape = call.broadcast(&[&near, &away])?;
    reduced(call, shape, dtype)
}

fn cosine_embedding(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let target = call.tensor("target")?;
    let rank = target.shape.len();
    if rank > 1 || a.shape.len() != rank + 1 || b.shape.len() != rank + 1 {
        return Err(wrong(
            call,
            "the target has one dim or none, and the rows one more",
        ));
    }
    let dtype = common(call, call.args().iter().take(2))?;
    let cosines = distances(call, a, b)?;
    let shape = call.broadcast(&[&cosines, &target.shape])?;
    reduced(call, shape, dtype)
}

fn pairwise_distance(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let dtype = common(call, call.args().iter().take(2))?;
    let mut shape = distances(call, a, b)?;
    if call.flag("keepdim")? {
        shape.push(Dim::known(1));
    }
    Ok(tensor(shape, dtype))
}

fn cosine_similarity(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let dtype = common(call, call.args().iter().take(2))?;
    let shape = call.broadcast(&[&a.shape, &b.shape])?;
    let place = place(call, "dim", shape.len())?;
    Ok(tensor(without(&shape, &[place], false), dtype))
}

/// The lengths of the samples, a number for each.
fn lengths(call: &mut RuleCall<'_>, param: &str, samples: &Dim, most: Option<&Dim>) -> Result<Dim> {
    let lengths = call.sizes(param)?;
    call.same(samples, &lengths.len().into(), || {
        format!("`{param}` are a number for each sample")
    })?;
    let mut sum = Dim::known(0);
    for length in &lengths {
        let problem = format!("{length} is no length of a sample, in `{param}`");
        at_least(call, length, 0, &problem)?;
        if let Some(most) = most {
            at_least(call, &(most - length)?, 0, &problem)?;
        }
        sum = (sum + length)?;
    }
    Ok(sum)
}

fn ctc(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (logs, targets) = (call.tensor("log_probs")?, call.tensor("targets")?);
    require(call, logs, Elements::Single)?;
    require(call, targets, Elements::Places)?;
    let one = Dim::known(1);
    let (steps, samples, classes, is_single) = match &logs.shape[..] {
        [steps, classes] => (steps, &one, classes, true),
        [steps, samples, classes] => (steps, samples, classes, false),
        other => {
            return Err(wrong(
                call,
                format_args!("the logarithms have two or three dims, and not {other:?}"),
            ));
        }
    };
    let blank = super::count(call, "blank")?;
    let others = ((classes - blank)? - 1)?;
    at_least(
        call,
        &others,
        0,
        format_args!("the blank {blank} is none of {classes} classes"),
    )?;
    lengths(call, "input_lengths", samples, Some(steps))?;
    let is_padded = targets.shape.len() == 2 || is_single;
    let zero = Dim::known(0);
    let longest = targets.shape.last().unwrap_or(&zero);
    let total = match is_padded {
        true => {
            lengths(call, "target_lengths", samples, Some(longest))?;
            (samples * longest)?
        }
        false => lengths(call, "target_lengths", samples, None)?,
    };
    call.same(&Dim::product(&targets.shape)?, &total, || {
        "the targets are not as many as their lengths say".to_string()
    })?;
    let shape = match is_single {
        true => Vec::new(),
        false => vec![samples.clone()],
    };
    reduced(call, shape, logs.dtype)
}
