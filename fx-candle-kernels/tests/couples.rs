//! Tests of `couples`.

use crate::testing::{check, f64s, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::couples::*;

#[test]
fn small_numbers() -> Result<()> {
    let a = Tensor::new(&[-7f64, 0., 3., 1e200], &Device::Cpu)?;
    let b = Tensor::new(&[2f64, 0., -4., 1e200], &Device::Cpu)?;
    near(
        &Couple::Hypot.of(&a.narrow(0, 2, 1)?, &b.narrow(0, 2, 1)?)?,
        &[5.],
    )?;
    assert!(f64s(&Couple::Hypot.of(&a, &b)?)?[3].is_finite());
    assert_eq!(f64s(&Couple::Fmod.of(&a, &b)?)?[0], -1.0);
    assert_eq!(f64s(&Couple::Copysign.of(&a, &b)?)?[..3], [7., 0., -3.]);
    assert_eq!(f64s(&Couple::Xlogy.of(&a, &b)?)?[1], 0.0);
    let inf = Tensor::new(&[f64::NEG_INFINITY, 1000.], &Device::Cpu)?;
    near(
        &Couple::LogAddExp.of(&inf, &inf)?,
        &[f64::NEG_INFINITY, 1000. + 2f64.ln()],
    )?;
    near(
        &Couple::LogAddExp2.of(&b.narrow(0, 0, 1)?, &b.narrow(0, 0, 1)?)?,
        &[3.],
    )
}

#[test]
fn gradients_match() -> Result<()> {
    use Couple as C;
    let inputs = [
        varied(&[2, 3])?.affine(3., 0.1)?,
        varied(&[3])?.affine(1., 2.)?,
    ];
    for f in [
        C::Atan2,
        C::Hypot,
        C::Fmod,
        C::Copysign,
        C::Xlogy,
        C::LogAddExp,
        C::LogAddExp2,
    ] {
        check(&inputs, |v| f.of(&v[0], &v[1]))?;
    }
    Ok(())
}
