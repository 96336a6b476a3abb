//! Tests of `activation`.

use crate::testing::{check, f64s, near, strided, varied};
use candle_core::{Device, Var};
use candle_core::{Result, Tensor};
use fx_candle_kernels::activation::*;

const BEND: Bend = Bend {
    slope: 1.0,
    bottom: 2.0,
    rate: 1.0,
};

#[test]
fn small_numbers() -> Result<()> {
    let x = Tensor::new(&[[-2f64, 0.], [0.5, 8.]], &Device::Cpu)?;
    let x = strided(&x)?;
    near(&leaky_relu(&x, 0.1)?, &[-0.2, 0., 0.5, 8.])?;
    near(&hardtanh("relu6", &x, 0., 6.)?, &[0., 0., 0.5, 6.])?;
    near(
        &bent("elu", &x, BEND)?,
        &[2. * ((-2f64).exp() - 1.), 0., 0.5, 8.],
    )?;
    let softplus_of = |x: f64| x.exp().ln_1p();
    near(
        &softplus(&x, 1., 20.)?,
        &[-2., 0., 0.5, 8.].map(softplus_of),
    )?;
    let large = Tensor::new(&[1000f64, -1000.], &Device::Cpu)?;
    near(&softplus(&large, 1., 20.)?, &[1000., 0.])?;
    near(&bent("elu", &large, BEND)?, &[1000., -2.])?;
    // PyTorch: gelu(0.5) and gelu(-2), exact and by tanh.
    let y = f64s(&gelu(&x, false)?)?;
    assert!((y[2] - 0.345_731_230_637_089_5).abs() < 1e-12, "{y:?}");
    assert!((y[0] + 0.045_500_263_896_358_42).abs() < 1e-12, "{y:?}");
    let y = f64s(&gelu(&x, true)?)?;
    assert!((y[2] - 0.345_714_009_825_143_9).abs() < 1e-12, "{y:?}");
    assert!(hardtanh("hardtanh", &x, 1., 0.).is_err());
    assert!(gelu(&Tensor::new(1i64, &Device::Cpu)?, false).is_err());
    Ok(())
}

#[test]
fn gradients_match() -> Result<()> {
    let x = [strided(&varied(&[3, 4])?.affine(3.0, 0.0)?)?];
    check(&x, |v| leaky_relu(&v[0], 0.2))?;
    check(&x, |v| hardtanh("hardtanh", &v[0], -1., 1.5))?;
    check(&x, |v| bent("elu", &v[0], BEND))?;
    let bend = Bend {
        slope: 1.1,
        bottom: 0.7,
        rate: 0.5,
    };
    check(&x, |v| bent("elu", &v[0], bend))?;
    check(&x, |v| softplus(&v[0], 0.5, 20.))?;
    check(&x, |v| mish(&v[0]))?;
    check(&x, |v| softplus(&v[0], 1., 20.))?;
    check(&x, |v| gelu(&v[0], false))?;
    check(&x, |v| gelu(&v[0], true))
}

#[test]
fn gradients_at_corners_are_pytorchs() -> Result<()> {
    let x = Var::new(&[0f64, 6.], &Device::Cpu)?;
    let slope = |y: Tensor| -> Result<Vec<f64>> {
        f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
    };
    assert_eq!(slope(hardtanh("relu6", x.as_tensor(), 0., 6.)?)?, [0., 0.]);
    assert_eq!(slope(leaky_relu(x.as_tensor(), 0.1)?)?, [0.1, 1.]);
    Ok(())
}
