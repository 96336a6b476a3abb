//! Tests of `attention`.

use crate::testing::{check, f64s, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::attention::*;

fn run(v: &[Tensor], mask: Mask<'_>) -> Result<Tensor> {
    attention("attention", &v[0], &v[1], &v[2], mask, 0.5, 0.0)
}

#[test]
fn a_query_that_sees_nothing_gives_zeros() -> Result<()> {
    let v = [varied(&[2, 3])?, varied(&[2, 3])?, varied(&[2, 2])?];
    let truth = Tensor::new(&[[0u8, 0], [0, 1]], &Device::Cpu)?;
    let y = run(&v, Mask::Truth(&truth))?;
    let last = f64s(&v[2])?;
    near(&y, &[0., 0., last[2], last[3]])?;
    let inf = f64::NEG_INFINITY;
    let numbers = Tensor::new(&[[inf, inf], [inf, 0.]], &Device::Cpu)?;
    near(&run(&v, Mask::Numbers(&numbers))?, &f64s(&y)?)?;
    check(&v, |v| run(v, Mask::Truth(&truth)))
}

#[test]
fn gradients_match() -> Result<()> {
    let v = [
        varied(&[2, 3, 4])?,
        varied(&[2, 5, 4])?,
        varied(&[2, 5, 2])?,
    ];
    check(&v, |v| run(v, Mask::None))?;
    check(&v, |v| run(v, Mask::Causal))
}
