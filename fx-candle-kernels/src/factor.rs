//! Factorisations of matrices by faer, one matrix of a batch at a time; everything is computed in
//! `f64`.

use candle_core::{DType, Device, Result, Tensor, bail};
use faer::linalg::solvers::{DenseSolveCore, PartialPivLu, Solve};
use faer::{MatRef, Side};

use crate::room;

/// A batch of matrices, row by row.
pub struct Matrices {
    /// The sizes of the batch.
    pub lead: Vec<usize>,
    /// The number of rows of each.
    pub rows: usize,
    /// The number of columns of each.
    pub columns: usize,
    data: Vec<f64>,
    device: Device,
}

/// The problem of one matrix, and what to do.
type Found = std::result::Result<(), String>;

/// The error for singular values and eigenvalues that cannot be computed.
const UNSOUND: &str = "the matrix has elements that are not finite, or the iteration did not end: look for them with \
                       isfinite";

impl Matrices {
    /// The matrices in the last two dims of a tensor.
    ///
    /// # Errors
    /// Returns an error if there are fewer than two dims, or the tensor is neither `float32` nor
    /// `float64`.
    pub fn of(op: &str, x: &Tensor) -> Result<Self> {
        let [lead @ .., rows, columns] = x.dims() else {
            bail!(
                "{op}: shape {:?} is not a matrix: two dims at least are needed",
                x.dims()
            )
        };
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            bail!(
                "{op}: matrices are of float32 or float64, not {:?}: convert them with to_dtype",
                x.dtype()
            )
        }
        let data = x.detach().to_dtype(DType::F64)?.contiguous()?;
        Ok(Matrices {
            lead: lead.to_vec(),
            rows: *rows,
            columns: *columns,
            data: data.flatten_all()?.to_vec1()?,
            device: x.device().clone(),
        })
    }

    /// The same, of square matrices.
    ///
    /// # Errors
    /// Also returns an error if the matrices are not square.
    pub fn square(op: &str, x: &Tensor) -> Result<Self> {
        let found = Matrices::of(op, x)?;
        if found.rows != found.columns {
            bail!(
                "{op}: matrices of shape {:?} are not square",
                [found.rows, found.columns]
            )
        }
        Ok(found)
    }

    /// The elements as a tensor of `f64`.
    ///
    /// # Errors
    /// Returns only candle's errors.
    pub fn tensor(&self) -> Result<Tensor> {
        let dims = [self.lead.as_slice(), &[self.rows, self.columns]].concat();
        Tensor::from_vec(self.data.clone(), dims, &self.device)
    }

    fn count(&self) -> usize {
        self.lead.iter().product()
    }

    pub(super) fn matrix(&self, at: usize) -> MatRef<'_, f64> {
        let size = self.rows * self.columns;
        let own = &self.data[at * size..(at + 1) * size];
        MatRef::from_row_major_slice(own, self.rows, self.columns)
    }

    /// `N` results of each matrix, with these sizes after those of the batch; `part` appends each
    /// to its list.
    pub(super) fn each<const N: usize>(
        &self,
        op: &str,
        sizes: [&[usize]; N],
        part: impl Fn(usize, MatRef<'_, f64>, &mut [Vec<f64>; N]) -> Found,
    ) -> Result<[Tensor; N]> {
        let mut lists = [const { Vec::new() }; N];
        for (list, size) in lists.iter_mut().zip(sizes) {
            let dims = [self.lead.as_slice(), size].concat();
            list.reserve_exact(room::of(op, &dims, DType::F64)?);
        }
        for at in 0..self.count() {
            if let Err(why) = part(at, self.matrix(at), &mut lists) {
                match self.lead.is_empty() {
                    true => bail!("{op}: {why}"),
                    false => bail!("{op}: matrix {at} of the batch: {why}"),
                }
            }
        }
        let mut tensors = [const { None }; N];
        for ((tensor, list), size) in tensors.iter_mut().zip(lists).zip(sizes) {
            let dims = [self.lead.as_slice(), size].concat();
            *tensor = Some(Tensor::from_vec(list, dims, &self.device)?);
        }
        Ok(tensors.map(|tensor| tensor.expect("each result was made")))
    }

    /// The inverses.
    ///
    /// # Errors
    /// Returns an error if a matrix is singular.
    pub fn inverse(&self, op: &str) -> Result<Tensor> {
        let size = [self.rows, self.columns];
        let [y] = self.each(op, [&size], |_, a, [y]| {
            let lu = a.partial_piv_lu();
            regular(&lu)?;
            put(y, lu.inverse().as_ref());
            Ok(())
        })?;
        Ok(y)
    }

    /// The inverses, of which those of singular matrices are infinities.
    ///
    /// # Errors
    /// Returns only candle's errors.
    pub fn inverse_or_infinite(&self, op: &str) -> Result<Tensor> {
        let size = [self.rows, self.columns];
        let [y] = self.each(op, [&size], |_, a, [y]| {
            let lu = a.partial_piv_lu();
            match regular(&lu) {
                Ok(()) => put(y, lu.inverse().as_ref()),
                Err(_) => y.extend(std::iter::repeat_n(f64::INFINITY, size[0] * size[1])),
            }
            Ok(())
        })?;
        Ok(y)
    }

    /// The solutions for each of `right`, of the same batch.
    ///
    /// # Errors
    /// Returns an error if a matrix is singular.
    pub fn solve(&self, op: &str, right: &Matrices) -> Result<Tensor> {
        let size = [self.columns, right.columns];
        let [y] = self.each(op, [&size], |at, a, [y]| {
            let lu = a.partial_piv_lu();
            regular(&lu)?;
            put(y, lu.solve(right.matrix(at)).as_ref());
            Ok(())
        })?;
        Ok(y)
    }

    /// The determinants, their signs and the logarithms of their magnitudes.
    ///
    /// # Errors
    /// Returns only candle's errors.
    pub fn determinant(&self, op: &str) -> Result<[Tensor; 3]> {
        self.each(op, [&[], &[], &[]], |at, a, [det, sign, log]| {
            let size = self.rows * self.columns;
            let is_finite = self.data[at * size..(at + 1) * size]
                .iter()
                .all(|x| x.is_finite());
            let (all, is_turned) = match is_finite {
                true => {
                    let lu = a.partial_piv_lu();
                    let all = pivots(&lu);
                    // After a pivot of 0 there may be NaN.
                    let all = if all.contains(&0.0) { vec![0.0] } else { all };
                    (all, !is_even(lu.P().arrays().0))
                }
                false => eliminated(a),
            };
            let turned = if is_turned { -1.0 } else { 1.0 };
            let of = |pivot: &f64| match pivot.is_nan() || *pivot == 0.0 {
                true => 0.0,
                false => pivot.signum(),
            };
            det.push(all.iter().fold(turned, |y, pivot| y * pivot));
            sign.push(all.iter().fold(turned, |y, pivot| y * of(pivot)));
            log.push(all.iter().map(|pivot| pivot.abs().ln()).sum());
            Ok(())
        })
    }

    /// The lower triangular Cholesky factors; only the lower triangles are read.
    ///
    /// # Errors
    /// Returns an error if a matrix is not positive definite.
    pub fn cholesky(&self, op: &str) -> Result<Tensor> {
        let size = [self.rows, self.columns];
        let [y] = self.each(op, [&size], |_, a, [y]| {
            use faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot;
            let of = a.llt(Side::Lower).map_err(|NonPositivePivot { index }| {
                format!(
                    "the matrix is not positive definite, its leading minor of order {} is not positive: eigh takes any \
                     symmetric one",
                    index + 1
                )
            })?;
            put(y, of.L());
            Ok(())
        })?;
        Ok(y)
    }

    /// The orthogonal and triangular factors; `complete` ones are square and as large as the matrix.
    ///
    /// # Errors
    /// Returns an error if they do not fit into memory.
    pub fn qr(&self, op: &str, complete: bool) -> Result<[Tensor; 2]> {
        let (m, n) = (self.rows, self.columns);
        let k = if complete { m } else { m.min(n) };
        self.each(op, [&[m, k], &[k, n]], |_, a, [q, r]| {
            let of = a.qr();
            match complete {
                true => {
                    put(q, of.compute_Q().as_ref());
                    // faer keeps the reflections below the diagonal.
                    put_from(r, k, n, |i, j| if i <= j { of.R()[(i, j)] } else { 0.0 });
                }
                false => {
                    put(q, of.compute_thin_Q().as_ref());
                    put_from(
                        r,
                        k,
                        n,
                        |i, j| {
                            if i <= j { of.thin_R()[(i, j)] } else { 0.0 }
                        },
                    );
                }
            }
            Ok(())
        })
    }

    /// `U`, the singular values from the largest, and the transposed `V`; `full` ones are square.
    ///
    /// # Errors
    /// Returns an error if an element is not finite.
    pub fn svd(&self, op: &str, full: bool) -> Result<[Tensor; 3]> {
        let (m, n) = (self.rows, self.columns);
        let k = m.min(n);
        let (left, right) = if full { (m, n) } else { (k, k) };
        let sizes: [&[usize]; 3] = [&[m, left], &[k], &[right, n]];
        self.each(op, sizes, |_, a, [u, s, vh]| {
            finite(a)?;
            let of = if full { a.svd() } else { a.thin_svd() };
            let of = of.map_err(|_| UNSOUND.to_string())?;
            put(u, of.U());
            s.extend(of.S().column_vector().iter());
            put(vh, of.V().transpose());
            Ok(())
        })
    }

    /// The eigenvalues of symmetric matrices from the least, and the eigenvectors; only one
    /// triangle is read.
    ///
    /// # Errors
    /// Returns an error if an element is not finite.
    pub fn eigh(&self, op: &str, lower: bool) -> Result<[Tensor; 2]> {
        let n = self.rows;
        self.each(op, [&[n], &[n, n]], |_, a, [values, vectors]| {
            // faer counts rows below the first one.
            if n == 0 {
                return Ok(());
            }
            finite(a)?;
            // faer reads the lower triangle; the upper one is the lower one of the transpose.
            let a = if lower { a } else { a.transpose() };
            let of = a
                .self_adjoint_eigen(Side::Lower)
                .map_err(|_| UNSOUND.to_string())?;
            values.extend(of.S().column_vector().iter());
            put(vectors, of.U());
            Ok(())
        })
    }
}

pub(super) fn put_from(
    list: &mut Vec<f64>,
    rows: usize,
    columns: usize,
    at: impl Fn(usize, usize) -> f64,
) {
    for i in 0..rows {
        list.extend((0..columns).map(|j| at(i, j)));
    }
}

pub(super) fn put(list: &mut Vec<f64>, a: MatRef<'_, f64>) {
    put_from(list, a.nrows(), a.ncols(), |i, j| a[(i, j)]);
}

fn finite(a: MatRef<'_, f64>) -> Found {
    match a.is_all_finite() {
        true => Ok(()),
        false => Err(UNSOUND.to_string()),
    }
}

fn pivots(lu: &PartialPivLu<f64>) -> Vec<f64> {
    let u = lu.U();
    (0..u.nrows()).map(|i| u[(i, i)]).collect()
}

/// The pivots of a matrix with numbers that are not finite, and whether an odd number of rows was exchanged. A column
/// of zeros alone is left as it is, so that no 0 is divided by 0.
fn eliminated(a: MatRef<'_, f64>) -> (Vec<f64>, bool) {
    let mut a = a.to_owned();
    let (size, mut is_turned) = (a.nrows(), false);
    for at in 0..size {
        let largest = (at..size).fold(at, |most, row| {
            match a[(row, at)].abs() > a[(most, at)].abs() {
                true => row,
                false => most,
            }
        });
        if a[(largest, at)] == 0.0 {
            continue;
        }
        is_turned ^= largest != at;
        for column in 0..size {
            let upper = a[(at, column)];
            a[(at, column)] = a[(largest, column)];
            a[(largest, column)] = upper;
        }
        for row in at + 1..size {
            let factor = a[(row, at)] / a[(at, at)];
            for column in at + 1..size {
                let part = factor * a[(at, column)];
                a[(row, column)] -= part;
            }
        }
    }
    ((0..size).map(|at| a[(at, at)]).collect(), is_turned)
}

fn regular(lu: &PartialPivLu<f64>) -> Found {
    match pivots(lu).iter().position(|pivot| *pivot == 0.0) {
        None => Ok(()),
        Some(at) => Err(format!(
            "the matrix is singular, pivot {at} is 0: pinv and lstsq take any"
        )),
    }
}

/// Whether a permutation is made of an even number of exchanges.
fn is_even(permutation: &[usize]) -> bool {
    let mut seen = vec![false; permutation.len()];
    let mut even = true;
    for start in 0..permutation.len() {
        let mut at = start;
        let mut length = 0usize;
        while !std::mem::replace(&mut seen[at], true) {
            at = permutation[at];
            length += 1;
        }
        even ^= length > 0 && length.is_multiple_of(2);
    }
    even
}
