//! What the judge and the tests share: arrays of NumPy, and how far results are from PyTorch's.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, Forward};
use npyz::{NpyFile, TypeChar};
use zip::ZipArchive;

/// How far a result may be off, over the largest element of PyTorch's, unless PyTorch itself is further off.
pub const ALLOWED: f64 = 1e-5;

/// How far results are off, and how far they may be, over the largest element: `ALLOWED`, or twice what PyTorch's are off its
/// own in `f64`. The result that is furthest off over what it may be.
#[derive(Debug, Clone, Copy)]
pub struct Off {
    pub most: f64,
    pub allowed: f64,
}

impl Off {
    /// Whether the results are PyTorch's.
    pub fn is_equal(self) -> bool {
        self.most <= self.allowed
    }
}

/// The programs of a folder with one of some parts in their names, in order.
pub fn programs(folder: &str, parts: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(Error::other)?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .filter(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            parts.split(',').any(|part| name.contains(part))
        })
        .collect();
    files.sort();
    Ok(files)
}

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
    if array.order() != npyz::Order::C && shape.len() > 1 {
        return Err(Error::msg("an array in the order of Fortran"));
    }
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
        (TypeChar::Uint, 1) => whole!(u8),
        (TypeChar::Int, 4) => {
            let all = array.into_vec::<i32>().map_err(Error::other)?;
            let all: Vec<i64> = all.into_iter().map(i64::from).collect();
            Tensor::from_vec(all, shape)?.to_dtype(DType::I32)
        }
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

/// How far results are from the arrays of a file; `call` makes the arguments of the inputs.
pub fn off(
    module: &dyn Module,
    path: &Path,
    call: impl Fn(Vec<Tensor>) -> CallArgs,
) -> Result<Off> {
    let arrays = arrays(path)?;
    let (expected, wide) = (of_kind(&arrays, "out_"), of_kind(&arrays, "out64_"));
    let result: Value = Forward::forward(module, call(of_kind(&arrays, "in_")))?;
    let found = leaves(&result);
    if found.len() != expected.len() {
        return Err(Error::msg(format_args!(
            "{} results, and PyTorch has {}",
            found.len(),
            expected.len()
        )));
    }
    let mut worst = Off {
        most: 0.0,
        allowed: ALLOWED,
    };
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if found.dims()? != expected.dims()? {
            return Err(Error::msg(format_args!(
                "the result {at} is {:?}, not {:?}",
                found.dims()?,
                expected.dims()?
            )));
        }
        let (a, b) = (elements(found)?, elements(expected)?);
        let is_finite = |x: &f64| x.is_finite();
        let largest = b.iter().copied().filter(is_finite);
        let largest = largest.fold(1e-30f64, |most, x| most.max(x.abs()));
        let own = match wide.get(at) {
            Some(wide) if wide.dims()? == expected.dims()? => {
                2.0 * furthest(&b, &elements(wide)?) / largest
            }
            _ => 0.0,
        };
        // Where a comparison falls the other way in `f64`, that is no measure.
        let allowed = if own < 1e-2 {
            ALLOWED.max(own)
        } else {
            ALLOWED
        };
        let most = furthest(&a, &b) / largest;
        if most / allowed > worst.most / worst.allowed {
            worst = Off { most, allowed };
        }
    }
    Ok(worst)
}

fn elements(x: &Tensor) -> Result<Vec<f64>> {
    x.to_dtype(DType::F64)?.to_vec()
}

/// The largest difference; what is no number only equals itself.
pub fn furthest(a: &[f64], b: &[f64]) -> f64 {
    let all = a.iter().zip(b).map(|(a, b)| match (a - b).abs() {
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        off if off.is_nan() => f64::INFINITY,
        off => off,
    });
    all.fold(0.0, f64::max)
}
