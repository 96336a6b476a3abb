//! Tests of `loss`.

use crate::testing::{check, f64s, near, varied};
use candle_core::Device;
use candle_core::{Result, Tensor};
use fx_candle_kernels::loss::*;

const ALL: [Reduction; 3] = [Reduction::None, Reduction::Mean, Reduction::Sum];

fn classes(values: &[i64], dims: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), dims, &Device::Cpu)
}

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[0f64, 3f64.ln()], [0., 0.], [5., 5.]], &Device::Cpu)?;
    let target = classes(&[1, 0, -100], &[3])?;
    let run = |weight: Option<&Tensor>, reduction, smoothing| {
        cross_entropy(&x, &target, weight, -100, reduction, smoothing)
    };
    let (a, b) = (-(0.75f64.ln()), 2f64.ln());
    near(&run(None, Reduction::None, 0.)?, &[a, b, 0.])?;
    near(&run(None, Reduction::Sum, 0.)?, &[a + b])?;
    near(&run(None, Reduction::Mean, 0.)?, &[(a + b) / 2.])?;
    let weight = Tensor::new(&[3f64, 1.], &Device::Cpu)?;
    near(
        &run(Some(&weight), Reduction::Mean, 0.)?,
        &[(a + 3. * b) / 4.],
    )?;
    let spread = (-(0.25f64.ln()) + a) / 2.;
    near(
        &run(None, Reduction::Sum, 0.2)?,
        &[0.8 * a + 0.2 * spread + b],
    )?;
    let shares = Tensor::new(&[[0f64, 1.], [1., 0.], [0., 0.]], &Device::Cpu)?;
    let y = cross_entropy(&x, &shares, None, -100, Reduction::None, 0.)?;
    near(&y, &[a, b, 0.])
}

#[test]
fn images_are_rows() -> Result<()> {
    let x = varied(&[2, 3, 2, 2])?;
    let target = classes(&[0, 1, 2, 0, 1, 1, 2, 2], &[2, 2, 2])?;
    let y = cross_entropy(&x, &target, None, -100, Reduction::None, 0.)?;
    assert_eq!(y.dims(), &[2, 2, 2]);
    let one = x.get(1)?.narrow(1, 1, 1)?.narrow(2, 0, 1)?.flatten_all()?;
    let single = cross_entropy(&one, &classes(&[2], &[])?, None, -100, Reduction::None, 0.)?;
    assert_eq!(single.rank(), 0);
    near(&single, &[f64s(&y)?[6]])
}

#[test]
fn errors() -> Result<()> {
    let x = varied(&[2, 3])?;
    let says = |target: &Tensor| {
        cross_entropy(&x, target, None, -100, Reduction::Mean, 0.)
            .map_or_else(|e| e.to_string(), |_| String::new())
    };
    assert!(says(&classes(&[3, 0], &[2])?).contains("target 3 is not one of 3 classes"));
    assert!(says(&classes(&[1], &[1])?).contains("target [1]"));
    assert!(says(&varied(&[2])?).contains("probabilities [2]"));
    assert!(Reduction::parse("mse_loss", "average").is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [varied(&[2, 3, 2])?, varied(&[3])?.affine(0.4, 1.)?];
    let target = classes(&[0, 2, -1, 1], &[2, 2])?;
    for reduction in ALL {
        for smoothing in [0.0, 0.3] {
            check(&x, |v| {
                cross_entropy(&v[0], &target, Some(&v[1]), -1, reduction, smoothing)
            })?;
        }
        check(&x, |v| {
            nll_loss("nll_loss", &v[0], &target, Some(&v[1]), -1, reduction)
        })?;
    }
    check(
        &[varied(&[2, 3])?, varied(&[2, 3])?.affine(0.3, 0.5)?],
        |v| cross_entropy(&v[0], &v[1], None, -100, Reduction::Mean, 0.1),
    )
}
