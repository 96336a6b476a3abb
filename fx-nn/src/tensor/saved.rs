//! A tensor's elements as bytes of a file, and back, for every element type.

use candle_core::{Device, Var};
use fx_core::{DType, Result, TensorData, Value};

use super::source::Spelling;
use super::{Tensor, candle_dtype};
use crate::error::Fx;

/// The name of the tensor type in files.
const PATH: &str = "fx_nn::Tensor";

pub(super) fn to_data(tensor: &Tensor) -> Result<TensorData<'static>> {
    let data = tensor.data("to_data")?;
    let dtype = tensor.dtype()?;
    let mut bytes = Vec::with_capacity(data.elem_count() * dtype.size_in_bytes());
    data.write_bytes(&mut bytes).fx()?;
    Ok(TensorData::new(PATH, dtype, data.dims().to_vec(), bytes)?
        .with_parameter(data.is_variable()))
}

pub(crate) fn from_data(data: &TensorData<'_>) -> Result<Tensor> {
    let (dtype, device) = (candle_dtype(data.dtype())?, Device::Cpu);
    let make = |bytes: &[u8]| {
        candle_core::Tensor::from_raw_buffer(bytes, dtype, data.shape(), &device).fx()
    };
    let tensor = match data.dtype() {
        DType::Bool => {
            // Whoever wrote the file may have other truths than 1.
            let bytes: Vec<u8> = data.bytes().iter().map(|b| u8::from(*b != 0)).collect();
            Tensor::from_bools(make(&bytes)?)
        }
        _ => make(data.bytes())?.into(),
    };
    if !data.is_parameter() {
        return Ok(tensor);
    }
    let variable = Var::from_tensor(tensor.data("from_data")?).fx()?;
    Ok(tensor.with_data(variable.as_tensor().clone()))
}

fx_core::register_tensor!(
    Tensor,
    PATH,
    |data| from_data(data).map(Value::object),
    source = Spelling,
);
