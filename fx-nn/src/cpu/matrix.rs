//! The weights of linear layers, packed: of tensors, and of blocks as GGUF files have them.
//!
//! Invariant: code has the numbers of blocks as they are; kinds without a kernel are no part of it.

use std::any::Any;

use candle_core::quantized::GgmlDType;
use candle_core::{CpuStorage, Storage};
use fx_core::module::Module;
use fx_core::passes::backend::Support;
use fx_core::value::DType;
use fx_core::{Error, Result};
use fx_kernels::Activation;
use fx_kernels::matrix::{BlockKind, Order, PackedMatrix, WeightKind, WeightOrder};

use super::call::{Args, Lowering};
use super::draft::{Id, Kind, Matrix};
use super::frame::slice;
use super::options::Options;
use crate::Tensor;
use crate::device::PROCESSOR;
use crate::error::Fx;
use crate::nn::QuantizedMatrix;

/// The matrix that a layer is.
pub(super) fn blocks_of(layer: &dyn Module) -> Option<&QuantizedMatrix> {
    (layer as &dyn Any).downcast_ref()
}

/// How numbers of a type are packed, as they are.
fn kind_of(dtype: GgmlDType) -> Option<WeightKind> {
    Some(match dtype {
        GgmlDType::F32 => WeightKind::F32,
        GgmlDType::F16 => WeightKind::F16,
        GgmlDType::BF16 => WeightKind::Bf16,
        GgmlDType::Q4_0 => WeightKind::Blocks(BlockKind::Q4_0),
        GgmlDType::Q4_1 => WeightKind::Blocks(BlockKind::Q4_1),
        GgmlDType::Q5_0 => WeightKind::Blocks(BlockKind::Q5_0),
        GgmlDType::Q5_1 => WeightKind::Blocks(BlockKind::Q5_1),
        GgmlDType::Q8_0 => WeightKind::Blocks(BlockKind::Q8_0),
        GgmlDType::Q4K => WeightKind::Blocks(BlockKind::Q4K),
        GgmlDType::Q5K => WeightKind::Blocks(BlockKind::Q5K),
        GgmlDType::Q6K => WeightKind::Blocks(BlockKind::Q6K),
        GgmlDType::Q8_1 | GgmlDType::Q2K | GgmlDType::Q3K | GgmlDType::Q8K => return None,
    })
}

/// Whether a program can have a call of a layer that nothing traces into.
pub(super) fn supports(layer: &dyn Module) -> Support {
    match blocks_of(layer) {
        Some(matrix) if kind_of(matrix.blocks().dtype()).is_some() => Support::Yes,
        Some(matrix) => {
            let kind = matrix.quantization();
            Support::no(format!("there is no kernel for blocks of {kind}"))
        }
        None => Support::no("its body works on data, and calls no operations"),
    }
}

/// A packed weight; one of floats as the options say, or in its own type.
pub(super) fn packed(matrix: &Matrix, options: &Options) -> Result<PackedMatrix> {
    match matrix {
        Matrix::Dense(tensor) if options.is_bf16(tensor.dtype()?) => {
            let kind = options.weights.unwrap_or(WeightKind::Bf16);
            Ok(packed_floats(tensor, Some(kind))?.round_rows())
        }
        Matrix::Dense(tensor) => packed_floats(tensor, options.weights),
        Matrix::Blocks(matrix) => packed_blocks(matrix, options),
    }
}

/// The weight of a linear layer, stored as it is if no other kind is asked for.
fn packed_floats(tensor: &Tensor, kind: Option<WeightKind>) -> Result<PackedMatrix> {
    let [outputs, inputs] = tensor.dims()?[..] else {
        return Err(Error::msg(
            "the weight of a linear layer has two dimensions",
        ));
    };
    let fits = |kind: &WeightKind| match kind {
        WeightKind::Blocks(kind) => inputs.is_multiple_of(kind.block_size()),
        _ => true,
    };
    let kind = kind.filter(fits);
    let data = tensor.candle()?.contiguous().map_err(Error::other)?;
    let (storage, layout) = data.storage_and_layout();
    let of = layout.start_offset()..layout.start_offset() + layout.shape().elem_count();
    let order = WeightOrder::OutputsFirst;
    macro_rules! packed {
        ($elements:expr, $own:expr) => {
            PackedMatrix::new(&$elements[of], inputs, outputs, order, kind.unwrap_or($own))
        };
    }
    let made = match &*storage {
        Storage::Cpu(CpuStorage::F16(elements)) => packed!(elements, WeightKind::F16),
        Storage::Cpu(CpuStorage::BF16(elements)) => packed!(elements, WeightKind::Bf16),
        storage => packed!(slice(storage)?, WeightKind::F32),
    };
    made.map_err(Error::other)
}

fn packed_blocks(matrix: &QuantizedMatrix, options: &Options) -> Result<PackedMatrix> {
    let blocks = matrix.blocks();
    match kind_of(blocks.dtype()) {
        Some(WeightKind::Blocks(kind)) => {
            let [outputs, inputs] = matrix.shape();
            let bytes = blocks.data().fx()?;
            PackedMatrix::from_blocks(kind, &bytes, inputs, outputs).map_err(Error::other)
        }
        Some(kind) => {
            let floats = Tensor::from(blocks.dequantize(&PROCESSOR).fx()?);
            // The graph's own product takes inputs in `f32`, whatever the type of the weight.
            match options.is_bf16(DType::F32) {
                true => Ok(packed_floats(&floats, Some(WeightKind::Bf16))?.round_rows()),
                false => packed_floats(&floats, Some(kind)),
            }
        }
        None => Err(Error::msg(format_args!(
            "there is no kernel for blocks of {}",
            matrix.quantization()
        ))),
    }
}

impl Lowering<'_> {
    /// The product of a matrix in blocks.
    pub fn product_with_blocks(&mut self, args: &Args<'_>, matrix: &QuantizedMatrix) -> Result<Id> {
        let kind = Kind::Linear {
            weight: Matrix::Blocks(matrix.clone()),
            bias: None,
            activation: Activation::None,
            order: Order::ActivationFirst,
        };
        let x = self.floats(args, "x");
        let made = x.and_then(|x| self.push(args, kind, vec![x]));
        made.ok_or_else(|| Error::msg("a product with blocks is of floats of at most 32 bits"))
    }
}
