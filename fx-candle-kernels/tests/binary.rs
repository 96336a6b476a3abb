//! Tests of `binary`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::binary::*;

#[test]
fn broadcasts_both_ways() -> Result<()> {
    let a = Tensor::new(&[[1f32], [2.]], &Device::Cpu)?;
    let b = Tensor::new(&[10f32, 20., 30.], &Device::Cpu)?;
    near(&add(&a, &b)?, &[11., 21., 31., 12., 22., 32.])?;
    near(&sub(&b, &a)?, &[9., 19., 29., 8., 18., 28.])?;
    near(&mul(&a, &a)?, &[1., 4.])?;
    near(&div(&b, &a)?, &[10., 20., 30., 5., 10., 15.])?;
    let text = add(&varied(&[2, 3])?, &varied(&[4])?)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("add: shapes [2, 3] and [4] do not broadcast"),
        "{text}"
    );
    assert_eq!(add(&varied(&[0, 3])?, &varied(&[3])?)?.dims(), &[0, 3]);
    Ok(())
}

#[test]
fn extremes_keep_nan() -> Result<()> {
    let a = Tensor::new(&[f32::NAN, 1., 2.], &Device::Cpu)?;
    let b = Tensor::new(&[0f32, f32::NAN, 1.], &Device::Cpu)?;
    for (y, last) in [(maximum(&a, &b)?, 2.0), (minimum(&a, &b)?, 1.0)] {
        let y = f64s(&y)?;
        assert!(y[0].is_nan() && y[1].is_nan() && y[2] == last, "{y:?}");
    }
    Ok(())
}

#[test]
fn powers() -> Result<()> {
    let a = Tensor::new(&[-2f32, -2., 0., 0., 4., 3.], &Device::Cpu)?;
    let b = Tensor::new(&[3f32, 2., 0., 2., 0.5, -1.], &Device::Cpu)?;
    let y = f64s(&pow(&a, &b)?)?;
    let want = [-8., 4., 1., 0., 2., 1. / 3.];
    for (y, w) in y.iter().zip(want) {
        assert!((y - w).abs() < 1e-6);
    }
    let nan = pow(
        &Tensor::new(&[-2f32, 1.], &Device::Cpu)?,
        &Tensor::new(&[0.5f32, 1.], &Device::Cpu)?,
    )?;
    assert!(f64s(&nan)?[0].is_nan());
    let two = Tensor::new(2f64, &Device::Cpu)?;
    check(&[varied(&[2, 3])?], |v| pow(&v[0], &two))?;
    check(&[varied(&[2, 3])?.affine(1., 2.)?, varied(&[3])?], |v| {
        pow(&v[0], &v[1])
    })
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [strided(&varied(&[2, 3])?)?, varied(&[3])?.affine(1., 3.)?];
    check(&inputs, |v| add(&v[0], &v[1]))?;
    check(&inputs, |v| sub(&v[0], &v[1]))?;
    check(&inputs, |v| mul(&v[0], &v[1]))?;
    check(&inputs, |v| div(&v[0], &v[1]))?;
    check(
        &[varied(&[2, 3])?, varied(&[2, 1])?.affine(0.5, 0.01)?],
        |v| maximum(&v[0], &v[1]),
    )
}
