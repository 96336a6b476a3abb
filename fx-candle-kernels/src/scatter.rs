//! Elements written to, and reduced into, places along a dimension that an index names.

use candle_core::{DType, Result, Tensor, bail};

use super::dim::dim;
use super::gradient;
use super::places;
use super::view::narrow;
use super::widen::widened;

/// The places in `x` of the elements of `source`: their own place, except along `dim`, where the
/// index decides.
///
/// Returns the part of `source` that the index covers, and the places. A tensor without dims is
/// read as one of one dim.
///
/// # Errors
/// Returns an error if the ranks differ, `index` is larger than `source` or, elsewhere than in
/// `dim`, than `x`, or an index is out of range.
pub fn at(
    op: &str,
    x: &Tensor,
    d: i64,
    index: &Tensor,
    source: Option<&Tensor>,
) -> Result<(Option<Tensor>, Vec<i64>)> {
    let of = dim(op, d, x.rank())?;
    let one = |dims: &[usize]| match dims {
        [] => vec![1],
        dims => dims.to_vec(),
    };
    let (own, wanted) = (one(x.dims()), one(index.dims()));
    if index.elem_count() == 0 {
        return Ok((None, Vec::new()));
    }
    let from = source.map_or(wanted.clone(), |source| one(source.dims()));
    let fits = own.len() == wanted.len()
        && from.len() == wanted.len()
        && (0..own.len()).all(|i| wanted[i] <= from[i] && (i == of || wanted[i] <= own[i]));
    if !fits {
        bail!(
            "{op}: index {:?} must have the rank of input {:?} and source {from:?}, and no larger size, but in dim {of} of \
             the input",
            index.dims(),
            x.dims()
        )
    }
    let ids = places::indices(op, index, own[of], false)?;
    let mut strides = places::strides(&own);
    let step = strides[of] as i64;
    strides[of] = 0;
    let mut at = places::view(op, 0, &wanted, &strides)?;
    for (place, id) in at.iter_mut().zip(ids) {
        *place += id * step;
    }
    let part = source
        .map(|source| {
            let mut part = source.reshape(from.as_slice())?;
            for (i, size) in wanted.iter().enumerate() {
                part = narrow(&part, i, 0, *size)?;
            }
            Ok::<_, candle_core::Error>(part)
        })
        .transpose()?;
    Ok((part, at))
}

/// The places of the slices of `x` along `dim` that the vector `index` names, in its order.
///
/// # Errors
/// Returns an error if `index` is not a vector, or an index is out of range.
pub fn slices(
    op: &str,
    x: &Tensor,
    of: usize,
    index: &Tensor,
    from_end: bool,
) -> Result<(Vec<usize>, Vec<i64>)> {
    if index.rank() > 1 {
        bail!("{op}: index {:?} must have one dimension", index.dims())
    }
    let (mut dims, own) = match x.dims() {
        [] => (vec![1], vec![1]),
        dims => (dims.to_vec(), dims.to_vec()),
    };
    dims[of] = index.elem_count();
    if x.elem_count() == 0 {
        // The index is not checked, as in PyTorch.
        return Ok((dims, Vec::new()));
    }
    let ids = places::indices(op, index, own[of], from_end)?;
    let mut strides = places::strides(&own);
    let step = strides[of] as i64;
    strides[of] = 0;
    let mut at = places::view(op, 0, &dims, &strides)?;
    let inner: usize = dims[of + 1..].iter().product();
    if !at.is_empty() {
        for (i, run) in at.chunks_exact_mut(inner).enumerate() {
            let by = ids[i % ids.len()] * step;
            run.iter_mut().for_each(|place| *place += by);
        }
    }
    Ok((dims, at))
}

/// How elements that meet at one place are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their sum over their count.
    Mean,
    /// The largest.
    Amax,
    /// The smallest.
    Amin,
}

impl Reduce {
    /// Parses PyTorch's name for it.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn parse(op: &str, word: &str) -> Result<Self> {
        Ok(match word {
            "sum" => Reduce::Sum,
            "prod" => Reduce::Prod,
            "mean" => Reduce::Mean,
            "amax" => Reduce::Amax,
            "amin" => Reduce::Amin,
            other => bail!(
                "{op}: reduce is \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\", not {other:?}"
            ),
        })
    }

    fn floats(self, a: f64, b: f64) -> f64 {
        match self {
            Reduce::Sum | Reduce::Mean => a + b,
            Reduce::Prod => a * b,
            // A NaN wins.
            Reduce::Amax if a.is_nan() || b.is_nan() => f64::NAN,
            Reduce::Amin if a.is_nan() || b.is_nan() => f64::NAN,
            Reduce::Amax => a.max(b),
            Reduce::Amin => a.min(b),
        }
    }

    fn integers(self, a: i64, b: i64) -> i64 {
        match self {
            Reduce::Sum | Reduce::Mean => a.wrapping_add(b),
            Reduce::Prod => a.wrapping_mul(b),
            Reduce::Amax => a.max(b),
            Reduce::Amin => a.min(b),
        }
    }
}

/// Combines the elements of each place: those of `source` that go there and, under `include_self`,
/// that of `x`.
fn folded<T: Copy>(
    mut all: Vec<T>,
    source: &[T],
    at: &[i64],
    include_self: bool,
    fold: impl Fn(T, T) -> T,
) -> (Vec<T>, Vec<u32>) {
    let mut counts = vec![u32::from(include_self); all.len()];
    for (place, value) in at.iter().zip(source) {
        let place = *place as usize;
        all[place] = match counts[place] {
            0 => *value,
            _ => fold(all[place], *value),
        };
        counts[place] += 1;
    }
    (all, counts)
}

/// `x` with the elements of `source` reduced into `places`.
///
/// The gradient of the largest or smallest is shared by all that are equal to it.
///
/// # Errors
/// Returns only candle's errors.
pub fn reduce(
    x: &Tensor,
    source: &Tensor,
    places: Vec<i64>,
    how: Reduce,
    include_self: bool,
) -> Result<Tensor> {
    if places.is_empty() {
        return Ok(x.clone());
    }
    if x.dtype().is_int() {
        let (own, terms) = (
            super::integers::elements(x)?,
            super::integers::elements(source)?,
        );
        let (mut all, counts) = folded(own, &terms, &places, include_self, |a, b| {
            how.integers(a, b)
        });
        if how == Reduce::Mean {
            // The sum wraps around in its own type, before it is divided.
            all = super::integers::elements(&super::integers::tensor(all, x.dims(), x)?)?;
            for (value, count) in all.iter_mut().zip(counts) {
                *value = value.div_euclid(i64::from(count.max(1)));
            }
        }
        return super::integers::tensor(all, x.dims(), x);
    }
    widened(x, (x, source), |(x, source)| {
        floats(&x, &source, places, how, include_self)
    })
}

fn floats(
    x: &Tensor,
    source: &Tensor,
    places: Vec<i64>,
    how: Reduce,
    include_self: bool,
) -> Result<Tensor> {
    let values = |t: &Tensor| -> Result<Vec<f64>> {
        t.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()
    };
    let (own, terms) = (values(x)?, values(source)?);
    let (mut all, counts) = folded(own.clone(), &terms, &places, include_self, |a, b| {
        how.floats(a, b)
    });
    if how == Reduce::Mean {
        for (value, count) in all.iter_mut().zip(&counts) {
            *value /= f64::from((*count).max(1));
        }
    }
    let tensor = |values: Vec<f64>, dims: &[usize]| {
        Tensor::from_vec(values, dims, x.device())?.to_dtype(x.dtype())
    };
    let y = tensor(all.clone(), x.dims())?;
    if !x.track_op() && !source.track_op() {
        return Ok(y);
    }
    // The derivative of the result with respect to each element.
    let is_used = |place: usize| include_self || counts[place] == 0;
    let (of_x, of_source) = match how {
        Reduce::Sum | Reduce::Mean => {
            let part = |place: usize| match how {
                Reduce::Mean => 1.0 / f64::from(counts[place].max(1)),
                _ => 1.0,
            };
            let own = (0..all.len()).map(|i| if is_used(i) { part(i) } else { 0.0 });
            let terms = places.iter().map(|place| part(*place as usize));
            (own.collect::<Vec<_>>(), terms.collect::<Vec<_>>())
        }
        Reduce::Amax | Reduce::Amin => {
            let mut hits = vec![0.0f64; all.len()];
            for (i, hit) in hits.iter_mut().enumerate() {
                *hit = f64::from(u8::from(is_used(i) && own[i] == all[i]));
            }
            for (place, term) in places.iter().zip(&terms) {
                let place = *place as usize;
                hits[place] += f64::from(u8::from(*term == all[place]));
            }
            let share = |is_best: bool, place: usize| match is_best {
                true => 1.0 / hits[place].max(1.0),
                false => 0.0,
            };
            let own = (0..all.len()).map(|i| share(is_used(i) && own[i] == all[i], i));
            let terms = places.iter().zip(&terms);
            let terms =
                terms.map(|(place, term)| share(*term == all[*place as usize], *place as usize));
            (own.collect(), terms.collect())
        }
        Reduce::Prod => others(&own, &terms, &places, &counts, include_self),
    };
    moved(
        &y,
        x,
        tensor(of_x, x.dims())?,
        source,
        tensor(of_source, source.dims())?,
        places,
    )
}

/// For each element the product of the others at its place.
fn others(
    own: &[f64],
    terms: &[f64],
    places: &[i64],
    counts: &[u32],
    include_self: bool,
) -> (Vec<f64>, Vec<f64>) {
    // From the front and from the back, so that a zero divides nothing.
    let mut before: Vec<f64> = own
        .iter()
        .map(|x| if include_self { *x } else { 1.0 })
        .collect();
    let mut of_terms = vec![1.0; terms.len()];
    for (i, place) in places.iter().enumerate() {
        let product = &mut before[*place as usize];
        of_terms[i] = *product;
        *product *= terms[i];
    }
    let mut after = vec![1.0; own.len()];
    for (i, place) in places.iter().enumerate().rev() {
        let product = &mut after[*place as usize];
        of_terms[i] *= *product;
        *product *= terms[i];
    }
    let of_own = after
        .iter()
        .zip(counts)
        .map(|(product, count)| match (include_self, count) {
            (true, _) => *product,
            (false, 0) => 1.0,
            (false, _) => 0.0,
        });
    (of_own.collect(), of_terms)
}

/// `y`, with these derivatives with respect to the elements of `x` and `source`.
fn moved(
    y: &Tensor,
    x: &Tensor,
    of_x: Tensor,
    source: &Tensor,
    of_source: Tensor,
    places: Vec<i64>,
) -> Result<Tensor> {
    gradient::of_two(
        "scatter_reduce",
        x,
        source,
        |_, _| Ok(y.clone()),
        move |[_, source], grad| {
            let own = places::pick("scatter_reduce", grad, places.clone(), source.dims())?;
            Ok([grad.mul(&of_x)?, own.mul(&of_source)?])
        },
    )
}
