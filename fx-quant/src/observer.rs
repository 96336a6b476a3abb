//! What is seen of a value while a model is calibrated, and the range that follows from it.
//!
//! Invariant: an observer sees finite numbers alone; what is not finite is an error, or left out by name.

use std::fmt::Debug;

use fx_core::{Error, Result};
use fx_nn::Tensor;

use crate::scheme::Scheme;

/// Sees the values of a node, and says which range of floats its integers stand for.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{MinMax, Observer, Scheme};
/// let mut observer = MinMax::default();
/// observer.observe(&Tensor::from_vec(vec![0.5f32, -1.0], 2)?)?;
/// observer.observe(&Tensor::from_vec(vec![2.0f32], 1)?)?;
/// assert_eq!(observer.range(&Scheme::UINT8)?, Some((-1.0, 2.0)));
/// # Ok::<(), Error>(())
/// ```
pub trait Observer: Debug + Send {
    /// Sees a value; one without elements changes nothing.
    ///
    /// # Errors
    /// Returns an error if a number is not finite, or the tensor has no data.
    fn observe(&mut self, x: &Tensor) -> Result<()>;

    /// The range for integers of a scheme; `None` if nothing was seen.
    ///
    /// # Errors
    /// Returns an error if no range follows.
    fn range(&self, scheme: &Scheme) -> Result<Option<(f32, f32)>>;
}

/// The elements of a tensor as `float32`.
pub(crate) fn floats(x: &Tensor) -> Result<Vec<f32>> {
    let wide = x.to_vec()?;
    Ok(wide.into_iter().map(|x| x as f32).collect())
}

/// The least and the largest number; `None` of no numbers.
///
/// # Errors
/// Returns an error if a number is NaN.
pub(crate) fn ends(numbers: &[f32]) -> Result<Option<(f32, f32)>> {
    let mut ends: Option<(f32, f32)> = None;
    for &x in numbers {
        if x.is_nan() {
            return Err(Error::msg(
                "a number is NaN: calibrate with data that gives numbers",
            ));
        }
        ends = Some(ends.map_or((x, x), |(min, max)| (min.min(x), max.max(x))));
    }
    Ok(ends)
}

fn finite_ends(x: &Tensor) -> Result<Option<(f32, f32)>> {
    match ends(&floats(x)?)? {
        Some((min, max)) if !(min.is_finite() && max.is_finite()) => Err(Error::msg(
            "a number is infinite: use an observer that leaves infinities out, such as `Histogram`",
        )),
        ends => Ok(ends),
    }
}

/// From the least to the largest number of all; torch's `MinMaxObserver`.
#[derive(Debug, Clone, Default)]
pub struct MinMax {
    ends: Option<(f32, f32)>,
}

impl Observer for MinMax {
    fn observe(&mut self, x: &Tensor) -> Result<()> {
        if let Some((min, max)) = finite_ends(x)? {
            self.ends = Some(match self.ends {
                None => (min, max),
                Some((low, high)) => (low.min(min), high.max(max)),
            });
        }
        Ok(())
    }

    fn range(&self, _: &Scheme) -> Result<Option<(f32, f32)>> {
        Ok(self.ends)
    }
}

/// The ends of each call, averaged with a constant weight for the newest; torch's `MovingAverageMinMaxObserver`.
#[derive(Debug, Clone)]
pub struct MovingAverage {
    averaging_constant: f64,
    ends: Option<(f32, f32)>,
}

impl MovingAverage {
    /// With the weight of the newest call, 0.01 in PyTorch.
    pub fn new(averaging_constant: f64) -> Self {
        MovingAverage {
            averaging_constant,
            ends: None,
        }
    }
}

impl Default for MovingAverage {
    fn default() -> Self {
        MovingAverage::new(0.01)
    }
}

impl Observer for MovingAverage {
    fn observe(&mut self, x: &Tensor) -> Result<()> {
        if let Some((min, max)) = finite_ends(x)? {
            let share = self.averaging_constant as f32;
            self.ends = Some(match self.ends {
                None => (min, max),
                Some((low, high)) => (low + share * (min - low), high + share * (max - high)),
            });
        }
        Ok(())
    }

    fn range(&self, _: &Scheme) -> Result<Option<(f32, f32)>> {
        Ok(self.ends)
    }
}

/// The ends of each channel of a weight, whose channels are along a dim.
///
/// ```
/// use fx_nn::prelude::*;
/// let weight = Tensor::from_vec(vec![1.0f32, -2.0, 0.5, 0.0], (2, 2))?;
/// assert_eq!(fx_quant::weight_range(&weight, Some(0))?, [(-2.0, 1.0), (0.0, 0.5)]);
/// assert_eq!(fx_quant::weight_range(&weight, None)?, [(-2.0, 1.0)]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim or no number, or a number is not finite.
pub fn weight_range(weight: &Tensor, axis: Option<usize>) -> Result<Vec<(f32, f32)>> {
    let dims = weight.dims()?.to_vec();
    let (channels, inner) = match axis {
        None => (1, dims.iter().product()),
        Some(axis) => {
            let channels = dims.get(axis).copied().ok_or_else(|| {
                Error::msg(format_args!("a weight of shape {dims:?} has no dim {axis}"))
            })?;
            (channels, dims[axis + 1..].iter().product::<usize>())
        }
    };
    let mut all: Vec<Option<(f32, f32)>> = vec![None; channels];
    for (at, x) in floats(weight)?.into_iter().enumerate() {
        if !x.is_finite() {
            return Err(Error::msg(format_args!(
                "a weight has {x} among its numbers"
            )));
        }
        let channel = &mut all[(at / inner) % channels];
        *channel = Some(channel.map_or((x, x), |(min, max)| (min.min(x), max.max(x))));
    }
    let missing = || Error::msg(format_args!("a weight of shape {dims:?} has no numbers"));
    all.into_iter()
        .map(|ends| ends.ok_or_else(missing))
        .collect()
}
