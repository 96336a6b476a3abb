//! Tests of `einsum`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Result, Tensor};
use fx_candle_kernels::einsum::*;
use fx_candle_kernels::matmul::matmul;

#[test]
fn small_numbers() -> Result<()> {
    let (a, b) = (varied(&[2, 3])?, varied(&[3, 4])?);
    near(
        &einsum("ij,jk->ik", &[strided(&a)?, b.clone()])?,
        &f64s(&a.matmul(&b)?)?,
    )?;
    near(
        &einsum("ij,jk", &[a.clone(), b.clone()])?,
        &f64s(&a.matmul(&b)?)?,
    )?;
    near(
        &einsum("ij->ji", std::slice::from_ref(&a))?,
        &f64s(&a.t()?)?,
    )?;
    near(
        &einsum("ij->", std::slice::from_ref(&a))?,
        &f64s(&a.sum_all()?)?,
    )?;
    near(
        &einsum("ij->j", std::slice::from_ref(&a))?,
        &f64s(&a.sum(0)?)?,
    )?;
    let square = varied(&[3, 3])?;
    let all = f64s(&square)?;
    near(
        &einsum("ii->i", std::slice::from_ref(&square))?,
        &[all[0], all[4], all[8]],
    )?;
    near(
        &einsum("ii", std::slice::from_ref(&square))?,
        &[all[0] + all[4] + all[8]],
    )?;
    let outer = einsum("i,j->ij", &[varied(&[2])?, varied(&[3])?])?;
    assert_eq!(outer.dims(), &[2, 3]);
    let (q, k) = (varied(&[2, 5, 3, 4])?, varied(&[2, 6, 3, 4])?);
    let scores = einsum("bqhd,bkhd->bhqk", &[q.clone(), k.clone()])?;
    assert_eq!(scores.dims(), &[2, 3, 5, 6]);
    let slow = q.transpose(1, 2)?.contiguous()?;
    let slow = slow.matmul(&k.transpose(1, 2)?.transpose(2, 3)?.contiguous()?)?;
    near(&scores, &f64s(&slow)?)?;
    let (x, w) = (varied(&[2, 5, 3])?, varied(&[3, 4])?);
    let y = einsum("...i, ij -> ...j", &[x.clone(), w.clone()])?;
    near(&y, &f64s(&matmul(&x, &w)?)?)?;
    let three = einsum("ij,jk,kl->il", &[a.clone(), b.clone(), varied(&[4, 2])?])?;
    near(&three, &f64s(&a.matmul(&b)?.matmul(&varied(&[4, 2])?)?)?)
}

#[test]
fn errors_say_what_does_not_fit() -> Result<()> {
    let (a, b) = (varied(&[2, 3])?, varied(&[4, 4])?);
    let says = |equation: &str, xs: &[Tensor]| {
        einsum(equation, xs).map_or_else(|e| e.to_string(), |_| String::new())
    };
    let two = [a.clone(), b];
    assert!(says("ij,jk->ik", &two).contains("is 3 and 4 in shapes [[2, 3], [4, 4]]"));
    assert!(says("ij->ik", &two[..1]).contains("which no operand has"));
    assert!(says("ijk->i", &two[..1]).contains("names 3 dims"));
    assert!(says("ij", &two).contains("names 1 operands and 2 are given"));
    assert!(says("i1->i", &two[..1]).contains("neither a letter"));
    assert!(says("ij->ii", &two[..1]).contains("twice"));
    assert!(says("", &[]).contains("einsum"));
    assert!(says("...ijk->i", &two[..1]).contains("names 3 dims"));
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let two = [varied(&[2, 3, 4])?, varied(&[2, 4, 2])?];
    check(&two, |v| einsum("bij,bjk->bik", v))?;
    check(&two, |v| einsum("bij,bjk->k", v))?;
    check(&[varied(&[3, 3, 2])?], |v| einsum("iij->ji", v))?;
    check(&[varied(&[2, 3])?, varied(&[2, 1])?], |v| {
        einsum("ij,ij->i", v)
    })
}
