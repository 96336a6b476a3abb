//! Tests of `shape`.

use crate::testing::{check, near, strided, varied};
use candle_core::{DType, Device};
use candle_core::{Result, Tensor};
use fx_candle_kernels::shape::*;

#[test]
fn flattens() -> Result<()> {
    let x = varied(&[2, 3, 4, 5])?;
    assert_eq!(flatten(&x, 1, -1)?.dims(), &[2, 60]);
    assert_eq!(flatten(&x, 0, 1)?.dims(), &[6, 4, 5]);
    assert_eq!(flatten(&x, 2, 2)?.dims(), &[2, 3, 4, 5]);
    assert_eq!(flatten(&varied(&[])?, 0, -1)?.dims(), &[1]);
    assert!(flatten(&x, 2, 1).is_err());
    assert!(flatten(&x, 0, 4).is_err());
    Ok(())
}

#[test]
fn joins() -> Result<()> {
    let a = Tensor::new(&[[1f32, 2.], [3., 4.]], &Device::Cpu)?;
    let b = strided(&a)?;
    let none = Tensor::zeros(0, DType::F32, &Device::Cpu)?;
    let y = cat(&[a.clone(), none.clone(), b.clone()], -1)?;
    near(&y, &[1., 2., 1., 2., 3., 4., 3., 4.])?;
    near(
        &cat(&[b.clone(), a.t()?], 0)?,
        &[1., 2., 3., 4., 1., 3., 2., 4.],
    )?;
    assert_eq!(cat(&[none.clone(), none.clone()], 0)?.dims(), &[0]);
    assert_eq!(cat(&[a.narrow(0, 0, 0)?, a.clone()], 0)?.dims(), &[2, 2]);
    near(
        &stack(&[a.clone(), b], 1)?,
        &[1., 2., 1., 2., 3., 4., 3., 4.],
    )?;
    assert_eq!(stack(&[none.clone(), none], -1)?.dims(), &[0, 2]);
    let text = cat(&[a.clone(), varied(&[2, 2, 1])?], 0)
        .unwrap_err()
        .to_string();
    assert!(text.contains("cat: shapes [2, 2] and [2, 2, 1]"), "{text}");
    assert!(cat(&[], 0).is_err() && stack(&[], 0).is_err());
    assert!(stack(&[a.clone(), varied(&[2])?], 0).is_err());
    assert!(stack(&[a], 3).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[2, 3])?, strided(&varied(&[2, 3])?)?];
    check(&x, |v| cat(v, 1))?;
    check(&x, |v| stack(v, 1))
}
