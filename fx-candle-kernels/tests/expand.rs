//! Tests of `expand`.

use crate::testing::{check, f64s, varied};
use candle_core::Result;
use fx_candle_kernels::expand::*;

#[test]
fn shapes_align_at_the_end() -> Result<()> {
    assert_eq!(shape("add", &[2, 1, 3], &[4, 1])?, vec![2, 4, 3]);
    assert_eq!(shape("add", &[], &[4])?, vec![4]);
    assert_eq!(shape("add", &[0], &[1])?, vec![0]);
    let text = shape("add", &[2, 3], &[4]).unwrap_err().to_string();
    assert!(
        text.contains("add: shapes [2, 3] and [4] do not broadcast"),
        "{text}"
    );
    Ok(())
}

#[test]
fn expands_on_both_sides() -> Result<()> {
    let x = varied(&[3, 1])?;
    let y = to(&x, &[2, 3, 4])?;
    assert_eq!(f64s(&y)?, f64s(&x.broadcast_as((2, 3, 4))?)?);
    assert!(to(&x, &[3]).is_err());
    assert!(to(&x, &[2, 4]).is_err());
    assert_eq!(to(&varied(&[1])?, &[2, 2])?.dims(), &[2, 2]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    check(&[varied(&[3, 1])?], |v| to(&v[0], &[2, 3, 4]))?;
    check(&[varied(&[1, 3, 1, 2])?], |v| to(&v[0], &[2, 3, 4, 2]))?;
    check(&[varied(&[1])?], |v| to(&v[0], &[2, 3]))?;
    check(&[varied(&[3])?], |v| channel("bn", &v[0], &[2, 3, 2, 2]))
}
