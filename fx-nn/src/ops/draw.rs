//! Random tensors. Those without a tensor among their arguments are recorded while tracing, so that
//! each run draws new numbers.

use crate::op;
use candle_core::Tensor as Data;
use fx_core::value::{DType, Int};
use fx_core::{Error, Result};

use super::create::{count, dims, known};
use crate::device;
use crate::error::{Fx, require, unfit};
use crate::random;
use crate::room;
use crate::tensor::fake::faked;
use crate::tensor::{Number, Sizes, Tensor, candle_dtype};

/// The element type, if random numbers can be of it.
fn floats(op: &str, dtype: DType) -> Result<DType> {
    require(op, dtype.is_floating_point())?;
    Ok(dtype)
}

/// Uniform numbers in [0, 1) of a float type.
fn uniform(dims: &[usize], dtype: DType) -> Result<Tensor> {
    if let Some(fake) = faked(dims, dtype) {
        return Ok(fake);
    }
    let data = random::uniform(dims, 0.0, 1.0).fx()?;
    // A number next to 1 would be rounded to it.
    let steps = match dtype {
        DType::F16 => 2048.0,
        DType::BF16 => 256.0,
        _ => return Tensor::from(data).cast(dtype),
    };
    let cut = data
        .affine(steps, 0.0)
        .and_then(|x| x.floor())
        .and_then(|x| x.affine(1.0 / steps, 0.0));
    Tensor::from(cut.fx()?).cast(dtype)
}

fn normal_numbers(dims: &[usize], dtype: DType) -> Result<Tensor> {
    match faked(dims, dtype) {
        Some(fake) => Ok(fake),
        None => Tensor::from(random::normal(dims).fx()?).cast(dtype),
    }
}

/// Uniform random numbers in [0, 1), as `float32` unless a type is given. Recorded while tracing,
/// so that each run draws new numbers.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type is not float.
#[op(
    draw,
    member,
    flat = "has no tensor among its arguments",
    random,
    always,
    path = "fx_nn::ops::rand"
)]
pub fn rand(shape: impl Into<Sizes>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = floats("rand", dtype.unwrap_or(DType::F32))?;
    uniform(&dims("rand", &shape, DType::F32)?, dtype)
}

/// Normal random numbers of mean 0 and deviation 1, as `float32` unless a type is given. Recorded
/// while tracing, so that each run draws new numbers.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type is not float.
#[op(
    draw,
    member,
    flat = "has no tensor among its arguments",
    random,
    always,
    path = "fx_nn::ops::randn"
)]
pub fn randn(shape: impl Into<Sizes>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = floats("randn", dtype.unwrap_or(DType::F32))?;
    normal_numbers(&dims("randn", &shape, DType::F32)?, dtype)
}

/// Uniform random numbers in [0, 1), of the shape of `x`, and of its type unless another is given.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type is not float.
#[op(
    draw,
    member,
    flat = "depends on the shape alone",
    random,
    path = "fx_nn::ops::rand_like"
)]
pub fn rand_like(x: &Tensor, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = floats("rand_like", dtype.map_or_else(|| x.dtype(), Ok)?)?;
    device::on(x.data("rand_like")?.device(), || uniform(x.dims()?, dtype))
}

/// Normal random numbers of mean 0 and deviation 1, of the shape of `x`, and of its type unless another is given.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type is not float.
#[op(
    draw,
    member,
    flat = "depends on the shape alone",
    random,
    path = "fx_nn::ops::randn_like"
)]
pub fn randn_like(x: &Tensor, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = floats("randn_like", dtype.map_or_else(|| x.dtype(), Ok)?)?;
    device::on(x.data("randn_like")?.device(), || {
        normal_numbers(x.dims()?, dtype)
    })
}

/// Normal random numbers of a mean and a deviation, as `float32` unless a type is given. Recorded
/// while tracing, so that each run draws new numbers.
///
/// # Errors
/// Returns an error if it does not fit into memory, the deviation is below 0, or the type is not
/// float.
#[op(
    draw,
    member,
    flat = "has no tensor among its arguments",
    random,
    always,
    path = "fx_nn::ops::normal"
)]
pub fn normal(
    mean: f64,
    std: f64,
    size: impl Into<Sizes>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = floats("normal", dtype.unwrap_or(DType::F32))?;
    require("normal", std >= 0.0)?;
    let data = random::normal(&dims("normal", &size, DType::F32)?);
    Tensor::from(data.and_then(|x| x.affine(std, mean)).fx()?).cast(dtype)
}

/// Integers from `low` to before `high`, of a type that holds them.
fn integers(op: &str, [low, high]: [Int; 2], dims: &[usize], dtype: DType) -> Result<Tensor> {
    let (low, high) = (known(op, low)?, known(op, high)?);
    require(op, low < high)?;
    require(op, dtype != DType::Bool || low >= 0 && high <= 2)?;
    require(op, low >= 0 || !matches!(dtype, DType::U8 | DType::U32))?;
    Number::Int(low).checked(op, dtype)?;
    Number::Int(high - 1).checked(op, dtype)?;
    let numbers = random::integers(dims, low, high).fx()?;
    Tensor::from(numbers).cast(dtype)
}

/// Random integers from `low` to before `high`, as `int64` unless a type is given. Recorded while
/// tracing, so that each run draws new numbers.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = ops::randint(3, 6, (100, 2), None)?;
/// assert_eq!((x.dtype()?, x.dims()?), (DType::I64, &[100, 2][..]));
/// assert!(x.to_vec()?.iter().all(|n| [3.0, 4.0, 5.0].contains(n)));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such integer, or the type does not hold them.
#[op(
    draw,
    member,
    flat = "has no tensor among its arguments",
    random,
    always,
    path = "fx_nn::ops::randint"
)]
pub fn randint(
    low: impl Into<Int>,
    high: impl Into<Int>,
    size: impl Into<Sizes>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dims = dims("randint", &size, DType::I64)?;
    integers("randint", [low, high], &dims, dtype.unwrap_or(DType::I64))
}

/// Random integers from `low` to before `high`, of the shape of `x`, and of its type unless another is given.
///
/// # Errors
/// Returns an error if there is no such integer, or the type does not hold them.
#[op(
    draw,
    member,
    flat = "depends on the shape alone",
    random,
    path = "fx_nn::ops::randint_like"
)]
pub fn randint_like(
    x: &Tensor,
    low: impl Into<Int>,
    high: impl Into<Int>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.map_or_else(|| x.dtype(), Ok)?;
    let op = "randint_like";
    device::on(x.data(op)?.device(), || {
        integers(op, [low, high], x.dims()?, dtype)
    })
}

/// The integers from 0 to before `n` in a random order, as `int64` unless a type is given. Recorded
/// while tracing, so that each run draws new numbers.
///
/// # Errors
/// Returns an error if `n` is below 0, or the type does not hold them.
#[op(
    draw,
    member,
    flat = "has no tensor among its arguments",
    random,
    always,
    path = "fx_nn::ops::randperm"
)]
pub fn randperm(n: impl Into<Int>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let n = count("randperm", n)?;
    let dtype = dtype.unwrap_or(DType::I64);
    require("randperm", dtype != DType::Bool)?;
    room::of("randperm", &[n], candle_dtype(DType::I64)?).fx()?;
    Number::Int(n.saturating_sub(1) as i64).checked("randperm", dtype)?;
    let order = random::permutation(n)
        .into_iter()
        .map(|n| n as i64)
        .collect();
    Tensor::from_vec::<i64>(order, n)?.cast(dtype)
}

/// 1 with the probability that each element is, else 0.
///
/// ```
/// use fx_nn::prelude::*;
/// let p = Tensor::from_vec(vec![0.0f32, 1.0], 2)?;
/// assert_eq!(p.bernoulli()?.to_vec()?, [0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not float, or an element is not a probability.
#[op(
    draw,
    member,
    flat = "draws truth values",
    method,
    random,
    path = "fx_nn::ops::bernoulli"
)]
pub fn bernoulli(x: &Tensor) -> Result<Tensor> {
    let dtype = floats("bernoulli", x.dtype()?)?;
    if let Some(p) = x.to_vec()?.into_iter().find(|p| !(0.0..=1.0).contains(p)) {
        return Err(Error::msg(format_args!(
            "bernoulli: {p} is not a probability in [0, 1]"
        )));
    }
    let data = x.data("bernoulli")?;
    let drawn = device::on(data.device(), || random::uniform(data.dims(), 0.0, 1.0)).fx()?;
    let drawn = Tensor::from(drawn);
    drawn.cast(DType::F64)?.lt(x.cast(DType::F64)?)?.cast(dtype)
}

/// `num_samples` places (`int64`) of each row, each drawn with the share of the row's sum that stands there; without
/// `replacement` none is drawn twice.
///
/// ```
/// use fx_nn::prelude::*;
/// let shares = Tensor::from_vec(vec![0.0f32, 3.0, 1.0], 3)?;
/// let mut drawn = shares.multinomial(2, false)?.to_vec()?;
/// drawn.sort_by(f64::total_cmp);
/// assert_eq!(drawn, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not float or has neither 1 nor 2 dims, an element is below 0
/// or not finite, a row sums to 0, or has fewer elements than are drawn without replacement.
#[op(
    draw,
    member,
    flat = "gives places",
    method,
    random,
    path = "fx_nn::ops::multinomial"
)]
pub fn multinomial(
    x: &Tensor,
    num_samples: impl Into<Int>,
    #[default(false)] replacement: bool,
) -> Result<Tensor> {
    let op = "multinomial";
    floats(op, x.dtype()?)?;
    let samples = count(op, num_samples)?;
    let dims = x.dims()?;
    let (rows, size) = match dims {
        [size] => (1, *size),
        [rows, size] => (*rows, *size),
        _ => return Err(unfit(op)),
    };
    require(op, samples > 0 && (replacement || samples <= size))?;
    let wrong = |why: &str| Err(Error::msg(format_args!("{op}: {why}")));
    let shares = x.to_vec()?;
    if shares.iter().any(|p| !(p.is_finite() && *p >= 0.0)) {
        return wrong("a share is a finite number that is not below 0");
    }
    let mut found =
        Vec::with_capacity(room::of(op, &[rows, samples], candle_core::DType::I64).fx()?);
    for row in shares.chunks_exact(size.max(1)) {
        if row.iter().sum::<f64>() <= 0.0 {
            return wrong("the shares of a row sum to 0");
        }
        found.extend(
            random::places(row, samples, replacement)
                .into_iter()
                .map(|at| at as i64),
        );
    }
    let mut shape = dims.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = samples;
    }
    Data::from_vec(found, shape, x.data("multinomial")?.device())
        .map(Tensor::from)
        .fx()
}

impl Tensor {
    /// Uniform random numbers in [0, 1), as `float32`. Recorded while tracing, so that each run
    /// draws new numbers.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    #[track_caller]
    pub fn rand(shape: impl Into<Sizes>) -> Result<Tensor> {
        rand(shape, None)
    }

    /// Normal random numbers of mean 0 and deviation 1, as `float32`. Recorded while tracing, so
    /// that each run draws new numbers.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    #[track_caller]
    pub fn randn(shape: impl Into<Sizes>) -> Result<Tensor> {
        randn(shape, None)
    }
}
