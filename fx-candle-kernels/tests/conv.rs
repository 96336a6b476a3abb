//! Tests of `conv`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{DType, Result, Tensor};
use candle_core::{Device, Var};
use fx_candle_kernels::conv::*;

type Two = (usize, usize);
type Case = (Two, Two, Two, Two, usize);
/// Kernel, stride, padding, dilation and groups.
const CASES: [Case; 11] = [
    ((3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 1), (1, 1), (0, 0), (1, 1), 2),
    ((1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((3, 2), (1, 2), (2, 0), (1, 3), 1),
    ((2, 3), (2, 1), (0, 1), (3, 1), 2),
    ((1, 3), (1, 1), (0, 1), (1, 1), 4),
    ((3, 1), (1, 1), (1, 0), (2, 1), 4),
    ((5, 4), (3, 2), (2, 2), (1, 1), 2),
    ((1, 1), (1, 1), (1, 2), (1, 1), 1),
];

/// By definition, in plain loops, for inputs `[2, 4, 7, 6]` and 4 outputs.
fn slow(x: &[f64], w: &[f64], b: &[f64], case: Case) -> Vec<f64> {
    let (k, s, p, d, groups) = case;
    let (h, width, ins) = (7, 6, 4 / groups);
    let oh = (h + 2 * p.0 - d.0 * (k.0 - 1) - 1) / s.0 + 1;
    let ow = (width + 2 * p.1 - d.1 * (k.1 - 1) - 1) / s.1 + 1;
    let mut y = vec![];
    for n in 0..2 {
        for (o, bias) in b.iter().enumerate() {
            for at in 0..oh * ow {
                let mut total = *bias;
                for i in 0..ins * k.0 * k.1 {
                    let (c, ky, kx) = (i / (k.0 * k.1), i / k.1 % k.0, i % k.1);
                    let row = (at / ow * s.0 + ky * d.0) as i64 - p.0 as i64;
                    let col = (at % ow * s.1 + kx * d.1) as i64 - p.1 as i64;
                    if !(0..h as i64).contains(&row) || !(0..width as i64).contains(&col) {
                        continue;
                    }
                    let c = n * 4 + o / (4 / groups) * ins + c;
                    total += x[(c * h + row as usize) * width + col as usize]
                        * w[o * ins * k.0 * k.1 + i];
                }
                y.push(total);
            }
        }
    }
    y
}

fn inputs(case: &Case) -> Result<[Tensor; 3]> {
    let (k, _, _, _, groups) = case;
    Ok([
        strided(&varied(&[2, 4, 7, 6])?)?,
        strided(&varied(&[4, 4 / groups, k.0, k.1])?.affine(-0.7, 0.1)?)?,
        varied(&[4])?,
    ])
}

#[test]
fn matches_the_definition() -> Result<()> {
    for case in CASES {
        let (_, s, p, d, groups) = case;
        let [x, w, b] = inputs(&case)?;
        let want = slow(&f64s(&x)?, &f64s(&w)?, &f64s(&b)?, case);
        let got = conv2d(&x, &w, Some(&b), s, p, d, groups)?;
        near(&got, &want)?;
        let var = Var::from_tensor(&w)?;
        near(
            &conv2d(&x, var.as_tensor(), Some(&b), s, p, d, groups)?,
            &want,
        )?;
        let one = conv2d(&x.get(1)?, &w, Some(&b), s, p, d, groups)?;
        near(&one, &f64s(&got.get(1)?)?)?;
        assert_eq!(one.rank(), 3);
        for dtype in [DType::F32, DType::F64] {
            let part = |t: &Tensor| t.to_dtype(dtype);
            let y = conv2d(&part(&x)?, &part(&w)?, Some(&part(&b)?), s, p, d, groups)?;
            for (y, w) in f64s(&y)?.iter().zip(&want) {
                assert!((y - w).abs() < 1e-5 * (1. + w.abs()));
            }
        }
    }
    Ok(())
}

#[test]
fn large_images_go_to_candle() -> Result<()> {
    let x = varied(&[1, 2, 700, 701])?;
    let (w, b) = (varied(&[2, 2, 3, 3])?, varied(&[2])?);
    let y = conv2d(&x, &w, Some(&b), (1, 1), (1, 1), (1, 1), 1)?;
    let var = Var::from_tensor(&w)?;
    let other = conv2d(&x, var.as_tensor(), Some(&b), (1, 1), (1, 1), (1, 1), 1)?;
    near(&y, &f64s(&other.detach())?)
}

#[test]
fn many_images_are_computed_in_parts() -> Result<()> {
    let (x, w) = (varied(&[5, 1, 130, 130])?, varied(&[1, 1, 45, 45])?);
    let of = |x: &Tensor| conv2d(x, &w, None, (1, 1), (0, 0), (1, 1), 1);
    let each = (0..5).map(|at| of(&x.narrow(0, at, 1)?));
    let each = Tensor::cat(&each.collect::<Result<Vec<Tensor>>>()?, 0)?;
    near(&of(&x)?, &f64s(&each)?)
}

#[test]
fn gradients_match() -> Result<()> {
    for case in CASES {
        let (_, s, p, d, groups) = case;
        check(&inputs(&case)?, |v| {
            conv2d(&v[0], &v[1], Some(&v[2]), s, p, d, groups)
        })?;
    }
    Ok(())
}

#[test]
fn errors_name_shapes() -> Result<()> {
    let (x, w) = (varied(&[1, 4, 3, 3])?, varied(&[2, 4, 3, 3])?);
    let run = |x: &Tensor, w: &Tensor, s, p, d, g| {
        conv2d(x, w, None, s, p, d, g).map_or_else(|e| e.to_string(), |_| String::new())
    };
    let text = run(&x, &varied(&[2, 3, 3, 3])?, (1, 1), (0, 0), (1, 1), 1);
    assert!(
        text.contains("conv2d: input [1, 4, 3, 3] has 4 channels"),
        "{text}"
    );
    let text = run(&x, &w, (1, 1), (0, 0), (2, 1), 1);
    assert!(text.contains("spans 5, more than the 3"), "{text}");
    assert!(!run(&x, &w, (0, 1), (0, 0), (1, 1), 1).is_empty());
    assert!(!run(&x, &w, (1, 1), (0, 0), (1, 1), 0).is_empty());
    assert!(!run(&x, &w, (1, 1), (0, 0), (1, 1), 4).is_empty());
    assert!(!run(&varied(&[3, 3])?, &w, (1, 1), (0, 0), (1, 1), 1).is_empty());
    assert!(!run(&x, &varied(&[2, 4, 0, 3])?, (1, 1), (0, 0), (1, 1), 1).is_empty());
    assert!(conv2d(&x, &w, Some(&varied(&[3])?), (1, 1), (0, 0), (1, 1), 1).is_err());
    let empty = Tensor::zeros((0, 4, 3, 3), DType::F32, &Device::Cpu)?;
    let w = w.to_dtype(DType::F32)?;
    let y = conv2d(&empty, &w, None, (1, 1), (0, 0), (1, 1), 1)?;
    assert_eq!(y.dims(), &[0, 2, 1, 1]);
    Ok(())
}
