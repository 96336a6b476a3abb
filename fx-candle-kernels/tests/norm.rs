//! Tests of `norm`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{DType, Result, Tensor};
use fx_candle_kernels::norm::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2.], [3., 6.]], &Device::Cpu)?;
    let (mean, var) = batch_stats(&x)?;
    near(&mean, &[2., 4.])?;
    near(&var, &[2., 8.])?;
    let y = batch_norm(&x, None, None, None, None, true, 0.)?;
    near(&y, &[-1., -1., 1., 1.])?;
    let (w, b) = (Tensor::new(&[2f64, 3.], &Device::Cpu)?, mean.clone());
    let var = Tensor::new(&[1f64, 4.], &Device::Cpu)?;
    let y = batch_norm(&x, Some(&b), Some(&var), Some(&w), Some(&b), false, 0.)?;
    near(&y, &[0., 1., 4., 7.])?;
    let y = batch_norm(&strided(&x)?, None, None, None, None, true, 0.)?;
    near(&y, &[-1., -1., 1., 1.])
}

#[test]
fn single_precision_is_close() -> Result<()> {
    let x = varied(&[2, 3, 4, 5])?;
    let (m, v) = (varied(&[3])?, varied(&[3])?.sqr()?);
    let want = f64s(&batch_norm(
        &x,
        Some(&m),
        Some(&v),
        None,
        None,
        false,
        1e-5,
    )?)?;
    let single = |t: &Tensor| t.to_dtype(DType::F32);
    let (m, v) = (single(&m)?, single(&v)?);
    let got = batch_norm(&single(&x)?, Some(&m), Some(&v), None, None, false, 1e-5)?;
    for (g, w) in f64s(&got)?.iter().zip(want) {
        assert!((g - w).abs() < 1e-5 * (1. + w.abs()));
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = varied(&[2, 3, 2])?;
    let two = varied(&[2])?;
    let text = batch_norm(&x, None, None, Some(&two), None, true, 0.)
        .unwrap_err()
        .to_string();
    assert!(text.contains("batch_norm: weight [2]"), "{text}");
    assert!(batch_norm(&x, None, None, None, None, false, 0.).is_err());
    assert!(batch_norm(&varied(&[1, 3])?, None, None, None, None, true, 0.).is_err());
    assert!(batch_stats(&two).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let (w, b) = (varied(&[3])?, varied(&[3])?.affine(2., 0.1)?);
    let (m, v) = (b.clone(), varied(&[3])?.sqr()?);
    for x in [varied(&[4, 3])?, strided(&varied(&[2, 3, 2, 3])?)?] {
        let inputs = [x, w.clone(), b.clone()];
        check(&inputs, |t| {
            batch_norm(&t[0], None, None, Some(&t[1]), Some(&t[2]), true, 1e-3)
        })?;
        check(&[inputs[0].clone(), b.clone(), v.clone()], |t| {
            batch_norm(&t[0], Some(&t[1]), Some(&t[2]), None, None, false, 1e-3)
        })?;
        check(&inputs, |t| {
            batch_norm(
                &t[0],
                Some(&m),
                Some(&v),
                Some(&t[1]),
                Some(&t[2]),
                false,
                1e-3,
            )
        })?;
    }
    Ok(())
}
