//! Tests of `special`, `gammas`, `incomplete`, `bessel` and `normal`.

use crate::testing::{check, f64s, varied};
use candle_core::{DType, Device, Result, Tensor};
use fx_candle_kernels::couples::Couple;
use fx_candle_kernels::special::Special;
use fx_candle_kernels::{bessel, gammas, incomplete, normal};

const EACH: [Special; 13] = [
    Special::Lgamma,
    Special::Digamma,
    Special::Polygamma(1),
    Special::Polygamma(3),
    Special::Ndtr,
    Special::Ndtri,
    Special::LogNdtr,
    Special::I0,
    Special::I0e,
    Special::I1,
    Special::I1e,
    Special::Entr,
    Special::Erfcx,
];

fn is_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-13 * expected.abs(),
        "{found} is not {expected}"
    );
}

#[test]
fn known_values() {
    // Of PyTorch 2.15, whose last digits are right.
    is_near(gammas::lgamma(0.5), 0.572_364_942_924_700_1);
    is_near(gammas::digamma(0.5), -1.963_510_026_021_423_5);
    is_near(gammas::zeta(2.0, 1.0), std::f64::consts::PI.powi(2) / 6.0);
    is_near(gammas::polygamma(2, 1.0), -2.404_113_806_319_188_6);
    is_near(bessel::i0(1.0), 1.266_065_877_752_008_2);
    is_near(bessel::i1(2.0), 1.590_636_854_637_329_5);
    is_near(normal::erfcx(-1.0), 5.008_980_080_762_283);
    is_near(normal::log_ndtr(-40.0), -804.608_442_013_753_9);
    is_near(normal::ndtri(1e-300), -37.047_096_299_361_2);
    is_near(incomplete::lower(1.0, 1.0), 1.0 - (-1f64).exp());
    is_near(incomplete::upper(1.0, 30.0), (-30f64).exp());
}

#[test]
fn limits() {
    assert_eq!(gammas::digamma(0.0), f64::NEG_INFINITY);
    assert_eq!(gammas::digamma(-0.0), f64::INFINITY);
    assert!(gammas::digamma(-3.0).is_nan() && gammas::zeta(0.5, 1.0).is_nan());
    assert_eq!(gammas::lgamma(f64::NEG_INFINITY), f64::INFINITY);
    assert_eq!(gammas::zeta(1.0, 2.0), f64::INFINITY);
    // Far below 0 a sum is as long as above it.
    is_near(
        gammas::zeta(2.0, -1e15 + 0.5),
        std::f64::consts::PI.powi(2) - 1e-15,
    );
    assert_eq!(normal::erfcx(f64::INFINITY), 0.0);
    assert_eq!(normal::erfcx(-30.0), f64::INFINITY);
    assert_eq!(
        [0.0, 1.0].map(normal::ndtri),
        [f64::NEG_INFINITY, f64::INFINITY]
    );
    assert!(normal::ndtri(1.5).is_nan() && bessel::i0(f64::INFINITY).is_nan());
    assert_eq!(bessel::i1e(f64::INFINITY), 0.0);
    assert_eq!(incomplete::lower(0.0, 1.0), 1.0);
    assert_eq!(incomplete::upper(2.0, f64::INFINITY), 0.0);
    assert!(incomplete::lower(-1.0, 1.0).is_nan());
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[2, 3])?.affine(0.2, 0.5)?];
    for f in EACH {
        check(&x, |v| f.of(&v[0]))?;
    }
    let a = Tensor::new(&[1.5f64, 2.0, 30.0], &Device::Cpu)?;
    let b = [Tensor::new(&[0.5f64, 3.0, 31.0], &Device::Cpu)?];
    for f in [Couple::GammaBelow, Couple::GammaAbove, Couple::Zeta] {
        check(&b, |v| f.of(&a, &v[0]))?;
    }
    let two = [x[0].clone(), b[0].clone()];
    check(&two, |v| Couple::Xlog1py.of(&v[0], &v[1]))
}

#[test]
fn half_precision_is_rounded_once() -> Result<()> {
    let x = Tensor::new(&[2.5f64, 10.0], &Device::Cpu)?.to_dtype(DType::BF16)?;
    let wide = Special::Lgamma.of(&x.to_dtype(DType::F32)?)?;
    let found = f64s(&Special::Lgamma.of(&x)?)?;
    assert_eq!(found, f64s(&wide.to_dtype(DType::BF16)?)?);
    assert!(Special::I0.of(&Tensor::new(1i64, &Device::Cpu)?).is_err());
    Ok(())
}
