//! Tests of `distance`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{DType, Result, Tensor};
use candle_core::{Device, Var};
use fx_candle_kernels::distance::*;
use fx_candle_kernels::norms::norm;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[3f64, -4.], [0., 2.]], &Device::Cpu)?;
    near(&norm("norm", &x, 2.0, &[1], false)?, &[5., 2.])?;
    near(&norm("norm", &x, 1.0, &[0], true)?, &[3., 6.])?;
    near(&norm("norm", &x, f64::INFINITY, &[1], false)?, &[4., 2.])?;
    near(
        &norm("norm", &x, f64::NEG_INFINITY, &[1], false)?,
        &[3., 0.],
    )?;
    near(&norm("norm", &x, 0.0, &[1], false)?, &[2., 1.])?;
    near(
        &norm("norm", &x, 3.0, &[1], false)?,
        &[91f64.powf(1. / 3.), 2.],
    )?;
    let near_and_far = pairs("cdist", &x, &x, 2.0, None)?;
    near(&near_and_far, &[0., 45f64.sqrt(), 45f64.sqrt(), 0.])?;
    let (a, b) = (varied(&[2, 30, 3])?, varied(&[4, 3])?);
    let slow = f64s(&pairs("cdist", &a, &b, 2.0, Some(false))?)?;
    for (a, b) in f64s(&pairs("cdist", &a, &b, 2.0, None)?)?.iter().zip(slow) {
        assert!((a - b).abs() < 1e-7, "{a} {b}");
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 3, 4])?)?, varied(&[5, 4])?];
    for p in [0.7, 1.0, 1.5, 2.0, 3.0] {
        check(&x[..1], |v| norm("norm", &v[0], p, &[1], false))?;
        check(&x, |v| pairs("cdist", &v[0], &v[1], p, Some(true)))?;
    }
    // Rows whose differences are never equal, so that each has one largest.
    let x = [x[0].clone(), x[1].affine(0.7, 0.0)?];
    check(&x, |v| pairs("cdist", &v[0], &v[1], f64::INFINITY, None))?;
    let zero = Var::zeros((1, 2), DType::F64, &Device::Cpu)?;
    let y = pairs("cdist", zero.as_tensor(), zero.as_tensor(), 2.0, None)?;
    near(
        y.sum_all()?.backward()?.get(&zero).expect("a gradient"),
        &[0., 0.],
    )
}
