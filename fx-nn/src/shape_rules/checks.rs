//! What rules ask of a call: its arguments, and what has to hold of them.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use crate::tensor::Number;

/// An error that names the function of the call.
pub(super) fn wrong(call: &RuleCall<'_>, problem: impl Display) -> Error {
    Error::msg(format_args!("{}: {problem}", call.function().name()))
}

/// The place of the dim that a parameter names.
pub(super) fn place(call: &RuleCall<'_>, param: &str, rank: usize) -> Result<usize> {
    call.place(call.int(param)?, rank)
}

/// The places of the dims that a parameter names, of an empty list none; `None` if it is `None`.
pub(super) fn named(call: &RuleCall<'_>, param: &str, rank: usize) -> Result<Option<Vec<usize>>> {
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
pub(super) fn count(call: &RuleCall<'_>, param: &str) -> Result<i64> {
    match call.int(param)? {
        number @ 0.. => Ok(number),
        number => Err(wrong(
            call,
            format_args!("`{param}` is 0 or above, and not {number}"),
        )),
    }
}

/// A number of its own kind, if it is known.
pub(super) fn kind(fake: &ValueMeta) -> Option<Number> {
    match fake {
        ValueMeta::Bool(truth) => truth.map(Number::Bool),
        ValueMeta::Int(dim) => dim.as_number().map(Number::Int),
        ValueMeta::Float(number) => number.map(Number::Float),
        _ => None,
    }
}

/// The number of a parameter; `None` if there is none, or a run decides it.
pub(super) fn number(call: &RuleCall<'_>, param: &str) -> Result<Option<f64>> {
    Ok(kind(call.arg(param)?).map(Number::as_f64))
}

/// Returns an error if a number is beyond an element type.
pub(super) fn require_held(call: &RuleCall<'_>, param: &str, dtype: Option<DType>) -> Result<()> {
    match (kind(call.arg(param)?), dtype) {
        (Some(number), Some(dtype)) => number.check(call.function().name(), dtype),
        _ => Ok(()),
    }
}

/// Returns an error that says what a number is unless it fits, or is not known.
pub(super) fn require_number(
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

pub(super) fn require_probability(call: &RuleCall<'_>, param: &str) -> Result<()> {
    require_number(call, param, "a probability in [0, 1]", |p| {
        (0.0..=1.0).contains(&p)
    })
}

/// Returns an error unless a tensor has so many dims.
pub(super) fn require_rank(
    call: &RuleCall<'_>,
    meta: &TensorMeta,
    ranks: impl RangeBounds<usize>,
) -> Result<()> {
    if ranks.contains(&meta.shape.len()) {
        return Ok(());
    }
    let wanted = match (ranks.start_bound(), ranks.end_bound()) {
        (Bound::Included(a), Bound::Included(b)) if a == b => a.to_string(),
        (Bound::Included(a), Bound::Included(b)) => format!("{a} to {b}"),
        (Bound::Included(a), _) => format!("{a} at least"),
        (_, Bound::Included(b)) => format!("{b} at most"),
        _ => "others".to_string(),
    };
    let dims = match meta.shape.len() {
        1 => "1 dim".to_string(),
        many => format!("{many} dims"),
    };
    Err(wrong(
        call,
        format_args!("the shape {:?} has {dims}, and not {wanted}", meta.shape),
    ))
}

/// A truth; `None` if a run decides it.
pub(super) fn truth(call: &RuleCall<'_>, param: &str) -> Result<Option<bool>> {
    Ok(match call.arg(param)? {
        ValueMeta::Bool(truth) => *truth,
        _ => None,
    })
}

/// One of the words that a parameter can be; the first for `None`.
pub(super) fn word<'c>(call: &RuleCall<'c>, param: &str, words: &[&'c str]) -> Result<&'c str> {
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
pub(super) fn at_least(
    call: &mut RuleCall<'_>,
    size: &Dim,
    least: i64,
    problem: impl Display,
) -> Result<()> {
    match call.env().at_least(size, least)? {
        true => Ok(()),
        false => Err(wrong(call, problem)),
    }
}

/// The whole quotient of a size, or an error that says of what; a guard if no number decides it.
pub(super) fn divided(
    call: &mut RuleCall<'_>,
    size: &Dim,
    by: impl Into<Dim>,
    what: &str,
) -> Result<Dim> {
    let quotient = call.env().divided(size, &by.into());
    quotient.map_err(|e| wrong(call, format_args!("{size} {what}: {e}")))
}

/// The size, or 0 where it is below.
pub(super) fn not_negative(call: &mut RuleCall<'_>, size: Dim) -> Result<Dim> {
    match call.env().bounds(&size) {
        (Some(0..), _) => Ok(size),
        _ => size.max(0),
    }
}

/// Whether two shapes are equal, or can be: then it is a guard.
pub(super) fn are_equal(call: &mut RuleCall<'_>, a: &[Dim], b: &[Dim]) -> Result<bool> {
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
pub(super) fn require_equal(call: &mut RuleCall<'_>, a: &[Dim], b: &[Dim]) -> Result<()> {
    match are_equal(call, a, b)? {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!("the shapes {a:?} and {b:?} are not equal"),
        )),
    }
}

/// Returns an error unless the types of two tensors are equal.
pub(super) fn require_one_type(call: &RuleCall<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<()> {
    match (a.dtype, b.dtype) {
        (Some(a), Some(b)) if a != b => Err(wrong(
            call,
            format_args!("the dtypes {a} and {b} differ: convert one with `to_dtype`"),
        )),
        _ => Ok(()),
    }
}

/// Returns an error unless tensors have the type of another one.
pub(super) fn require_type_of(
    call: &RuleCall<'_>,
    meta: &TensorMeta,
    params: &[&str],
) -> Result<()> {
    for param in params {
        if let Some(other) = call.optional_tensor(param)? {
            require_one_type(call, meta, other)?;
        }
    }
    Ok(())
}

/// Returns an error unless one shape broadcasts to another, which stays as it is.
pub(super) fn require_fits(call: &mut RuleCall<'_>, shape: &[Dim], into: &[Dim]) -> Result<()> {
    let both = call.broadcast(&[into, shape])?;
    require_equal(call, &both, into)
}

/// What the elements of a tensor have to be.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Elements {
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
pub(super) fn require(call: &RuleCall<'_>, meta: &TensorMeta, elements: Elements) -> Result<()> {
    require_type(call, meta.dtype, elements)
}

/// Returns an error if an element type is another one.
pub(super) fn require_type(
    call: &RuleCall<'_>,
    dtype: Option<DType>,
    elements: Elements,
) -> Result<()> {
    let Some(dtype) = dtype else {
        return Ok(());
    };
    let (fits, what) = match elements {
        Elements::Any => (true, "of any elements"),
        Elements::Fractions => (dtype.is_floating_point(), "floating point"),
        Elements::Single => (
            matches!(dtype, DType::F32 | DType::F64),
            "of `float32` or `float64`",
        ),
        Elements::Places => (
            matches!(dtype, DType::I32 | DType::I64),
            "of integers, `int64` or `int32`",
        ),
        Elements::Long => (dtype == DType::I64, "of integers of `int64`"),
        Elements::Truths => (dtype == DType::Bool, "of booleans"),
        Elements::WholeNumbers => (
            !dtype.is_floating_point() && dtype != DType::Bool,
            "of integers",
        ),
        Elements::Bits => (!dtype.is_floating_point(), "of integers or booleans"),
        Elements::Numbers => (dtype != DType::Bool, "of numbers"),
    };
    let remedy = match elements {
        Elements::Truths => "compare first, or convert it with `to_dtype`",
        _ => "convert it with `to_dtype`",
    };
    match fits {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!("the tensor is of {dtype}, and not {what}: {remedy}"),
        )),
    }
}
