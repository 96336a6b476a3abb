//! The built-in operators on tensors: promotion, broadcasting, and the kernel of each.

use candle_core::Tensor as Data;
use fx_core::tensor::OperandRef;
use fx_core::value::{DType, Operator};
use fx_core::{Error, Result};

use super::{Number, Repr, Tensor, candle_dtype};
use crate::error::{Fx, dtype_name};
use crate::kernels::widen::is_half;
use crate::kernels::{self, binary, comparison, expand, matmul, numbers, pointwise};

/// Runs an operator on operands of which at least one is a tensor.
pub(super) fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Tensor> {
    match operands {
        [a] => unary(op, tensor(*a)?),
        [a, b] => match (a.downcast_ref::<Tensor>(), b.downcast_ref::<Tensor>()) {
            (Some(a), Some(b)) => both(op, a, b),
            (Some(a), None) => with_scalar(op, a, *b),
            (None, Some(b)) => scalar_with(op, *a, b),
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
    let data = x.elements(op.name())?;
    if x.is_bool() {
        return match op {
            Operator::Invert => data
                .zeros_like()
                .and_then(|zero| comparison::eq(data, &zero))
                .map(Tensor::from_bools)
                .fx(),
            Operator::Neg => Err(Error::msg(
                "`-` is not defined for bool tensors: use `!` to negate them",
            )),
            op => Err(unsupported(op, "bool tensors")),
        };
    }
    if !data.dtype().is_float() {
        let one: fn(i64) -> i64 = match op {
            Operator::Neg => i64::wrapping_neg,
            Operator::Abs => i64::wrapping_abs,
            Operator::Invert => |n| !n,
            op => return Err(unsupported(op, "integer tensors")),
        };
        let numbers = kernels::integers::elements(data)
            .fx()?
            .into_iter()
            .map(one)
            .collect();
        return of_whole(numbers, data.dims(), x.dtype()?);
    }
    match op {
        Operator::Neg => data.neg().map(Tensor::made).fx(),
        Operator::Abs => pointwise::abs(data).map(Tensor::made).fx(),
        op => Err(unsupported(op, "float tensors")),
    }
}

/// `x op scalar`: floats take a fast path that makes no second tensor.
#[inline(never)]
fn with_scalar(op: Operator, x: &Tensor, scalar: OperandRef<'_>) -> Result<Tensor> {
    let data = x.elements(op.name())?;
    let number = number(scalar, op)?;
    if data.dtype().is_float() {
        let by = number.as_f64();
        let short = match op {
            Operator::Sub if matches!(number, Number::Bool(_)) => None,
            Operator::Add => Some(data.affine(1.0, by)),
            Operator::Sub => Some(data.affine(1.0, -by)),
            Operator::Mul => Some(pointwise::times(data, by)),
            Operator::Pow => {
                // An error if the type does not hold the exponent, as in PyTorch.
                number.checked("pow", x.dtype()?)?;
                Some(binary::powf(data, by))
            }
            // The number may be out of the range of half precision.
            Operator::Truediv if is_half(data.dtype()) => Some(pointwise::times(data, 1.0 / by)),
            Operator::Floordiv => Some(numbers::floor_divide_by(data, by)),
            _ => None,
        };
        if let Some(result) = short {
            return result.map(Tensor::made).fx();
        }
    }
    if op == Operator::Pow {
        return int_power(x, number);
    }
    both(op, x, &scalar_like(number, x, op)?)
}

/// `scalar op x`.
#[inline(never)]
fn scalar_with(op: Operator, scalar: OperandRef<'_>, x: &Tensor) -> Result<Tensor> {
    let dtype = x.elements(op.name())?.dtype();
    match op {
        Operator::Mul if dtype.is_float() => with_scalar(op, x, scalar),
        // The number may be out of the range of half precision.
        Operator::Truediv if is_half(dtype) => {
            let wide = x.cast(DType::F32)?;
            both(op, &scalar_like(number(scalar, op)?, &wide, op)?, &wide)?.cast(x.dtype()?)
        }
        _ => both(op, &scalar_like(number(scalar, op)?, x, op)?, x),
    }
}

/// An integer or truth value to the power of a number.
fn int_power(x: &Tensor, exponent: Number) -> Result<Tensor> {
    let own = exponent.beside(x.dtype()?);
    match exponent {
        Number::Bool(true) if own == DType::Bool => return Ok(x.clone()),
        Number::Bool(false) if own == DType::Bool => {
            let ones = x.data("pow")?.ones_like().fx()?;
            return Ok(Tensor::from_bools(ones));
        }
        Number::Int(n) if n < 0 => {
            return Err(Error::msg(
                "`pow`: integers have no negative powers: make the tensor a float",
            ));
        }
        _ => {}
    }
    if own.is_floating_point() {
        return with_scalar(
            Operator::Pow,
            &x.cast(own)?,
            OperandRef::Float(exponent.as_f64()),
        );
    }
    let exponent = Tensor::of_type(exponent.checked("pow", own)?, own);
    both(Operator::Pow, x, &exponent)
}

fn number(scalar: OperandRef<'_>, op: Operator) -> Result<Number> {
    match scalar {
        OperandRef::Bool(b) => Ok(Number::Bool(b)),
        OperandRef::Int(n) => Ok(Number::Int(n)),
        OperandRef::Float(x) => Ok(Number::Float(x)),
        _ => Err(unsupported(op, "a tensor and this operand")),
    }
}

/// A scalar as a tensor without dims, of the type that PyTorch gives it with `other`.
fn scalar_like(number: Number, other: &Tensor, op: Operator) -> Result<Tensor> {
    if op == Operator::Sub && matches!(number, Number::Bool(_)) {
        return Err(no_difference());
    }
    let dtype = match number.beside(other.dtype()?) {
        // A quotient is a float: the scalar is not rounded to the integers' type first.
        dtype if op == Operator::Truediv && !dtype.is_floating_point() => DType::F32,
        dtype => dtype,
    };
    let device = other.elements(op.name())?.device();
    let data = number.wrapped(dtype)?.to_device(device).fx()?;
    Ok(Tensor::of_type(data, dtype))
}

fn no_difference() -> Error {
    Error::msg(
        "`-` is not defined for bool tensors: use `!` to negate one, `^` for where two differ",
    )
}

/// Both operands as one type.
fn promoted(a: &Tensor, b: &Tensor, to: DType) -> Result<(Data, Data)> {
    let held = candle_dtype(to)?;
    let cast = |t: &Tensor| -> Result<Data> {
        let data = t.elements("promote")?;
        match t.0 {
            // Held bit for bit with a sign.
            Repr::Held(DType::U64, _) if to != DType::U64 => {
                t.cast(to)?.elements("promote").cloned()
            }
            _ if data.dtype() == held => Ok(data.clone()),
            _ => data.to_dtype(held).fx(),
        }
    };
    Ok((cast(a)?, cast(b)?))
}

/// Runs a binary operator on two tensors. Inlined into expressions, where the operator is known: of
/// an addition of floats one call of candle's is left.
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
    .map(Tensor::made)
    .fx()
}

/// Operands of different types, or not floats: promoted first.
#[cold]
fn mixed(op: Operator, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // A symbolic operand's error names the operator.
    let (x, y) = (a.elements(op.name())?, b.elements(op.name())?);
    if op == Operator::Matmul {
        return product(a, b);
    }
    if op == Operator::Sub && (a.is_bool() || b.is_bool()) {
        return Err(no_difference());
    }
    let common = match a.common(b)? {
        dtype if op == Operator::Truediv && !dtype.is_floating_point() => DType::F32,
        dtype => dtype,
    };
    let compares = matches!(
        op,
        Operator::Eq | Operator::Ne | Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge
    );
    if compares {
        let (x, y) = promoted(a, b, common)?;
        if common == DType::U64 {
            return rest(op, &from_least(&x)?, &from_least(&y)?);
        }
        return rest(op, &x, &y);
    }
    if common == DType::Bool {
        return match op {
            Operator::And | Operator::Mul => binary::mul(x, y),
            Operator::Or | Operator::Add => binary::maximum(x, y),
            Operator::Xor => comparison::ne(x, y),
            _ => return Err(unsupported(op, "bool tensors")),
        }
        .map(Tensor::from_bools)
        .fx();
    }
    if !common.is_floating_point() {
        return integers(op, a, b, common);
    }
    let (x, y) = promoted(a, b, common)?;
    match op {
        Operator::Add => binary::add(&x, &y),
        Operator::Sub => binary::sub(&x, &y),
        Operator::Mul => binary::mul(&x, &y),
        Operator::Truediv => binary::div(&x, &y),
        _ => return rest(op, &x, &y),
    }
    .map(Tensor::made)
    .fx()
}

/// Numbers of 64 bits without a sign, held bit for bit with one, in an order that signed ones have.
fn from_least(x: &Data) -> Result<Data> {
    let numbers = kernels::integers::elements(x).fx()?.into_iter();
    let flipped: Vec<i64> = numbers.map(|n| n ^ i64::MIN).collect();
    Data::from_vec(flipped, x.dims(), x.device()).fx()
}

/// The matrix product of integers; types are not promoted, as in PyTorch.
fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = a.dtype()?;
    if dtype != b.dtype()? {
        return Err(Error::msg(format_args!(
            "matmul: the operands are of {dtype} and {}: convert one with to_dtype",
            b.dtype()?
        )));
    }
    if dtype == DType::Bool {
        return Err(unsupported(Operator::Matmul, "bool tensors"));
    }
    matmul::matmul(a.data("matmul")?, b.data("matmul")?)
        .map(Tensor::made)
        .fx()
}

/// A tensor of a narrower type from elements computed in 64 bits: it wraps around, as PyTorch's
/// does.
fn of_whole(numbers: Vec<i64>, dims: &[usize], dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(numbers, dims)?.cast(dtype)
}

/// Operators of integers, by PyTorch's rules: a remainder has the divisor's sign, overflow wraps
/// around.
fn integers(op: Operator, a: &Tensor, b: &Tensor, common: DType) -> Result<Tensor> {
    let (x, y) = promoted(a, b, common)?;
    let dims = expand::broadcast_dims(op.name(), &x, &y).fx()?;
    let all = |t: &Data| {
        expand::to(t, &dims)
            .and_then(|t| kernels::integers::elements(&t))
            .fx()
    };
    let unsigned = common == DType::U64;
    let shift = |by: i64| u32::try_from(by).ok().filter(|by| *by < 64);
    let divided = |a: i64, b: i64, what: fn(i64, i64) -> i64| match b {
        0 => Err(Error::msg(format_args!(
            "`{op}`: an integer is divided by zero"
        ))),
        b => Ok(what(a, b)),
    };
    let one = |a: i64, b: i64| -> Result<i64> {
        Ok(match op {
            Operator::Add => a.wrapping_add(b),
            Operator::Sub => a.wrapping_sub(b),
            Operator::Mul => a.wrapping_mul(b),
            Operator::And => a & b,
            Operator::Or => a | b,
            Operator::Xor => a ^ b,
            Operator::Lshift => shift(b).map_or(0, |by| a.wrapping_shl(by)),
            Operator::Rshift if unsigned => {
                let by = shift(b).unwrap_or(64);
                a.cast_unsigned().checked_shr(by).unwrap_or(0).cast_signed()
            }
            Operator::Floordiv if unsigned => divided(a, b, |a, b| {
                (a.cast_unsigned() / b.cast_unsigned()).cast_signed()
            })?,
            Operator::Mod if unsigned => divided(a, b, |a, b| {
                (a.cast_unsigned() % b.cast_unsigned()).cast_signed()
            })?,
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
            Operator::Pow => power(a, b),
            op => return Err(unsupported(op, "integer tensors")),
        })
    };
    let numbers = all(&x)?
        .into_iter()
        .zip(all(&y)?)
        .map(|(a, b)| one(a, b))
        .collect::<Result<Vec<i64>>>()?;
    of_whole(numbers, &dims, common)
}

/// A power that wraps around, by squaring; a negative power is truncated to an integer: exact for 1
/// and -1, else 0.
fn power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i64, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

/// The operators without a fast path, on operands of one type.
fn rest(op: Operator, x: &Data, y: &Data) -> Result<Tensor> {
    let truth = match op {
        Operator::Eq => Some(comparison::eq(x, y)),
        Operator::Ne => Some(comparison::ne(x, y)),
        Operator::Lt => Some(comparison::lt(x, y)),
        Operator::Le => Some(comparison::le(x, y)),
        Operator::Gt => Some(comparison::gt(x, y)),
        Operator::Ge => Some(comparison::ge(x, y)),
        _ => None,
    };
    if let Some(truth) = truth {
        return truth.map(Tensor::from_bools).fx();
    }
    let floats = x.dtype().is_float();
    match op {
        Operator::Pow if floats => binary::pow(x, y),
        Operator::Floordiv if floats => numbers::floor_divide(x, y),
        Operator::Mod if floats => numbers::remainder(x, y),
        op => {
            return Err(unsupported(
                op,
                &format!("{} tensors", dtype_name(x.dtype())),
            ));
        }
    }
    .map(Tensor::made)
    .fx()
}
