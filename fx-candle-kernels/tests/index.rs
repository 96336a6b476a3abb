//! Tests of `index`.

use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::index::*;

fn x() -> Result<Tensor> {
    Tensor::arange(0f32, 24.0, &Device::Cpu)?.reshape((2, 3, 4))
}

#[test]
fn parts_go_dim_by_dim() -> Result<()> {
    let y = index(&x()?, &[Part::Ellipsis, Part::At(-1)])?;
    assert_eq!(y.to_vec2::<f32>()?, [[3.0, 7.0, 11.0], [15.0, 19.0, 23.0]]);
    let all = Part::Slice(None, None, 1);
    let y = index(
        &x()?,
        &[all, Part::Slice(Some(1), Some(9), 1), Part::NewAxis],
    )?;
    assert_eq!(y.dims(), [2, 2, 1, 4]);
    let y = index(
        &x()?,
        &[Part::At(1), Part::At(0), Part::Slice(None, None, 3)],
    )?;
    assert_eq!(y.to_vec1::<f32>()?, [12.0, 15.0]);
    let y = index(
        &x()?,
        &[Part::At(0), Part::At(0), Part::Slice(Some(-3), Some(-1), 1)],
    )?;
    assert_eq!(y.to_vec1::<f32>()?, [1.0, 2.0]);
    let y = index(&x()?, &[Part::Slice(Some(5), Some(2), 1)])?;
    assert_eq!(y.dims(), [0, 3, 4]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_named() -> Result<()> {
    let at = Part::At(0);
    for (parts, words) in [
        (vec![at; 4], "4 indices for a tensor of shape [2, 3, 4]"),
        (
            vec![Part::At(2)],
            "index 2 is out of range for a dim of size 2",
        ),
        (vec![Part::At(i64::MIN)], "out of range"),
        (vec![Part::Slice(None, None, 0)], "step is at least 1"),
        (vec![Part::Ellipsis, Part::Ellipsis], "at most one ellipsis"),
    ] {
        let error = index(&x()?, &parts).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    Ok(())
}
