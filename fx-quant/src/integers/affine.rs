//! What integers stand for: scales and zero points of values, and of weights.
//!
//! Invariant: bytes count from 0 on; those of `int8` are moved by 128.

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::module::Attributes;
use fx_core::value::DType;
use fx_core::{Error, Result, function};
use fx_kernels::integer::{Rounding, Term};
use fx_nn::{Tensor, ops};

use super::read::{Found, input, is_call, range_of, scale_of};

/// What bytes stand for: the zero point is that of bytes from 0 on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Affine {
    pub scale: f64,
    pub zero_point: u8,
    pub low: u8,
    pub high: u8,
}

impl Affine {
    /// Bytes as they are.
    pub const STEPS: Affine = Affine {
        scale: 1.0,
        zero_point: 0,
        low: 0,
        high: 255,
    };

    /// The integers of a quantization.
    pub fn of(node: NodeRef<'_>) -> Result<Self> {
        let (dtype, low, high) = range_of(node).ok_or_else(|| not_of_bytes(node))?;
        let moved = moved(dtype);
        Ok(Affine {
            low: byte(node, low + moved)?,
            high: byte(node, high + moved)?,
            ..Affine::read(node, dtype)?
        })
    }

    /// What a dequantization makes of integers of a type.
    pub fn read(node: NodeRef<'_>, dtype: DType) -> Result<Self> {
        let (scale, zero_point) = scale_of(node).ok_or_else(|| not_of_bytes(node))?;
        Ok(Affine {
            scale,
            zero_point: byte(node, zero_point + moved(dtype))?,
            low: 0,
            high: 255,
        })
    }

    pub fn rounding(&self) -> Rounding {
        Rounding {
            zero_point: self.zero_point,
            low: self.low,
            high: self.high,
        }
    }

    /// The rounding of what is held between two floats.
    pub fn bounded(&self, bounds: Option<(f64, f64)>) -> Rounding {
        let Some((low, high)) = bounds else {
            return self.rounding();
        };
        let byte = |x: f64| {
            let at = (x / self.scale).round_ties_even() + f64::from(self.zero_point);
            at.clamp(f64::from(self.low), f64::from(self.high)) as u8
        };
        Rounding {
            zero_point: self.zero_point,
            low: byte(low),
            high: byte(high),
        }
    }

    /// A side of a sum whose result has another scale.
    pub fn over(&self, other: &Affine) -> Term {
        Term {
            scale: (self.scale / other.scale) as f32,
            zero_point: self.zero_point,
        }
    }

    /// The floats of all bytes.
    pub fn values(&self) -> Vec<f32> {
        let zero_point = f32::from(self.zero_point);
        let value = |byte| (f32::from(byte) - zero_point) * self.scale as f32;
        (0..=u8::MAX).map(value).collect()
    }
}

/// How far bytes are from the integers of a type.
pub(super) fn moved(dtype: DType) -> i64 {
    if dtype == DType::I8 { 128 } else { 0 }
}

fn not_of_bytes(node: NodeRef<'_>) -> Error {
    node.blame("compiling", Error::msg("its integers are not of 8 bits"))
}

fn byte(node: NodeRef<'_>, whole: i64) -> Result<u8> {
    u8::try_from(whole).map_err(|_| not_of_bytes(node))
}

/// Weights of integers, with what their kernels need of them.
pub(super) struct Weight {
    integers: Tensor,
    pub dims: Vec<usize>,
    scale: Numbers,
    zero_point: Numbers,
    axis: Option<usize>,
}

/// Numbers for a tensor, or for each index along its axis.
pub(super) enum Numbers {
    One(f64),
    Each(Tensor),
}

impl Numbers {
    /// Those of an argument of a call.
    pub fn of(node: NodeRef<'_>, name: &str, attributes: &Attributes) -> Option<Self> {
        match node.argument(name).ok()? {
            Argument::Float(number) => Some(Numbers::One(number)),
            Argument::Int(number) => Some(Numbers::One(number as f64)),
            Argument::Node(id) => {
                let tensor = constant(node.graph().node(id).ok()?, attributes)?;
                Some(Numbers::Each(tensor))
            }
            _ => None,
        }
    }

    pub fn to_vec(&self) -> Result<Vec<f64>> {
        match self {
            Numbers::One(number) => Ok(vec![*number]),
            Numbers::Each(tensor) => tensor.to_vec(),
        }
    }
}

/// A tensor of the module.
pub(super) fn constant(node: NodeRef<'_>, attributes: &Attributes) -> Option<Tensor> {
    let Op::GetAttr(path) = node.op() else {
        return None;
    };
    let value = attributes.tensor(path).ok()?;
    value.downcast_ref::<Tensor>().cloned()
}

/// The integers of the module that a call dequantizes.
pub(super) fn integers_of(node: NodeRef<'_>, attributes: &Attributes) -> Option<Tensor> {
    match is_call(node, function!(ops::dequantize_affine)) {
        true => constant(input(node, "x").ok()?, attributes),
        false => None,
    }
}

impl Weight {
    /// The weight that a call dequantizes: integers of the module, of 8 bits.
    pub fn of(node: NodeRef<'_>, attributes: &Attributes) -> Found<Self> {
        let none = "its weight is not of integers of 8 bits, with constant scales";
        let found = || {
            let integers = integers_of(node, attributes)?;
            let dims = integers.dims().ok()?.to_vec();
            let axis = match node.argument("axis").ok()? {
                Argument::Int(axis) if axis < 0 => usize::try_from(axis + dims.len() as i64).ok(),
                Argument::Int(axis) => usize::try_from(axis).ok(),
                _ => None,
            };
            let dtype = integers.dtype().ok()?;
            let weight = Weight {
                scale: Numbers::of(node, "scale", attributes)?,
                zero_point: Numbers::of(node, "zero_point", attributes)?,
                dims,
                integers,
                axis,
            };
            matches!(dtype, DType::I8 | DType::U8).then_some(weight)
        };
        found().ok_or(none.into())
    }

    /// Returns an error unless there is one scale, or one for each index along a dim.
    pub fn along(&self, dim: usize) -> Found<()> {
        let is_one = |numbers: &Numbers| match numbers {
            Numbers::One(_) => true,
            Numbers::Each(tensor) => tensor
                .dims()
                .is_ok_and(|dims| dims.iter().all(|size| *size == 1)),
        };
        match is_one(&self.scale) && is_one(&self.zero_point) || self.axis == Some(dim) {
            true => Ok(()),
            false => Err("its weight has no scale for each channel of the result".into()),
        }
    }

    /// The scales: one, or one for each index along the axis.
    pub fn scales(&self) -> Result<Vec<f64>> {
        self.scale.to_vec()
    }

    /// The integers beside their zero points, in the order of their elements.
    pub fn apart(&self) -> Result<Vec<i16>> {
        let zeros = self.zero_point.to_vec()?;
        let inner: usize = match self.axis {
            Some(axis) => self.dims.iter().skip(axis + 1).product(),
            None => 1,
        };
        let count = self.axis.and_then(|axis| self.dims.get(axis)).copied();
        let zero = |at: usize| match (count, zeros.len()) {
            (Some(count), 2..) => zeros.get(at / inner.max(1) % count.max(1)),
            _ => zeros.first(),
        };
        let far = || Error::msg("a weight is too far from its zero point");
        let each = self.integers.to_vec()?.into_iter().enumerate();
        each.map(|(at, whole)| {
            let moved = whole - zero(at).copied().ok_or_else(far)?;
            let apart = moved as i16;
            (f64::from(apart) == moved).then_some(apart).ok_or_else(far)
        })
        .collect()
    }

    /// [`apart`](Weight::apart) of a matrix `[in, out]`, as `[out, in]`.
    pub fn apart_turned(&self) -> Result<Vec<i16>> {
        let &[rows, columns] = &self.dims[..] else {
            return Err(Error::msg("the weight of a product is no matrix"));
        };
        let own = self.apart()?;
        let turned = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
        Ok(turned.filter_map(|at| own.get(at).copied()).collect())
    }
}
