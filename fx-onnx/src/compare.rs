//! How far two values are apart.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

/// The tensors and numbers of a value, in order.
fn numbers(value: &Value, all: &mut Vec<Vec<f64>>) -> Result<()> {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::List(items) | Value::Tuple(items) => left.extend(items.iter().rev()),
            Value::Dict(items) => left.extend(items.values().rev()),
            Value::None => {}
            value => match value.downcast_ref::<Tensor>() {
                Some(tensor) => all.push(tensor.to_vec()?),
                None => all.push(vec![
                    value
                        .to_string()
                        .parse::<f64>()
                        .unwrap_or(f64::from(u8::from(value.to_string() == "true"))),
                ]),
            },
        }
    }
    Ok(())
}

/// The largest difference of elements, relative to the largest element of their tensor.
///
/// # Errors
/// Returns an error if the values have other structures or shapes.
pub fn max_rel_err(a: &Value, b: &Value) -> Result<f64> {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    numbers(a, &mut one)?;
    numbers(b, &mut other)?;
    if one.len() != other.len() || one.iter().zip(&other).any(|(a, b)| a.len() != b.len()) {
        return Err(Error::msg(format_args!(
            "{} and {} do not compare",
            a.describe(),
            b.describe()
        )));
    }
    let mut most = 0f64;
    for (a, b) in one.iter().zip(&other) {
        let scale = a
            .iter()
            .filter(|x| x.is_finite())
            .fold(0f64, |m, x| m.max(x.abs()))
            .max(1e-6);
        for (x, y) in a.iter().zip(b) {
            let same = x == y || (x.is_nan() && y.is_nan());
            let apart = if same { 0.0 } else { (x - y).abs() / scale };
            most = if apart.is_nan() {
                f64::INFINITY
            } else {
                most.max(apart)
            };
        }
    }
    Ok(most)
}
