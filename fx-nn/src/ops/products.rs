//! Products of matrices and vectors of given ranks, sums with them, and products of all elements.

use std::borrow::Borrow;

use fx_core::{Error, Result, function, function_table};

use super::cost;
use super::matrix::matmul;
use crate::error::{Fx, require, unfit};
use crate::kernels::scale::Scale;
use crate::kernels::{self, dim, expand};
use crate::multiply_adds::MultiplyAdds;
use crate::op;
use crate::tensor::{Dims, Number, Tensor};

/// Refuses other ranks.
fn ranks(op: &str, given: &[(&Tensor, usize)]) -> Result<()> {
    for (x, rank) in given {
        let dims = x.dims()?;
        require(op, dims.len() == *rank)?;
    }
    Ok(())
}

/// The product of two matrices.
///
/// # Errors
/// Returns an error if they are not matrices, or their inner sizes or types differ.
#[op(cost = cost::rows_of_x, method, path = "fx_nn::ops::mm")]
pub fn mm(x: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    ranks("mm", &[(x, 2), (mat2, 2)])?;
    matmul(x, mat2)
}

/// Refuses batches of other sizes: they do not broadcast.
fn batched(op: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ranks(op, &[(a, 3), (b, 3)])?;
    match (a.dims()?, b.dims()?) {
        (&[n, ..], &[m, ..]) if n == m => Ok(()),
        _ => Err(unfit(op)),
    }
}

/// The products of as many pairs of matrices.
///
/// # Errors
/// Returns an error if they are not `[B, n, m]` and `[B, m, p]`, or their types differ.
#[op(cost = cost::rows_of_x, method, path = "fx_nn::ops::bmm")]
pub fn bmm(x: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    batched("bmm", x, mat2)?;
    matmul(x, mat2)
}

/// The product of a matrix and a vector.
///
/// # Errors
/// Returns an error if they are not a matrix and a vector, or their inner sizes or types differ.
#[op(cost = cost::rows_of_x, method, path = "fx_nn::ops::mv")]
pub fn mv(x: &Tensor, vec: &Tensor) -> Result<Tensor> {
    ranks("mv", &[(x, 2), (vec, 1)])?;
    matmul(x, vec)
}

/// The sum of the products of two vectors' elements.
///
/// # Errors
/// Returns an error if they are not vectors of one length and type.
#[op(method, path = "fx_nn::ops::dot")]
pub fn dot(x: &Tensor, tensor: &Tensor) -> Result<Tensor> {
    ranks("dot", &[(x, 1), (tensor, 1)])?;
    matmul(x, tensor)
}

/// [`dot`] under another name.
///
/// # Errors
/// Returns an error if they are not vectors of one length and type.
#[op(method, path = "fx_nn::ops::vdot")]
pub fn vdot(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    ranks("vdot", &[(x, 1), (other, 1)])?;
    matmul(x, other)
}

/// The sums of products over the last dims of both.
///
/// # Errors
/// Returns an error if the last sizes or the types differ.
#[op(member, method, path = "fx_nn::ops::inner")]
pub fn inner(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let op = "inner";
    let (a, b) = (x.dims()?.to_vec(), other.dims()?.to_vec());
    if a.is_empty() || b.is_empty() {
        return x * other;
    }
    require(op, a.last() == b.last())?;
    folded(
        op,
        x,
        other,
        1,
        |b| b.transpose(0, 1),
        &[&a[..a.len() - 1], &b[..b.len() - 1]].concat(),
        false,
    )
}

/// Both as matrices with `inner` dims summed, whose product is given the shape.
fn folded(
    op: &str,
    a: &Tensor,
    b: &Tensor,
    inner: usize,
    turn: impl FnOnce(&Tensor) -> Result<Tensor>,
    shape: &[usize],
    inner_first: bool,
) -> Result<Tensor> {
    let (left, right) = (a.dims()?, b.dims()?);
    let kept = left.len().saturating_sub(inner);
    let width: usize = left[kept..].iter().product();
    let rows: usize = left[..kept].iter().product();
    let columns: usize = match inner_first {
        true => right[inner..].iter().product(),
        false => right[..right.len().saturating_sub(inner)].iter().product(),
    };
    let as_matrix = |x: &Tensor, dims: (usize, usize)| -> Result<Tensor> {
        let data = x.data(op)?.reshape(dims).fx()?;
        Ok(x.with_data(data))
    };
    let right = match inner_first {
        true => (width, columns),
        false => (columns, width),
    };
    let y = matmul(&as_matrix(a, (rows, width))?, &turn(&as_matrix(b, right)?)?)?;
    let data = y.data(op)?.reshape(shape).fx()?;
    Ok(y.with_data(data))
}

/// The sums of products over the last `dims` dims of `a` and the first of `b`; [`tensordot_dims`] takes any.
///
/// # Errors
/// Returns an error if the sizes of the dims or the types differ.
#[op(member, path = "fx_nn::ops::tensordot")]
pub fn tensordot(a: &Tensor, b: &Tensor, #[default(2)] dims: usize) -> Result<Tensor> {
    let op = "tensordot";
    let (left, right) = (a.dims()?.to_vec(), b.dims()?.to_vec());
    let kept = left.len().checked_sub(dims);
    let Some(kept) = kept.filter(|kept| right.len() >= dims && left[*kept..] == right[..dims])
    else {
        return Err(unfit(op));
    };
    let shape = [&left[..kept], &right[dims..]].concat();
    folded(op, a, b, dims, |b| Ok(b.clone()), &shape, true)
}

/// The sums of products over the dims `dims_a` of `a` and `dims_b` of `b`: `torch.tensordot` with two lists.
///
/// # Errors
/// Returns an error if there are no such dims, or their sizes or the types differ.
#[op(member, path = "fx_nn::ops::tensordot_dims")]
pub fn tensordot_dims(
    a: &Tensor,
    b: &Tensor,
    dims_a: impl Into<Dims>,
    dims_b: impl Into<Dims>,
) -> Result<Tensor> {
    let op = "tensordot_dims";
    let (left, right) = (a.data(op)?, b.data(op)?);
    let of_a = dims_a.resolve(op, left.rank()).fx()?;
    let of_b = dims_b.resolve(op, right.rank()).fx()?;
    let kept = |rank: usize, used: &[usize]| -> Vec<usize> {
        (0..rank).filter(|d| !used.contains(d)).collect()
    };
    let a = left
        .permute([kept(left.rank(), &of_a), of_a.clone()].concat())
        .map(|data| a.with_data(data))
        .fx()?;
    let b = right
        .permute([of_b.clone(), kept(right.rank(), &of_b)].concat())
        .map(|data| b.with_data(data))
        .fx()?;
    require(op, of_a.len() == of_b.len())?;
    tensordot(&a, &b, of_a.len())
}

/// `beta · x + alpha · (a @ b)`; `x`, which broadcasts, is not looked at where `beta` is 0.
fn plus(
    op: &str,
    x: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Number,
    alpha: Number,
    sums_batch: bool,
) -> Result<Tensor> {
    let dtype = x.dtype()?;
    require(
        op,
        !x.is_bool() && dtype == a.dtype()? && dtype == b.dtype()?,
    )?;
    let product = |a: &candle_core::Tensor, b: &candle_core::Tensor| {
        let y = kernels::matmul::matmul(a, b)?;
        match sums_batch {
            true => kernels::reduce::sum(&y, &[0], false)?.to_dtype(y.dtype()),
            false => Ok(y),
        }
    };
    let (own, left, right) = (x.data(op)?, a.data(op)?, b.data(op)?);
    if dtype.is_floating_point() {
        let (beta, alpha) = (beta.as_f64(), alpha.as_f64());
        return kernels::widen::widened(own, (own, left, right), |(own, left, right)| {
            let y = product(&left, &right)?;
            let y = if alpha == 1.0 { y } else { y.times(alpha)? };
            let own = fitted(op, &own, y.dims())?;
            match beta {
                0.0 => Ok(y),
                1.0 => y.add(&own),
                beta => y.add(&own.times(beta)?),
            }
        })
        .map(Tensor::made)
        .fx();
    }
    let (Number::Int(beta), Number::Int(alpha)) = (beta, alpha) else {
        return Err(unfit(op));
    };
    let y = (&Tensor::from(product(left, right).fx()?) * alpha)?;
    let own = Tensor::from(fitted(op, own, y.dims()?).fx()?);
    if beta == 0 {
        return Ok(y);
    }
    (own * beta)? + y
}

/// What is added, in the shape of the product.
fn fitted(
    op: &str,
    x: &candle_core::Tensor,
    dims: &[usize],
) -> candle_core::Result<candle_core::Tensor> {
    if expand::shape(op, x.dims(), dims)? != dims {
        candle_core::bail!(
            "{op}: input {:?} does not broadcast to the product {dims:?}",
            x.dims()
        )
    }
    expand::to(x, dims)
}

macro_rules! sums {
    ($($name:ident $path:literal $what:literal ($a:ident: $ra:literal, $b:ident: $rb:literal) $batch:ident $sums:literal;)*) => {$(
        #[doc = concat!("`beta` · x + `alpha` · ", $what, "; `x` broadcasts, and is not looked at where `beta` is 0.")]
        ///
        /// # Errors
        /// Returns an error if the shapes do not fit, or the types differ.
        #[op(method, path = $path)]
        pub fn $name(
            x: &Tensor,
            $a: &Tensor,
            $b: &Tensor,
            #[kw]
            #[default(1)]
            beta: impl Into<Number>,
            #[kw]
            #[default(1)]
            alpha: impl Into<Number>,
        ) -> Result<Tensor> {
            let op = stringify!($name);
            ranks(op, &[($a, $ra), ($b, $rb)])?;
            if $batch {
                batched(op, $a, $b)?;
            }
            plus(op, x, $a, $b, beta, alpha, $sums)
        }
    )*};
}

sums! {
    addmm "fx_nn::ops::addmm" "the product of two matrices" (mat1: 2, mat2: 2) false false;
    addmv "fx_nn::ops::addmv" "the product of a matrix and a vector" (mat: 2, vec: 1) false false;
    addbmm "fx_nn::ops::addbmm" "the sum of the products of pairs of matrices" (batch1: 3, batch2: 3) true true;
    baddbmm "fx_nn::ops::baddbmm" "the products of pairs of matrices" (batch1: 3, batch2: 3) true false;
}

function_table! { MultiplyAdds {
    function!(addmm) => MultiplyAdds(|call| cost::rows_by_columns(call, "mat1")),
    function!(baddbmm) => MultiplyAdds(|call| cost::rows_by_columns(call, "batch1")),
} }

fn outer_of(op: &str, x: &Tensor, other: &Tensor) -> Result<Tensor> {
    ranks(op, &[(x, 1), (other, 1)])?;
    x.unsqueeze(1)? * other
}

/// All products of an element of one vector with one of another, a row for each of the first.
///
/// # Errors
/// Returns an error if they are not vectors.
#[op(method, path = "fx_nn::ops::outer")]
pub fn outer(x: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    outer_of("outer", x, vec2)
}

/// [`outer`] under another name.
///
/// # Errors
/// Returns an error if they are not vectors.
#[op(method, path = "fx_nn::ops::ger")]
pub fn ger(x: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    outer_of("ger", x, vec2)
}

/// `beta` · x + `alpha` · the [`outer`] product of two vectors; `x` broadcasts, and is not looked at where `beta` is 0.
///
/// # Errors
/// Returns an error if the shapes do not fit, or the types differ.
#[op(method, path = "fx_nn::ops::addr")]
pub fn addr(
    x: &Tensor,
    vec1: &Tensor,
    vec2: &Tensor,
    #[kw]
    #[default(1)]
    beta: impl Into<Number>,
    #[kw]
    #[default(1)]
    alpha: impl Into<Number>,
) -> Result<Tensor> {
    let op = "addr";
    ranks(op, &[(vec1, 1), (vec2, 1)])?;
    let column = vec1.unsqueeze(1)?;
    plus(op, x, &column, &vec2.unsqueeze(0)?, beta, alpha, false)
}

/// Kronecker's product: each element of `x` times the whole of `other`, instead of the element.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::from_vec(vec![1i64, 2], (1, 2))?, Tensor::from_vec(vec![3i64, 4], (1, 2))?);
/// assert_eq!(a.kron(&b)?.to_vec()?, [3.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if it does not fit into memory.
#[op(member, method, path = "fx_nn::ops::kron")]
pub fn kron(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.dims()?, other.dims()?);
    let rank = a.len().max(b.len());
    let full = |dims: &[usize]| -> Vec<usize> {
        std::iter::repeat_n(1, rank - dims.len())
            .chain(dims.iter().copied())
            .collect()
    };
    let (a, b) = (full(a), full(b));
    let between = |dims: &[usize], first: bool| -> Vec<usize> {
        let each = dims
            .iter()
            .flat_map(|n| if first { [*n, 1] } else { [1, *n] });
        each.collect()
    };
    let shape: Vec<usize> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| a.saturating_mul(*b))
        .collect();
    let left = x.reshape(between(&a, true))?;
    (left * other.reshape(between(&b, false))?)?.reshape(shape)
}

/// The product of all matrices, in an order in which it is cheapest; the first may be a row, the last a column.
///
/// # Errors
/// Returns an error if there are fewer than two, an inner one is not a matrix, or the sizes or
/// types do not fit.
#[op(path = "fx_nn::ops::multi_dot")]
pub fn multi_dot(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let op = "multi_dot";
    let [first, middle @ .., last] = tensors else {
        return Err(unfit(op));
    };
    let between: Vec<(&Tensor, usize)> = middle.iter().map(|x| (x, 2)).collect();
    ranks(op, &between)?;
    for end in [first, last] {
        if !matches!(end.dims()?.len(), 1 | 2) {
            ranks(op, &[(end, 2)])?;
        }
    }
    cheapest(tensors)
}

/// The product of all matrices, in an order in which it is cheapest.
///
/// # Errors
/// Returns an error if there are no matrices, one is not a matrix, or the sizes or types do not
/// fit.
#[op(path = "fx_nn::ops::chain_matmul")]
pub fn chain_matmul(matrices: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let op = "chain_matmul";
    let all: Vec<(&Tensor, usize)> = matrices.iter().map(|x| (x, 2)).collect();
    ranks(op, &all)?;
    match matrices {
        [] => Err(unfit(op)),
        [one] => Ok(one.clone()),
        several => cheapest(several),
    }
}

/// By the least number of multiplications, part by part from the shortest.
fn cheapest(xs: &[Tensor]) -> Result<Tensor> {
    let count = xs.len();
    let mut sizes = Vec::with_capacity(count + 1);
    for (at, x) in xs.iter().enumerate() {
        match (x.dims()?, at) {
            (&[_], 0) => sizes.push(1.0),
            (&[n, ..], _) => sizes.push(n as f64),
            _ => {}
        }
    }
    sizes.push(match xs[count - 1].dims()? {
        &[_, n] => n as f64,
        _ => 1.0,
    });
    in_cheapest_order(xs, &sizes)
}

/// The product of matrices, of which each has these rows and, as columns, the rows of the next one.
pub(crate) fn in_cheapest_order(xs: &[Tensor], sizes: &[f64]) -> Result<Tensor> {
    let count = xs.len();
    let mut cost = vec![vec![0.0f64; count]; count];
    let mut cut = vec![vec![0usize; count]; count];
    for length in 1..count {
        for from in 0..count - length {
            let to = from + length;
            cost[from][to] = f64::INFINITY;
            for at in from..to {
                let own =
                    cost[from][at] + cost[at + 1][to] + sizes[from] * sizes[at + 1] * sizes[to + 1];
                if own < cost[from][to] {
                    (cost[from][to], cut[from][to]) = (own, at);
                }
            }
        }
    }
    fn product(xs: &[Tensor], cut: &[Vec<usize>], from: usize, to: usize) -> Result<Tensor> {
        if from == to {
            return Ok(xs[from].clone());
        }
        let at = cut[from][to];
        matmul(&product(xs, cut, from, at)?, &product(xs, cut, at + 1, to)?)
    }
    product(xs, &cut, 0, count - 1)
}

/// The vector across two vectors of three elements along `dim` (without it the first dim of size 3); shapes broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::from_vec(vec![1i64, 0, 0], 3)?, Tensor::from_vec(vec![0i64, 1, 0], 3)?);
/// assert_eq!(a.cross(&b, None)?.to_vec()?, [0.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the dim is not of size 3, or the shapes do not broadcast.
#[op(member, method, path = "fx_nn::ops::cross")]
pub fn cross(x: &Tensor, other: &Tensor, dim: impl Into<Option<i64>>) -> Result<Tensor> {
    let op = "cross";
    dim::same_dtype(op, x.data(op)?, other.data(op)?).fx()?;
    let (own, theirs) = (x.dims()?, other.dims()?);
    require(op, own.len() == theirs.len())?;
    let shape = expand::shape(op, own, theirs).fx()?;
    let at = match dim {
        Some(dim) => Some(dim::dim(op, dim, shape.len()).fx()?),
        None => own.iter().position(|n| *n == 3),
    };
    let fits = |at: &usize| own.get(*at) == Some(&3) && theirs.get(*at) == Some(&3);
    let Some(at) = at.filter(fits) else {
        return Err(unfit(op));
    };
    let part = |x: &Tensor, i: usize| -> Result<Tensor> {
        let wide = expand::to(x.data(op)?, &shape).fx()?;
        let ids = vec![(i % 3) as u32, ((i + 1) % 3) as u32, ((i + 2) % 3) as u32];
        kernels::places::along(op, &wide, at, ids)
            .map(|data| x.with_data(data))
            .fx()
    };
    let first = (part(x, 1)? * part(other, 2)?)?;
    first - (part(x, 2)? * part(other, 1)?)?
}

/// The powers of each element of a vector as a row: `n` of them, from the largest down, or from 0 up where `increasing`.
///
/// # Errors
/// Returns an error if `x` is not a vector.
#[op(member, path = "fx_nn::ops::vander")]
pub fn vander(
    x: &Tensor,
    #[default(None)] n: impl Into<Option<usize>>,
    #[default(false)] increasing: bool,
) -> Result<Tensor> {
    let op = "vander";
    let &[size] = x.dims()? else {
        return Err(unfit(op));
    };
    let n = n.unwrap_or(size);
    crate::room::of(op, &[size, n], candle_core::DType::I64).fx()?;
    let x = match x.dtype()?.is_floating_point() {
        true => x.clone(),
        false => x.cast(fx_core::value::DType::I64)?,
    };
    let mut powers = Vec::with_capacity(n);
    let mut power = crate::ops::ones_like(&x, None)?;
    for at in 0..n {
        powers.push(power.clone());
        if at + 1 < n {
            power = (power * &x)?;
        }
    }
    if n == 0 {
        let none = candle_core::Tensor::zeros((size, 0), x.data(op)?.dtype(), x.data(op)?.device());
        return none.map(|data| x.with_data(data)).fx();
    }
    if !increasing {
        powers.reverse();
    }
    super::shape::stack(&powers, 1)
}

/// x1 · W · x2 + b, for `x1` `[.., n]`, `x2` `[.., m]`, `weight` `[out, n, m]` and `bias` `[out]`.
///
/// # Errors
/// Returns an error if the shapes do not fit, or the types differ.
#[op(member, path = "fx_nn::ops::bilinear")]
pub fn bilinear(
    input1: &Tensor,
    input2: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let op = "bilinear";
    let (x1, x2, w) = (input1.data(op)?, input2.data(op)?, weight.data(op)?);
    for other in [x2, w]
        .into_iter()
        .chain(bias.map(|b| b.data(op)).transpose()?)
    {
        dim::same_dtype(op, x1, other).fx()?;
    }
    let (Some((n, lead)), Some((m, other)), &[out, rows, columns]) =
        (x1.dims().split_last(), x2.dims().split_last(), w.dims())
    else {
        return Err(unfit(op));
    };
    let bias_fits = bias
        .map(|b| Ok::<_, Error>(b.dims()? == [out]))
        .transpose()?
        .unwrap_or(true);
    require(
        op,
        (*n, *m) == (rows, columns) && lead == other && bias_fits,
    )?;
    let bias = bias.map(|b| b.data(op)).transpose()?;
    let count: usize = lead.iter().product();
    let shape = [lead, &[out]].concat();
    kernels::widen::widened(x1, (x1, x2, w, bias), |(x1, x2, w, bias)| {
        // [out, count, n] @ [out, n, m] meets x2 element by element.
        let left = x1.contiguous()?.reshape((count, rows))?;
        let right = expand::to(
            &x2.contiguous()?.reshape((1, count, columns))?,
            &[out, count, columns],
        )?;
        let parts = kernels::matmul::matmul(&left, &w)?.mul(&right)?;
        let y = kernels::reduce::sum(&parts, &[2], false)?
            .t()?
            .contiguous()?;
        let y = match bias {
            Some(bias) => y.add(&expand::to(&bias, &[count, out])?)?,
            None => y,
        };
        y.reshape(shape.as_slice())
    })
    .map(Tensor::made)
    .fx()
}
