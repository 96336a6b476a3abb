//! Tests of `curve`.

use crate::testing::{check, f64s, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::curve::*;

#[test]
fn small_results_are_kept() -> Result<()> {
    let x = Tensor::new(&[-25f32, 20., 21., -1000., 1000.], &Device::Cpu)?;
    let y = f64s(&Curve::Softplus(20.0).of(&x)?)?;
    assert!((y[0] / 1.388_794_386_5e-11 - 1.0).abs() < 1e-6, "{y:?}");
    assert_eq!(y[1..], [20., 21., 0., 1000.]);
    let tiny = Tensor::new(&[-1e-9f32], &Device::Cpu)?;
    assert_eq!(Curve::ExpMinusOne.of(&tiny)?.to_vec1::<f32>()?, [-1e-9]);
    assert!(
        Curve::Softplus(20.0)
            .of(&Tensor::new(1i64, &Device::Cpu)?)
            .is_err()
    );
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[3, 4])?.affine(3.0, 0.0)?];
    check(&x, |v| Curve::Softplus(20.0).of(&v[0]))?;
    check(&x, |v| Curve::ExpMinusOne.of(&v[0]))
}
