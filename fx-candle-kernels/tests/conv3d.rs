//! Tests of `conv3d`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Result;
use fx_candle_kernels::conv3d::*;

/// By definition: the value of the result at one place.
fn slow(x: &[f64], w: &[f64], at: [usize; 3]) -> f64 {
    // Input [1, 2, 3, 4, 3], weight [1, 2, 2, 3, 2], stride [1, 2, 1], padding [1, 1, 0], dilation [2, 1, 1].
    let mut total = 0.0;
    for (c, kd, kh, kw) in (0..2 * 2 * 3 * 2).map(|i| (i / 12, i / 6 % 2, i / 2 % 3, i % 2)) {
        let d = (at[0] + 2 * kd) as i64 - 1;
        let h = (at[1] * 2 + kh) as i64 - 1;
        let place = at[2] + kw;
        if (0..3).contains(&d) && (0..4).contains(&h) && place < 3 {
            let i = ((c * 3 + d as usize) * 4 + h as usize) * 3 + place;
            total += x[i] * w[((c * 2 + kd) * 3 + kh) * 2 + kw];
        }
    }
    total
}

#[test]
fn matches_the_definition() -> Result<()> {
    let (x, w) = (
        strided(&varied(&[1, 2, 3, 4, 3])?)?,
        varied(&[1, 2, 2, 3, 2])?,
    );
    let y = conv3d(&x, &w, None, [1, 2, 1], [1, 1, 0], [2, 1, 1], 1)?;
    assert_eq!(y.dims(), &[1, 1, 3, 2, 2]);
    let (values, weights) = (f64s(&x)?, f64s(&w)?);
    let want: Vec<f64> = (0..12)
        .map(|i| slow(&values, &weights, [i / 4, i / 2 % 2, i % 2]))
        .collect();
    near(&y, &want)
}

/// A transposed convolution is the gradient of the convolution.
#[test]
fn the_transpose_is_the_gradient() -> Result<()> {
    let w = varied(&[2, 2, 2, 3, 2])?;
    let var = candle_core::Var::from_tensor(&varied(&[1, 2, 5, 5, 4])?)?;
    let y = conv3d(
        var.as_tensor(),
        &w,
        None,
        [2, 2, 1],
        [1, 1, 0],
        [1, 1, 1],
        1,
    )?;
    let weights = varied(y.dims())?;
    let grads = y.mul(&weights)?.sum_all()?.backward()?;
    let back = conv_transpose3d(
        &weights,
        &w,
        None,
        [2, 2, 1],
        [1, 1, 0],
        [1, 0, 0],
        1,
        [1, 1, 1],
    )?;
    near(&back, &f64s(grads.get(&var).expect("a gradient"))?)
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [
        varied(&[2, 2, 3, 3, 2])?,
        varied(&[4, 1, 2, 2, 2])?,
        varied(&[4])?,
    ];
    check(&inputs, |v| {
        conv3d(
            &v[0],
            &v[1],
            Some(&v[2]),
            [2, 1, 1],
            [1, 0, 1],
            [1, 2, 1],
            2,
        )
    })?;
    let inputs = [
        varied(&[2, 2, 3, 2, 2])?,
        varied(&[2, 2, 2, 2, 1])?,
        varied(&[4])?,
    ];
    check(&inputs, |v| {
        conv_transpose3d(
            &v[0],
            &v[1],
            Some(&v[2]),
            [2, 1, 2],
            [1, 0, 0],
            [1, 0, 0],
            2,
            [1, 2, 1],
        )
    })
}

#[test]
fn errors() -> Result<()> {
    let (x, w) = (varied(&[1, 2, 3, 3, 3])?, varied(&[2, 2, 4, 1, 1])?);
    assert!(conv3d(&x, &w, None, [1; 3], [0; 3], [1; 3], 1).is_err());
    assert!(conv3d(&x, &w, None, [1; 3], [1; 3], [1; 3], 2).is_err());
    assert!(conv_transpose3d(&x, &w, None, [0; 3], [0; 3], [0; 3], 1, [1; 3]).is_err());
    assert!(conv_transpose3d(&x, &w, None, [1; 3], [9; 3], [0; 3], 1, [1; 3]).is_err());
    Ok(())
}
