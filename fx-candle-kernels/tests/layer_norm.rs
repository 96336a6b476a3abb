//! Tests of `layer_norm`.

use crate::testing::{check, near, strided, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::layer_norm::*;

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[1f64, 3.], [2., 6.]], &Device::Cpu)?;
    for x in [x.clone(), strided(&x)?] {
        near(&layer_norm(&x, &[2], None, None, 0.)?, &[-1., 1., -1., 1.])?;
        let (w, b) = (varied(&[2])?, varied(&[2])?.affine(0., 5.)?);
        let y = layer_norm(&x, &[2], Some(&w.ones_like()?), Some(&b), 0.)?;
        near(&y, &[4., 6., 4., 6.])?;
        let root = 5f64.sqrt();
        near(
            &rms_norm(&x, &[2], None, 0.)?,
            &[1. / root, 3. / root, 2. / (2. * root), 6. / (2. * root)],
        )?;
        let y = group_norm(&x.reshape((1, 4))?, 2, None, None, 0.)?;
        near(&y, &[-1., 1., -1., 1.])?;
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = varied(&[2, 3])?;
    let text = layer_norm(&x, &[2], None, None, 0.)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("layer_norm: the last dims of input [2, 3]"),
        "{text}"
    );
    assert!(layer_norm(&x, &[3], Some(&varied(&[2])?), None, 0.).is_err());
    assert!(layer_norm(&x, &[], None, None, 0.).is_err());
    assert!(rms_norm(&x, &[3], Some(&varied(&[1])?), 0.).is_err());
    assert!(group_norm(&x, 2, None, None, 0.).is_err());
    assert!(group_norm(&x, 0, None, None, 0.).is_err());
    assert!(group_norm(&x, 3, Some(&varied(&[2])?), None, 0.).is_err());
    assert_eq!(
        layer_norm(&varied(&[0, 3])?, &[3], None, None, 0.)?.dims(),
        &[0, 3]
    );
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let (w, b) = (varied(&[3, 4])?, varied(&[3, 4])?.affine(2., 0.1)?);
    let x = strided(&varied(&[2, 3, 4])?)?;
    check(&[x.clone(), w, b], |t| {
        layer_norm(&t[0], &[3, 4], Some(&t[1]), Some(&t[2]), 1e-3)
    })?;
    check(&[x, varied(&[4])?], |t| {
        rms_norm(&t[0], &[4], Some(&t[1]), 1e-3)
    })?;
    let inputs = [varied(&[2, 4, 3])?, varied(&[4])?, varied(&[4])?];
    check(&inputs, |t| {
        group_norm(&t[0], 2, Some(&t[1]), Some(&t[2]), 1e-3)
    })
}
