//! What prepares the inputs of classic models (`ai.onnx.ml`): numbers for numbers, by lists of the file.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::classic::DOMAIN;
use super::scores::rows;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::tensors;
use crate::load::value::as_type;

pub(super) const TABLE: &[Operator] = &[
    op("LabelEncoder", |cx| {
        let x = cx.tensor(0)?;
        let (keys, values) = (List::of(cx, "keys")?, List::of(cx, "values")?);
        if keys.numbers.len() != values.numbers.len() {
            return Err(Error::msg(format_args!(
                "{} keys and {} values",
                keys.numbers.len(),
                values.numbers.len()
            )));
        }
        let other = match cx.attribute("default_tensor").and_then(|a| a.t.as_ref()) {
            Some(proto) => tensors::tensor(proto, cx.reader.folder, false)?.item()?,
            None if values.dtype.is_floating_point() => cx.float("default_float", 0.0),
            None => cx.int("default_int64", -1) as f64,
        };
        // The first of equal keys counts.
        let mut seen = rustc_hash::FxHashSet::default();
        let pairs: Vec<(f64, f64)> = (keys.numbers.iter().copied())
            .zip(values.numbers)
            .filter(|(key, _)| seen.insert((key + 0.0).to_bits()))
            .collect();
        let count = pairs.len();
        let column = |all: Vec<f64>, dtype: DType| as_type(&Tensor::from_vec(all, count)?, dtype);
        let numbers = pairs.iter().map(|(key, _)| *key).collect();
        let wide = ops::unsqueeze(&x, -1)?;
        let dtype = cx.dtype(0)?;
        let mut is = wide.eq(column(numbers, dtype)?)?;
        // In older versions, no number is the key that is none.
        if cx.version >= 4 && pairs.iter().any(|(key, _)| key.is_nan()) {
            let none = pairs
                .iter()
                .map(|(key, _)| f64::from(u8::from(key.is_nan())));
            let none = column(none.collect(), DType::U8)?.ne(0)?;
            let both = ops::logical_and(&ops::isnan(&wide)?, &none)?;
            is = ops::logical_or(&is, &both)?;
        }
        // One key at most is a number's own: its place, behind that of the others.
        let places = Tensor::from_vec((1..=count as i64).collect::<Vec<_>>(), count)?;
        let place = ops::sum(&(as_type(&is, DType::I64)? * places)?, -1, false)?;
        let mut all = vec![other];
        all.extend(pairs.iter().map(|(_, value)| *value));
        let all = as_type(&Tensor::from_vec(all, count + 1)?, values.dtype)?;
        cx.of(picked(cx, &all, &place)?, values.dtype)
    })
    .domain(DOMAIN)
    .any_numbers(),
    op("OneHotEncoder", |cx| {
        let categories = cx.ints("cats_int64s").filter(|all| !all.is_empty());
        let categories = categories.ok_or_else(|| {
            Error::msg("`cats_int64s` is missing: categories that are texts have no tensor")
        })?;
        let count = categories.len();
        let categories = Tensor::from_vec(categories, count)?;
        let x = as_type(&cx.tensor(0)?, DType::I64)?;
        let is = ops::unsqueeze(&x, -1)?.eq(&categories)?;
        cx.of(as_type(&is, DType::F32)?, DType::F32)
    })
    .domain(DOMAIN)
    .any_numbers(),
    op("Imputer", |cx| {
        let (x, dtype) = (cx.tensor(0)?, cx.dtype(0)?);
        let (numbers, from) = match cx.floats("imputed_value_floats") {
            Some(floats) if !floats.is_empty() => (
                floats.into_iter().map(f64::from).collect::<Vec<f64>>(),
                cx.float("replaced_value_float", 0.0),
            ),
            _ => (
                (cx.ints("imputed_value_int64s").unwrap_or_default())
                    .into_iter()
                    .map(|number| number as f64)
                    .collect(),
                cx.int("replaced_value_int64", 0) as f64,
            ),
        };
        let first = numbers.first().copied();
        let first = first.ok_or_else(|| Error::msg("there is no value to put in"))?;
        let columns = cx.shape(0)?.last().and_then(|size| size.as_number());
        let numbers = match columns {
            Some(count) if count == numbers.len() as i64 => numbers,
            _ => vec![first],
        };
        let count = numbers.len();
        let numbers = as_type(&Tensor::from_vec(numbers, count)?, dtype)?;
        let is = match from.is_nan() {
            true => ops::isnan(&x)?,
            false => x.eq(from)?,
        };
        cx.like(ops::r#where(&is, &numbers, &x)?)
    })
    .domain(DOMAIN)
    .any_numbers(),
    op("ZipMap", |cx| {
        // Maps of classes to scores have no tensor: the scores have.
        let scores = rows(cx)?;
        cx.of(scores, DType::F32)
    })
    .domain(DOMAIN)
    .any_numbers(),
];

/// A list of numbers of the file.
struct List {
    numbers: Vec<f64>,
    dtype: DType,
}

impl List {
    /// The attributes of a kind: of whole numbers, of floats, or a tensor.
    fn of(cx: &NodeCx<'_>, kind: &str) -> Result<Self> {
        let named = |ending: &str| format!("{kind}_{ending}");
        if let Some(all) = cx.ints(&named("int64s")).filter(|all| !all.is_empty()) {
            if all.iter().any(|number| number.unsigned_abs() > 1 << 53) {
                return Err(Error::msg("labels beyond 2^53"));
            }
            return Ok(List {
                numbers: all.into_iter().map(|number| number as f64).collect(),
                dtype: DType::I64,
            });
        }
        if let Some(all) = cx.floats(&named("floats")).filter(|all| !all.is_empty()) {
            return Ok(List {
                numbers: all.into_iter().map(f64::from).collect(),
                dtype: DType::F32,
            });
        }
        let proto = cx.attribute(&named("tensor")).and_then(|a| a.t.as_ref());
        let proto = proto.ok_or_else(|| {
            Error::msg(format_args!(
                "`{kind}` are no numbers: labels that are texts have no tensor; export the model with numbers for labels"
            ))
        })?;
        let tensor = tensors::tensor(proto, cx.reader.folder, false)?;
        Ok(List {
            numbers: tensor.to_vec()?,
            dtype: tensor.dtype()?,
        })
    }
}

/// The elements of a vector at places, in the shape of these.
fn picked(cx: &NodeCx<'_>, all: &Tensor, places: &Tensor) -> Result<Tensor> {
    let flat = ops::index_select(all, 0, &ops::reshape(places, [-1])?)?;
    let sizes = (0..cx.rank(0)? as i64).map(|dim| places.size(dim));
    ops::reshape(&flat, sizes.collect::<Result<Vec<Int>>>()?)
}
