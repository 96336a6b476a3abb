//! New tensors: of one number, of numbers in a row, of places in a matrix.

use crate::op;
use candle_core::{DType as C, Tensor as Data};
use fx_core::value::{DType, Int};
use fx_core::{Error, Result};

use crate::device;
use crate::error::{Fx, require, unfit};
use crate::room;
use crate::tensor::{Number, Sizes, Tensor, candle_dtype};

/// The sizes on a run, none below 0, for which there is room as a type.
pub(super) fn dims(op: &str, sizes: &Sizes, dtype: DType) -> Result<Vec<usize>> {
    let sizes = sizes.known()?;
    let dims: Option<Vec<usize>> = sizes.iter().map(|n| usize::try_from(*n).ok()).collect();
    let dims = dims.ok_or_else(|| unfit(op))?;
    room::of(op, &dims, candle_dtype(dtype)?).fx()?;
    Ok(dims)
}

/// A number on a run.
pub(super) fn known(op: &str, n: Int) -> Result<i64> {
    n.concrete().ok_or_else(|| {
        Error::msg(format_args!(
            "{op}: a number is symbolic where the operation runs"
        ))
    })
}

/// A number of things on a run.
pub(super) fn count(op: &str, n: Int) -> Result<usize> {
    let n = known(op, n)?;
    usize::try_from(n).map_err(|_| unfit(op))
}

/// One number in a shape.
fn filled(op: &str, dims: &[usize], number: Number, dtype: DType) -> Result<Tensor> {
    let number = number.checked(op, dtype)?;
    number
        .to_device(&device::current())
        .and_then(|number| room::full(op, dims, &number))
        .map(|data| Tensor::of_type(data, dtype))
        .fx()
}

/// What a number is as a tensor of its own, as PyTorch has it.
fn own_type(number: Number) -> DType {
    match number {
        Number::Bool(_) => DType::Bool,
        Number::Int(_) => DType::I64,
        Number::Float(_) => DType::F32,
    }
}

macro_rules! constants {
    ($($name:ident $like:ident $new:ident $path:literal $like_path:literal $new_path:literal $number:literal $what:literal;)*) => {$(
        #[doc = concat!($what, ", of a type: `float32` unless given.")]
        ///
        /// # Errors
        /// Returns an error if it does not fit into memory.
        #[op(create, flat = "has no tensor among its arguments", path = $path)]
        pub fn $name(shape: impl Into<Sizes>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
            let op = stringify!($name);
            let dtype = dtype.unwrap_or(DType::F32);
            filled(op, &dims(op, &shape, dtype)?, Number::Int($number), dtype)
        }

        #[doc = concat!($what, ", of the shape of `x`, and of its type unless another is given.")]
        ///
        /// # Errors
        /// Returns an error if it does not fit into memory.
        #[op(create, flat = "depends on the shape alone", path = $like_path)]
        pub fn $like(x: &Tensor, #[kw] dtype: Option<DType>) -> Result<Tensor> {
            let dtype = dtype.map_or_else(|| x.dtype(), Ok)?;
            let (op, number) = (stringify!($like), Number::Int($number));
            device::on(x.elements(op)?.device(), || filled(op, x.dims()?, number, dtype))
        }

        #[doc = concat!($what, " in a shape, of the type of `x` unless another is given.")]
        ///
        /// # Errors
        /// Returns an error if it does not fit into memory.
        #[op(create, flat = "depends on the shape alone", method, path = $new_path)]
        pub fn $new(x: &Tensor, shape: impl Into<Sizes>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
            let op = stringify!($new);
            let dtype = dtype.map_or_else(|| x.dtype(), Ok)?;
            let (dims, number) = (dims(op, &shape, dtype)?, Number::Int($number));
            device::on(x.elements(op)?.device(), || filled(op, &dims, number, dtype))
        }
    )*};
}

constants! {
    zeros zeros_like new_zeros "fx_nn::ops::zeros" "fx_nn::ops::zeros_like" "fx_nn::ops::new_zeros" 0 "Zeros";
    ones ones_like new_ones "fx_nn::ops::ones" "fx_nn::ops::ones_like" "fx_nn::ops::new_ones" 1 "Ones";
    empty empty_like new_empty "fx_nn::ops::empty" "fx_nn::ops::empty_like" "fx_nn::ops::new_empty" 0
        "Elements to be written over, which are zeros";
}

/// One number in a shape: of `float32`, `int64` or `bool`, whichever the number is of, unless a type is given.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = ops::full((2, 2), 7, None)?;
/// assert_eq!((x.dtype()?, x.to_vec()?), (DType::I64, vec![7.0; 4]));
/// assert_eq!(ops::full(2, 7, Some(DType::F16))?.dtype()?, DType::F16);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type does not hold the number.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::full"
)]
pub fn full(
    size: impl Into<Sizes>,
    fill_value: impl Into<Number>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| own_type(fill_value));
    filled("full", &dims("full", &size, dtype)?, fill_value, dtype)
}

/// One number in the shape of `x`, of its type unless another is given.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type does not hold the number.
#[op(
    create,
    member,
    flat = "depends on the shape alone",
    path = "fx_nn::ops::full_like"
)]
pub fn full_like(
    x: &Tensor,
    fill_value: impl Into<Number>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.map_or_else(|| x.dtype(), Ok)?;
    let op = "full_like";
    device::on(x.elements(op)?.device(), || {
        filled(op, x.dims()?, fill_value, dtype)
    })
}

/// One number in a shape, of the type of `x` unless another is given.
///
/// # Errors
/// Returns an error if it does not fit into memory, or the type does not hold the number.
#[op(
    create,
    member,
    flat = "depends on the shape alone",
    method,
    path = "fx_nn::ops::new_full"
)]
pub fn new_full(
    x: &Tensor,
    size: impl Into<Sizes>,
    fill_value: impl Into<Number>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.map_or_else(|| x.dtype(), Ok)?;
    let op = "new_full";
    let dims = dims(op, &size, dtype)?;
    device::on(x.elements(op)?.device(), || {
        filled(op, &dims, fill_value, dtype)
    })
}

/// Refuses truth values in a row.
fn in_a_row(op: &str, dtype: DType) -> Result<DType> {
    require(op, dtype != DType::Bool)?;
    Ok(dtype)
}

/// The integers from `start` to before `end`, by `step`, as `int64` unless a type is given.
///
/// # Errors
/// Returns an error if `step` is 0, or leads away from `end`, or so many do not fit into memory.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::arange"
)]
pub fn arange(
    start: impl Into<Int>,
    end: impl Into<Int>,
    #[default(1)] step: impl Into<Int>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let (start, end, step) = (
        known("arange", start)?,
        known("arange", end)?,
        known("arange", step)?,
    );
    let dtype = in_a_row("arange", dtype.unwrap_or(DType::I64))?;
    require(
        "arange",
        step != 0 && (end == start || (end > start) == (step > 0)),
    )?;
    let count = end.abs_diff(start).div_ceil(step.unsigned_abs());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    room::of("arange", &[count], C::I64).fx()?;
    // Each number is between the ends, though its distance from the start may wrap around on the
    // way.
    let numbers: Vec<i64> = std::iter::successors(Some(start), |n| Some(n.wrapping_add(step)))
        .take(count)
        .collect();
    Tensor::from_vec(numbers, count)?.cast(dtype)
}

/// So many numbers from `start` to `end`, both among them, at equal distances.
fn spaced(op: &str, [start, end]: [Number; 2], steps: Int, dtype: DType) -> Result<Vec<f64>> {
    let steps = count(op, steps)?;
    room::of(op, &[steps], C::F64).fx()?;
    start.checked(op, dtype)?;
    end.checked(op, dtype)?;
    let cut = |number: Number| match number {
        // Below 0 an unsigned type wraps around, as in PyTorch.
        Number::Int(n) if dtype == DType::U8 => f64::from(n as u8),
        Number::Float(x) if !dtype.is_floating_point() => x.trunc(),
        number => number.as_f64(),
    };
    let (start, end) = (cut(start), cut(end));
    let step = (end - start) / steps.saturating_sub(1).max(1) as f64;
    // From the nearer end, so that both ends are exact; rounded once, which decides whether an
    // integer is reached.
    Ok((0..steps)
        .map(|at| match at < steps / 2 || steps == 1 {
            true => step.mul_add(at as f64, start),
            false => step.mul_add(-((steps - at - 1) as f64), end),
        })
        .collect())
}

/// So many numbers (`steps`) from `start` to `end`, both among them, at equal distances; as `float32` unless a type is
/// given.
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(ops::linspace(0, 1, 5, None)?.to_vec()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// assert_eq!(ops::logspace(0, 2, 3, 10.0, None)?.to_vec()?, [1.0, 10.0, 100.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `steps` is below 0, or the type does not hold an end.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::linspace"
)]
pub fn linspace(
    start: impl Into<Number>,
    end: impl Into<Number>,
    steps: impl Into<Int>,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = in_a_row("linspace", dtype.unwrap_or(DType::F32))?;
    let numbers = spaced("linspace", [start, end], steps, dtype)?;
    let count = numbers.len();
    Tensor::from_vec(numbers, count)?.cast(dtype)
}

/// `base` to the powers of so many numbers from `start` to `end` at equal distances.
///
/// # Errors
/// Returns an error if `steps` is below 0.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::logspace"
)]
pub fn logspace(
    start: impl Into<Number>,
    end: impl Into<Number>,
    steps: impl Into<Int>,
    #[default(10.0)] base: f64,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = in_a_row("logspace", dtype.unwrap_or(DType::F32))?;
    let numbers = spaced("logspace", [start, end], steps, dtype)?;
    let count = numbers.len();
    let numbers: Vec<f64> = numbers.into_iter().map(|x| base.powf(x)).collect();
    Tensor::from_vec(numbers, count)?.cast(dtype)
}

/// Ones on the diagonal of `n` rows and `m` columns (as many unless given), zeros elsewhere; as `float32` unless a type is
/// given.
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(ops::eye(2, Some(3.into()), None)?.to_vec()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a size is below 0, or so many do not fit into memory.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::eye"
)]
pub fn eye(n: impl Into<Int>, m: Option<Int>, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    let rows = count("eye", n)?;
    let columns = m.map_or(Ok(rows), |m| count("eye", m))?;
    let dtype = dtype.unwrap_or(DType::F32);
    let mut ones = vec![0u8; room::of("eye", &[rows, columns], candle_dtype(dtype)?).fx()?];
    for at in 0..rows.min(columns) {
        ones[at * columns + at] = 1;
    }
    Tensor::from_vec(ones, (rows, columns))?.cast(dtype)
}

/// The rows and columns, one under the other, of the places of a matrix that `holds`.
fn places(op: &str, row: Int, col: Int, holds: impl Fn(i64, i64) -> bool) -> Result<Tensor> {
    let (rows, columns) = (count(op, row)?, count(op, col)?);
    room::of(op, &[2, rows, columns], C::I64).fx()?;
    let (mut at_rows, mut at_columns) = (Vec::new(), Vec::new());
    for row in 0..rows as i64 {
        for column in (0..columns as i64).filter(|column| holds(row, *column)) {
            at_rows.push(row);
            at_columns.push(column);
        }
    }
    let count = at_rows.len();
    at_rows.append(&mut at_columns);
    Data::from_vec(at_rows, (2, count), &device::current())
        .map(Tensor::from)
        .fx()
}

/// The places on and below a diagonal of a matrix of `row` times `col`: `[2, n]`, their rows above their columns
/// (`int64`).
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(ops::tril_indices(2, 3, 0)?.to_vec()?, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
/// assert_eq!(ops::triu_indices(2, 2, 0)?.to_vec()?, [0.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a size is below 0, or so many do not fit into memory.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::tril_indices"
)]
pub fn tril_indices(
    row: impl Into<Int>,
    col: impl Into<Int>,
    #[default(0)] offset: i64,
) -> Result<Tensor> {
    places("tril_indices", row, col, |row, column| {
        column.saturating_sub(row) <= offset
    })
}

/// The places on and above a diagonal of a matrix of `row` times `col`: `[2, n]`, their rows above their columns
/// (`int64`).
///
/// # Errors
/// Returns an error if a size is below 0, or so many do not fit into memory.
#[op(
    create,
    member,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::triu_indices"
)]
pub fn triu_indices(
    row: impl Into<Int>,
    col: impl Into<Int>,
    #[default(0)] offset: i64,
) -> Result<Tensor> {
    places("triu_indices", row, col, |row, column| {
        column.saturating_sub(row) >= offset
    })
}

impl Tensor {
    /// Zeros, as `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn zeros(shape: impl Into<Sizes>) -> Result<Tensor> {
        zeros(shape, None)
    }

    /// Ones, as `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn ones(shape: impl Into<Sizes>) -> Result<Tensor> {
        ones(shape, None)
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
    /// Returns an error if `start` is after `end`.
    #[track_caller]
    pub fn arange(start: impl Into<Int>, end: impl Into<Int>) -> Result<Tensor> {
        arange(start, end, 1, None)
    }
}
