//! Elements by their rank along a dimension: quantiles, medians, the k-th smallest, the most frequent.

use candle_core::{DType, Result, Tensor, bail};

use super::binary::{add, mul, sub};
use super::choice::where_cond;
use super::comparison;
use super::reduce::has_nan;
use super::scale::Scale;
use super::topk::topk;

/// How a quantile between two elements is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The point at the same distance between them.
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// Their middle.
    Midpoint,
    /// The nearer one, of two as near the one of even rank.
    Nearest,
}

impl Between {
    /// Parses PyTorch's word for it.
    ///
    /// # Errors
    /// Returns an error if the word is unknown.
    pub fn parse(op: &str, word: &str) -> Result<Self> {
        Ok(match word {
            "linear" => Between::Linear,
            "lower" => Between::Lower,
            "higher" => Between::Higher,
            "midpoint" => Between::Midpoint,
            "nearest" => Between::Nearest,
            other => bail!(
                "{op}: interpolation is \"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\", not {other:?}"
            ),
        })
    }
}

/// The quantiles `q` of each row of `x [rows, n]`, `[rows, q]`; in a row with a NaN all are NaN,
/// or, under `skip_nan`, those of its numbers.
///
/// # Errors
/// Returns an error if the rows are empty.
pub fn quantiles(
    x: &Tensor,
    (q, learning): (&[f64], Option<&Tensor>),
    between: Between,
    skip_nan: bool,
) -> Result<Tensor> {
    let (rows, size) = x.dims2()?;
    let sorted = topk(x, size, 1, false, true)?.0;
    let is_nan = comparison::ne(&sorted.detach(), &sorted.detach())?;
    let counts: Vec<usize> = match has_nan(&sorted)? {
        false => vec![size; rows],
        true => is_nan
            .to_vec2::<u8>()?
            .iter()
            .map(|row| row.iter().filter(|nan| **nan == 0).count())
            .collect(),
    };
    let single = x.dtype() == DType::F32;
    let (mut low, mut high, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for count in &counts {
        for q in q {
            let last = (size - 1) as i64;
            // A NaN is sorted to the end.
            if *count < size && !skip_nan || *count == 0 {
                low.push(last);
                high.push(last);
                weights.push(0.0);
                continue;
            }
            // As PyTorch: `q` is rounded to the type of `x`, its rank is not.
            let q = match single {
                true => f64::from(*q as f32),
                false => *q,
            };
            let rank = q * (count - 1) as f64;
            let rank = match between {
                Between::Lower => rank.floor(),
                Between::Higher => rank.ceil(),
                Between::Nearest => rank.round_ties_even(),
                Between::Linear | Between::Midpoint => rank,
            };
            low.push(rank.floor() as i64);
            high.push(rank.ceil() as i64);
            weights.push(match between {
                Between::Midpoint => 0.5,
                _ => rank - rank.floor(),
            });
        }
    }
    let place = |at: Vec<i64>| Tensor::from_vec(at, (rows, q.len()), x.device());
    let low = sorted.gather(&place(low)?, 1)?;
    let high = sorted.gather(&place(high)?, 1)?;
    let weights = Tensor::from_vec(weights, (rows, q.len()), x.device())?.to_dtype(x.dtype())?;
    if !matches!(between, Between::Linear | Between::Midpoint) {
        return Ok(low);
    }
    // The rank moves with `q`.
    let weights = match learning {
        Some(given) if matches!(between, Between::Linear) => {
            let moved = sub(given, &given.detach())?.reshape((1, q.len()))?;
            let last: Vec<f64> = counts.iter().map(|n| n.saturating_sub(1) as f64).collect();
            let last = Tensor::from_vec(last, (rows, 1), x.device())?.to_dtype(x.dtype())?;
            add(&weights, &last.broadcast_mul(&moved)?)?
        }
        _ => weights,
    };
    // From the nearer end, so that both are exact; between two infinities is NaN, as in PyTorch.
    let way = sub(&high, &low)?;
    let from_low = add(&low, &mul(&way, &weights)?)?;
    let from_high = sub(&high, &mul(&way, &weights.affine(-1.0, 1.0)?)?)?;
    let half = weights.ones_like()?.times(0.5)?;
    where_cond(
        &comparison::lt(&weights.detach(), &half)?,
        &from_low,
        &from_high,
    )
}

/// The `k`-th smallest element (from 1) of each row of `x [rows, n]`, and where it is (`i64`); a
/// NaN is the largest.
///
/// # Errors
/// Returns an error if there is no such element.
pub fn kth(op: &str, x: &Tensor, k: usize) -> Result<(Tensor, Tensor)> {
    let (_, size) = x.dims2()?;
    if k == 0 || k > size {
        bail!("{op}: there is no k-th element, with k {k} of {size}")
    }
    let (values, places) = topk(x, k, 1, false, true)?;
    let last = |t: &Tensor| t.narrow(1, k - 1, 1)?.squeeze(1);
    Ok((last(&values)?, last(&places)?))
}

/// The lower median of each row of `x [rows, n]`, and where it is (`i64`): the first NaN where
/// there is one, or, under `skip_nan`, the median of the numbers.
///
/// # Errors
/// Returns an error if the rows are empty.
pub fn median(x: &Tensor, skip_nan: bool) -> Result<(Tensor, Tensor)> {
    let (rows, size) = x.dims2()?;
    if size == 0 {
        bail!("median: rows of no elements {:?} have none", x.dims())
    }
    let (values, places) = topk(x, size, 1, false, true)?;
    let at: Vec<i64> = match has_nan(x)? {
        false => vec![((size - 1) / 2) as i64; rows],
        true => {
            let numbers = values.detach();
            let is_number = comparison::eq(&numbers, &numbers)?.to_vec2::<u8>()?;
            let count = |row: &Vec<u8>| row.iter().filter(|is| **is == 1).count();
            let middle = |count: usize| match (count == size, skip_nan) {
                (true, _) => (size - 1) / 2,
                (false, true) => count.saturating_sub(1) / 2,
                (false, false) => count,
            };
            is_number
                .iter()
                .map(|row| middle(count(row)) as i64)
                .collect()
        }
    };
    let at = Tensor::from_vec(at, (rows, 1), x.device())?;
    Ok((
        values.gather(&at, 1)?.squeeze(1)?,
        places.gather(&at, 1)?.squeeze(1)?,
    ))
}

/// The most frequent element of each row of `x [rows, n]`, the smallest of several, and where it last is (`i64`).
///
/// # Errors
/// Returns an error if the rows are empty.
pub fn mode(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let (rows, size) = x.dims2()?;
    if size == 0 {
        bail!("mode: rows of no elements {:?} have none", x.dims())
    }
    let (values, places) = topk(x, size, 1, false, true)?;
    let values = values.detach();
    let first = values.narrow(1, 0, size - 1)?;
    let is_same = match size {
        1 => vec![Vec::new(); rows],
        _ => comparison::eq(&first, &values.narrow(1, 1, size - 1)?)?.to_vec2::<u8>()?,
    };
    let at: Vec<i64> = is_same
        .iter()
        .map(|row| {
            // The end of the longest run of equal neighbours, of which the first counts.
            let (mut best, mut length, mut longest) = (0, 1, 1);
            for (at, same) in row.iter().enumerate() {
                length = if *same == 1 { length + 1 } else { 1 };
                if length > longest {
                    (best, longest) = (at + 1, length);
                }
            }
            best as i64
        })
        .collect();
    let at = Tensor::from_vec(at, (rows, 1), x.device())?;
    let places = places.gather(&at, 1)?;
    Ok((x.gather(&places, 1)?.squeeze(1)?, places.squeeze(1)?))
}
