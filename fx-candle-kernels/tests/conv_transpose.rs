//! Tests of `conv_transpose`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Result, Tensor};
use fx_candle_kernels::conv_transpose::*;

type Two = (usize, usize);
type Case = (Two, Two, Two, Two, Two, usize);
/// Kernel, stride, padding, output padding, dilation and groups.
const CASES: [Case; 7] = [
    ((2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 1),
    ((3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
    ((3, 2), (1, 3), (1, 0), (0, 2), (1, 1), 2),
    ((1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    ((2, 3), (2, 1), (0, 1), (0, 0), (3, 2), 2),
    ((4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 4),
    ((1, 2), (3, 2), (0, 0), (1, 0), (1, 1), 1),
];

/// By definition: each pixel adds its weights to the result.
fn slow(x: &[f64], w: &[f64], b: &[f64], case: Case) -> Vec<f64> {
    let (k, s, p, extra, d, groups) = case;
    let (h, width, c, each) = (3, 4, 4, b.len() / groups);
    let oh = (h - 1) * s.0 + d.0 * (k.0 - 1) + extra.0 + 1 - 2 * p.0;
    let ow = (width - 1) * s.1 + d.1 * (k.1 - 1) + extra.1 + 1 - 2 * p.1;
    let mut y = vec![0.0; 2 * b.len() * oh * ow];
    for n in 0..2 {
        for (o, bias) in b.iter().enumerate() {
            for at in 0..oh * ow {
                y[(n * b.len() + o) * oh * ow + at] = *bias;
            }
        }
        for (ci, i) in (0..c).flat_map(|ci| (0..h * width).map(move |i| (ci, i))) {
            let value = x[(n * c + ci) * h * width + i];
            for (e, at) in (0..each).flat_map(|e| (0..k.0 * k.1).map(move |at| (e, at))) {
                let row = (i / width * s.0 + at / k.1 * d.0) as i64 - p.0 as i64;
                let col = (i % width * s.1 + at % k.1 * d.1) as i64 - p.1 as i64;
                if !(0..oh as i64).contains(&row) || !(0..ow as i64).contains(&col) {
                    continue;
                }
                let o = ci / (c / groups) * each + e;
                let place = ((n * b.len() + o) * oh + row as usize) * ow + col as usize;
                y[place] += value * w[(ci * each + e) * k.0 * k.1 + at];
            }
        }
    }
    y
}

fn inputs(case: &Case) -> Result<[Tensor; 3]> {
    let (k, .., groups) = case;
    let each = 4 / groups;
    Ok([
        strided(&varied(&[2, 4, 3, 4])?)?,
        strided(&varied(&[4, each, k.0, k.1])?.affine(-0.7, 0.1)?)?,
        varied(&[each * groups])?,
    ])
}

#[test]
fn matches_the_definition() -> Result<()> {
    for case in CASES {
        let (_, s, p, extra, d, groups) = case;
        let [x, w, b] = inputs(&case)?;
        let want = slow(&f64s(&x)?, &f64s(&w)?, &f64s(&b)?, case);
        let got = conv_transpose2d(&x, &w, Some(&b), s, p, extra, groups, d)?;
        near(&got, &want)?;
        let one = conv_transpose2d(&x.get(1)?, &w, Some(&b), s, p, extra, groups, d)?;
        near(&one, &f64s(&got.get(1)?)?)?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    for case in CASES {
        let (_, s, p, extra, d, groups) = case;
        check(&inputs(&case)?, |v| {
            conv_transpose2d(&v[0], &v[1], Some(&v[2]), s, p, extra, groups, d)
        })?;
    }
    Ok(())
}

#[test]
fn errors_name_shapes() -> Result<()> {
    let (x, w) = (varied(&[1, 4, 3, 3])?, varied(&[4, 2, 2, 2])?);
    let says = |x: &Tensor, s, p, extra, groups| {
        conv_transpose2d(x, &w, None, s, p, extra, groups, (1, 1))
            .map_or_else(|e| e.to_string(), |_| String::new())
    };
    let one = (1, 1);
    assert!(says(&varied(&[1, 3, 3, 3])?, one, (0, 0), (0, 0), 1).contains("has 3 channels"));
    assert!(says(&x, one, (0, 0), one, 1).contains("output_padding 1"));
    assert!(says(&x, (0, 1), (0, 0), (0, 0), 1).contains("stride 0"));
    assert!(says(&x, one, (3, 3), (0, 0), 1).contains("leaves nothing"));
    assert!(!says(&x, one, (0, 0), (0, 0), 3).is_empty());
    assert!(!says(&varied(&[4, 3])?, one, (0, 0), (0, 0), 1).is_empty());
    Ok(())
}
