//! What a program gives, and whether two paths give the same.
//!
//! Invariant: how far numbers may be apart is measured, by runs whose numbers are moved by about their last bit.

use fx_differential::{Elements, elements};
use fx_nn::prelude::*;
use fx_nn::value::Value;
use fx_nn::{Error, Result};

use crate::noise::epsilon;

/// A value without structure.
#[derive(Debug, Clone)]
pub enum Leaf {
    /// A tensor.
    Tensor(Vec<usize>, DType, Elements),
    /// A number that is no tensor.
    Number(f64),
    /// Another value, as text.
    Text(String),
}

/// The leaves of a value, with the form of their structure.
///
/// # Errors
/// Returns an error if a tensor has no data.
pub fn leaves(value: &Value, out: &mut Vec<Leaf>, form: &mut String) -> Result<()> {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            form.push(if matches!(value, Value::List(_)) {
                '['
            } else {
                '('
            });
            items.iter().try_for_each(|item| leaves(item, out, form))?;
            form.push(')');
        }
        Value::Dict(items) => {
            for (key, item) in items.iter() {
                form.push_str(key);
                leaves(item, out, form)?;
            }
        }
        Value::Int(n) => out.push(Leaf::Number(*n as f64)),
        Value::Float(x) => out.push(Leaf::Number(*x)),
        Value::Bool(truth) => out.push(Leaf::Number(f64::from(u8::from(*truth)))),
        value => match value.downcast_ref::<Tensor>() {
            Some(x) => {
                let (shape, dtype, elements) = elements(x)?;
                out.push(Leaf::Tensor(shape, dtype, elements));
            }
            None => out.push(Leaf::Text(value.to_string())),
        },
    }
    Ok(())
}

/// The tensors of a value.
pub(crate) fn tensors(value: &Value) -> Vec<Tensor> {
    match value {
        Value::List(items) | Value::Tuple(items) => items.iter().flat_map(tensors).collect(),
        Value::Dict(items) => items.values().flat_map(tensors).collect(),
        value => value
            .downcast_ref::<Tensor>()
            .into_iter()
            .cloned()
            .collect(),
    }
}

/// What a run gives: its leaves and their structure.
#[derive(Debug, Clone)]
pub struct Given {
    /// The values.
    pub leaves: Vec<Leaf>,
    /// Their structure; empty where a format has none.
    pub form: String,
}

impl Given {
    /// Of a value.
    ///
    /// # Errors
    /// Returns an error if a tensor has no data.
    pub fn of(value: &Value) -> Result<Self> {
        let (mut found, mut form) = (Vec::new(), String::new());
        leaves(value, &mut found, &mut form)?;
        Ok(Given {
            leaves: found,
            form,
        })
    }

    /// The leaves alone.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.form.clear();
        self
    }
}

fn floats(elements: &Elements) -> Vec<f64> {
    match elements {
        Elements::Whole(all) => all.iter().map(|n| *n as f64).collect(),
        Elements::Float(all) => all.clone(),
    }
}

/// Whole numbers beyond these wrap around in one engine, and not in another one.
pub(crate) const LARGEST_WHOLE: u64 = 1 << 53;

/// The largest finite number of a `float16`.
const LARGEST_HALF: f64 = 65504.0;

/// Gradients beyond this are those of singular matrices and poles.
const LARGEST_GRADIENT: f64 = 1e12;

/// How far each element of each leaf may be from what a program gives.
#[derive(Debug, Clone)]
pub struct Tolerance(Vec<Vec<f64>>);

impl Tolerance {
    /// Measured by runs with noise.
    pub fn of(given: &Given, moved: &[Given]) -> Self {
        let of_leaf = |(at, leaf): (usize, &Leaf)| {
            let Leaf::Tensor(_, dtype, elements) = leaf else {
                return Vec::new();
            };
            let own = floats(elements);
            let is_float = dtype.is_floating_point();
            let mut most: Vec<f64> = own
                .iter()
                .map(|x| {
                    if is_float {
                        8.0 * epsilon(*dtype) * x.abs() + smallest(*dtype)
                    } else {
                        0.0
                    }
                })
                .map(|x| if x.is_finite() { x } else { 0.0 })
                .collect();
            for other in moved {
                let Some(Leaf::Tensor(_, _, elements)) = other.leaves.get(at) else {
                    return vec![f64::INFINITY; own.len()];
                };
                let other = floats(elements);
                if other.len() != own.len() {
                    return vec![f64::INFINITY; own.len()];
                }
                for ((most, a), b) in most.iter_mut().zip(&own).zip(&other) {
                    if same(*a, *b, 0.0) {
                        continue;
                    }
                    // A run of wide numbers has some that the type has not.
                    let is_beyond = *dtype == DType::F16 && b.abs() > LARGEST_HALF;
                    let apart = if is_beyond {
                        f64::INFINITY
                    } else {
                        (a - b).abs()
                    };
                    let apart = if apart.is_finite() && is_float {
                        30.0 * apart
                    } else {
                        f64::INFINITY
                    };
                    *most = most.max(apart);
                }
            }
            most
        };
        Tolerance(given.leaves.iter().enumerate().map(of_leaf).collect())
    }

    /// The same where each number is a sum of parts around 1 that noise does not move: an element may be as far off as
    /// the largest one of its tensor is exact in a type.
    #[must_use]
    pub fn of_sums(mut self, given: &Given, within: DType) -> Self {
        for (most, leaf) in self.0.iter_mut().zip(&given.leaves) {
            let Leaf::Tensor(_, _, elements) = leaf else {
                continue;
            };
            let sizes = floats(elements).into_iter().map(f64::abs);
            let largest = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
            for (most, own) in most.iter_mut().zip(floats(elements)) {
                *most = most.max(50.0 * epsilon(within) * largest.max(1.0));
                // What 0 times infinity is depends on the steps, and so does what is next to infinity.
                let is_beyond = within == DType::F16 && own.abs() + *most > LARGEST_HALF;
                if !own.is_finite() || largest > LARGEST_GRADIENT || is_beyond {
                    *most = f64::INFINITY;
                }
            }
        }
        self
    }

    /// The same, and anything for what differs in other runs.
    #[must_use]
    pub(crate) fn open_to(&self, given: &Given, others: &[Given]) -> Self {
        let mut open = self.clone();
        for other in others {
            let leaves = given.leaves.iter().zip(&other.leaves);
            for ((own, other), most) in leaves.zip(&mut open.0) {
                let (Leaf::Tensor(_, _, own), Leaf::Tensor(_, _, other)) = (own, other) else {
                    continue;
                };
                let pairs = floats(own).into_iter().zip(floats(other));
                for ((own, other), most) in pairs.zip(most) {
                    if !same(own, other, 0.0) {
                        *most = f64::INFINITY;
                    }
                }
            }
        }
        open
    }

    /// The same for gradients, and anything for those of elements that are not finite.
    ///
    /// # Errors
    /// Returns an error if an input has no data.
    pub(crate) fn open_at_limits(mut self, inputs: &[Tensor]) -> Result<Self> {
        for (most, input) in self.0.iter_mut().zip(inputs) {
            for (most, number) in most.iter_mut().zip(input.to_vec()?) {
                if !number.is_finite() {
                    *most = f64::INFINITY;
                }
            }
        }
        Ok(self)
    }

    /// Whether a shape differs between runs with noise: nothing can be said then.
    pub fn is_unstable(given: &Given, moved: &[Given]) -> bool {
        let shapes = |given: &Given| -> Vec<Vec<usize>> {
            let shape = |leaf: &Leaf| match leaf {
                Leaf::Tensor(shape, ..) => shape.clone(),
                _ => Vec::new(),
            };
            given.leaves.iter().map(shape).collect()
        };
        let overflows = |leaf: &Leaf| match leaf {
            Leaf::Tensor(_, _, Elements::Whole(all)) => {
                all.iter().any(|n| n.unsigned_abs() > LARGEST_WHOLE)
            }
            _ => false,
        };
        given.leaves.iter().any(overflows)
            || moved.iter().any(|other| shapes(other) != shapes(given))
    }
}

/// Numbers that are lost where a path flushes them, or adds in another order.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-300,
        DType::F16 => 1e-6,
        DType::BF16 => 1e-30,
        _ => 1e-35,
    }
}

fn same(a: f64, b: f64, tolerance: f64) -> bool {
    if tolerance == f64::INFINITY || (a.is_nan() && b.is_nan()) {
        return true;
    }
    a == b || (a.is_finite() && b.is_finite() && (a - b).abs() <= tolerance)
}

/// The first difference, or how many values were compared.
///
/// # Errors
/// Returns an error that says what differs.
pub fn compare(expected: &Given, tolerance: &Tolerance, found: &Given) -> Result<usize> {
    let differ = |text: String| Err(Error::msg(text));
    if !found.form.is_empty() && !expected.form.is_empty() && found.form != expected.form {
        return differ(format!(
            "the structure is {}, expected {}",
            found.form, expected.form
        ));
    }
    if expected.leaves.len() != found.leaves.len() {
        return differ(format!(
            "{} values, expected {}",
            found.leaves.len(),
            expected.leaves.len()
        ));
    }
    for (at, (a, b)) in expected.leaves.iter().zip(&found.leaves).enumerate() {
        match (a, b) {
            (Leaf::Tensor(shape, dtype, a), Leaf::Tensor(found_shape, found_dtype, b)) => {
                if shape != found_shape {
                    return differ(format!(
                        "result {at}: shape {found_shape:?}, expected {shape:?}"
                    ));
                }
                if dtype != found_dtype {
                    return differ(format!("result {at}: {found_dtype}, expected {dtype}"));
                }
                let tolerances = &tolerance.0[at];
                let pairs = floats(a).into_iter().zip(floats(b)).zip(tolerances);
                for (element, ((a, b), tolerance)) in pairs.enumerate() {
                    if !same(a, b, *tolerance) {
                        return differ(format!(
                            "result {at}, element {element} is {b:e}, expected {a:e}, tolerance {tolerance:e}"
                        ));
                    }
                }
            }
            (Leaf::Number(a), Leaf::Number(b)) if same(*a, *b, 0.0) => {}
            // A format whose numbers are tensors.
            (Leaf::Number(a), Leaf::Tensor(shape, _, b))
                if found.form.is_empty() && shape.is_empty() =>
            {
                let b = floats(b);
                if !same(*a, b[0], 0.0) {
                    return differ(format!("result {at} is {}, expected {a}", b[0]));
                }
            }
            (Leaf::Text(a), Leaf::Text(b)) if a == b => {}
            (a, b) => return differ(format!("result {at} is {b:?}, expected {a:?}")),
        }
    }
    Ok(expected.leaves.len())
}
