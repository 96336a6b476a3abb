//! Tests of `lu`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{Device, Result, Tensor};
use fx_candle_kernels::lu::*;

#[test]
fn factors_make_the_matrix() -> Result<()> {
    for shape in [[2, 3, 3], [1, 2, 4], [2, 4, 2]] {
        let x = varied(&shape)?;
        let (both, pivots) = lu_factor("lu", &x)?;
        let [p, l, u] = lu_unpack("lu", &both, &pivots)?;
        near(&p.matmul(&l)?.matmul(&u)?, &f64s(&x)?)?;
    }
    let zeros = Tensor::zeros((2, 2), candle_core::DType::F64, &Device::Cpu)?;
    let (both, pivots) = lu_factor("lu", &zeros)?;
    near(&both, &[0.0; 4])?;
    assert_eq!(pivots.to_vec1::<i32>()?, [1, 2]);
    assert!(regular("lu", &both).is_err());
    assert!(lu_unpack("lu", &both, &Tensor::new(&[1i32, 3], &Device::Cpu)?).is_err());
    Ok(())
}

#[test]
fn triangles_are_solved() -> Result<()> {
    let a = Tensor::new(&[[2f64, 1.], [9., 4.]], &Device::Cpu)?;
    let b = Tensor::new(&[[4f64], [8.]], &Device::Cpu)?;
    for (upper, unit, expected) in [
        (true, false, [1.0, 2.0]),
        (true, true, [-4.0, 8.0]),
        (false, false, [2.0, -2.5]),
        (false, true, [4.0, -28.0]),
    ] {
        let of = Triangle { upper, unit };
        near(&solve_triangular("solve", &a, &b, of)?, &expected)?;
        check(&[a.clone(), b.clone()], |v| {
            solve_triangular("solve", &v[0], &v[1], of)
        })?;
    }
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    for shape in [[2, 3, 3], [1, 2, 4], [2, 4, 2]] {
        let x = [varied(&shape)?];
        check(&x, |v| lu_factor("lu", &v[0]).map(|(both, _)| both))?;
        let (both, pivots) = lu_factor("lu", &x[0])?;
        check(&[both], |v| {
            let [_, l, u] = lu_unpack("lu", &v[0], &pivots)?;
            l.matmul(&u)
        })?;
    }
    check(&[varied(&[2, 3, 3])?], |v| matrix_exp("exp", &v[0]))
}

#[test]
fn exponentials() -> Result<()> {
    let x = Tensor::new(&[[0f64, -30.], [30., 0.]], &Device::Cpu)?;
    let (cos, sin) = (30f64.cos(), 30f64.sin());
    near(&matrix_exp("exp", &x)?, &[cos, -sin, sin, cos])?;
    let odd = Tensor::new(&[[f64::INFINITY]], &Device::Cpu)?;
    assert!(f64s(&matrix_exp("exp", &odd)?)?[0].is_nan());
    Ok(())
}
