//! The `k` largest or smallest values along a dimension.

use candle_core::{DType, Result, Tensor, bail};

use super::reduce::has_nan;

/// The `k` largest (or smallest) values along `dim` and their indices (`i64`).
///
/// Both results have the shape of `x` with `k` in place of the size of `dim`. They are always
/// sorted, as `sorted` asks and as PyTorch is free to do without it; equal values come with the
/// first index first, and a nan counts as `inf`.
///
/// # Errors
/// When `dim` is not a dimension of `x` or `k` is larger than its size.
pub fn topk(
    x: &Tensor,
    k: usize,
    dim: usize,
    largest: bool,
    _sorted: bool,
) -> Result<(Tensor, Tensor)> {
    if x.rank() == 0 && dim == 0 && k <= 1 {
        return Ok((x.clone(), Tensor::zeros((), DType::I64, x.device())?));
    }
    if dim >= x.rank() {
        bail!("topk: dim {dim} is out of range for shape {:?}", x.dims())
    }
    let size = x.dims()[dim];
    if k > size {
        bail!(
            "topk: k {k} is larger than dim {dim} of size {size} in shape {:?}",
            x.dims()
        )
    }
    let mut shape = x.dims().to_vec();
    shape[dim] = k;
    if shape.contains(&0) {
        return Ok((
            Tensor::zeros(shape.as_slice(), x.dtype(), x.device())?,
            Tensor::zeros(shape, DType::I64, x.device())?,
        ));
    }
    let last = x.rank() - 1;
    let x = x.transpose(dim, last)?.contiguous()?;
    let mut keys = x.detach();
    if has_nan(&keys)? {
        // Candle's sort may panic on values that it cannot compare.
        let inf = Tensor::full(f64::INFINITY, keys.dims(), keys.device())?;
        keys = keys
            .ne(&keys)?
            .where_cond(&inf.to_dtype(keys.dtype())?, &keys)?;
    }
    let at = keys.arg_sort_last_dim(!largest)?;
    let at = at.narrow(last, 0, k)?.contiguous()?;
    let values = x.gather(&at, last)?.transpose(dim, last)?;
    let at = at.to_dtype(DType::I64)?.transpose(dim, last)?;
    Ok((values.contiguous()?, at.contiguous()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, strided, varied};
    use candle_core::Device;

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[1f32, 5., 2., 5.], [4., 0., 6., -1.]], &Device::Cpu)?;
        for x in [x.clone(), strided(&x)?] {
            let (values, at) = topk(&x, 2, 1, true, true)?;
            near(&values, &[5., 5., 6., 4.])?;
            assert_eq!(at.to_vec2::<i64>()?, [[1, 3], [2, 0]]);
            let (values, at) = topk(&x, 1, 0, false, true)?;
            near(&values, &[1., 0., 2., -1.])?;
            assert_eq!(at.to_vec2::<i64>()?, [[0, 1, 0, 1]]);
        }
        assert_eq!(topk(&x, 0, 1, true, true)?.0.dims(), &[2, 0]);
        let text = topk(&x, 5, 1, true, true).unwrap_err().to_string();
        assert!(text.contains("topk: k 5 is larger than dim 1"), "{text}");
        assert!(topk(&x, 1, 2, true, true).is_err());
        Ok(())
    }

    #[test]
    fn nan_is_the_largest() -> Result<()> {
        let values: Vec<f32> = (0..64)
            .map(|i| {
                if i % 3 == 0 {
                    f32::NAN
                } else {
                    (i * 7 % 11) as f32
                }
            })
            .collect();
        let x = Tensor::new(values, &Device::Cpu)?;
        assert!(f64s(&topk(&x, 1, 0, true, true)?.0)?[0].is_nan());
        near(&topk(&x, 1, 0, false, true)?.0, &[0.])
    }

    #[test]
    fn gradients_match() -> Result<()> {
        check(&[varied(&[2, 5, 3])?], |v| {
            Ok(topk(&v[0], 2, 1, true, true)?.0)
        })
    }
}
