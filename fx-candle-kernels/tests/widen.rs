//! Tests of `widen`.

use candle_core::{DType, Result, Tensor};
use candle_core::{Device, Var};
use fx_candle_kernels::widen::*;

#[test]
fn rounds_once_and_keeps_the_type() -> Result<()> {
    let x = Tensor::new(&[256f32, 1., 1.], &Device::Cpu)?.to_dtype(DType::BF16)?;
    let y = widened(&x, (&x, None), |(x, none): (Tensor, Option<Tensor>)| {
        assert!(none.is_none() && x.dtype() == DType::F32);
        x.sum_all()
    })?;
    assert_eq!(y.dtype(), DType::BF16);
    assert_eq!(y.to_dtype(DType::F32)?.to_scalar::<f32>()?, 258.0);
    let single = x.to_dtype(DType::F32)?;
    let same = widened(&single, &single, Ok)?;
    assert_eq!(same.id(), single.id());
    Ok(())
}

#[test]
fn gradients_run_through() -> Result<()> {
    let x = Tensor::new(&[2f32, 3.], &Device::Cpu)?.to_dtype(DType::F16)?;
    let x = Var::from_tensor(&x)?;
    let y = widened(x.as_tensor(), x.as_tensor(), |x| x.sqr())?;
    let grads = y.sum_all()?.backward()?;
    let got = grads.get(&x).expect("a gradient").to_dtype(DType::F32)?;
    assert_eq!(got.to_vec1::<f32>()?, [4., 6.]);
    Ok(())
}
