//! Tests of `lanes`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::lanes::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    near(&cumprod(&strided(&x)?, 1)?, &[1., 2., 6., 4., 20., 120.])?;
    near(&cumprod(&x, 0)?, &[1., 2., 3., 4., 10., 18.])?;
    let bytes = Tensor::new(&[200u8, 100], &Device::Cpu)?;
    assert_eq!(f64s(&cumprod(&bytes, 0)?)?, [200., 20000.]);
    let inf = f64::NEG_INFINITY;
    let sums = Tensor::new(&[inf, inf, 1000., 1000.], &Device::Cpu)?;
    near(
        &log_cum_sum_exp(&sums, 0)?,
        &[inf, inf, 1000., 1000. + 2f64.ln()],
    )?;
    let x = Tensor::new(&[1f64, 1., 0., f64::NAN, 3.], &Device::Cpu)?;
    let (values, places) = extremes("cummax", &x, 0, true)?;
    assert_eq!(f64s(&values)?[..3], [1., 1., 1.]);
    assert_eq!(places.to_vec1::<i64>()?, [0, 1, 1, 3, 3]);
    assert_eq!(
        extremes("cummin", &x, 0, false)?.1.to_vec1::<i64>()?,
        [0, 1, 2, 3, 3]
    );
    assert!(cumprod(&x, 1).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 5, 3])?)?];
    for d in 0..3 {
        check(&x, |v| cumprod(&v[0], d))?;
        check(&x, |v| log_cum_sum_exp(&v[0], d))?;
        check(&x, |v| Ok(extremes("cummax", &v[0], d, true)?.0))?;
    }
    let zeros = [Tensor::new(&[2f64, 0., 3., 0., 4.], &Device::Cpu)?];
    check(&zeros, |v| cumprod(&v[0], 0))?;
    let low = Var::new(&[f64::NEG_INFINITY, 1.], &Device::Cpu)?;
    let grads = log_cum_sum_exp(low.as_tensor(), 0)?.sum_all()?.backward()?;
    assert_eq!(f64s(grads.get(&low).expect("a gradient"))?[1], 1.0);
    Ok(())
}
