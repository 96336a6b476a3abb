//! Tests of `pad`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::pad::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.]], &Device::Cpu)?;
    let nine = Tensor::new(9f64, &Device::Cpu)?;
    near(
        &constant("pad", &x, &[(1, 2)], &nine)?,
        &[9., 1., 2., 3., 9., 9.],
    )?;
    near(&constant("pad", &x, &[(-1, 1)], &nine)?, &[2., 3., 9.])?;
    near(&constant("pad", &x, &[(-3, 2)], &nine)?, &[9., 9.])?;
    assert!(constant("pad", &x, &[(-4, 2)], &nine).is_err());
    let edge = |edge, sides| repeated("pad", &x, &[sides], edge);
    near(&edge(Edge::Reflect, (2, 1))?, &[3., 2., 1., 2., 3., 2.])?;
    near(&edge(Edge::Replicate, (2, 1))?, &[1., 1., 1., 2., 3., 3.])?;
    near(&edge(Edge::Circular, (2, 1))?, &[2., 3., 1., 2., 3., 1.])?;
    near(&edge(Edge::Circular, (-1, 1))?, &[2., 3., 2.])?;
    assert!(edge(Edge::Reflect, (3, 0)).is_err());
    assert!(edge(Edge::Circular, (4, 0)).is_err());
    assert!(constant("pad", &x, &[(i64::MAX, 1)], &nine).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[1, 3, 4])?)?];
    let two = Tensor::new(2f64, &Device::Cpu)?;
    check(&x, |v| constant("pad", &v[0], &[(1, -1), (2, 0)], &two))?;
    for edge in [Edge::Reflect, Edge::Replicate, Edge::Circular] {
        check(&x, |v| repeated("pad", &v[0], &[(2, 1), (1, 2)], edge))?;
    }
    Ok(())
}
