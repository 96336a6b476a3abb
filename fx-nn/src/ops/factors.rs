//! Triangular factors of matrices and equations with them, exponentials, ranks, condition numbers, and equations of
//! tensors: the part of `torch.linalg` that needs no iteration, and what is made of the other part.

use crate::op;
use fx_core::Result;
use fx_core::passes::DecomposedCall;

use super::compare::nan_to_num;
use super::create::{eye, zeros, zeros_like};
use super::dims::{movedim, narrow, select};
use super::linalg::{inv, matrix_norm, sides, solve, svdvals};
use super::matrix::matmul;
use super::pointwise::reciprocal;
use super::reduce::sum;
use super::selection::tril;
use super::views::{reshape, transpose, unsqueeze};
use crate::error::{Fx, require, unfit};
use crate::kernels::linalg::Tolerance;
use crate::kernels::lu::{self as kernels, Triangle};
use crate::kernels::{dim as dims_of, linalg};
use crate::tensor::{Dims, NormOrder, Tensor};
use fx_core::value::DType;

/// `X` of `a X = b`, or without `left` of `X a = b`, of an upper or a lower triangle `a`; what is beside it is not read,
/// nor with `unitriangular` the diagonal, which counts as ones.
///
/// `a` is `[.., n, n]` and `b` `[.., n, k]` (or `[.., k, n]`), with batches that broadcast. A 0 on the diagonal gives
/// infinities and nan.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![2.0f64, 1.0, 9.0, 4.0], (2, 2))?;
/// let b = Tensor::from_vec(vec![4.0f64, 8.0], (2, 1))?;
/// let x = ops::linalg::solve_triangular(&a, &b, true, true, false)?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square, or the sizes or types do not fit.
#[op(member, path = "fx_nn::ops::linalg::solve_triangular")]
pub fn solve_triangular(
    a: &Tensor,
    b: &Tensor,
    #[kw] upper: bool,
    #[kw]
    #[default(true)]
    left: bool,
    #[kw]
    #[default(false)]
    unitriangular: bool,
) -> Result<Tensor> {
    let op = "solve_triangular";
    let (a, b) = sides(op, a, b, false)?;
    let last = a.rank() - 1;
    let of = |upper| Triangle {
        upper,
        unit: unitriangular,
    };
    let y = match left {
        true => kernels::solve_triangular(op, &a, &b, of(upper)).fx()?,
        false => {
            let (a, b) = (
                a.transpose(last - 1, last).fx()?,
                b.transpose(last - 1, last).fx()?,
            );
            let y = kernels::solve_triangular(op, &a, &b, of(!upper)).fx()?;
            y.transpose(last - 1, last).fx()?
        }
    };
    Ok(Tensor::made(y))
}

/// The permutation `P`, the lower triangle `L` with ones on its diagonal, and the upper triangle `U`, with `P L U` the
/// matrix `[.., m, n]`: of `[.., m, m]`, `[.., m, k]` and `[.., k, n]`, with `k` the smaller of both.
///
/// `pivot` is true: as PyTorch on the processor, rows are exchanged.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, 4.0, 4.0], (2, 2))?;
/// let (p, l, u) = ops::linalg::lu(&x, true)?;
/// assert_eq!(l.to_vec()?, [1.0, 0.0, 0.25, 1.0]);
/// assert_eq!(p.matmul(&l)?.matmul(&u)?.to_vec()?, x.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is no matrix, or `pivot` is false.
#[op(member, path = "fx_nn::ops::linalg::lu")]
pub fn lu(
    a: &Tensor,
    #[kw]
    #[default(true)]
    pivot: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let op = "lu";
    require(op, pivot)?;
    let (both, pivots) = kernels::lu_factor(op, a.data(op)?).fx()?;
    let [p, l, u] = kernels::lu_unpack(op, &both, &pivots).fx()?;
    Ok((Tensor::made(p.detach()), Tensor::made(l), Tensor::made(u)))
}

/// The factors of [`lu`] in one matrix, `L` below the diagonal without its ones, and `U` on it and above, and which row
/// each row was exchanged with, from 1, as `int32`: what [`lu_solve`] and [`lu_unpack`] take.
///
/// # Errors
/// Returns an error if the tensor is no matrix, `pivot` is false, or `U` has a 0 on its diagonal: [`lu`] gives the
/// factors of any matrix.
#[op(member, path = "fx_nn::ops::linalg::lu_factor")]
pub fn lu_factor(
    a: &Tensor,
    #[kw]
    #[default(true)]
    pivot: bool,
) -> Result<(Tensor, Tensor)> {
    let op = "lu_factor";
    require(op, pivot)?;
    let (both, pivots) = kernels::lu_factor(op, a.data(op)?).fx()?;
    kernels::regular(op, &both).fx()?;
    Ok((Tensor::made(both), pivots.into()))
}

/// The matrices of [`lu`] from what [`lu_factor`] gives.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, 4.0, 4.0], (2, 2))?;
/// let (both, pivots) = ops::linalg::lu_factor(&x, true)?;
/// assert_eq!(pivots.to_vec()?, [2.0, 2.0]);
/// let (p, l, u) = ops::linalg::lu_unpack(&both, &pivots)?;
/// assert_eq!(p.matmul(&l)?.matmul(&u)?.to_vec()?, x.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the pivots are not `int32`, do not fit the matrices, or are no rows of them.
#[op(member, path = "fx_nn::ops::linalg::lu_unpack")]
pub fn lu_unpack(lu: &Tensor, pivots: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let op = "lu_unpack";
    require(op, pivots.dtype()? == DType::I32)?;
    let [p, l, u] = kernels::lu_unpack(op, lu.data(op)?, pivots.data(op)?).fx()?;
    Ok((Tensor::made(p), Tensor::made(l), Tensor::made(u)))
}

/// `X` of `a X = b` for the `a` of which [`lu_factor`] gave these factors, or without `left` of `X a = b`; with
/// `adjoint` of the transposed `a`.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![1.0f64, 2.0, 4.0, 4.0], (2, 2))?;
/// let (both, pivots) = ops::linalg::lu_factor(&a, true)?;
/// let b = Tensor::from_vec(vec![5.0f64, 12.0], (2, 1))?;
/// assert_eq!(ops::linalg::lu_solve(&both, &pivots, &b, true, false)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the matrices are not square, the sizes or types do not fit, or the pivots are not those of
/// `lu_factor`.
#[op(decomposed = solve_by_factors, path = "fx_nn::ops::linalg::lu_solve")]
pub fn lu_solve(
    lu: &Tensor,
    pivots: &Tensor,
    b: &Tensor,
    #[kw]
    #[default(true)]
    left: bool,
    #[kw]
    #[default(false)]
    adjoint: bool,
) -> Result<Tensor> {
    by_factors(lu, pivots, b, left, adjoint)
}

fn solve_by_factors(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (lu, pivots, b): (Tensor, Tensor, Tensor) =
        (call.arg("lu")?, call.arg("pivots")?, call.arg("b")?);
    by_factors(&lu, &pivots, &b, call.arg("left")?, call.arg("adjoint")?)
}

fn by_factors(
    lu: &Tensor,
    pivots: &Tensor,
    b: &Tensor,
    left: bool,
    adjoint: bool,
) -> Result<Tensor> {
    let turned = |x: &Tensor| transpose(x, -2, -1);
    if !left {
        // The transposed equation has the transposed matrix at the left.
        return turned(&by_factors(lu, pivots, &turned(b)?, true, !adjoint)?);
    }
    let (p, l, u) = lu_unpack(lu, pivots)?;
    match adjoint {
        true => {
            let x = solve_triangular(&turned(&u)?, b, false, true, false)?;
            let x = solve_triangular(&turned(&l)?, &x, true, true, true)?;
            matmul(&p, &x)
        }
        false => {
            let x = matmul(&turned(&p)?, b)?;
            let x = solve_triangular(&l, &x, false, true, true)?;
            solve_triangular(&u, &x, true, true, false)
        }
    }
}

/// The exponential of each matrix, `[.., n, n]`: the sum of its powers, each divided by a factorial.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0, 0.0, 0.0], (2, 2))?;
/// assert_eq!(ops::linalg::matrix_exp(&x)?.to_vec()?, [1.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a matrix is not square.
#[op(member, method, path = "fx_nn::ops::linalg::matrix_exp")]
pub fn matrix_exp(x: &Tensor) -> Result<Tensor> {
    let op = "matrix_exp";
    kernels::matrix_exp(op, x.data(op)?).map(Tensor::made).fx()
}

/// How many singular values of each matrix `[.., m, n]` do not count as 0, as `int64`; see [`pinv`](super::linalg::pinv())
/// for `atol`, `rtol` and `hermitian`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, 2.0, 4.0], (2, 2))?;
/// assert_eq!(ops::linalg::matrix_rank(&x, None, None, false)?.item()?, 1.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if an element is not finite, or a symmetric matrix is not square.
#[op(member, flat = "counts", path = "fx_nn::ops::linalg::matrix_rank")]
pub fn matrix_rank(
    a: &Tensor,
    #[kw] atol: Option<f64>,
    #[kw] rtol: Option<f64>,
    #[kw]
    #[default(false)]
    hermitian: bool,
) -> Result<Tensor> {
    let op = "matrix_rank";
    linalg::rank(op, a.data(op)?, Tolerance { atol, rtol }, hermitian)
        .map(Tensor::from)
        .fx()
}

/// The condition number of each matrix `[.., n, n]`: a norm of it times that of its inverse, infinite for a singular
/// one. Under a `p` of 2, the default, it is the largest singular value over the least, under -2 the other way round, of
/// `[.., m, n]` too; see [`matrix_norm`] for the other `p`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2.0f64, 0.0, 0.0, 8.0], (2, 2))?;
/// assert_eq!(ops::linalg::cond(&x, 2)?.item()?, 4.0);
/// assert_eq!(ops::linalg::cond(&x, "fro")?.item()?, 4.25);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such norm, a matrix is not square where its inverse is needed, or an element is not
/// finite where singular values are.
#[op(member, path = "fx_nn::ops::linalg::cond")]
pub fn cond(a: &Tensor, #[default(2)] p: impl Into<NormOrder>) -> Result<Tensor> {
    let op = "cond";
    let [lead @ .., m, n] = a.dims()? else {
        return Err(unfit(op));
    };
    let is_empty = a.dims()?.contains(&0);
    let is_square = m == n || is_empty;
    let known = match &p {
        NormOrder::Number(2.0 | -2.0) => true,
        NormOrder::Number(p) => is_square && (p.abs() == 1.0 || p.is_infinite()),
        NormOrder::Named(name) => m == n && matches!(name.as_str(), "fro" | "nuc"),
    };
    require(op, known && matches!(a.dtype()?, DType::F32 | DType::F64))?;
    if is_empty {
        return zeros(lead.to_vec(), Some(a.dtype()?));
    }
    composed_cond(a, p, |a| {
        linalg::inv_or_infinite(op, a.data(op)?)
            .map(Tensor::made)
            .fx()
    })
}

/// The condition number by functions, with what inverts: what [`cond`] is differentiated as.
pub(crate) fn composed_cond(
    a: &Tensor,
    p: NormOrder,
    inverse: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let values = || {
        let values = svdvals(a)?;
        Ok((select(&values, -1, 0)?, select(&values, -1, -1)?))
    };
    match p {
        NormOrder::Number(2.0) => values().and_then(|(most, least)| most / least),
        NormOrder::Number(-2.0) => values().and_then(|(most, least)| least / most),
        NormOrder::Named(name) if name == "nuc" => {
            let values = svdvals(a)?;
            let of_inverse = sum(&reciprocal(&values)?, Dims::One(-1), false)?;
            sum(&values, Dims::One(-1), false)? * of_inverse
        }
        p => {
            let of_inverse = matrix_norm(&inverse(a)?, p.clone(), Dims::All, false, None)?;
            let found = (matrix_norm(a, p, Dims::All, false, None)? * of_inverse)?;
            // That of a matrix of zeros is infinite, and not 0 times infinity.
            let bound = f64::INFINITY;
            nan_to_num(&found, Some(bound), Some(bound), Some(-bound))
        }
    }
}

/// The sums of the products of two tensors along a dim; their other dims broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y) = (Tensor::ones((2, 3))?, Tensor::full(3, 2.0, DType::F32)?);
/// assert_eq!(ops::linalg::vecdot(&x, &y, -1)?.to_vec()?, [6.0, 6.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensors are not floats of one type, the shapes do not broadcast, or there is no such dim.
#[op(decomposed = sum_of_products, path = "fx_nn::ops::linalg::vecdot")]
pub fn vecdot(
    x: &Tensor,
    y: &Tensor,
    #[kw]
    #[default(-1)]
    dim: i64,
) -> Result<Tensor> {
    let dtype = x.dtype()?;
    require("vecdot", dtype.is_floating_point() && dtype == y.dtype()?)?;
    sum(&(x * y)?, Dims::One(dim), false)
}

fn sum_of_products(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, y): (Tensor, Tensor) = (call.arg("x")?, call.arg("y")?);
    sum(&(x * y)?, Dims::One(call.arg("dim")?), false)
}

/// The first columns of the product of reflections `I - tau v vᵀ`, as many as `a` has: `v` is a column of `a`
/// `[.., m, n]` with a 1 on the diagonal and zeros above it, and `tau` `[.., k]` has a number for each of the first.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![1.0f64, 1.0], (2, 1))?;
/// let q = ops::linalg::householder_product(&a, &Tensor::full(1, 1.0, DType::F64)?)?;
/// assert_eq!(q.to_vec()?, [0.0, -1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the matrices are wider than high, there are more numbers than columns, or the sizes or types do
/// not fit.
#[op(member, path = "fx_nn::ops::linalg::householder_product")]
pub fn householder_product(a: &Tensor, tau: &Tensor) -> Result<Tensor> {
    let op = "householder_product";
    let dtype = a.dtype()?;
    require(
        op,
        matches!(dtype, DType::F32 | DType::F64) && tau.dtype()? == dtype,
    )?;
    let ([of_a @ .., m, n], [of_tau @ .., k]) = (a.dims()?, tau.dims()?) else {
        return Err(unfit(op));
    };
    require(op, of_a == of_tau && m >= n && n >= k)?;
    let (wide, tau) = (a.cast(DType::F64)?, tau.cast(DType::F64)?);
    reflected(&wide, &tau, [*m, *n, *k], DType::F64)?.cast(dtype)
}

/// The product of reflections, one after the other: what [`householder_product`] is differentiated as.
pub(crate) fn reflected(
    a: &Tensor,
    tau: &Tensor,
    [m, n, k]: [usize; 3],
    dtype: DType,
) -> Result<Tensor> {
    let one = eye(m as i64, Some((n as i64).into()), Some(dtype))?;
    let vectors = (tril(a, -1)? + &one)?;
    let mut product = (zeros_like(a, None)? + one)?;
    for at in (0..k as i64).rev() {
        let v = narrow(&vectors, -1, at, 1)?;
        let along = matmul(&transpose(&v, -2, -1)?, &product)?;
        let tau = unsqueeze(&narrow(tau, -1, at, 1)?, -1)?;
        product = (product - matmul(&(v * tau)?, &along)?)?;
    }
    Ok(product)
}

/// The tensor that `tensordot` takes for an inverse: of `a`, whose first `ind` dims have as many elements as the others,
/// with the others first.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![2.0f64, 0.0, 0.0, 4.0], (2, 1, 2))?;
/// assert_eq!(ops::linalg::tensorinv(&a, 1)?.dims()?, [1, 2, 2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `ind` is below 1, the numbers of elements differ, or the matrix that the tensor is has no
/// inverse.
#[op(member, path = "fx_nn::ops::linalg::tensorinv")]
pub fn tensorinv(a: &Tensor, #[default(2)] ind: i64) -> Result<Tensor> {
    let op = "tensorinv";
    let at = usize::try_from(ind).map_err(|_| unfit(op))?;
    require(op, at >= 1 && at <= a.dims()?.len())?;
    inverse_of(a, a.dims()?, at)
}

/// What [`tensorinv`] is differentiated as.
pub(crate) fn inverse_of(a: &Tensor, shape: &[usize], at: usize) -> Result<Tensor> {
    let op = "tensorinv";
    let (first, rest) = shape.split_at_checked(at).ok_or_else(|| unfit(op))?;
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    require(op, count(first) == count(rest))?;
    let matrix = reshape(a, [count(rest) as i64, count(first) as i64])?;
    let sizes: Vec<i64> = rest.iter().chain(first).map(|n| *n as i64).collect();
    reshape(&inv(&matrix)?, sizes)
}

/// The `X` for which `tensordot` of `a` and `X`, along all dims of `X`, is `b`; the dims of `a` that are named go behind
/// the others first.
///
/// ```
/// use fx_nn::prelude::*;
/// let a = Tensor::from_vec(vec![2.0f64, 0.0, 0.0, 4.0], (2, 1, 2))?;
/// let b = Tensor::from_vec(vec![2.0f64, 8.0], (2, 1))?;
/// assert_eq!(ops::linalg::tensorsolve(&a, &b, None)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the numbers of elements or the types do not fit, a dim is named twice, or the matrix that `a` is
/// is singular.
#[op(member, path = "fx_nn::ops::linalg::tensorsolve")]
pub fn tensorsolve(
    a: &Tensor,
    b: &Tensor,
    #[default(None)] dims: impl Into<Dims>,
) -> Result<Tensor> {
    let op = "tensorsolve";
    require(op, a.dtype()? == b.dtype()?)?;
    solution_of((a, a.dims()?), (b, b.dims()?), &dims)
}

/// What [`tensorsolve`] is differentiated as.
pub(crate) fn solution_of(
    (a, of_a): (&Tensor, &[usize]),
    (b, of_b): (&Tensor, &[usize]),
    dims: &Dims,
) -> Result<Tensor> {
    let op = "tensorsolve";
    let rank = of_a.len();
    let dims = match dims {
        Dims::All => Vec::new(),
        Dims::One(dim) => vec![*dim],
        Dims::Many(dims) => dims.clone(),
    };
    let mut places = Vec::new();
    for dim in dims {
        let place = dims_of::dim(op, dim, rank).fx()? as i64;
        require(op, !places.contains(&place))?;
        places.push(place);
    }
    let is_moved = |at: usize| places.contains(&(at as i64));
    let rest = (0..rank).filter(|at| !is_moved(*at)).map(|at| of_a[at]);
    let moved = places.iter().map(|at| of_a[*at as usize]);
    let shape: Vec<usize> = rest.chain(moved).collect();
    let a = match places.is_empty() {
        true => a.clone(),
        false => {
            let last = (rank - places.len()..rank).map(|at| at as i64);
            movedim(a, places, last.collect::<Vec<_>>())?
        }
    };
    let (first, rest) = shape
        .split_at_checked(of_b.len())
        .ok_or_else(|| unfit(op))?;
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    let n = count(rest);
    require(op, count(first) == n && count(of_b) == n)?;
    let x = solve(
        &reshape(&a, [n as i64, n as i64])?,
        &reshape(b, [n as i64])?,
        true,
    )?;
    reshape(&x, rest.iter().map(|n| *n as i64).collect::<Vec<_>>())
}
