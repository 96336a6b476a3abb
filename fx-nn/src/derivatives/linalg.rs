//! Derivatives of functions of matrices.

use fx_core::value::Int;
use fx_core::{Error, Result};

use super::{derivatives, minus, turned};
use crate::func::{Pullback, known};
use crate::ops::{self, linalg};
use crate::tensor::Tensor;

derivatives! {
    ops::linalg::inv => |call| inverse(call, "a");
    ops::linalg::inverse => |call| inverse(call, "x");
    ops::linalg::det => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let grad = (call.grad()? * call.result::<Tensor>()?)?;
            wide(&grad)? * turned(&linalg::inv(&x)?)?
        })
    };
    ops::linalg::slogdet => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| match call.grad_of(1)? {
            Some(grad) => wide(&grad)? * turned(&linalg::inv(&x)?)?,
            None => ops::zeros_like(&x, None),
        })
    };
    ops::linalg::solve => |call| {
        let (a, b): (Tensor, Tensor) = (call.arg("a")?, call.arg("b")?);
        let is_left: bool = call.arg("left")?;
        let (of_a, of_b) = (known::dims(&a)?, known::dims(&b)?);
        let is_vector = of_b.len() == 1 || (of_b.len() + 1 == of_a.len() && of_a[..of_b.len()] == of_b[..]);
        let column = |x: &Tensor| match is_vector {
            true => ops::unsqueeze(x, -1),
            false => Ok(x.clone()),
        };
        let (x, grad) = (column(&call.result()?)?, column(&call.grad()?)?);
        let of_b = linalg::solve(&turned(&a)?, &grad, is_left)?;
        call.give("a", |_| match is_left {
            true => minus(ops::matmul(&of_b, &turned(&x)?)),
            false => minus(ops::matmul(&turned(&x)?, &of_b)),
        })?;
        call.give("b", |_| if is_vector { ops::squeeze(&of_b, -1) } else { Ok(of_b.clone()) })
    };
    ops::linalg::cholesky => |call| {
        let is_upper: bool = call.arg("upper")?;
        call.give("a", |call| {
            let (mut l, mut grad): (Tensor, Tensor) = (call.result()?, call.grad()?);
            if is_upper {
                (l, grad) = (turned(&l)?, turned(&grad)?);
            }
            let inner = lower_half(&ops::matmul(&turned(&l)?, &grad)?)?;
            let right = linalg::solve(&l, &inner, false)?;
            symmetric(&linalg::solve(&turned(&l)?, &right, true)?)
        })
    };
    ops::linalg::eigh => |call| {
        call.give("a", |call| {
            let [values, vectors] = pair(call)?;
            eigh(&values, &vectors, call.grad_of(0)?, call.grad_of(1)?)
        })
    };
    ops::linalg::eigvalsh => |call| {
        let (a, uplo): (Tensor, String) = (call.arg("a")?, call.arg("uplo")?);
        call.give("a", |call| {
            let (values, vectors) = linalg::eigh(&a, &uplo)?;
            eigh(&values, &vectors, Some(call.grad()?), None)
        })
    };
    ops::linalg::svd => |call| {
        let a: Tensor = call.arg("a")?;
        call.give("a", |call| {
            let items = call.items()?;
            let grads = [call.grad_of(0)?, call.grad_of(1)?, call.grad_of(2)?];
            svd(&a, [&items[0], &items[1], &items[2]], grads)
        })
    };
    ops::linalg::svdvals => |call| {
        let a: Tensor = call.arg("a")?;
        call.give("a", |call| {
            let (u, _, vh) = linalg::svd(&a, false)?;
            ops::matmul(&(u * ops::unsqueeze(&call.grad()?, -2)?)?, &vh)
        })
    };
    ops::linalg::qr => |call| {
        let a: Tensor = call.arg("a")?;
        call.give("a", |call| {
            let [q, r] = pair(call)?;
            let shape = known::shape(&a, "the derivative of `qr`")?;
            let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
            let of_q = known::shape(&q, "the derivative of `qr`")?;
            if of_q[of_q.len() - 1] != rows.min(columns) {
                return Err(Error::msg("the derivative of `qr` is of the mode \"reduced\""));
            }
            let (of_q, of_r) = (call.grad_of(0)?, call.grad_of(1)?);
            if rows >= columns {
                return of_factors(&q, &r, of_q, of_r);
            }
            // The columns beyond the rows are Q times those of R.
            let (square, rest) = (rows as i64, (columns - rows) as i64);
            let part = |x: &Tensor, from: i64, count: i64| ops::narrow(x, -1, from, count);
            let of_rest = match &of_r {
                Some(grad) => part(grad, square, rest)?,
                None => ops::zeros_like(&part(&r, square, rest)?, None)?,
            };
            let through = ops::matmul(&part(&a, square, rest)?, &turned(&of_rest)?)?;
            let of_q = match of_q {
                Some(grad) => (grad + through)?,
                None => through,
            };
            let of_r = of_r.map(|grad| part(&grad, 0, square)).transpose()?;
            let first = of_factors(&q, &part(&r, 0, square)?, Some(of_q), of_r)?;
            ops::cat(&[first, ops::matmul(&q, &of_rest)?], -1)
        })
    };
    ops::linalg::pinv => |call| pinv(call, "a");
    ops::linalg::pinverse => |call| pinv(call, "x");
    ops::linalg::lstsq => |call| {
        let (a, b): (Tensor, Tensor) = (call.arg("a")?, call.arg("b")?);
        let inverse = linalg::pinv(&a, None, None, false)?;
        let is_vector = known::rank(&b)? + 1 == known::rank(&a)?;
        let Some(grad) = call.grad_of(0)? else {
            return Ok(());
        };
        let column = |x: &Tensor| if is_vector { ops::unsqueeze(x, -1) } else { Ok(x.clone()) };
        let (grad, b) = (column(&grad)?, column(&b)?);
        call.give("b", |_| {
            let of_b = ops::matmul(&turned(&inverse)?, &grad)?;
            if is_vector { ops::squeeze(&of_b, -1) } else { Ok(of_b) }
        })?;
        call.give("a", |_| of_pinv(&a, &inverse, &ops::matmul(&grad, &turned(&b)?)?))
    };
    ops::linalg::solve_triangular => |call| {
        let a: Tensor = call.arg("a")?;
        let (upper, left, unit): (bool, bool, bool) = (call.arg("upper")?, call.arg("left")?, call.arg("unitriangular")?);
        let of_b = linalg::solve_triangular(&turned(&a)?, &call.grad()?, !upper, left, unit)?;
        call.give("a", |call| {
            let x = turned(&call.result()?)?;
            let all = minus(if left { ops::matmul(&of_b, &x) } else { ops::matmul(&x, &of_b) })?;
            let without = i64::from(unit);
            if upper { ops::triu(&all, without) } else { ops::tril(&all, -without) }
        })?;
        call.give("b", |_| Ok(of_b.clone()))
    };
    ops::linalg::lu => |call| {
        call.give("a", |call| {
            let items = call.items()?;
            let grads = [call.grad_of(1)?, call.grad_of(2)?];
            of_triangles([&items[0], &items[1], &items[2]], grads)
        })
    };
    ops::linalg::lu_factor => |call| {
        call.give("a", |call| {
            let items = call.items()?;
            let (p, l, u) = linalg::lu_unpack(&items[0], &items[1])?;
            let Some(grad) = call.grad_of(0)? else {
                return ops::zeros_like(&items[0], None);
            };
            let k = known::size(&l, -1)?;
            let of_l = ops::tril(&ops::narrow(&grad, -1, 0, k)?, -1)?;
            let of_u = ops::triu(&ops::narrow(&grad, -2, 0, k)?, 0)?;
            of_triangles([&p, &l, &u], [Some(of_l), Some(of_u)])
        })
    };
    ops::linalg::lu_unpack => |call| {
        let both: Tensor = call.arg("lu")?;
        call.give("lu", |call| {
            let shape = known::shape(&both, "the derivative of `lu_unpack`")?;
            let (m, n) = (shape[shape.len() - 2] as i64, shape[shape.len() - 1] as i64);
            let mut all = ops::zeros_like(&both, None)?;
            if let Some(grad) = call.grad_of(1)? {
                let own = ops::tril(&grad, -1)?;
                all = (all + ops::pad(&own, [0, (n - m).max(0)], "constant", None)?)?;
            }
            if let Some(grad) = call.grad_of(2)? {
                let own = ops::triu(&grad, 0)?;
                all = (all + ops::pad(&own, [0, 0, 0, (m - n).max(0)], "constant", None)?)?;
            }
            Ok(all)
        })
    };
    ops::linalg::matrix_exp => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            // The exponential of [[aᵀ, g], [0, aᵀ]] has the gradient in its corner.
            let (a, n) = (turned(&x)?, known::size(&x, -1)?);
            let above = ops::cat(&[a.clone(), call.grad()?], -1)?;
            let below = ops::cat(&[ops::zeros_like(&a, None)?, a], -1)?;
            let both = linalg::matrix_exp(&ops::cat(&[above, below], -2)?)?;
            ops::narrow(&ops::narrow(&both, -2, 0, n)?, -1, n, n)
        })
    };
    ops::cross => |call| {
        let (x, other): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
        let dim: Option<i64> = call.arg("dim")?;
        // Where none is named, the first dim of size 3 of the broadcast shape.
        let grad = call.grad()?;
        let dim = match dim {
            Some(dim) => dim,
            None => {
                let at = known::dims(&grad)?.iter().position(|dim| dim.as_known() == Some(3));
                at.ok_or_else(|| Error::msg("`cross` has no dim of size 3"))? as i64
            }
        };
        let full = |x: &Tensor| ops::expand(x, known::sizes(&grad)?);
        call.give("x", |_| ops::cross(&full(&other)?, &grad, Some(dim)))?;
        call.give("other", |_| ops::cross(&grad, &full(&x)?, Some(dim)))
    };
}

/// The gradient of a matrix from those of its triangles, with the permutation and the triangles.
fn of_triangles([p, l, u]: [&Tensor; 3], [of_l, of_u]: [Option<Tensor>; 2]) -> Result<Tensor> {
    let why = "the derivative of triangular factors";
    let (of_rows, of_columns) = (known::shape(l, why)?, known::shape(u, why)?);
    let k = of_rows[of_rows.len() - 1] as i64;
    let (m, n) = (
        of_rows[of_rows.len() - 2] as i64,
        of_columns[of_columns.len() - 1] as i64,
    );
    let of_l = of_l.map_or_else(|| ops::zeros_like(l, None), Ok)?;
    let of_u = of_u.map_or_else(|| ops::zeros_like(u, None), Ok)?;
    let rows = |x: &Tensor, from: i64, count: i64| ops::narrow(x, -2, from, count);
    let columns = |x: &Tensor, from: i64, count: i64| ops::narrow(x, -1, from, count);
    let (square_l, square_u) = (rows(l, 0, k)?, columns(u, 0, k)?);
    let mut below = ops::matmul(&turned(&square_l)?, &rows(&of_l, 0, k)?)?;
    let mut above = ops::matmul(&columns(&of_u, 0, k)?, &turned(&square_u)?)?;
    if n > k {
        let beside = turned(&columns(u, k, n - k)?)?;
        below = (below - ops::matmul(&columns(&of_u, k, n - k)?, &beside)?)?;
    }
    if m > k {
        let under = turned(&rows(l, k, m - k)?)?;
        above = (above - ops::matmul(&under, &rows(&of_l, k, m - k)?)?)?;
    }
    let by_l = |g: &Tensor| linalg::solve_triangular(&turned(&square_l)?, g, true, true, true);
    let by_u = |g: &Tensor| linalg::solve_triangular(&turned(&square_u)?, g, false, false, false);
    let inner = (ops::tril(&below, -1)? + ops::triu(&above, 0)?)?;
    let mut all = by_u(&by_l(&inner)?)?;
    if n > k {
        all = ops::cat(&[all, by_l(&columns(&of_u, k, n - k)?)?], -1)?;
    }
    if m > k {
        all = ops::cat(&[all, by_u(&rows(&of_l, k, m - k)?)?], -2)?;
    }
    ops::matmul(p, &all)
}

/// A number for each matrix, beside matrices.
fn wide(x: &Tensor) -> Result<Tensor> {
    ops::unsqueeze(&ops::unsqueeze(x, -1)?, -1)
}

fn symmetric(x: &Tensor) -> Result<Tensor> {
    (x + turned(x)?)? / 2.0
}

/// The lower half of a matrix, with half of the diagonal.
fn lower_half(x: &Tensor) -> Result<Tensor> {
    (ops::tril(x, 0)? + ops::tril(x, -1)?)? / 2.0
}

/// A matrix and its transpose, with the diagonal once.
fn fold(x: &Tensor) -> Result<Tensor> {
    ops::tril(x, -1)? + turned(&ops::tril(x, 0)?)?
}

fn pair(call: &Pullback<'_>) -> Result<[Tensor; 2]> {
    let items = call.items()?;
    items
        .try_into()
        .map_err(|_| Error::msg("there are not two results"))
}

fn inverse(call: &mut Pullback<'_>, name: &str) -> Result<()> {
    call.give(name, |call| {
        let y = turned(&call.result()?)?;
        minus(ops::matmul(&ops::matmul(&y, &call.grad()?)?, &y))
    })
}

/// The gradient of a matrix from those of its factors, of which R is square.
fn of_factors(
    q: &Tensor,
    r: &Tensor,
    grad: Option<Tensor>,
    of_r: Option<Tensor>,
) -> Result<Tensor> {
    let of_r = of_r.map(|grad| ops::triu(&grad, 0)).transpose()?;
    let mut inner = ops::zeros_like(r, None)?;
    if let Some(of_r) = of_r {
        inner = (inner + ops::matmul(&of_r, &turned(r)?)?)?;
    }
    if let Some(grad) = &grad {
        inner = (inner - ops::matmul(&turned(q)?, grad)?)?;
    }
    let mut all = ops::matmul(q, &turned(&fold(&turned(&inner)?)?)?)?;
    if let Some(grad) = grad {
        all = (all + grad)?;
    }
    linalg::solve(&turned(r)?, &all, false)
}

/// 1 / (b - a) for each pair of different places, and 0 on the diagonal.
fn gaps(values: &Tensor) -> Result<Tensor> {
    let size = known::size(values, -1)?;
    let eye = ops::eye(size, None, Some(known::dtype(values)?))?;
    let gap = (ops::unsqueeze(values, -2)? - ops::unsqueeze(values, -1)?)?;
    (1.0 - &eye)? / (gap + eye)?
}

fn eigh(
    values: &Tensor,
    vectors: &Tensor,
    of_values: Option<Tensor>,
    of_vectors: Option<Tensor>,
) -> Result<Tensor> {
    let mut inner = match of_vectors {
        // Vectors only turn: what would change their lengths has no part.
        Some(grad) => {
            let turn = ops::matmul(&turned(vectors)?, &grad)?;
            (((&turn - turned(&turn)?)? / 2.0)? * gaps(values)?)?
        }
        None => ops::zeros_like(vectors, None)?,
    };
    if let Some(grad) = of_values {
        inner = (inner + ops::diag_embed(&grad, 0, -2, -1)?)?;
    }
    ops::matmul(&ops::matmul(vectors, &inner)?, &turned(vectors)?)
}

fn svd(
    a: &Tensor,
    [u, s, vh]: [&Tensor; 3],
    [of_u, of_s, of_vh]: [Option<Tensor>; 3],
) -> Result<Tensor> {
    let name = "the derivative of `svd`";
    let shape = known::shape(a, name)?;
    let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let least = rows.min(columns) as i64;
    // The vectors that have a value.
    let first = |x: &Tensor, dim: i64, most: usize| match most as i64 == least {
        true => Ok(x.clone()),
        false => ops::narrow(x, dim, 0, least),
    };
    let of_u_shape = known::shape(u, name)?;
    let of_v_shape = known::shape(vh, name)?;
    let (cut_u, cut_v) = (
        of_u_shape[of_u_shape.len() - 1],
        of_v_shape[of_v_shape.len() - 2],
    );
    if (cut_u != least as usize && of_u.is_some()) || (cut_v != least as usize && of_vh.is_some()) {
        return Err(Error::msg(
            "the derivative of `svd` is of the vectors that have a value: call it with `full_matrices = false`",
        ));
    }
    let (u, vh) = (first(u, -1, cut_u)?, first(vh, -2, cut_v)?);
    let v = turned(&vh)?;
    let squares = (s * s)?;
    let gaps = gaps(&squares)?;
    let (column, row) = (ops::unsqueeze(s, -1)?, ops::unsqueeze(s, -2)?);
    let skew = |x: &Tensor| x - turned(x)?;
    let mut inner = match of_s {
        Some(grad) => ops::diag_embed(&grad, 0, -2, -1)?,
        None => ops::diag_embed(&ops::zeros_like(s, None)?, 0, -2, -1)?,
    };
    if let Some(grad) = &of_u {
        let part = (skew(&ops::matmul(&turned(&u)?, grad)?)? * &gaps)?;
        inner = (inner + (part * &row)?)?;
    }
    let of_v = of_vh.as_ref().map(turned).transpose()?;
    if let Some(grad) = &of_v {
        let part = (skew(&ops::matmul(&turned(&v)?, grad)?)? * &gaps)?;
        inner = (inner + (&column * part)?)?;
    }
    let mut all = ops::matmul(&ops::matmul(&u, &inner)?, &vh)?;
    if let (Some(grad), true) = (&of_u, rows > columns) {
        // What is outside of the space of the vectors.
        let own = ops::matmul(&u, &ops::matmul(&turned(&u)?, grad)?)?;
        let rest = ((grad - own)? / &row)?;
        all = (all + ops::matmul(&rest, &vh)?)?;
    }
    if let (Some(grad), true) = (&of_v, columns > rows) {
        let own = ops::matmul(&v, &ops::matmul(&vh, grad)?)?;
        let rest = ((grad - own)? / &row)?;
        all = (all + ops::matmul(&u, &turned(&rest)?)?)?;
    }
    Ok(all)
}

fn pinv(call: &mut Pullback<'_>, name: &str) -> Result<()> {
    let a: Tensor = call.arg(name)?;
    call.give(name, |call| of_pinv(&a, &call.result()?, &call.grad()?))
}

/// The gradient of a matrix from that of its pseudoinverse.
fn of_pinv(a: &Tensor, p: &Tensor, grad: &Tensor) -> Result<Tensor> {
    let (pt, gt) = (turned(p)?, turned(grad)?);
    let dtype = Some(known::dtype(a)?);
    let eye = |size: Int| ops::eye(size, None, dtype);
    let first = ops::matmul(&ops::matmul(&pt, grad)?, &pt)?;
    let left = (eye(known::size(a, -2)?)? - ops::matmul(a, p)?)?;
    let second = ops::matmul(&ops::matmul(&ops::matmul(&left, &gt)?, p)?, &pt)?;
    let right = (eye(known::size(a, -1)?)? - ops::matmul(p, a)?)?;
    let third = ops::matmul(&ops::matmul(&ops::matmul(&pt, p)?, &gt)?, &right)?;
    (second + third)? - first
}
