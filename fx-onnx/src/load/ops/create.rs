//! Constants and new tensors.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};

use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::tensors;
use crate::load::value::{Given, V, as_type};
use crate::load::whole::Whole;
use crate::texts::Texts;

pub(super) const TABLE: &[Operator] = &[
    op("Constant", |cx| {
        let of = |name: &str| cx.attribute(name);
        if let Some(tensor) = of("value").and_then(|a| a.t.as_ref()) {
            let proto = tensor;
            return Ok(vec![tensors::constant(proto, cx.reader.folder, false)?]);
        }
        if let Some(sparse) = of("sparse_value").and_then(|a| a.sparse_tensor.as_ref()) {
            let limit = cx.reader.limits.constant_bytes as u64;
            let (_, tensor) = tensors::dense(sparse, cx.reader.folder, limit)?;
            let dtype = Tensor::dtype(&tensor)?;
            return cx.of(tensor, dtype);
        }
        if let Some(a) = of("value_string") {
            let text =
                a.s.as_ref()
                    .map_or(String::new(), |text| tensors::of_utf8(text));
            return Ok(vec![V::Texts(Texts::new([text], [])?)]);
        }
        if let Some(all) = cx.texts("value_strings") {
            return Ok(vec![V::Texts(Texts::from(all))]);
        }
        if let Some(a) = of("value_float") {
            return cx.of(Tensor::from_vec(vec![a.f.unwrap_or(0.0)], ())?, DType::F32);
        }
        if let Some(a) = of("value_int") {
            return cx.of(Tensor::from_vec(vec![a.i.unwrap_or(0)], ())?, DType::I64);
        }
        if let Some(a) = of("value_floats") {
            let count = a.floats.len();
            return cx.of(Tensor::from_vec(a.floats.clone(), count)?, DType::F32);
        }
        if let Some(a) = of("value_ints") {
            let count = a.ints.len();
            return cx.of(Tensor::from_vec(a.ints.clone(), count)?, DType::I64);
        }
        Err(Error::msg("a constant without a value"))
    })
    .any_numbers()
    .makes(|of| of.first())
    .reads_text(),
    op("ConstantOfShape", |cx| {
        let sizes = cx
            .wholes(0)?
            .iter()
            .map(Whole::int)
            .collect::<Result<Vec<Int>>>()?;
        let (value, dtype) = match cx.attribute("value").and_then(|a| a.t.as_ref()) {
            Some(tensor) => {
                let tensor = tensors::tensor(tensor, cx.reader.folder, false)?;
                (tensor.number_of(), Tensor::dtype(&tensor)?)
            }
            None => (fx_nn::Number::Float(0.0), DType::F32),
        };
        let count = sizes.iter().try_fold(1u64, |n, size| {
            size.concrete()
                .and_then(|s| n.checked_mul(u64::try_from(s).ok()?))
        });
        if sizes.iter().all(|size| size.concrete().is_some())
            && count.is_none_or(|n| {
                n.saturating_mul(dtype.size_in_bytes() as u64)
                    > cx.reader.limits.constant_bytes as u64
            })
        {
            return Err(Error::msg(format_args!(
                "a constant of more than {} bytes: raise `Limits::constant_bytes` if that is meant",
                cx.reader.limits.constant_bytes
            )));
        }
        cx.of(ops::full(sizes, value, Some(dtype))?, dtype)
    })
    .any_numbers()
    .makes(|of| of.first()),
    op("Range", |cx| {
        let dtype = cx.dtype(0)?;
        // What only a run knows is counted when it runs.
        let of_run = |v: &V| matches!(v, V::Tensor(x, _) if x.proxy().is_some());
        if cx.inputs.iter().any(of_run) {
            return counted(cx, dtype);
        }
        if dtype.is_floating_point() {
            let (start, limit, delta) = (
                cx.tensor(0)?.item()?,
                cx.tensor(1)?.item()?,
                cx.tensor(2)?.item()?,
            );
            let count = ((limit - start) / delta).ceil().max(0.0) as i64;
            if count > cx.reader.limits.constant_bytes as i64 / 8 {
                return Err(Error::msg(
                    "a range of more numbers than `Limits::constant_bytes` holds",
                ));
            }
            let all = ops::arange(0, count, 1, Some(DType::F64))?;
            return cx.of(as_type(&((all * delta)? + start)?, dtype)?, dtype);
        }
        let one = |at: usize| -> Result<Int> {
            cx.input(at)
                .ints()?
                .into_iter()
                .next()
                .ok_or_else(|| Error::msg("a range without an end"))
        };
        let (start, limit, delta) = (one(0)?, one(1)?, one(2)?);
        if let (Some(start), Some(limit), Some(delta)) =
            (start.concrete(), limit.concrete(), delta.concrete())
            && (delta == 0
                || limit.saturating_sub(start) / delta > cx.reader.limits.constant_bytes as i64 / 8)
        {
            return Err(Error::msg(
                "a range of more numbers than `Limits::constant_bytes` holds",
            ));
        }
        if let (Some(first), Some(last), Some(delta)) =
            (start.concrete(), limit.concrete(), delta.concrete())
            && (first < last) != (delta > 0)
        {
            // Steps that lead away from the limit give nothing.
            return cx.of(ops::arange(first, first, 1, Some(dtype))?, dtype);
        }
        cx.of(ops::arange(start, limit, delta, Some(dtype))?, dtype)
    })
    .makes(|of| of.first()),
    op("EyeLike", |cx| {
        let dtype = cx.type_of("dtype")?.unwrap_or(cx.dtype(0)?);
        let k = cx.int("k", 0);
        let [rows, columns] = &*cx.sizes(0)? else {
            return Err(Error::msg("ones on the diagonal of other than two dims"));
        };
        let (Some(rows), Some(columns)) = (rows.known(), columns.known()) else {
            let rows = ops::unsqueeze(&cx.numbers(rows.int()?)?, 1)?;
            let ones = (cx.numbers(columns.int()?)? - rows)?.eq(k)?;
            return cx.of(as_type(&ones, dtype)?, dtype);
        };
        if rows.saturating_mul(columns) > cx.reader.limits.constant_bytes as i64 / 8 {
            return Err(Error::msg("a matrix larger than `Limits::constant_bytes`"));
        }
        let ones = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| f32::from(u8::from(column - row == k))));
        let ones: Vec<f32> = ones.collect();
        cx.of(
            as_type(
                &Tensor::from_vec(ones, (rows as usize, columns as usize))?,
                dtype,
            )?,
            dtype,
        )
    })
    .makes(|of| of.first()),
    op("Dropout", |cx| {
        let x = cx.tensor(0)?;
        let training = cx.has(2) && cx.tensor(2)?.item()? != 0.0;
        let ratio = if cx.has(1) {
            cx.tensor(1)?.item()?
        } else {
            cx.float("ratio", 0.5)
        };
        let y = if training && ratio > 0.0 {
            ops::dropout(&x, ratio, true)?
        } else {
            x.clone()
        };
        let mask = ops::ones_like(&x, Some(DType::Bool))?;
        let dtype = cx.input(0).dtype();
        Ok(vec![V::Tensor(y, dtype), V::of(mask, DType::Bool)])
    })
    .draws()
    .views(),
    op("RandomNormal", random)
        .draws()
        .makes(|of| of.attribute("shape")),
    op("RandomUniform", random)
        .draws()
        .makes(|of| of.attribute("shape")),
    op("RandomNormalLike", random_like).draws(),
    op("RandomUniformLike", random_like).draws(),
    op("Bernoulli", |cx| {
        let x = cx.tensor(0)?;
        let dtype = cx.type_of("dtype")?.unwrap_or(cx.dtype(0)?);
        cx.of(as_type(&ops::bernoulli(&x)?, dtype)?, dtype)
    })
    .draws(),
    op("HannWindow", cosine_window).makes(|of| of.product(0)),
    op("HammingWindow", cosine_window).makes(|of| of.product(0)),
    op("BlackmanWindow", cosine_window).makes(|of| of.product(0)),
];

/// Numbers at equal distances, of which a run knows the ends.
fn counted(cx: &NodeCx<'_>, dtype: DType) -> Given {
    let known = |at: usize| cx.input(at).known_ints().ok();
    if !dtype.is_floating_point() && known(0) == Some(vec![0]) && known(2) == Some(vec![1]) {
        let limit = cx.whole(1)?.at_least(0)?.int()?;
        return cx.of(ops::arange(0, limit, 1, Some(dtype))?, dtype);
    }
    let of = |at: usize| ops::reshape(&cx.tensor(at)?, ());
    let (start, limit, delta) = (of(0)?, of(1)?, of(2)?);
    let count = match dtype.is_floating_point() {
        true => as_type(&ops::ceil(&((limit - &start)? / &delta)?)?, DType::I64)?,
        // Rounded up.
        false => {
            let back = ops::floor_divide(&(&start - limit)?, &delta)?;
            as_type(&(-back)?, DType::I64)?
        }
    };
    let count = Whole::Run(count).at_least(0)?.int()?;
    let all = as_type(&ops::arange(0, count, 1, Some(DType::I64))?, dtype)?;
    cx.of(((all * delta)? + start)?, dtype)
}

fn random(cx: &mut NodeCx<'_>) -> Given {
    let shape = cx.ints("shape").unwrap_or_default();
    let dtype = cx.type_of("dtype")?.unwrap_or(DType::F32);
    drawn(cx, shape.into_iter().map(Int::from).collect(), dtype)
}

fn random_like(cx: &mut NodeCx<'_>) -> Given {
    let x = cx.tensor(0)?;
    let dtype = cx.type_of("dtype")?.unwrap_or(cx.dtype(0)?);
    let sizes = (0..cx.rank(0)? as i64)
        .map(|dim| x.size(dim))
        .collect::<Result<Vec<Int>>>()?;
    drawn(cx, sizes, dtype)
}

fn cosine_window(cx: &mut NodeCx<'_>) -> Given {
    let size = cx
        .input(0)
        .known_ints()?
        .first()
        .copied()
        .unwrap_or(1)
        .max(0);
    if size > cx.reader.limits.constant_bytes as i64 / 8 {
        return Err(Error::msg("a window larger than `Limits::constant_bytes`"));
    }
    let dtype = cx.type_of("output_datatype")?.unwrap_or(DType::F32);
    let of = if cx.int("periodic", 1) != 0 {
        size
    } else {
        size - 1
    } as f64;
    let (a, b, c) = match &*cx.node.op_type {
        "HannWindow" => (0.5, 0.5, 0.0),
        "HammingWindow" => (25.0 / 46.0, 21.0 / 46.0, 0.0),
        _ => (0.42, 0.5, 0.08),
    };
    let turn = 2.0 * std::f64::consts::PI / of;
    let all: Vec<f64> = (0..size)
        .map(|n| a - b * (turn * n as f64).cos() + c * (2.0 * turn * n as f64).cos())
        .collect();
    cx.of(
        as_type(&Tensor::from_vec(all, size as usize)?, dtype)?,
        dtype,
    )
}

fn drawn(cx: &NodeCx<'_>, sizes: Vec<Int>, dtype: DType) -> Given {
    let y = match cx.node.op_type.contains("Normal") {
        true => {
            ((ops::randn(sizes, Some(DType::F32))? * cx.float("scale", 1.0))?
                + cx.float("mean", 0.0))?
        }
        false => {
            let (low, high) = (cx.float("low", 0.0), cx.float("high", 1.0));
            ((ops::rand(sizes, Some(DType::F32))? * (high - low))? + low)?
        }
    };
    cx.of(as_type(&y, dtype)?, dtype)
}

/// The one number of a tensor.
trait NumberOf {
    fn number_of(&self) -> fx_nn::Number;
}

impl NumberOf for Tensor {
    fn number_of(&self) -> fx_nn::Number {
        let first = self
            .to_vec()
            .ok()
            .and_then(|all| all.first().copied())
            .unwrap_or(0.0);
        match Tensor::dtype(self) {
            Ok(DType::Bool) => fx_nn::Number::Bool(first != 0.0),
            Ok(dtype) if !dtype.is_floating_point() => fx_nn::Number::Int(first as i64),
            _ => fx_nn::Number::Float(first),
        }
    }
}
