//! Tests of `topk`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::topk::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f32, 5., 2., 5.], [4., 0., 6., -1.]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        let (values, at) = topk(&x, 2, 1, true, true)?;
        near(&values, &[5., 5., 6., 4.])?;
        assert_eq!(at.to_vec2::<i64>()?, [[1, 3], [2, 0]]);
        let (values, at) = topk(&x, 1, 0, false, true)?;
        near(&values, &[1., 0., 2., -1.])?;
        assert_eq!(at.to_vec2::<i64>()?, [[0, 1, 0, 1]]);
    }
    assert_eq!(topk(&x, 0, 1, true, true)?.0.dims(), &[2, 0]);
    let text = topk(&x, 5, 1, true, true).unwrap_err().to_string();
    assert!(text.contains("topk: k 5 is larger than dim 1"), "{text}");
    assert!(topk(&x, 1, 2, true, true).is_err());
    Ok(())
}

#[test]
fn nan_is_the_largest() -> Result<()> {
    let values: Vec<f32> = (0..64)
        .map(|i| {
            if i % 3 == 0 {
                f32::NAN
            } else {
                (i * 7 % 11) as f32
            }
        })
        .collect();
    let x = Tensor::new(values, &Device::Cpu)?;
    assert!(f64s(&topk(&x, 1, 0, true, true)?.0)?[0].is_nan());
    near(&topk(&x, 1, 0, false, true)?.0, &[0.])
}

#[test]
fn gradients_match() -> Result<()> {
    check(&[varied(&[2, 5, 3])?], |v| {
        Ok(topk(&v[0], 2, 1, true, true)?.0)
    })
}
