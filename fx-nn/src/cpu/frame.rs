//! What a run keeps: registers and the memory behind them, and how steps read and fill them.
//!
//! Invariant: floats are read where they are, and only a kernel that needs them in order copies.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::{CpuStorage, Layout, Storage};
use fx_core::trace::FromValue;
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, Result};
use fx_kernels::conv::Blocked;
use fx_kernels::convert::{Element, Half};
use fx_kernels::{Level, SizeError, convert, transpose};
use half::{bf16, f16};
use smallvec::SmallVec;

use super::array::{Array, Dims, Memory, broadcast, strides_of};
use super::draft::{Id, SizeArg};
use super::memory::{ImageSizes, Pool};
use super::types::{Halves, dtype};
use crate::Tensor;
use crate::room;

/// What a register holds.
#[derive(Debug, Clone, Default)]
pub(super) enum Register {
    #[default]
    Empty,
    Array(Array),
    Image(Arc<Blocked>),
    /// The results of a network over sequences.
    Parts(Vec<Array>),
    Value(Value),
}

/// The registers and memory of a run.
pub(super) struct Frame {
    pub registers: Vec<Register>,
    pub pool: Pool,
}

pub(super) fn sizes_differ(error: SizeError) -> Error {
    Error::other(error)
}

/// What steps read.
pub(super) struct Reading<'r> {
    pub registers: &'r [Register],
    /// The floats of the arguments; empty where an argument is no floats.
    pub inputs: &'r [&'r [f32]],
    pub level: Level,
    /// The nodes that give tensors of 16 bits.
    pub halves: &'r Halves,
}

pub(super) fn slice(storage: &Storage) -> Result<&[f32]> {
    match storage {
        Storage::Cpu(CpuStorage::F32(floats)) => Ok(floats),
        _ => Err(Error::msg("an argument is no tensor of f32 on the CPU")),
    }
}

/// The place of a dimension that may count from the end.
pub(super) fn place(dim: i64, rank: usize) -> Result<usize> {
    let from_start = match dim < 0 {
        true => dim + rank as i64,
        false => dim,
    };
    usize::try_from(from_start)
        .ok()
        .filter(|at| *at < rank)
        .ok_or_else(|| Error::msg(format_args!("there is no dimension {dim} of {rank}")))
}

impl<'r> Reading<'r> {
    /// The memory of an array.
    pub fn memory<'a>(&'a self, array: &'a Array) -> &'a [f32] {
        match &array.memory {
            Memory::Buffer(buffer) => buffer,
            Memory::Input(place) => self.inputs[*place],
            Memory::Result(floats) => floats,
        }
    }

    /// The floats of an array that lie in order.
    pub fn floats<'a>(&'a self, array: &'a Array) -> &'a [f32] {
        debug_assert!(array.is_contiguous(), "the array was made contiguous");
        &self.memory(array)[array.start..array.start + array.numel()]
    }

    /// An integer, or the number that a register holds.
    pub fn size(&self, size: SizeArg) -> Result<i64> {
        match size {
            SizeArg::Known(n) => Ok(n),
            SizeArg::Of(id) => match &self.registers[id] {
                Register::Value(value) => i64::from_value(value.clone()),
                _ => Err(Error::msg("a size is no number")),
            },
        }
    }

    /// The sizes of what a register holds.
    pub fn dims(&self, id: Id) -> Result<Dims> {
        match &self.registers[id] {
            Register::Array(array) => Ok(array.dims.clone()),
            Register::Image(image) => Ok(SmallVec::from_slice(&[
                image.batch(),
                image.channels(),
                image.height(),
                image.width(),
            ])),
            Register::Value(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => Ok(Dims::new()),
            Register::Value(value) => {
                let tensor = value.downcast_ref::<Tensor>();
                let tensor = tensor.ok_or_else(|| Error::msg("an operand is no tensor"))?;
                Ok(tensor.dims()?.iter().copied().collect())
            }
            Register::Parts(_) => Err(Error::msg("an operand is several tensors")),
            Register::Empty => Err(Error::msg("a register is read before it is written")),
        }
    }

    /// What a register holds, as floats.
    pub fn array(&self, id: Id, pool: &mut Pool) -> Result<Array> {
        match &self.registers[id] {
            Register::Array(array) => Ok(array.clone()),
            Register::Value(Value::Int(n)) => number(*n as f32, pool),
            Register::Value(Value::Float(x)) => number(*x as f32, pool),
            Register::Value(Value::Bool(b)) => number(f32::from(*b), pool),
            Register::Value(value) => {
                let tensor = value.downcast_ref::<Tensor>();
                let tensor = tensor.ok_or_else(|| Error::msg("an operand is no tensor"))?;
                let (storage, layout) = tensor.candle()?.storage_and_layout();
                let dims = layout.dims().iter().copied().collect();
                filled(dims, pool, |out| {
                    converted(self.level, &storage, layout, out)
                })
            }
            Register::Empty => pool
                .lent_of(id)
                .ok_or_else(|| Error::msg("a register is read before it is written")),
            _ => Err(Error::msg("an operand is not there as an array")),
        }
    }

    /// The same floats in order.
    pub fn contiguous(&self, array: Array, pool: &mut Pool) -> Result<Array> {
        if array.is_contiguous() {
            return Ok(array);
        }
        let memory = self.memory(&array);
        filled(array.dims.clone(), pool, |out| {
            let Array {
                start,
                dims,
                strides,
                ..
            } = &array;
            transpose::contiguous(self.level, memory, *start, dims, strides, out)
                .map_err(sizes_differ)
        })
    }

    /// What a register holds, as floats in order.
    pub fn in_order(&self, id: Id, pool: &mut Pool) -> Result<Array> {
        let array = self.array(id, pool)?;
        self.contiguous(array, pool)
    }

    pub fn image(&self, id: Id) -> Result<&Arc<Blocked>> {
        match &self.registers[id] {
            Register::Image(image) => Ok(image),
            _ => Err(Error::msg("an operand is not there as an image")),
        }
    }

    fn tensor(&self, array: &Array, half: Option<Half>) -> Result<Tensor> {
        let Array {
            start,
            dims,
            strides,
            ..
        } = array;
        let floats = match array.is_contiguous() {
            true => Cow::Borrowed(self.floats(array)),
            false => {
                let mut floats = vec![0.0; array.numel()];
                let memory = self.memory(array);
                transpose::contiguous(self.level, memory, *start, dims, strides, &mut floats)
                    .map_err(sizes_differ)?;
                Cow::Owned(floats)
            }
        };
        match half {
            None => Tensor::from_vec(floats.into_owned(), &dims[..]),
            Some(Half::F16) => Tensor::from_vec(narrowed::<f16>(&floats)?, &dims[..]),
            Some(Half::Bf16) => Tensor::from_vec(narrowed::<bf16>(&floats)?, &dims[..]),
        }
    }

    /// What a register holds, as a value: in 16 bits where the graph has it so.
    pub fn value(&self, id: Id, half: Option<Half>) -> Result<Value> {
        match &self.registers[id] {
            Register::Value(value) => match (half, value.downcast_ref::<Tensor>()) {
                // It is returned in `f32` too.
                (Some(half), Some(tensor)) if tensor.dtype()? == DType::F32 => {
                    Ok(tensor.to_dtype(dtype(half))?.into_value())
                }
                _ => Ok(value.clone()),
            },
            Register::Array(array) => Ok(self.tensor(array, half)?.into_value()),
            Register::Parts(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| Ok(self.tensor(part, half)?.into_value()));
                Ok(Value::Tuple(parts.collect::<Result<_>>()?))
            }
            _ => Err(Error::msg("a value is not there")),
        }
    }
}

/// The nearest elements of a type.
fn narrowed<T: Element + Default>(floats: &[f32]) -> Result<Vec<T>> {
    let mut out = vec![T::default(); floats.len()];
    convert::narrow(floats, &mut out).map_err(sizes_differ)?;
    Ok(out)
}

/// Writes the elements of a tensor as floats, in order.
fn converted(level: Level, storage: &Storage, layout: &Layout, out: &mut [f32]) -> Result<()> {
    fn each<T: Copy>(data: &[T], layout: &Layout, out: &mut [f32], float: impl Fn(T) -> f32) {
        let (dims, strides) = (layout.dims(), layout.stride());
        let (width, step) = match (dims.last(), strides.last()) {
            (Some(width), Some(step)) => (*width, *step),
            _ => (1, 1),
        };
        for (row, out) in out.chunks_mut(width.max(1)).enumerate() {
            let (mut start, mut rest) = (layout.start_offset(), row);
            for (size, stride) in dims.iter().zip(strides).rev().skip(1) {
                start += rest % size * stride;
                rest /= size;
            }
            for (i, out) in out.iter_mut().enumerate() {
                *out = float(data[start + i * step]);
            }
        }
    }
    /// Elements that lie in order go through a kernel.
    macro_rules! number {
        ($data:ident, $convert:path, $float:expr) => {
            match layout.contiguous_offsets() {
                Some((first, end)) => $convert(&$data[first..end], out).map_err(sizes_differ)?,
                None => each($data, layout, out, $float),
            }
        };
    }
    match storage {
        Storage::Cpu(CpuStorage::U8(data)) => number!(data, convert::from_u8, f32::from),
        Storage::Cpu(CpuStorage::U32(data)) => number!(data, convert::from_u32, |x| x as f32),
        Storage::Cpu(CpuStorage::I16(data)) => number!(data, convert::from_i16, f32::from),
        Storage::Cpu(CpuStorage::I32(data)) => number!(data, convert::from_i32, |x| x as f32),
        Storage::Cpu(CpuStorage::I64(data)) => number!(data, convert::from_i64, |x| x as f32),
        Storage::Cpu(CpuStorage::BF16(data)) => number!(data, convert::widen, f32::from),
        Storage::Cpu(CpuStorage::F16(data)) => number!(data, convert::widen, f32::from),
        Storage::Cpu(CpuStorage::F32(data)) => {
            let (start, dims, strides) = (layout.start_offset(), layout.dims(), layout.stride());
            transpose::contiguous(level, data, start, dims, strides, out).map_err(sizes_differ)?;
        }
        _ => return Err(Error::msg("an operand has elements without kernels")),
    }
    Ok(())
}

/// The number of floats of a result, which have to fit into memory.
pub(super) fn room_of(dims: &[usize]) -> Result<usize> {
    room::of("a compiled step", dims, candle_core::DType::F32).map_err(Error::other)
}

/// An array that a closure fills.
pub(super) fn filled(
    dims: Dims,
    pool: &mut Pool,
    fill: impl FnOnce(&mut [f32]) -> Result<()>,
) -> Result<Array> {
    let len = room_of(&dims)?;
    let buffer = pool.buffer(len, fill)?;
    Ok(Array {
        strides: strides_of(&dims),
        memory: Memory::Buffer(buffer),
        start: 0,
        dims,
    })
}

/// A register with an array that a kernel fills: in memory of its own if the program returns it.
pub(super) fn array(
    dims: Dims,
    pool: &mut Pool,
    fill: impl FnOnce(&mut [f32]) -> Result<(), SizeError>,
) -> Result<Register> {
    if !pool.gives_result {
        return filled(dims, pool, |out| fill(out).map_err(sizes_differ)).map(Register::Array);
    }
    let mut floats = vec![0.0; room_of(&dims)?];
    fill(&mut floats).map_err(sizes_differ)?;
    Ok(result(dims, floats))
}

/// A register with what the program returns.
pub(super) fn result(dims: Dims, floats: Vec<f32>) -> Register {
    Register::Array(Array::of(Memory::Result(Arc::new(floats)), dims))
}

/// Makes a value of a register that the program returns: memory that nothing else reads is not copied.
pub(super) fn give(register: &mut Register) -> Result<()> {
    let Register::Array(array) = register else {
        return Ok(());
    };
    let whole = array.is_contiguous().then(|| array.numel());
    if let Memory::Result(floats) = &mut array.memory
        && whole == Some(floats.len())
    {
        let floats = std::mem::take(floats);
        let floats = Arc::try_unwrap(floats).unwrap_or_else(|shared| shared.to_vec());
        *register = Register::Value(Tensor::from_vec(floats, &array.dims[..])?.into_value());
    }
    Ok(())
}

/// The common sizes of operands, and each operand in these.
pub(super) fn spread(arrays: &[Array]) -> Result<(Dims, SmallVec<[Array; 6]>)> {
    let misfit = || Error::msg("the sizes of operands do not fit");
    let dims = broadcast(arrays.iter().map(|array| &array.dims[..])).ok_or_else(misfit)?;
    let arrays: Option<_> = arrays.iter().map(|array| array.expanded(&dims)).collect();
    Ok((dims, arrays.ok_or_else(misfit)?))
}

/// An array of one number.
fn number(x: f32, pool: &mut Pool) -> Result<Array> {
    filled(Dims::new(), pool, |out| {
        out.fill(x);
        Ok(())
    })
}

/// A register with an image that a kernel fills.
pub(super) fn image(
    sizes: ImageSizes,
    pool: &mut Pool,
    fill: impl FnOnce(&mut Blocked) -> Result<(), SizeError>,
) -> Result<Register> {
    let (batch, channels, height, width, halo) = sizes;
    let sides = [height, width].map(|side| side.saturating_add(2 * halo));
    room_of(&[batch, channels, sides[0], sides[1]])?;
    let image = pool.image(sizes, |image| fill(image).map_err(sizes_differ))?;
    Ok(Register::Image(image))
}
