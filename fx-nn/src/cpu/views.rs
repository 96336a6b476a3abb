//! Views: sizes and strides that change while floats stay where they are, as PyTorch's functions of
//! the same names.

use fx_core::trace::FromValue;
use fx_core::value::Value;
use fx_core::{Error, Result};
use smallvec::SmallVec;

use super::array::{Array, Dims, Memory};
use super::draft::{Id, IndexArg, SizeArg, SizesArg, View};
use super::frame::{Reading, Register, place};
use super::memory::Pool;

/// A place that may count from the end, for a new dimension too.
fn insertion(dim: i64, rank: usize) -> Result<usize> {
    place(dim, rank + 1)
}

/// What changes views: it knows the sizes that items give, and makes copies.
pub(super) trait Viewing<M> {
    /// A size that is written down, or the number that an item gives.
    fn size(&self, size: SizeArg) -> Result<i64>;
    /// The list of sizes that an item gives.
    fn sizes_of(&self, id: Id) -> Result<SmallVec<[i64; 6]>>;
    /// The same floats in order.
    fn contiguous(&mut self, x: Array<M>) -> Result<Array<M>>;

    /// Sizes one by one, or the list that an item gives.
    fn sizes(&self, sizes: &SizesArg) -> Result<SmallVec<[i64; 6]>> {
        match sizes {
            SizesArg::Listed(sizes) => sizes.iter().map(|size| self.size(*size)).collect(),
            SizesArg::Of(id) => self.sizes_of(*id),
        }
    }

    /// A size that is not negative.
    fn count(&self, size: SizeArg) -> Result<usize> {
        let size = usize::try_from(self.size(size)?);
        size.map_err(|_| Error::msg("a size is negative"))
    }

    /// A view of an array; its floats are copied only where they have to be next to each other.
    fn viewed(&mut self, x: Array<M>, view: &View) -> Result<Array<M>>
    where
        M: Clone,
    {
        let rank = x.dims.len();
        Ok(match view {
            View::Contiguous => self.contiguous(x)?,
            View::Reshape(sizes) => {
                let dims = reshaped(&x, &self.sizes(sizes)?)?;
                self.reshape(x, &dims)?
            }
            View::Flatten(first, last) => {
                if rank == 0 {
                    return Ok(x.with_one(0));
                }
                let (first, last) = (place(*first, rank)?, place(*last, rank)?);
                if first > last {
                    return Err(Error::msg(
                        "flatten: the last dimension is before the first",
                    ));
                }
                let mut dims: Dims = x.dims[..first].into();
                dims.push(x.dims[first..=last].iter().product());
                dims.extend_from_slice(&x.dims[last + 1..]);
                self.reshape(x, &dims)?
            }
            View::Permute(order) => {
                let order: Result<Dims> = order.iter().map(|dim| place(*dim, rank)).collect();
                let order = order?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                if !sorted.iter().copied().eq(0..rank) {
                    return Err(Error::msg("permute names each dimension once"));
                }
                x.permuted(&order)
            }
            View::Transpose(a, b) => {
                let mut order: Dims = (0..rank).collect();
                order.swap(place(*a, rank)?, place(*b, rank)?);
                x.permuted(&order)
            }
            View::Turn => match rank {
                2 => x.permuted(&[1, 0]),
                0 | 1 => x,
                _ => return Err(Error::msg("t: there are more than two dimensions")),
            },
            View::Expand(sizes) => {
                let sizes = self.sizes(sizes)?;
                let more = sizes.len().checked_sub(rank);
                let more = more.ok_or_else(|| Error::msg("expand cannot remove dimensions"))?;
                let dims: Result<Dims> = sizes
                    .iter()
                    .enumerate()
                    .map(
                        |(at, size)| match (usize::try_from(*size), at.checked_sub(more)) {
                            (Ok(size), _) => Ok(size),
                            (Err(_), Some(own)) if *size == -1 => Ok(x.dims[own]),
                            (Err(_), _) => Err(Error::msg("expand: a size is negative")),
                        },
                    )
                    .collect();
                let made = x.expanded(&dims?);
                made.ok_or_else(|| Error::msg("expand: the sizes do not fit"))?
            }
            View::Unsqueeze(dim) => x.with_one(insertion(*dim, rank)?),
            View::Squeeze(dim) => {
                let dim = place(*dim, rank)?;
                if x.dims[dim] == 1 { x.without(dim) } else { x }
            }
            View::Narrow(dim, start, length) => {
                let dim = place(*dim, rank)?;
                let start = wrapped(self.size(*start)?, x.dims[dim])?;
                let length = usize::try_from(self.size(*length)?);
                let length = length.ok().filter(|length| start + length <= x.dims[dim]);
                let length = length.ok_or_else(|| Error::msg("narrow: behind the end"))?;
                x.sliced(dim, start, length, 1)
            }
            View::Select(dim, at) => {
                let dim = place(*dim, rank)?;
                self.selected(&x, dim, *at)?
            }
            View::Every {
                dim,
                first,
                count,
                step,
            } => {
                let dim = place(*dim, rank)?;
                let last = first + count.saturating_sub(1) * step;
                if *count > 0 && last >= x.dims[dim] {
                    return Err(Error::msg("an index is behind the end"));
                }
                x.sliced(dim, *first, *count, *step)
            }
            View::Piece(dim, size, at) => {
                let dim = place(*dim, rank)?;
                piece(&x, dim, self.count(*size)?, *at)?
            }
            View::Chunk(dim, count, at) => {
                let dim = place(*dim, rank)?;
                let count = self.count(*count)?;
                if count == 0 {
                    return Err(Error::msg("chunk: there are no chunks"));
                }
                piece(&x, dim, x.dims[dim].div_ceil(count), *at)?
            }
            View::Index(parts) => self.indexed(x, parts)?,
        })
    }

    fn reshape(&mut self, x: Array<M>, dims: &[usize]) -> Result<Array<M>>
    where
        M: Clone,
    {
        if let Some(view) = x.reshaped(dims) {
            return Ok(view);
        }
        let copy = self.contiguous(x)?;
        let view = copy.reshaped(dims);
        view.ok_or_else(|| Error::msg("reshape: the sizes do not fit"))
    }

    fn selected(&self, x: &Array<M>, dim: usize, at: SizeArg) -> Result<Array<M>>
    where
        M: Clone,
    {
        let at = wrapped(self.size(at)?, x.dims[dim])?;
        if at >= x.dims[dim] {
            return Err(Error::msg("an index is behind the end"));
        }
        Ok(x.sliced(dim, at, 1, 1).without(dim))
    }

    fn indexed(&self, mut x: Array<M>, parts: &[IndexArg]) -> Result<Array<M>>
    where
        M: Clone,
    {
        let named = parts
            .iter()
            .filter(|part| !matches!(part, IndexArg::New | IndexArg::Rest));
        let rest = x.dims.len().checked_sub(named.count());
        let rest = rest.ok_or_else(|| Error::msg("there are more indices than dimensions"))?;
        let mut dim = 0;
        for part in parts {
            match part {
                IndexArg::New => {
                    x = x.with_one(dim);
                    dim += 1;
                }
                IndexArg::Rest => dim += rest,
                IndexArg::At(at) => x = self.selected(&x, dim, *at)?,
                IndexArg::Range(start, stop) => {
                    let size = x.dims[dim];
                    let bound = |bound: &Option<SizeArg>, missing: usize| -> Result<usize> {
                        match bound {
                            None => Ok(missing),
                            Some(bound) => {
                                let bound = self.size(*bound)?;
                                let bound = if bound < 0 {
                                    bound + size as i64
                                } else {
                                    bound
                                };
                                Ok(usize::try_from(bound).unwrap_or(0).min(size))
                            }
                        }
                    };
                    let (start, stop) = (bound(start, 0)?, bound(stop, size)?);
                    x = x.sliced(dim, start.min(stop), stop.saturating_sub(start), 1);
                    dim += 1;
                }
            }
        }
        Ok(x)
    }
}

/// A run, which copies into memory of its pool.
struct Running<'a, 'r> {
    reading: &'a Reading<'r>,
    pool: &'a mut Pool,
}

impl Viewing<Memory> for Running<'_, '_> {
    fn size(&self, size: SizeArg) -> Result<i64> {
        self.reading.size(size)
    }

    fn sizes_of(&self, id: Id) -> Result<SmallVec<[i64; 6]>> {
        match &self.reading.registers[id] {
            Register::Value(Value::Tuple(items) | Value::List(items)) => {
                let numbers = items.iter().map(|item| i64::from_value(item.clone()));
                numbers.collect()
            }
            Register::Value(value) => Ok(SmallVec::from_slice(&[i64::from_value(value.clone())?])),
            _ => Err(Error::msg("sizes are no list of numbers")),
        }
    }

    fn contiguous(&mut self, x: Array) -> Result<Array> {
        self.reading.contiguous(x, self.pool)
    }
}

impl Reading<'_> {
    /// A view of an array.
    pub fn viewed(&self, x: Array, view: &View, pool: &mut Pool) -> Result<Array> {
        let mut running = Running {
            reading: self,
            pool,
        };
        running.viewed(x, view)
    }
}

/// A place that may count from the end of a dimension.
fn wrapped(at: i64, size: usize) -> Result<usize> {
    let at = if at < 0 { at + size as i64 } else { at };
    usize::try_from(at).map_err(|_| Error::msg("an index is before the start"))
}

/// A part of a dimension that is cut into pieces of a size.
fn piece<M: Clone>(x: &Array<M>, dim: usize, size: usize, at: i64) -> Result<Array<M>> {
    let pieces = x.dims[dim].div_ceil(size.max(1)).max(1);
    let at = wrapped(at, pieces)?;
    if at >= pieces || (size == 0 && x.dims[dim] > 0) {
        return Err(Error::msg("there is no such piece"));
    }
    let first = at * size;
    Ok(x.sliced(dim, first, size.min(x.dims[dim] - first), 1))
}

/// The sizes that a reshape asks for, of which one may be left open as -1.
fn reshaped<M: Clone>(x: &Array<M>, sizes: &[i64]) -> Result<Dims> {
    let misfit = || Error::msg("reshape: the sizes do not fit");
    let is_open = |size: &&i64| **size < 0;
    if sizes.iter().filter(is_open).count() > 1 || sizes.iter().any(|size| *size < -1) {
        return Err(misfit());
    }
    let mut known = sizes.iter().filter(|size| !is_open(size));
    let known = known.try_fold(1usize, |all, size| {
        all.checked_mul(usize::try_from(*size).ok()?)
    });
    let known = known.ok_or_else(misfit)?;
    let open = match sizes.iter().find(is_open) {
        Some(_) => x.numel().checked_div(known).ok_or_else(misfit)?,
        None => 1,
    };
    match known.checked_mul(open) == Some(x.numel()) {
        true => Ok(sizes
            .iter()
            .map(|size| usize::try_from(*size).unwrap_or(open))
            .collect()),
        false => Err(misfit()),
    }
}
