//! Tests of `unique`.

use crate::testing::near;
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::unique::*;

#[test]
fn different_elements() -> Result<()> {
    let x = Tensor::new(&[3f64, 1., 3., f64::NAN, 1.], &Device::Cpu)?;
    let [y, inverse, counts] = unique("unique", &x.narrow(0, 0, 3)?, None, true)?;
    near(&y, &[1., 3.])?;
    near(&inverse, &[1., 0., 1.])?;
    near(&counts, &[1., 2.])?;
    assert_eq!(unique("unique", &x, None, true)?[0].dims(), &[3]);
    let rows = Tensor::new(&[[2i64, 1], [0, 5], [2, 1]], &Device::Cpu)?;
    let [y, inverse, counts] = unique("unique", &rows, Some(0), true)?;
    near(&y, &[0., 5., 2., 1.])?;
    near(&inverse, &[1., 0., 1.])?;
    near(&counts, &[1., 2.])?;
    let [y, ..] = unique("unique", &rows, Some(0), false)?;
    assert_eq!(y.dims(), &[3, 2]);
    Ok(())
}

#[test]
fn orders_and_counts() -> Result<()> {
    let (sorted, values) = (
        Elements::Whole(vec![1, 3, 3, 5]),
        Elements::Whole(vec![3, 0, 9]),
    );
    assert_eq!(search(&sorted, &values, 4, 0, None, false), [1, 0, 4]);
    assert_eq!(search(&sorted, &values, 4, 0, None, true), [3, 0, 4]);
    assert_eq!(is_in(&values, &sorted), [1, 0, 0]);
    let x = Tensor::new(&[2i64, 0, 2], &Device::Cpu)?;
    near(&bincount(&x, None, 4)?, &[1., 0., 2., 0.])?;
    let weights = Tensor::new(&[0.5f64, 1., 2.], &Device::Cpu)?;
    near(&bincount(&x, Some(&weights), 0)?, &[1., 0., 2.5])?;
    assert!(bincount(&Tensor::new(&[-1i64], &Device::Cpu)?, None, 0).is_err());
    let at = nonzero(&Tensor::new(&[[0u8, 1], [1, 0]], &Device::Cpu)?)?;
    assert_eq!(at.to_vec2::<i64>()?, [[0, 1], [1, 0]]);
    Ok(())
}
