//! Tests of `shrink`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::shrink::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[-4f64, -3., -0.5, 0., 1., 3., 4.], &Device::Cpu)?;
    near(&hardswish(&x)?, &[0., 0., -1.25 / 6., 0., 4. / 6., 3., 4.])?;
    near(&hardsigmoid(&x)?, &[0., 0., 2.5 / 6., 0.5, 4. / 6., 1., 1.])?;
    near(&hardshrink(&x, 0.5)?, &[-4., -3., 0., 0., 1., 3., 4.])?;
    near(&softshrink(&x, 0.5)?, &[-3.5, -2.5, 0., 0., 0.5, 2.5, 3.5])?;
    let (one, ten) = (
        Tensor::new(1f64, x.device())?,
        Tensor::new(10f64, x.device())?,
    );
    near(
        &threshold(&x, &one, &ten)?,
        &[10., 10., 10., 10., 10., 3., 4.],
    )?;
    near(
        &prelu(&x, &one.affine(0.5, 0.)?)?,
        &[-2., -1.5, -0.25, 0., 1., 3., 4.],
    )?;
    assert!(softshrink(&x, -1.).is_err());
    let nan = Tensor::new(&[f64::NAN], &Device::Cpu)?;
    for y in [
        hardswish(&nan)?,
        hardsigmoid(&nan)?,
        hardshrink(&nan, 1.)?,
        softshrink(&nan, 1.)?,
    ] {
        assert!(f64s(&y)?[0].is_nan());
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[3, 4])?.affine(5.0, 0.0)?];
    check(&x, |v| hardswish(&v[0]))?;
    check(&x, |v| hardsigmoid(&v[0]))?;
    check(&x, |v| hardshrink(&v[0], 0.5))?;
    check(&x, |v| softshrink(&v[0], 0.5))?;
    check(&[varied(&[3, 4])?, varied(&[4])?], |v| prelu(&v[0], &v[1]))
}

#[test]
fn gradients_at_corners_are_pytorchs() -> Result<()> {
    let x = Var::new(&[-3f64, 3., -0.5, 0.5], &Device::Cpu)?;
    let slope = |y: Tensor| -> Result<Vec<f64>> {
        f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
    };
    assert_eq!(slope(hardswish(x.as_tensor())?)?[..2], [0., 1.]);
    assert_eq!(slope(hardsigmoid(x.as_tensor())?)?[..2], [0., 0.]);
    assert_eq!(slope(hardshrink(x.as_tensor(), 0.5)?)?[2..], [0., 0.]);
    assert_eq!(slope(softshrink(x.as_tensor(), 0.5)?)?[2..], [0., 0.]);
    Ok(())
}
