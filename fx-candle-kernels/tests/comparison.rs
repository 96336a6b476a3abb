//! Tests of `comparison`.

#![allow(
    clippy::disallowed_methods,
    reason = "they are what the tests compare with"
)]

use candle_core::{DType, Device};
use candle_core::{Result, Tensor};
use fx_candle_kernels::comparison::*;

type Compare = fn(&Tensor, &Tensor) -> Result<Tensor>;
const ALL: [(Compare, Compare); 6] = [
    (eq, |a, b| a.eq(b)),
    (ne, |a, b| a.ne(b)),
    (lt, |a, b| a.lt(b)),
    (le, |a, b| a.le(b)),
    (gt, |a, b| a.gt(b)),
    (ge, |a, b| a.ge(b)),
];

/// So many numbers of few values.
fn numbers(dims: &[usize], seed: usize) -> Result<Tensor> {
    let len = dims.iter().product();
    let numbers: Vec<f32> = (0..len).map(|i| ((i * 7 + seed) % 5) as f32).collect();
    Tensor::from_vec(numbers, dims, &Device::Cpu)
}

fn same_as_candle(a: &Tensor, b: &Tensor) -> Result<()> {
    for (ours, theirs) in ALL {
        let (ours, theirs) = (ours(a, b)?, theirs(a, b)?);
        assert_eq!(ours.dtype(), DType::U8);
        assert_eq!(ours.dims(), theirs.dims());
        assert_eq!(
            ours.flatten_all()?.to_vec1::<u8>()?,
            theirs.flatten_all()?.to_vec1::<u8>()?,
            "{:?} and {:?}",
            a.layout(),
            b.layout()
        );
    }
    Ok(())
}

#[test]
fn every_layout_gives_candles_result() -> Result<()> {
    let dims = [2, 3, 4];
    let of = |seed| -> Result<Vec<Tensor>> {
        Ok(vec![
            numbers(&dims, seed)?,
            numbers(&[], seed)?.broadcast_as(&dims)?,
            numbers(&[4], seed)?.broadcast_as(&dims)?,
            numbers(&[3, 1], seed)?.broadcast_as(&dims)?,
            numbers(&[2, 1, 1], seed)?.broadcast_as(&dims)?,
            numbers(&[2, 1, 4], seed)?.broadcast_as(&dims)?,
            numbers(&[4, 3, 2], seed)?.permute((2, 1, 0))?,
            numbers(&[3, 2, 4], seed)?.transpose(0, 1)?,
            numbers(&[2, 4, 3], seed)?.t()?,
            numbers(&[3, 3, 4], seed)?.narrow(0, 1, 2)?,
            numbers(&[2, 5, 4], seed)?.narrow(1, 2, 3)?,
            numbers(&[2, 3, 6], seed)?.narrow(2, 1, 4)?,
        ])
    };
    for a in &of(1)? {
        for b in &of(3)? {
            same_as_candle(a, b)?;
        }
    }
    Ok(())
}

#[test]
fn every_dtype_gives_candles_result() -> Result<()> {
    use DType::*;
    for dtype in [U8, U32, I16, I32, I64, BF16, F16, F32, F64] {
        let a = numbers(&[3, 4], 1)?.to_dtype(dtype)?;
        let b = numbers(&[3, 4], 2)?.to_dtype(dtype)?;
        same_as_candle(&a, &b)?;
    }
    Ok(())
}

#[test]
fn small_and_empty_shapes() -> Result<()> {
    for dims in [&[][..], &[1], &[1, 1], &[4, 1], &[1, 4]] {
        same_as_candle(&numbers(dims, 1)?, &numbers(dims, 2)?)?;
    }
    let empty = numbers(&[0, 3], 1)?;
    assert_eq!(lt(&empty, &numbers(&[3], 1)?)?.dims(), &[0, 3]);
    assert_eq!(lt(&empty, &empty.t()?.t()?)?.dims(), &[0, 3]);
    Ok(())
}

#[test]
fn nan_equals_nothing() -> Result<()> {
    let a = Tensor::new(&[f32::NAN, 1.0], &Device::Cpu)?;
    same_as_candle(&a, &a)?;
    assert_eq!(ne(&a, &a)?.to_vec1::<u8>()?, [1, 0]);
    assert_eq!(ge(&a, &a)?.to_vec1::<u8>()?, [0, 1]);
    Ok(())
}

#[test]
fn broadcasts_both_ways() -> Result<()> {
    let a = Tensor::new(&[[1f32], [2.0]], &Device::Cpu)?;
    let less = lt(&a, &Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu)?)?;
    assert_eq!(less.to_vec2::<u8>()?, [[0, 1, 1], [0, 0, 1]]);
    Ok(())
}

#[test]
fn errors_name_the_comparison() -> Result<()> {
    let a = numbers(&[2], 1)?;
    let text = lt(&a, &numbers(&[3], 1)?).unwrap_err().to_string();
    assert!(
        text.contains("lt: shapes [2] and [3] do not broadcast"),
        "{text}"
    );
    let text = lt(&a, &a.to_dtype(DType::F64)?).unwrap_err().to_string();
    assert!(text.contains("lt: F32 and F64 do not compare"), "{text}");
    Ok(())
}
