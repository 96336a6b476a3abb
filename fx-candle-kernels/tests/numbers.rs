//! Tests of `numbers`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::numbers::*;

#[test]
fn by_pythons_rules() -> Result<()> {
    let inf = f32::INFINITY;
    let a = Tensor::new(&[5f32, -5., 5., 1e8, 7., -7., 5., 1.], &Device::Cpu)?;
    let b = Tensor::new(&[inf, inf, -inf, 0.3, -2., 2., 2., -inf], &Device::Cpu)?;
    let rest = f64s(&remainder(&a, &b)?)?;
    let inf = f64::INFINITY;
    assert_eq!(rest[..3], [5., inf, -inf]);
    assert!((rest[3] - 0.026_357).abs() < 1e-6, "{rest:?}");
    assert_eq!(rest[4..], [-1., 1., 1., -inf]);
    near(
        &floor_divide(&a, &b)?,
        &[0., -1., -1., 333_333_312., -4., -4., 2., -1.],
    )
}

#[test]
fn powers_at_the_edges() -> Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let a = Tensor::new(&[1f32, nan, -1., -inf, -8., 0.], &Device::Cpu)?;
    let b = Tensor::new(&[nan, 0., inf, -0.5, 3., 2.], &Device::Cpu)?;
    near(&power(&a, &b)?, &[1., 1., 1., 0., -512., 0.])?;
    let (a, b) = (
        Var::new(&[0f64, 0., 2., 2.], &Device::Cpu)?,
        Var::new(&[1f64, 0., 3., 0.], &Device::Cpu)?,
    );
    let grads = power(a.as_tensor(), b.as_tensor())?.sum_all()?.backward()?;
    near(grads.get(&a).expect("a gradient"), &[1., 0., 12., 0.])?;
    near(
        grads.get(&b).expect("a gradient"),
        &[0., 0., 8. * 2f64.ln(), 2f64.ln()],
    )
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [
        varied(&[2, 3])?.affine(9., 0.3)?,
        varied(&[3])?.affine(1., 2.)?,
    ];
    check(&inputs, |v| remainder(&v[0], &v[1]))?;
    let inputs = [varied(&[2, 3])?.affine(1., 2.)?, varied(&[3])?];
    check(&inputs, |v| power(&v[0], &v[1]))
}
