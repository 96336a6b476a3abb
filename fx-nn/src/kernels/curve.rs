//! Functions of one number that lose their small results when they are made of others.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

/// A function of each element of an `f32` or `f64` tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curve {
    /// `log(1 + exp(x))`, or `x` where it is above 20.
    Softplus,
    /// `exp(x) - 1`.
    ExpMinusOne,
}

impl Curve {
    /// The function of each element of `x`.
    ///
    /// # Errors
    /// When `x` is neither `f32` nor `f64`.
    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        x.contiguous()?.apply_op1(self)
    }
}

macro_rules! values {
    ($curve:expr, $values:expr) => {
        match $curve {
            Curve::Softplus => $values
                .map(|x| if *x > 20.0 { *x } else { x.exp().ln_1p() })
                .collect(),
            Curve::ExpMinusOne => $values.map(|x| x.exp_m1()).collect(),
        }
    };
}

impl CustomOp1 for Curve {
    fn name(&self) -> &'static str {
        match self {
            Curve::Softplus => "softplus",
            Curve::ExpMinusOne => "expm1",
        }
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((from, to)) = layout.contiguous_offsets() else {
            bail!("{}: the tensor is not contiguous", self.name())
        };
        let result = match storage {
            CpuStorage::F32(x) => CpuStorage::F32(values!(self, x[from..to].iter())),
            CpuStorage::F64(x) => CpuStorage::F64(values!(self, x[from..to].iter())),
            _ => bail!("{}: the dtype is neither f32 nor f64", self.name()),
        };
        Ok((result, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let slope = match self {
            // 1 / (1 + exp(-x)); an infinite exponential gives 0.
            Curve::Softplus => x.neg()?.exp()?.affine(1.0, 1.0)?.recip()?,
            Curve::ExpMinusOne => y.affine(1.0, 1.0)?,
        };
        Ok(Some(grad.mul(&slope)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, varied};
    use candle_core::Device;

    #[test]
    fn small_results_are_kept() -> Result<()> {
        let x = Tensor::new(&[-25f32, 20., 21., -1000., 1000.], &Device::Cpu)?;
        let y = f64s(&Curve::Softplus.of(&x)?)?;
        assert!((y[0] / 1.388_794_386_5e-11 - 1.0).abs() < 1e-6, "{y:?}");
        assert_eq!(y[1..], [20., 21., 0., 1000.]);
        let tiny = Tensor::new(&[-1e-9f32], &Device::Cpu)?;
        assert_eq!(Curve::ExpMinusOne.of(&tiny)?.to_vec1::<f32>()?, [-1e-9]);
        assert!(
            Curve::Softplus
                .of(&Tensor::new(1i64, &Device::Cpu)?)
                .is_err()
        );
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [varied(&[3, 4])?.affine(3.0, 0.0)?];
        check(&x, |v| Curve::Softplus.of(&v[0]))?;
        check(&x, |v| Curve::ExpMinusOne.of(&v[0]))
    }
}
