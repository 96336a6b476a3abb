//! Sums and squared distances over two axes of a contiguous tensor, added pairwise in a wider type.
//!
//! Invariant: the error of a sum of `n` numbers grows with `log n`; `f32` is added in `f64`, integers wrap around.

use super::choice::where_cond;
use super::comparison;
use super::scale::Scale;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, WithDType, bail};

/// A contiguous tensor seen as `[outer, lead, inner, tail]`, of which `lead` and `tail` are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The product of the dims in front.
    pub outer: usize,
    /// The product of the first dims that are reduced.
    pub lead: usize,
    /// The product of the dims between both.
    pub inner: usize,
    /// The product of the last dims that are reduced.
    pub tail: usize,
}

/// Additions in a row before the sums of two halves are added instead.
const RUN: usize = 64;
/// Columns that are added at once.
const WIDTH: usize = 64;

impl Fold {
    /// The view of a contiguous tensor of shape `dims` in which `reduced` (sorted) are the reduced
    /// axes, if there is one.
    pub fn of(dims: &[usize], reduced: &[usize]) -> Option<Self> {
        let mut sizes = [1; 4];
        let mut axis = 0;
        for (d, &size) in dims.iter().enumerate().filter(|(_, size)| **size != 1) {
            let is_reduced = reduced.contains(&d);
            if (axis % 2 == 1) != is_reduced {
                axis += 1;
            }
            *sizes.get_mut(axis)? *= size;
        }
        let [outer, lead, inner, tail] = sizes;
        // Reduced axes at the end are the tail.
        Some(match (inner, tail) {
            (1, 1) => Fold {
                outer: 1,
                lead: 1,
                inner: outer,
                tail: lead,
            },
            _ => Fold {
                outer,
                lead,
                inner,
                tail,
            },
        })
    }

    /// The number of elements reduced to one result.
    pub fn count(&self) -> usize {
        self.lead * self.tail
    }

    fn results(&self) -> usize {
        self.outer * self.inner
    }

    /// Adds `map(element, result)` over the reduced axes, where `result` is the place of the result.
    fn run<T: Copy, A: Add>(&self, values: &[T], map: impl Fn(T, usize) -> A) -> Vec<A> {
        self.run_rows(values, &map, |row, result| {
            pairwise(row, &|x| map(x, result))
        })
    }

    /// [`run`](Self::run), where `sum` adds the elements of a row of the last axis.
    fn run_rows<T: Copy, A: Add>(
        &self,
        values: &[T],
        map: &impl Fn(T, usize) -> A,
        sum: impl Fn(&[T], usize) -> A,
    ) -> Vec<A> {
        let mut sums = vec![A::ZERO; self.results()];
        if self.count() == 0 || sums.is_empty() {
            return sums;
        }
        if self.tail == 1 {
            let block = self.lead * self.inner;
            for (at, block) in values.chunks_exact(block).enumerate() {
                let sums = &mut sums[at * self.inner..][..self.inner];
                columns(block, self.inner, at * self.inner, sums, map);
            }
            return sums;
        }
        let block = self.lead * self.inner * self.tail;
        let mut partial = vec![A::ZERO; self.lead * self.inner];
        for (at, block) in values.chunks_exact(block).enumerate() {
            for (place, row) in block.chunks_exact(self.tail).enumerate() {
                let result = at * self.inner + place % self.inner;
                partial[place] = sum(row, result);
            }
            let sums = &mut sums[at * self.inner..][..self.inner];
            if self.lead == 1 {
                sums.copy_from_slice(&partial);
            } else {
                columns(&partial, self.inner, 0, sums, &|x, _| x);
            }
        }
        sums
    }
}

/// The type of a sum in progress.
trait Add: Copy {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
}

impl Add for f64 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Add for i64 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

/// The sum of a row, in eight lanes.
fn pairwise<T: Copy, A: Add>(row: &[T], map: &impl Fn(T) -> A) -> A {
    const LANES: usize = 8;
    if row.len() > RUN * LANES {
        let half = (row.len() / 2).next_multiple_of(LANES);
        let (left, right) = row.split_at(half);
        return pairwise(left, map).plus(pairwise(right, map));
    }
    let mut lanes = [A::ZERO; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = lane.plus(map(*x));
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let lanes = (a.plus(b)).plus(c.plus(d)).plus(e.plus(f).plus(g.plus(h)));
    let rest = chunks.remainder().iter();
    lanes.plus(rest.fold(A::ZERO, |sum, x| sum.plus(map(*x))))
}

/// The sum of a row of `f32`: eight neighbours are added as a tree of their own type, the trees in `f64`.
fn single(row: &[f32]) -> f64 {
    const LANES: usize = 16;
    let (lines, _) = row.as_chunks::<LANES>();
    let (blocks, _) = lines.as_chunks::<8>();
    let mut lanes = [0.0; LANES];
    for [a, b, c, d, e, f, g, h] in blocks {
        let trees: [f32; LANES] = std::array::from_fn(|at| {
            ((a[at] + b[at]) + (c[at] + d[at])) + ((e[at] + f[at]) + (g[at] + h[at]))
        });
        for (lane, tree) in lanes.iter_mut().zip(trees) {
            *lane += f64::from(tree);
        }
    }
    let rest = &row[blocks.len() * 8 * LANES..];
    pairwise(&lanes, &|x| x) + pairwise(rest, &|x| f64::from(x))
}

/// The sums of the columns of `block [rows, width]`, whose results start at `first`.
fn columns<T: Copy, A: Add>(
    block: &[T],
    width: usize,
    first: usize,
    sums: &mut [A],
    map: &impl Fn(T, usize) -> A,
) {
    let rows = block.len() / width;
    for (at, sums) in sums.chunks_mut(WIDTH).enumerate() {
        let from = at * WIDTH;
        let part = Columns {
            block: &block[from..],
            width,
            first: first + from,
        };
        part.add(0, rows, sums, map);
    }
}

/// Up to [`WIDTH`] neighbouring columns.
struct Columns<'a, T> {
    block: &'a [T],
    width: usize,
    first: usize,
}

impl<T: Copy> Columns<'_, T> {
    /// Sets `sums` to the sums of `count` rows from `start` on.
    fn add<A: Add>(
        &self,
        start: usize,
        count: usize,
        sums: &mut [A],
        map: &impl Fn(T, usize) -> A,
    ) {
        if count > RUN {
            let half = count / 2;
            self.add(start, half, sums, map);
            let mut more = [A::ZERO; WIDTH];
            let more = &mut more[..sums.len()];
            self.add(start + half, count - half, more, map);
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum = sum.plus(*more);
            }
            return;
        }
        sums.fill(A::ZERO);
        for row in start..start + count {
            let row = &self.block[row * self.width..][..sums.len()];
            for (at, (sum, x)) in sums.iter_mut().zip(row).enumerate() {
                *sum = sum.plus(map(*x, self.first + at));
            }
        }
    }
}

/// The elements of a contiguous tensor.
pub fn slice<'a, T: WithDType>(
    name: &str,
    storage: &'a CpuStorage,
    layout: &Layout,
) -> Result<&'a [T]> {
    let Some((from, to)) = layout.contiguous_offsets() else {
        bail!("{name}: the tensor is not contiguous")
    };
    Ok(&storage.as_slice::<T>()?[from..to])
}

/// Runs `$body` with the elements of floats as `$values` of type `$T`, whatever that is.
macro_rules! floats {
    ($name:expr, $storage:expr, $layout:expr, $values:ident: $T:ident => $body:expr) => {
        match $storage {
            CpuStorage::F32(_) => {
                type $T = f32;
                let $values = slice::<$T>($name, $storage, $layout)?;
                CpuStorage::F32($body)
            }
            CpuStorage::F64(_) => {
                type $T = f64;
                let $values = slice::<$T>($name, $storage, $layout)?;
                CpuStorage::F64($body)
            }
            _ => bail!("{}: the dtype is neither f32 nor f64", $name),
        }
    };
}

/// The sum, or the mean where `is_mean`; a vector of results.
struct Sum {
    fold: Fold,
    is_mean: bool,
}

impl CustomOp1 for Sum {
    fn name(&self) -> &'static str {
        if self.is_mean { "mean" } else { "sum" }
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let fold = self.fold;
        let shape = Shape::from(fold.results());
        if let CpuStorage::I64(_) = storage {
            let values = slice::<i64>(self.name(), storage, layout)?;
            return Ok((CpuStorage::I64(fold.run(values, |x, _| x)), shape));
        }
        let count = if self.is_mean { fold.count() } else { 1 };
        let result = match storage {
            CpuStorage::F32(_) => {
                let values = slice::<f32>(self.name(), storage, layout)?;
                let sums = fold.run_rows(values, &|x, _| f64::from(x), |row, _| single(row));
                // The sum is rounded first: it overflows where PyTorch's does.
                let ends = sums.into_iter().map(|sum| sum as f32 / count as f32);
                CpuStorage::F32(ends.collect())
            }
            CpuStorage::F64(_) => {
                let values = slice::<f64>(self.name(), storage, layout)?;
                let sums = fold.run(values, |x, _| x);
                CpuStorage::F64(sums.into_iter().map(|sum| sum / count as f64).collect())
            }
            _ => bail!("{}: the dtype is none of f32, f64 and int64", self.name()),
        };
        Ok((result, shape))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = match self.is_mean {
            true => grad.times(1.0 / self.fold.count() as f64)?,
            false => grad.clone(),
        };
        Ok(Some(spread(&grad, self.fold, x.dims())?))
    }
}

/// One value per result, expanded to every element of that result.
fn spread(v: &Tensor, fold: Fold, dims: &[usize]) -> Result<Tensor> {
    v.reshape((fold.outer, 1, fold.inner, 1))?
        .broadcast_as((fold.outer, fold.lead, fold.inner, fold.tail))?
        .reshape(dims)
}

/// The sum of each result's elements of a contiguous `x` (`f32`, `f64`, `i64`), or of floats their mean; `[results]`.
///
/// # Errors
/// Returns an error for other dtypes.
pub fn sum(x: &Tensor, fold: Fold, is_mean: bool) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Sum { fold, is_mean })
}

/// The mean of each result, and the sum of the squared distances from it.
fn moments<T: Copy + Into<f64>>(values: &[T], fold: Fold) -> (Vec<f64>, Vec<f64>) {
    let count = fold.count() as f64;
    let mut means = fold.run(values, |x, _| x.into());
    for mean in &mut means {
        *mean /= count;
    }
    let squares = fold.run(values, |x, result| {
        let distance = x.into() - means[result];
        distance * distance
    });
    (means, squares)
}

/// The sum of squared distances from the mean over `divisor`, or the square root of that.
struct Spread {
    fold: Fold,
    divisor: f64,
    is_root: bool,
}

impl CustomOp1 for Spread {
    fn name(&self) -> &'static str {
        if self.is_root { "std" } else { "var" }
    }

    #[allow(clippy::unnecessary_cast, reason = "one body for both types")]
    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        // A divisor of 0 or below makes the result NaN.
        let divisor = self.divisor.max(0.0);
        let result = floats!(self.name(), storage, layout, values: T => {
            let (_, squares) = moments(values, self.fold);
            let spread = squares.into_iter().map(|square| {
                let var = square / divisor;
                if self.is_root { var.sqrt() as T } else { var as T }
            });
            spread.collect()
        });
        Ok((result, Shape::from(self.fold.results())))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let divisor = self.divisor.max(0.0);
        let factor = match self.is_root {
            // The root has no slope at 0: PyTorch takes 0.
            true => {
                let zero = y.zeros_like()?;
                let slope = grad.div(y)?.times(1.0 / divisor)?;
                where_cond(&comparison::eq(y, &zero)?, &zero, &slope)?
            }
            false => grad.times(2.0 / divisor)?,
        };
        let mean = spread(&sum(x, self.fold, true)?, self.fold, x.dims())?;
        let distance = x.sub(&mean)?;
        Ok(Some(distance.mul(&spread(
            &factor,
            self.fold,
            x.dims(),
        )?)?))
    }
}

/// The squared distances of each result's elements of a contiguous `x` from their mean, over `divisor`; their root
/// where `is_root`. Nothing overflows before the result does. `[results]`.
///
/// # Errors
/// Returns an error if `x` is neither `f32` nor `f64`.
pub fn variance(x: &Tensor, fold: Fold, divisor: f64, is_root: bool) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Spread {
        fold,
        divisor,
        is_root,
    })
}

/// Where PyTorch's statistics overflow, which makes the normalised elements NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Where the sum of the squares does.
    Squares,
    /// Where the sum does.
    Sum,
    /// Nowhere.
    All,
}

/// Each element less the mean of its result, over the standard deviation.
struct Standardize {
    fold: Fold,
    eps: f64,
    reach: Reach,
}

impl CustomOp1 for Standardize {
    fn name(&self) -> &'static str {
        "standardize"
    }

    #[allow(clippy::unnecessary_cast, reason = "one body for both types")]
    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let fold = self.fold;
        let count = fold.count() as f64;
        let result = floats!(self.name(), storage, layout, values: T => {
            let (means, squares) = moments(values, fold);
            let scale = means.iter().zip(squares).map(|(mean, square)| {
                let known = match self.reach {
                    Reach::Squares => ((square + count * mean * mean) as T).is_finite(),
                    Reach::Sum => mean.abs() <= T::MAX as f64 / count * (1.0 + f64::EPSILON),
                    Reach::All => true,
                };
                let var = if known { square / count } else { f64::NAN };
                1.0 / (var + self.eps).sqrt()
            });
            let scale: Vec<f64> = scale.collect();
            let mut y = Vec::with_capacity(values.len());
            let of = |x: &T, at: usize| ((*x as f64 - means[at]) * scale[at]) as T;
            if fold.tail == 1 {
                for (row, values) in values.chunks_exact(fold.inner.max(1)).enumerate() {
                    let first = row / fold.lead.max(1) * fold.inner;
                    y.extend(values.iter().zip(first..).map(|(x, at)| of(x, at)));
                }
            } else {
                for (row, values) in values.chunks_exact(fold.tail.max(1)).enumerate() {
                    let at = row / (fold.lead * fold.inner) * fold.inner + row % fold.inner;
                    y.extend(values.iter().map(|x| of(x, at)));
                }
            }
            y
        });
        Ok((result, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let fold = self.fold;
        let over = |v: &Tensor| spread(v, fold, x.dims());
        let var = variance(&x.detach(), fold, fold.count() as f64, false)?;
        let scale = var.affine(1.0, self.eps)?.sqrt()?.recip()?;
        let along = sum(&grad.mul(y)?, fold, true)?;
        let inner = grad
            .sub(&over(&sum(grad, fold, true)?)?)?
            .sub(&y.mul(&over(&along)?)?)?;
        Ok(Some(inner.mul(&over(&scale)?)?))
    }
}

/// Each element of a contiguous `x` less the mean of its result's elements, over `sqrt(var + eps)`; shaped as `x`.
///
/// # Errors
/// Returns an error if `x` is neither `f32` nor `f64`.
pub fn standardized(x: &Tensor, fold: Fold, eps: f64, reach: Reach) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Standardize { fold, eps, reach })
}
