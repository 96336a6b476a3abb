//! Tests of `linalg`.

use crate::testing::{check, f64s, near, varied};
use candle_core::Device;
use candle_core::{DType, Result, Tensor};
use fx_candle_kernels::binary::add;
use fx_candle_kernels::diagonal;
use fx_candle_kernels::linalg::*;
use fx_candle_kernels::matmul::matmul;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[4f64, 2.], [2., 3.]], &Device::Cpu)?;
    near(&inv("inv", &x)?, &[0.375, -0.25, -0.25, 0.5])?;
    near(&det("det", &x)?, &[8.])?;
    near(&cholesky("cholesky", &x)?, &[2., 0., 1., 2f64.sqrt()])?;
    let (q, r) = qr("qr", &x, false)?;
    near(&matmul(&q, &r)?, &[4., 2., 2., 3.])?;
    let (sign, log) = slogdet("slogdet", &x.neg()?)?;
    near(&sign, &[1.])?;
    near(&log, &[8f64.ln()])?;
    let turned = Tensor::new(&[[0f64, 1., 0.], [0., 0., 1.], [1., 0., 0.]], &Device::Cpu)?;
    near(&det("det", &turned)?, &[1.])?;
    let zero = x.zeros_like()?;
    near(&det("det", &zero)?, &[0.])?;
    assert_eq!(f64s(&slogdet("s", &zero)?.1)?, [f64::NEG_INFINITY]);
    let text = inv("inv", &zero).unwrap_err().to_string();
    assert!(text.contains("singular") && text.contains("pinv"), "{text}");
    let text = cholesky("cholesky", &x.neg()?).unwrap_err().to_string();
    assert!(text.contains("order 1"), "{text}");
    Ok(())
}

#[test]
fn empty_matrices() -> Result<()> {
    for dims in [[0, 0], [0, 3], [3, 0]] {
        let x = Tensor::zeros(&dims, DType::F64, &Device::Cpu)?;
        let (u, s, vh) = svd("svd", &x, true)?;
        assert_eq!(u.dims(), [dims[0], dims[0]]);
        assert_eq!((s.dims(), vh.dims()), (&[0][..], &[dims[1], dims[1]][..]));
        assert_eq!(f64s(&u)?.iter().sum::<f64>(), dims[0] as f64);
        let (q, r) = qr("qr", &x, true)?;
        assert_eq!((q.dims(), r.dims()), (&[dims[0]; 2][..], &dims[..]));
        let none = Tolerance {
            atol: None,
            rtol: None,
        };
        assert_eq!(pinv("pinv", &x, none, false)?.dims(), [dims[1], dims[0]]);
    }
    let x = Tensor::zeros((2, 0, 0), DType::F64, &Device::Cpu)?;
    near(&det("det", &x)?, &[1., 1.])?;
    assert_eq!(inv("inv", &x)?.dims(), [2, 0, 0]);
    assert_eq!(cholesky("cholesky", &x)?.dims(), [2, 0, 0]);
    assert_eq!(eigh("eigh", &x, true)?.0.dims(), [2, 0]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = varied(&[2, 3, 3])?;
    let symmetric = |x: &Tensor| add(x, &x.t()?);
    let positive = |x: &Tensor| {
        add(
            &matmul(x, &x.t()?)?,
            &diagonal::embed(
                "diag_embed",
                &x.narrow(1, 0, 1)?.squeeze(1)?.ones_like()?,
                0,
                -2,
                -1,
            )?,
        )
    };
    let one = [x.clone()];
    check(&one, |v| inv("inv", &v[0]))?;
    check(&one, |v| det("det", &v[0]))?;
    check(&one, |v| slogdet("slogdet", &v[0]).map(|y| y.1))?;
    check(&one, |v| cholesky("cholesky", &positive(&v[0])?))?;
    check(&one, |v| {
        eigh("eigh", &symmetric(&v[0])?, true).map(|y| y.0)
    })?;
    check(&one, |v| eigh("eigh", &symmetric(&v[0])?, false)?.1.abs())?;
    let b = varied(&[2, 3, 2])?;
    check(&[x, b], |v| solve("solve", &v[0], &v[1]))?;
    for dims in [[2, 4, 3], [2, 3, 4], [2, 3, 3]] {
        let x = [varied(&dims)?];
        check(&x, |v| qr("qr", &v[0], false).map(|y| y.0))?;
        check(&x, |v| qr("qr", &v[0], false).map(|y| y.1))?;
        check(&x, |v| svd("svd", &v[0], false)?.0.sqr())?;
        check(&x, |v| svd("svd", &v[0], false).map(|y| y.1))?;
        check(&x, |v| svd("svd", &v[0], false)?.2.sqr())?;
        let none = Tolerance {
            atol: None,
            rtol: None,
        };
        check(&x, |v| pinv("pinv", &v[0], none, false))?;
        let [x] = x;
        let b = varied(&[2, dims[1], 2])?;
        check(&[x, b], |v| {
            lstsq("lstsq", &v[0], &v[1], None).map(|y| y.solution)
        })?;
    }
    // A singular matrix has a determinant with a gradient.
    let x = Tensor::new(&[[1f64, 2.], [2., 4.]], &Device::Cpu)?;
    check(&[x], |v| det("det", &v[0]))
}
