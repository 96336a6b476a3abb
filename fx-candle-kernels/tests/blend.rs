//! Tests of `blend`.

use crate::testing::{check, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::blend::*;

#[test]
fn small_numbers() -> Result<()> {
    let d = &Device::Cpu;
    let (a, b) = (Tensor::new(&[1f64, 2.], d)?, Tensor::new(&[3f64, 4.], d)?);
    near(&lerp(&a, &b, &Tensor::new(0.25f64, d)?)?, &[1.5, 2.5])?;
    near(&lerp_by(&a, &b, 0.25)?, &[1.5, 2.5])?;
    near(&lerp_by(&a, &b, 1.0)?, &[3., 4.])?;
    near(&lerp(&a, &b, &Tensor::new(&[0.75f64, 2.], d)?)?, &[2.5, 6.])?;
    near(&add_product(&a, &a, &b, 2.)?, &[7., 18.])?;
    near(&add_quotient(&a, &b, &a, -1.)?, &[-2., 0.])
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [
        varied(&[2, 3])?,
        varied(&[3])?.affine(1., 2.)?,
        varied(&[2, 1])?.affine(1., 0.4)?,
    ];
    check(&x, |v| lerp(&v[0], &v[1], &v[2]))?;
    check(&x, |v| add_product(&v[0], &v[1], &v[2], 0.5))?;
    check(&x, |v| add_quotient(&v[0], &v[2], &v[1], 0.5))
}
