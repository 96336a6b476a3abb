//! Tests of `diagonal`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::diagonal::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        near(&diagonal("d", &x, 0, 0, 1)?, &[1., 5.])?;
        near(&diagonal("d", &x, 1, 0, -1)?, &[2., 6.])?;
        near(&diagonal("d", &x, -1, 0, 1)?, &[4.])?;
        near(&diagonal("d", &x, 1, 1, 0)?, &[4.])?;
        assert_eq!(diagonal("d", &x, 9, 0, 1)?.dims(), &[0]);
    }
    assert!(diagonal("d", &x, 0, 1, -1).is_err());
    let row = x.get(0)?;
    near(
        &embed("d", &row, 0, 0, 1)?,
        &[1., 0., 0., 0., 2., 0., 0., 0., 3.],
    )?;
    near(
        &embed("d", &row.narrow(0, 0, 1)?, -1, 0, 1)?,
        &[0., 0., 1., 0.],
    )?;
    assert_eq!(embed("d", &x, 1, 0, 2)?.dims(), &[4, 2, 4]);
    assert!(embed("d", &row, i64::MAX, 0, 1).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 3, 4])?)?];
    check(&x, |v| diagonal("d", &v[0], 1, 0, 2))?;
    check(&x, |v| embed("d", &v[0], -1, 1, 3))
}
