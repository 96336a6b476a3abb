//! Tests of `softmax`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::softmax::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[0f64, 2f64.ln()], [1000., 1000.]], &Device::Cpu)?;
    near(&softmax(&x, 1)?, &[1. / 3., 2. / 3., 0.5, 0.5])?;
    let y = f64s(&log_softmax(&strided(&x)?, 0)?)?;
    assert_eq!(y[0], -1000.0);
    assert_eq!(y[2], 0.0);
    assert!(softmax(&x, 2).is_err());
    near(&softmax(&Tensor::new(3f32, &Device::Cpu)?, 0)?, &[1.])?;
    let masked = Tensor::new(&[f32::NEG_INFINITY, 0.], &Device::Cpu)?;
    near(&softmax(&masked, 0)?, &[0., 1.])
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 3, 4])?)?];
    for d in 0..3 {
        check(&x, |v| softmax(&v[0], d))?;
        check(&x, |v| log_softmax(&v[0], d))?;
    }
    Ok(())
}
