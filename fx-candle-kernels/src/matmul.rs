//! Matrix products by PyTorch's rules, and the linear layer.

use candle_core::{DType, Result, Tensor, bail};

use super::dim::same_dtype;
use super::widen::{is_half, widened};
use super::{expand, integers};
use crate::room;

/// `x [.., r, c]` as `[b, r, c]`, copied only if candle cannot read it as it is.
fn batch_of_matrices(x: &Tensor) -> Result<Tensor> {
    let (r, c) = (x.rank().saturating_sub(2), x.rank().saturating_sub(1));
    if x.rank() == 3 {
        return Ok(x.clone());
    }
    let (rows, columns) = (x.dims()[r], x.dims()[c]);
    let count: usize = x.dims()[..r].iter().product();
    if !x.is_contiguous() {
        let turned = x.transpose(r, c)?;
        if turned.is_contiguous() {
            return turned.reshape((count, columns, rows))?.transpose(1, 2);
        }
    }
    x.contiguous()?.reshape((count, rows, columns))
}

/// The matrix product of `a` and `b`, as `torch.matmul`.
///
/// `[k] @ [k]` gives `[]`; `[k] @ [.., k, n]` gives `[.., n]`; `[.., m, k] @ [k]` gives
/// `[.., m]`; `[.., m, k] @ [.., k, n]` gives `[.., m, n]` with broadcast batch dimensions.
///
/// # Errors
/// Returns an error if a side is a scalar, the inner sizes differ or the batch dimensions do not
/// broadcast.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if is_half(a.dtype()) && a.dtype() == b.dtype() {
        return widened(a, (a, b), |(a, b)| matmul(&a, &b));
    }
    if a.rank() == 0 || b.rank() == 0 {
        bail!(
            "matmul: shapes {:?} and {:?} must both have at least 1 dimension",
            a.dims(),
            b.dims()
        )
    }
    let left = if a.rank() == 1 {
        a.unsqueeze(0)?
    } else {
        a.clone()
    };
    let right = if b.rank() == 1 {
        b.unsqueeze(1)?
    } else {
        b.clone()
    };
    let (la, lb) = (left.rank() - 2, right.rank() - 2);
    let (m, k, n) = (left.dims()[la], left.dims()[la + 1], right.dims()[lb + 1]);
    if right.dims()[lb] != k {
        bail!(
            "matmul: inner sizes {k} and {} of shapes {:?} and {:?} differ",
            right.dims()[lb],
            a.dims(),
            b.dims()
        )
    }
    let Ok(batch) = expand::shape("matmul", &left.dims()[..la], &right.dims()[..lb]) else {
        bail!(
            "matmul: batch dimensions of shapes {:?} and {:?} do not broadcast",
            a.dims(),
            b.dims()
        )
    };
    let count: usize = batch.iter().product();
    let mut shape = batch.clone();
    if a.rank() > 1 {
        shape.push(m);
    }
    if b.rank() > 1 {
        shape.push(n);
    }
    room::of("matmul", &shape, a.dtype())?;
    let y = if count == 0 || m == 0 || n == 0 || k == 0 {
        return Tensor::zeros(shape, a.dtype(), a.device());
    } else if a.dtype().is_int() {
        let with = |tail: &[usize]| [batch.as_slice(), tail].concat();
        let left = expand::to(&left, &with(&[m, k]))?;
        let right = expand::to(&right, &with(&[k, n]))?;
        return whole(&left, &right, [count, m, k, n])?.reshape(shape);
    } else if la == 0 && lb == 0 {
        left.matmul(&right)?
    } else if right.dims()[..lb].iter().all(|n| *n == 1) {
        // One right side: all rows of the left side in one product. Candle's batches of one
        // broadcast right side are wrong if the left side is transposed.
        let left = expand::to(&left, &[batch.as_slice(), &[m, k]].concat())?;
        let right = (0..lb).try_fold(right, |right, _| right.squeeze(0))?;
        left.contiguous()?.reshape((count * m, k))?.matmul(&right)?
    } else if la == 0 {
        let right = batch_of_matrices(&right)?;
        left.unsqueeze(0)?
            .broadcast_as((count, m, k))?
            .matmul(&right)?
    } else {
        let with = |tail: &[usize]| [batch.as_slice(), tail].concat();
        let left = batch_of_matrices(&expand::to(&left, &with(&[m, k]))?)?;
        let mut right = batch_of_matrices(&expand::to(&right, &with(&[k, n]))?)?;
        // Here too the right side may be one, that its caller has expanded.
        if right.stride()[0] == 0 && !left.is_contiguous() {
            right = right.contiguous()?;
        }
        left.matmul(&right)?
    };
    y.reshape(shape)
}

/// The products of `count` pairs of integer matrices `[m, k]` and `[k, n]`: computed in 64 bits,
/// where they wrap around, and truncated to their type.
fn whole(a: &Tensor, b: &Tensor, [count, m, k, n]: [usize; 4]) -> Result<Tensor> {
    let (left, right) = (integers::elements(a)?, integers::elements(b)?);
    let mut sums = vec![0i64; room::of("matmul", &[count, m, n], DType::I64)?];
    for (row, sums) in sums.chunks_exact_mut(n).enumerate() {
        let of = row / m;
        for (i, x) in left[row * k..(row + 1) * k].iter().enumerate() {
            let from = (of * k + i) * n;
            for (sum, y) in sums.iter_mut().zip(&right[from..from + n]) {
                *sum = sum.wrapping_add(x.wrapping_mul(*y));
            }
        }
    }
    integers::tensor(sums, (count, m, n), a)
}

/// The linear layer: `x [.., in] @ w [out, in]` transposed `+ b [out]`, of shape `[.., out]`.
///
/// # Errors
/// Returns an error if `x` is a scalar, `w` is not a matrix, the `in` sizes differ or `b` is not
/// `[out]`.
pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
    same_dtype("linear", x, w)?;
    b.map_or(Ok(()), |b| same_dtype("linear", x, b))?;
    if is_half(x.dtype()) {
        return widened(x, (x, w, b), |(x, w, b)| linear(&x, &w, b.as_ref()));
    }
    let (out, inner) = match (w.dims(), x.dims().last()) {
        (&[out, inner], Some(&last)) if inner == last => (out, inner),
        _ => bail!(
            "linear: input {:?} does not fit weight {:?}, they must be [.., in] and [out, in]",
            x.dims(),
            w.dims()
        ),
    };
    if let Some(b) = b
        && !matches!(b.dims(), [] | [1])
        && b.dims() != [out]
    {
        bail!(
            "linear: bias {:?} does not fit weight {:?}, it must be [{out}]",
            b.dims(),
            w.dims()
        )
    }
    let mut shape = x.dims().to_vec();
    shape.pop();
    let rows: usize = shape.iter().product();
    shape.push(out);
    room::of("linear", &shape, x.dtype())?;
    if rows == 0 || out == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    let x = x.contiguous()?.reshape((rows, inner))?;
    let y = if x.dtype().is_int() || inner == 0 {
        matmul(&x, &w.t()?)?
    } else {
        x.matmul(&w.t()?)?
    };
    let y = match b {
        Some(b) => added(&y, &expand::to(b, &[rows, out])?)?,
        None => y,
    };
    y.reshape(shape)
}

/// `y + b` of one shape; integers wrap around.
fn added(y: &Tensor, b: &Tensor) -> Result<Tensor> {
    if !y.dtype().is_int() {
        return y.add(b);
    }
    let pairs = integers::elements(y)?
        .into_iter()
        .zip(integers::elements(b)?);
    let sums = pairs.map(|(y, b)| y.wrapping_add(b)).collect();
    integers::tensor(sums, y.dims(), y)
}
