//! `torch.signal.windows`: windows of `m` points, each made of `linspace` and functions of elements, here and in its
//! decomposition alike.
//!
//! With `sym` a window is symmetric, to design filters with; without, it is the first `m` of `m + 1` points, a period for
//! spectra. Windows are of `float32`, the default, or `float64`.
//!
//! ```
//! use fx_nn::prelude::*;
//! use ops::signal::windows;
//! assert_eq!(windows::bartlett(5, true, None)?.to_vec()?, [0.0, 0.5, 1.0, 0.5, 0.0]);
//! assert_eq!(windows::bartlett(4, false, None)?.to_vec()?, [0.0, 0.5, 1.0, 0.5]);
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::f64::consts::{PI, SQRT_2};

use crate::op;
use fx_core::Result;
use fx_core::passes::DecomposedCall;
use fx_core::value::DType;

use super::super::create::{linspace, ones};
use super::super::elementary::absolute;
use super::super::pointwise::{cos, exp, sin, sqrt, square};
use super::super::special::i0;
use crate::error::require;
use crate::kernels::bessel;
use crate::tensor::Tensor;

macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident($($(#[$attribute:meta])* $param:ident: $ty:ty),*) $path:literal $decomposed:ident => $made:expr;)*) => {$(
        $(#[$doc])*
        #[op(create, decomposed = $decomposed, flat = "has no tensor among its arguments", path = $path)]
        pub fn $name(
            m: usize,
            $($(#[$attribute])* $param: $ty,)*
            #[kw]
            #[default(true)]
            sym: bool,
            #[kw] dtype: Option<DType>,
        ) -> Result<Tensor> {
            require(stringify!($name), matches!(dtype, None | Some(DType::F32 | DType::F64)))?;
            ($made)(m, $($param,)* sym, dtype.unwrap_or(DType::F32))
        }

        fn $decomposed(call: &DecomposedCall<'_>) -> Result<Tensor> {
            let dtype: Option<DType> = call.arg("dtype")?;
            ($made)(
                call.arg("m")?,
                $(call.arg::<$ty>(stringify!($param))?,)*
                call.arg("sym")?,
                dtype.unwrap_or(DType::F32),
            )
        }
    )*};
}

windows! {
    /// A triangle: from 0 to 1 and back.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    bartlett() "fx_nn::ops::signal::windows::bartlett" bartlett_of => triangle;

    /// Three cosines, with the coefficients 0.42, 0.5 and 0.08.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    blackman() "fx_nn::ops::signal::windows::blackman" blackman_of => |m, sym, dtype| {
        cosines(m, &[0.42, 0.5, 0.08], sym, dtype)
    };

    /// Half a period of the sine.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    cosine() "fx_nn::ops::signal::windows::cosine" cosine_of => half_sine;

    /// `exp(-|n - center| / tau)`; by default the center is the middle.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = ops::signal::windows::exponential(3, None, 1.0, true, None)?;
    /// assert_eq!(w.to_vec()?[1], 1.0);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `tau` is not above 0, a symmetric window has a center, or the type is neither `float32` nor
    /// `float64`.
    exponential(#[kw] center: Option<f64>, #[kw] #[default(1.0)] tau: f64)
        "fx_nn::ops::signal::windows::exponential" exponential_of => falling;

    /// The bell of a normal distribution of the deviation `std`, with a height of 1.
    ///
    /// # Errors
    /// Returns an error if `std` is not above 0, or the type is neither `float32` nor `float64`.
    gaussian(#[kw] #[default(1.0)] std: f64) "fx_nn::ops::signal::windows::gaussian" gaussian_of => bell;

    /// A sum of cosines with coefficients `a`, of which every second one counts below 0.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = ops::signal::windows::general_cosine(3, vec![0.5, 0.5], true, None)?;
    /// assert_eq!(w.to_vec()?, [0.0, 1.0, 0.0]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there are no coefficients, or the type is neither `float32` nor `float64`.
    general_cosine(#[kw] a: Vec<f64>) "fx_nn::ops::signal::windows::general_cosine" general_cosine_of =>
        |m, a: Vec<f64>, sym, dtype| cosines(m, &a, sym, dtype);

    /// `alpha` minus `1 - alpha` times a cosine.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    general_hamming(#[kw] #[default(0.54)] alpha: f64)
        "fx_nn::ops::signal::windows::general_hamming" general_hamming_of =>
        |m, alpha: f64, sym, dtype| cosines(m, &[alpha, 1.0 - alpha], sym, dtype);

    /// 0.54 minus 0.46 times a cosine.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    hamming() "fx_nn::ops::signal::windows::hamming" hamming_of => |m, sym, dtype| {
        cosines(m, &[0.54, 1.0 - 0.54], sym, dtype)
    };

    /// Half of 1 minus a cosine.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = ops::signal::windows::hann(4, false, None)?;
    /// assert!(fx_nn::allclose(&w, &Tensor::from_vec(vec![0.0f32, 0.5, 1.0, 0.5], 4)?, 1e-6, 1e-6)?.close);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    hann() "fx_nn::ops::signal::windows::hann" hann_of => |m, sym, dtype| cosines(m, &[0.5, 0.5], sym, dtype);

    /// Kaiser's window, of Bessel functions: a larger `beta` makes it narrower.
    ///
    /// # Errors
    /// Returns an error if `beta` is below 0, or the type is neither `float32` nor `float64`.
    kaiser(#[kw] #[default(12.0)] beta: f64) "fx_nn::ops::signal::windows::kaiser" kaiser_of => bessels;

    /// Nuttall's four cosines.
    ///
    /// # Errors
    /// Returns an error if the type is neither `float32` nor `float64`.
    nuttall() "fx_nn::ops::signal::windows::nuttall" nuttall_of => |m, sym, dtype| {
        cosines(m, &[0.363_581_9, 0.489_177_5, 0.136_599_5, 0.010_641_1], sym, dtype)
    };
}

/// So many numbers from `start`, each so much more than the one before.
fn from(start: f64, step: f64, m: usize, dtype: DType) -> Result<Tensor> {
    let last = m.saturating_sub(1) as f64;
    linspace(start * step, (start + last) * step, m as i64, Some(dtype))
}

/// How many points are between two that are alike.
fn period(m: usize, sym: bool) -> f64 {
    if sym { m as f64 - 1.0 } else { m as f64 }
}

/// The same, where a single point is symmetric too.
fn longer(m: usize, sym: bool) -> f64 {
    m as f64 + if !sym && m > 1 { 1.0 } else { 0.0 }
}

fn triangle(m: usize, sym: bool, dtype: DType) -> Result<Tensor> {
    if m == 1 {
        return ones([1], Some(dtype));
    }
    let end = -1.0 + m.saturating_sub(1) as f64 * (2.0 / period(m, sym));
    1.0 - absolute(&linspace(-1.0, end, m as i64, Some(dtype))?)?
}

fn half_sine(m: usize, sym: bool, dtype: DType) -> Result<Tensor> {
    sin(&from(0.5, PI / longer(m, sym), m, dtype)?)
}

fn falling(m: usize, center: Option<f64>, tau: f64, sym: bool, dtype: DType) -> Result<Tensor> {
    let is_above = tau > 0.0 || tau.is_nan();
    require("exponential", is_above && !(sym && center.is_some()))?;
    let center = center.unwrap_or((longer(m, sym) - 1.0) / 2.0);
    exp(&(-absolute(&from(-center, 1.0 / tau, m, dtype)?)?)?)
}

fn bell(m: usize, std: f64, sym: bool, dtype: DType) -> Result<Tensor> {
    require("gaussian", std > 0.0 || std.is_nan())?;
    let start = -(longer(m, sym) - 1.0) / 2.0;
    exp(&(-square(&from(start, 1.0 / (std * SQRT_2), m, dtype)?)?)?)
}

fn cosines(m: usize, a: &[f64], sym: bool, dtype: DType) -> Result<Tensor> {
    if m < 2 {
        return ones([m as i64], Some(dtype));
    }
    require("general_cosine", !a.is_empty())?;
    let turns = from(0.0, 2.0 * PI / period(m, sym), m, dtype)?;
    let terms = a.iter().enumerate().map(|(i, a)| {
        let sign = if i % 2 == 0 { *a } else { -a };
        cos(&(&turns * i as f64)?)? * sign
    });
    let sum = terms.reduce(|sum, term| sum? + term?);
    sum.unwrap_or_else(|| Ok(turns.clone()))
}

fn bessels(m: usize, beta: f64, sym: bool, dtype: DType) -> Result<Tensor> {
    require("kaiser", beta >= 0.0 || beta.is_nan())?;
    if m == 1 {
        return ones([1], Some(dtype));
    }
    let beta = match dtype {
        DType::F32 => f64::from(beta as f32),
        _ => beta,
    };
    let step = 2.0 * beta / period(m, sym);
    let end = (-beta + m.saturating_sub(1) as f64 * step).min(beta);
    let places = linspace(-beta, end, m as i64, Some(dtype))?;
    let inner = sqrt(&(beta * beta - square(&places)?)?)?;
    i0(&inner)? / bessel::i0(beta)
}
