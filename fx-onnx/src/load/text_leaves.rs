//! Functions of text, as leaves that run on the host: what finds texts, compares them, and makes others of them.
//!
//! Invariant: a leaf gives what ONNX Runtime does, and is written back as operators of ONNX.

use std::sync::Arc;

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::{RuleCall, ShapeRule};
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};
use indexmap::IndexMap;

use crate::texts::Texts;

/// The places of the elements of one of several tensors of text, counted through all of them. What moves elements of
/// tensors is done to places, and [`text_take`] gives the texts there.
///
/// ```
/// use fx_onnx::{Texts, text_places};
/// let (a, b) = (Texts::from(["x", "y"]), Texts::from(["z"]));
/// assert_eq!(text_places(&[a, b], 1)?.to_vec()?, [2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no tensor `at` this place.
#[wrap(path = "fx_onnx::text_places")]
pub fn text_places(all: &[Texts], at: i64) -> Result<Tensor> {
    let own = usize::try_from(at).ok().filter(|at| *at < all.len());
    let own = own.ok_or_else(|| no_texts(at, all.len()))?;
    let mut first = 0;
    for before in &all[..own] {
        first += before.items()?.len() as i64;
    }
    let count = all[own].items()?.len() as i64;
    let places: Vec<i64> = (first..first + count).collect();
    Tensor::from_vec(places, all[own].dims()?.to_vec())
}

fn no_texts(at: i64, count: usize) -> Error {
    Error::msg(format_args!(
        "text_places: there is no tensor {at} among {count}"
    ))
}

/// The texts at places, counted through all tensors; a negative place counts from the end.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Texts, text_take};
/// let places = Tensor::from_vec(vec![2i64, 0], 2)?;
/// let taken = text_take(&[Texts::from(["x", "y"]), Texts::from(["z"])], &places)?;
/// assert_eq!(taken, Texts::from(["z", "x"]));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such place.
#[wrap(path = "fx_onnx::text_take")]
pub fn text_take(all: &[Texts], places: &Tensor) -> Result<Texts> {
    let lists = all.iter().map(Texts::items).collect::<Result<Vec<_>>>()?;
    let flat: Vec<&Arc<str>> = lists.into_iter().flatten().collect();
    let items = places.to_vec()?.into_iter().map(|at| {
        let at = at as i64;
        let from_start = if at < 0 { at + flat.len() as i64 } else { at };
        let text = usize::try_from(from_start).ok().and_then(|at| flat.get(at));
        text.map(|text| Arc::clone(text)).ok_or_else(|| {
            Error::msg(format_args!(
                "text_take: there is no place {at} among {} texts",
                flat.len()
            ))
        })
    });
    Texts::new(items.collect::<Result<Vec<_>>>()?, places.dims()?.to_vec())
}

/// The place of each text among words, that of the first of equal ones; -1 for one that is not among them.
///
/// ```
/// use fx_onnx::{Texts, text_ids};
/// let ids = text_ids(&Texts::from(["b", "?"]), &Texts::from(["a", "b"]))?;
/// assert_eq!(ids.to_vec()?, [1.0, -1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_onnx::text_ids")]
pub fn text_ids(x: &Texts, words: &Texts) -> Result<Tensor> {
    let ids = (x.items()?.iter()).map(|text| Ok(words.place_of(text)?.unwrap_or(-1)));
    Tensor::from_vec(ids.collect::<Result<Vec<i64>>>()?, x.dims()?.to_vec())
}

/// Whether texts are equal, each with its counterpart; dims of size 1 are repeated.
///
/// ```
/// use fx_onnx::{Texts, text_equal};
/// let is = text_equal(&Texts::from(["a", "b"]), &Texts::from(["b"]))?;
/// assert_eq!(is.to_vec()?, [0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit.
#[wrap(path = "fx_onnx::text_equal")]
pub fn text_equal(x: &Texts, y: &Texts) -> Result<Tensor> {
    let (pairs, shape) = pairs("text_equal", x, y)?;
    let is: Vec<bool> = pairs.into_iter().map(|(a, b)| a == b).collect();
    truths(is)?.reshape(shape)
}

/// Each text with its counterpart behind it; dims of size 1 are repeated. ONNX's `StringConcat`.
///
/// ```
/// use fx_onnx::{Texts, text_concat};
/// let both = text_concat(&Texts::from(["a", "b"]), &Texts::from([".txt"]))?;
/// assert_eq!(both, Texts::from(["a.txt", "b.txt"]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit.
#[wrap(path = "fx_onnx::text_concat")]
pub fn text_concat(x: &Texts, y: &Texts) -> Result<Texts> {
    let (pairs, shape) = pairs("text_concat", x, y)?;
    Texts::new(pairs.into_iter().map(|(a, b)| format!("{a}{b}")), shape)
}

/// Words of a row without those that are to be left out, in lower or upper case. ONNX's `StringNormalizer`.
///
/// `x` is a row, or a matrix of one. `case` is `"LOWER"`, `"UPPER"` or `"NONE"`. If nothing is left, that is an empty text.
/// The `locale` is that of the file, where it says one, and is only written back: letters change by Unicode's rules.
///
/// ```
/// use fx_onnx::{Texts, text_normalize};
/// let left = text_normalize(&Texts::from(["The", "Sun"]), "LOWER", &Texts::from(["the"]), false, "")?;
/// assert_eq!(left, Texts::from(["sun"]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if it has other dims, or the case is another one.
#[wrap(path = "fx_onnx::text_normalize")]
pub fn text_normalize(
    x: &Texts,
    case: &str,
    left_out: &Texts,
    is_case_sensitive: bool,
    locale: &str,
) -> Result<Texts> {
    let _ = locale;
    let is_matrix = match x.dims()? {
        [_] => false,
        [1, _] => true,
        other => {
            return Err(Error::msg(format_args!(
                "text_normalize: a row of words is expected, or a matrix of one, and not {other:?}"
            )));
        }
    };
    let in_case: fn(&str) -> String = match case {
        "LOWER" => str::to_lowercase,
        "UPPER" => str::to_uppercase,
        "NONE" => str::to_string,
        other => {
            return Err(Error::msg(format_args!(
                "text_normalize: the case is {other:?}, and there are \"LOWER\", \"UPPER\" and \"NONE\""
            )));
        }
    };
    let compared = |text: &str| match is_case_sensitive {
        true => text.to_string(),
        false => text.to_lowercase(),
    };
    let left_out: rustc_hash::FxHashSet<String> = left_out
        .items()?
        .iter()
        .map(|word| compared(word))
        .collect();
    let kept = x
        .items()?
        .iter()
        .filter(|word| !left_out.contains(&compared(word)));
    let mut kept: Vec<String> = kept.map(|word| in_case(word)).collect();
    if kept.is_empty() {
        kept.push(String::new());
    }
    let count = kept.len();
    match is_matrix {
        true => Texts::new(kept, [1, count]),
        false => Texts::new(kept, [count]),
    }
}

/// Numbers as text, as ONNX Runtime writes them.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Texts, text_of};
/// let x = Tensor::from_vec(vec![1.5f32, 2.0], 2)?;
/// assert_eq!(text_of(&x)?, Texts::from(["1.5", "2"]));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_onnx::text_of")]
pub fn text_of(x: &Tensor) -> Result<Texts> {
    let dims = x.dims()?.to_vec();
    let digits = match x.dtype()? {
        dtype if dtype.is_floating_point() => 8,
        // Whole numbers may be larger than a double holds.
        dtype @ (DType::I64 | DType::U64) => {
            let data = Object::to_data(x)?;
            let bytes = data.bytes()?;
            let numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| match dtype {
                DType::U64 => u64::from_le_bytes(*bytes).to_string(),
                _ => i64::from_le_bytes(*bytes).to_string(),
            });
            return Texts::new(numbers.collect::<Vec<String>>(), dims);
        }
        _ => 0,
    };
    let all = x.to_vec()?;
    Texts::new(all.into_iter().map(|number| written(number, digits)), dims)
}

/// A number with so many digits at most, as C's `%g` writes it; 0 for whole numbers.
fn written(number: f64, digits: usize) -> String {
    if digits == 0 {
        return format!("{number}");
    }
    if number.is_nan() {
        return "NaN".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "INF" } else { "-INF" }.to_string();
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let places = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{number:.places$}"))
}

/// The numbers that texts say.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Texts, text_numbers};
/// assert_eq!(text_numbers(&Texts::from(["1.5", "-2e3"]), DType::F32)?.to_vec()?, [1.5, -2000.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error that names a text which is no number.
#[wrap(path = "fx_onnx::text_numbers")]
pub fn text_numbers(x: &Texts, dtype: DType) -> Result<Tensor> {
    let dims = x.dims()?.to_vec();
    let wrong = |text: &str| Error::msg(format_args!("text_numbers: {text:?} is no number"));
    if !dtype.is_floating_point() {
        let numbers = x.items()?.iter().map(|text| {
            let (text, whole) = (text.trim(), text.trim().parse::<i64>());
            // What is behind the point is cut off.
            let part = || text.parse::<f64>().map(|number| number as i64);
            whole.or_else(|_| part()).map_err(|_| wrong(text))
        });
        return Tensor::from_vec(numbers.collect::<Result<Vec<i64>>>()?, dims)?.to_dtype(dtype);
    }
    let numbers = x.items()?.iter().map(|text| {
        let number = text.trim().parse::<f64>();
        number.map_err(|_| wrong(text))
    });
    Tensor::from_vec(numbers.collect::<Result<Vec<f64>>>()?, dims)?.to_dtype(dtype)
}

/// Scores by their labels: a dict for each row. ONNX's `ZipMap`.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Texts, text_scores};
/// let rows = text_scores(&Tensor::from_vec(vec![0.25f32, 0.75], (1, 2))?, &Texts::from(["no", "yes"]))?;
/// let rows = Vec::<fx_nn::IndexMap<String, f64>>::from_value(rows)?;
/// assert_eq!((rows[0]["no"], rows[0]["yes"]), (0.25, 0.75));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are other columns than labels.
#[wrap(path = "fx_onnx::text_scores")]
pub fn text_scores(scores: &Tensor, labels: &Texts) -> Result<Value> {
    let labels = labels.items()?;
    let (rows, columns) = match scores.dims()? {
        [columns] => (1, *columns),
        [rows, columns] => (*rows, *columns),
        other => {
            return Err(Error::msg(format_args!(
                "text_scores: rows of scores are expected, and not {other:?}"
            )));
        }
    };
    if columns != labels.len() {
        return Err(Error::msg(format_args!(
            "text_scores: {columns} columns of scores, and {} labels",
            labels.len()
        )));
    }
    let mut numbers = scores.to_vec()?.into_iter().map(Value::Float);
    let rows = (0..rows).map(|_| {
        let row: IndexMap<Arc<str>, Value> = labels.iter().cloned().zip(numbers.by_ref()).collect();
        Value::Dict(Box::new(row))
    });
    Ok(Value::List(rows.collect()))
}

pub(super) fn truths(is: Vec<bool>) -> Result<Tensor> {
    let count = is.len();
    let bytes: Vec<u8> = is.into_iter().map(u8::from).collect();
    Tensor::from_vec(bytes, count)?.to_dtype(DType::Bool)
}

/// Each text of one tensor with its counterpart in another one, and their shape.
#[allow(clippy::type_complexity, reason = "pairs of texts, and a shape")]
fn pairs<'t>(
    name: &str,
    x: &'t Texts,
    y: &'t Texts,
) -> Result<(Vec<(&'t str, &'t str)>, Vec<usize>)> {
    let (a, b) = (x.dims()?, y.dims()?);
    let rank = a.len().max(b.len());
    let size = |of: &[usize], dim: usize| match (dim + of.len()).checked_sub(rank) {
        Some(at) => of[at],
        None => 1,
    };
    let mut shape = Vec::with_capacity(rank);
    for dim in 0..rank {
        shape.push(match (size(a, dim), size(b, dim)) {
            (one, other) if one == other => one,
            (1, other) => other,
            (one, 1) => one,
            _ => {
                return Err(Error::msg(format_args!(
                    "{name}: the shapes {a:?} and {b:?} do not fit"
                )));
            }
        });
    }
    let count: usize = shape.iter().product();
    let place = |of: &[usize], mut at: usize| {
        let (mut place, mut step) = (0, 1);
        for dim in (0..rank).rev() {
            let index = at % shape[dim];
            at /= shape[dim];
            let own = size(of, dim);
            place += if own == 1 { 0 } else { index * step };
            step *= own;
        }
        place
    };
    let (left, right) = (x.items()?, y.items()?);
    let pairs = (0..count).map(|at| (&*left[place(a, at)], &*right[place(b, at)]));
    Ok((pairs.collect(), shape))
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::load::text_places) => ShapeRule(|call| {
        let (all, at) = (call.tensors("all")?, call.int("at")?);
        let own = usize::try_from(at).ok().and_then(|at| all.get(at));
        let own = own.ok_or_else(|| no_texts(at, all.len()))?;
        Ok(of_shape(&own.shape, Some(DType::I64)))
    }),
    fx_nn::function!(crate::load::text_take) => ShapeRule(|call| {
        Ok(of_shape(&call.tensor("places")?.shape, None))
    }),
    fx_nn::function!(crate::load::text_ids) => ShapeRule(|call| {
        Ok(of_shape(&call.tensor("x")?.shape, Some(DType::I64)))
    }),
    fx_nn::function!(crate::load::text_equal) => ShapeRule(|call| both(call, Some(DType::Bool))),
    fx_nn::function!(crate::load::text_concat) => ShapeRule(|call| both(call, None)),
    fx_nn::function!(crate::load::text_normalize) => ShapeRule(|call| {
        let mut shape = call.tensor("x")?.shape.clone();
        let left = call.env().fresh(1, None)?;
        match shape.last_mut() {
            Some(last) => *last = left,
            None => return Err(Error::msg("text_normalize: a row of words is expected")),
        }
        Ok(of_shape(&shape, None))
    }),
    fx_nn::function!(crate::load::text_of) => ShapeRule(|call| {
        Ok(of_shape(&call.tensor("x")?.shape, None))
    }),
    fx_nn::function!(crate::load::text_numbers) => ShapeRule(|call| {
        let dtype = call.dtype("dtype")?;
        Ok(of_shape(&call.tensor("x")?.shape, dtype))
    }),
    fx_nn::function!(crate::load::text_scores) => ShapeRule(|_| {
        Ok(ValueMeta::Opaque("a dict of scores for each row".into()))
    }),
} }

pub(super) fn of_shape(shape: &[fx_nn::value::Dim], dtype: Option<DType>) -> ValueMeta {
    let mut meta = TensorMeta::new(shape.iter().cloned());
    meta.dtype = dtype;
    meta.into()
}

fn both(call: &mut RuleCall<'_>, dtype: Option<DType>) -> Result<ValueMeta> {
    let (x, y) = (call.tensor("x")?, call.tensor("y")?);
    let shape = call.broadcast(&[&x.shape, &y.shape])?;
    Ok(of_shape(&shape, dtype))
}
