//! `Part`: one file of a checkpoint, of any kind, read tensor by tensor.
//!
//! Invariant: a file's header is read and checked against its length before any tensor is read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{GgmlDType, QTensor};
use fx_core::__private::{Container, opened};
use fx_core::tensor::TensorData;
use fx_core::value::DType;
use fx_core::{Error, Result};

use super::pth::Pth;
use super::stored::Stored;
use crate::device::PROCESSOR;
use crate::error::Fx;
use crate::tensor::saved::PATH;
use crate::tensor::{Tensor, candle_dtype, wider};

/// One file of a checkpoint.
pub(super) enum Part {
    Safetensors(Container<File>),
    /// PyTorch's own format.
    Pth(Pth),
    Gguf {
        content: Content,
        file: RefCell<BufReader<File>>,
    },
}

/// A part's entry of a tensor.
pub(super) struct Info {
    pub name: String,
    pub shape: Vec<usize>,
    /// The bytes of its elements once they are loaded, in the type that they are read as.
    pub bytes: u64,
}

impl Part {
    /// Opens a file, whose first bytes decide its format.
    pub fn open(path: &Path) -> Result<(Self, Vec<Info>)> {
        let mut file = opened(path).map_err(Error::msg)?;
        let mut first = [0; 4];
        let is_long = file.read_exact(&mut first).is_ok();
        file.rewind().map_err(Error::msg)?;
        match &first {
            b"GGUF" if is_long => Part::gguf(file),
            b"PK\x03\x04" if is_long => Part::pth(file),
            // The magic number of PyTorch's older files; as a header's length it would be too
            // large.
            [0x80, 0x02, 0x8a, 0x0a] if is_long => Err(Error::msg(
                "it is a pickle of PyTorch before 1.6, without a zip file around it: save it again with a newer PyTorch",
            )),
            _ => Part::safetensors(file),
        }
    }

    fn safetensors(file: File) -> Result<(Self, Vec<Info>)> {
        let file = Container::open(file)?;
        let infos = file.infos().map(|(name, shape, bytes)| Info {
            name: name.to_string(),
            shape: shape.to_vec(),
            bytes: bytes as u64,
        });
        let infos = infos.collect();
        Ok((Part::Safetensors(file), infos))
    }

    fn pth(file: File) -> Result<(Self, Vec<Info>)> {
        let length = file.metadata().map_err(Error::msg)?.len();
        let file = Pth::open(file)?;
        let infos = file
            .tensors()
            .map(|(name, stored)| of_pth(name, stored, length));
        let mut infos = infos.collect::<Result<Vec<_>>>()?;
        infos.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((Part::Pth(file), infos))
    }

    fn gguf(file: File) -> Result<(Self, Vec<Info>)> {
        let length = file.metadata().map_err(Error::msg)?.len();
        let mut file = BufReader::new(file);
        let content = unpanicked(|| Content::read(&mut file))?;
        let mut infos = Vec::with_capacity(content.tensor_infos.len());
        for (name, info) in &content.tensor_infos {
            let dims = info.shape.dims();
            let (block, size) = (info.ggml_dtype.block_size(), info.ggml_dtype.type_size());
            let count = count(name, dims, length, |count| {
                count.div_ceil(block).checked_mul(size)
            })?;
            infos.push(Info {
                name: name.clone(),
                shape: dims.to_vec(),
                bytes: (count * size_of::<f32>()) as u64,
            });
        }
        infos.sort_by(|one, other| one.name.cmp(&other.name));
        let file = RefCell::new(file);
        Ok((Part::Gguf { content, file }, infos))
    }

    /// Reads a tensor into the memory of `own`, which has its shape, in the type of `own`.
    pub fn read_into(&self, name: &str, widen: bool, own: &mut Tensor) -> Result<()> {
        match self {
            Part::Safetensors(file) => own.read_from(&held(file.tensor(name, PATH)?, widen)?),
            Part::Pth(file) => own.read_from(&held(file.tensor(name)?, widen)?),
            _ => own.copy_from(&self.tensor(name, widen, false)?),
        }
    }

    /// Returns an error if the type of a tensor cannot be read, without reading the tensor.
    pub fn check(&self, name: &str, widen: bool) -> Result<()> {
        match self {
            Part::Safetensors(file) => held(file.tensor(name, PATH)?, widen).map(drop),
            // The elements are read when the data is.
            Part::Pth(file) => readable(file.dtype(name)?, widen).map(drop),
            _ => Ok(()),
        }
    }

    /// A tensor, in the type that it has in the file; quantised ones as `float32`. A parameter is made where its elements
    /// are read to.
    pub fn tensor(&self, name: &str, widen: bool, parameter: bool) -> Result<Tensor> {
        let made = |data: TensorData<'_>| {
            let data = held(data, widen)?;
            let parameter = parameter && data.dtype().is_floating_point();
            crate::tensor::saved::from_data(&data.with_parameter(parameter))
        };
        match self {
            Part::Safetensors(file) => made(file.tensor(name, PATH)?),
            Part::Pth(file) => made(file.tensor(name)?),
            Part::Gguf { .. } => {
                let tensor = self.quantized(name)?;
                let tensor = tensor.dequantize(&PROCESSOR).map(Tensor::from).fx()?;
                match parameter {
                    true => tensor.into_parameter(),
                    false => Ok(tensor),
                }
            }
        }
    }

    /// A tensor in its quantised form.
    pub fn quantized(&self, name: &str) -> Result<QTensor> {
        match self {
            Part::Gguf { content, file } => {
                let mut file = file.borrow_mut();
                unpanicked(|| content.tensor(&mut *file, name, &PROCESSOR))
            }
            _ => Err(Error::msg("only GGUF files have quantised tensors")),
        }
    }

    /// How a tensor is quantised.
    pub fn quantization(&self, name: &str) -> Option<GgmlDType> {
        match self {
            Part::Gguf { content, .. } => Some(content.tensor_infos.get(name)?.ggml_dtype),
            _ => None,
        }
    }

    /// A GGUF file's metadata about its model.
    pub fn metadata(&self) -> Option<&HashMap<String, candle_core::quantized::gguf_file::Value>> {
        match self {
            Part::Gguf { content, .. } => Some(&content.metadata),
            _ => None,
        }
    }
}

/// The number of elements of a tensor whose bytes are in a file of that length.
///
/// # Errors
/// Returns an error if the file is too short for them.
fn count(
    name: &str,
    dims: &[usize],
    length: u64,
    bytes: impl Fn(usize) -> Option<usize>,
) -> Result<usize> {
    let mut sizes = dims.iter();
    let count = sizes.try_fold(1usize, |count, size| count.checked_mul(*size));
    let fits = |count: &usize| bytes(*count).is_some_and(|bytes| bytes as u64 <= length);
    count.filter(fits).ok_or_else(|| {
        Error::msg(format_args!(
            "`{name}` of shape {dims:?} has more elements than the file has bytes for"
        ))
    })
}

/// A PyTorch file's entry of a tensor, in a file of `length` bytes.
fn of_pth(name: &str, stored: &Stored, length: u64) -> Result<Info> {
    let dims = &stored.shape;
    let size = stored
        .dtype
        .as_ref()
        .map_or(1, |dtype| dtype.size_in_bytes());
    let count = count(name, dims, length, |count| count.checked_mul(size))?;
    Ok(Info {
        name: name.to_string(),
        shape: dims.clone(),
        bytes: (count * size) as u64,
    })
}

/// The result of candle's readers; a panic means that they cannot read the file.
fn unpanicked<T>(read: impl FnOnce() -> candle_core::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.fx(),
        Err(_) => Err(Error::msg("the file is damaged: its reader failed")),
    }
}

/// The type that elements of a type are read as: their own, or one that candle has if that is asked for.
fn readable(dtype: DType, widen: bool) -> Result<DType> {
    match wider(dtype) {
        Some(wide) if widen => Ok(wide),
        _ => candle_dtype(dtype).map(|_| dtype),
    }
}

/// The elements in the type that they are read as.
fn held(tensor: TensorData<'_>, widen: bool) -> Result<TensorData<'_>> {
    let own = tensor.dtype();
    match readable(own, widen)? {
        dtype if dtype == own => Ok(tensor),
        wide => widened(tensor, wide),
    }
}

/// The elements of a type that candle lacks, widened piece by piece as they are read.
fn widened(tensor: TensorData<'_>, wide: DType) -> Result<TensorData<'_>> {
    let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
    TensorData::streamed(PATH, wide, shape, move |sink| {
        tensor.for_each_chunk(&mut |bytes| {
            let wide: Vec<u8> = match dtype {
                DType::I8 => {
                    let elements = bytes.iter().map(|byte| i16::from(byte.cast_signed()));
                    elements.flat_map(i16::to_le_bytes).collect()
                }
                _ => {
                    let elements = bytes.as_chunks().0.iter();
                    let elements = elements.map(|bytes| i32::from(u16::from_le_bytes(*bytes)));
                    elements.flat_map(i32::to_le_bytes).collect()
                }
            };
            sink(&wide)
        })
    })
}
