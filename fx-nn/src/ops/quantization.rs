//! Floats as integers of few bits and back: a scale and a zero point for a tensor, or for each index along a dim.
//!
//! Invariant: an eager call and the functions that it is written by share their steps, so that both have the same bits.

use crate::op;
use fx_core::passes::DecomposedCall;
use fx_core::value::DType;
use fx_core::{Error, Result};

use crate::error::{Fx, require, unfit};
use crate::kernels::dim;
use crate::ops;
use crate::tensor::{Number, Tensor, TensorOrNumber};

/// Floats as integers: round(x / scale) + zero_point, half to even, held between `quant_min` and `quant_max`.
///
/// `scale` and `zero_point` are numbers, tensors of one element, or, with `axis`, a tensor each with a number for each
/// index along that dim. As in PyTorch, x is multiplied with 1 / scale in `float32`. `dtype` is an integer type of 8 or
/// 16 bits. See `torch.ops.torchao.quantize_affine` and `torch.ops.quantized_decomposed.quantize_per_tensor`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.0, 0.24, 1.0, 100.0], 5)?;
/// let q = ops::quantize_affine(&x, 0.1, 128, 0, 255, DType::U8, None)?;
/// assert_eq!(q.to_vec()?, [118.0, 128.0, 130.0, 138.0, 255.0]);
/// let back = ops::dequantize_affine(&q, 0.1, 128, None)?;
/// assert_eq!(back.dtype()?, DType::F32);
/// assert!((back.to_vec()?[2] - 0.2).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if x is not float, `dtype` is not an integer type of 8 or 16 bits or does not hold the range, the
/// range is empty, a scale that is a number is not above 0, or the sizes of scales and zero points do not fit.
#[op(
    member,
    composed = levels_of_call,
    flat = "is flat",
    path = "fx_nn::ops::quantize_affine"
)]
pub fn quantize_affine(
    x: &Tensor,
    scale: impl Into<TensorOrNumber>,
    zero_point: impl Into<TensorOrNumber>,
    quant_min: i64,
    quant_max: i64,
    dtype: DType,
    #[default(None)] axis: impl Into<Option<i64>>,
) -> Result<Tensor> {
    let name = "quantize_affine";
    require(name, x.dtype()?.is_floating_point())?;
    require(name, held_by(dtype, quant_min, quant_max))?;
    let affine = Affine::checked(name, x, scale, zero_point, axis)?;
    affine
        .levels(&x.cast(DType::F32)?, quant_min, quant_max)?
        .cast(dtype)
}

/// The floats (`float32`) that integers of few bits stand for: (x - zero_point) · scale.
///
/// `scale` and `zero_point` are as for [`quantize_affine`].
///
/// ```
/// use fx_nn::prelude::*;
/// let q = Tensor::from_vec(vec![0i64, 10, 0, 10], (2, 2))?.to_dtype(DType::I8)?;
/// let (scale, zero) = (Tensor::from_vec(vec![0.5f32, 2.0], 2)?, Tensor::from_vec(vec![0i64, 10], 2)?);
/// assert_eq!(ops::dequantize_affine(&q, &scale, &zero, 0)?.to_vec()?, [0.0, 5.0, -20.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if x is not of integers, a scale that is a number is not above 0, or the sizes of scales and zero
/// points do not fit.
#[op(
    member,
    composed = values_of_call,
    path = "fx_nn::ops::dequantize_affine"
)]
pub fn dequantize_affine(
    x: &Tensor,
    scale: impl Into<TensorOrNumber>,
    zero_point: impl Into<TensorOrNumber>,
    #[default(None)] axis: impl Into<Option<i64>>,
) -> Result<Tensor> {
    let name = "dequantize_affine";
    let dtype = x.dtype()?;
    require(name, !dtype.is_floating_point() && dtype != DType::Bool)?;
    Affine::checked(name, x, scale, zero_point, axis)?.values(&x.cast(DType::F32)?)
}

/// Floats as [`quantize_affine`] and [`dequantize_affine`] would give them, for training: where an element is within
/// the range, the gradient passes as if nothing had happened, and elsewhere it is 0.
///
/// The result has the type of x. See `torch.fake_quantize_per_tensor_affine` and
/// `torch.fake_quantize_per_channel_affine`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.04, 0.26, 9.0], 4)?.into_parameter()?;
/// let y = ops::fake_quantize_affine(&x, 0.5, 0, 0, 15, None)?;
/// assert_eq!(y.to_vec()?, [0.0, 0.0, 0.5, 7.5]);
/// assert_eq!(y.sum(..)?.grad(&[&x])?[0].to_vec()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if x is not float, the range is empty, a scale that is a number is not above 0, or the sizes of
/// scales and zero points do not fit.
#[op(
    member,
    composed = steps_of_call,
    path = "fx_nn::ops::fake_quantize_affine"
)]
pub fn fake_quantize_affine(
    x: &Tensor,
    scale: impl Into<TensorOrNumber>,
    zero_point: impl Into<TensorOrNumber>,
    quant_min: i64,
    quant_max: i64,
    #[default(None)] axis: impl Into<Option<i64>>,
) -> Result<Tensor> {
    let name = "fake_quantize_affine";
    let dtype = x.dtype()?;
    require(name, dtype.is_floating_point() && quant_min < quant_max)?;
    let affine = Affine::checked(name, x, scale, zero_point, axis)?;
    let rounded = affine.rounded(&x.cast(DType::F32)?.detach()?)?;
    let levels = ops::clamp(&rounded, quant_min as f64, quant_max as f64)?;
    let steps = affine.values(&levels)?.cast(dtype)?;
    // The same number, with the gradient of x where it is within the range.
    let within = is_within(&rounded, quant_min, quant_max)?;
    let passed = ops::r#where(&within, x, 0.0)?;
    steps + (&passed - passed.detach()?)?
}

/// Scales and zero points as they stand beside the elements.
pub(crate) struct Affine {
    scale: TensorOrNumber,
    zero_point: TensorOrNumber,
}

impl Affine {
    /// Those of an eager call.
    fn checked(
        name: &str,
        x: &Tensor,
        scale: impl Into<TensorOrNumber>,
        zero_point: impl Into<TensorOrNumber>,
        axis: impl Into<Option<i64>>,
    ) -> Result<Self> {
        let (scale, zero_point) = (scale.into(), zero_point.into());
        let dims = x.dims()?;
        let axis = match axis.into() {
            None => None,
            Some(axis) => Some(dim::dim(name, axis, dims.len()).fx()?),
        };
        let count = axis.and_then(|at| dims.get(at)).copied().unwrap_or(1);
        let fits = |own: &TensorOrNumber| match own {
            TensorOrNumber::Number(_) => Ok(true),
            TensorOrNumber::Tensor(own) => own.dims().map(|own| match own {
                [] | [1] => true,
                [own] => axis.is_some() && *own == count,
                _ => false,
            }),
        };
        require(name, fits(&scale)? && fits(&zero_point)?)?;
        if let TensorOrNumber::Number(scale) = &scale {
            require(name, scale.as_f64() > 0.0)?;
        }
        if let TensorOrNumber::Tensor(scale) = &scale {
            require(name, scale.dtype()?.is_floating_point())?;
        }
        Affine::new(scale, zero_point, axis.map(|axis| (axis, dims.len())))
    }

    /// Those of a call whose x has so many dims, if it is known.
    pub(crate) fn along(
        scale: TensorOrNumber,
        zero_point: TensorOrNumber,
        axis: Option<i64>,
        rank: Option<usize>,
    ) -> Result<Self> {
        let name = "quantization along an axis";
        let axis = axis.map(|axis| {
            let rank = rank.ok_or_else(|| unfit(name))?;
            Ok::<_, Error>((dim::dim(name, axis, rank).fx()?, rank))
        });
        Affine::new(scale, zero_point, axis.transpose()?)
    }

    /// With an axis of so many, both stand along it.
    fn new(
        scale: TensorOrNumber,
        zero_point: TensorOrNumber,
        axis: Option<(usize, usize)>,
    ) -> Result<Self> {
        let along = |own: TensorOrNumber| -> Result<TensorOrNumber> {
            let TensorOrNumber::Tensor(own) = own else {
                return Ok(own);
            };
            let mut shape = vec![1i64; axis.map_or(0, |(_, rank)| rank)];
            if let Some(size) = axis.and_then(|(axis, _)| shape.get_mut(axis)) {
                *size = -1;
            }
            let own = ops::to_dtype(&own, DType::F32)?;
            Ok(TensorOrNumber::Tensor(ops::reshape(&own, shape)?))
        };
        Ok(Affine {
            scale: along(scale)?,
            zero_point: along(zero_point)?,
        })
    }

    /// The integers before they are held in a range, as floats.
    fn rounded(&self, x: &Tensor) -> Result<Tensor> {
        let scaled = match &self.scale {
            TensorOrNumber::Number(scale) => x * (1.0 / scale.as_f64()),
            TensorOrNumber::Tensor(scale) => x * ops::reciprocal(scale)?,
        };
        let rounded = ops::round(&scaled?, 0)?;
        match &self.zero_point {
            TensorOrNumber::Number(zero) if zero.as_f64() == 0.0 => Ok(rounded),
            TensorOrNumber::Number(zero) => rounded + zero.as_f64(),
            TensorOrNumber::Tensor(zero) => rounded + zero,
        }
    }

    /// The integers, as floats.
    fn levels(&self, x: &Tensor, quant_min: i64, quant_max: i64) -> Result<Tensor> {
        ops::clamp(&self.rounded(x)?, quant_min as f64, quant_max as f64)
    }

    /// What integers that are held as floats stand for.
    fn values(&self, levels: &Tensor) -> Result<Tensor> {
        let moved = match &self.zero_point {
            TensorOrNumber::Number(zero) if zero.as_f64() == 0.0 => levels.clone(),
            TensorOrNumber::Number(zero) => (levels - zero.as_f64())?,
            TensorOrNumber::Tensor(zero) => (levels - zero)?,
        };
        match &self.scale {
            TensorOrNumber::Number(scale) => moved * scale.as_f64(),
            TensorOrNumber::Tensor(scale) => moved * scale,
        }
    }

    /// What the integers of numbers stand for.
    fn steps(&self, x: &Tensor, quant_min: i64, quant_max: i64) -> Result<Tensor> {
        self.values(&self.levels(x, quant_min, quant_max)?)
    }

    /// Whether the integers of numbers are within a range.
    pub(crate) fn is_within(&self, x: &Tensor, quant_min: i64, quant_max: i64) -> Result<Tensor> {
        is_within(&self.rounded(x)?, quant_min, quant_max)
    }
}

/// Whether integers, as floats, are within a range.
fn is_within(rounded: &Tensor, quant_min: i64, quant_max: i64) -> Result<Tensor> {
    ops::logical_and(
        &rounded.ge(quant_min as f64)?,
        &rounded.le(quant_max as f64)?,
    )
}

/// Whether a type of integers of 8 or 16 bits holds a range, which is not empty.
pub(crate) fn held_by(dtype: DType, quant_min: i64, quant_max: i64) -> bool {
    let is_small = matches!(dtype, DType::U8 | DType::I8 | DType::U16 | DType::I16);
    is_small
        && quant_min < quant_max
        && [quant_min, quant_max]
            .iter()
            .all(|&end| Number::Int(end).check("", dtype).is_ok())
}

fn range_of(call: &DecomposedCall<'_>) -> Result<(i64, i64)> {
    Ok((call.arg("quant_min")?, call.arg("quant_max")?))
}

/// What a call gives, element by element of x in `float32`. Where nothing says how many dims x has, its axis is the last one
/// meanwhile.
fn each_of_call(
    call: &DecomposedCall<'_>,
    each: impl FnOnce(&Affine, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (x, axis): (Tensor, Option<i64>) = (call.arg("x")?, call.arg("axis")?);
    let meta = call.meta("x").and_then(|meta| meta.tensor());
    let x = match meta.and_then(|meta| meta.dtype) {
        Some(DType::F32) => x,
        _ => ops::to_dtype(&x, DType::F32)?,
    };
    let (scale, zero_point) = (call.arg("scale")?, call.arg("zero_point")?);
    match (axis, meta) {
        (Some(axis), None) => {
            let wide = |own: TensorOrNumber| match own {
                TensorOrNumber::Tensor(own) => {
                    ops::to_dtype(&own, DType::F32).map(TensorOrNumber::Tensor)
                }
                number => Ok(number),
            };
            let affine = Affine {
                scale: wide(scale)?,
                zero_point: wide(zero_point)?,
            };
            let turned = ops::transpose(&x, axis, -1)?;
            ops::transpose(&each(&affine, &turned)?, axis, -1)
        }
        (axis, meta) => {
            let rank = meta.map(|meta| meta.shape.len());
            each(&Affine::along(scale, zero_point, axis, rank)?, &x)
        }
    }
}

fn levels_of_call(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (quant_min, quant_max) = range_of(call)?;
    let levels = each_of_call(call, |affine, x| affine.levels(x, quant_min, quant_max))?;
    ops::to_dtype(&levels, call.arg("dtype")?)
}

fn values_of_call(call: &DecomposedCall<'_>) -> Result<Tensor> {
    each_of_call(call, Affine::values)
}

fn steps_of_call(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (quant_min, quant_max) = range_of(call)?;
    let steps = each_of_call(call, |affine, x| affine.steps(x, quant_min, quant_max))?;
    let meta = call.meta("x").and_then(|meta| meta.tensor());
    match meta.and_then(|meta| meta.dtype) {
        Some(DType::F32) => Ok(steps),
        _ => ops::type_as(&steps, &call.arg("x")?),
    }
}
