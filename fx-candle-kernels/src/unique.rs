//! Distinct elements, the place of a value in a sorted sequence, and counts.

use candle_core::{DType, Result, Tensor, bail};

use super::dim::dim;
use super::integers;
use super::places::along;
use crate::room;

/// All elements, row by row: integers exactly, floats as `f64`, which holds them all.
pub enum Elements {
    /// Integers and truth values.
    Whole(Vec<i64>),
    /// Floats.
    Float(Vec<f64>),
}

impl Elements {
    /// The elements of a tensor.
    ///
    /// # Errors
    /// Returns only candle's errors.
    pub fn of(x: &Tensor) -> Result<Self> {
        if x.elem_count() == 0 {
            return Ok(match x.dtype().is_float() {
                true => Elements::Float(Vec::new()),
                false => Elements::Whole(Vec::new()),
            });
        }
        Ok(match x.dtype().is_float() {
            true => Elements::Float(x.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()?),
            false => Elements::Whole(integers::elements(x)?),
        })
    }
}

/// Equal elements as groups.
pub struct Groups {
    /// The place of the first element of each group.
    pub firsts: Vec<u32>,
    /// The group that each element is in.
    pub inverse: Vec<i64>,
    /// The size of each group.
    pub counts: Vec<i64>,
}

/// Groups of `count` rows of `width` values: of all equal rows, in the order of their values, if
/// `sorted`, else of equal rows next to each other.
pub fn groups(x: &Elements, count: usize, width: usize, sorted: bool) -> Groups {
    match x {
        Elements::Whole(all) => grouped(all, count, width, sorted, |a, b| a.cmp(b)),
        Elements::Float(all) => grouped(all, count, width, sorted, |a, b| {
            // A NaN is larger than all numbers.
            a.partial_cmp(b)
                .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }),
    }
}

fn grouped<T: PartialEq>(
    all: &[T],
    count: usize,
    width: usize,
    sorted: bool,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Groups {
    let row = |i: u32| &all[i as usize * width..(i as usize + 1) * width];
    let mut order: Vec<u32> = (0..count as u32).collect();
    if sorted {
        order.sort_by(|a, b| {
            let pairs = row(*a).iter().zip(row(*b)).map(|(a, b)| compare(a, b));
            pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
    }
    let mut groups = Groups {
        firsts: Vec::new(),
        inverse: vec![0; count],
        counts: Vec::new(),
    };
    let mut before: Option<u32> = None;
    for at in order {
        // A NaN is not even equal to itself.
        if before.is_none_or(|before| row(before) != row(at)) {
            groups.firsts.push(at);
            groups.counts.push(0);
        }
        before = Some(at);
        if let Some(size) = groups.counts.last_mut() {
            *size += 1;
        }
        groups.inverse[at as usize] = groups.firsts.len() as i64 - 1;
    }
    groups
}

/// The distinct elements of `x`, or its distinct slices along `d`; the group of each; and the size
/// of each group.
///
/// # Errors
/// Returns an error if there is no such dimension, or one beside it is empty.
pub fn unique(op: &str, x: &Tensor, d: Option<i64>, sorted: bool) -> Result<[Tensor; 3]> {
    let (y, inverse, groups) = match d {
        None => {
            let flat = x.flatten_all()?;
            let groups = groups(&Elements::of(x)?, x.elem_count(), 1, sorted);
            (
                along(op, &flat, 0, groups.firsts.clone())?,
                x.dims().to_vec(),
                groups,
            )
        }
        Some(d) => {
            if x.rank() == 0 {
                bail!("{op}: a tensor without dims has no dim {d}: take no `dim`")
            }
            let of = dim(op, d, x.rank())?;
            let count = x.dims()[of];
            let width: usize = (0..x.rank())
                .filter(|i| *i != of)
                .map(|i| x.dims()[i])
                .product();
            if width == 0 {
                bail!(
                    "{op}: slices of shape {:?} along dim {of} have no elements",
                    x.dims()
                )
            }
            let others = (0..x.rank()).filter(|i| *i != of);
            let order: Vec<usize> = std::iter::once(of).chain(others).collect();
            let rows = x.permute(order)?.contiguous()?;
            let groups = groups(&Elements::of(&rows)?, count, width, sorted);
            (
                along(op, x, of, groups.firsts.clone())?,
                vec![count],
                groups,
            )
        }
    };
    let counts = groups.counts.len();
    Ok([
        y,
        Tensor::from_vec(groups.inverse, inverse, x.device())?,
        Tensor::from_vec(groups.counts, counts, x.device())?,
    ])
}

/// For each of `values` the first place in its row of `sorted`, whose rows are of `size`, that is not before it; under
/// `right` the first that is after it. `order` says which element is at each place of a row.
pub fn search(
    sorted: &Elements,
    values: &Elements,
    size: usize,
    each: usize,
    order: Option<&[i64]>,
    right: bool,
) -> Vec<i64> {
    fn of<T: PartialOrd>(
        sorted: &[T],
        values: &[T],
        size: usize,
        each: usize,
        order: Option<&[i64]>,
        right: bool,
    ) -> Vec<i64> {
        let place = |(i, value): (usize, &T)| {
            let start = i.checked_div(each).unwrap_or(0) * size;
            let (mut low, mut high) = (0, size);
            while low < high {
                let middle = low + (high - low) / 2;
                let at = match order {
                    Some(order) => start + order[start + middle] as usize,
                    None => start + middle,
                };
                let found = if right {
                    sorted[at] > *value
                } else {
                    sorted[at] >= *value
                };
                // Values that cannot be compared come after everything.
                match found {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            low as i64
        };
        values.iter().enumerate().map(place).collect()
    }
    match (sorted, values) {
        (Elements::Whole(a), Elements::Whole(b)) => of(a, b, size, each, order, right),
        (Elements::Float(a), Elements::Float(b)) => of(a, b, size, each, order, right),
        _ => Vec::new(),
    }
}

/// Which elements of `x` are among `others`; both are of one dtype.
///
/// # Errors
/// Returns only candle's errors.
pub fn is_in(x: &Elements, others: &Elements) -> Vec<u8> {
    use std::collections::HashSet;
    match (x, others) {
        (Elements::Whole(x), Elements::Whole(others)) => {
            let set: HashSet<i64> = others.iter().copied().collect();
            x.iter().map(|n| u8::from(set.contains(n))).collect()
        }
        (Elements::Float(x), Elements::Float(others)) => {
            // Both zeros are equal.
            let bits = |x: &f64| (x + 0.0).to_bits();
            let set: HashSet<u64> = others.iter().map(bits).collect();
            let holds = |n: &f64| u8::from(!n.is_nan() && set.contains(&bits(n)));
            x.iter().map(holds).collect()
        }
        _ => Vec::new(),
    }
}

/// The count of each number up to the largest of `x`, for at least `least` numbers; with weights,
/// the sums of the weights of those elements.
///
/// # Errors
/// Returns an error if a number is negative, there are not as many weights, or so many numbers do
/// not fit into memory.
pub fn bincount(x: &Tensor, weights: Option<&Tensor>, least: usize) -> Result<Tensor> {
    let op = "bincount";
    if x.dims() == [0] {
        room::of(op, &[least], DType::I64)?;
        return Tensor::zeros(least, DType::I64, x.device());
    }
    if x.rank() != 1 || weights.is_some_and(|w| w.dims() != x.dims()) {
        bail!(
            "{op}: input {:?} must be a vector, and the weights as long",
            x.dims()
        )
    }
    let numbers = integers::elements(x)?;
    if let Some(number) = numbers.iter().find(|n| **n < 0) {
        bail!("{op}: {number} is below 0")
    }
    let size = numbers
        .iter()
        .max()
        .map_or(0, |n| (*n as usize).saturating_add(1));
    let size = size.max(least);
    let dtype = weights.map_or(DType::I64, |w| match w.dtype() {
        DType::F32 => DType::F32,
        _ => DType::F64,
    });
    room::of(op, &[size], DType::I64)?;
    let Some(weights) = weights else {
        let mut counts = vec![0i64; size];
        numbers.iter().for_each(|n| counts[*n as usize] += 1);
        return Tensor::from_vec(counts, size, x.device());
    };
    let mut sums = vec![0f64; size];
    let weights = weights.detach().to_dtype(DType::F64)?.to_vec1::<f64>()?;
    for (n, weight) in numbers.iter().zip(weights) {
        sums[*n as usize] += weight;
    }
    Tensor::from_vec(sums, size, x.device())?.to_dtype(dtype)
}

/// The coordinates of the elements that are not 0, one row per element.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    let op = "nonzero";
    let at: Vec<usize> = match Elements::of(x)? {
        Elements::Whole(all) => (0..all.len()).filter(|i| all[*i] != 0).collect(),
        Elements::Float(all) => (0..all.len()).filter(|i| all[*i] != 0.0).collect(),
    };
    let strides = super::places::strides(x.dims());
    room::of(op, &[at.len(), x.rank()], DType::I64)?;
    let rows = at.iter().flat_map(|at| {
        let each = strides.iter().zip(x.dims());
        each.map(move |(stride, size)| (at / stride % size) as i64)
    });
    Tensor::from_vec(rows.collect::<Vec<i64>>(), (at.len(), x.rank()), x.device())
}
