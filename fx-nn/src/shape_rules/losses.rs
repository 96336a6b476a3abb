//! Losses, and the distances and angles that some are of.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::{RuleCall, result_type};
use fx_core::value::{DType, Dim};

use super::reductions::{summed, without};
use super::{
    Elements, are_equal, at_least, number, place, promoted, require, require_equal, require_fits,
    require_number, require_one_type, require_probability, require_rank, require_type,
    require_type_of, rules, shape_of, tensor, word, wrong, x,
};
use crate::ops;

rules! {
    loss => ops::poisson_nll_loss, ops::soft_margin_loss;
    |call| difference(call, None) => ops::mse_loss;
    |call| difference(call, Some("beta")) => ops::smooth_l1_loss;
    |call| difference(call, Some("delta")) => ops::huber_loss;
    absolute => ops::l1_loss;
    cross_entropy_of_shares => ops::binary_cross_entropy;
    cross_entropy_of_scores => ops::binary_cross_entropy_with_logits;
    divergence => ops::kl_div;
    hinge => ops::hinge_embedding_loss;
    margin_ranking => ops::margin_ranking_loss;
    cross_entropy => ops::cross_entropy;
    classes => ops::nll_loss;
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
fn reduced(call: &RuleCall<'_>, shape: Vec<Dim>, dtype: Option<DType>) -> Result<ValueMeta> {
    Ok(match word(call, "reduction", &["mean", "sum", "none"])? {
        "none" => tensor(shape, dtype),
        _ => tensor(Vec::new(), dtype),
    })
}

/// Of two tensors, which are broadcast.
fn of_two(call: &mut RuleCall<'_>, dtype: Option<DType>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require_type(call, dtype, Elements::Fractions)?;
    let shape = call.broadcast(&[&x.shape, &target.shape])?;
    reduced(call, shape, dtype)
}

fn loss(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = common(call, call.args().iter().take(2))?;
    of_two(call, dtype)
}

/// Of the difference, in the larger type; the edge of a curve is above 0, or 0 of `beta`.
fn difference(call: &mut RuleCall<'_>, edge: Option<&str>) -> Result<ValueMeta> {
    match edge {
        Some("beta") => require_number(call, "beta", "0 or above", |beta| beta >= 0.0)?,
        Some(edge) => require_number(call, edge, "above 0", |edge| edge > 0.0)?,
        None => {}
    }
    let dtype = promoted(&[x(call)?, call.tensor("target")?]);
    of_two(call, dtype)
}

/// Differences of whole numbers stay, and have no mean.
fn absolute(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require(call, x, Elements::Numbers)?;
    require(call, target, Elements::Numbers)?;
    let dtype = promoted(&[x, target]);
    let shape = call.broadcast(&[&x.shape, &target.shape])?;
    match (dtype, call.text("reduction")?) {
        (Some(dtype), "mean") if !dtype.is_floating_point() => Err(wrong(
            call,
            "integers have no mean: convert one with `to_dtype`",
        )),
        (dtype, "sum") => reduced(call, shape, dtype.map(summed)),
        (dtype, _) => reduced(call, shape, dtype),
    }
}

/// Of each element, with a weight.
fn cross_entropy_of_shares(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require_type_of(call, x, &["target"])?;
    weighted(call, &["weight"])
}

fn cross_entropy_of_scores(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, call.tensor("target")?, Elements::Fractions)?;
    weighted(call, &["weight", "pos_weight"])
}

fn weighted(call: &mut RuleCall<'_>, weights: &[&str]) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require(call, x, Elements::Fractions)?;
    require_equal(call, &x.shape, &target.shape)?;
    for weight in weights {
        require_weight(call, &x.shape, weight)?;
    }
    let dtype = common(call, call.args().iter().take(2))?;
    reduced(call, x.shape.clone(), dtype)
}

/// The mean over the batch is a number too.
fn divergence(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require(call, x, Elements::Fractions)?;
    require(call, target, Elements::Fractions)?;
    if call.text("reduction")? != "batchmean" {
        return loss(call);
    }
    call.broadcast(&[&x.shape, &target.shape])?;
    Ok(tensor(Vec::new(), result_type(call.args().iter().take(2))))
}

fn hinge(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    of_two(call, x.dtype)
}

fn margin_ranking(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let target = call.tensor("target")?;
    let rank = target.shape.len();
    for rows in [a, b] {
        require_rank(call, rows, rank..=rank)?;
    }
    let dtype = common(call, call.args().iter().take(3))?;
    let shape = call.broadcast(&[&a.shape, &b.shape, &target.shape])?;
    reduced(call, shape, dtype)
}

/// A target of fractions is a share for each class.
fn cross_entropy(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_probability(call, "label_smoothing")?;
    let (x, target) = (x(call)?, call.tensor("target")?);
    if target.dtype.is_none_or(|dtype| !dtype.is_floating_point()) {
        return classes(call);
    }
    let ignored = call.int("ignore_index")?;
    if ignored >= 0 {
        return Err(wrong(
            call,
            format_args!(
                "probabilities have no class to ignore: ignore_index {ignored} is for targets that are classes"
            ),
        ));
    }
    require_equal(call, &x.shape, &target.shape)?;
    let shape = places_of_classes(call)?;
    reduced(call, shape, x.dtype)
}

/// The shape without the classes, which have a weight each.
fn places_of_classes(call: &mut RuleCall<'_>) -> Result<Vec<Dim>> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    require_rank(call, x, 1..)?;
    let mut shape = x.shape.clone();
    let classes = shape.remove(usize::from(shape.len() > 1));
    if let Some(weight) = call.optional_tensor("weight")? {
        require_one_type(call, x, weight)?;
        require_equal(call, &weight.shape, std::slice::from_ref(&classes))?;
    }
    Ok(shape)
}

/// One number per place of the classes' dim.
fn classes(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let shape = places_of_classes(call)?;
    if target.dtype != Some(DType::U8) {
        require(call, target, Elements::Long)?;
    }
    require_equal(call, &target.shape, &shape)?;
    reduced(call, shape, x.dtype)
}

/// The type of tensors of which one holds fractions.
fn common<'f>(
    call: &RuleCall<'_>,
    args: impl IntoIterator<Item = &'f ValueMeta>,
) -> Result<Option<DType>> {
    let dtype = result_type(args);
    require_type(call, dtype, Elements::Fractions)?;
    Ok(dtype)
}

/// The variances may be one per row.
fn gaussian(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target, var) = (x(call)?, call.tensor("target")?, call.arg("var")?);
    let dtype = common(call, call.args().iter().take(3))?;
    let mut own = shape_of(var).to_vec();
    if let [rows @ .., _] = &x.shape[..]
        && var.as_tensor().is_some()
        && are_equal(call, rows, &own)?
    {
        own.push(Dim::known(1));
    }
    if var.as_tensor().is_some() {
        let pairs = own.iter().zip(&x.shape);
        let sizes = pairs.filter_map(|(a, b)| Some((a.as_known()?, b.as_known()?)));
        let other = sizes.filter(|(a, b)| a != b).map(|(a, _)| a).sum::<usize>();
        if own.len() != x.shape.len() || other > 1 {
            return Err(wrong(
                call,
                format_args!(
                    "the variances {own:?} have the sizes of {:?}, but one that is 1 or left out at the end",
                    x.shape
                ),
            ));
        }
    }
    if var.as_tensor().is_none() && number(call, "var")?.is_some_and(|var| var < 0.0) {
        return Err(wrong(call, "`var` is 0 or above"));
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
    at_least(call, &classes, 1, "the scores have one class at least")?;
    Ok((rows, classes))
}

fn multi_margin(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let (rows, classes) = rows(call, x)?;
    require(call, target, Elements::Long)?;
    if !matches!(call.int("p")?, 1 | 2) {
        return Err(wrong(call, "`p` is 1 or 2, and no other number"));
    }
    match &target.shape[..] {
        [] | [_] => call.same(&rows, &Dim::product(&target.shape)?, || {
            "`target` has one class for each row".to_string()
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

fn multilabel_margin(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let (rows, _) = rows(call, x)?;
    require(call, target, Elements::Long)?;
    require_equal(call, &x.shape, &target.shape)?;
    let shape = match x.shape.len() < 2 {
        true => Vec::new(),
        false => vec![rows],
    };
    reduced(call, shape, x.dtype)
}

/// Returns an error unless a tensor of weights broadcasts to a shape.
fn require_weight(call: &mut RuleCall<'_>, shape: &[Dim], param: &str) -> Result<()> {
    match call.optional_tensor(param)? {
        Some(weight) => require_fits(call, &weight.shape, shape),
        None => Ok(()),
    }
}

fn multilabel_soft_margin(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    require(call, x, Elements::Fractions)?;
    require(call, target, Elements::Numbers)?;
    require_weight(call, &x.shape, "weight")?;
    let Some(classes) = x.shape.len().checked_sub(1) else {
        return Err(wrong(call, "the scores have one dim at least: the classes"));
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
        None => Err(wrong(call, "a point has one dim at least: its numbers")),
    }
}

fn triplet_margin(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (anchor, positive, negative) = (
        call.tensor("anchor")?,
        call.tensor("positive")?,
        call.tensor("negative")?,
    );
    let rank = anchor.shape.len();
    for rows in [positive, negative] {
        require_rank(call, rows, rank..=rank)?;
    }
    require_number(call, "margin", "above 0", |margin| margin > 0.0)?;
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

fn cosine_embedding(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let target = call.tensor("target")?;
    require_rank(call, target, ..=1)?;
    let rank = target.shape.len() + 1;
    for rows in [a, b] {
        require_rank(call, rows, rank..=rank)?;
    }
    let dtype = common(call, call.args().iter().take(2))?;
    let cosines = distances(call, a, b)?;
    let shape = call.broadcast(&[&cosines, &target.shape])?;
    reduced(call, shape, dtype)
}

fn pairwise_distance(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let dtype = common(call, call.args().iter().take(2))?;
    let mut shape = distances(call, a, b)?;
    if call.flag("keepdim")? {
        shape.push(Dim::known(1));
    }
    Ok(tensor(shape, dtype))
}

fn cosine_similarity(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
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

fn ctc(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (logs, targets) = (call.tensor("log_probs")?, call.tensor("targets")?);
    require(call, logs, Elements::Single)?;
    require(call, targets, Elements::Places)?;
    if !matches!(targets.shape.len(), 1 | 2) {
        return Err(wrong(
            call,
            format_args!(
                "the targets have one dim or two, and not {:?}",
                targets.shape
            ),
        ));
    }
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
