//! Tests of `cosine`.

use crate::testing::{check, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::cosine::*;

#[test]
fn small_numbers() -> Result<()> {
    let a = Tensor::new(&[[3f64, 4.], [0., 0.]], &Device::Cpu)?;
    let b = Tensor::new(&[4f64, 3.], &Device::Cpu)?;
    let of = |a: &Tensor, b: &Tensor, dim| cosine_similarity("cosine", a, b, dim, 1e-8);
    near(&of(&a, &b, 1)?, &[0.96, 0.])?;
    near(
        &of(
            &Tensor::new(2f64, &Device::Cpu)?,
            &Tensor::new(-3f64, &Device::Cpu)?,
            0,
        )?,
        &[-1.],
    )?;
    assert!(of(&a, &varied(&[3])?, 1).is_err());
    check(&[varied(&[2, 3])?, varied(&[3])?], |v| of(&v[0], &v[1], 1))
}
