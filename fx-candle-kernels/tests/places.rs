//! Tests of `places`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::places::*;

#[test]
fn places_of_views() -> Result<()> {
    assert_eq!(strides(&[2, 3, 4]), [12, 4, 1]);
    assert_eq!(view("v", 1, &[2, 2], &[3, 1])?, [1, 2, 4, 5]);
    assert_eq!(view("v", 5, &[], &[])?, [5]);
    assert!(view("v", 0, &[2, 0], &[3, 1])?.is_empty());
    Ok(())
}

#[test]
fn elements_by_place() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2.], [3., 4.]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        near(&pick("p", &x, vec![3, NOWHERE, 0], &[3])?, &[4., 0., 1.])?;
        let source = Tensor::new(&[7f64, 8., 9.], &Device::Cpu)?;
        near(&put("p", &x, &source, &[1, 2, 1])?, &[1., 9., 8., 4.])?;
        near(&along("p", &x, 1, vec![1, u32::MAX])?, &[2., 0., 4., 0.])?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [strided(&varied(&[2, 3])?)?, varied(&[4])?];
    check(&inputs[..1], |v| {
        pick("p", &v[0], vec![3, NOWHERE, 0, 3], &[2, 2])
    })?;
    check(&inputs, |v| put("p", &v[0], &v[1], &[1, 2, 1, 5]))
}
