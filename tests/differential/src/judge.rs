//! Whether a result is PyTorch's: integers, shapes and element types exactly, NaN and infinities in the same places,
//! floats within the tolerance that the line says.

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_nn::value::Value;

use crate::call::Outcome;
use crate::tensor::{Elements, Expected, elements};

/// What kind of difference it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The call panicked.
    Panic,
    /// Other elements, or another structure.
    Value,
    /// Another element type.
    DType,
    /// Another shape.
    Shape,
    /// One of the two returned an error, the other did not.
    Refusal,
    /// Another gradient, or none.
    Gradient,
}

/// A difference from PyTorch.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What kind it is.
    pub kind: Kind,
    /// What was expected and what was found.
    pub text: String,
    /// The first floats that differ: found, then expected.
    pub floats: Option<(f64, f64)>,
    /// How far PyTorch's float64 result moves if each input moves by a step of its type.
    pub spread: f64,
    /// Of a gradient: the element that it is the gradient of.
    pub input: Option<f64>,
}

impl Difference {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Difference {
            kind,
            text: text.into(),
            floats: None,
            spread: 0.0,
            input: None,
        }
    }

    /// Whether it is one of floats, of which this holds: found, then expected.
    pub fn floats_are(&self, holds: impl Fn(f64, f64) -> bool) -> bool {
        self.floats
            .is_some_and(|(found, expected)| holds(found, expected))
    }

    /// Whether the numbers differ by no more than this share of the expected one.
    pub fn differs_by(&self, share: f64) -> bool {
        self.floats_are(|found, expected| (found - expected).abs() <= share * expected.abs())
    }

    /// Whether the numbers are no further apart than this.
    pub fn is_less_than(&self, apart: f64) -> bool {
        self.floats_are(|found, expected| (found - expected).abs() <= apart)
    }

    /// Whether the numbers are no further apart than rounded inputs make them.
    pub fn is_of_rounding(&self) -> bool {
        self.floats_are(|found, expected| (found - expected).abs() <= 4.0 * self.spread)
    }

    /// Whether fx's number is finite, and PyTorch's overflowed on the way.
    pub fn overflowed_in_pytorch(&self) -> bool {
        self.floats_are(|found, expected| found.is_finite() && !expected.is_finite())
    }

    /// Whether it is fx that returned an error, of a difference in refusals.
    pub fn is_ours(&self) -> bool {
        self.kind == Kind::Refusal && self.text.starts_with("refused")
    }
}

/// The first difference of a result from what PyTorch gave.
pub(crate) fn judge(outcome: &Outcome, result: &Result<Value>) -> Option<Difference> {
    match (outcome, result) {
        (Outcome::Refused, Err(_)) => None,
        (Outcome::Refused, Ok(value)) => Some(Difference::new(
            Kind::Refusal,
            format!("PyTorch refuses it, found {}", shown(value)),
        )),
        (_, Err(error)) => Some(Difference::new(Kind::Refusal, format!("refused: {error}"))),
        (Outcome::Value(expected), Ok(value)) => compare(expected, value),
        (
            Outcome::Random {
                shape,
                dtype,
                least,
                largest,
            },
            Ok(value),
        ) => random(shape, *dtype, *least..=*largest, value),
        (Outcome::Gradients(_), Ok(_)) => None,
    }
}

fn shown(value: &Value) -> String {
    match value.downcast_ref::<Tensor>() {
        Some(tensor) => match elements(tensor) {
            Ok((shape, dtype, elements)) => {
                let mut text = match elements {
                    Elements::Whole(all) => format!("{all:?}"),
                    Elements::Float(all) => format!("{all:?}"),
                };
                text.truncate(300);
                format!("{dtype} {shape:?} {text}")
            }
            Err(error) => format!("a tensor without data: {error}"),
        },
        None => value.to_string(),
    }
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::List(items) | Value::Tuple(items) => Some(items),
        _ => None,
    }
}

fn compare(expected: &Expected, value: &Value) -> Option<Difference> {
    let other = || {
        Some(Difference::new(
            Kind::Value,
            format!("expected {expected:?}, found {}", shown(value)),
        ))
    };
    match expected {
        Expected::None if matches!(value, Value::None) => None,
        Expected::Bool(a) if matches!(value, Value::Bool(b) if a == b) => None,
        Expected::Int(a) if matches!(value, Value::Int(b) if a == b) => None,
        Expected::Float(a) => match value {
            Value::Float(b) if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) => None,
            _ => other(),
        },
        Expected::List(all) => match items(value) {
            Some(found) if found.len() == all.len() => {
                all.iter().zip(found).find_map(|(a, b)| compare(a, b))
            }
            _ => other(),
        },
        Expected::Tensor {
            shape,
            dtype,
            elements,
            tolerance,
            spread,
        } => match value.downcast_ref::<Tensor>() {
            Some(tensor) => {
                compare_tensors(shape, *dtype, elements, *tolerance, tensor).map(|difference| {
                    Difference {
                        spread: *spread,
                        ..difference
                    }
                })
            }
            None => other(),
        },
        _ => other(),
    }
}

fn compare_tensors(
    shape: &[usize],
    dtype: DType,
    expected: &Elements,
    tolerance: f64,
    tensor: &Tensor,
) -> Option<Difference> {
    let found = match elements(tensor) {
        Ok(found) => found,
        Err(error) => return Some(Difference::new(Kind::Value, error.to_string())),
    };
    if found.0 != shape {
        return Some(Difference::new(
            Kind::Shape,
            format!("expected {shape:?}, found {:?}", found.0),
        ));
    }
    if found.1 != dtype {
        return Some(Difference::new(
            Kind::DType,
            format!("expected {dtype}, found {}", found.1),
        ));
    }
    let at = match (expected, &found.2) {
        (Elements::Whole(a), Elements::Whole(b)) => a.iter().zip(b).position(|(a, b)| a != b),
        (Elements::Float(a), Elements::Float(b)) => {
            a.iter().zip(b).position(|(a, b)| !close(*a, *b, tolerance))
        }
        _ => Some(0),
    }?;
    let floats = match (expected, &found.2) {
        (Elements::Float(a), Elements::Float(b)) => Some((b[at], a[at])),
        _ => None,
    };
    let text = match (expected, &found.2, floats) {
        (_, _, Some((b, a))) => {
            format!("element {at} is {b:e}, expected {a:e}, tolerance {tolerance:e}")
        }
        (Elements::Whole(a), Elements::Whole(b), _) => {
            format!("element {at} is {}, expected {}", b[at], a[at])
        }
        _ => "other elements".to_string(),
    };
    Some(Difference {
        floats,
        ..Difference::new(Kind::Value, text)
    })
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    a == b || (a.is_finite() && b.is_finite() && (a - b).abs() <= tolerance)
}

fn random(
    shape: &[usize],
    dtype: DType,
    range: std::ops::RangeInclusive<f64>,
    value: &Value,
) -> Option<Difference> {
    let Some(tensor) = value.downcast_ref::<Tensor>() else {
        return Some(Difference::new(
            Kind::Value,
            "expected a tensor of random numbers",
        ));
    };
    let anything = match elements(tensor) {
        Ok((_, _, anything)) => anything,
        Err(error) => return Some(Difference::new(Kind::Value, error.to_string())),
    };
    let outside = match &anything {
        Elements::Float(all) => all.iter().find(|x| !range.contains(x)).copied(),
        Elements::Whole(_) => None,
    };
    let shapes = compare_tensors(shape, dtype, &anything, f64::INFINITY, tensor);
    shapes.or_else(|| {
        let x = outside?;
        Some(Difference::new(
            Kind::Value,
            format!("a random number {x:e} is outside of {range:?}"),
        ))
    })
}
