//! Tests of `resample`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::resample::*;

fn resized(
    x: &Tensor,
    mode: &str,
    sizes: &[usize],
    corners: Option<bool>,
    antialias: bool,
) -> Result<Tensor> {
    let way = Way::of(mode, x.rank(), corners, antialias).map_err(candle_core::Error::msg)?;
    let lines: Vec<Line> = x.dims()[2..]
        .iter()
        .zip(sizes)
        .map(|(from, to)| Line {
            from: *from,
            to: *to,
            factor: None,
        })
        .collect();
    resample("interpolate", x, &way, &lines)
}

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[[[1f64, 2.], [3., 4.]]]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        let y = resized(&x, "nearest", &[4, 4], None, false)?;
        near(
            &y,
            &[
                1., 1., 2., 2., 1., 1., 2., 2., 3., 3., 4., 4., 3., 3., 4., 4.,
            ],
        )?;
        near(&resized(&x, "nearest", &[1, 1], None, false)?, &[1.])?;
        near(
            &resized(&x, "bilinear", &[1, 3], Some(true), false)?,
            &[1., 1.5, 2.],
        )?;
        let y = resized(&x, "bilinear", &[2, 4], None, false)?;
        near(&y, &[1., 1.25, 1.75, 2., 3., 3.25, 3.75, 4.])?;
        near(&resized(&x, "area", &[1, 2], None, false)?, &[2., 3.])?;
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    assert!(resized(&varied(&[2, 2])?, "nearest", &[4, 4], None, false).is_err());
    assert!(resized(&varied(&[1, 1, 0, 2])?, "bilinear", &[4, 4], None, false).is_err());
    let empty = varied(&[0, 2, 3, 3])?;
    let y = resized(&empty, "nearest", &[6, 6], None, false)?;
    assert_eq!(y.dims(), &[0, 2, 6, 6]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let images = [strided(&varied(&[1, 2, 3, 4])?)?];
    for mode in ["nearest", "nearest-exact", "bilinear", "bicubic", "area"] {
        check(&images, |v| resized(&v[0], mode, &[5, 3], None, false))?;
    }
    for mode in ["bilinear", "bicubic"] {
        check(&images, |v| {
            resized(&v[0], mode, &[5, 3], Some(true), false)
        })?;
    }
    for mode in ["bilinear", "bicubic", "lanczos"] {
        check(&images, |v| resized(&v[0], mode, &[2, 3], None, true))?;
    }
    let rows = [strided(&varied(&[2, 2, 5])?)?];
    for mode in ["nearest", "nearest-exact", "linear", "area"] {
        check(&rows, |v| resized(&v[0], mode, &[7], None, false))?;
    }
    let volumes = [strided(&varied(&[1, 1, 2, 3, 2])?)?];
    for mode in ["nearest", "nearest-exact", "trilinear", "area"] {
        check(&volumes, |v| resized(&v[0], mode, &[3, 2, 3], None, false))?;
    }
    Ok(())
}
