//! Tests of `ranks`.

use crate::testing::{check, f64s, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::ranks::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[3f64, 1., 2., 4.], [5., 5., 1., 1.]], &Device::Cpu)?;
    let q = quantiles(&x, (&[0.5, 0.25], None), Between::Linear, false)?;
    near(&q, &[2.5, 1.75, 3., 1.])?;
    near(
        &quantiles(&x, (&[0.4], None), Between::Nearest, false)?,
        &[2., 1.],
    )?;
    near(
        &quantiles(&x, (&[0.4], None), Between::Higher, false)?,
        &[3., 5.],
    )?;
    let (values, places) = median(&x, false)?;
    near(&values, &[2., 1.])?;
    assert_eq!(places.to_vec1::<i64>()?[0], 2);
    near(&kth("kthvalue", &x, 3)?.0, &[3., 5.])?;
    let (values, places) = mode(&x)?;
    near(&values, &[1., 1.])?;
    assert_eq!(places.to_vec1::<i64>()?, [1, 3]);
    assert!(kth("kthvalue", &x, 5).is_err());
    let nan = Tensor::new(&[[2f64, f64::NAN, 1.]], &Device::Cpu)?;
    assert!(f64s(&median(&nan, false)?.0)?[0].is_nan());
    near(&median(&nan, true)?.0, &[1.])?;
    near(
        &quantiles(&nan, (&[0.5], None), Between::Linear, true)?,
        &[1.5],
    )?;
    assert!(f64s(&quantiles(&nan, (&[0.5], None), Between::Linear, false)?)?[0].is_nan());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[2, 5])?];
    check(&x, |v| {
        quantiles(&v[0], (&[0.3, 0.8], None), Between::Linear, false)
    })?;
    check(&x, |v| Ok(median(&v[0], false)?.0))?;
    check(&x, |v| Ok(kth("kthvalue", &v[0], 2)?.0))?;
    check(&x, |v| Ok(mode(&v[0])?.0))
}
