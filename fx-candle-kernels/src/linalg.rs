//! Linear algebra on the matrices in the last two dims, with gradients; values come from
//! [`factor`](super::factor).

use candle_core::{DType, Result, Tensor, bail};

use super::binary::{add, div, mul, sub};
use super::factor::Matrices;
use super::matmul::matmul;
use super::pulled::{pulled, pulled_by_two};
use super::scale::Scale;
use super::select::triangle;
use super::{diagonal, reduce, view};

/// The transposed matrices.
fn t(x: &Tensor) -> Result<Tensor> {
    x.transpose(x.rank() - 2, x.rank() - 1)
}

/// A number for each matrix, as matrices of one element.
fn cell(x: &Tensor) -> Result<Tensor> {
    x.unsqueeze(x.rank())?.unsqueeze(x.rank() + 1)
}

/// A vector for each matrix, as a row.
fn row(x: &Tensor) -> Result<Tensor> {
    x.unsqueeze(x.rank() - 1)
}

fn embed(x: &Tensor) -> Result<Tensor> {
    diagonal::embed("diag_embed", x, 0, -2, -1)
}

/// The product `a b c` for each matrix of the batch.
fn three(a: &Tensor, b: &Tensor, c: &Tensor) -> Result<Tensor> {
    matmul(&matmul(a, b)?, c)
}

/// The inverse.
///
/// # Errors
/// Returns an error if a matrix is not square, or is singular.
pub fn inv(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let y = Matrices::square(op, x)?.inverse(op)?;
    let own = y.clone();
    pulled(op, x, &y, move |g| three(&t(&own)?, g, &t(&own)?)?.neg())
}

/// The inverse; that of a singular matrix is infinite.
///
/// # Errors
/// Returns an error if a matrix is not square.
pub fn inv_or_infinite(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let y = Matrices::square(op, x)?.inverse_or_infinite(op)?;
    let own = y.clone();
    pulled(op, x, &y, move |g| three(&t(&own)?, g, &t(&own)?)?.neg())
}

/// How many singular values, or eigenvalues of symmetric matrices (`hermitian`), do not count as 0, as `int64`.
///
/// # Errors
/// Returns an error if an element is not finite.
pub fn rank(op: &str, x: &Tensor, tolerance: Tolerance, hermitian: bool) -> Result<Tensor> {
    let values = match hermitian {
        true => {
            let [values, _] = Matrices::square(op, x)?.eigh(op, true)?;
            values
        }
        false => {
            let [_, values, _] = Matrices::of(op, x)?.svd(op, false)?;
            values
        }
    };
    let lead = &x.dims()[..x.rank() - 2];
    if values.elem_count() == 0 {
        return Tensor::zeros(lead, DType::I64, x.device());
    }
    let (_, kept) = tolerance.inverses(x, &values)?;
    let count = |kept: &Vec<bool>| kept.iter().filter(|kept| **kept).count() as i64;
    Tensor::from_vec(kept.iter().map(count).collect::<Vec<_>>(), lead, x.device())
}

/// `X` of `a X = b`, for matrices of one batch.
///
/// # Errors
/// Returns an error if the sizes do not fit, or a matrix is singular.
pub fn solve(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (left, right) = (Matrices::square(op, a)?, Matrices::of(op, b)?);
    if left.rows != right.rows || left.lead != right.lead {
        bail!(
            "{op}: matrices {:?} and right sides {:?} do not fit",
            a.dims(),
            b.dims()
        )
    }
    let y = left.solve(op, &right)?;
    let (a64, own) = (left.tensor()?, y.clone());
    pulled_by_two(op, a, b, &y, move |g| {
        let turned = Matrices::square(op, &t(&a64)?)?;
        let of_b = turned.solve(op, &Matrices::of(op, g)?)?;
        Ok((matmul(&of_b, &t(&own)?)?.neg()?, of_b))
    })
}

/// For each singular value the product of the others.
fn others(s: &Tensor) -> Result<Tensor> {
    let n = s.dims()[s.rank() - 1];
    let values = s.flatten_all()?.to_vec1::<f64>()?;
    let mut found = Vec::with_capacity(values.len());
    for s in values.chunks_exact(n.max(1)) {
        found.extend((0..n).map(|i| {
            let but = s.iter().enumerate().filter(|(j, _)| *j != i);
            but.map(|(_, s)| s).product::<f64>()
        }));
    }
    Tensor::from_vec(found, s.dims(), s.device())
}

/// The determinant; singular matrices have a gradient, too.
///
/// # Errors
/// Returns an error if a matrix is not square.
pub fn det(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let of = Matrices::square(op, x)?;
    let [y, ..] = of.determinant(op)?;
    pulled(op, x, &y, move |g| {
        let [u, s, vh] = of.svd(op, false)?;
        let sides = Matrices::square(op, &matmul(&u, &vh)?)?;
        let [sign, ..] = sides.determinant(op)?;
        let cofactors = matmul(&mul(&u, &row(&others(&s)?)?)?, &vh)?;
        mul(&cofactors, &cell(&mul(&sign, g)?)?)
    })
}

/// The sign of the determinant, and the logarithm of its magnitude.
///
/// # Errors
/// Returns an error if a matrix is not square.
pub fn slogdet(op: &'static str, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let of = Matrices::square(op, x)?;
    let [_, sign, log] = of.determinant(op)?;
    let log = pulled(op, x, &log, move |g| {
        let [u, s, vh] = of.svd(op, false)?;
        mul(&matmul(&div(&u, &row(&s)?)?, &vh)?, &cell(g)?)
    })?;
    Ok((sign.to_dtype(x.dtype())?, log))
}

/// A lower triangle `L` with `L Lᵀ` the matrix, of which the lower triangle is read.
///
/// # Errors
/// Returns an error if a matrix is not square or not positive definite.
pub fn cholesky(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let y = Matrices::square(op, x)?.cholesky(op)?;
    let own = y.clone();
    pulled(op, x, &y, move |g| {
        let inner = triangle(op, &matmul(&t(&own)?, g)?, 0, true)?;
        let below = triangle(op, &inner, -1, true)?;
        // Half of the lower triangle plus its mirror image.
        let inner = add(&inner, &t(&below)?)?.times(0.5)?;
        let inverse = Matrices::square(op, &own)?.inverse(op)?;
        three(&t(&inverse)?, &inner, &inverse)
    })
}

/// `X` with `X Rᵀ = S`, of an upper triangle `R`: column by column from the last. Where the diagonal has a zero, there
/// are infinities and NaN.
fn over_triangle(s: &Tensor, r: &Tensor) -> Result<Tensor> {
    let last = r.rank() - 1;
    let size = r.dims()[last];
    let mut columns: Option<Tensor> = None;
    for at in (0..size).rev() {
        let row = view::narrow(r, last - 1, at, 1)?;
        let own = view::narrow(s, last, at, 1)?;
        let rest = match &columns {
            Some(later) => {
                let factors = view::narrow(&row, last, at + 1, size - at - 1)?;
                sub(&own, &matmul(later, &t(&factors)?)?)?
            }
            None => own,
        };
        let column = div(&rest, &view::narrow(&row, last, at, 1)?)?;
        columns = Some(match columns {
            Some(later) => Tensor::cat(&[column, later], last)?,
            None => column,
        });
    }
    Ok(columns.unwrap_or_else(|| s.clone()))
}

/// The gradient of a matrix with no more columns than rows, from those of `q` and `r`.
fn qr_pull(op: &str, q: &Tensor, r: &Tensor, of_q: &Tensor, of_r: &Tensor) -> Result<Tensor> {
    let inner = sub(&matmul(of_r, &t(r)?)?, &matmul(&t(q)?, of_q)?)?;
    let upper = triangle(op, &inner, 0, false)?;
    let mirrored = add(&upper, &t(&triangle(op, &inner, 1, false)?)?)?;
    let sum = add(of_q, &matmul(q, &mirrored)?)?;
    over_triangle(&sum, r)
}

/// An orthogonal `Q` and a triangular `R` with `Q R` the matrix; `complete` ones are as large as it.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn qr(op: &'static str, x: &Tensor, complete: bool) -> Result<(Tensor, Tensor)> {
    let of = Matrices::of(op, x)?;
    let [q, r] = of.qr(op, complete)?;
    let (m, n) = (of.rows, of.columns);
    let (own_q, own_r) = (q.clone(), r.clone());
    let pull = move |of_q: &Tensor, of_r: &Tensor| {
        if complete && m > n {
            bail!(
                "{op}: with more rows than columns mode \"complete\" has no gradient: \"reduced\" has one"
            )
        }
        if m >= n {
            return qr_pull(op, &own_q, &own_r, of_q, of_r);
        }
        // The first columns have the factors q and the square part of r; the others are q times the rest of r.
        let last = own_r.rank() - 1;
        let part = |x: &Tensor, start: usize, length: usize| view::narrow(x, last, start, length);
        let rest = matmul(&own_q, &part(&own_r, m, n - m)?)?;
        let of_rest = part(of_r, m, n - m)?;
        let of_q = add(of_q, &matmul(&rest, &t(&of_rest)?)?)?;
        let (square, of_square) = (part(&own_r, 0, m)?, part(of_r, 0, m)?);
        let first = qr_pull(op, &own_q, &square, &of_q, &of_square)?;
        Tensor::cat(&[first, matmul(&own_q, &of_rest)?], last)
    };
    let other = (q.zeros_like()?, r.zeros_like()?);
    let second = pull.clone();
    let with_q = pulled(op, x, &q, move |g| pull(g, &other.1))?;
    let with_r = pulled(op, x, &r, move |g| second(&other.0, g))?;
    Ok((with_q, with_r))
}

/// The `R` of [`qr`] alone, of as many rows as the smaller size; it has no gradient without `Q`.
///
/// # Errors
/// Returns only candle's errors.
pub fn r(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let [_, r] = Matrices::of(op, x)?.qr(op, false)?;
    pulled(op, x, &r, move |_| {
        bail!("{op}: mode \"r\" has no gradient, which needs Q: mode \"reduced\" has one")
    })
}

/// `x - xᵀ`.
fn skew(x: &Tensor) -> Result<Tensor> {
    sub(x, &t(x)?)
}

/// `1 / (values[j] - values[i])` at row i and column j, 0 on the diagonal.
fn gaps(values: &Tensor) -> Result<Tensor> {
    let all = sub(&row(values)?, &t(&row(values)?)?)?;
    let ones = embed(&values.ones_like()?)?;
    sub(&add(&all, &ones)?.recip()?, &ones)
}

/// `U`, the singular values from the largest, and the transposed `V`; `full` ones are square.
///
/// # Errors
/// Returns an error if an element is not finite.
pub fn svd(op: &'static str, x: &Tensor, full: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let of = Matrices::of(op, x)?;
    let [all_u, s, all_vh] = of.svd(op, full)?;
    let rank = all_u.rank();
    let k = s.dims()[s.rank() - 1];
    // Gradients run through the vectors that have a singular value.
    let u = view::narrow(&all_u, rank - 1, 0, k)?;
    let vh = view::narrow(&all_vh, rank - 2, 0, k)?;
    // From vectors (columns) and their gradients: the turn within their own span, and the turn out
    // of it.
    let turned = move |own: &Tensor, g: &Tensor, s: &Tensor| -> Result<(Tensor, Tensor)> {
        let inner = matmul(&t(own)?, g)?;
        // As many vectors as dims leave nothing beside their span.
        let apart = match own.dims()[rank - 2] == k {
            true => g.zeros_like()?,
            false => div(&sub(g, &matmul(own, &inner)?)?, &row(s)?)?,
        };
        Ok((mul(&skew(&inner)?, &gaps(&s.sqr()?)?)?, apart))
    };
    let (a, b, c) = (u.clone(), s.clone(), vh.clone());
    let of_u = move |g: &Tensor| {
        let g = view::narrow(g, rank - 1, 0, k)?;
        let (inner, apart) = turned(&a, &g, &b)?;
        let within = mul(&matmul(&a, &inner)?, &row(&b)?)?;
        matmul(&add(&within, &apart)?, &c)
    };
    let (a, b, c) = (u.clone(), s.clone(), vh.clone());
    let of_vh = move |g: &Tensor| {
        let g = t(&view::narrow(g, rank - 2, 0, k)?)?;
        let (inner, apart) = turned(&t(&c)?, &g, &b)?;
        let within = matmul(&mul(&a, &row(&b)?)?, &matmul(&inner, &c)?)?;
        add(&within, &matmul(&a, &t(&apart)?)?)
    };
    let values = s.clone();
    Ok((
        pulled(op, x, &all_u, of_u)?,
        pulled(op, x, &values, move |g| matmul(&mul(&u, &row(g)?)?, &vh))?,
        pulled(op, x, &all_vh, of_vh)?,
    ))
}

/// The eigenvalues of symmetric matrices from the least, and the eigenvectors; one triangle is read.
///
/// # Errors
/// Returns an error if a matrix is not square, or an element is not finite.
pub fn eigh(op: &'static str, x: &Tensor, lower: bool) -> Result<(Tensor, Tensor)> {
    let [values, vectors] = Matrices::square(op, x)?.eigh(op, lower)?;
    let (l, v) = (values.clone(), vectors.clone());
    let of_vectors = move |g: &Tensor| {
        // Vectors only turn: what would change their lengths has no part.
        let turn = skew(&matmul(&t(&v)?, g)?)?.times(0.5)?;
        three(&v, &mul(&turn, &gaps(&l)?)?, &t(&v)?)
    };
    let v = vectors.clone();
    let of_values = move |g: &Tensor| matmul(&mul(&v, &row(g)?)?, &t(&v)?);
    Ok((
        pulled(op, x, &values, of_values)?,
        pulled(op, x, &vectors, of_vectors)?,
    ))
}

/// The limit of singular values that count as zero: the larger of `atol` and `rtol` times the
/// largest.
#[derive(Clone, Copy)]
pub struct Tolerance {
    /// Values no larger than this are zero.
    pub atol: Option<f64>,
    /// The same, relative to the largest one.
    pub rtol: Option<f64>,
}

impl Tolerance {
    /// For singular values `[.., k]`: the inverse of each, or 0 of one that counts as 0, and 1 or 0 for the same.
    fn inverses(self, x: &Tensor, s: &Tensor) -> Result<(Tensor, Vec<Vec<bool>>)> {
        let [.., m, n] = x.dims() else {
            bail!("shape {:?} is not a matrix", x.dims())
        };
        let epsilon = match x.dtype() {
            DType::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        let atol = self.atol.unwrap_or(0.0);
        let rtol = self.rtol.unwrap_or(match atol > 0.0 {
            true => 0.0,
            false => epsilon * *m.max(n) as f64,
        });
        let values = s.contiguous()?.flatten_all()?.to_vec1::<f64>()?;
        let (mut found, mut kept) = (Vec::with_capacity(values.len()), Vec::new());
        for s in values.chunks_exact((*m.min(n)).max(1)) {
            let top = s.iter().fold(0.0f64, |top, s| top.max(s.abs()));
            let least = atol.max(rtol * top);
            let counts: Vec<bool> = s.iter().map(|s| s.abs() > least).collect();
            found.extend(s.iter().zip(&counts).map(|(s, is)| match is {
                true => 1.0 / s,
                false => 0.0,
            }));
            kept.push(counts);
        }
        Ok((Tensor::from_vec(found, s.dims(), s.device())?, kept))
    }
}

/// The gradient of `a` from that of its pseudoinverse `p`.
fn pinv_pull(a: &Tensor, p: &Tensor, g: &Tensor) -> Result<Tensor> {
    let (turned, of) = (t(p)?, t(g)?);
    let within = three(&turned, g, &turned)?;
    let right = matmul(&of, &matmul(p, &turned)?)?;
    let right = sub(&right, &three(a, p, &right)?)?;
    let left = matmul(&matmul(&turned, p)?, &of)?;
    let left = sub(&left, &three(&left, p, a)?)?;
    sub(&add(&right, &left)?, &within)
}

/// The pseudoinverse, of symmetric matrices (`hermitian`) by their eigenvalues.
///
/// # Errors
/// Returns an error if an element is not finite.
pub fn pinv(op: &'static str, x: &Tensor, tolerance: Tolerance, hermitian: bool) -> Result<Tensor> {
    let (of, p) = if hermitian {
        let of = Matrices::square(op, x)?;
        let [l, v] = of.eigh(op, true)?;
        let (inverses, _) = tolerance.inverses(x, &l)?;
        let a = matmul(&mul(&v, &row(&l)?)?, &t(&v)?)?;
        (a, matmul(&mul(&v, &row(&inverses)?)?, &t(&v)?)?)
    } else {
        let of = Matrices::of(op, x)?;
        let [u, s, vh] = of.svd(op, false)?;
        let (inverses, _) = tolerance.inverses(x, &s)?;
        let v = mul(&t(&vh)?, &row(&inverses)?)?;
        (of.tensor()?, matmul(&v, &t(&u)?)?)
    };
    let own = p.clone();
    pulled(op, x, &p, move |g| pinv_pull(&of, &own, g))
}

/// The results of [`lstsq`].
pub struct LeastSquares {
    /// The solutions with the least sums of squares, and of those the shortest.
    pub solution: Tensor,
    /// The rank of each matrix.
    pub ranks: Tensor,
    /// Whether every rank equals the number of columns.
    pub is_full: bool,
    /// The singular values of each matrix.
    pub values: Tensor,
}

/// The `X` for which `a X` is nearest to `b`, for matrices of one batch.
///
/// # Errors
/// Returns an error if the sizes do not fit, or an element is not finite.
pub fn lstsq(op: &'static str, a: &Tensor, b: &Tensor, rcond: Option<f64>) -> Result<LeastSquares> {
    let (left, right) = (Matrices::of(op, a)?, Matrices::of(op, b)?);
    if left.rows != right.rows || left.lead != right.lead {
        bail!(
            "{op}: matrices {:?} and right sides {:?} do not fit",
            a.dims(),
            b.dims()
        )
    }
    let [u, s, vh] = left.svd(op, false)?;
    let tolerance = Tolerance {
        atol: None,
        rtol: rcond,
    };
    let (inverses, kept) = tolerance.inverses(a, &s)?;
    let ranks: Vec<i64> = match s.elem_count() {
        0 => vec![0; left.lead.iter().product()],
        _ => kept
            .iter()
            .map(|kept| kept.iter().filter(|is| **is).count() as i64)
            .collect(),
    };
    let is_full = ranks.iter().all(|rank| *rank == left.columns as i64);
    let p = matmul(&mul(&t(&vh)?, &row(&inverses)?)?, &t(&u)?)?;
    let (a64, b64) = (left.tensor()?, right.tensor()?);
    let y = matmul(&p, &b64)?;
    let solution = pulled_by_two(op, a, b, &y, move |g| {
        let of_p = matmul(g, &t(&b64)?)?;
        Ok((pinv_pull(&a64, &p, &of_p)?, matmul(&t(&p)?, g)?))
    })?;
    Ok(LeastSquares {
        solution,
        ranks: Tensor::from_vec(ranks, left.lead.as_slice(), a.device())?,
        is_full,
        values: s.to_dtype(a.dtype())?,
    })
}

/// The sums of squares of `a x - b`, a number for each column.
///
/// # Errors
/// Returns only candle's errors.
pub fn residuals(a: &Tensor, x: &Tensor, b: &Tensor) -> Result<Tensor> {
    let apart = sub(&matmul(a, x)?, b)?;
    reduce::sum(&apart.sqr()?, &[apart.rank() - 2], false)
}
