//! Tests of `margins`.

use crate::testing::{check, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::margins::*;

#[test]
fn small_numbers() -> Result<()> {
    let d = &Device::Cpu;
    let x = Tensor::new(&[[0.1f64, 0.2, 0.4, 0.8]], d)?;
    // PyTorch's example: 0.85, and 0.325 of one class.
    near(
        &multilabel_margin(&x, &Tensor::new(&[[3i64, 0, -1, 1]], d)?)?,
        &[0.85],
    )?;
    near(
        &multi_margin(&x, &Tensor::new(&[3i64], d)?, 1, 1., None)?,
        &[0.325],
    )?;
    assert!(multi_margin(&x, &Tensor::new(&[4i64], d)?, 1, 1., None).is_err());
    assert!(multilabel_margin(&x, &Tensor::new(&[[4i64, 0, 0, 0]], d)?).is_err());
    near(&huber(&Tensor::new(&[0.5f64, -3.], d)?, 2.)?, &[0.125, 4.])?;
    near(
        &smooth_l1(&Tensor::new(&[0.5f64, -3.], d)?, 2.)?,
        &[0.0625, 2.],
    )?;
    let (p, is) = (Tensor::new(&[0f64, 1.], d)?, Tensor::new(&[1f64, 1.], d)?);
    near(&binary_cross_entropy(&p, &is)?, &[100., 0.])?;
    let (log, none) = (p.affine(-1., 0.)?, p.affine(0., 0.)?);
    near(&divergence(&log, &none)?, &[0., 0.])
}

#[test]
fn gradients_match() -> Result<()> {
    let target = Tensor::new(&[[3i64, 0, -1, 1], [1, -1, 0, 0]], &Device::Cpu)?;
    check(&[varied(&[2, 4])?], |v| multilabel_margin(&v[0], &target))
}
