//! Tests of `reduce`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{DType, Result, Tensor};
use candle_core::{Device, Var};
use fx_candle_kernels::reduce::*;

fn sample() -> Result<Tensor> {
    Tensor::new(&[[1f64, 5., 2.], [4., 0., 6.]], &Device::Cpu)
}

#[test]
fn small_numbers() -> Result<()> {
    for x in [sample()?, strided(&sample()?)?] {
        near(&sum(&x, &[0], false)?, &[5., 5., 8.])?;
        near(&sum(&x, &[], false)?, &[1., 5., 2., 4., 0., 6.])?;
        near(&mean(&x, &[1], true)?, &[8. / 3., 10. / 3.])?;
        near(&max(&x, &[1, 0], false)?, &[6.])?;
        near(&min(&x, &[0], true)?, &[1., 0., 2.])?;
        near(&sum(&x, &[0, 1], false)?, &[18.])?;
        near(&mean(&x, &[0, 1], false)?, &[3.])?;
        near(&min(&x, &[0, 1], false)?, &[0.])?;
        let (values, at) = extreme_dim(&x, 1, false, Side::Max)?;
        near(&values, &[5., 6.])?;
        assert_eq!(at.to_vec1::<i64>()?, [1, 2]);
        let (values, at) = extreme_dim(&x, 1, false, Side::Min)?;
        near(&values, &[1., 0.])?;
        assert_eq!(at.to_vec1::<i64>()?, [0, 1]);
        let (values, at) = extreme_dim(&x, 0, true, Side::Max)?;
        assert_eq!((values.dims(), at.dims()), (&[1, 3][..], &[1, 3][..]));
    }
    let ints = Tensor::new(&[200u8, 100], &Device::Cpu)?;
    assert_eq!(sum(&ints, &[0], false)?.to_scalar::<i64>()?, 300);
    Ok(())
}

#[test]
fn empty_and_wrong() -> Result<()> {
    let x = Tensor::zeros((0, 3), DType::F32, &Device::Cpu)?;
    near(&sum(&x, &[0], false)?, &[0., 0., 0.])?;
    assert!(f64s(&mean(&x, &[0, 1], false)?)?[0].is_nan());
    assert_eq!(max(&x, &[1], false)?.dims(), &[0]);
    assert_eq!(extreme_dim(&x, 1, true, Side::Max)?.1.dims(), &[0, 1]);
    for text in [
        max(&x, &[0], false).unwrap_err().to_string(),
        extreme_dim(&x, 0, false, Side::Max)
            .unwrap_err()
            .to_string(),
    ] {
        assert!(text.contains("max: shape [0, 3] is empty"), "{text}");
    }
    assert!(sum(&x, &[2], false).is_err());
    assert!(sum(&x, &[1, 1], false).is_err());
    assert!(mean(&x.to_dtype(DType::I64)?, &[0], false).is_err());
    Ok(())
}

#[test]
fn infinities_are_not_nan() -> Result<()> {
    let inf = f32::INFINITY;
    assert!(!has_nan(&Tensor::new(&[inf, -inf, 0.], &Device::Cpu)?)?);
    assert!(has_nan(&Tensor::new(&[inf, f32::NAN], &Device::Cpu)?)?);
    assert!(!has_nan(&Tensor::new(&[1i64], &Device::Cpu)?)?);
    Ok(())
}

#[test]
fn nan_wins() -> Result<()> {
    let x = Tensor::new(&[[1f32, f32::NAN, 2.], [3., 1., 3.]], &Device::Cpu)?;
    let y = f64s(&max(&x, &[1], false)?)?;
    assert!(y[0].is_nan() && y[1] == 3.0, "{y:?}");
    let (values, at) = extreme_dim(&x, 1, false, Side::Max)?;
    assert!(f64s(&values)?[0].is_nan());
    assert_eq!(at.to_vec1::<i64>()?, [1, 0]);
    Ok(())
}

/// The first place of an extreme, one element after the other.
fn first(row: &[f32], is_better: impl Fn(f32, f32) -> bool) -> u32 {
    let mut at = 0;
    for (i, x) in row.iter().enumerate() {
        if !row[at].is_nan() && (x.is_nan() || is_better(*x, row[at])) {
            at = i;
        }
    }
    at as u32
}

#[test]
fn the_first_extreme_of_long_rows() -> Result<()> {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 100.0];
    for count in [1, 2, 15, 63, 64, 65, 200, 1000] {
        // Few values, so that many are equal; the last rows have odd ones too.
        let rows: Vec<Vec<f32>> = (0..24usize)
            .map(|row| {
                let x = (0..count).map(|i| ((i * 31 + row * 17) * 7919 % 23) as f32 - 11.0);
                let mut x: Vec<f32> = x.collect();
                if row >= 4 {
                    x[(row * 53) % count] = odd[row % odd.len()];
                    x[(row * 29) % count] = odd[row / 4];
                }
                x
            })
            .collect();
        let x = Tensor::new(rows.clone(), &Device::Cpu)?;
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
            let x = x.to_dtype(dtype)?;
            let found = [Side::Max, Side::Min]
                .map(|side| first_extreme(&x, side)?.flatten_all()?.to_vec1::<u32>());
            let [most, least] = found;
            let (most, least) = (most?, least?);
            for (at, row) in rows.iter().enumerate() {
                assert_eq!(most[at], first(row, |a, b| a > b), "{dtype:?} {row:?}");
                assert_eq!(least[at], first(row, |a, b| a < b), "{dtype:?} {row:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn ties_share_the_gradient() -> Result<()> {
    let inf = f64::NEG_INFINITY;
    let x = Tensor::new(
        &[[3f64, 3., 1.], [2., 0., 1.], [inf, inf, inf]],
        &Device::Cpu,
    )?;
    let x = Var::from_tensor(&x)?;
    let y = max(x.as_tensor(), &[1], false)?;
    near(&y, &[3., 2., inf])?;
    let grads = y.sum_all()?.backward()?;
    let got = f64s(grads.get(&x).expect("a gradient"))?;
    let third = 1.0 / 3.0;
    assert_eq!(got, [0.5, 0.5, 0., 1., 0., 0., third, third, third]);
    let grads = extreme_dim(x.as_tensor(), 1, false, Side::Max)?
        .0
        .sum_all()?
        .backward()?;
    near(
        grads.get(&x).expect("a gradient"),
        &[1., 0., 0., 1., 0., 0., 1., 0., 0.],
    )
}

#[test]
fn variances() -> Result<()> {
    let x = Tensor::new(&[[1f64, 3.], [2., 6.]], &candle_core::Device::Cpu)?;
    near(&spread(Spread::Var, &x, &[1], false, false)?, &[1., 4.])?;
    near(&spread(Spread::Var, &x, &[1], true, true)?, &[2., 8.])?;
    near(&spread(Spread::Var, &x, &[0, 1], false, false)?, &[3.5])?;
    let one = x.narrow(1, 0, 1)?;
    assert!(f64s(&spread(Spread::Var, &one, &[1], true, false)?)?[0].is_nan());
    check(&[varied(&[2, 3, 2])?], |v| {
        spread(Spread::Var, &v[0], &[0, 2], true, false)
    })?;
    check(&[varied(&[2, 3, 2])?], |v| {
        spread(Spread::Std, &v[0], &[1], true, false)
    })
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 3, 4])?)?];
    check(&x, |v| sum(&v[0], &[0, 2], false))?;
    check(&x, |v| mean(&v[0], &[1], true))?;
    check(&x, |v| max(&v[0], &[0, 2], true))?;
    check(&x, |v| min(&v[0], &[1], false))?;
    check(&x, |v| Ok(extreme_dim(&v[0], 1, false, Side::Max)?.0))
}
