//! Tests of `scan`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::scan::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    near(&cumsum(&strided(&x)?, 1)?, &[1., 3., 6., 4., 9., 15.])?;
    near(&cumsum(&x, -2)?, &[1., 2., 3., 5., 7., 9.])?;
    let bytes = Tensor::new(&[200u8, 100], &Device::Cpu)?;
    assert_eq!(f64s(&cumsum(&bytes, 0)?)?, [200., 300.]);
    assert!(cumsum(&x, 2).is_err());
    assert_eq!(cumsum(&varied(&[0, 3])?, 0)?.dims(), &[0, 3]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 5, 3])?)?];
    check(&x, |v| cumsum(&v[0], 1))?;
    check(&x, |v| cumsum(&v[0], 2))
}
