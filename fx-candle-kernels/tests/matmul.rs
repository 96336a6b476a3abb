//! Tests of `matmul`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::matmul::*;

#[test]
fn an_expanded_right_side_is_each_batchs() -> Result<()> {
    let a = varied(&[3, 2, 4])?.transpose(1, 2)?;
    let b = varied(&[1, 2, 1])?.broadcast_as((3, 2, 1))?;
    let y = matmul(&a, &b)?;
    near(&y, &f64s(&matmul(&a.contiguous()?, &b.contiguous()?)?)?)?;
    near(&matmul(&a, &b.narrow(0, 0, 1)?)?, &f64s(&y)?)
}

#[test]
fn small_numbers() -> Result<()> {
    let a = Tensor::new(&[[1f64, 2.], [3., 4.]], &Device::Cpu)?;
    let v = Tensor::new(&[5f64, 6.], &Device::Cpu)?;
    near(&matmul(&a, &a)?, &[7., 10., 15., 22.])?;
    near(&matmul(&a.t()?, &strided(&a)?)?, &[10., 14., 14., 20.])?;
    near(&matmul(&a, &v)?, &[17., 39.])?;
    near(&matmul(&v, &a)?, &[23., 34.])?;
    assert_eq!(matmul(&v, &v)?.to_scalar::<f64>()?, 61.);
    near(&linear(&v, &a, Some(&v))?, &[22., 45.])?;
    near(&linear(&a, &a, None)?, &[5., 11., 11., 25.])
}

#[test]
fn one_right_side_for_transposed_left_sides() -> Result<()> {
    let (a, b) = (strided(&varied(&[2, 3, 4])?)?, varied(&[1, 4, 5])?);
    let want = f64s(&matmul(&a.contiguous()?, &b.squeeze(0)?)?)?;
    near(&matmul(&a, &b)?, &want)?;
    let row = varied(&[2, 4, 1])?.transpose(1, 2)?;
    let want = f64s(&matmul(&row.force_contiguous()?, &b.squeeze(0)?)?)?;
    near(&matmul(&row, &b)?, &want)
}

#[test]
fn batches_broadcast() -> Result<()> {
    let shapes: [(&[usize], &[usize], &[usize]); 9] = [
        (&[2, 3, 4], &[4, 5], &[2, 3, 5]),
        (&[3, 4], &[2, 4, 5], &[2, 3, 5]),
        (&[2, 1, 3, 4], &[6, 4, 5], &[2, 6, 3, 5]),
        (&[4], &[2, 6, 4, 5], &[2, 6, 5]),
        (&[2, 6, 3, 4], &[4], &[2, 6, 3]),
        (&[2, 3, 4], &[2, 4, 5], &[2, 3, 5]),
        (&[1, 3, 4], &[2, 4, 5], &[2, 3, 5]),
        (&[0, 3, 4], &[4, 5], &[0, 3, 5]),
        (&[3, 0], &[0, 5], &[3, 5]),
    ];
    for (a, b, want) in shapes {
        let (a, b) = (varied(a)?, varied(b)?);
        let y = matmul(&a, &b)?;
        assert_eq!(y.dims(), want);
        if a.rank() > 1 && b.rank() > 1 && a.elem_count() > 0 {
            let slow = strided(&a)?
                .unsqueeze(a.rank())?
                .broadcast_mul(&b.unsqueeze(b.rank() - 2)?)?
                .sum(a.rank().max(b.rank()) - 1)?;
            near(&y, &f64s(&slow)?)?;
            near(&matmul(&strided(&a)?, &strided(&b)?)?, &f64s(&y)?)?;
        }
    }
    Ok(())
}

#[test]
fn errors_name_shapes() -> Result<()> {
    let text = matmul(&varied(&[2, 3])?, &varied(&[2, 3])?)
        .unwrap_err()
        .to_string();
    assert!(text.contains("inner sizes 3 and 2"), "{text}");
    let text = matmul(&varied(&[2, 2, 3])?, &varied(&[3, 3, 2])?)
        .unwrap_err()
        .to_string();
    assert!(text.contains("do not broadcast"), "{text}");
    assert!(matmul(&varied(&[])?, &varied(&[2])?).is_err());
    let text = linear(&varied(&[2, 3])?, &varied(&[4, 2])?, None)
        .unwrap_err()
        .to_string();
    assert!(text.contains("linear: input [2, 3]"), "{text}");
    assert!(linear(&varied(&[3])?, &varied(&[4, 3])?, Some(&varied(&[3])?)).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let mm = |v: &[Tensor]| matmul(&v[0], &v[1]);
    check(&[varied(&[2, 1, 3, 4])?, varied(&[3, 4, 2])?], mm)?;
    check(&[strided(&varied(&[2, 3, 4])?)?, varied(&[4, 2])?], mm)?;
    check(&[varied(&[3, 4])?, strided(&varied(&[2, 4, 2])?)?], mm)?;
    check(&[varied(&[4])?, varied(&[2, 4, 3])?], mm)?;
    check(
        &[varied(&[2, 2, 3])?, varied(&[4, 3])?, varied(&[4])?],
        |v| linear(&v[0], &v[1], Some(&v[2])),
    )
}
