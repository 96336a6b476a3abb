//! Tests of `blocks`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::blocks::*;

const OPTIONS: Options = [(2, 2), (1, 1), (0, 0), (1, 1)];

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[[1f64, 2., 3.], [4., 5., 6.]]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        let columns = unfold(&x, OPTIONS)?;
        assert_eq!(columns.dims(), &[4, 2]);
        near(&columns, &[1., 2., 2., 3., 4., 5., 5., 6.])?;
        near(
            &fold(&columns, (2, 3), OPTIONS)?,
            &[1., 4., 3., 4., 10., 6.],
        )?;
    }
    let x = Tensor::new(&[[[1f64]], [[2.]], [[3.]], [[4.]]], &Device::Cpu)?;
    let y = shuffle("p", &x, 2)?;
    near(&y, &[1., 2., 3., 4.])?;
    assert_eq!(y.dims(), &[1, 2, 2]);
    near(&unshuffle("p", &y, 2)?, &[1., 2., 3., 4.])?;
    near(&channels("c", &x.unsqueeze(0)?, 2)?, &[1., 3., 2., 4.])?;
    assert!(shuffle("p", &x, 3).is_err() && unshuffle("p", &x, 2).is_err());
    assert!(channels("c", &x.unsqueeze(0)?, 3).is_err());
    assert!(fold(&x.reshape((4, 1))?, (3, 3), OPTIONS).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let options = [(2, 3), (2, 1), (1, 1), (1, 2)];
    let x = strided(&varied(&[2, 2, 4, 5])?)?;
    let y = unfold(&x, options)?;
    check(&[x], |v| unfold(&v[0], options))?;
    check(&[y], |v| fold(&v[0], (4, 5), options))
}
