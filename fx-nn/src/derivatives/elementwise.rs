//! Derivatives of functions of each element alone, and of pairs of elements.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use fx_core::Result;
use fx_core::value::DType;

use super::{derivatives, minus, operators};
use crate::func::{Pullback, known};
use crate::ops::{self, special};
use crate::tensor::{Bound, Tensor, TensorOrNumber};

/// The gradient of a function of one tensor: from the gradient, the argument and the result.
fn unary(
    call: &mut Pullback<'_>,
    rule: impl FnOnce(Tensor, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    call.give("x", |call| {
        let x: Tensor = call.arg("x")?;
        // Integers are computed in floats, and need no gradient.
        rule(call.grad()?, &x, &call.result()?)
    })
}

derivatives! {
    ops::exp => |call| unary(call, |g, _, y| g * y);
    ops::expm1 => |call| unary(call, |g, _, y| g * (y + 1.0)?);
    ops::log => |call| unary(call, |g, x, _| g / x);
    ops::log1p => |call| unary(call, |g, x, _| g / (x + 1.0)?);
    ops::sqrt => |call| unary(call, |g, _, y| g / (y * 2.0)?);
    ops::rsqrt => |call| unary(call, |g, _, y| g * ((y * (y * y)?)? * -0.5)?);
    ops::reciprocal => |call| unary(call, |g, _, y| minus(g * (y * y)?));
    ops::sin => |call| unary(call, |g, x, _| g * x.cos()?);
    ops::cos => |call| unary(call, |g, x, _| minus(g * x.sin()?));
    ops::tan => |call| unary(call, |g, _, y| g * ((y * y)? + 1.0)?);
    ops::sinh => |call| unary(call, |g, x, _| g * ops::cosh(x)?);
    ops::cosh => |call| unary(call, |g, x, _| g * ops::sinh(x)?);
    ops::tanh => |call| unary(call, |g, _, y| g * (1.0 - (y * y)?)?);
    ops::sigmoid => |call| unary(call, |g, _, y| g * ((1.0 - y)? * y)?);
    ops::asin => |call| unary(call, |g, x, _| g * ops::rsqrt(&(1.0 - (x * x)?)?)?);
    ops::acos => |call| unary(call, |g, x, _| minus(g * ops::rsqrt(&(1.0 - (x * x)?)?)?));
    ops::atan => |call| unary(call, |g, x, _| g / ((x * x)? + 1.0)?);
    ops::asinh => |call| unary(call, |g, x, _| g * ops::rsqrt(&((x * x)? + 1.0)?)?);
    ops::acosh => |call| unary(call, |g, x, _| g * ops::rsqrt(&((x * x)? - 1.0)?)?);
    ops::atanh => |call| unary(call, |g, x, _| g / (1.0 - (x * x)?)?);
    ops::erf => |call| unary(call, |g, x, _| (g * bell(x)?)? * FRAC_2_SQRT_PI);
    ops::erfc => |call| unary(call, |g, x, _| (g * bell(x)?)? * -FRAC_2_SQRT_PI);
    ops::erfinv => |call| unary(call, |g, _, y| (g * ops::exp(&(y * y)?)?)? / FRAC_2_SQRT_PI);
    special::lgamma => |call| unary(call, |g, x, _| g * special::digamma(x)?);
    special::digamma => |call| unary(call, |g, x, _| g * special::polygamma(1, x)?);
    special::polygamma => |call| {
        let n: i64 = call.arg("n")?;
        unary(call, |g, x, _| g * special::polygamma(n.saturating_add(1), x)?)
    };
    special::ndtri => |call| unary(call, |g, _, y| (g * ops::exp(&((y * y)? * 0.5)?)?)? * ROOT_OF_TURN);
    special::log_ndtr => |call| unary(call, |g, x, _| {
        (g / special::erfcx(&(x * -FRAC_1_SQRT_2)?)?)? * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2)
    });
    special::i0 => |call| unary(call, |g, x, _| g * special::i1(x)?);
    special::i0e => |call| unary(call, |g, x, y| g * (special::i1e(x)? - (ops::sign(x)? * y)?)?);
    special::i1 => |call| unary(call, |g, x, y| {
        g * half_at_zero(x, |x| special::i0(x)? - (y / x)?)?
    });
    special::i1e => |call| unary(call, |g, x, y| {
        g * half_at_zero(x, |x| special::i0e(x)? - (y * (ops::sign(x)? + ops::reciprocal(x)?)?)?)?
    });
    special::entr => |call| unary(call, |g, x, _| g * (-1.0 - ops::log(x)?)?);
    special::erfcx => |call| unary(call, |g, x, y| g * (((x * y)? * 2.0)? - FRAC_2_SQRT_PI)?);
    special::xlog1py => |call| {
        let (x, other): (Tensor, TensorOrNumber) = (call.arg("x")?, call.arg("other")?);
        call.give("x", |call| match &other {
            TensorOrNumber::Number(other) => {
                let grad = call.grad()?;
                let of_x = (&grad * other.as_f64().ln_1p())?;
                if other.as_f64() <= -1.0 { ops::r#where(&x.eq(0)?, 0, of_x) } else { Ok(of_x) }
            }
            TensorOrNumber::Tensor(other) => {
                let grad = call.grad()?;
                let is_nothing = ops::logical_and(&x.eq(0)?, &other.le(-1)?)?;
                let log = ops::log1p(&ops::type_as(other, &grad)?)?;
                ops::r#where(&is_nothing, 0, (grad * log)?)
            }
        })?;
        call.give("other", |call| {
            let TensorOrNumber::Tensor(other) = &other else {
                return call.grad();
            };
            (call.grad()? * &x)? / (other + 1.0)?
        })
    };
    special::zeta => |call| {
        let (x, other): (Tensor, TensorOrNumber) = (call.arg("x")?, call.arg("other")?);
        call.give("x", unknown)?;
        call.give("other", |call| {
            let grad = call.grad()?;
            let x = ops::type_as(&x, &grad)?;
            let slope = special::zeta(&(&x + 1.0)?, other.clone())?;
            minus((grad * x)? * slope)
        })
    };
    special::gammainc => |call| gamma(call, Ok);
    special::gammaincc => |call| gamma(call, |slope| minus(Ok(slope)));
    ops::relu => |call| unary(call, |g, x, _| ops::r#where(&x.le(0)?, 0, g));
    ops::to_dtype => |call| unary(call, |g, _, _| Ok(g));
    ops::type_as => |call| unary(call, |g, _, _| Ok(g));
    ops::to_device => |call| unary(call, |g, x, _| match x.device() {
        Ok(device) => ops::to_device(&g, device),
        Err(_) => Ok(g),
    });
    ops::atan2 => |call| {
        let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
        let share = |call: &Pullback<'_>| call.grad()? / ((&x * &x)? + (&other * &other)?)?;
        call.give("x", |call| share(call)? * &other)?;
        call.give("other", |call| minus(share(call)? * &x))
    };
    // What these are written by has corners where both sides are equal, or one is 0.
    ops::logaddexp => |call| of_sum(call, 1.0);
    ops::logaddexp2 => |call| of_sum(call, std::f64::consts::LN_2);
    ops::hypot => |call| {
        let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
        let length: Tensor = call.result()?;
        call.give("x", |call| call.grad()? * (&x / &length)?)?;
        call.give("other", |call| call.grad()? * (&other / &length)?)
    };
    ops::maximum => |call| extreme(call, |own, beside| own.lt(beside));
    ops::minimum => |call| extreme(call, |own, beside| own.gt(beside));
    ops::clamp => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let mut grad = call.grad()?;
            if let Bound(Some(min)) = call.arg("min")? {
                grad = ops::r#where(&x.gt(min.as_f64())?, grad, 0)?;
            }
            if let Bound(Some(max)) = call.arg("max")? {
                grad = ops::r#where(&x.lt(max.as_f64())?, grad, 0)?;
            }
            Ok(grad)
        })
    };
    ops::r#where => |call| {
        let condition: Tensor = call.arg("condition")?;
        call.give("input", |call| ops::r#where(&condition, call.grad()?, 0))?;
        call.give("other", |call| ops::r#where(&condition, 0, call.grad()?))
    };
    ops::masked_fill => |call| {
        let mask: Tensor = call.arg("mask")?;
        call.give("x", |call| ops::r#where(&mask, 0, call.grad()?))
    };
    ops::silu => |call| unary(call, |g, x, _| {
        let share = ops::sigmoid(x)?;
        g * (&share * ((x * (1.0 - &share)?)? + 1.0)?)?
    });
    ops::gelu => |call| {
        let approximate: String = call.arg("approximate")?;
        unary(call, |g, x, _| g * gelu_slope(x, &approximate)?)
    };
    ops::hardsigmoid => |call| unary(call, |g, x, _| ops::r#where(&x.abs()?.lt(3.0)?, &(g / 6.0)?, 0));
    ops::xlogy => |call| {
        let (x, other): (Tensor, TensorOrNumber) = (call.arg("x")?, call.arg("other")?);
        call.give("x", |call| match &other {
            TensorOrNumber::Number(other) => call.grad()? * other.as_f64().ln(),
            TensorOrNumber::Tensor(other) => {
                let grad = call.grad()?;
                let is_nothing = ops::logical_and(&x.eq(0)?, &other.le(0)?)?;
                let log = ops::log(&ops::type_as(other, &grad)?)?;
                ops::r#where(&is_nothing, 0, (grad * log)?)
            }
        })?;
        call.give("other", |call| {
            let TensorOrNumber::Tensor(other) = &other else {
                return call.grad();
            };
            (call.grad()? * &x)? / other
        })
    };
    ops::fmod => |call| remainder(call, |quotient| ops::trunc(quotient));
    ops::remainder => |call| remainder(call, |quotient| ops::floor(quotient));
}

operators! {
    neg => |call| call.give("a", |call| minus(call.grad()));
    abs => |call| {
        let x: Tensor = call.arg("a")?;
        call.give("a", |call| call.grad()? * ops::sign(&x)?)
    };
    add => |call| { call.give("a", Pullback::grad)?; call.give("b", Pullback::grad) };
    sub => |call| { call.give("a", Pullback::grad)?; call.give("b", |call| minus(call.grad())) };
    mul => |call| {
        call.give("a", |call| times(call.grad()?, call.arg("b")?))?;
        call.give("b", |call| times(call.grad()?, call.arg("a")?))
    };
    truediv => |call| {
        let by: TensorOrNumber = call.arg("b")?;
        call.give("a", |call| match &by {
            TensorOrNumber::Tensor(by) => call.grad()? / by,
            TensorOrNumber::Number(by) => call.grad()? / by.as_f64(),
        })?;
        call.give("b", |call| match &by {
            TensorOrNumber::Tensor(by) => minus((call.grad()? * call.result::<Tensor>()?)? / by),
            TensorOrNumber::Number(_) => call.grad(),
        })
    };
    pow => |call| power(call);
    r#mod => |call| modulo(call);
}

/// sqrt(2π).
const ROOT_OF_TURN: f64 = 2.506_628_274_631_000_7;

/// Of the logarithm of a sum of two powers: the share of each; halves where both are the same infinity.
fn of_sum(call: &mut Pullback<'_>, scale: f64) -> Result<()> {
    let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
    let is_infinite = ops::logical_and(&x.eq(&other)?, &ops::isinf(&x)?)?;
    let apart = (ops::r#where(&is_infinite, 0.0, (&x - &other)?)? * scale)?;
    call.give("x", |call| call.grad()? * ops::sigmoid(&apart)?)?;
    call.give("other", |call| call.grad()? * ops::sigmoid(&(-&apart)?)?)
}

/// A slope that is 1/2 where x is nearly 0.
fn half_at_zero(x: &Tensor, slope: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let step = match known::dtype(x)? {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let is_away = x.abs()?.gt(step)?;
    ops::r#where(&is_away, slope(&ops::r#where(&is_away, x, step)?)?, 0.5)
}

/// The gradient of what has no known derivative, in PyTorch neither: nan, which is no number to learn by.
fn unknown(call: &Pullback<'_>) -> Result<Tensor> {
    call.grad()? * f64::NAN
}

/// A part of the gamma function's integral: its derivative is what is integrated, at the bound.
fn gamma(call: &mut Pullback<'_>, signed: impl FnOnce(Tensor) -> Result<Tensor>) -> Result<()> {
    let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
    call.give("x", unknown)?;
    call.give("other", |call| {
        let grad = call.grad()?;
        let (x, other) = (ops::type_as(&x, &grad)?, ops::type_as(&other, &grad)?);
        let log = (((&x - 1.0)? * ops::log(&other)?)? - &other)?;
        let slope = ops::exp(&(log - special::lgamma(&x)?)?)?;
        signed((grad * slope)?)
    })
}

/// exp(-x²).
fn bell(x: &Tensor) -> Result<Tensor> {
    ops::exp(&(-(x * x)?)?)
}

/// The slope of x times the share of a normal distribution that is below it, or of its approximation.
fn gelu_slope(x: &Tensor, approximate: &str) -> Result<Tensor> {
    const CUBIC: f64 = 0.044_715;
    if approximate == "tanh" {
        let scale = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
        let square = (x * x)?;
        let tanh = ops::tanh(&((x * ((&square * CUBIC)? + 1.0)?)? * scale)?)?;
        let inner = (((&square * (3.0 * CUBIC))? + 1.0)? * (0.5 * scale))?;
        let outer = (((1.0 - (&tanh * &tanh)?)? * x)? * inner)?;
        return ((tanh + 1.0)? * 0.5)? + outer;
    }
    let share = ((ops::erf(&(x * FRAC_1_SQRT_2)?)? + 1.0)? * 0.5)?;
    let density = (ops::exp(&((x * x)? * -0.5)?)? * (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2))?;
    share + (x * density)?
}

/// A tensor times a tensor or a number.
fn times(x: Tensor, by: TensorOrNumber) -> Result<Tensor> {
    match by {
        TensorOrNumber::Tensor(by) => x * by,
        TensorOrNumber::Number(by) => x * by.as_f64(),
    }
}

/// The larger or the smaller of two: equal ones share the gradient, and beside NaN both have it.
fn extreme(
    call: &mut Pullback<'_>,
    is_passed: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
    let share = |call: &Pullback<'_>, own: &Tensor, beside: &Tensor| {
        let grad = call.grad()?;
        let half = ops::r#where(&x.eq(&other)?, &(&grad / 2.0)?, &grad)?;
        ops::r#where(&is_passed(own, beside)?, 0, half)
    };
    call.give("x", |call| share(call, &x, &other))?;
    call.give("other", |call| share(call, &other, &x))
}

/// What is left of a division whose quotient is rounded.
fn remainder(call: &mut Pullback<'_>, rounded: impl Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    let other: TensorOrNumber = call.arg("other")?;
    call.give("x", Pullback::grad)?;
    call.give("other", |call| {
        let TensorOrNumber::Tensor(other) = &other else {
            return call.grad();
        };
        minus(call.grad()? * rounded(&(&x / other)?)?)
    })
}

/// `a % b`, of which one may be a number.
fn modulo(call: &mut Pullback<'_>) -> Result<()> {
    let (a, b): (TensorOrNumber, TensorOrNumber) = (call.arg("a")?, call.arg("b")?);
    call.give("a", Pullback::grad)?;
    call.give("b", |call| {
        let TensorOrNumber::Tensor(b) = &b else {
            return call.grad();
        };
        let quotient = match &a {
            TensorOrNumber::Tensor(a) => (a / b)?,
            TensorOrNumber::Number(a) => (a.as_f64() / b)?,
        };
        minus(call.grad()? * ops::floor(&quotient)?)
    })
}

/// `a` to the power of `b`.
fn power(call: &mut Pullback<'_>) -> Result<()> {
    let (a, b): (TensorOrNumber, TensorOrNumber) = (call.arg("a")?, call.arg("b")?);
    call.give("a", |call| {
        let (TensorOrNumber::Tensor(a), grad) = (&a, call.grad()?) else {
            return call.grad();
        };
        match &b {
            TensorOrNumber::Number(b) => match b.as_f64() {
                0.0 => ops::zeros_like(a, None),
                1.0 => Ok(grad),
                2.0 => grad * (a * 2.0)?,
                n => grad * (a.pow(n - 1.0)? * n)?,
            },
            // The slope of x⁰ is 0, at 0 too.
            TensorOrNumber::Tensor(b) => {
                let slope = (b * a.pow(&(b - 1.0)?)?)?;
                ops::r#where(&b.eq(0)?, 0, (grad * slope)?)
            }
        }
    })?;
    call.give("b", |call| {
        let (TensorOrNumber::Tensor(b), grad) = (&b, call.grad()?) else {
            return call.grad();
        };
        let y: Tensor = call.result()?;
        match &a {
            TensorOrNumber::Number(a) => match a.as_f64() {
                0.0 => ops::r#where(&b.ge(0)?, 0, ((grad * y)? * f64::NEG_INFINITY)?),
                a => (grad * y)? * a.ln(),
            },
            TensorOrNumber::Tensor(a) => {
                let is_flat = ops::logical_and(&a.eq(0)?, &b.ge(0)?)?;
                ops::r#where(&is_flat, 0, (grad * (y * ops::log(a)?)?)?)
            }
        }
    })
}
