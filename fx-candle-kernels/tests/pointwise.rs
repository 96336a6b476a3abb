//! Tests of `pointwise`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Var;
use candle_core::{DType, Device, Result, Tensor};
use fx_candle_kernels::pointwise::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[-2f32, 0.], [0.5, 3.]], &Device::Cpu)?;
    let x = strided(&x)?;
    near(&clamp(&x, Some(-1.), Some(1.))?, &[-1., 0., 0.5, 1.])?;
    near(&clamp(&x, None, Some(0.))?, &[-2., 0., 0., 0.])?;
    near(&clamp(&x, Some(2.), Some(1.))?, &[1.; 4])?;
    near(&relu(&x)?, &[0., 0., 0.5, 3.])?;
    assert!(clamp(&x, None, None).is_err());
    let big = Tensor::new(&[-1000f64, 0., 1000.], &Device::Cpu)?;
    near(&sigmoid(&big)?, &[0., 0.5, 1.])?;
    let nan = Tensor::new(&[f32::NAN], &Device::Cpu)?;
    assert!(f64s(&relu(&nan)?)?[0].is_nan());
    assert!(f64s(&clamp(&nan, Some(0.), Some(1.))?)?[0].is_nan());
    Ok(())
}

#[test]
fn gradients_at_the_edges() -> Result<()> {
    let x = Var::new(&[-2f64, -1., 0., 1., 2.], &Device::Cpu)?;
    let of = |y: Tensor| -> Result<Vec<f64>> {
        f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
    };
    assert_eq!(of(clamp(&x, Some(-1.), Some(1.))?)?, [0., 0., 1., 0., 0.]);
    assert_eq!(of(relu(&x)?)?, [0., 0., 0., 1., 1.]);
    let far = Var::new(&[-1e4f32, 1e4], &Device::Cpu)?;
    let grads = sigmoid(far.as_tensor())?.sum_all()?.backward()?;
    near(grads.get(&far).expect("a gradient"), &[0., 0.])?;
    check(&[varied(&[2, 3])?], |v| sigmoid(&v[0]))?;
    check(&[varied(&[2, 3])?], |v| relu(&v[0]))
}

#[test]
fn masks() -> Result<()> {
    let d = &Device::Cpu;
    near(&dropout_mask(&[2], 1.0, DType::F32, d)?, &[0., 0.])?;
    near(&dropout_mask(&[2], 0.0, DType::F64, d)?, &[1., 1.])?;
    let mask = f64s(&dropout_mask(&[100, 100], 0.2, DType::F64, d)?)?;
    assert!(mask.iter().all(|&v| v == 0.0 || v == 1.25));
    let mean = mask.iter().sum::<f64>() / 1e4;
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
    assert!(dropout_mask(&[2], 1.5, DType::F32, d).is_err());
    assert!(dropout_mask(&[2], f64::NAN, DType::F32, d).is_err());
    Ok(())
}
