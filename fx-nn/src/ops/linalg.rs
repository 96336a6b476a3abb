//! `torch.linalg`: inverses, systems of equations, determinants, factors and norms of matrices.
//!
//! The last two dims are a matrix, those before them a batch. Matrices are of `float32` or `float64`, and everything is
//! computed in `float64`. Inverses, factors and their gradients are computed on the processor.
//!
//! `torch.linalg.eig` and `eigvals` are not here: eigenvalues of matrices that are not symmetric are complex, and there
//! is no complex type. [`eigh`] is for symmetric matrices, and [`svd`] takes any.

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

pub use super::factors::*;

use super::elementary::floating;
use super::matrix::matmul;
use crate::error::{Fx, require, unfit};
use crate::kernels::linalg::{self as kernels, Tolerance};
use crate::kernels::widen::is_half;
use crate::kernels::{expand, norms, reduce};
use crate::tensor::{Dims, NormOrder, Tensor};

type Data = candle_core::Tensor;

/// The inverse of each matrix, `[.., n, n]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2.0f64, 0.0, 0.0, 4.0], (2, 2))?;
/// assert_eq!(ops::linalg::inv(&x)?.to_vec()?, [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square, or is singular.
#[op(member, path = "fx_nn::ops::linalg::inv")]
pub fn inv(a: &Tensor) -> Result<Tensor> {
    kernels::inv("inv", a.data("inv")?).map(Tensor::made).fx()
}

/// [`inv`] under the name that `torch.Tensor` has.
///
/// # Errors
/// Returns an error if a matrix is not square, or is singular.
#[op(member, method, path = "fx_nn::ops::linalg::inverse")]
pub fn inverse(x: &Tensor) -> Result<Tensor> {
    kernels::inv("inverse", x.data("inverse")?)
        .map(Tensor::made)
        .fx()
}

/// Both sides of equations in the type and the batch that they share; whether the right one is of vectors.
pub(super) fn sides(op: &str, a: &Tensor, b: &Tensor, is_vector: bool) -> Result<(Data, Data)> {
    let (left, right) = (a.data(op)?, b.data(op)?);
    require(op, left.dtype() == right.dtype())?;
    let right = match is_vector {
        true => right.unsqueeze(right.rank()).fx()?,
        false => right.clone(),
    };
    let ([of_a @ .., m, n], [of_b @ .., p, q]) = (left.dims(), right.dims()) else {
        return Err(unfit(op));
    };
    let lead = expand::shape(op, of_a, of_b).fx()?;
    let wide = |x: &Data, size: [usize; 2]| expand::to(x, &[lead.as_slice(), &size].concat()).fx();
    Ok((wide(left, [*m, *n])?, wide(&right, [*p, *q])?))
}

/// Whether right sides are vectors: one, or as many as there are matrices.
fn are_vectors(of_a: &[usize], of_b: &[usize]) -> bool {
    of_b.len() == 1 || of_a.split_last().is_some_and(|(_, rest)| rest == of_b)
}

/// `X` of `a X = b`, or without `left` of `X a = b`.
///
/// `a` is `[.., n, n]` and `b` `[.., n, k]` (or `[.., k, n]`), with batches that broadcast. A `b` of one dim is a vector,
/// as is one of `[.., n]` that has all sizes of `a` but the last.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![2.0f64, 1.0, 0.0, 4.0], (2, 2))?;
/// let b = Tensor::from_vec(vec![4.0f64, 8.0], 2)?;
/// assert_eq!(ops::linalg::solve(&a, &b, true)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square, or is singular, the sizes or types do not fit, or
/// without `left` the other side is a vector.
#[op(member, path = "fx_nn::ops::linalg::solve")]
pub fn solve(
    a: &Tensor,
    b: &Tensor,
    #[kw]
    #[default(true)]
    left: bool,
) -> Result<Tensor> {
    let op = "solve";
    let (of_a, of_b) = (a.dims()?, b.dims()?);
    let is_vector = are_vectors(of_a, of_b);
    require(op, !is_vector || left)?;
    let (a, b) = sides(op, a, b, is_vector)?;
    let last = a.rank() - 1;
    let turned = |x: &Data| x.transpose(last - 1, last).fx();
    let y = match left {
        true => kernels::solve(op, &a, &b).fx()?,
        false => turned(&kernels::solve(op, &turned(&a)?, &turned(&b)?).fx()?)?,
    };
    match is_vector {
        true => y.squeeze(last).map(Tensor::made).fx(),
        false => Ok(Tensor::made(y)),
    }
}

/// The determinant of each matrix, `[.., n, n]`. Singular ones have a gradient too.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f64, 0.0, 5.0, 2.0], (2, 2))?;
/// assert!((x.det()?.item()? - 6.0).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square.
#[op(member, method, path = "fx_nn::ops::linalg::det")]
pub fn det(x: &Tensor) -> Result<Tensor> {
    kernels::det("det", x.data("det")?).map(Tensor::made).fx()
}

/// The sign of the determinant of each matrix, `[.., n, n]`, and the logarithm of its magnitude: 0 and minus infinity of
/// a singular one.
///
/// # Errors
/// Returns an error if a matrix is not square.
#[op(member, method, path = "fx_nn::ops::linalg::slogdet")]
pub fn slogdet(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let (sign, log) = kernels::slogdet("slogdet", x.data("slogdet")?).fx()?;
    Ok((Tensor::made(sign), Tensor::made(log)))
}

/// The lower triangular `L` with `L Lᵀ` the matrix, or under `upper` its transpose: of symmetric positive definite
/// matrices `[.., n, n]`, of which that triangle alone is read.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![4.0f64, 2.0, 2.0, 10.0], (2, 2))?;
/// assert_eq!(ops::linalg::cholesky(&x, false)?.to_vec()?, [2.0, 0.0, 1.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square or not positive definite.
#[op(member, path = "fx_nn::ops::linalg::cholesky")]
pub fn cholesky(
    a: &Tensor,
    #[kw]
    #[default(false)]
    upper: bool,
) -> Result<Tensor> {
    let op = "cholesky";
    let x = a.data(op)?;
    let turned = |x: &Data| match x.rank() {
        0 | 1 => Ok(x.clone()),
        rank => x.transpose(rank - 2, rank - 1).fx(),
    };
    let y = match upper {
        true => turned(&kernels::cholesky(op, &turned(x)?).fx()?)?,
        false => kernels::cholesky(op, x).fx()?,
    };
    Ok(Tensor::made(y))
}

/// `Q`, whose columns are orthogonal and of length 1, and the triangular `R`, with `Q R` the matrix `[.., m, n]`.
///
/// `mode` `"reduced"` gives `[.., m, k]` and `[.., k, n]` with `k` the smaller of both, `"complete"` `[.., m, m]` and
/// `[.., m, n]`, and `"r"` an empty tensor and the `R` of `"reduced"`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f64, 4.0], (2, 1))?;
/// let (q, r) = ops::linalg::qr(&x, "reduced")?;
/// assert!(fx_nn::allclose(&q.matmul(&r)?, &x, 1e-5, 1e-8)?.close);
/// assert!((r.item()? + 5.0).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `mode` is anything else. A gradient is refused, as in PyTorch, through `"r"`
/// and through `"complete"` with more rows than columns.
#[op(member, path = "fx_nn::ops::linalg::qr")]
pub fn qr(a: &Tensor, #[default("reduced")] mode: &str) -> Result<(Tensor, Tensor)> {
    let op = "qr";
    let x = a.data(op)?;
    let (q, r) = match mode {
        "reduced" | "complete" => kernels::qr(op, x, mode == "complete").fx()?,
        "r" => {
            let r = kernels::r(op, x).fx()?;
            (Data::zeros(0, x.dtype(), x.device()).fx()?, r)
        }
        _ => return Err(unfit(op)),
    };
    Ok((Tensor::made(q), Tensor::made(r)))
}

/// `U`, the singular values `S` from the largest, and `Vh`, with `U diag(S) Vh` the matrix `[.., m, n]`.
///
/// They are `[.., m, m]`, `[.., k]` and `[.., n, n]`, with `k` the smaller of both; without
/// `full_matrices` `U` is `[.., m, k]` and `Vh` `[.., k, n]`. The signs of the vectors are
/// arbitrary, so results must not depend on them; gradients through `U` and `Vh` are not NaN if all
/// singular values differ.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], (3, 2))?;
/// let (u, s, vh) = ops::linalg::svd(&x, false)?;
/// let again = (u * &s)?.matmul(&vh)?;
/// assert!(fx_nn::allclose(&again, &x, 1e-5, 1e-8)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if an element is not finite.
#[op(member, path = "fx_nn::ops::linalg::svd")]
pub fn svd(a: &Tensor, #[default(true)] full_matrices: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let (u, s, vh) = kernels::svd("svd", a.data("svd")?, full_matrices).fx()?;
    Ok((Tensor::made(u), Tensor::made(s), Tensor::made(vh)))
}

/// The singular values of each matrix `[.., m, n]` from the largest.
///
/// # Errors
/// Returns an error if an element is not finite.
#[op(member, path = "fx_nn::ops::linalg::svdvals")]
pub fn svdvals(a: &Tensor) -> Result<Tensor> {
    let (_, s, _) = kernels::svd("svdvals", a.data("svdvals")?, false).fx()?;
    Ok(Tensor::made(s))
}

fn eigen(op: &'static str, a: &Tensor, uplo: &str) -> Result<(Data, Data)> {
    let lower = match uplo {
        "L" | "l" => true,
        "U" | "u" => false,
        _ => return Err(unfit(op)),
    };
    kernels::eigh(op, a.data(op)?, lower).fx()
}

/// The eigenvalues of each symmetric matrix `[.., n, n]` from the least, and the eigenvectors, its columns: of what the
/// lower triangle (`uplo` `"L"`) or the upper one (`"U"`) holds.
///
/// The signs of the vectors are arbitrary, so results must not depend on them; gradients through
/// them are not NaN if all eigenvalues differ.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2.0f64, 1.0, 1.0, 2.0], (2, 2))?;
/// let (values, vectors) = ops::linalg::eigh(&x, "L")?;
/// let again = (&vectors * &values)?.matmul(&vectors.t()?)?;
/// assert!(fx_nn::allclose(&again, &x, 1e-5, 1e-8)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square, or an element is not finite.
#[op(member, path = "fx_nn::ops::linalg::eigh")]
pub fn eigh(a: &Tensor, #[default("L")] uplo: &str) -> Result<(Tensor, Tensor)> {
    let (values, vectors) = eigen("eigh", a, uplo)?;
    Ok((Tensor::made(values), Tensor::made(vectors)))
}

/// The eigenvalues of [`eigh`].
///
/// # Errors
/// Returns an error if a matrix is not square, or an element is not finite.
#[op(member, path = "fx_nn::ops::linalg::eigvalsh")]
pub fn eigvalsh(a: &Tensor, #[default("L")] uplo: &str) -> Result<Tensor> {
    Ok(Tensor::made(eigen("eigvalsh", a, uplo)?.0))
}

/// The `X` for which the sum of squares of `a X - b` is least, and of those the shortest; the sums, the ranks and the
/// singular values of `a`.
///
/// `a` is `[.., m, n]` and `b` `[.., m, k]`, or vectors `[.., m]`, with batches that broadcast.
/// Singular values that are at most `rcond` parts of the largest count as 0; by default that is the
/// type's step times the larger of `m` and `n`. All drivers use one method, by singular values, and
/// differ in their other results: `"gelsy"` (the default) returns the ranks, `"gels"` the sums,
/// `"gelsd"` and `"gelss"` all. The sums are empty unless `m > n` and all ranks are `n`; results
/// that are not returned are empty. Gradients run through `X`.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![1.0f64, 0.0, 1.0, 1.0, 1.0, 2.0], (3, 2))?;
/// let b = Tensor::from_vec(vec![1.0f64, 3.0, 5.0], 3)?;
/// let (x, _, rank, _) = ops::linalg::lstsq(&a, &b, None, None)?;
/// assert!((x.to_vec()?[1] - 2.0).abs() < 1e-12);
/// assert_eq!(rank.item()?, 2.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the sizes or types do not fit, there is no such driver, or an element is not
/// finite.
#[op(member, path = "fx_nn::ops::linalg::lstsq")]
pub fn lstsq(
    a: &Tensor,
    b: &Tensor,
    rcond: Option<f64>,
    #[kw] driver: Option<&str>,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let op = "lstsq";
    let (sums, ranks, values) = match driver {
        None | Some("gelsy") => (false, true, false),
        Some("gels") => (true, false, false),
        Some("gelsd" | "gelss") => (true, true, true),
        Some(_) => return Err(unfit(op)),
    };
    let is_vector = match a.dims()?.len().checked_sub(b.dims()?.len()) {
        Some(0) => false,
        Some(1) => are_vectors(a.dims()?, b.dims()?),
        _ => return Err(unfit(op)),
    };
    let (a, b) = sides(op, a, b, is_vector)?;
    let rcond = if driver == Some("gels") {
        Some(0.0)
    } else {
        rcond
    };
    let of = kernels::lstsq(op, &a, &b, rcond).fx()?;
    let (last, empty) = (a.rank() - 1, |dtype| {
        Data::zeros(0, dtype, a.device()).map(Tensor::from).fx()
    });
    let is_tall = a.dims()[last - 1] > a.dims()[last];
    let sums = match sums && is_tall && (of.is_full || !ranks) {
        true => {
            let all = [&a, &of.solution, &b].map(|x| x.detach());
            Tensor::from(kernels::residuals(&all[0], &all[1], &all[2]).fx()?)
        }
        false => empty(a.dtype())?,
    };
    let solution = match is_vector {
        true => of.solution.squeeze(last).fx()?,
        false => of.solution,
    };
    Ok((
        Tensor::made(solution),
        sums,
        match ranks {
            true => of.ranks.into(),
            false => empty(candle_core::DType::I64)?,
        },
        match values {
            true => of.values.into(),
            false => empty(a.dtype())?,
        },
    ))
}

/// The pseudoinverse of each matrix `[.., m, n]`, of `[.., n, m]`.
///
/// Singular values that are at most the larger of `atol` and `rtol` times the largest count as 0;
/// without both, `rtol` is the type's step times the larger of `m` and `n`. `hermitian` states that
/// the matrices are symmetric; only the lower triangle is read.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2.0f64, 0.0, 0.0, 0.0], (2, 2))?;
/// assert_eq!(ops::linalg::pinv(&x, None, None, false)?.to_vec()?, [0.5, 0.0, 0.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if an element is not finite, or a symmetric matrix is not square.
#[op(member, path = "fx_nn::ops::linalg::pinv")]
pub fn pinv(
    a: &Tensor,
    #[kw] atol: Option<f64>,
    #[kw] rtol: Option<f64>,
    #[kw]
    #[default(false)]
    hermitian: bool,
) -> Result<Tensor> {
    kernels::pinv("pinv", a.data("pinv")?, Tolerance { atol, rtol }, hermitian)
        .map(Tensor::made)
        .fx()
}

/// [`pinv`] with an `rtol` of `rcond`: the name that `torch.Tensor` has.
///
/// # Errors
/// Returns an error if an element is not finite.
#[op(member, method, path = "fx_nn::ops::linalg::pinverse")]
pub fn pinverse(x: &Tensor, #[default(1e-15)] rcond: f64) -> Result<Tensor> {
    let tolerance = Tolerance {
        atol: None,
        rtol: Some(rcond),
    };
    kernels::pinv("pinverse", x.data("pinverse")?, tolerance, false)
        .map(Tensor::made)
        .fx()
}

/// The product of `n` of each matrix `[.., m, m]`, of none the identity; below 0 of its inverses.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 1.0, 0.0, 1.0], (2, 2))?;
/// assert_eq!(x.matrix_power(5)?.to_vec()?, [1.0, 5.0, 0.0, 1.0]);
/// assert_eq!(x.matrix_power(-1)?.to_vec()?, [1.0, -1.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square, of truth values, or singular under a power below 0.
#[op(member, method, path = "fx_nn::ops::linalg::matrix_power")]
pub fn matrix_power(x: &Tensor, n: i64) -> Result<Tensor> {
    let op = "matrix_power";
    let data = x.data(op)?;
    let size = match data.dims() {
        [.., m, n] if m == n && !x.is_bool() => *m,
        _ => return Err(unfit(op)),
    };
    let mut rest = n.unsigned_abs();
    if rest == 0 {
        let one = super::create::eye(size, None, Some(x.dtype()?))?;
        return expand::to(one.data(op)?, data.dims())
            .map(Tensor::made)
            .fx();
    }
    let mut power = match n < 0 {
        true => Tensor::made(kernels::inv(op, data).fx()?),
        false => x.clone(),
    };
    let mut product: Option<Tensor> = None;
    loop {
        if rest % 2 == 1 {
            product = Some(match product {
                Some(product) => matmul(&product, &power)?,
                None => power.clone(),
            });
        }
        rest /= 2;
        match (rest, product) {
            (0, Some(product)) => return Ok(product),
            (_, other) => product = other,
        }
        power = matmul(&power, &power)?;
    }
}

/// A norm of each of the matrices that two dims are; `..` is the last two.
///
/// `ord` is `"fro"` (the root of the sum of squares) or `"nuc"` (the sum of the singular values), infinity or minus
/// infinity (the largest or least sum of magnitudes of a row), 1 or -1 (of a column), 2 or -2 (the largest or least
/// singular value). Under `dtype` the matrices become that type first.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, -2.0, 3.0, 4.0], (2, 2))?;
/// assert_eq!(ops::linalg::matrix_norm(&x, 1, .., false, None)?.item()?, 6.0);
/// assert_eq!(ops::linalg::matrix_norm(&x, f64::INFINITY, .., false, None)?.item()?, 7.0);
/// assert_eq!(ops::linalg::matrix_norm(&x, "fro", .., false, None)?.item()?, 30f64.sqrt());
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such norm, the dims are not two, the tensor is not float (for
/// norms by singular values: neither `float32` nor `float64`), `dtype` is narrower, or there is no
/// element to be the least.
#[op(reduce, member, path = "fx_nn::ops::linalg::matrix_norm")]
pub fn matrix_norm(
    a: &Tensor,
    #[default("fro")] ord: impl Into<NormOrder>,
    #[default(None)] dim: impl Into<Dims>,
    #[default(false)] keepdim: bool,
    #[kw] dtype: Option<DType>,
) -> Result<Tensor> {
    let op = "matrix_norm";
    floating(op, a)?;
    let x = match dtype {
        Some(dtype) if a.dtype()?.promote(dtype) != dtype || !dtype.is_floating_point() => {
            return Err(unfit(op));
        }
        Some(dtype) => a.cast(dtype)?,
        None => a.clone(),
    };
    let (data, was_half) = (x.data(op)?, is_half(a.data(op)?.dtype()));
    let dims = match &dim {
        Dims::All if data.rank() >= 2 => vec![data.rank() - 2, data.rank() - 1],
        dims => dims.resolve(op, data.rank()).fx()?,
    };
    let &[rows, columns] = dims.as_slice() else {
        return Err(unfit(op));
    };
    let by_sums = |summed, other, largest| -> candle_core::Result<Data> {
        let sums = norms::norm(op, data, 1.0, &[summed], true)?;
        extreme(op, &sums, other, largest)
    };
    let by_values = |part: &dyn Fn(&Data, usize) -> candle_core::Result<Data>| {
        if was_half {
            candle_core::bail!("{op}: ord {ord} is of float32 or float64: convert with to_dtype")
        }
        let mut order: Vec<usize> = (0..data.rank()).filter(|d| !dims.contains(d)).collect();
        order.extend(&dims);
        let (_, s, _) = kernels::svd(op, &data.permute(order)?, false)?;
        let y = part(&s, s.rank() - 1)?;
        let mut shape = data.dims().to_vec();
        (shape[rows], shape[columns]) = (1, 1);
        y.reshape(shape)
    };
    let y = match &ord {
        NormOrder::Named(name) if name == "fro" => norms::norm(op, data, 2.0, &dims, true),
        NormOrder::Named(name) if name == "nuc" => by_values(&|s, d| reduce::sum(s, &[d], false)),
        NormOrder::Number(1.0) => by_sums(rows, columns, true),
        NormOrder::Number(-1.0) => by_sums(rows, columns, false),
        NormOrder::Number(f64::INFINITY) => by_sums(columns, rows, true),
        NormOrder::Number(f64::NEG_INFINITY) => by_sums(columns, rows, false),
        NormOrder::Number(2.0) => by_values(&|s, d| extreme(op, s, d, true)),
        NormOrder::Number(-2.0) => by_values(&|s, d| extreme(op, s, d, false)),
        _ => return Err(unfit(op)),
    };
    let y = y.fx()?;
    let kept = y.dims().iter().enumerate();
    let shape: Vec<usize> = kept
        .filter(|(d, _)| keepdim || !dims.contains(d))
        .map(|(_, n)| *n)
        .collect();
    y.reshape(shape).map(Tensor::made).fx()
}

/// The largest along a dim, which stays with size 1: of nothing 0. Or the least.
fn extreme(op: &str, x: &Data, d: usize, largest: bool) -> candle_core::Result<Data> {
    match (x.dims()[d], largest) {
        (0, true) => reduce::sum(x, &[d], true),
        (0, false) => candle_core::bail!("{op}: nothing has no least, of shape {:?}", x.dims()),
        (_, true) => reduce::max(x, &[d], true),
        (_, false) => reduce::min(x, &[d], true),
    }
}
