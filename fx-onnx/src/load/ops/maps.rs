//! What prepares the inputs of classic models (`ai.onnx.ml`): numbers and texts for others, by lists of the file.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::classic::DOMAIN;
use super::scores::rows;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::text_leaves::{text_ids, text_scores};
use crate::load::value::{Given, V, as_type};
use crate::load::{tensors, texts};
use crate::proto::TensorProto;
use crate::texts::Texts;

pub(super) const TABLE: &[Operator] = &[
    op("LabelEncoder", |cx| {
        if let Some(classes) = cx.texts("classes_strings") {
            let numbers = (0..classes.len() as i64).collect();
            return by_categories(cx, numbers, classes);
        }
        let pairs = Pairs {
            keys: List::of(cx, "keys")?,
            values: List::of(cx, "values")?,
        };
        let other = match cx.attribute("default_tensor").and_then(|a| a.t.as_ref()) {
            Some(proto) => List::of_tensor(cx, proto)?,
            None => match &pairs.values {
                List::Texts(_) => List::Texts(vec![cx.text("default_string", "_Unused")]),
                List::Numbers(_, dtype) => {
                    let number = match dtype.is_floating_point() {
                        true => cx.float("default_float", 0.0),
                        false => cx.int("default_int64", -1) as f64,
                    };
                    List::Numbers(vec![number], *dtype)
                }
            },
        };
        pairs.mapped(cx, other)
    })
    .domain(DOMAIN)
    .any_numbers()
    .reads_text(),
    op("CategoryMapper", |cx| {
        let numbers = cx.ints("cats_int64s").unwrap_or_default();
        by_categories(cx, numbers, cx.texts("cats_strings").unwrap_or_default())
    })
    .domain(DOMAIN)
    .any_numbers()
    .reads_text(),
    op("FeatureVectorizer", |cx| {
        let sizes = cx.ints("inputdimensions").unwrap_or_default();
        let all = (0..cx.inputs.len()).map(|at| {
            let x = as_type(&cx.tensor(at)?, DType::F32)?;
            // An input of one dim is a column of numbers, or a row where it has as many as the file says.
            Ok(match (cx.rank(at), sizes.get(at)) {
                (Ok(1), Some(size @ 2..)) => ops::reshape(&x, [-1, *size])?,
                (Ok(1), _) => ops::unsqueeze(&x, 1)?,
                _ => x,
            })
        });
        let all = all.collect::<Result<Vec<Tensor>>>()?;
        cx.of(ops::cat(&all, -1)?, DType::F32)
    })
    .domain(DOMAIN),
    op("OneHotEncoder", |cx| {
        let texts = cx.texts("cats_strings").filter(|all| !all.is_empty());
        let (x, categories) = match texts {
            Some(all) => {
                let count = all.len() as i64;
                let x = text_ids(&cx.input(0).texts()?, &Texts::from(all))?;
                (x, (0..count).collect())
            }
            None => {
                let categories = cx.ints("cats_int64s").unwrap_or_default();
                (as_type(&cx.tensor(0)?, DType::I64)?, categories)
            }
        };
        let count = categories.len();
        if count == 0 {
            return Err(Error::msg("`cats_int64s` and `cats_strings` are missing"));
        }
        let categories = Tensor::from_vec(categories, count)?;
        let is = ops::unsqueeze(&x, -1)?.eq(&categories)?;
        cx.of(as_type(&is, DType::F32)?, DType::F32)
    })
    .domain(DOMAIN)
    .any_numbers()
    .reads_text(),
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
        let scores = rows(cx)?;
        if let Some(labels) = cx
            .texts("classlabels_strings")
            .filter(|all| !all.is_empty())
        {
            let maps = text_scores(&scores, &Texts::from(labels))?;
            return Ok(vec![V::Host(maps)]);
        }
        // Of numbers, there is no dict: the scores have a column for each.
        cx.of(scores, DType::F32)
    })
    .domain(DOMAIN)
    .any_numbers(),
];

/// The number of each text, or the text of each number.
fn by_categories(cx: &NodeCx<'_>, numbers: Vec<i64>, texts: Vec<String>) -> Given {
    let (numbers, texts) = (
        List::Numbers(exact(numbers)?, DType::I64),
        List::Texts(texts),
    );
    let (keys, values, other) = match cx.input(0) {
        V::Texts(_) => {
            let other = exact(vec![cx.int("default_int64", -1)])?;
            (texts, numbers, List::Numbers(other, DType::I64))
        }
        _ => {
            let other = vec![cx.text("default_string", "_Unused")];
            (numbers, texts, List::Texts(other))
        }
    };
    Pairs { keys, values }.mapped(cx, other)
}

/// A list of the file.
enum List {
    Numbers(Vec<f64>, DType),
    Texts(Vec<String>),
}

/// Whole numbers that a double holds.
fn exact(numbers: Vec<i64>) -> Result<Vec<f64>> {
    match numbers.iter().any(|number| number.unsigned_abs() > 1 << 53) {
        true => Err(Error::msg("labels beyond 2^53")),
        false => Ok(numbers.into_iter().map(|number| number as f64).collect()),
    }
}

impl List {
    /// The attributes of a kind: of texts, of whole numbers, of floats, or a tensor.
    fn of(cx: &NodeCx<'_>, kind: &str) -> Result<Self> {
        let named = |ending: &str| format!("{kind}_{ending}");
        if let Some(all) = cx.texts(&named("strings")).filter(|all| !all.is_empty()) {
            return Ok(List::Texts(all));
        }
        if let Some(all) = cx.ints(&named("int64s")).filter(|all| !all.is_empty()) {
            return Ok(List::Numbers(exact(all)?, DType::I64));
        }
        if let Some(all) = cx.floats(&named("floats")).filter(|all| !all.is_empty()) {
            let all = all.into_iter().map(f64::from).collect();
            return Ok(List::Numbers(all, DType::F32));
        }
        let proto = cx.attribute(&named("tensor")).and_then(|a| a.t.as_ref());
        let proto = proto.ok_or_else(|| Error::msg(format_args!("`{kind}` are missing")))?;
        List::of_tensor(cx, proto)
    }

    fn of_tensor(cx: &NodeCx<'_>, proto: &TensorProto) -> Result<Self> {
        match tensors::constant(proto, cx.reader.folder, false)? {
            V::Texts(texts) => {
                let items = texts.items()?.iter();
                Ok(List::Texts(items.map(ToString::to_string).collect()))
            }
            other => {
                let tensor = other.tensor()?;
                Ok(List::Numbers(tensor.to_vec()?, tensor.dtype()?))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            List::Numbers(all, _) => all.len(),
            List::Texts(all) => all.len(),
        }
    }

    /// The elements at these places.
    fn at(&self, places: &[usize]) -> Self {
        match self {
            List::Numbers(all, dtype) => {
                List::Numbers(places.iter().map(|at| all[*at]).collect(), *dtype)
            }
            List::Texts(all) => List::Texts(places.iter().map(|at| all[*at].clone()).collect()),
        }
    }
}

/// Keys, each with its value.
struct Pairs {
    keys: List,
    values: List,
}

impl Pairs {
    /// The value of each element of the input; of one that is no key, the `other` one.
    fn mapped(self, cx: &NodeCx<'_>, other: List) -> Given {
        let (keys, values) = (&self.keys, &self.values);
        if keys.len() != values.len() {
            return Err(Error::msg(format_args!(
                "{} keys and {} values",
                keys.len(),
                values.len()
            )));
        }
        // The first of equal keys counts.
        let firsts: Vec<usize> = match keys {
            List::Numbers(all, _) => {
                let mut seen = rustc_hash::FxHashSet::default();
                let is_new = |at: &usize| seen.insert((all[*at] + 0.0).to_bits());
                (0..all.len()).filter(is_new).collect()
            }
            List::Texts(all) => {
                let mut seen = rustc_hash::FxHashSet::default();
                (0..all.len()).filter(|at| seen.insert(&all[*at])).collect()
            }
        };
        // Its place, behind that of the others.
        let place = match keys.at(&firsts) {
            List::Texts(keys) => (text_ids(&cx.input(0).texts()?, &Texts::from(keys))? + 1)?,
            List::Numbers(keys, _) => place_of(cx, keys)?,
        };
        match (other, values.at(&firsts)) {
            (List::Numbers(mut all, _), List::Numbers(values, dtype)) => {
                all.extend(values);
                let count = all.len();
                let all = as_type(&Tensor::from_vec(all, count)?, dtype)?;
                cx.of(picked(cx, &all, &place)?, dtype)
            }
            (List::Texts(mut all), List::Texts(values)) => {
                all.extend(values);
                Ok(vec![texts::picked(&all, &place)?])
            }
            _ => Err(Error::msg("values of another kind than the default one")),
        }
    }
}

/// The place of each number of the input among keys, from 1 on; 0 for one that is none of them.
fn place_of(cx: &NodeCx<'_>, keys: Vec<f64>) -> Result<Tensor> {
    let count = keys.len();
    let column = |all: Vec<f64>, dtype: DType| as_type(&Tensor::from_vec(all, count)?, dtype);
    let is_none: Vec<f64> = keys
        .iter()
        .map(|key| f64::from(u8::from(key.is_nan())))
        .collect();
    let has_none = keys.iter().any(|key| key.is_nan());
    let wide = ops::unsqueeze(&cx.tensor(0)?, -1)?;
    let dtype = cx.dtype(0)?;
    let mut is = wide.eq(column(keys, dtype)?)?;
    // In older versions, no number is the key that is none.
    if cx.version >= 4 && has_none {
        let none = column(is_none, DType::U8)?.ne(0)?;
        let both = ops::logical_and(&ops::isnan(&wide)?, &none)?;
        is = ops::logical_or(&is, &both)?;
    }
    // One key at most is a number's own.
    let places = Tensor::from_vec((1..=count as i64).collect::<Vec<_>>(), count)?;
    ops::sum(&(as_type(&is, DType::I64)? * places)?, -1, false)
}

/// The elements of a vector at places, in the shape of these.
fn picked(cx: &NodeCx<'_>, all: &Tensor, places: &Tensor) -> Result<Tensor> {
    let flat = ops::index_select(all, 0, &ops::reshape(places, [-1])?)?;
    let sizes = (0..cx.rank(0)? as i64).map(|dim| places.size(dim));
    ops::reshape(&flat, sizes.collect::<Result<Vec<Int>>>()?)
}
