//! Tests of `scatter`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::scatter::*;

fn ids(values: &[i64], dims: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), dims, &Device::Cpu)
}

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    let source = Tensor::new(&[[10f64, 20., 30.]], &Device::Cpu)?;
    let (part, at) = at("scatter", &x, 1, &ids(&[2, 0], &[1, 2])?, Some(&source))?;
    assert_eq!(at, [2, 0]);
    near(&part.expect("a part"), &[10., 20.])?;
    let (dims, at) = slices("index_add", &x, 1, &ids(&[2, 0], &[2])?, false)?;
    assert_eq!((dims, at), (vec![2, 2], vec![2, 0, 5, 3]));
    let terms = Tensor::new(&[2f64, 3., 4.], &Device::Cpu)?;
    let of = |how, own| reduce(&x, &terms, vec![0, 0, 1], how, own);
    near(&of(Reduce::Sum, true)?, &[6., 6., 3., 4., 5., 6.])?;
    near(&of(Reduce::Mean, false)?, &[2.5, 4., 3., 4., 5., 6.])?;
    near(&of(Reduce::Prod, true)?, &[6., 8., 3., 4., 5., 6.])?;
    near(&of(Reduce::Amax, true)?, &[3., 4., 3., 4., 5., 6.])?;
    near(&of(Reduce::Amin, false)?, &[2., 4., 3., 4., 5., 6.])
}

#[test]
fn gradients_match() -> Result<()> {
    let inputs = [strided(&varied(&[2, 3])?)?, varied(&[4])?];
    for how in [
        Reduce::Sum,
        Reduce::Prod,
        Reduce::Mean,
        Reduce::Amax,
        Reduce::Amin,
    ] {
        for own in [true, false] {
            check(&inputs, |v| {
                reduce(&v[0], &v[1], vec![1, 5, 1, 0], how, own)
            })?;
        }
    }
    Ok(())
}
