//! The loss of sequences whose alignment is not known.

use crate::op;
use fx_core::value::DType;
use fx_core::{Error, Result};

use crate::error::{Fx, require, unfit};
use crate::kernels::comparison;
use crate::kernels::ctc::{self, Alignments};
use crate::kernels::loss::Reduction;
use crate::kernels::select;
use crate::tensor::{Sizes, Tensor};

/// How unlikely targets are over all their alignments: the connectionist temporal classification of `log_probs` `[T, N, C]`
/// (or `[T, C]`), the logarithms of probabilities, and classes `targets` `[N, S]` (or `[S]`), or those of all samples one
/// after another.
///
/// `input_lengths` and `target_lengths` are the lengths of the samples; `blank` is the class
/// between others. `"mean"` divides each loss by its target's length. `zero_infinity` makes losses
/// 0 if no alignment fits.
///
/// ```
/// use fx_nn::prelude::*;
/// // Two steps of two classes: "1" is any of 01, 10 and 11.
/// let half = Tensor::full((2, 1, 2), 0.5f64.ln(), DType::F32)?;
/// let target = Tensor::from_vec(vec![1i64], (1, 1))?;
/// let loss = ops::ctc_loss(&half, &target, [2], [1], 0, "mean", false)?;
/// assert!((loss.item()? + 0.75f64.ln()).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes and lengths do not fit, a target is not a class, or the
/// logarithms are neither `float32` nor `float64`.
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
#[op(loss, member, path = "fx_nn::ops::ctc_loss")]
pub fn ctc_loss(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: impl Into<Sizes>,
    target_lengths: impl Into<Sizes>,
    #[kw]
    #[default(0)]
    blank: i64,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw]
    #[default(false)]
    zero_infinity: bool,
) -> Result<Tensor> {
    let op = "ctc_loss";
    let reduction = Reduction::parse(op, reduction).fx()?;
    require(op, matches!(log_probs.dtype()?, DType::F32 | DType::F64))?;
    require(op, matches!(targets.dtype()?, DType::I32 | DType::I64))?;
    require(op, matches!(targets.dims()?.len(), 1 | 2))?;
    let logs = log_probs.data(op)?;
    let single = logs.rank() == 2;
    let logs = match logs.rank() {
        2 => logs.unsqueeze(1).fx()?,
        3 => logs.clone(),
        _ => return Err(unfit(op)),
    };
    let (steps, samples, classes) = logs.dims3().fx()?;
    let class = |n: i64| usize::try_from(n).ok().filter(|n| *n < classes);
    let blank = class(blank).ok_or_else(|| unfit(op))?;
    let inputs = lengths(op, &input_lengths, samples, steps)?;
    let is_padded = targets.dims()?.len() == 2 || single;
    let longest = match is_padded {
        true => targets.dims()?.last().copied().unwrap_or(0),
        false => usize::MAX,
    };
    let sizes = lengths(op, &target_lengths, samples, longest)?;
    let all = targets.data(op)?.flatten_all().fx()?;
    let all: Vec<i64> = all.to_dtype(candle_core::DType::I64).fx()?.to_vec1().fx()?;
    let total = sizes.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
    let expected = match is_padded {
        true => samples.saturating_mul(longest),
        false => total,
    };
    require(op, all.len() == expected)?;
    let mut found = Vec::with_capacity(samples);
    let mut from = 0;
    for (at, size) in sizes.iter().enumerate() {
        let start = if is_padded { at * longest } else { from };
        let sample = all[start..start + size].iter();
        let sample = sample.map(|n| {
            class(*n).ok_or_else(|| {
                Error::msg(format_args!(
                    "{op}: the target {n} is none of {classes} classes"
                ))
            })
        });
        found.push(sample.collect::<Result<Vec<usize>>>()?);
        from += size;
    }
    let alignments = Alignments {
        targets: found,
        steps: inputs,
        blank,
    };
    let mut losses = ctc::losses(&logs, alignments).fx()?;
    if zero_infinity {
        let zero = losses.zeros_like().fx()?;
        let infinity = zero.affine(1.0, f64::INFINITY).fx()?;
        let is_infinite = comparison::eq(&losses.detach(), &infinity).fx()?;
        losses = select::choose(op, &is_infinite, &zero, &losses).fx()?;
    }
    if reduction == Reduction::Mean {
        let by: Vec<f64> = sizes.iter().map(|size| (*size).max(1) as f64).collect();
        let by = candle_core::Tensor::from_vec(by, samples, losses.device());
        let by = by.and_then(|by| by.to_dtype(losses.dtype())).fx()?;
        losses = losses.div(&by).fx()?;
    }
    let reduced = reduction.of(&losses).fx()?;
    match single && reduction == Reduction::None {
        true => reduced.reshape(()).map(Tensor::from).fx(),
        false => Ok(reduced.into()),
    }
}

/// The lengths of samples, none above the most that there can be.
fn lengths(op: &str, lengths: &Sizes, samples: usize, most: usize) -> Result<Vec<usize>> {
    let known = lengths.known()?;
    let fits = |n: &i64| usize::try_from(*n).ok().filter(|n| *n <= most);
    let found: Option<Vec<usize>> = known.iter().map(fits).collect();
    let found = found.filter(|found| found.len() == samples);
    found.ok_or_else(|| unfit(op))
}
