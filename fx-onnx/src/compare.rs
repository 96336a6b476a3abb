//! How far two values are apart.

use std::hash::{Hash, Hasher};

use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use rustc_hash::FxHasher;

use crate::texts::Texts;

/// The elements of a tensor, or a number, with its type.
type Numbers = (DType, Vec<f64>);

/// A number that stands for a text: that of another text is most likely another one.
fn number_of(text: &str) -> f64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    (hasher.finish() >> 12) as f64
}

/// The tensors, texts and numbers of a value, in order.
fn numbers(value: &Value, all: &mut Vec<Numbers>) -> Result<()> {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::List(items) | Value::Tuple(items) => left.extend(items.iter().rev()),
            Value::Dict(items) => left.extend(items.values().rev()),
            Value::None => {}
            Value::Bool(truth) => all.push((DType::Bool, vec![f64::from(u8::from(*truth))])),
            Value::Int(number) => all.push((DType::I64, vec![*number as f64])),
            Value::Float(number) => all.push((DType::F64, vec![*number])),
            Value::Str(text) => all.push((DType::U8, vec![number_of(text)])),
            value => match (
                value.downcast_ref::<Tensor>(),
                value.downcast_ref::<Texts>(),
            ) {
                (Some(tensor), _) => all.push((tensor.dtype()?, tensor.to_vec()?)),
                (None, Some(texts)) => {
                    let items = texts.items()?.iter();
                    all.push((DType::U8, items.map(|text| number_of(text)).collect()));
                }
                (None, None) => {
                    return Err(Error::msg(format_args!(
                        "{} is neither a tensor nor a number",
                        value.describe()
                    )));
                }
            },
        }
    }
    Ok(())
}

/// The largest difference of elements, relative to the largest of `a`.
fn rel_err(a: &[f64], b: &[f64]) -> f64 {
    let finite = a.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1e-6f64, |most, x| most.max(x.abs()));
    a.iter().zip(b).fold(0.0, |most, (x, y)| {
        let same = x == y || (x.is_nan() && y.is_nan());
        let apart = if same { 0.0 } else { (x - y).abs() / scale };
        if apart.is_nan() {
            f64::INFINITY
        } else {
            f64::max(most, apart)
        }
    })
}

/// Both types of each tensor or number of two values, and their largest difference, relative to the largest element.
///
/// # Errors
/// Returns an error if the values have other structures or shapes.
pub(crate) fn rel_errs(a: &Value, b: &Value) -> Result<Vec<([DType; 2], f64)>> {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    numbers(a, &mut one)?;
    numbers(b, &mut other)?;
    let mut pairs = one.iter().zip(&other);
    if one.len() != other.len() || pairs.any(|((_, a), (_, b))| a.len() != b.len()) {
        return Err(Error::msg(format_args!(
            "{} and {} do not compare",
            a.describe(),
            b.describe()
        )));
    }
    let pairs = one.iter().zip(&other);
    let errors = pairs.map(|((own, a), (back, b))| ([*own, *back], rel_err(a, b)));
    Ok(errors.collect())
}

/// The largest difference of elements, relative to the largest element of their tensor.
///
/// # Errors
/// Returns an error if the values have other structures or shapes.
pub fn max_rel_err(a: &Value, b: &Value) -> Result<f64> {
    let errors = rel_errs(a, b)?.into_iter().map(|(_, error)| error);
    Ok(errors.fold(0.0, f64::max))
}
