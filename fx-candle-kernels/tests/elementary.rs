//! Tests of `elementary`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{DType, Device};
use candle_core::{Result, Tensor};
use fx_candle_kernels::elementary::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[-2.5f64, -0.5, 0.5, 1.5, 2.5], &Device::Cpu)?;
    near(&Elementary::Round.of(&x)?, &[-2., 0., 0., 2., 2.])?;
    near(&Elementary::Frac.of(&x)?, &[-0.5, -0.5, 0.5, 0.5, 0.5])?;
    near(&Elementary::Sign.of(&x)?, &[-1., -1., 1., 1., 1.])?;
    let odd = Tensor::new(&[f64::NAN, -0.0], &Device::Cpu)?;
    assert_eq!(f64s(&Elementary::Sign.of(&odd)?)?, [0., 0.]);
    let tiny = Tensor::new(&[-1e-9f32], &Device::Cpu)?;
    assert_eq!(Elementary::Log1p.of(&tiny)?.to_vec1::<f32>()?, [-1e-9]);
    let far = Tensor::new(&[-1000f64, 1000.], &Device::Cpu)?;
    near(&Elementary::LogSigmoid.of(&far)?, &[-1000., 0.])?;
    let x = Tensor::new(&[0.999_999_9f64, -0.3, 0.0], &Device::Cpu)?;
    near(&Elementary::Erfinv.of(&x)?.erf()?, &[0.999_999_9, -0.3, 0.])?;
    assert!(
        Elementary::Tan
            .of(&Tensor::new(1i64, &Device::Cpu)?)
            .is_err()
    );
    Ok(())
}

#[test]
fn decimals() -> Result<()> {
    let x = Tensor::new(&[1234.567f64, -0.25], &Device::Cpu)?;
    near(&round_to(&x, 1)?, &[1234.6, -0.2])?;
    near(&round_to(&x, -2)?, &[1200., 0.])?;
    // PyTorch's float16: 2.3450 becomes 2.3008, 1234.5 becomes 1230.
    let half = Tensor::new(&[2.345f64, 1234.5], &Device::Cpu)?.to_dtype(DType::F16)?;
    assert_eq!(f64s(&round_to(&half, 1)?)?, [2.300_781_25, 1234.]);
    assert_eq!(f64s(&round_to(&half, -1)?)?, [0., 1230.]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    use Elementary as E;
    let x = [varied(&[2, 3])?.affine(0.9, 0.01)?];
    for f in [
        E::Tan,
        E::Asin,
        E::Acos,
        E::Atan,
        E::Sinh,
        E::Cosh,
        E::Asinh,
        E::Atanh,
    ] {
        check(&x, |v| f.of(&v[0]))?;
    }
    for f in [
        E::Log1p,
        E::Exp2,
        E::Erfc,
        E::Erfinv,
        E::Sinc,
        E::Frac,
        E::LogSigmoid,
    ] {
        check(&x, |v| f.of(&v[0]))?;
    }
    let above = [varied(&[2, 3])?.affine(0.9, 2.0)?];
    for f in [E::Acosh, E::Log2, E::Log10] {
        check(&above, |v| f.of(&v[0]))?;
    }
    check(&[varied(&[2, 3])?.affine(0.4, 0.5)?], |v| {
        E::Logit.of(&v[0])
    })
}
