//! New tensors.

use candle_core::{DType as C, Device, Tensor as Data};
use fx_core::value::{DType, Int};
use fx_core::{Error, Result, wrap};

use crate::error::Fx;
use crate::tensor::{Sizes, Tensor};
use crate::{random, room};

/// The sizes on a run, none below 0, for which there is room as `float32`.
fn dims(op: &str, sizes: &Sizes) -> Result<Vec<usize>> {
    let sizes = sizes.known()?;
    let dims: Option<Vec<usize>> = sizes.iter().map(|n| usize::try_from(*n).ok()).collect();
    let dims =
        dims.ok_or_else(|| Error::msg(format_args!("{op}: sizes {sizes:?} are not below 0")))?;
    room::of(op, &dims, C::F32).fx()?;
    Ok(dims)
}

/// Zeros, as `float32`; sizes of a traced tensor can be among the sizes.
///
/// # Errors
/// When there is no room for it.
#[wrap(path = "fx_nn::ops::zeros")]
pub fn zeros(shape: impl Into<Sizes>) -> Result<Tensor> {
    Data::zeros(dims("zeros", &shape)?, C::F32, &Device::Cpu)
        .map(Tensor::from)
        .fx()
}

/// Ones, as `float32`.
///
/// # Errors
/// When there is no room for it.
#[wrap(path = "fx_nn::ops::ones")]
pub fn ones(shape: impl Into<Sizes>) -> Result<Tensor> {
    Data::ones(dims("ones", &shape)?, C::F32, &Device::Cpu)
        .map(Tensor::from)
        .fx()
}

/// Uniform random numbers in [0, 1), as `float32`. Recorded while tracing, so that each run draws anew.
///
/// # Errors
/// When there is no room for it.
#[wrap(random, always, path = "fx_nn::ops::rand")]
pub fn rand(shape: impl Into<Sizes>) -> Result<Tensor> {
    random::uniform(&dims("rand", &shape)?, 0.0, 1.0)
        .map(Tensor::from)
        .fx()
}

/// Normal random numbers of mean 0 and deviation 1, as `float32`. Recorded while tracing, so that each run draws anew.
///
/// # Errors
/// When there is no room for it.
#[wrap(random, always, path = "fx_nn::ops::randn")]
pub fn randn(shape: impl Into<Sizes>) -> Result<Tensor> {
    random::normal(&dims("randn", &shape)?)
        .map(Tensor::from)
        .fx()
}

/// The integers from `start` to before `end`, by `step`, as `int64`.
///
/// # Errors
/// When `step` is 0, or leads away from `end`, or there is no room for so many.
#[wrap(path = "fx_nn::ops::arange")]
pub fn arange(
    start: impl Into<Int>,
    end: impl Into<Int>,
    #[default(1)] step: impl Into<Int>,
) -> Result<Tensor> {
    let (Some(start), Some(end), Some(step)) = (start.concrete(), end.concrete(), step.concrete())
    else {
        return Err(Error::msg(
            "arange: an end is symbolic where the operation runs",
        ));
    };
    if step == 0 || (end != start && (end > start) != (step > 0)) {
        return Err(Error::msg(format_args!(
            "arange: steps of {step} do not lead from {start} to {end}"
        )));
    }
    let count = end.abs_diff(start).div_ceil(step.unsigned_abs());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    room::of("arange", &[count], C::I64).fx()?;
    // Each number is between the ends, though its distance from the start may wrap around on the way.
    let numbers: Vec<i64> = std::iter::successors(Some(start), |n| Some(n.wrapping_add(step)))
        .take(count)
        .collect();
    Tensor::from_vec(numbers, count)
}

/// The element type, if random numbers can be of it.
fn floats(op: &str, x: &Tensor) -> Result<DType> {
    match x.dtype()? {
        dtype if dtype.is_floating_point() => Ok(dtype),
        dtype => Err(Error::msg(format_args!(
            "{op}: random numbers are floats, not {dtype}: convert the tensor with to_dtype"
        ))),
    }
}

macro_rules! alike {
    ($($name:ident $path:literal $what:literal ($($options:tt)*) |$x:ident, $data:ident| $make:expr;)*) => {$(
        #[doc = concat!($what, ", of the shape and type of `x`.")]
        ///
        /// # Errors
        /// When there is no room for it; for random numbers, when the type is no float.
        #[wrap($($options)* path = $path)]
        pub fn $name($x: &Tensor) -> Result<Tensor> {
            let $data = $x.data(stringify!($name))?;
            $make
        }
    )*};
}

alike! {
    zeros_like "fx_nn::ops::zeros_like" "Zeros" () |x, data| data.zeros_like().map(|d| x.with_data(d)).fx();
    ones_like "fx_nn::ops::ones_like" "Ones" () |x, data| data.ones_like().map(|d| x.with_data(d)).fx();
    rand_like "fx_nn::ops::rand_like" "Uniform random numbers in [0, 1)" (random,) |x, data| {
        let dtype = floats("rand_like", x)?;
        Tensor::from(random::uniform(data.dims(), 0.0, 1.0).fx()?).cast(dtype)
    };
    randn_like "fx_nn::ops::randn_like" "Normal random numbers of mean 0 and deviation 1" (random,) |x, data| {
        let dtype = floats("randn_like", x)?;
        Tensor::from(random::normal(data.dims()).fx()?).cast(dtype)
    };
}

impl Tensor {
    /// Zeros, as `float32`.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn zeros(shape: impl Into<Sizes>) -> Result<Tensor> {
        zeros(shape)
    }

    /// Ones, as `float32`.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn ones(shape: impl Into<Sizes>) -> Result<Tensor> {
        ones(shape)
    }

    /// Uniform random numbers in [0, 1), as `float32`. Recorded while tracing, so that each run draws anew.
    ///
    /// # Errors
    /// When there is no room for it.
    #[track_caller]
    pub fn rand(shape: impl Into<Sizes>) -> Result<Tensor> {
        rand(shape)
    }

    /// Normal random numbers of mean 0 and deviation 1, as `float32`. Recorded while tracing, so that each run
    /// draws anew.
    ///
    /// # Errors
    /// When there is no room for it.
    #[track_caller]
    pub fn randn(shape: impl Into<Sizes>) -> Result<Tensor> {
        randn(shape)
    }

    /// The integers from `start` to before `end`, as `int64`; sizes of a traced tensor can be either.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// assert_eq!(Tensor::arange(2, 5)?.to_vec()?, [2.0, 3.0, 4.0]);
    /// let positions = traced!(|x: &Tensor| Tensor::arange(0, x.size(1)?));
    /// let gm = symbolic_trace(positions)?;
    /// assert_eq!(gm.forward::<Tensor>(&Tensor::ones((2, 3))?)?.to_vec()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `start` is after `end`.
    #[track_caller]
    pub fn arange(start: impl Into<Int>, end: impl Into<Int>) -> Result<Tensor> {
        arange(start, end, 1)
    }
}
