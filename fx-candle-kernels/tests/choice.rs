//! Tests of `choice`.

#![allow(
    clippy::disallowed_methods,
    reason = "they are what the tests compare with"
)]

use crate::testing::{check, varied};
use candle_core::{DType, Device};
use candle_core::{Result, Tensor};
use fx_candle_kernels::choice::*;

fn same_as_candle(condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    let numbers = |y: Tensor| y.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let ours = where_cond(condition, a, b)?;
    let theirs = condition.where_cond(a, b)?;
    assert_eq!((ours.dims(), ours.dtype()), (theirs.dims(), theirs.dtype()));
    let layouts = [condition.layout(), a.layout(), b.layout()];
    assert_eq!(numbers(ours)?, numbers(theirs)?, "{layouts:?}");
    Ok(())
}

fn truth(dims: &[usize]) -> Result<Tensor> {
    let len = dims.iter().product();
    let truth = (0..len).map(|i| u8::from(i * 7 % 5 < 2)).collect();
    Tensor::from_vec::<_, u8>(truth, dims, &Device::Cpu)
}

#[test]
fn every_layout_gives_candles_result() -> Result<()> {
    let dims = [2, 3, 4];
    let of = |of: fn(&[usize]) -> Result<Tensor>| -> Result<Vec<Tensor>> {
        Ok(vec![
            of(&dims)?,
            of(&[])?.broadcast_as(&dims)?,
            of(&[4])?.broadcast_as(&dims)?,
            of(&[3, 1])?.broadcast_as(&dims)?,
            of(&[2, 1, 4])?.broadcast_as(&dims)?,
            of(&[4, 3, 2])?.permute((2, 1, 0))?,
            of(&[3, 2, 4])?.transpose(0, 1)?,
            of(&[2, 3, 6])?.narrow(2, 1, 4)?,
        ])
    };
    let (conditions, values) = (of(truth)?, of(varied)?);
    for condition in &conditions {
        for a in &values {
            for b in &values {
                same_as_candle(condition, a, &b.neg()?.broadcast_as(&dims)?)?;
                same_as_candle(condition, a, b)?;
            }
        }
    }
    Ok(())
}

#[test]
fn every_dtype_gives_candles_result() -> Result<()> {
    use DType::*;
    for dtype in [U8, U32, I16, I32, I64, BF16, F16, F32, F64] {
        let a = Tensor::arange(0u32, 12, &Device::Cpu)?.to_dtype(dtype)?;
        same_as_candle(&truth(&[12])?, &a, &a.zeros_like()?)?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let condition = truth(&[2, 3])?;
    check(&[varied(&[2, 3])?, varied(&[2, 3])?.t()?.t()?], |x| {
        where_cond(&condition, &x[0], &x[1])
    })?;
    let wide = truth(&[2, 3])?;
    check(&[varied(&[3])?, varied(&[2, 1])?], |x| {
        where_cond(
            &wide,
            &x[0].broadcast_as((2, 3))?,
            &x[1].broadcast_as((2, 3))?,
        )
    })
}

#[test]
fn errors_name_shapes_and_dtypes() -> Result<()> {
    let (condition, x) = (truth(&[3])?, varied(&[3])?);
    let text = where_cond(&condition, &x, &varied(&[2])?)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("where: shapes [3], [3] and [2] differ"),
        "{text}"
    );
    let text = where_cond(&condition, &x, &x.to_dtype(DType::F32)?)
        .unwrap_err()
        .to_string();
    assert!(text.contains("are two dtypes"), "{text}");
    Ok(())
}
