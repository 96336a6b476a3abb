//! Shape rules of the operations, a family a file: what each gives, without data.
//!
//! Invariant: a rule and its kernel give the same shape and type, and refuse the same arguments.

mod algebra;
mod creation;
mod diagonals;
mod einsum;
mod elementwise;
mod factors;
mod fourier;
mod images;
mod joins;
mod losses;
mod norms;
mod picks;
mod pieces;
mod products;
mod recurrent;
mod reductions;
mod scatters;
mod views;
mod windows;

use std::fmt::Display;
use std::ops::RangeBounds;

use fx_core::ir::TensorMeta;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use crate::tensor::Number;

/// Entries of one rule for several functions.
macro_rules! rules {
    (@entries $rule:tt $(($($function:ident)::+))+) => {
        ::fx_core::function_table! { ::fx_core::shapes::ShapeRule {
            $(::fx_core::function!($($function)::+) => ::fx_core::shapes::ShapeRule($rule)),+
        } }
    };
    ($($rule:expr => $($($function:ident)::+),+ $(,)?;)*) => {$(
        rules! { @entries ($rule) $(($($function)::+))+ }
    )*};
}
use rules;

/// A tensor of a shape and a type.
fn tensor(shape: Vec<Dim>, dtype: Option<DType>) -> Fake {
    let mut meta = TensorMeta::new(shape);
    meta.dtype = dtype;
    Fake::tensor(meta)
}

/// A tensor like another one.
fn like(meta: &TensorMeta, dtype: Option<DType>) -> Fake {
    tensor(meta.shape.clone(), dtype)
}

/// Its own type if it holds fractions, and `f32` otherwise.
fn fractional(dtype: Option<DType>) -> Option<DType> {
    dtype.map(|dtype| match dtype.is_floating_point() {
        true => dtype,
        false => DType::F32,
    })
}

/// The sizes of an argument that may be a number, which has none.
fn shape_of(fake: &Fake) -> &[Dim] {
    fake.as_tensor().map_or(&[], |meta| &meta.shape)
}

/// The shape and type of a parameter that is a tensor.
fn x<'c>(call: &RuleCall<'c>) -> Result<&'c TensorMeta> {
    call.tensor("x")
}

/// A shape with another size at a place.
fn resized(shape: &[Dim], place: usize, size: Dim) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    if let Some(own) = shape.get_mut(place) {
        *own = size;
    }
    shape
}

/// Values, and where they are (`int64`).
fn with_places(values: Fake) -> Fake {
    let places = tensor(shape_of(&values).to_vec(), Some(DType::I64));
    Fake::Tuple(vec![values, places])
}

/// The type that all tensors are converted to.
fn promoted(tensors: &[&TensorMeta]) -> Option<DType> {
    let dtypes = tensors.iter().map(|meta| meta.dtype);
    dtypes.reduce(|a, b| Some(a?.promote(b?))).flatten()
}

/// An error that names the function of the call.
fn wrong(call: &RuleCall<'_>, problem: impl Display) -> Error {
    Error::msg(format_args!("{}: {problem}", call.function().name()))
}

/// The place of the dim that a parameter names.
fn place(call: &RuleCall<'_>, param: &str, rank: usize) -> Result<usize> {
    call.place(call.int(param)?, rank)
}

/// The places of the dims that a parameter names, of an empty list none; `None` if it is `None`.
fn named(call: &RuleCall<'_>, param: &str, rank: usize) -> Result<Option<Vec<usize>>> {
    let arg = call.arg(param)?;
    match (arg.is_none(), arg.items()) {
        (true, _) => Ok(None),
        (false, Some([])) => Ok(Some(Vec::new())),
        _ => {
            let mut places = call.places(param, rank)?;
            // A tensor without dims takes a dim, but has none.
            places.truncate(rank);
            Ok(Some(places))
        }
    }
}

/// A whole number that is not below 0.
fn count(call: &RuleCall<'_>, param: &str) -> Result<i64> {
    match call.int(param)? {
        number @ 0.. => Ok(number),
        number => Err(wrong(
            call,
            format_args!("`{param}` is not below 0, and not {number}"),
        )),
    }
}

/// A number; `None` if there is none, or a run decides it.
fn number(call: &RuleCall<'_>, param: &str) -> Result<Option<f64>> {
    Ok(match call.arg(param)? {
        Fake::Float(number) => *number,
        Fake::Int(dim) => dim.as_number().map(|number| number as f64),
        Fake::Bool(truth) => truth.map(|truth| f64::from(u8::from(truth))),
        _ => None,
    })
}

/// A number of its own kind, if it is known.
fn kind(fake: &Fake) -> Option<Number> {
    match fake {
        Fake::Bool(truth) => truth.map(Number::Bool),
        Fake::Int(dim) => dim.as_number().map(Number::Int),
        Fake::Float(number) => number.map(Number::Float),
        _ => None,
    }
}

/// Returns an error if a number is beyond an element type.
fn require_held(call: &RuleCall<'_>, param: &str, dtype: Option<DType>) -> Result<()> {
    match (kind(call.arg(param)?), dtype) {
        (Some(number), Some(dtype)) => number.check(call.function().name(), dtype),
        _ => Ok(()),
    }
}

/// Returns an error that says what a number is unless it fits, or is not known.
fn require_number(
    call: &RuleCall<'_>,
    param: &str,
    what: &str,
    fits: fn(f64) -> bool,
) -> Result<()> {
    match number(call, param)? {
        Some(number) if !fits(number) => Err(wrong(
            call,
            format_args!("`{param}` is {what}, and not {number}"),
        )),
        _ => Ok(()),
    }
}

fn require_probability(call: &RuleCall<'_>, param: &str) -> Result<()> {
    require_number(call, param, "a probability in [0, 1]", |p| {
        (0.0..=1.0).contains(&p)
    })
}

/// Returns an error unless a tensor has so many dims.
fn require_rank(
    call: &RuleCall<'_>,
    meta: &TensorMeta,
    ranks: impl RangeBounds<usize>,
) -> Result<()> {
    match ranks.contains(&meta.shape.len()) {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!(
                "{} dims are too few or too many: {:?}",
                meta.shape.len(),
                meta.shape
            ),
        )),
    }
}

/// A truth; `None` if a run decides it.
fn truth(call: &RuleCall<'_>, param: &str) -> Result<Option<bool>> {
    Ok(match call.arg(param)? {
        Fake::Bool(truth) => *truth,
        _ => None,
    })
}

/// One of the words that a parameter can be; the first for `None`.
fn word<'c>(call: &RuleCall<'c>, param: &str, words: &[&'c str]) -> Result<&'c str> {
    let given = match call.arg(param)?.is_none() {
        true => words.first().copied().unwrap_or_default(),
        false => call.text(param)?,
    };
    match words.contains(&given) {
        true => Ok(given),
        false => Err(wrong(
            call,
            format_args!("`{param}` is one of {words:?}, and not {given:?}"),
        )),
    }
}

/// Returns an error with the text unless a size is at least a number, or can be: then it is a guard.
fn at_least(call: &mut RuleCall<'_>, size: &Dim, least: i64, problem: impl Display) -> Result<()> {
    match call.env().at_least(size, least)? {
        true => Ok(()),
        false => Err(wrong(call, problem)),
    }
}

/// The size, or 0 where it is below.
fn not_negative(call: &mut RuleCall<'_>, size: Dim) -> Result<Dim> {
    match call.env().bounds(&size) {
        (Some(0..), _) => Ok(size),
        _ => size.max(0),
    }
}

/// Whether two shapes are equal, or can be: then it is a guard.
fn are_equal(call: &mut RuleCall<'_>, a: &[Dim], b: &[Dim]) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        let (low, high) = call.env().bounds(&(a - b)?);
        if low.is_some_and(|low| low > 0) || high.is_some_and(|high| high < 0) {
            return Ok(false);
        }
    }
    for (a, b) in a.iter().zip(b) {
        call.env().same(a, b)?;
    }
    Ok(true)
}

/// Returns an error unless two shapes are equal, or can be: then it is a guard.
fn require_equal(call: &mut RuleCall<'_>, a: &[Dim], b: &[Dim]) -> Result<()> {
    match are_equal(call, a, b)? {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!("the shapes {a:?} and {b:?} are not equal"),
        )),
    }
}

/// Returns an error unless the types of two tensors are equal.
fn require_one_type(call: &RuleCall<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<()> {
    match (a.dtype, b.dtype) {
        (Some(a), Some(b)) if a != b => Err(wrong(
            call,
            format_args!("the types {a} and {b} differ: convert one with `to_dtype`"),
        )),
        _ => Ok(()),
    }
}

/// Returns an error unless tensors have the type of another one.
fn require_type_of(call: &RuleCall<'_>, meta: &TensorMeta, params: &[&str]) -> Result<()> {
    for param in params {
        if let Some(other) = call.optional_tensor(param)? {
            require_one_type(call, meta, other)?;
        }
    }
    Ok(())
}

/// Returns an error unless one shape broadcasts to another, which stays as it is.
fn require_fits(call: &mut RuleCall<'_>, shape: &[Dim], into: &[Dim]) -> Result<()> {
    let both = call.broadcast(&[into, shape])?;
    require_equal(call, &both, into)
}

/// What the elements of a tensor have to be.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    Any,
    Fractions,
    /// Fractions of single or double precision.
    Single,
    /// Places of other elements.
    Places,
    /// Whole numbers of 64 bits.
    Long,
    Truths,
    WholeNumbers,
    /// Whole numbers or truths.
    Bits,
    /// Anything but truths.
    Numbers,
}

/// Returns an error if a tensor is of other elements.
fn require(call: &RuleCall<'_>, meta: &TensorMeta, elements: Elements) -> Result<()> {
    require_type(call, meta.dtype, elements)
}

/// Returns an error if an element type is another one.
fn require_type(call: &RuleCall<'_>, dtype: Option<DType>, elements: Elements) -> Result<()> {
    let Some(dtype) = dtype else {
        return Ok(());
    };
    let (fits, what) = match elements {
        Elements::Any => (true, "any elements"),
        Elements::Fractions => (dtype.is_floating_point(), "floats"),
        Elements::Single => (
            matches!(dtype, DType::F32 | DType::F64),
            "`float32` or `float64`",
        ),
        Elements::Places => (
            matches!(dtype, DType::I32 | DType::I64),
            "`int64` or `int32`",
        ),
        Elements::Long => (dtype == DType::I64, "`int64`"),
        Elements::Truths => (dtype == DType::Bool, "truth values"),
        Elements::WholeNumbers => (
            !dtype.is_floating_point() && dtype != DType::Bool,
            "whole numbers",
        ),
        Elements::Bits => (!dtype.is_floating_point(), "whole numbers or truths"),
        Elements::Numbers => (dtype != DType::Bool, "numbers"),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "{}: the tensor is of {dtype}, and not of {what}: convert it with `to_dtype`",
            call.function().name()
        ))),
    }
}
