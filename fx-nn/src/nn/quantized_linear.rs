//! `QuantizedLinear`: a linear layer whose weights stay in the blocks of a GGUF file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use fx_core::file::{Json, Loader, Saver};
use fx_core::module::Component;
use fx_core::tensor::FakeTensor;
use fx_core::{Error, Module, Result, trace};

use super::linear::Linear;
use crate::device::PROCESSOR;
use crate::error::Fx;
use crate::kernels::quantized;
use crate::tensor::Tensor;

/// y = x Wᵀ + b, for `x` of shape `[.., in_features]`, with W in blocks of a few bits per element,
/// as in llama.cpp's GGUF files. If the blocks are of bytes, `x` is rounded to bytes too before the
/// product, which is in `float32`; the result has the type of `x`.
///
/// The blocks are not a tensor: [`GraphModule::save`](crate::GraphModule) keeps them, lists of
/// tensors and `weights::save` do not.
/// [`Checkpoint::quantized_linear`](crate::weights::Checkpoint::quantized_linear) reads a layer
/// from a GGUF file. The blocks are not trained; gradients run through to `x`.
///
/// ```
/// use fx_nn::prelude::*;
/// let linear = nn::Linear::new(64, 32)?;
/// let small = nn::QuantizedLinear::from_linear(&linear, "Q8_0")?;
/// let x = Tensor::rand((3, 64))?;
/// assert!(fx_nn::allclose(&small.forward(&x)?, &linear.forward(&x)?, 0.0, 0.02)?.close);
/// assert_eq!((small.weight.shape(), small.weight.bytes()), ([32, 64], 32 * 68));
///
/// // It is traced and saved as other layers are.
/// let gm = symbolic_trace(&nn::Sequential::new().push(small.clone()))?;
/// let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
/// assert_eq!(loaded.forward::<Tensor>(&x)?.to_vec()?, small.forward(&x)?.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct QuantizedLinear {
    /// `[out_features, in_features]`.
    pub weight: QuantizedMatrix,
    /// `[out_features]`.
    #[module(buffer)]
    pub bias: Option<Tensor>,
}

impl QuantizedLinear {
    /// The layer of a linear layer, rounded to a type such as `Q8_0`, `Q4_0` or `Q4K`.
    ///
    /// # Errors
    /// Returns an error if there is no such type, its blocks do not divide `in_features`, or a weight is infinite, NaN,
    /// or too large for the scale of a block.
    pub fn from_linear(linear: &Linear, quantization: &str) -> Result<Self> {
        let dtype = quantized_type(quantization)?;
        let weight = linear.weight.detach()?;
        let data = QTensor::quantize(weight.data("quantized_linear")?, dtype).fx()?;
        let kept = Tensor::from(data.dequantize(&PROCESSOR).fx()?);
        let columns = data.shape().dims().last().copied().unwrap_or(1);
        let (values, kept) = (weight.to_vec()?, kept.to_vec()?);
        let first = |all: &[f64]| all.iter().position(|value| !value.is_finite());
        let place = |at: usize| [at / columns, at % columns];
        if let Some(at) = first(&values) {
            return Err(Error::msg(format_args!(
                "quantized_linear: the weight at {:?} is {}, which {quantization} cannot represent",
                place(at),
                values[at]
            )));
        }
        if let Some(at) = first(&kept) {
            return Err(Error::msg(format_args!(
                "quantized_linear: the weights from {:?} are too large for the scale of a {quantization} block",
                place(at)
            )));
        }
        Ok(QuantizedLinear {
            weight: QuantizedMatrix::of(data)?,
            bias: linear.bias.as_ref().map(Tensor::detach).transpose()?,
        })
    }

    /// The linear layer of the rounded weights, frozen.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn dequantized(&self) -> Result<Linear> {
        Ok(Linear {
            weight: self.weight.blocks.0.dequantize(&PROCESSOR).fx()?.into(),
            bias: self.bias.clone(),
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::QuantizedLinear")]
impl QuantizedLinear {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` is not floating point, or its last dim is not `in_features`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.weight.forward(x)?;
        match &self.bias {
            Some(bias) => y + bias,
            None => Ok(y),
        }
    }
}

/// The matrix of a [`QuantizedLinear`], in blocks of a few bits per element, which copies share.
#[derive(Module, Clone, Debug)]
pub struct QuantizedMatrix {
    blocks: Blocks,
}

impl QuantizedMatrix {
    pub(crate) fn of(data: QTensor) -> Result<Self> {
        match data.shape().dims() {
            [_, _] => Ok(QuantizedMatrix {
                blocks: Blocks(Arc::new(data)),
            }),
            dims => Err(Error::msg(format_args!(
                "quantized_linear: a weight is [out_features, in_features], not of shape {dims:?}"
            ))),
        }
    }

    /// The matrix of some rows of this one.
    pub(crate) fn rows(&self, rows: &[usize]) -> Result<Self> {
        let (all, columns) = self.blocks.0.shape().dims2().fx()?;
        let bytes = self.blocks.0.data().fx()?;
        let width = bytes.len() / all.max(1);
        let mut chosen = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let bytes = bytes.get(row * width..(row + 1) * width);
            let bytes = bytes.ok_or_else(|| {
                Error::msg(format_args!(
                    "quantized_linear: there is no row {row} of {all}"
                ))
            })?;
            chosen.extend_from_slice(bytes);
        }
        let data = blocks_of(chosen, self.blocks.0.dtype(), [rows.len(), columns])?;
        QuantizedMatrix::of(data)
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        let dims = self.blocks.0.shape().dims();
        dims.try_into().expect("a matrix has two dims")
    }

    /// The type of the blocks, such as `Q4K`.
    pub fn quantization(&self) -> String {
        format!("{:?}", self.blocks.0.dtype())
    }

    /// The blocks.
    pub(crate) fn blocks(&self) -> &QTensor {
        &self.blocks.0
    }

    /// How many bytes the blocks have.
    pub fn bytes(&self) -> usize {
        self.blocks.0.storage_size_in_bytes()
    }
}

#[trace(opaque, path = "fx_nn::nn::QuantizedMatrix")]
impl QuantizedMatrix {
    /// x Wᵀ.
    ///
    /// # Errors
    /// Returns an error if `x` is not floating point, or its last dim does not have as many
    /// elements as the matrix has columns.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(fake) = x.as_fake() {
            return self.of_fake(fake);
        }
        let product = quantized::linear(x.data("quantized_linear")?, &self.blocks.0);
        product.fx().map(Tensor::from)
    }
}

impl QuantizedMatrix {
    /// What it gives for a tensor without data.
    fn of_fake(&self, x: &FakeTensor) -> Result<Tensor> {
        let [rows, columns] = self.shape();
        let mut dims = x.dims().to_vec();
        match dims.last_mut() {
            Some(last) if last.as_known().is_none_or(|size| size == columns) => *last = rows.into(),
            _ => {
                return Err(Error::msg(format_args!(
                    "quantized_linear: {x:?} has no last dim of {columns}"
                )));
            }
        }
        let made = FakeTensor::new(dims, x.dtype(), x.device());
        Ok(Tensor::of_fake(made.with_grad(x.requires_grad())))
    }
}

/// The type of a name, as [`Checkpoint::quantization`](crate::weights::Checkpoint::quantization) has it.
fn quantized_type(name: &str) -> Result<GgmlDType> {
    let all = [
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q8_1,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
        GgmlDType::Q8K,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::F32,
    ];
    let known = |dtype: &GgmlDType| format!("{dtype:?}");
    let found = all.iter().find(|dtype| known(dtype) == name);
    found.copied().ok_or_else(|| {
        let names: Vec<String> = all.iter().map(known).collect();
        Error::msg(format_args!(
            "quantized_linear: `{name}` is not a type of blocks: there are {}",
            names.join(", ")
        ))
    })
}

/// The blocks, which are saved as bytes.
#[derive(Clone, Debug)]
struct Blocks(Arc<QTensor>);

impl Component for Blocks {
    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let bytes = self.0.data().fx()?.into_owned();
        let count = bytes.len();
        let blocks = Tensor::from_vec(bytes, count)?;
        let (rows, columns) = self.0.shape().dims2().fx()?;
        (format!("{:?}", self.0.dtype()), rows, columns, blocks).to_saved(saver)
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        let (name, rows, columns, blocks) =
            <(String, usize, usize, Tensor)>::from_saved(saved, loader)?;
        let dtype = quantized_type(&name)?;
        let found = blocks.data("quantized_linear")?.to_vec1::<u8>().fx()?;
        let (block, size) = (dtype.block_size(), dtype.type_size());
        let fits = |count: usize| (count / block).checked_mul(size) == Some(found.len());
        if !columns.is_multiple_of(block) || !rows.checked_mul(columns).is_some_and(fits) {
            return Err(Error::msg(format_args!(
                "quantized_linear: {} bytes are not matrix [{rows}, {columns}] of {name}",
                found.len()
            )));
        }
        let data = blocks_of(found, dtype, [rows, columns])?;
        Ok(Blocks(Arc::new(data)))
    }
}

/// A matrix of the bytes of its blocks.
fn blocks_of(bytes: Vec<u8>, dtype: GgmlDType, [rows, columns]: [usize; 2]) -> Result<QTensor> {
    // Candle panics if the bytes are not aligned like its blocks.
    let read = AssertUnwindSafe(|| QStorage::from_data(bytes.into(), &PROCESSOR, dtype));
    let storage = catch_unwind(read).map_err(|_| {
        Error::msg("quantized_linear: the blocks do not lie where candle can read them")
    })?;
    QTensor::new(storage.fx()?, (rows, columns)).fx()
}
