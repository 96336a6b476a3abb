//! The `k` largest or smallest values along a dimension.

use candle_core::{DType, Result, Tensor, bail};

/// The `k` largest (or smallest) values along `dim` and their indices (`i64`).
///
/// Both results have the shape of `x` with `k` in place of the size of `dim`. They are always
/// sorted, as `sorted` asks and as PyTorch is free to do without it; equal values come with the
/// first index first, and a NaN is larger than all numbers.
///
/// # Errors
/// Returns an error if `dim` is not a dimension of `x` or `k` is larger than its size.
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
    let keys = x.detach().flatten_all()?;
    let keys: Vec<u64> = if x.dtype().is_float() {
        let keys = keys.to_dtype(DType::F64)?.to_vec1::<f64>()?;
        keys.into_iter().map(by_size).collect()
    } else {
        let keys = keys.to_dtype(DType::I64)?.to_vec1::<i64>()?;
        let order = |key: i64| (key as u64) ^ (1 << 63);
        keys.into_iter().map(order).collect()
    };
    let at = places(&keys, size, k, largest);
    let mut turned = x.dims().to_vec();
    turned[last] = k;
    let at = Tensor::from_vec(at, turned, x.device())?;
    let values = x.gather(&at, last)?.transpose(dim, last)?;
    let at = at.to_dtype(DType::I64)?.transpose(dim, last)?;
    Ok((values.contiguous()?, at.contiguous()?))
}

/// A key that is larger where the number is: both zeros have one, and a NaN has the largest.
fn by_size(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    match (x.is_nan(), bits >> 63) {
        (true, _) => u64::MAX,
        (_, 1) => !bits,
        _ => bits | 1 << 63,
    }
}

/// The places of the first `k` of each row of `size` keys.
fn places(keys: &[u64], size: usize, k: usize, largest: bool) -> Vec<u32> {
    let mut found = Vec::with_capacity(keys.len() / size * k);
    let mut order: Vec<(u64, u32)> = Vec::with_capacity(size);
    for row in keys.chunks_exact(size) {
        order.clear();
        let keys = row.iter().map(|key| if largest { !key } else { *key });
        order.extend(keys.zip(0..));
        if k < size {
            order.select_nth_unstable(k);
            order.truncate(k);
        }
        order.sort_unstable();
        found.extend(order.iter().map(|(_, at)| at));
    }
    found
}
