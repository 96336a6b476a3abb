//! Numbers of tensors and of sizes, as functions of a graph.
//!
//! Invariant: a number is what Python computes, or an error.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::{RuleCall, ShapeRule};
use fx_nn::tensor::Number;
use fx_nn::value::Sym;
use fx_nn::{Error, Result};

/// The only element of a tensor, as a whole number from `least` to `most`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3i64], 1)?;
/// assert_eq!(fx_torch::whole(&x, Some(0), None)?.concrete(), Some(3));
/// assert!(fx_torch::whole(&x, Some(0), Some(2)).is_err());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is not one element, or it is another number.
#[wrap(path = "fx_torch::whole")]
pub fn whole(x: &Tensor, least: Option<i64>, most: Option<i64>) -> Result<Int> {
    let number = match x.number()? {
        Number::Int(number) => number,
        Number::Bool(truth) => i64::from(truth),
        other => {
            return Err(Error::msg(format_args!("{other:?} is no whole number")));
        }
    };
    let is_below = least.is_some_and(|least| number < least);
    if is_below || most.is_some_and(|most| number > most) {
        let end = |end: Option<i64>| end.map_or_else(String::new, |end| end.to_string());
        return Err(Error::msg(format_args!(
            "a number of the data is {number}, and the program is for {}..={}",
            end(least),
            end(most)
        )));
    }
    Ok(Int::from(number))
}

/// The only element of a tensor, as a float.
///
/// # Errors
/// Returns an error if there is not one element.
#[wrap(path = "fx_torch::float")]
pub fn float(x: &Tensor) -> Result<Float> {
    Ok(Float::from(x.item()?))
}

/// Whether the only element of a tensor is not zero.
///
/// # Errors
/// Returns an error if there is not one element.
#[wrap(path = "fx_torch::truth")]
pub fn truth(x: &Tensor) -> Result<Bool> {
    Ok(Bool::from(x.item()? != 0.0))
}

/// A number of a run.
fn known<T: Copy + 'static>(number: Sym<T>) -> Result<T> {
    number
        .concrete()
        .ok_or_else(|| Error::msg("a number that only a run knows"))
}

/// The whole part of a number: towards zero.
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_torch::whole_part")]
pub fn whole_part(x: Float) -> Result<Int> {
    Ok(Int::from(known(x)? as i64))
}

/// The larger of two whole numbers, such as sizes.
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_torch::larger", commutative)]
pub fn larger(a: Int, b: Int) -> Result<Int> {
    Ok(Int::from(known(a)?.max(known(b)?)))
}

/// The smaller of two whole numbers, such as sizes.
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_torch::smaller", commutative)]
pub fn smaller(a: Int, b: Int) -> Result<Int> {
    Ok(Int::from(known(a)?.min(known(b)?)))
}

/// One of two whole numbers: `a` if the condition holds.
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_torch::chosen")]
pub fn chosen(condition: Bool, a: Int, b: Int) -> Result<Int> {
    Ok(if known(condition)? { a } else { b })
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::numbers::whole) => ShapeRule(|call| {
        let end = |name: &str| match call.arg(name)? {
            none if none.is_none() => Ok(None),
            _ => call.int(name).map(Some),
        };
        let (least, most) = (end("least")?, end("most")?);
        Ok(ValueMeta::Int(call.env().fresh(least.unwrap_or(i64::MIN / 2), most)?))
    }),
    fx_nn::function!(crate::numbers::float) => ShapeRule(|_| Ok(ValueMeta::Float(None))),
    fx_nn::function!(crate::numbers::truth) => ShapeRule(|_| Ok(ValueMeta::Bool(None))),
    fx_nn::function!(crate::numbers::whole_part) => ShapeRule(|call| match call.arg("x")? {
        ValueMeta::Float(Some(x)) => Ok(ValueMeta::Int((*x as i64).into())),
        _ => Ok(ValueMeta::Int(call.env().fresh(i64::MIN / 2, None)?)),
    }),
    fx_nn::function!(crate::numbers::larger) => ShapeRule(|call| two_sizes(call, true)),
    fx_nn::function!(crate::numbers::smaller) => ShapeRule(|call| two_sizes(call, false)),
    fx_nn::function!(crate::numbers::chosen) => ShapeRule(|call| {
        let (a, b) = (call.size("a")?, call.size("b")?);
        match call.arg("condition")? {
            ValueMeta::Bool(Some(true)) => Ok(ValueMeta::Int(a)),
            ValueMeta::Bool(Some(false)) => Ok(ValueMeta::Int(b)),
            _ => {
                let env = call.env();
                let ((low, high), (least, most)) = (env.bounds(&a), env.bounds(&b));
                let low = low.zip(least).map_or(i64::MIN / 2, |(a, b)| a.min(b));
                let high = high.zip(most).map(|(a, b)| a.max(b));
                Ok(ValueMeta::Int(env.fresh(low, high)?))
            }
        }
    }),
} }

/// One of two sizes, where their limits decide.
fn two_sizes(call: &mut RuleCall<'_>, is_larger: bool) -> Result<ValueMeta> {
    let (a, b) = (call.size("a")?, call.size("b")?);
    let (low, high) = (call.env().bounds(&a), call.env().bounds(&b));
    let is_above = |x: (Option<i64>, _), y: (_, Option<i64>)| matches!((x.0, y.1), (Some(x), Some(y)) if x >= y);
    let a_is_larger = match () {
        () if is_above(low, high) => Some(true),
        () if is_above(high, low) => Some(false),
        () => None,
    };
    Ok(ValueMeta::Int(match (a_is_larger, is_larger) {
        (Some(larger), _) => {
            if larger == is_larger {
                a
            } else {
                b
            }
        }
        (None, true) => a.max(b)?,
        (None, false) => a.min(b)?,
    }))
}
