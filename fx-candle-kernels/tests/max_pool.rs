//! Tests of `max_pool`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::max_pool::*;

type Two = (usize, usize);
const CASES: [(Two, Two, Two, Two, bool); 8] = [
    ((2, 2), (2, 2), (0, 0), (1, 1), false),
    ((3, 3), (2, 2), (1, 1), (1, 1), false),
    ((3, 2), (1, 2), (1, 0), (1, 1), false),
    ((2, 3), (2, 1), (1, 1), (2, 1), false),
    ((3, 3), (2, 3), (1, 1), (1, 1), true),
    ((2, 2), (3, 2), (0, 1), (1, 3), true),
    ((5, 1), (1, 1), (2, 0), (1, 1), false),
    ((2, 3), (2, 3), (0, 0), (1, 1), true),
];

/// By definition, in plain loops.
fn slow(x: &[f64], [c, h, w]: [usize; 3], case: (Two, Two, Two, Two, bool)) -> Vec<f64> {
    let (k, s, p, d, ceil) = case;
    let count = |i: usize, k: usize, s: usize, p: usize, d: usize| {
        let room = (i + 2 * p - d * (k - 1) - 1) as f64 / s as f64;
        let n = if ceil { room.ceil() } else { room.floor() } as usize + 1;
        if ceil && (n - 1) * s >= i + p {
            n - 1
        } else {
            n
        }
    };
    let mut y = vec![];
    for c in 0..c {
        for oy in 0..count(h, k.0, s.0, p.0, d.0) {
            for ox in 0..count(w, k.1, s.1, p.1, d.1) {
                let mut best = f64::NEG_INFINITY;
                for i in 0..k.0 * k.1 {
                    let row = (oy * s.0 + i / k.1 * d.0) as i64 - p.0 as i64;
                    let col = (ox * s.1 + i % k.1 * d.1) as i64 - p.1 as i64;
                    if (0..h as i64).contains(&row) && (0..w as i64).contains(&col) {
                        best = best.max(x[(c * h + row as usize) * w + col as usize]);
                    }
                }
                y.push(best);
            }
        }
    }
    y
}

#[test]
fn matches_the_definition() -> Result<()> {
    let x = varied(&[2, 7, 6])?.affine(1., -3.)?;
    let values = f64s(&x)?;
    for case in CASES {
        let (k, s, p, d, ceil) = case;
        let want = slow(&values, [2, 7, 6], case);
        near(&max_pool2d(&x, k, s, p, d, ceil)?, &want)?;
        near(&max_pool2d(&strided(&x)?, k, s, p, d, ceil)?, &want)?;
        let var = Var::from_tensor(&x)?;
        near(&max_pool2d(var.as_tensor(), k, s, p, d, ceil)?, &want)?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    for (k, s, p, d, ceil) in CASES {
        let x = [strided(&varied(&[2, 1, 7, 6])?)?];
        check(&x, |v| max_pool2d(&v[0], k, s, p, d, ceil))?;
    }
    Ok(())
}

#[test]
fn ties_nan_and_hollow_windows() -> Result<()> {
    let x = Var::zeros((1, 1, 2, 2), candle_core::DType::F64, &Device::Cpu)?;
    let y = max_pool2d(x.as_tensor(), (3, 3), (1, 1), (1, 1), (1, 1), false)?;
    let grads = y.sum_all()?.backward()?;
    near(grads.get(&x).expect("a gradient"), &[4., 0., 0., 0.])?;
    let x = Tensor::new(&[[[1f64, f64::NAN]]], &Device::Cpu)?;
    assert!(f64s(&max_pool2d(&x, (1, 2), (1, 1), (0, 0), (1, 1), false)?)?[0].is_nan());
    let x = Var::new(&[[[1f64, 2.]]], &Device::Cpu)?;
    let y = max_pool2d(x.as_tensor(), (1, 2), (1, 1), (0, 1), (1, 3), false)?;
    assert_eq!(f64s(&y)?, [f64::NEG_INFINITY]);
    let grads = y.sum_all()?.backward()?;
    near(grads.get(&x).expect("a gradient"), &[0., 0.])
}

#[test]
fn errors_and_empty() -> Result<()> {
    let x = varied(&[1, 1, 3, 3])?;
    let pool = |x: &Tensor, k, p| max_pool2d(x, k, (1, 1), p, (1, 1), false);
    let text = pool(&x, (4, 4), (0, 0)).unwrap_err().to_string();
    assert!(text.contains("max_pool2d: a kernel of 4"), "{text}");
    assert!(pool(&x, (2, 2), (2, 0)).is_err());
    assert!(pool(&x, (0, 2), (0, 0)).is_err());
    assert!(pool(&varied(&[3, 3])?, (2, 2), (0, 0)).is_err());
    assert_eq!(
        pool(&varied(&[0, 2, 3, 3])?, (2, 2), (0, 0))?.dims(),
        &[0, 2, 2, 2]
    );
    Ok(())
}
