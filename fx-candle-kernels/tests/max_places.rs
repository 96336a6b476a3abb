//! Tests of `max_places`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Result;
use fx_candle_kernels::max_places::*;
use fx_candle_kernels::max_pool::max_pool2d;
use fx_candle_kernels::window::Axis;

fn axis(size: usize, kernel: usize, stride: usize, padding: usize, dilation: usize) -> Axis {
    Axis {
        size,
        kernel,
        stride,
        padding,
        dilation,
    }
}

#[test]
fn matches_the_other_kernel() -> Result<()> {
    let x = strided(&varied(&[2, 3, 7, 6])?)?;
    for (k, s, p, d, ceil) in [
        ((2, 2), (2, 2), (0, 0), (1, 1), false),
        ((3, 2), (2, 1), (1, 1), (2, 1), true),
        ((3, 3), (1, 2), (1, 0), (1, 2), false),
    ] {
        let spans = vec![
            sliding("p", axis(7, k.0, s.0, p.0, d.0), x.dims(), ceil)?,
            sliding("p", axis(6, k.1, s.1, p.1, d.1), x.dims(), ceil)?,
        ];
        let (y, at) = pool("p", &x, spans.clone())?;
        near(&y, &f64s(&max_pool2d(&x, k, s, p, d, ceil)?)?)?;
        let picked = x
            .contiguous()?
            .reshape((6, 42))?
            .gather(&at.reshape((6, ()))?, 1)?;
        near(&picked, &f64s(&y)?)?;
        check(std::slice::from_ref(&x), |v| {
            Ok(pool("p", &v[0], spans.clone())?.0)
        })?;
    }
    Ok(())
}

#[test]
fn goes_back() -> Result<()> {
    let x = varied(&[2, 4])?;
    let spans = vec![sliding("p", axis(4, 2, 2, 0, 1), x.dims(), false)?];
    let (y, at) = pool("p", &x, spans)?;
    let at = fx_candle_kernels::integers::elements(&at)?;
    let back = unpool("p", &y, &at, &[4])?;
    let (own, back) = (f64s(&x)?, f64s(&back)?);
    let kept = own.iter().zip(&back).filter(|(a, b)| a == b).count();
    assert_eq!((kept, back.iter().filter(|b| **b == 0.0).count()), (4, 4));
    assert!(unpool("p", &y, &[9; 4], &[4]).is_err());
    check(&[y], |v| unpool("p", &v[0], &at, &[4]))
}
