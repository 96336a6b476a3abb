//! Numbers of fewer bits, as the numbers that they stand for.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::affine::{Affine, ends, steps};
use super::windows::convolved;
use crate::load::checks::{at_least, rank, windows};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("QuantizeLinear", quantized)
        .any_type()
        .makes(|of| of.first()),
    op("DequantizeLinear", dequantized)
        .any_type()
        .integers(&[0])
        .makes(|of| of.first()),
    op("DynamicQuantizeLinear", |cx| {
        let x = cx.tensor(0)?;
        if cx.reader.is_reference {
            let (y, scale, zero) = Bytes::levels(&x)?;
            return Ok(vec![
                V::of(y, DType::U8),
                V::of(scale, DType::F32),
                V::of(zero, DType::U8),
            ]);
        }
        let Bytes { y, scale, zero } = Bytes::of(&x)?;
        Ok(vec![
            V::of(as_type(&y, DType::U8)?, DType::U8),
            V::of(scale, DType::F32),
            V::of(as_type(&zero, DType::U8)?, DType::U8),
        ])
    }),
    op("QLinearMatMul", |cx| {
        if cx.reader.is_reference {
            // Of the left matrix, several are one for each row.
            let x = Affine::of(cx, 1, 2, -2)?.values(&cx.tensor(0)?)?;
            let other = Affine::of(cx, 4, 5, -1)?.values(&cx.tensor(3)?)?;
            let dtype = cx.dtype(7)?;
            return Ok(vec![
                Affine::of(cx, 6, 7, -2)?.levels(&ops::matmul(&x, &other)?, dtype)?,
            ]);
        }
        let y = ops::matmul(&apart(cx, 0, DType::F64)?, &apart(cx, 3, DType::F64)?)?;
        let mut scale = as_type(&cx.tensor(1)?, DType::F32)?;
        if cx.rank(1)? == 1 && cx.known_shape(1)? != [1] {
            scale = ops::unsqueeze(&scale, -1)?;
        }
        let scale = ((scale * as_type(&cx.tensor(4)?, DType::F32)?)?
            / as_type(&cx.tensor(6)?, DType::F32)?)?;
        let y = ops::round(&(as_type(&y, DType::F32)? * scale)?, 0)?;
        let y = (y + as_type(&cx.tensor(7)?, DType::F32)?)?;
        Ok(vec![held(&y, cx.dtype(7)?)?])
    })
    .any_type()
    .makes(|of| of.products())
    .integers(&[3]),
    op("QLinearConv", |cx| {
        if cx.reader.is_reference {
            let (of_x, of_weight) = (Affine::of(cx, 1, 2, 1)?, Affine::of(cx, 4, 5, 0)?);
            let (x, w) = (
                of_x.values(&cx.tensor(0)?)?,
                of_weight.values(&cx.tensor(3)?)?,
            );
            let of_bias = Affine::of_products(&of_x, &of_weight)?;
            let bias = cx.optional(8)?.map(|bias| of_bias.values(&bias));
            let y = convolved(cx, x, &w, 3, bias.transpose()?.as_ref())?;
            let dtype = cx.dtype(7)?;
            return Ok(vec![Affine::of(cx, 6, 7, 1)?.levels(&y, dtype)?]);
        }
        let dims = cx.rank(3)?;
        // What there is for each result, beside the others.
        let each = |x: Tensor, dims: usize| -> Result<Tensor> {
            let mut shape = vec![1i64; dims];
            shape[0] = -1;
            ops::reshape(&x, shape)
        };
        let apart = |at: usize| -> Result<(Tensor, Tensor)> {
            let of = |at: usize| as_type(&cx.tensor(at)?, DType::F32);
            Ok((of(at)?, of(at + 2)?))
        };
        let ((x, x_zero), (w, w_zero)) = (apart(0)?, apart(3)?);
        let (x, w) = ((x - x_zero)?, (w - each(w_zero, dims)?)?);
        let bias = cx.optional(8)?.map(|b| as_type(&b, DType::F32));
        let y = convolved(cx, x, &w, 3, bias.transpose()?.as_ref())?;
        let scale = |at: usize| as_type(&cx.tensor(at)?, DType::F32);
        let scale = ((scale(1)? * each(scale(4)?, dims - 1)?)? / scale(6)?)?;
        let y = ops::round(&(ops::round(&y, 0)? * scale)?, 0)?;
        let y = (y + as_type(&cx.tensor(7)?, DType::F32)?)?;
        Ok(vec![held(&y, cx.dtype(7)?)?])
    })
    .any_type()
    .integers(&[3, 8])
    .check(|cx| {
        windows(cx)?;
        let dims = cx.rank(3)?;
        rank(cx, 0, dims..=dims)?;
        rank(cx, 3, 3..)?;
        at_least(cx, "group", 1)
    }),
    op("MatMulInteger", |cx| {
        if cx.reader.is_reference {
            let (x, other) = (steps(cx, 0, 2, -2)?, steps(cx, 1, 3, -1)?);
            return cx.of(as_type(&ops::matmul(&x, &other)?, DType::I32)?, DType::I32);
        }
        let wide = |at: usize, zero: usize| -> Result<Tensor> {
            let x = as_type(&cx.tensor(at)?, DType::F64)?;
            match cx.optional(zero)? {
                Some(zero_point) => {
                    let mut zero_point = as_type(&zero_point, DType::F64)?;
                    if at == 0 && cx.rank(zero)? == 1 && cx.known_shape(zero)? != [1] {
                        zero_point = ops::unsqueeze(&zero_point, -1)?;
                    }
                    x - zero_point
                }
                None => Ok(x),
            }
        };
        let y = ops::matmul(&wide(0, 2)?, &wide(1, 3)?)?;
        cx.of(as_type(&y, DType::I32)?, DType::I32)
    })
    .any_type()
    .makes(|of| of.products())
    .integers(&[1]),
];

/// `QuantizeLinear`: numbers as those of few bits.
pub(super) fn quantized(cx: &mut NodeCx<'_>) -> Given {
    let x = as_type(&cx.tensor(0)?, DType::F32)?;
    let dtype = match (cx.has(2), cx.int("output_dtype", 0)) {
        (true, _) => cx.dtype(2)?,
        (_, 0) => DType::U8,
        (_, code) => crate::dtype::known(code as i32).ok_or_else(|| {
            let name = crate::dtype::name(code as i32);
            Error::msg(format_args!("quantizing to {name}"))
        })?,
    };
    if !cx.reader.is_reference || is_blocked(cx) {
        let scale = beside(cx, 1)?;
        let mut y = ops::round(&(x / as_type(&scale, DType::F32)?)?, 0)?;
        if cx.has(2) {
            let zero = beside(cx, 2)?;
            y = (y + as_type(&zero, DType::F32)?)?;
        }
        return Ok(vec![held(&y, dtype)?]);
    }
    let affine = Affine::of(cx, 1, 2, cx.int("axis", 1))?;
    Ok(vec![match cx.is_given(0) {
        true => affine.levels_of_input(&x, dtype)?,
        false => affine.levels(&x, dtype)?,
    }])
}

/// `DequantizeLinear`: the numbers that those of few bits stand for.
pub(super) fn dequantized(cx: &mut NodeCx<'_>) -> Given {
    let (x, to) = (cx.tensor(0)?, cx.dtype(1)?);
    let y = match cx.reader.is_reference && !is_blocked(cx) {
        true => Affine::of(cx, 1, 2, cx.int("axis", 1))?.values(&x)?,
        false => {
            let scale = beside(cx, 1)?;
            let mut y = as_type(&x, DType::F32)?;
            if cx.has(2) {
                let zero = beside(cx, 2)?;
                y = (y - as_type(&zero, DType::F32)?)?;
            }
            (y * as_type(&scale, DType::F32)?)?
        }
    };
    cx.of(as_type(&y, to)?, to)
}

/// Numbers as bytes of a scale and a zero point that are made for them; as floats.
pub(super) struct Bytes {
    y: Tensor,
    scale: Tensor,
    zero: Tensor,
}

impl Bytes {
    fn of(x: &Tensor) -> Result<Self> {
        let (scale, zero) = Bytes::scale_of(x)?;
        let y = ops::clamp(&(ops::round(&(x / &scale)?, 0)? + &zero)?, 0.0, 255.0)?;
        Ok(Bytes { y, scale, zero })
    }

    /// Bytes of numbers with their scale and zero point, in reference form.
    pub(super) fn levels(x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        let (scale, zero) = Bytes::scale_of(x)?;
        let zero = as_type(&zero, DType::U8)?;
        let y = ops::quantize_affine(x, &scale, &zero, 0, 255, DType::U8, None)?;
        Ok((y, scale, zero))
    }

    /// The scale and the zero point for numbers, as floats.
    fn scale_of(x: &Tensor) -> Result<(Tensor, Tensor)> {
        let (low, high) = (ops::amin(x, .., false)?, ops::amax(x, .., false)?);
        let zero = ops::zeros_like(&low, None)?;
        let (low, high) = (ops::minimum(&low, &zero)?, ops::maximum(&high, &zero)?);
        // Of zeros alone, any scale is right but zero.
        let (one, range) = (ops::ones_like(&low, None)?, (&high - &low)?);
        let scale = ops::r#where(&range.eq(0.0)?, &one, &(&range / 255.0)?)?;
        let zero = ops::clamp(&ops::round(&((-low)? / &scale)?, 0)?, 0.0, 255.0)?;
        Ok((scale, zero))
    }
}

/// A matrix of whole numbers beside their zero points, and the scale of each of its columns or of all.
pub(super) struct Scaled {
    matrix: Tensor,
    scale: Tensor,
}

impl Scaled {
    /// `[rows, columns]` of few bits.
    pub(super) fn new(
        matrix: &Tensor,
        scale: &Tensor,
        zero: Option<&Tensor>,
        rows: i64,
    ) -> Result<Self> {
        // The largest sum of products of bytes that a float of 32 bits holds exactly.
        let is_exact = rows.saturating_mul(255 * 255) < 1 << 24;
        let dtype = if is_exact { DType::F32 } else { DType::F64 };
        let matrix = as_type(matrix, dtype)?;
        let matrix = match zero {
            Some(zero) => (matrix - as_type(zero, dtype)?)?,
            None => matrix,
        };
        let scale = as_type(scale, DType::F32)?;
        Ok(Scaled { matrix, scale })
    }

    /// The product of numbers, as bytes, with the matrix.
    pub(super) fn of(&self, x: &Tensor) -> Result<Tensor> {
        let Bytes { y, scale, zero } = Bytes::of(x)?;
        let whole = as_type(&(y - zero)?, Tensor::dtype(&self.matrix)?)?;
        let product = as_type(&ops::matmul(&whole, &self.matrix)?, DType::F32)?;
        product * (scale * &self.scale)?
    }
}

/// Numbers of a type of few bits: those that it does not hold are at its ends.
pub(super) fn held(y: &Tensor, dtype: DType) -> Result<V> {
    let (low, high) = ends(dtype)?;
    let y = ops::clamp(y, low as f64, high as f64)?;
    Ok(V::of(as_type(&y, dtype)?, dtype))
}

/// A quantized input as the whole numbers beside its zero point.
fn apart(cx: &NodeCx<'_>, at: usize, dtype: DType) -> Result<Tensor> {
    let x = as_type(&cx.tensor(at)?, dtype)?;
    let zero = as_type(&cx.tensor(at + 2)?, dtype)?;
    // Of the left side, one for each row.
    match at == 0 && cx.rank(2)? == 1 && cx.known_shape(2)? != [1] {
        true => x - ops::unsqueeze(&zero, -1)?,
        false => x - zero,
    }
}

/// Whether a node has a scale for each block of elements.
fn is_blocked(cx: &NodeCx<'_>) -> bool {
    cx.int("block_size", 0) != 0
}

/// A scale or a zero point for each element of the block, or of the dim, that it is for.
fn beside(cx: &NodeCx<'_>, at: usize) -> Result<Tensor> {
    let of = cx.tensor(at)?;
    if is_blocked(cx) {
        let axis = cx.axis("axis", 1, cx.rank(0)?)?;
        return ops::repeat_interleave(&of, cx.int("block_size", 1), Some(axis));
    }
    if cx.rank(at)? != 1 || cx.known_shape(at)? == [1] {
        return Ok(of);
    }
    let rank = cx.rank(0)?;
    let axis = cx.axis("axis", 1, rank)?;
    let mut shape = vec![1i64; rank];
    shape[axis as usize] = -1;
    ops::reshape(&of, shape)
}
