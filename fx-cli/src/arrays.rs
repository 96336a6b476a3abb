//! NumPy's files as tensors, and tensors as such files: `.npy` has one, `.npz` has them by name.
//!
//! Invariant: a file is read as what its header says, or refused by its name.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::path::Path;

use fx_nn::prelude::*;
use npyz::{DType as Layout, NpyFile, Order, WriterBuilder};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Whether a path is that of a file of arrays.
pub fn is_file(path: &Path) -> bool {
    path.extension()
        .is_some_and(|of| of == "npy" || of == "npz")
}

/// Whether a path is that of a file of text.
pub fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|of| of == "json")
}

/// The text of a file of JSON, or the lists of it.
///
/// # Errors
/// Returns an error that names the file, if it cannot be read or has anything else.
pub fn text(path: &Path) -> Result<Value> {
    let about = |error: &dyn std::fmt::Display| {
        Error::msg(format_args!("{} cannot be read: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| about(&error))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| about(&error))?;
    of_json(&json).ok_or_else(|| about(&"it has more than text and lists of text"))
}

/// Text, or lists of it; the reader of JSON bounds how deep they are.
fn of_json(json: &serde_json::Value) -> Option<Value> {
    match json {
        serde_json::Value::String(text) => Some(Value::Str(text.as_str().into())),
        serde_json::Value::Array(items) => {
            let items = items.iter().map(of_json).collect::<Option<_>>()?;
            Some(Value::List(items))
        }
        _ => None,
    }
}

/// The tensors of a file; that of `.npy` has no name.
///
/// # Errors
/// Returns an error that names the file, and the array, if it cannot be read.
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let about = |error: &dyn std::fmt::Display| {
        Error::msg(format_args!("{} cannot be read: {error}", path.display()))
    };
    let file = BufReader::new(File::open(path).map_err(|error| about(&error))?);
    if path.extension().is_some_and(|of| of == "npy") {
        return Ok(vec![(String::new(), array(file).map_err(|e| about(&e))?)]);
    }
    let mut archive = ZipArchive::new(file).map_err(|error| about(&error))?;
    let each = (0..archive.len()).map(|at| {
        let entry = archive.by_index(at).map_err(|error| about(&error))?;
        let name = entry.name().map_err(|error| about(&error))?;
        let name = name.trim_end_matches(".npy").to_string();
        let tensor = array(entry).map_err(|e| about(&format_args!("`{name}`: {e}")))?;
        Ok((name, tensor))
    });
    each.collect()
}

/// One array.
fn array(source: impl Read) -> Result<Tensor> {
    let file = NpyFile::new(source).map_err(Error::msg)?;
    let shape = file.shape().iter().map(|size| usize::try_from(*size));
    let mut shape: Vec<usize> = shape
        .collect::<std::result::Result<_, _>>()
        .map_err(Error::msg)?;
    let is_reversed = file.order() == Order::Fortran;
    if is_reversed {
        shape.reverse();
    }
    let Layout::Plain(layout) = file.dtype() else {
        return Err(Error::msg("it has records, and no numbers"));
    };
    let layout = layout.to_string();
    macro_rules! made {
        ($of:ty) => {
            Tensor::from_vec(file.into_vec::<$of>().map_err(Error::msg)?, shape)?
        };
        ($of:ty, $held:ty, $dtype:expr) => {{
            let held = file.into_vec::<$of>().map_err(Error::msg)?.into_iter();
            let held: Vec<$held> = held.map(|n| n as $held).collect();
            Tensor::from_vec(held, shape)?.to_dtype($dtype)?
        }};
    }
    let tensor = match layout.trim_start_matches(['<', '>', '|', '=']) {
        "b1" => made!(bool, u8, DType::Bool),
        "u1" => made!(u8),
        "i1" => made!(i8, i16, DType::I8),
        "u2" => made!(u16, i32, DType::U16),
        "i2" => made!(i16),
        "u4" => made!(u32),
        "i4" => made!(i32),
        "u8" => made!(u64, i64, DType::U64),
        "i8" => made!(i64),
        "f2" => made!(half::f16),
        "f4" => made!(f32),
        "f8" => made!(f64),
        other => {
            return Err(Error::msg(format_args!(
                "its elements are `{other}`, which are none of fx's"
            )));
        }
    };
    match is_reversed {
        true => tensor.permute((0..tensor.dims()?.len() as i64).rev().collect::<Vec<i64>>()),
        false => Ok(tensor),
    }
}

/// Writes tensors by name, as `.npz`.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(path: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    let about = |error: &dyn std::fmt::Display| {
        Error::msg(format_args!(
            "{} cannot be written: {error}",
            path.display()
        ))
    };
    let file = File::create(path).map_err(|error| about(&error))?;
    let mut archive = ZipWriter::new(file);
    for (name, tensor) in tensors {
        let options = SimpleFileOptions::default().large_file(true);
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(|error| about(&error))?;
        archive
            .write_all(&bytes(tensor)?)
            .map_err(|error| about(&error))?;
    }
    archive.finish().map(drop).map_err(|error| about(&error))
}

/// One array, as the bytes of `.npy`. NumPy has no `bfloat16`: those are written as `float32`.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let shape: Vec<u64> = tensor.dims()?.iter().map(|size| *size as u64).collect();
    let mut out = Cursor::new(Vec::new());
    macro_rules! put {
        ($held:ty, $of:ty, $each:expr) => {{
            let flat = tensor
                .contiguous()?
                .candle()?
                .flatten_all()
                .map_err(Error::other)?;
            let numbers = flat.to_vec1::<$held>().map_err(Error::other)?.into_iter();
            let numbers = numbers.map($each);
            let writer = npyz::WriteOptions::<$of>::new()
                .default_dtype()
                .shape(&shape);
            let mut writer = writer.writer(&mut out).begin_nd().map_err(Error::msg)?;
            writer.extend(numbers).map_err(Error::msg)?;
            writer.finish().map_err(Error::msg)?;
        }};
    }
    match tensor.dtype()? {
        DType::Bool => put!(u8, bool, |n| n != 0),
        DType::U8 => put!(u8, u8, |n| n),
        DType::I8 => put!(i16, i8, |n| n as i8),
        DType::U16 => put!(i32, u16, |n| n as u16),
        DType::I16 => put!(i16, i16, |n| n),
        DType::U32 => put!(u32, u32, |n| n),
        DType::I32 => put!(i32, i32, |n| n),
        DType::U64 => put!(i64, u64, i64::cast_unsigned),
        DType::I64 => put!(i64, i64, |n| n),
        DType::F16 => put!(half::f16, half::f16, |x| x),
        DType::F64 => put!(f64, f64, |x| x),
        DType::F32 => put!(f32, f32, |x| x),
        _ => return bytes(&tensor.to_dtype(DType::F32)?),
    }
    Ok(out.into_inner())
}
