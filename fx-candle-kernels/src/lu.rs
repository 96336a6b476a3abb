//! Matrices as products of triangles, equations with triangles, and the exponential of matrices, with gradients:
//! everything is computed in `f64`.

use candle_core::{DType, Result, Tensor, bail};
use faer::MatRef;

use super::binary::{add, sub};
use super::factor::{Matrices, put, put_from};
use super::matmul::matmul;
use super::pulled::{pulled, pulled_by_two};
use super::select::triangle;
use super::view;

/// The transposed matrices.
fn t(x: &Tensor) -> Result<Tensor> {
    x.transpose(x.rank() - 2, x.rank() - 1)
}

/// How equations with a triangle are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triangle {
    /// The upper triangle, else the lower one.
    pub upper: bool,
    /// The diagonal counts as ones.
    pub unit: bool,
}

impl Triangle {
    fn turned(self) -> Triangle {
        Triangle {
            upper: !self.upper,
            ..self
        }
    }

    /// What is read of matrices.
    fn part(self, op: &str, x: &Tensor) -> Result<Tensor> {
        let without = i64::from(self.unit);
        match self.upper {
            true => triangle(op, x, without, false),
            false => triangle(op, x, -without, true),
        }
    }

    /// `X` of `a X = b` for one triangle.
    fn solve(self, a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Vec<f64> {
        let (n, k) = (b.nrows(), b.ncols());
        let mut x = Vec::with_capacity(n * k);
        put(&mut x, b);
        let order: Box<dyn Iterator<Item = usize>> = match self.upper {
            true => Box::new((0..n).rev()),
            false => Box::new(0..n),
        };
        for row in order {
            let known = if self.upper { row + 1..n } else { 0..row };
            for other in known {
                let factor = a[(row, other)];
                for column in 0..k {
                    x[row * k + column] -= factor * x[other * k + column];
                }
            }
            if !self.unit {
                for column in 0..k {
                    x[row * k + column] /= a[(row, row)];
                }
            }
        }
        x
    }
}

/// `X` of `a X = b`, of triangles of one batch; a 0 on the diagonal gives infinities and NaN.
///
/// # Errors
/// Returns an error if the sizes do not fit.
pub fn solve_triangular(op: &'static str, a: &Tensor, b: &Tensor, of: Triangle) -> Result<Tensor> {
    let (left, right) = (Matrices::square(op, a)?, Matrices::of(op, b)?);
    if left.rows != right.rows || left.lead != right.lead {
        bail!(
            "{op}: triangles {:?} and right sides {:?} do not fit",
            a.dims(),
            b.dims()
        )
    }
    let y = solved(op, &left, &right, of)?;
    let (turned, own) = (t(&left.tensor()?)?, y.clone());
    pulled_by_two(op, a, b, &y, move |g| {
        let (left, right) = (Matrices::square(op, &turned)?, Matrices::of(op, g)?);
        let of_b = solved(op, &left, &right, of.turned())?;
        let of_a = of.part(op, &matmul(&of_b, &t(&own)?)?.neg()?)?;
        Ok((of_a, of_b))
    })
}

fn solved(op: &str, a: &Matrices, b: &Matrices, of: Triangle) -> Result<Tensor> {
    let [y] = a.each(op, [&[b.rows, b.columns]], |at, a, [y]| {
        y.extend(of.solve(a, b.matrix(at)));
        Ok(())
    })?;
    Ok(y)
}

/// Both triangles in one matrix, and the row, from 1, that each row was exchanged with: of each column the largest
/// element is the pivot.
fn eliminated(a: MatRef<'_, f64>) -> (Vec<f64>, Vec<f64>) {
    let (m, n) = (a.nrows(), a.ncols());
    let mut all = Vec::with_capacity(m * n);
    put(&mut all, a);
    let mut pivots = Vec::with_capacity(m.min(n));
    for at in 0..m.min(n) {
        let largest = (at + 1..m).fold(at, |most, row| {
            match all[row * n + at].abs() > all[most * n + at].abs() {
                true => row,
                false => most,
            }
        });
        pivots.push((largest + 1) as f64);
        if largest != at {
            for column in 0..n {
                all.swap(at * n + column, largest * n + column);
            }
        }
        let pivot = all[at * n + at];
        if pivot == 0.0 {
            continue;
        }
        let (above, below) = all.split_at_mut((at + 1) * n);
        let own = &above[at * n..];
        for row in below.chunks_exact_mut(n) {
            row[at] /= pivot;
            let factor = row[at];
            for (x, own) in row[at + 1..].iter_mut().zip(&own[at + 1..]) {
                *x -= factor * own;
            }
        }
    }
    (all, pivots)
}

/// `L` below the diagonal and `U` on and above it, with `P L U` the matrix, and the exchanged rows as `int32`, from 1.
///
/// # Errors
/// Returns an error if the tensor is neither `float32` nor `float64`.
pub fn lu_factor(op: &'static str, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let of = Matrices::of(op, x)?;
    let (m, n) = (of.rows, of.columns);
    let [both, pivots] = of.each(op, [&[m, n], &[m.min(n)]], |_, a, [both, pivots]| {
        let (all, rows) = eliminated(a);
        both.extend(all);
        pivots.extend(rows);
        Ok(())
    })?;
    let (own, rows) = (both.clone(), pivots.clone());
    let both = pulled(op, x, &both, move |g| {
        let [p, l, u] = parts(op, &own, &rows)?;
        let k = m.min(n);
        let of_l = triangle(op, &view::narrow(g, g.rank() - 1, 0, k)?, -1, true)?;
        let of_u = triangle(op, &view::narrow(g, g.rank() - 2, 0, k)?, 0, false)?;
        factor_pull(op, [&p, &l, &u], &of_l, &of_u)
    })?;
    Ok((both, pivots.to_dtype(DType::I32)?))
}

/// The gradient of a matrix from those of its triangles.
fn factor_pull(
    op: &'static str,
    [p, l, u]: [&Tensor; 3],
    of_l: &Tensor,
    of_u: &Tensor,
) -> Result<Tensor> {
    let (rows, columns) = (l.rank() - 2, l.rank() - 1);
    let (m, n, k) = (l.dims()[rows], u.dims()[columns], l.dims()[columns]);
    let (square_l, square_u) = (
        view::narrow(l, rows, 0, k)?,
        view::narrow(u, columns, 0, k)?,
    );
    let mut below = matmul(&t(&square_l)?, &view::narrow(of_l, rows, 0, k)?)?;
    let mut above = matmul(&view::narrow(of_u, columns, 0, k)?, &t(&square_u)?)?;
    // `X` of `Lᵀ X = g`, and of `X Uᵀ = g`, which is the transpose of that of `U Xᵀ = gᵀ`.
    let is_upper = |unit: bool| Triangle { upper: true, unit };
    let by_l = |g: &Tensor| solve_triangular(op, &t(&square_l)?, g, is_upper(true));
    let by_u = |g: &Tensor| t(&solve_triangular(op, &square_u, &t(g)?, is_upper(false))?);
    if n > k {
        let rest = view::narrow(of_u, columns, k, n - k)?;
        below = sub(
            &below,
            &matmul(&rest, &t(&view::narrow(u, columns, k, n - k)?)?)?,
        )?;
    }
    if m > k {
        let rest = view::narrow(of_l, rows, k, m - k)?;
        above = sub(
            &above,
            &matmul(&t(&view::narrow(l, rows, k, m - k)?)?, &rest)?,
        )?;
    }
    let inner = add(
        &triangle(op, &below, -1, true)?,
        &triangle(op, &above, 0, false)?,
    )?;
    let mut all = by_u(&by_l(&inner)?)?;
    if n > k {
        let rest = by_l(&view::narrow(of_u, columns, k, n - k)?)?;
        all = Tensor::cat(&[&all, &rest], columns)?;
    }
    if m > k {
        let rest = by_u(&view::narrow(of_l, rows, k, m - k)?)?;
        all = Tensor::cat(&[&all, &rest], rows)?;
    }
    matmul(p, &all)
}

/// `P`, `L` and `U` of both triangles in one matrix and of exchanged rows, as `f64`.
fn parts(op: &str, both: &Tensor, pivots: &Tensor) -> Result<[Tensor; 3]> {
    let of = Matrices::of(op, both)?;
    let rows = Matrices::of(op, &pivots.to_dtype(DType::F64)?.unsqueeze(pivots.rank())?)?;
    let (m, n) = (of.rows, of.columns);
    let k = m.min(n);
    if rows.rows != k || rows.lead != of.lead {
        bail!(
            "{op}: pivots {:?} do not fit matrices {:?}",
            pivots.dims(),
            both.dims()
        )
    }
    of.each(op, [&[m, m], &[m, k], &[k, n]], |at, a, [p, l, u]| {
        let mut order: Vec<usize> = (0..m).collect();
        let rows = rows.matrix(at);
        for own in 0..k {
            let row = rows[(own, 0)];
            if row < 1.0 || row > m as f64 {
                return Err(format!("pivot {row} is no row, which are 1 to {m}"));
            }
            order.swap(own, row as usize - 1);
        }
        put_from(p, m, m, |i, j| f64::from(u8::from(order[j] == i)));
        put_from(l, m, k, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => a[(i, j)],
        });
        put_from(u, k, n, |i, j| if i <= j { a[(i, j)] } else { 0.0 });
        Ok(())
    })
}

/// The permutation `P`, `L` and `U` of what [`lu_factor`] gives, in the type of `both`.
///
/// # Errors
/// Returns an error if the sizes do not fit, or a pivot is no row.
pub fn lu_unpack(op: &'static str, both: &Tensor, pivots: &Tensor) -> Result<[Tensor; 3]> {
    let [p, l, u] = parts(op, both, pivots)?;
    let [.., m, n] = both.dims() else {
        bail!("{op}: shape {:?} is not a matrix", both.dims())
    };
    let (m, n) = (*m, *n);
    let zeros = move |like: &Tensor, dim: usize, size: usize| {
        let mut dims = like.dims().to_vec();
        let at = dims.len() - dim;
        dims[at] = size;
        Tensor::zeros(dims, like.dtype(), like.device())
    };
    let l = pulled(op, both, &l, move |g| {
        let own = triangle(op, g, -1, true)?;
        match n > m {
            true => Tensor::cat(&[&own, &zeros(g, 1, n - m)?], g.rank() - 1),
            false => Ok(own),
        }
    })?;
    let u = pulled(op, both, &u, move |g| {
        let own = triangle(op, g, 0, false)?;
        match m > n {
            true => Tensor::cat(&[&own, &zeros(g, 2, m - n)?], g.rank() - 2),
            false => Ok(own),
        }
    })?;
    Ok([p.to_dtype(both.dtype())?, l, u])
}

/// `exp(a)` of one matrix: by its series, of a part whose norm is at most 1/2, squared again and again.
fn exponential(a: MatRef<'_, f64>) -> Vec<f64> {
    /// Terms of the series: the next one is below the last digit.
    const TERMS: u32 = 16;
    let n = a.nrows();
    let column = |j: usize| (0..n).map(|i| a[(i, j)].abs()).sum::<f64>();
    let norm = (0..n).map(column).fold(0.0, f64::max);
    if !a.is_all_finite() || !norm.is_finite() {
        return vec![f64::NAN; n * n];
    }
    let halvings = (norm / 0.5).log2().ceil().max(0.0) as i32;
    let scale = 2f64.powi(-halvings);
    let small = faer::Mat::from_fn(n, n, |i, j| a[(i, j)] * scale);
    let one = faer::Mat::<f64>::identity(n, n);
    let mut y = one.clone();
    for k in (1..=TERMS).rev() {
        let next = &small * &y;
        let k = f64::from(k);
        y = faer::Mat::from_fn(n, n, |i, j| one[(i, j)] + next[(i, j)] / k);
    }
    for _ in 0..halvings {
        y = &y * &y;
    }
    let mut list = Vec::with_capacity(n * n);
    put(&mut list, y.as_ref());
    list
}

/// The exponential of each matrix.
///
/// # Errors
/// Returns an error if a matrix is not square.
pub fn matrix_exp(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let of = Matrices::square(op, x)?;
    let y = exponentials(op, &of)?;
    let turned = t(&of.tensor()?)?;
    pulled(op, x, &y, move |g| {
        // That of the block matrix [[aᵀ, g], [0, aᵀ]] has the gradient in its corner.
        let n = turned.dims()[turned.rank() - 1];
        let columns = turned.rank() - 1;
        let above = Tensor::cat(&[&turned, g], columns)?;
        let below = Tensor::cat(&[&turned.zeros_like()?, &turned], columns)?;
        let both = Tensor::cat(&[&above, &below], columns - 1)?;
        let both = exponentials(op, &Matrices::square(op, &both)?)?;
        view::narrow(&view::narrow(&both, columns - 1, 0, n)?, columns, n, n)
    })
}

fn exponentials(op: &str, of: &Matrices) -> Result<Tensor> {
    let [y] = of.each(op, [&[of.rows, of.columns]], |_, a, [y]| {
        y.extend(exponential(a));
        Ok(())
    })?;
    Ok(y)
}

/// Refuses factors with a 0 on the diagonal of `U`.
///
/// # Errors
/// Returns an error if there is one.
pub fn regular(op: &str, both: &Tensor) -> Result<()> {
    let of = Matrices::of(op, both)?;
    of.each(op, [], |_, a, []| {
        let count = a.nrows().min(a.ncols());
        match (0..count).find(|at| a[(*at, *at)] == 0.0) {
            None => Ok(()),
            Some(at) => Err(format!(
                "the matrix is singular, pivot {at} is 0: lu gives the factors of any"
            )),
        }
    })?;
    Ok(())
}
