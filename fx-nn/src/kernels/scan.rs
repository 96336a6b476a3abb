//! Running sums along a dimension.

use candle_core::{DType, Result, Tensor};

use super::dim::dim;

/// The sum of each element of `x` and those before it along `dim`; integers are summed as `i64`.
///
/// Sums over windows of doubling length: `log n` passes, each of which a gradient runs through.
///
/// # Errors
/// When there is no such dimension.
pub fn cumsum(x: &Tensor, d: i64) -> Result<Tensor> {
    let at = dim("cumsum", d, x.rank())?;
    let mut y = if x.dtype().is_int() {
        x.to_dtype(DType::I64)?
    } else {
        x.clone()
    };
    if x.rank() == 0 || x.elem_count() == 0 {
        return Ok(y);
    }
    if x.dtype().is_int() {
        return whole(&y, at);
    }
    let size = x.dims()[at];
    let mut window = 1;
    while window < size {
        let before = y.narrow(at, 0, size - window)?.contiguous()?;
        y = y.add(&before.pad_with_zeros(at, window, 0)?)?;
        window *= 2;
    }
    Ok(y)
}

/// The same of `i64`, which wrap around.
fn whole(x: &Tensor, at: usize) -> Result<Tensor> {
    let mut sums = x.flatten_all()?.to_vec1::<i64>()?;
    // Elements that are neighbours along the dimension are so far apart.
    let step: usize = x.dims()[at + 1..].iter().product();
    let size = x.dims()[at];
    for i in 0..sums.len() {
        if !(i / step).is_multiple_of(size) {
            sums[i] = sums[i].wrapping_add(sums[i - step]);
        }
    }
    Tensor::from_vec(sums, x.dims(), x.device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, strided, varied};
    use candle_core::Device;

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[1f64, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
        near(&cumsum(&strided(&x)?, 1)?, &[1., 3., 6., 4., 9., 15.])?;
        near(&cumsum(&x, -2)?, &[1., 2., 3., 5., 7., 9.])?;
        let bytes = Tensor::new(&[200u8, 100], &Device::Cpu)?;
        assert_eq!(f64s(&cumsum(&bytes, 0)?)?, [200., 300.]);
        assert!(cumsum(&x, 2).is_err());
        assert_eq!(cumsum(&varied(&[0, 3])?, 0)?.dims(), &[0, 3]);
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [strided(&varied(&[2, 5, 3])?)?];
        check(&x, |v| cumsum(&v[0], 1))?;
        check(&x, |v| cumsum(&v[0], 2))
    }
}
