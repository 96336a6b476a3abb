//! Tests of `grid`.

use crate::testing::{check, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::grid::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[[[1f64, 2.], [3., 4.]]]], &Device::Cpu)?;
    let grid = Tensor::new(&[[[[0f64, 0.], [-1., -1.], [3., 0.]]]], &Device::Cpu)?;
    let of = |between, outside, corners| sample(&x, &grid, between, outside, corners);
    near(&of(Between::Linear, Outside::Zeros, true)?, &[2.5, 1., 0.])?;
    near(&of(Between::Linear, Outside::Border, true)?, &[2.5, 1., 3.])?;
    near(
        &of(Between::Linear, Outside::Zeros, false)?,
        &[2.5, 0.25, 0.],
    )?;
    near(
        &of(Between::Nearest, Outside::Border, false)?,
        &[1., 1., 2.],
    )?;
    near(
        &of(Between::Linear, Outside::Reflection, true)?,
        &[2.5, 1., 2.],
    )?;
    let theta = Tensor::new(&[[[1f64, 0., 0.], [0., 1., 0.]]], &Device::Cpu)?;
    near(
        &of(Between::Cubic, Outside::Reflection, true)?,
        &[2.5, 1., 2.],
    )?;
    near(&affine(&theta, &[1, 2], true)?, &[-1., 0., 1., 0.])?;
    near(&affine(&theta, &[1, 2], false)?, &[-0.5, 0., 0.5, 0.])?;
    let volume = x.reshape((1, 1, 2, 1, 2))?;
    let grid = Tensor::new(&[0f64, 0., 0., -1., 0., 1.], &Device::Cpu)?;
    let grid = grid.reshape((1, 1, 1, 2, 3))?;
    let of = |between| sample(&volume, &grid, between, Outside::Zeros, true);
    near(&of(Between::Linear)?, &[2.5, 3.])?;
    near(&of(Between::Nearest)?, &[1., 3.])?;
    let theta = Tensor::new(
        &[[[1f64, 0., 0., 0.], [0., 1., 0., 0.], [0., 0., 2., 0.]]],
        &Device::Cpu,
    )?;
    near(
        &affine(&theta, &[2, 1, 1], true)?,
        &[0., 0., -2., 0., 0., 2.],
    )
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [
        varied(&[2, 2, 3, 4])?,
        varied(&[2, 2, 3, 2])?.affine(1.4, 0.03)?,
    ];
    for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
        for corners in [true, false] {
            for between in [Between::Linear, Between::Cubic] {
                check(&inputs, |v| sample(&v[0], &v[1], between, outside, corners))?;
            }
        }
    }
    check(&inputs[..1], |v| {
        sample(&v[0], &inputs[1], Between::Nearest, Outside::Zeros, false)
    })?;
    let volumes = [
        varied(&[1, 2, 2, 3, 2])?,
        varied(&[1, 1, 2, 2, 3])?.affine(1.4, 0.03)?,
    ];
    check(&volumes, |v| {
        sample(&v[0], &v[1], Between::Linear, Outside::Border, false)
    })?;
    check(&[varied(&[2, 3, 4])?], |v| affine(&v[0], &[2, 1, 3], true))?;
    check(&[varied(&[2, 2, 3])?], |v| affine(&v[0], &[2, 3], false))
}
