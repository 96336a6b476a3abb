//! Tests of `select`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::select::*;

fn ids(values: &[i64], dims: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), dims, &Device::Cpu)
}

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        near(&triangle("tril", &x, 0, true)?, &[1., 0., 0., 4., 5., 0.])?;
        near(&triangle("triu", &x, 1, false)?, &[0., 2., 3., 0., 0., 6.])?;
        near(&triangle("tril", &x, -1, true)?, &[0., 0., 0., 4., 0., 0.])?;
        near(&gather(&x, 1, &ids(&[2, 0], &[2, 1])?)?, &[3., 4.])?;
        near(&gather(&x, 0, &ids(&[1, 0], &[1, 2])?)?, &[4., 2.])?;
        near(
            &index_select(&x, -1, &ids(&[2, 2, 0], &[3])?)?,
            &[3., 3., 1., 6., 6., 4.],
        )?;
        let mask = Tensor::new(&[0u8, 1, 0], &Device::Cpu)?;
        let minus = Tensor::new(-1f64, &Device::Cpu)?;
        near(
            &masked_fill(&x, &mask, &minus)?,
            &[1., -1., 3., 4., -1., 6.],
        )?;
        let rows = embedding(&ids(&[1, 0, 1], &[3, 1])?, &x, None)?;
        assert_eq!(rows.dims(), &[3, 1, 3]);
        near(&rows, &[4., 5., 6., 1., 2., 3., 4., 5., 6.])?;
    }
    let hot = one_hot(&ids(&[1, 0], &[2])?, None)?;
    assert_eq!(f64s(&hot)?, [0., 1., 1., 0.]);
    assert_eq!(one_hot(&ids(&[1, 0], &[2])?, Some(4))?.dims(), &[2, 4]);
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = varied(&[2, 3])?;
    let text = gather(&x, 1, &ids(&[3], &[1, 1])?).unwrap_err().to_string();
    assert!(
        text.contains("gather: index 3 is out of range, there are 3"),
        "{text}"
    );
    assert!(gather(&x, 1, &ids(&[0], &[1])?).is_err());
    assert!(gather(&x, 1, &x).is_err());
    assert!(index_select(&x, 0, &ids(&[-1], &[1])?).is_err());
    assert!(embedding(&ids(&[2], &[1])?, &x, None).is_err());
    assert!(triangle("tril", &varied(&[2])?, 0, true).is_err());
    assert!(one_hot(&ids(&[], &[0])?, None).is_err());
    let text = masked_fill(&x, &varied(&[4])?, &varied(&[])?)
        .unwrap_err()
        .to_string();
    assert!(text.contains("masked_fill"), "{text}");
    assert_eq!(index_select(&x, 0, &ids(&[], &[0])?)?.dims(), &[0, 3]);
    assert_eq!(embedding(&ids(&[], &[0, 2])?, &x, None)?.dims(), &[0, 2, 3]);
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[2, 3, 4])?)?];
    check(&x, |v| triangle("tril", &v[0], 1, true))?;
    let mask = Tensor::new(&[0u8, 1, 0, 1], &Device::Cpu)?;
    let value = Tensor::new(2.5f64, &Device::Cpu)?;
    check(&x, |v| masked_fill(&v[0], &mask, &value))?;
    let at = ids(&[2, 0, 1, 1], &[1, 2, 2])?;
    check(&x, |v| gather(&v[0], -1, &at))?;
    check(&x, |v| index_select(&v[0], 1, &ids(&[2, 2, 0], &[3])?))?;
    check(&[varied(&[5, 3])?], |v| {
        embedding(&ids(&[4, 0, 4], &[3])?, &v[0], None)
    })?;
    check(&[varied(&[2, 1])?, varied(&[1, 4])?], |v| {
        choose("where", &mask, &v[0], &v[1])
    })
}

#[test]
fn padding_gets_no_gradient() -> Result<()> {
    let weight = candle_core::Var::from_tensor(&varied(&[3, 2])?)?;
    let y = embedding(&ids(&[0, 1, 0], &[3])?, weight.as_tensor(), Some(0))?;
    let grads = y.sum_all()?.backward()?;
    near(
        grads.get(&weight).expect("a gradient"),
        &[0., 0., 1., 1., 0., 0.],
    )
}
