//! Tests of `fourier`.

use crate::testing::{check, f64s, near, varied};
use FftDirection::{Forward, Inverse};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::fourier::*;
use rustfft::FftDirection;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[1f64, 2., 3., 4.], &Device::Cpu)?;
    let y = rfft("rfft", &x, 0, 4, Norm::Backward)?;
    near(&y, &[10., 0., -2., 2., -2., 0.])?;
    near(
        &irfft("irfft", &y, 0, 4, Norm::Backward)?,
        &[1., 2., 3., 4.],
    )?;
    near(
        &rfft("rfft", &x, 0, 2, Norm::Forward)?,
        &[1.5, 0., -0.5, 0.],
    )?;
    let x = varied(&[2, 3, 2])?;
    let there = fft("fft", &x, 0, 2, Forward, Norm::Ortho)?;
    let back = fft("ifft", &there, 0, 2, Inverse, Norm::Ortho)?;
    near(&back, &f64s(&x)?)?;
    assert!(fft("fft", &x, 0, 0, Forward, Norm::Ortho).is_err());
    assert!(fft("fft", &x, 0, usize::MAX, Forward, Norm::Ortho).is_err());
    assert!(complex("fft", &varied(&[3])?).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[3, 5, 2])?];
    for n in [3, 5, 6] {
        check(&x, |v| fft("fft", &v[0], 1, n, Forward, Norm::Backward))?;
        check(&x, |v| fft("ifft", &v[0], 0, n, Inverse, Norm::Backward))?;
        check(&x, |v| rfft("rfft", &v[0], 1, n, Norm::Ortho))?;
        check(&x, |v| irfft("irfft", &v[0], 1, n, Norm::Forward))?;
    }
    Ok(())
}
