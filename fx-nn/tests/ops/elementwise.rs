//! The gradients of functions of elements and of activations.

use std::collections::BTreeSet;

use fx_nn::prelude::*;

use crate::gradients::held;
use crate::support::{check, varied};

pub(crate) fn functions(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "tan"(x: [2, 3]) ops::tan(x));
    held!(seen: "asin"(x: [2, 3]) ops::asin(&(x * 0.9)?));
    held!(seen: "acos"(x: [2, 3]) ops::acos(&(x * 0.9)?));
    held!(seen: "atan"(x: [2, 3]) ops::atan(x));
    held!(seen: "sinh"(x: [2, 3]) ops::sinh(x));
    held!(seen: "cosh"(x: [2, 3]) ops::cosh(x));
    held!(seen: "asinh"(x: [2, 3]) ops::asinh(x));
    held!(seen: "acosh"(x: [2, 3]) ops::acosh(&(x + 2.5)?));
    held!(seen: "atanh"(x: [2, 3]) ops::atanh(&(x * 0.9)?));
    held!(seen: "expm1"(x: [2, 3]) ops::expm1(x));
    held!(seen: "log1p"(x: [2, 3]) ops::log1p(&(x * 0.9)?));
    held!(seen: "log2"(x: [2, 3]) ops::log2(&(x + 2.0)?));
    held!(seen: "log10"(x: [2, 3]) ops::log10(&(x + 2.0)?));
    held!(seen: "exp2"(x: [2, 3]) ops::exp2(x));
    held!(seen: "erfc"(x: [2, 3]) ops::erfc(x));
    held!(seen: "erfinv"(x: [2, 3]) ops::erfinv(&(x * 0.9)?));
    held!(seen: "sinc"(x: [2, 3]) ops::sinc(x));
    held!(seen: "frac"(x: [2, 3]) ops::frac(&(x * 3.0)?));
    held!(seen: "absolute"(x: [2, 3]) ops::absolute(x));
    held!(seen: "positive"(x: [2, 3]) ops::positive(&(x * 2.0)?));
    held!(seen: "deg2rad"(x: [2, 3]) ops::deg2rad(x));
    held!(seen: "rad2deg"(x: [2, 3]) ops::rad2deg(x));
    held!(seen: "logit"(x: [2, 3]) ops::logit(&((x * 0.4)? + 0.5)?, Some(0.2)));
    held!(seen: "nan_to_num"(x: [2, 3]) ops::nan_to_num(x, None, None, None));
    held!(seen: "clip"(x: [2, 3]) ops::clip(x, -0.5, 0.6));
    Ok(())
}

pub(crate) fn couples(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "atan2"(x: [2, 3], y: [3]) ops::atan2(x, y));
    held!(seen: "hypot"(x: [2, 3], y: [3]) ops::hypot(x, y));
    held!(seen: "logaddexp"(x: [2, 3], y: [3]) ops::logaddexp(x, y));
    held!(seen: "logaddexp2"(x: [2, 3], y: [3]) ops::logaddexp2(x, y));
    held!(seen: "copysign"(x: [2, 3], y: [3]) ops::copysign(x, y));
    held!(seen: "xlogy"(x: [2, 3], y: [3]) ops::xlogy(x, (y + 2.0)?));
    held!(seen: "fmod"(x: [2, 3], y: [3]) ops::fmod(&(x * 5.0)?, (y + 2.0)?));
    held!(seen: "remainder"(x: [2, 3], y: [3]) ops::remainder(&(x * 5.0)?, (y + 2.0)?));
    held!(seen: "fmax"(x: [2, 3], y: [3]) ops::fmax(x, y));
    held!(seen: "fmin"(x: [2, 3], y: [3]) ops::fmin(x, y));
    held!(seen: "lerp"(x: [2, 3], y: [3], w: [2, 1]) ops::lerp(x, y, w)? + ops::lerp(x, y, 0.3)?);
    held!(seen: "addcmul"(x: [2, 3], y: [3], w: [2, 1]) ops::addcmul(x, y, w, 0.5));
    held!(seen: "addcdiv"(x: [2, 3], y: [3], w: [2, 1]) ops::addcdiv(x, y, &(w + 2.0)?, 0.5));
    Ok(())
}

pub(crate) fn activations(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "softplus"(x: [2, 5]) ops::softplus(x, 1.0, 20.0)? + ops::softplus(x, 2.0, 1.0)?);
    held!(seen: "hardswish"(x: [2, 5]) ops::hardswish(&(x * 5.0)?));
    held!(seen: "hardsigmoid"(x: [2, 5]) ops::hardsigmoid(&(x * 5.0)?));
    held!(seen: "hardtanh"(x: [2, 5]) ops::hardtanh(x, -0.5, 0.6));
    held!(seen: "hardshrink"(x: [2, 5]) ops::hardshrink(x, 0.5));
    held!(seen: "softshrink"(x: [2, 5]) ops::softshrink(x, 0.5));
    held!(seen: "tanhshrink"(x: [2, 5]) ops::tanhshrink(x));
    held!(seen: "softsign"(x: [2, 5]) ops::softsign(x));
    held!(seen: "threshold"(x: [2, 5]) ops::threshold(x, 0.1, 0.3));
    held!(seen: "mish"(x: [2, 5]) ops::mish(x));
    held!(seen: "selu"(x: [2, 5]) ops::selu(x));
    held!(seen: "celu"(x: [2, 5]) ops::celu(x, 0.7));
    held!(seen: "logsigmoid"(x: [2, 5]) ops::logsigmoid(x));
    held!(seen: "prelu"(x: [2, 5], w: [5]) ops::prelu(x, w));
    held!(seen: "glu"(x: [2, 6]) ops::glu(x, -1));
    held!(seen: "softmin"(x: [2, 5]) ops::softmin(x, 1));
    held!(seen: "rrelu"(x: [2, 5]) ops::rrelu(x, 0.1, 0.3, false));
    Ok(())
}
