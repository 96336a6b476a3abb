//! Tests of `avg_pool`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::avg_pool::*;

type Two = (usize, usize);
const CASES: [(Two, Two, Two, bool, bool); 7] = [
    ((2, 2), (2, 2), (0, 0), false, true),
    ((3, 3), (2, 2), (1, 1), false, true),
    ((3, 3), (2, 2), (1, 1), true, false),
    ((3, 2), (1, 2), (1, 0), false, true),
    ((2, 3), (2, 2), (1, 1), true, true),
    ((4, 4), (4, 4), (0, 0), false, true),
    ((1, 3), (2, 1), (0, 0), false, true),
];

/// By definition, in plain loops.
fn slow(x: &[f64], [h, w]: Two2, case: (Two, Two, Two, bool, bool)) -> Vec<f64> {
    let (k, s, p, ceil, pad_counts) = case;
    let count = |i: usize, k: usize, s: usize, p: usize| {
        let room = (i + 2 * p - k) as f64 / s as f64;
        let n = if ceil { room.ceil() } else { room.floor() } as usize + 1;
        if ceil && (n - 1) * s >= i + p {
            n - 1
        } else {
            n
        }
    };
    let mut y = vec![];
    for oy in 0..count(h, k.0, s.0, p.0) {
        for ox in 0..count(w, k.1, s.1, p.1) {
            let (mut total, mut seen, mut padded) = (0.0, 0.0, 0.0);
            for row in oy * s.0..oy * s.0 + k.0 {
                for col in ox * s.1..ox * s.1 + k.1 {
                    if row < h + 2 * p.0 && col < w + 2 * p.1 {
                        padded += 1.0;
                    }
                    if row >= p.0 && row < h + p.0 && col >= p.1 && col < w + p.1 {
                        total += x[(row - p.0) * w + col - p.1];
                        seen += 1.0;
                    }
                }
            }
            y.push(total / if pad_counts { padded } else { seen });
        }
    }
    y
}
type Two2 = [usize; 2];

#[test]
fn matches_the_definition() -> Result<()> {
    let x = varied(&[1, 7, 6])?;
    let values = f64s(&x)?;
    for case in CASES {
        let (k, s, p, ceil, pad) = case;
        let want = slow(&values, [7, 6], case);
        near(&avg_pool2d(&strided(&x)?, k, s, p, ceil, pad)?, &want)?;
        let var = Var::from_tensor(&x)?;
        near(&avg_pool2d(var.as_tensor(), k, s, p, ceil, pad)?, &want)?;
    }
    Ok(())
}

#[test]
fn adapts() -> Result<()> {
    let x = Tensor::new(&[[[1f64, 2., 3.], [4., 5., 6.]]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        near(&adaptive_avg_pool2d(&x, (1, 1))?, &[3.5])?;
        near(&adaptive_avg_pool2d(&x, (2, 3))?, &[1., 2., 3., 4., 5., 6.])?;
        near(&adaptive_avg_pool2d(&x, (1, 3))?, &[2.5, 3.5, 4.5])?;
        near(&adaptive_avg_pool2d(&x, (2, 2))?, &[1.5, 2.5, 4.5, 5.5])?;
        near(&adaptive_avg_pool2d(&x, (3, 1))?, &[2., 3.5, 5.])?;
        let up = adaptive_avg_pool2d(&x, (1, 4))?;
        near(&up, &[2.5, 3., 4., 4.5])?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 1, 7, 6])?)?];
    for (k, s, p, ceil, pad) in CASES {
        check(&x, |v| avg_pool2d(&v[0], k, s, p, ceil, pad))?;
    }
    for out in [(1, 1), (7, 6), (7, 3), (3, 4), (9, 8), (1, 5)] {
        check(&x, |v| adaptive_avg_pool2d(&v[0], out))?;
    }
    check(&[varied(&[1, 6, 4])?], |v| {
        avg_pool2d(&v[0], (3, 2), (3, 2), (0, 0), false, true)
    })
}

#[test]
fn infinity_stays_in_its_window() -> Result<()> {
    let inf = f64::INFINITY;
    let x = Tensor::new(&[[[inf, 2., 3., 4.]]], &Device::Cpu)?;
    near(&adaptive_avg_pool2d(&x, (1, 3))?, &[inf, 2.5, 3.5])
}

#[test]
fn errors_and_empty() -> Result<()> {
    let x = varied(&[1, 3, 3])?;
    let text = avg_pool2d(&x, (4, 1), (1, 1), (0, 0), false, true)
        .unwrap_err()
        .to_string();
    assert!(text.contains("avg_pool2d: a kernel of 4"), "{text}");
    assert!(avg_pool2d(&x, (2, 2), (1, 1), (2, 2), false, true).is_err());
    assert!(adaptive_avg_pool2d(&varied(&[3, 3])?, (1, 1)).is_err());
    assert!(adaptive_avg_pool2d(&varied(&[1, 0, 3])?, (1, 1)).is_err());
    assert_eq!(adaptive_avg_pool2d(&x, (0, 2))?.dims(), &[1, 0, 2]);
    Ok(())
}
