//! A tensor's elements as bytes of a file, and back, for every element type.
//!
//! Invariant: data moves piece by piece both ways, so that a tensor is never in memory twice.

use candle_core::{CpuStorage, InplaceOp1, Layout, Storage, Var, WithDType};
use fx_core::tensor::TensorData;
use fx_core::value::{DType, Value};
use fx_core::{Error, Result};
use half::{bf16, f16};

use super::source::Spelling;
use super::writes::written;
use super::{Tensor, candle_dtype};
use crate::device::{self, PROCESSOR};
use crate::error::Fx;

/// The name of the tensor type in files.
pub(crate) const PATH: &str = "fx_nn::Tensor";

/// The number of bytes in a piece.
const PIECE: usize = 1 << 18;

/// Takes bytes of whole elements.
type Sink<'s> = dyn FnMut(&[u8]) -> Result<()> + 's;

pub(super) fn to_data(tensor: &Tensor) -> Result<TensorData<'static>> {
    let data = tensor.elements("to_data")?.clone();
    let (dtype, dims, parameter) = (tensor.dtype()?, data.dims().to_vec(), data.is_variable());
    let source = move |sink: &mut Sink<'_>| hand_over(&data, dtype, sink);
    Ok(TensorData::streamed(PATH, dtype, dims, source)?.with_parameter(parameter))
}

/// Passes the elements to a sink, straight from their storage.
fn hand_over(data: &candle_core::Tensor, dtype: DType, sink: &mut Sink<'_>) -> Result<()> {
    // A tensor on the CPU is not copied.
    let data = data.to_device(&PROCESSOR).fx()?;
    let (storage, _) = data.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Err(Error::msg("to_data: the tensor is not on the CPU"));
    };
    match data.dtype() {
        candle_core::DType::I16 if dtype == DType::I8 => {
            pieces(&data, storage, sink, |n: i16| (n as i8).to_le_bytes())
        }
        candle_core::DType::I32 if dtype == DType::U16 => {
            pieces(&data, storage, sink, |n: i32| (n as u16).to_le_bytes())
        }
        candle_core::DType::U8 => pieces(&data, storage, sink, u8::to_le_bytes),
        candle_core::DType::U32 => pieces(&data, storage, sink, u32::to_le_bytes),
        candle_core::DType::I16 => pieces(&data, storage, sink, i16::to_le_bytes),
        candle_core::DType::I32 => pieces(&data, storage, sink, i32::to_le_bytes),
        candle_core::DType::I64 => pieces(&data, storage, sink, i64::to_le_bytes),
        candle_core::DType::BF16 => pieces(&data, storage, sink, bf16::to_le_bytes),
        candle_core::DType::F16 => pieces(&data, storage, sink, f16::to_le_bytes),
        candle_core::DType::F32 => pieces(&data, storage, sink, f32::to_le_bytes),
        candle_core::DType::F64 => pieces(&data, storage, sink, f64::to_le_bytes),
        other => Err(Error::msg(format_args!(
            "to_data: candle's {other:?} has no counterpart in fx"
        ))),
    }
}

fn pieces<T: WithDType, const N: usize>(
    data: &candle_core::Tensor,
    storage: &CpuStorage,
    sink: &mut Sink<'_>,
    to_bytes: impl Fn(T) -> [u8; N],
) -> Result<()> {
    let all = storage.as_slice::<T>().fx()?;
    let count = data.elem_count().min(PIECE / N);
    if let Some((start, end)) = data.layout().contiguous_offsets() {
        let mut bytes = vec![0; count * N];
        let elements = all.get(start..end).unwrap_or_default();
        for piece in elements.chunks(count.max(1)) {
            let bytes = &mut bytes[..piece.len() * N];
            for (bytes, element) in bytes.as_chunks_mut().0.iter_mut().zip(piece) {
                *bytes = to_bytes(*element);
            }
            sink(bytes)?;
        }
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(count * N);
    for at in data.strided_index() {
        bytes.extend_from_slice(&to_bytes(all[at]));
        if bytes.len() == count * N {
            sink(&bytes)?;
            bytes.clear();
        }
    }
    match bytes.is_empty() {
        true => Ok(()),
        false => sink(&bytes),
    }
}

pub(crate) fn from_data(data: &TensorData<'_>) -> Result<Tensor> {
    Ok(match data.dtype() {
        // A file may hold another number than 1 for true.
        DType::Bool => Tensor::from_bools(made(data, |[byte]| u8::from(byte != 0))?),
        DType::I8 => {
            let held = made(data, |bytes| i16::from(i8::from_le_bytes(bytes)))?;
            Tensor::of_type(held, DType::I8)
        }
        DType::U16 => {
            let held = made(data, |bytes| i32::from(u16::from_le_bytes(bytes)))?;
            Tensor::of_type(held, DType::U16)
        }
        DType::U64 => Tensor::of_type(made(data, i64::from_le_bytes)?, DType::U64),
        DType::U8 => made(data, u8::from_le_bytes)?.into(),
        DType::U32 => made(data, u32::from_le_bytes)?.into(),
        DType::I16 => made(data, i16::from_le_bytes)?.into(),
        DType::I32 => made(data, i32::from_le_bytes)?.into(),
        DType::I64 => made(data, i64::from_le_bytes)?.into(),
        DType::BF16 => made(data, bf16::from_le_bytes)?.into(),
        DType::F16 => made(data, f16::from_le_bytes)?.into(),
        DType::F32 => made(data, f32::from_le_bytes)?.into(),
        DType::F64 => made(data, f64::from_le_bytes)?.into(),
        other => {
            return Err(candle_dtype(other).err().unwrap_or_else(|| {
                Error::msg(format_args!("{other} cannot be read from a file"))
            }));
        }
    })
}

/// Reads the elements into the memory of the new tensor.
fn made<T: WithDType, const N: usize>(
    data: &TensorData<'_>,
    from_bytes: impl Fn([u8; N]) -> T,
) -> Result<candle_core::Tensor> {
    let (count, dims) = (data.byte_len() / N, data.shape());
    let mut elements: Vec<T> = Vec::new();
    elements.try_reserve_exact(count).map_err(|_| {
        Error::msg(format_args!(
            "there is not enough memory for a tensor of shape {dims:?} and type {}",
            data.dtype()
        ))
    })?;
    data.for_each_chunk(&mut |bytes| {
        let bytes = bytes.as_chunks().0.iter();
        elements.extend(bytes.map(|bytes| from_bytes(*bytes)));
        Ok(())
    })?;
    match data.is_parameter() {
        true => {
            Var::from_vec(elements, dims, &device::current()).map(|var| var.as_tensor().clone())
        }
        false => candle_core::Tensor::from_vec(elements, dims, &device::current()),
    }
    .fx()
}

impl Tensor {
    /// Like [`copy_from`](Tensor::copy_from), from the elements of a file, piece by piece.
    ///
    /// # Errors
    /// Returns an error if the shapes differ, this one is symbolic, or the elements cannot be read:
    /// those that were read are set then.
    pub(crate) fn read_from(&mut self, source: &TensorData<'_>) -> Result<()> {
        if self.as_fake().is_some() {
            return self.copy_from(&from_data(source)?);
        }
        let own = self.elements("read_from")?;
        if own.dims() != source.shape() {
            return Err(Error::msg(format_args!(
                "read_from: shape {:?} cannot take data of shape {:?}",
                own.dims(),
                source.shape()
            )));
        }
        if !own.is_contiguous() || own.elem_count() == 0 {
            return self.copy_from(&from_data(source)?);
        }
        let (dtype, size) = (self.dtype()?, source.dtype().size_in_bytes());
        let flat = own.detach().flatten_all().fx()?;
        let mut at = 0;
        let read = source.for_each_chunk(&mut |bytes| {
            for bytes in bytes.chunks(PIECE) {
                let count = bytes.len() / size;
                let fill = Fill {
                    from: source.dtype(),
                    to: dtype,
                    at,
                    bytes,
                };
                if fill.is_direct() {
                    flat.inplace_op1(&fill).fx()?;
                } else {
                    let piece = TensorData::new(PATH, source.dtype(), vec![count], bytes)?;
                    let piece = from_data(&piece)?.cast(dtype)?;
                    flat.slice_set(piece.elements("read_from")?, 0, at).fx()?;
                }
                at += count;
            }
            Ok(())
        });
        written(&flat);
        read
    }
}

/// Writes the elements of a file into a tensor's memory from an element on.
struct Fill<'b> {
    from: DType,
    to: DType,
    at: usize,
    bytes: &'b [u8],
}

impl Fill<'_> {
    /// Whether elements are written one by one, as they are or as more precise floats.
    fn is_direct(&self) -> bool {
        match (self.from, self.to) {
            // A file may hold another number than 1 for true.
            (DType::Bool, _) => false,
            // Held in a wider type.
            (DType::I8 | DType::U16, _) => false,
            (DType::BF16 | DType::F16, DType::F32) => true,
            (from, to) => from == to,
        }
    }

    fn put<T: Copy, const N: usize>(
        &self,
        elements: &mut [T],
        start: usize,
        from_bytes: impl Fn([u8; N]) -> T,
    ) {
        let elements = elements.get_mut(start + self.at..).unwrap_or_default();
        for (element, bytes) in elements.iter_mut().zip(self.bytes.as_chunks().0) {
            *element = from_bytes(*bytes);
        }
    }
}

impl InplaceOp1 for Fill<'_> {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let start = layout.start_offset();
        match storage {
            CpuStorage::U8(all) => self.put(all, start, u8::from_le_bytes),
            CpuStorage::U32(all) => self.put(all, start, u32::from_le_bytes),
            CpuStorage::I16(all) => self.put(all, start, i16::from_le_bytes),
            CpuStorage::I32(all) => self.put(all, start, i32::from_le_bytes),
            CpuStorage::I64(all) => self.put(all, start, i64::from_le_bytes),
            CpuStorage::BF16(all) => self.put(all, start, bf16::from_le_bytes),
            CpuStorage::F16(all) => self.put(all, start, f16::from_le_bytes),
            CpuStorage::F32(all) => match self.from {
                DType::BF16 => self.put(all, start, |b| bf16::from_le_bytes(b).to_f32()),
                DType::F16 => self.put(all, start, |b| f16::from_le_bytes(b).to_f32()),
                _ => self.put(all, start, f32::from_le_bytes),
            },
            CpuStorage::F64(all) => self.put(all, start, f64::from_le_bytes),
            _ => candle_core::bail!("fill: candle's type has no counterpart in fx"),
        }
        Ok(())
    }
}

fx_core::register_tensor!(
    Tensor,
    PATH,
    |data| from_data(data).map(Value::object),
    source = Spelling,
);
