//! `Closeness`: how far the numbers of two tensors, or of two structures of them, are apart.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::value::data::TensorData;
use crate::value::value::Value;

/// How far two tensors are apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Closeness {
    /// Whether every element equals the expected one or is within `atol + rtol · |expected|` of it;
    /// two NaNs are not close.
    pub close: bool,
    /// The largest difference.
    pub max_abs: f64,
    /// The largest difference relative to the expected element's size.
    pub max_rel: f64,
    /// How many elements are not close.
    pub wrong: usize,
    /// Where the largest difference is, and both elements there.
    pub worst: Option<(Vec<usize>, f64, f64)>,
}

impl fmt::Display for Closeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.max_abs == 0.0 && self.wrong == 0 {
            return f.write_str("equal");
        }
        match self.close {
            true => f.write_str("close: elements differ")?,
            false => write!(f, "not close: {} elements differ", self.wrong)?,
        }
        write!(
            f,
            ", at most by {:.3e} ({:.3e} relative)",
            self.max_abs, self.max_rel
        )?;
        match &self.worst {
            Some((at, found, expected)) => {
                write!(f, ", at {at:?}: {found} where {expected} is expected")
            }
            None => Ok(()),
        }
    }
}

impl Closeness {
    /// Compares two tensors' elements.
    ///
    /// ```
    /// use fx_core::passes::Closeness;
    /// use fx_core::tensor::TensorData;
    /// use fx_core::value::DType;
    /// let bytes = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
    /// let expected = TensorData::new("my_crate::Array", DType::F32, vec![2], bytes([1.0, 1.0]))?;
    /// let found = TensorData::new("my_crate::Array", DType::F32, vec![2], bytes([1.0, 1.5]))?;
    /// let closeness = Closeness::between(&found, &expected, 1e-5, 1e-8)?;
    /// assert_eq!(closeness.worst, Some((vec![1], 1.5, 1.0)));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the shapes differ, or elements cannot be read.
    pub fn between(
        found: &TensorData<'_>,
        expected: &TensorData<'_>,
        rtol: f64,
        atol: f64,
    ) -> Result<Closeness> {
        if found.shape() != expected.shape() {
            let shapes = ErrorKind::Shapes {
                found: found.shape().to_vec(),
                expected: expected.shape().to_vec(),
            };
            return Err(shapes.into());
        }
        let mut closeness = Closeness {
            close: true,
            max_abs: 0.0,
            max_rel: 0.0,
            wrong: 0,
            worst: None,
        };
        let pairs = found.elements()?.zip(expected.elements()?);
        for (at, (a, b)) in pairs.enumerate() {
            closeness.add(a, b, rtol, atol, || place(at, expected.shape()));
        }
        Ok(closeness)
    }

    fn add(&mut self, a: f64, b: f64, rtol: f64, atol: f64, place: impl FnOnce() -> Vec<usize>) {
        let error = if a == b { 0.0 } else { (a - b).abs() };
        // Equal infinities are close; an infinity on one side only, or NaN, never is.
        let close = a == b || (error.is_finite() && error <= atol + rtol * b.abs());
        if !close {
            self.wrong += 1;
            self.close = false;
        }
        let relative = if error == 0.0 { 0.0 } else { error / b.abs() };
        self.max_rel = self.max_rel.max(relative);
        // NaN is worse than any number, and the first one is kept.
        let worse = error > self.max_abs || (error.is_nan() && !self.max_abs.is_nan());
        if worse {
            self.max_abs = error;
            self.worst = Some((place(), a, b));
        }
    }
}

/// The index of the `at`-th element, row-major.
fn place(mut at: usize, dims: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = dims
        .iter()
        .rev()
        .map(|size| {
            let i = at % size;
            at /= size;
            i
        })
        .collect();
    index.reverse();
    index
}

/// Why two values are not close; `None` if they are. Structures are compared leaf by leaf; equal
/// bytes are close whatever they are, including NaN.
pub(crate) fn difference(
    found: &Value,
    expected: &Value,
    rtol: f64,
    atol: f64,
) -> Option<Difference> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    found.for_each(&mut |leaf| ours.push(leaf));
    expected.for_each(&mut |leaf| theirs.push(leaf));
    if ours.len() != theirs.len() {
        return Some(Difference::Told(format!(
            "{} values where {} are expected",
            ours.len(),
            theirs.len()
        )));
    }
    let mut pairs = ours.iter().zip(&theirs);
    pairs.find_map(|(a, b)| leaf_difference(a, b, rtol, atol))
}

/// Why two values are not close.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Difference {
    /// In numbers.
    Numbers(Closeness),
    /// In words.
    Told(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Numbers(closeness) => closeness.fmt(f),
            Difference::Told(text) => f.write_str(text),
        }
    }
}

fn leaf_difference(found: &Value, expected: &Value, rtol: f64, atol: f64) -> Option<Difference> {
    if let (Some(a), Some(b)) = (found.as_object(), expected.as_object()) {
        if a.object_id().is_some() && a.object_id() == b.object_id() {
            return None;
        }
        let compared = a.to_data().and_then(|a| {
            let b = b.to_data()?;
            if a.dtype() != b.dtype() {
                return Err(Error::msg(format_args!(
                    "{} where {} is expected",
                    a.dtype(),
                    b.dtype()
                )));
            }
            if a.shape() == b.shape() && a.bytes()? == b.bytes()? {
                return Ok(None);
            }
            let closeness = Closeness::between(&a, &b, rtol, atol)?;
            Ok((!closeness.close).then_some(Difference::Numbers(closeness)))
        });
        return match compared {
            Ok(difference) => difference,
            Err(error) => Some(Difference::Told(error.to_string())),
        };
    }
    let is_close = match (found, expected) {
        (Value::Float(a), Value::Float(b)) => {
            a.to_bits() == b.to_bits() || a == b || (a - b).abs() <= atol + rtol * b.abs()
        }
        // The contents of a structure are compared separately.
        (a, b) if a.is_container() => a.describe() == b.describe(),
        (a, b) => a.describe() == b.describe() && a.to_string() == b.to_string(),
    };
    (!is_close).then(|| Difference::Told(format!("{found} where {expected} is expected")))
}
