//! Tests of `norms`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{DType, Result, Tensor};
use candle_core::{Device, Var};
use fx_candle_kernels::norms::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[3f64, -4.], [0., 1.]], &Device::Cpu)?;
    let of = |p| norm("norm", &x, p, &[1], false);
    near(&of(2.)?, &[5., 1.])?;
    near(&of(1.)?, &[7., 1.])?;
    near(&of(0.)?, &[2., 1.])?;
    near(&of(f64::INFINITY)?, &[4., 1.])?;
    near(&of(f64::NEG_INFINITY)?, &[3., 0.])?;
    near(&of(3.)?, &[91f64.cbrt(), 1.])?;
    near(&of(-1.)?, &[12. / 7., 0.])?;
    near(
        &log_sum_exp(&x.affine(0., 1000.)?, &[1], false)?,
        &[1000. + 2f64.ln(); 2],
    )?;
    let inf = Tensor::new(&[f64::NEG_INFINITY; 2], &Device::Cpu)?;
    assert_eq!(f64s(&log_sum_exp(&inf, &[0], false)?)?, [f64::NEG_INFINITY]);
    let none = Tensor::zeros(0, DType::F64, &Device::Cpu)?;
    assert_eq!(
        f64s(&log_sum_exp(&none, &[0], false)?)?,
        [f64::NEG_INFINITY]
    );
    assert!(norm("norm", &none, f64::INFINITY, &[0], false).is_err());
    near(&norm("norm", &none, 2., &[0], false)?, &[0.])
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[2, 3, 2])?];
    for p in [-1., 0.5, 1., 2., 3., f64::INFINITY] {
        check(&x, |v| norm("norm", &v[0], p, &[0, 2], false))?;
    }
    check(&x, |v| log_sum_exp(&v[0], &[1], true))?;
    let zero = Var::new(&[0f64, 0.], &Device::Cpu)?;
    let grads = norm("norm", zero.as_tensor(), 2., &[0], false)?.backward()?;
    near(grads.get(&zero).expect("a gradient"), &[0., 0.])
}
