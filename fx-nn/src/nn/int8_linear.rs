//! `Int8Linear`: a linear layer with int8 weights.

use fx_core::value::DType;
use fx_core::{Error, Module, Result, trace};

use super::linear::Linear;
use super::lora_linear::sizes;
use crate::ops;
use crate::tensor::Tensor;

/// The byte of zero: candle has no int8, so that a byte `q` stands for `q - 128`.
const ZERO: f64 = 128.0;

/// The largest step on either side of zero.
const STEPS: f64 = 127.0;

/// The smallest number with all its digits; below it, a type rounds coarsely. Scales are computed in `float32`.
fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-14),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// y = x Wᵀ + b, for `x` of shape `[.., in_features]`, with W kept in bytes: Wᵢⱼ ≈ scaleᵢ · (weightᵢⱼ − 128).
///
/// Each row has its own scale, the largest |Wᵢⱼ| of the row over 127 in the type of the weights,
/// and no less than the smallest normal number of that type; an element is off by half a scale at
/// most, before the product is rounded. Every run converts the steps to floats, and multiplies the
/// product by the scales. The tensors are state, not parameters: they are not trained.
///
/// ```
/// use fx_nn::prelude::*;
/// let linear = nn::Linear::new(64, 32)?;
/// let small = nn::Int8Linear::from_linear(&linear)?;
/// assert_eq!(small.weight.dtype()?, DType::U8);
/// let x = Tensor::rand((3, 64))?;
/// assert!(fx_nn::allclose(&small.forward(&x)?, &linear.forward(&x)?, 0.0, 0.02)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Int8Linear {
    /// `[out_features, in_features]`, `uint8`: steps from zero, plus 128.
    #[module(buffer)]
    pub weight: Tensor,
    /// `[out_features]`, floating point: the step of each row; `x` must have the same type.
    #[module(buffer)]
    pub scale: Tensor,
    /// `[out_features]`.
    #[module(buffer)]
    pub bias: Option<Tensor>,
}

impl Int8Linear {
    /// The layer of a linear layer, its weights rounded to the nearest step.
    ///
    /// # Errors
    /// Returns an error if a weight is infinite or NaN, or a tensor is symbolic.
    pub fn from_linear(linear: &Linear) -> Result<Self> {
        let [rows, columns] = sizes(linear)?;
        let dtype = linear.weight.dtype()?;
        let weight = linear.weight.detach()?.cast(DType::F32)?;
        let data = weight.to_vec()?;
        let smallest = smallest_normal(dtype);
        let mut scales = Vec::with_capacity(rows);
        for row in 0..rows {
            let values = &data[row * columns..(row + 1) * columns];
            if let Some(column) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::msg(format_args!(
                    "int8: the weight at [{row}, {column}] is {}, which no byte can represent",
                    values[column]
                )));
            }
            let largest = values.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
            // A row of zeros may have any scale.
            let scale = if largest > 0.0 { largest / STEPS } else { 1.0 };
            scales.push(scale.max(smallest) as f32);
        }
        // Steps are counted in the stored scales, not in those before rounding.
        let scale = Tensor::from_vec(scales, rows)?.cast(dtype)?;
        let kept = scale.cast(DType::F32)?.to_vec()?;
        let mut bytes = Vec::with_capacity(data.len());
        for (row, scale) in kept.iter().enumerate() {
            let values = &data[row * columns..(row + 1) * columns];
            let steps = values.iter().map(|w| (w / scale).round());
            bytes.extend(steps.map(|step| (step.clamp(-STEPS, STEPS) + ZERO) as u8));
        }
        Ok(Int8Linear {
            weight: Tensor::from_vec(bytes, (rows, columns))?,
            scale,
            bias: linear.bias.as_ref().map(Tensor::detach).transpose()?,
        })
    }

    /// The linear layer of the rounded weights, frozen.
    ///
    /// # Errors
    /// Returns an error if a tensor is symbolic.
    pub fn dequantized(&self) -> Result<Linear> {
        Ok(Linear {
            weight: (self.steps()? * self.scale.unsqueeze(-1)?)?,
            bias: self.bias.clone(),
        })
    }

    /// The weights in steps, as floats.
    fn steps(&self) -> Result<Tensor> {
        self.weight.to_dtype(self.scale.dtype()?)? - ZERO
    }
}

#[trace(leaf, path = "fx_nn::nn::Int8Linear")]
impl Int8Linear {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the last dim of `x` is not `in_features`, or its type is not the
    /// scale's.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = (ops::linear(x, &self.steps()?, None)? * &self.scale)?;
        match &self.bias {
            Some(bias) => y + bias,
            None => Ok(y),
        }
    }
}
