//! Losses between predictions and targets.

use candle_core::{DType, Result, Tensor, bail};

use super::choice::where_cond;
use super::dim::same_dtype;
use super::reduce;
use super::scale::Scale;
use super::select::gather;
use super::softmax::log_softmax;
use super::widen::widened;

/// The reduction of the losses of all samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// No reduction.
    None,
    /// Their (weighted) mean.
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// Parses PyTorch's word for it.
    ///
    /// # Errors
    /// Returns an error if the word is unknown.
    pub fn parse(op: &str, word: &str) -> Result<Self> {
        Ok(match word {
            "none" => Reduction::None,
            "mean" => Reduction::Mean,
            "sum" => Reduction::Sum,
            other => {
                bail!("{op}: reduction is \"none\", \"mean\" or \"sum\", not {other:?}")
            }
        })
    }

    /// Reduces losses of any shape.
    ///
    /// # Errors
    /// Returns only candle's errors.
    pub fn of(self, losses: &Tensor) -> Result<Tensor> {
        let dims: Vec<usize> = (0..losses.rank()).collect();
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Sum => reduce::sum(losses, &dims, false),
            Reduction::Mean => reduce::mean(losses, &dims, false),
        }
    }
}

/// `x [n, c, d..]` (or `[c]`) with its classes last, as rows `[m, c]`, and the shape of the rows.
fn rows(op: &str, x: &Tensor) -> Result<(Tensor, Vec<usize>)> {
    if x.rank() == 0 || !x.dtype().is_float() {
        bail!(
            "{op}: input {:?} of dtype {:?} must be floating point, [n, c, ..] or [c]",
            x.dims(),
            x.dtype()
        )
    }
    let at = usize::from(x.rank() > 1);
    let classes = x.dims()[at];
    let mut order: Vec<usize> = (0..x.rank()).filter(|&d| d != at).collect();
    let shape: Vec<usize> = order.iter().map(|&d| x.dims()[d]).collect();
    order.push(at);
    let count: usize = shape.iter().product();
    let flat = x.permute(order)?.contiguous()?.reshape((count, classes))?;
    Ok((flat, shape))
}

fn class_weights(op: &str, weight: Option<&Tensor>, classes: usize) -> Result<Option<Tensor>> {
    match weight {
        Some(weight) if weight.dims() != [classes] => {
            bail!("{op}: weight {:?} must be [{classes}]", weight.dims())
        }
        weight => Ok(weight.cloned()),
    }
}

/// Minus the logarithmic probabilities `x [n, c, ..]` of the classes `target [n, ..]` (`i64`), times the class
/// weights `[c]`, but 0 where the target is `ignore`; a mean divides by the weights.
///
/// # Errors
/// Returns an error if the shapes do not fit, or a target is not a class.
pub fn nll_loss(
    op: &str,
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore: i64,
    reduction: Reduction,
) -> Result<Tensor> {
    weight.map_or(Ok(()), |w| same_dtype(op, x, w))?;
    widened(x, (x, weight), |(x, weight)| {
        let (logs, shape) = rows(op, &x)?;
        let targets = Targets::new(op, &logs, &shape, target, weight.as_ref(), ignore)?;
        let losses = targets.counted(&targets.picked(&logs)?.mul(&targets.counts)?)?;
        targets.reduced(&losses, &shape, reduction)
    })
}

/// The targets of rows, and how much each row counts.
struct Targets {
    classes: Tensor,
    counts: Tensor,
    /// Where a row is not ignored (`u8`), if one is.
    used: Option<Tensor>,
}

impl Targets {
    fn new(
        op: &str,
        logs: &Tensor,
        shape: &[usize],
        target: &Tensor,
        weight: Option<&Tensor>,
        ignore: i64,
    ) -> Result<Self> {
        if target.dims() != shape || !matches!(target.dtype(), DType::I64 | DType::U8) {
            bail!(
                "{op}: target {:?} of dtype {:?} must be of int64 (or uint8) and of shape {shape:?}",
                target.dims(),
                target.dtype(),
            )
        }
        let (_, classes) = logs.dims2()?;
        let weight = class_weights(op, weight, classes)?;
        let given = target
            .to_dtype(DType::I64)?
            .flatten_all()?
            .to_vec1::<i64>()?;
        let known = |t: &i64| usize::try_from(*t).is_ok_and(|t| t < classes);
        if let Some(other) = given.iter().find(|t| **t != ignore && !known(t)) {
            bail!("{op}: target {other} is not one of {classes} classes")
        }
        let count = given.len();
        let is_used: Vec<u8> = given.iter().map(|t| u8::from(*t != ignore)).collect();
        let is_all = !is_used.contains(&0);
        let class = |t: &i64| if *t == ignore { 0 } else { *t };
        let classes: Vec<i64> = given.iter().map(class).collect();
        let classes = Tensor::from_vec(classes, count, logs.device())?;
        let used = Tensor::from_vec(is_used, count, logs.device())?;
        let mut counts = used.to_dtype(logs.dtype())?;
        if let Some(weight) = weight
            && count > 0
        {
            counts = counts.mul(&weight.contiguous()?.index_select(&classes, 0)?)?;
        }
        Ok(Targets {
            classes,
            counts,
            used: (!is_all).then_some(used),
        })
    }

    /// Minus the logarithmic probability of each row's target.
    fn picked(&self, logs: &Tensor) -> Result<Tensor> {
        if self.classes.elem_count() == 0 || logs.elem_count() == 0 {
            return self.counts.zeros_like();
        }
        gather(logs, 1, &self.classes.unsqueeze(1)?)?
            .squeeze(1)?
            .neg()
    }

    /// `losses` with 0 in the rows that are ignored, whatever their values.
    fn counted(&self, losses: &Tensor) -> Result<Tensor> {
        match &self.used {
            Some(used) => where_cond(used, losses, &losses.zeros_like()?),
            None => Ok(losses.clone()),
        }
    }

    fn reduced(&self, losses: &Tensor, shape: &[usize], reduction: Reduction) -> Result<Tensor> {
        match reduction {
            Reduction::None => losses.reshape(shape),
            Reduction::Sum => reduce::sum(losses, &[0], false),
            Reduction::Mean => {
                let counts = reduce::sum(&self.counts, &[0], false)?;
                reduce::sum(losses, &[0], false)?.div(&counts)
            }
        }
    }
}

/// [`nll_loss`] of the log-softmax of `x`, for targets that are classes `[n, ..]` (`i64`) or probabilities of the
/// shape of `x`; `smoothing` is the share of each target that is spread over all classes.
///
/// # Errors
/// Returns an error if the shapes do not fit, a target is not a class, or `smoothing` is not in [0,
/// 1].
pub fn cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore: i64,
    reduction: Reduction,
    smoothing: f64,
) -> Result<Tensor> {
    let op = "cross_entropy";
    if !(0.0..=1.0).contains(&smoothing) {
        bail!("{op}: label_smoothing is in [0, 1], not {smoothing}")
    }
    weight.map_or(Ok(()), |w| same_dtype(op, x, w))?;
    widened(x, (x, target, weight), |(x, target, weight)| {
        let (flat, shape) = rows(op, &x)?;
        let logs = log_softmax(&flat, 1)?;
        let (count, classes) = flat.dims2()?;
        let weighted = match class_weights(op, weight.as_ref(), classes)? {
            Some(weight) => logs.mul(&weight.unsqueeze(0)?.broadcast_as(logs.dims())?)?,
            None => logs.clone(),
        };
        if target.dtype().is_float() {
            if ignore >= 0 {
                bail!(
                    "{op}: probabilities have no class to ignore: ignore_index {ignore} is for targets that are classes"
                )
            }
            if target.dims() != x.dims() {
                bail!(
                    "{op}: probabilities {:?} must have the shape of input {:?}",
                    target.dims(),
                    x.dims()
                )
            }
            let (shares, _) = rows(op, &target)?;
            let shares = shares.affine(1.0 - smoothing, smoothing / classes as f64)?;
            let losses = reduce::sum(&weighted.mul(&shares)?, &[1], false)?.neg()?;
            return match reduction {
                Reduction::None => losses.reshape(shape),
                Reduction::Sum => reduce::sum(&losses, &[0], false),
                Reduction::Mean => reduce::sum(&losses, &[0], false)?.times(1.0 / count as f64),
            };
        }
        let targets = Targets::new(op, &logs, &shape, &target, weight.as_ref(), ignore)?;
        let reduced =
            |losses: &Tensor| targets.reduced(&targets.counted(losses)?, &shape, reduction);
        let losses = reduced(&targets.picked(&logs)?.mul(&targets.counts)?)?;
        if smoothing == 0.0 {
            return Ok(losses);
        }
        let spread = reduced(&reduce::sum(&weighted, &[1], false)?.neg()?)?
            .times(smoothing / classes as f64)?;
        losses.times(1.0 - smoothing)?.add(&spread)
    })
}
