//! The built-in operators on tensors: promotion, broadcasting, and the kernel of each.

use candle_core::{Device, Tensor as Data};
use fx_core::{DType, Error, OperandRef, Operator, Result};

use super::{Tensor, candle_dtype};
use crate::error::Fx;
use crate::kernels::widen::is_half;
use crate::kernels::{binary, matmul, numbers, pointwise};

/// Runs an operator on operands of which at least one is a tensor.
pub(super) fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Tensor> {
    match operands {
        [a] => unary(op, tensor(*a)?),
        [a, b] => match (a.downcast_ref::<Tensor>(), b.downcast_ref::<Tensor>()) {
            (Some(a), Some(b)) => both(op, a, b),
            (Some(a), None) => with_scalar(op, a, *b),
            (None, Some(b)) => both(op, &scalar_like(*a, b, op)?, b),
            (None, None) => Err(unsupported(op, "these operands")),
        },
        _ => Err(unsupported(op, "these operands")),
    }
}

fn tensor<'a>(operand: OperandRef<'a>) -> Result<&'a Tensor> {
    operand
        .downcast_ref()
        .ok_or_else(|| Error::msg("expected a tensor operand"))
}

fn unsupported(op: Operator, what: &str) -> Error {
    Error::msg(format_args!("`{op}` is not defined for {what}"))
}

#[inline(never)]
fn unary(op: Operator, x: &Tensor) -> Result<Tensor> {
    let data = x.data(op.name())?;
    match op {
        Operator::Neg if x.is_bool() => Err(Error::msg(
            "`-` is not defined for bool tensors: use `!` to negate them",
        )),
        Operator::Neg if !data.dtype().is_float() => data
            .zeros_like()
            .and_then(|zero| zero.sub(data))
            .map(Tensor::from)
            .fx(),
        Operator::Neg => data.neg().map(Tensor::from).fx(),
        Operator::Abs if x.is_bool() => Err(Error::msg("`abs` is not defined for bool tensors")),
        Operator::Abs if data.dtype() == candle_core::DType::I64 => {
            let data = data.flatten_all().and_then(|d| d.to_vec1::<i64>()).fx()?;
            Tensor::from_vec(
                data.into_iter()
                    .map(i64::wrapping_abs)
                    .collect::<Vec<i64>>(),
                x.dims()?.to_vec(),
            )
        }
        Operator::Abs => data.abs().map(Tensor::from).fx(),
        Operator::Invert if x.is_bool() => data
            .zeros_like()
            .and_then(|zero| data.eq(&zero))
            .map(Tensor::from_bools)
            .fx(),
        Operator::Invert if !data.dtype().is_float() => {
            // Two's complement: !x = -x - 1.
            let zero = data.zeros_like().fx()?;
            zero.sub(data)
                .and_then(|negated| negated.sub(&zero.ones_like()?))
                .map(Tensor::from)
                .fx()
        }
        op => Err(unsupported(op, "float tensors")),
    }
}

/// `x op scalar`: floats take a short way that makes no second tensor.
#[inline(never)]
fn with_scalar(op: Operator, x: &Tensor, scalar: OperandRef<'_>) -> Result<Tensor> {
    let data = x.data(op.name())?;
    let number = match scalar {
        OperandRef::Float(x) => Some(x),
        OperandRef::Int(n) => Some(n as f64),
        _ => None,
    };
    if data.dtype().is_float()
        && let Some(number) = number
    {
        let short = match op {
            Operator::Add => Some(data.affine(1.0, number)),
            Operator::Sub => Some(data.affine(1.0, -number)),
            Operator::Mul => Some(pointwise::affine(data, number, 0.0)),
            Operator::Pow => Some(binary::powf(data, number)),
            // The number may be out of the range of half precision.
            Operator::Truediv if is_half(data.dtype()) => {
                Some(pointwise::affine(data, 1.0 / number, 0.0))
            }
            Operator::Floordiv => Some(numbers::floor_divide_by(data, number)),
            _ => None,
        };
        if let Some(result) = short {
            return result.map(Tensor::from).fx();
        }
    }
    both(op, x, &scalar_like(scalar, x, op)?)
}

/// A scalar as a tensor without dims, of the type that PyTorch gives it beside `other`.
fn scalar_like(scalar: OperandRef<'_>, other: &Tensor, op: Operator) -> Result<Tensor> {
    let own = other.dtype()?;
    let (number, dtype) = match scalar {
        OperandRef::Bool(b) => (f64::from(u8::from(b)), own),
        OperandRef::Int(n) if own == DType::Bool => (n as f64, DType::I64),
        OperandRef::Int(n) => (n as f64, own),
        OperandRef::Float(x) if own.is_floating_point() => (x, own),
        OperandRef::Float(x) => (x, DType::F32),
        _ => return Err(unsupported(op, "a tensor and this operand")),
    };
    let held = candle_dtype(dtype)?;
    let data = Data::new(number, &Device::Cpu)
        .and_then(|t| t.to_dtype(held))
        .fx()?;
    Ok(if dtype == DType::Bool {
        Tensor::from_bools(data)
    } else {
        data.into()
    })
}

/// Both operands as one type.
fn promoted(a: &Tensor, b: &Tensor, to: DType) -> Result<(Data, Data)> {
    let to = candle_dtype(to)?;
    let cast = |t: &Tensor| -> Result<Data> {
        let data = t.data("promote")?;
        if data.dtype() == to {
            Ok(data.clone())
        } else {
            data.to_dtype(to).fx()
        }
    };
    Ok((cast(a)?, cast(b)?))
}

/// Runs a binary operator on two tensors: inlined into the user's expression, where the operator is known, so
/// that of an addition of floats one call is left.
#[inline(always)]
pub(super) fn both(op: Operator, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let Some((x, y)) = a.floats_like(b) else {
        return mixed(op, a, b);
    };
    match op {
        Operator::Add => binary::add(x, y),
        Operator::Sub => binary::sub(x, y),
        Operator::Mul => binary::mul(x, y),
        Operator::Truediv => binary::div(x, y),
        Operator::Matmul => matmul::matmul(x, y),
        _ => return rest(op, x, y),
    }
    .map(Tensor::from)
    .fx()
}

/// The type that two tensors are promoted to.
pub(super) fn common_type(a: &Tensor, b: &Tensor) -> Result<DType> {
    let (of_a, of_b) = (a.dtype()?, b.dtype()?);
    // A tensor without dims does not decide the type within its category, as in PyTorch.
    Ok(match (a.dims()?.is_empty(), b.dims()?.is_empty()) {
        (true, false) if category(of_a) <= category(of_b) => of_b,
        (false, true) if category(of_b) <= category(of_a) => of_a,
        _ => of_a.promote(of_b),
    })
}

/// Operands of different types, or not floats: promoted first.
#[cold]
fn mixed(op: Operator, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // A symbolic operand's error names the operator.
    a.data(op.name())?;
    b.data(op.name())?;
    let common = common_type(a, b)?;
    if common == DType::Bool {
        let (x, y) = promoted(a, b, DType::Bool)?;
        let logical = match op {
            Operator::And | Operator::Mul => binary::mul(&x, &y),
            Operator::Or | Operator::Add => binary::maximum(&x, &y),
            Operator::Xor => binary::ne(&x, &y),
            Operator::Eq
            | Operator::Ne
            | Operator::Lt
            | Operator::Le
            | Operator::Gt
            | Operator::Ge => {
                return rest(op, &x, &y);
            }
            Operator::Truediv => {
                let (x, y) = promoted(a, b, DType::F32)?;
                return binary::div(&x, &y).map(Tensor::from).fx();
            }
            _ => return Err(unsupported(op, "bool tensors")),
        };
        return logical.map(Tensor::from_bools).fx();
    }
    let common = match op {
        Operator::Truediv if !common.is_floating_point() => DType::F32,
        _ => common,
    };
    if !common.is_floating_point() && common != DType::I64 {
        // Narrow integers wrap around, as PyTorch's do: computed in 64 bits and cut back.
        let wide = integers(op, a, b)?;
        return if wide.is_bool() {
            Ok(wide)
        } else {
            wide.cast(common)
        };
    }
    let (x, y) = promoted(a, b, common)?;
    match op {
        Operator::Add => binary::add(&x, &y),
        Operator::Sub => binary::sub(&x, &y),
        Operator::Mul => binary::mul(&x, &y),
        Operator::Truediv => binary::div(&x, &y),
        Operator::Matmul => matmul::matmul(&x, &y),
        _ => return rest(op, &x, &y),
    }
    .map(Tensor::from)
    .fx()
}

fn integers(op: Operator, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    both(op, &a.cast(DType::I64)?, &b.cast(DType::I64)?)
}

fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_floating_point() => 2,
        _ => 1,
    }
}

/// The operators of integers that candle does not have, by PyTorch's rules: the sign of a rest is the divisor's, and
/// what does not fit wraps around.
fn whole_numbers(op: Operator, x: &Data, y: &Data) -> Result<Tensor> {
    let dims = binary::broadcast_dims(op.name(), x, y).fx()?;
    let all = |t: &Data| {
        t.broadcast_as(dims.as_slice())
            .and_then(|t| t.flatten_all())
            .and_then(|t| t.to_vec1::<i64>())
            .fx()
    };
    let shift = |by: i64| u32::try_from(by).ok().filter(|by| *by < 64);
    let divided = |a: i64, b: i64, what: fn(i64, i64) -> i64| match b {
        0 => Err(Error::msg(format_args!(
            "`{op}`: an integer is divided by zero"
        ))),
        b => Ok(what(a, b)),
    };
    let one = |a: i64, b: i64| -> Result<i64> {
        Ok(match op {
            Operator::And => a & b,
            Operator::Or => a | b,
            Operator::Xor => a ^ b,
            Operator::Lshift => shift(b).map_or(0, |by| a.wrapping_shl(by)),
            Operator::Rshift => a >> shift(b).unwrap_or(63),
            Operator::Floordiv => divided(a, b, |a, b| {
                let quotient = a.wrapping_div(b);
                let inexact = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
                quotient - i64::from(inexact)
            })?,
            Operator::Mod => divided(a, b, |a, b| {
                let rest = a.wrapping_rem(b);
                if rest != 0 && (rest < 0) != (b < 0) {
                    rest + b
                } else {
                    rest
                }
            })?,
            Operator::Pow => match u32::try_from(b) {
                Ok(b) => a.wrapping_pow(b),
                Err(_) => {
                    return Err(Error::msg(
                        "`pow`: integers have no negative powers: make the tensor a float",
                    ));
                }
            },
            op => return Err(unsupported(op, "integer tensors")),
        })
    };
    let data = all(x)?
        .into_iter()
        .zip(all(y)?)
        .map(|(a, b)| one(a, b))
        .collect::<Result<Vec<i64>>>()?;
    Tensor::from_vec(data, dims)
}

/// The operators that are not on the short way, on operands of one type.
fn rest(op: Operator, x: &Data, y: &Data) -> Result<Tensor> {
    let truth = match op {
        Operator::Eq => Some(binary::eq(x, y)),
        Operator::Ne => Some(binary::ne(x, y)),
        Operator::Lt => Some(binary::lt(x, y)),
        Operator::Le => Some(binary::le(x, y)),
        Operator::Gt => Some(binary::gt(x, y)),
        Operator::Ge => Some(binary::ge(x, y)),
        _ => None,
    };
    if let Some(truth) = truth {
        return truth.map(Tensor::from_bools).fx();
    }
    let floats = x.dtype().is_float();
    if x.dtype() == candle_core::DType::I64 {
        return whole_numbers(op, x, y);
    }
    match op {
        Operator::Pow if floats => binary::pow(x, y),
        Operator::Floordiv if floats => numbers::floor_divide(x, y),
        Operator::Mod if floats => numbers::remainder(x, y),
        op => return Err(unsupported(op, &format!("{:?} tensors", x.dtype()))),
    }
    .map(Tensor::from)
    .fx()
}
