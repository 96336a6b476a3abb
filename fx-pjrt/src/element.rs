//! Element types of devices, and tensors of the host as bytes.
//!
//! Invariant: a tensor's elements are handed over as they are held, without a copy, wherever they lie in order.

use std::borrow::Cow;

use fx_nn::candle_core::{CpuStorage, Storage, WithDType};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use half::{bf16, f16};

use crate::sys;

/// The types that devices and fx both have.
const TYPES: [(DType, sys::PJRT_Buffer_Type); 13] = [
    (DType::Bool, sys::PJRT_Buffer_Type_PRED),
    (DType::I8, sys::PJRT_Buffer_Type_S8),
    (DType::I16, sys::PJRT_Buffer_Type_S16),
    (DType::I32, sys::PJRT_Buffer_Type_S32),
    (DType::I64, sys::PJRT_Buffer_Type_S64),
    (DType::U8, sys::PJRT_Buffer_Type_U8),
    (DType::U16, sys::PJRT_Buffer_Type_U16),
    (DType::U32, sys::PJRT_Buffer_Type_U32),
    (DType::U64, sys::PJRT_Buffer_Type_U64),
    (DType::F16, sys::PJRT_Buffer_Type_F16),
    (DType::F32, sys::PJRT_Buffer_Type_F32),
    (DType::F64, sys::PJRT_Buffer_Type_F64),
    (DType::BF16, sys::PJRT_Buffer_Type_BF16),
];

/// The device's name of an element type.
pub(crate) fn buffer_type(dtype: DType) -> Result<sys::PJRT_Buffer_Type> {
    let found = TYPES.iter().find(|(known, _)| *known == dtype);
    found
        .map(|(_, of)| *of)
        .ok_or_else(|| Error::msg(format_args!("devices have no tensors of {dtype}")))
}

/// The element type of a device's name of it.
pub(crate) fn dtype_of(of: sys::PJRT_Buffer_Type) -> Result<DType> {
    let found = TYPES.iter().find(|(_, known)| *known == of);
    found.map(|(dtype, _)| *dtype).ok_or_else(|| {
        Error::msg(format_args!(
            "the device gives elements of a type that fx does not have (number {of})"
        ))
    })
}

/// Elements as bytes.
fn bytes_of<T>(elements: &[T]) -> &[u8] {
    // SAFETY: the elements are numbers without padding, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Passes a tensor's elements to `take`, row-major, as they are held if they lie in order.
pub(crate) fn with_bytes<R>(tensor: &Tensor, take: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    let dtype = tensor.dtype()?;
    let data = tensor.candle()?;
    let is_as_held = data.dtype().size_in_bytes() == dtype.size_in_bytes();
    if let (true, Some((start, end))) = (is_as_held, data.layout().contiguous_offsets()) {
        let (storage, _) = data.storage_and_layout();
        let held = match &*storage {
            Storage::Cpu(CpuStorage::U8(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::U32(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::I16(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::I32(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::I64(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::BF16(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::F16(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::F32(all)) => all.get(start..end).map(bytes_of),
            Storage::Cpu(CpuStorage::F64(all)) => all.get(start..end).map(bytes_of),
            _ => None,
        };
        if let Some(held) = held {
            return take(held);
        }
    }
    let data = tensor.to_data()?;
    let bytes: Cow<'_, [u8]> = data.bytes()?;
    take(&bytes)
}

/// Memory that a device writes a tensor's elements into.
pub(crate) enum Host {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    BF16(Vec<bf16>),
    F16(Vec<f16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Does the same with the vector of any type.
macro_rules! with_vector {
    ($host:expr, $vector:ident => $body:expr) => {
        match $host {
            Host::U8($vector) => $body,
            Host::I8($vector) => $body,
            Host::U16($vector) => $body,
            Host::U32($vector) => $body,
            Host::I16($vector) => $body,
            Host::I32($vector) => $body,
            Host::I64($vector) => $body,
            Host::BF16($vector) => $body,
            Host::F16($vector) => $body,
            Host::F32($vector) => $body,
            Host::F64($vector) => $body,
        }
    };
}

impl Host {
    /// Zeros.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn zeros(dtype: DType, count: usize) -> Result<Self> {
        fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>> {
            let mut all = Vec::new();
            all.try_reserve_exact(count).map_err(Error::other)?;
            all.resize(count, T::default());
            Ok(all)
        }
        Ok(match dtype {
            DType::Bool | DType::U8 => Host::U8(zeros(count)?),
            DType::I8 => Host::I8(zeros(count)?),
            DType::U16 => Host::U16(zeros(count)?),
            DType::U32 => Host::U32(zeros(count)?),
            DType::I16 => Host::I16(zeros(count)?),
            DType::I32 => Host::I32(zeros(count)?),
            // Held bit for bit.
            DType::I64 | DType::U64 => Host::I64(zeros(count)?),
            DType::BF16 => Host::BF16(zeros(count)?),
            DType::F16 => Host::F16(zeros(count)?),
            DType::F32 => Host::F32(zeros(count)?),
            DType::F64 => Host::F64(zeros(count)?),
            other => return Err(Error::msg(format_args!("{other} has no elements"))),
        })
    }

    /// The memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        fn bytes<T>(all: &mut [T]) -> &mut [u8] {
            let size = size_of_val(all);
            // SAFETY: every pattern of bits is a number of these types, which have no padding.
            unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast(), size) }
        }
        with_vector!(self, all => bytes(all))
    }

    /// The tensor of the elements.
    pub fn into_tensor(self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        fn made<T: WithDType>(all: Vec<T>, shape: &[usize]) -> Result<Tensor> {
            Tensor::from_vec(all, shape)
        }
        // What fx holds in another type.
        fn held<T: WithDType>(all: Vec<T>, shape: &[usize], dtype: DType) -> Result<Tensor> {
            ops::to_dtype(&made(all, shape)?, dtype)
        }
        fn widened<T, W: WithDType + From<T>>(
            all: Vec<T>,
            shape: &[usize],
            dtype: DType,
        ) -> Result<Tensor> {
            held::<W>(all.into_iter().map(W::from).collect(), shape, dtype)
        }
        match self {
            Host::I8(all) => widened::<_, i16>(all, shape, dtype),
            Host::U16(all) => widened::<_, i32>(all, shape, dtype),
            Host::U8(all) => held(all, shape, dtype),
            Host::I64(all) => held(all, shape, dtype),
            Host::U32(all) => made(all, shape),
            Host::I16(all) => made(all, shape),
            Host::I32(all) => made(all, shape),
            Host::BF16(all) => made(all, shape),
            Host::F16(all) => made(all, shape),
            Host::F32(all) => made(all, shape),
            Host::F64(all) => made(all, shape),
        }
    }
}
