//! Files in rten. It has `float` and `int32` alone: whole numbers are narrowed on the way in, and wide on the way out.

use fx_nn::prelude::*;
use rten::{Model, NodeId, Value as RtenValue, ValueOrView};
use rten_tensor::prelude::*;

fn foreign(error: impl std::fmt::Display) -> Error {
    Error::msg(format_args!("rten: {error}"))
}

/// A tensor as rten's.
pub fn to_rten(x: &Tensor) -> Result<RtenValue> {
    let shape = x.dims()?.to_vec();
    let values = x.to_vec()?;
    match x.dtype()?.is_floating_point() {
        true => RtenValue::from_shape(&shape, values.iter().map(|v| *v as f32).collect::<Vec<_>>())
            .map_err(foreign),
        false => {
            RtenValue::from_shape(&shape, values.iter().map(|v| *v as i32).collect::<Vec<_>>())
                .map_err(foreign)
        }
    }
}

/// rten's tensor as ours.
pub fn from_rten(value: &RtenValue) -> Result<Tensor> {
    match value {
        RtenValue::FloatTensor(of) => {
            Tensor::from_vec(of.iter().copied().collect(), of.shape().to_vec())
        }
        RtenValue::Int32Tensor(of) => Tensor::from_vec(
            of.iter().map(|v| i64::from(*v)).collect(),
            of.shape().to_vec(),
        ),
        RtenValue::UInt8Tensor(of) => {
            Tensor::from_vec(of.iter().copied().collect(), of.shape().to_vec())
        }
        _ => Err(Error::msg("rten gave a sequence")),
    }
}

/// Loads a file.
pub fn load(bytes: Vec<u8>) -> Result<Model> {
    Model::load(bytes).map_err(foreign)
}

/// Runs a loaded file on its inputs, in order.
pub fn run(model: &Model, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let ids = model.input_ids();
    let values = inputs
        .iter()
        .map(to_rten)
        .collect::<Result<Vec<RtenValue>>>()?;
    let named: Vec<(NodeId, ValueOrView<'_>)> = ids
        .iter()
        .copied()
        .zip(values.into_iter().map(ValueOrView::Value))
        .collect();
    let outputs = model
        .run(named, model.output_ids(), None)
        .map_err(foreign)?;
    outputs.iter().map(from_rten).collect()
}
