//! Scales and zero points of a file, as fx's operations of quantization take them.
//!
//! Invariant: one element of the file is a number in the graph; several are along a dim.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result, TensorOrNumber};

use crate::dtype;
use crate::load::node::NodeCx;
use crate::load::value::{V, as_type};

/// A scale and a zero point, and the dim along which there are several.
pub(super) struct Affine {
    scale: Given,
    zero_point: Given,
    axis: Option<i64>,
}

/// What an input is in the graph.
#[derive(Clone)]
enum Given {
    Number(f64),
    Tensor(Tensor),
}

impl Affine {
    /// Integers as they are.
    pub(super) const STEPS: Affine = Affine {
        scale: Given::Number(1.0),
        zero_point: Given::Number(0.0),
        axis: None,
    };

    /// Those that are inputs of a node; without a scale it is 1, and without a zero point that is 0.
    pub(super) fn of(
        cx: &NodeCx<'_>,
        scale_at: impl Into<Option<usize>>,
        zero_point: usize,
        axis: i64,
    ) -> Result<Self> {
        let scale_at = scale_at.into();
        let is_several = |at: usize| {
            let is_one = |sizes: Vec<usize>| matches!(sizes[..], [] | [1]);
            cx.has(at)
                && cx.rank(at).is_ok_and(|rank| rank > 0)
                && !cx.known_shape(at).is_ok_and(is_one)
        };
        let zero = match cx.has(zero_point) {
            true => given(cx, zero_point)?,
            false => Given::Number(0.0),
        };
        // Eager calls refuse a number that is no scale; a tensor is as ONNX Runtime takes it.
        let scale = match scale_at {
            None => Given::Number(1.0),
            Some(at) => match given(cx, at)? {
                Given::Number(own) if own <= 0.0 || !own.is_finite() => {
                    Given::Tensor(cx.tensor(at)?)
                }
                own => own,
            },
        };
        Ok(Affine {
            axis: (scale_at.is_some_and(is_several) || is_several(zero_point)).then_some(axis),
            scale,
            zero_point: zero,
        })
    }

    /// Those of a bias beside the product of a tensor that has one scale with a weight that may have several.
    pub(super) fn of_products(x: &Affine, weight: &Affine) -> Result<Self> {
        let tensor = |of: &Given| match of {
            Given::Number(number) => Tensor::full((), *number, DType::F32),
            Given::Tensor(tensor) => Ok(tensor.clone()),
        };
        let scale = match (&x.scale, &weight.scale) {
            (Given::Number(x), Given::Number(weight)) => Given::Number(x * weight),
            _ => Given::Tensor((tensor(&x.scale)? * tensor(&weight.scale)?)?),
        };
        Ok(Affine {
            scale,
            zero_point: Given::Number(0.0),
            axis: weight.axis.map(|_| 0),
        })
    }

    fn scale(&self) -> TensorOrNumber {
        match &self.scale {
            Given::Number(scale) => (*scale).into(),
            Given::Tensor(scale) => scale.into(),
        }
    }

    fn zero_point(&self) -> TensorOrNumber {
        match &self.zero_point {
            Given::Number(zero_point) => (*zero_point as i64).into(),
            Given::Tensor(zero_point) => zero_point.into(),
        }
    }

    /// What integers stand for, in `float32`.
    pub(super) fn values(&self, x: &Tensor) -> Result<Tensor> {
        ops::dequantize_affine(x, self.scale(), self.zero_point(), self.axis)
    }

    /// Floats as integers of a type.
    pub(super) fn levels(&self, x: &Tensor, dtype: DType) -> Result<V> {
        let (low, high) = ends(dtype)?;
        let (scale, zero_point) = (self.scale(), self.zero_point());
        let y = ops::quantize_affine(x, scale, zero_point, low, high, dtype, self.axis)?;
        Ok(V::of(y, dtype))
    }

    /// [`levels`](Affine::levels) of what a run gives: divided by the scale, as ONNX says. Multiplied with its inverse,
    /// the numbers of an image that lie in the middle between two steps would go the other way.
    pub(super) fn levels_of_input(&self, x: &Tensor, dtype: DType) -> Result<V> {
        let steps = match (&self.scale, self.axis) {
            (Given::Number(scale), None) => (x / *scale)?,
            (Given::Tensor(scale), None) => (x / as_type(scale, DType::F32)?)?,
            _ => return self.levels(x, dtype),
        };
        let whole = Affine {
            scale: Given::Number(1.0),
            zero_point: self.zero_point.clone(),
            axis: None,
        };
        whole.levels(&steps, dtype)
    }
}

/// An input: a number where the file has one element.
fn given(cx: &NodeCx<'_>, at: usize) -> Result<Given> {
    let x = cx.tensor(at)?;
    let is_one = Object::proxy(&x).is_none()
        && x.dims()
            .is_ok_and(|dims| dims.iter().product::<usize>() == 1);
    let number = match is_one {
        true => ops::reshape(&as_type(&x, DType::F64)?, [-1])?.to_vec()?,
        false => Vec::new(),
    };
    Ok(match number.first() {
        Some(number) => Given::Number(*number),
        None => Given::Tensor(x),
    })
}

/// A quantized input beside its zero point, in steps of its scale.
pub(super) fn steps(cx: &NodeCx<'_>, at: usize, zero_point: usize, axis: i64) -> Result<Tensor> {
    Affine::of(cx, None, zero_point, axis)?.values(&cx.tensor(at)?)
}

/// The least and the largest integer of a type that floats become.
pub(super) fn ends(dtype: DType) -> Result<(i64, i64)> {
    dtype::ends(dtype).ok_or_else(|| Error::msg(format_args!("quantizing to {dtype}")))
}
