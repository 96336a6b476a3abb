//! `Histogram`: counts of numbers, and the range whose integers are nearest to them, or that has a share of them
//! (`Percentile`).
//!
//! Invariant: counts, bins and the search go by the steps of PyTorch's `HistogramObserver`, in `float32` where it has
//! tensors of it.

use fx_core::{Error, Result};
use fx_nn::Tensor;

use crate::observer::{Observer, ends, floats};
use crate::scheme::Scheme;

/// How many bins a new histogram has.
const BINS: usize = 2048;
/// How many parts of a bin go into the bins of a wider range.
const PARTS: usize = 16;
/// The share of the numbers that a step of the search leaves out.
const STEP: f64 = 1e-5;

/// The range in which integers differ least from the numbers, by the sum of squares: the ends move inward from the least
/// and the largest number while that sum falls. Infinities are left out. Torch's `HistogramObserver`.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{Histogram, Observer, Scheme};
/// fx_nn::manual_seed(0);
/// let mut observer = Histogram::default();
/// observer.observe(&Tensor::randn(10_000)?)?;
/// let (min, max) = observer.range(&Scheme::UINT8)?.expect("numbers were seen");
/// assert!(-4.5 < min && min < -2.0 && 2.0 < max && max < 4.5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<f32>,
    min: f32,
    max: f32,
}

impl Histogram {
    /// The range that a percentage of the numbers is in, the rest apart equally at both ends.
    fn percentile(&self, percentage: f64) -> Option<(f32, f32)> {
        if self.counts.is_empty() {
            return None;
        }
        let total: f64 = self.counts.iter().map(|&count| f64::from(count)).sum();
        let apart = total * (1.0 - percentage / 100.0) / 2.0;
        let width = (f64::from(self.max) - f64::from(self.min)) / BINS as f64;
        let skipped = |counts: &mut dyn Iterator<Item = &f32>| {
            let mut sum = 0.0;
            counts
                .take_while(|&&count| {
                    sum += f64::from(count);
                    sum <= apart
                })
                .count()
        };
        let first = skipped(&mut self.counts.iter());
        let last = skipped(&mut self.counts.iter().rev());
        let min = f64::from(self.min) + width * first as f64;
        let max = f64::from(self.max) - width * last as f64;
        Some((min as f32, max.max(min) as f32))
    }

    /// The counts of a range as those of a wider one.
    fn widened(&self, min: f32, max: f32) -> Vec<f32> {
        let mut counts = vec![0f32; BINS];
        if self.min == self.max {
            let all: f32 = self.counts.iter().sum();
            counts[bin(self.min, min, max)] += all;
            return counts;
        }
        let parts = BINS * PARTS;
        let size = (self.max - self.min) / parts as f32;
        let edge = |at: usize| spaced(min, max, BINS, at);
        let mut to = 0;
        for part in 0..parts {
            let middle = spaced(self.min, self.max, parts, part) + 0.5 * size;
            // Both go up: the last bin that begins at the middle or before it.
            while to + 1 < BINS && edge(to + 1) <= middle {
                to += 1;
            }
            counts[to] += self.counts[part / PARTS] / PARTS as f32;
        }
        counts
    }

    /// How far the integers of a range of bins are from the numbers: the integral of squares.
    fn error(&self, scheme: &Scheme, first: usize, last: usize) -> f64 {
        let levels = scheme.levels();
        let source = (f64::from(self.max) - f64::from(self.min)) / BINS as f64;
        let target = source * (last - first + 1) as f64 / levels as f64;
        if target == 0.0 {
            return 0.0;
        }
        let (source, target, most) = (source as f32, target as f32, (levels - 1) as f32);
        let level = |x: f32| floor_divided(x, target).clamp(0.0, most);
        let cubes = |from: f32, to: f32| (to * to * to - from * from * from) / 3.0;
        let half = target / 2.0;
        let mut sum = 0f64;
        for (at, &count) in self.counts.iter().enumerate() {
            let begin = (at as f32 - first as f32) * source;
            let end = begin + source;
            let density = count / source;
            let (from, to) = (level(begin), level(end));
            let of_first = density * cubes(begin - (from + 0.5) * target, half);
            let between = (to - from - 1.0) * (density * cubes(-half, half));
            let of_last = density * cubes(-half, end - (to * target + half));
            sum += f64::from(of_first + between + of_last);
        }
        sum
    }

    /// The range of the least error.
    fn best(&self, scheme: &Scheme) -> (f32, f32) {
        let width = (self.max - self.min) / BINS as f32;
        let mut sums = Vec::with_capacity(BINS);
        let mut sum = 0f64;
        for &count in &self.counts {
            sum += f64::from(count);
            sums.push(sum as f32);
        }
        let total = sum;
        let (mut below, mut above) = (0.0f64, 1.0f64);
        let (mut first, mut last) = (0, BINS - 1);
        let mut least = f64::INFINITY;
        while below < above {
            let (next_below, next_above) = (below + STEP, above - STEP);
            let (mut left, mut right) = (first, last);
            while left < last && sums[left] < (next_below * total) as f32 {
                left += 1;
            }
            while right > first && sums[right] > (next_above * total) as f32 {
                right -= 1;
            }
            let (mut next_first, mut next_last) = (first, last);
            if left - first > last - right {
                next_first = left;
                below = next_below;
            } else {
                next_last = right;
                above = next_above;
            }
            if (next_first, next_last) == (first, last) {
                continue;
            }
            let error = self.error(scheme, next_first, next_last);
            if error > least {
                break;
            }
            least = error;
            (first, last) = (next_first, next_last);
        }
        let at = |bins: usize| self.min + width * bins as f32;
        (at(first), at(last + 1))
    }
}

impl Observer for Histogram {
    fn observe(&mut self, x: &Tensor) -> Result<()> {
        let mut numbers = floats(x)?;
        let Some((mut min, mut max)) = ends(&numbers)? else {
            return Ok(());
        };
        if !(min.is_finite() && max.is_finite()) {
            numbers.retain(|x| x.is_finite());
            match ends(&numbers)? {
                Some(finite) => (min, max) = finite,
                None => return Ok(()),
            }
        }
        if !self.counts.is_empty() {
            (min, max) = (min.min(self.min), max.max(self.max));
        }
        let mut counts = counted(&numbers, min, max);
        if !self.counts.is_empty() {
            let own = match (min, max) == (self.min, self.max) {
                true => self.counts.clone(),
                false => self.widened(min, max),
            };
            for (count, own) in counts.iter_mut().zip(own) {
                *count += own;
            }
        }
        *self = Histogram { counts, min, max };
        Ok(())
    }

    fn range(&self, scheme: &Scheme) -> Result<Option<(f32, f32)>> {
        Ok((!self.counts.is_empty()).then(|| self.best(scheme)))
    }
}

/// The range that a percentage of the numbers is in, by a histogram of 2,048 bins.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{Observer, Percentile, Scheme};
/// let mut observer = Percentile::new(99.0);
/// let mut numbers = vec![0.5f32; 999];
/// numbers.push(100.0);
/// observer.observe(&Tensor::from_vec(numbers, 1000)?)?;
/// let (_, max) = observer.range(&Scheme::UINT8)?.expect("numbers were seen");
/// assert!(max < 1.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Percentile {
    percentage: f64,
    histogram: Histogram,
}

impl Percentile {
    /// With the percentage, between 0 and 100, such as 99.99.
    pub fn new(percentage: f64) -> Self {
        Percentile {
            percentage,
            histogram: Histogram::default(),
        }
    }
}

impl Observer for Percentile {
    fn observe(&mut self, x: &Tensor) -> Result<()> {
        self.histogram.observe(x)
    }

    fn range(&self, _: &Scheme) -> Result<Option<(f32, f32)>> {
        if !(self.percentage > 0.0 && self.percentage <= 100.0) {
            return Err(Error::msg(format_args!(
                "a percentage is above 0 and at most 100, and not {}",
                self.percentage
            )));
        }
        Ok(self.histogram.percentile(self.percentage))
    }
}

/// How many numbers are in each bin of a range.
fn counted(numbers: &[f32], min: f32, max: f32) -> Vec<f32> {
    let mut counts = vec![0u32; BINS];
    for &x in numbers {
        counts[bin(x, min, max)] += 1;
    }
    counts.into_iter().map(|count| count as f32).collect()
}

/// The bin of a number in a range; a range of one number is 1 wider on both sides.
fn bin(x: f32, min: f32, max: f32) -> usize {
    let (min, max) = match min == max {
        true => (min - 1.0, max + 1.0),
        false => (min, max),
    };
    let at = ((x - min) * BINS as f32 / (max - min)) as usize;
    at.min(BINS - 1)
}

/// The number at an index when a range is divided in so many parts: counted from the nearer end.
fn spaced(from: f32, to: f32, parts: usize, at: usize) -> f32 {
    let step = (to - from) / parts as f32;
    match at < parts.div_ceil(2) {
        true => from + step * at as f32,
        false => to - step * (parts - at) as f32,
    }
}

/// The whole part of a quotient, of the exact remainder.
fn floor_divided(x: f32, by: f32) -> f32 {
    let rest = x % by;
    let mut quotient = (x - rest) / by;
    if rest != 0.0 && (by < 0.0) != (rest < 0.0) {
        quotient -= 1.0;
    }
    let floor = quotient.floor();
    match quotient - floor > 0.5 {
        true => floor + 1.0,
        false => floor,
    }
}
