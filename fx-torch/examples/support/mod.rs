//! What the judge and the tests share: arrays of NumPy, and how far results are from PyTorch's.

pub mod forms;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use npyz::{NpyFile, TypeChar};
use zip::ZipArchive;

/// How far a result may be off, over the largest element of PyTorch's.
pub const ALLOWED: f64 = 1e-5;

/// The arrays of a file, by name.
pub fn arrays(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let file = File::open(path).map_err(Error::other)?;
    let mut archive = ZipArchive::new(file).map_err(Error::other)?;
    let mut all = BTreeMap::new();
    for at in 0..archive.len() {
        let entry = archive.by_index(at).map_err(Error::other)?;
        let name = entry
            .name()
            .map_err(Error::other)?
            .trim_end_matches(".npy")
            .to_string();
        all.insert(name, tensor(NpyFile::new(entry).map_err(Error::other)?)?);
    }
    Ok(all)
}

fn tensor<R: std::io::Read>(array: NpyFile<R>) -> Result<Tensor> {
    let shape: Vec<usize> = array.shape().iter().map(|size| *size as usize).collect();
    let npyz::DType::Plain(dtype) = array.dtype() else {
        return Err(Error::msg("an array of structures"));
    };
    macro_rules! made {
        ($ty:ty) => {
            Tensor::from_vec(array.into_vec::<$ty>().map_err(Error::other)?, shape)
        };
    }
    // The call says in which type of integers it takes them.
    macro_rules! whole {
        ($ty:ty) => {{
            let all = array.into_vec::<$ty>().map_err(Error::other)?;
            Tensor::from_vec(all.into_iter().map(i64::from).collect::<Vec<i64>>(), shape)
        }};
    }
    match (dtype.type_char(), dtype.size_field()) {
        (TypeChar::Float, 4) => made!(f32),
        (TypeChar::Float, 8) => made!(f64),
        (TypeChar::Int, 8) => made!(i64),
        (TypeChar::Int, 1) => whole!(i8),
        (TypeChar::Int, 2) => whole!(i16),
        (TypeChar::Int, 4) => whole!(i32),
        (TypeChar::Uint, 1) => whole!(u8),
        (TypeChar::Bool, _) => {
            let all = array.into_vec::<bool>().map_err(Error::other)?;
            Tensor::from_vec(all.into_iter().map(u8::from).collect::<Vec<u8>>(), shape)?.ne(0)
        }
        (kind, size) => Err(Error::msg(format_args!(
            "elements {kind:?} of {size} bytes"
        ))),
    }
}

/// The tensors of a result, in order.
pub fn leaves(value: &Value) -> Vec<Tensor> {
    let mut all = Vec::new();
    value.for_each(&mut |inner| {
        if let Some(tensor) = inner.downcast_ref::<Tensor>() {
            all.push(tensor.clone());
        }
    });
    all
}

/// The arrays of a kind, in order.
pub fn of_kind(arrays: &BTreeMap<String, Tensor>, kind: &str) -> Vec<Tensor> {
    let own = arrays.iter().filter(|(name, _)| name.starts_with(kind));
    own.map(|(_, x)| x.clone()).collect()
}

/// A call with tensors by position.
pub fn by_position(inputs: Vec<Tensor>) -> CallArgs {
    CallArgs {
        args: inputs.into_iter().map(Value::object).collect(),
        kwargs: Vec::new(),
    }
}

/// How far results are from the arrays of a file, over the largest element; `call` makes the arguments of the inputs.
pub fn off(gm: &GraphModule, path: &Path, call: impl Fn(Vec<Tensor>) -> CallArgs) -> Result<f64> {
    let arrays = arrays(path)?;
    let expected = of_kind(&arrays, "out_");
    let result: Value = gm.forward(call(of_kind(&arrays, "in_")))?;
    let found = leaves(&result);
    if found.len() != expected.len() {
        return Err(Error::msg(format_args!(
            "{} results, and PyTorch has {}",
            found.len(),
            expected.len()
        )));
    }
    let mut worst = 0f64;
    for (found, expected) in found.iter().zip(&expected) {
        if found.dims()? != expected.dims()? {
            return Err(Error::msg(format_args!(
                "a result is {:?}, not {:?}",
                found.dims()?,
                expected.dims()?
            )));
        }
        let (a, b) = (
            found.to_dtype(DType::F64)?.to_vec()?,
            expected.to_dtype(DType::F64)?.to_vec()?,
        );
        let largest = b.iter().fold(1e-30f64, |most, x| most.max(x.abs()));
        let most = a.iter().zip(&b).map(|(a, b)| {
            if a == b || (a.is_nan() && b.is_nan()) {
                0.0
            } else {
                (a - b).abs()
            }
        });
        worst = worst.max(
            most.fold(0.0, |most, x| {
                if x.is_nan() {
                    f64::INFINITY
                } else {
                    f64::max(most, x)
                }
            }) / largest,
        );
    }
    Ok(worst)
}
