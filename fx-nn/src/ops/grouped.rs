//! `grouped_mm`: the rows of one matrix in groups, each times a matrix of its own.

use fx_core::passes::DecomposedCall;
use fx_core::value::DType;
use fx_core::{Error, Result};

use super::cost;
use crate::error::require;
use crate::op;
use crate::tensor::Tensor;

/// The rows of `mat_a` `[T, K]` in groups, each group times a matrix of `mat_b` `[G, K, N]`: `[T, N]`. Group `g` has the rows
/// from `offs[g - 1]` (0 for the first) to `offs[g]`, and may have none: its matrix is not read then.
///
/// The products of a mixture of experts, with a group for each expert. The weights `[G, N, K]` of linear layers are
/// `weight.transpose(1, 2)` here.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], (3, 1))?;
/// let experts = Tensor::from_vec(vec![1.0f32, 10.0, 100.0], (3, 1, 1))?;
/// let ends = Tensor::from_vec(vec![1i64, 1, 3], 3)?.to_dtype(DType::I32)?;
/// assert_eq!(ops::grouped_mm(&x, &experts, &ends)?.to_vec()?, [1.0, 200.0, 300.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the inner sizes or the types differ, or `offs` is not a vector of `G` numbers of `int32` that do not
/// fall and end with `T`. (PyTorch leaves rows after the last offset undefined; its other forms are `bmm` and `mm`.)
#[op(decomposed = rows_by_their_own, cost = |call| cost::rows_by_columns(call, "mat_a"), path = "fx_nn::ops::grouped_mm")]
pub fn grouped_mm(mat_a: &Tensor, mat_b: &Tensor, #[kw] offs: &Tensor) -> Result<Tensor> {
    let op = "grouped_mm";
    let (&[rows, inner], &[groups, inside, width]) = (mat_a.dims()?, mat_b.dims()?) else {
        return Err(Error::msg(format_args!(
            "{op}: `mat_a` must be a matrix of rows and `mat_b` a batch of matrices: they have {:?} and {:?}",
            mat_a.dims()?,
            mat_b.dims()?
        )));
    };
    require(op, inner == inside && mat_a.dtype()? == mat_b.dtype()?)?;
    let ends = ends(op, offs, groups, rows)?;
    let mut products = Vec::new();
    let mut start = 0;
    for (group, end) in ends.into_iter().enumerate() {
        if end > start {
            let rows = mat_a.narrow(0, start as i64, (end - start) as i64)?;
            products.push(super::matmul(&rows, &mat_b.select(0, group as i64)?)?);
        }
        start = end;
    }
    match products.is_empty() {
        true => super::new_zeros(mat_a, (0, width), None),
        false => super::cat(&products, 0),
    }
}

/// Where the groups end.
fn ends(op: &str, offs: &Tensor, groups: usize, rows: usize) -> Result<Vec<usize>> {
    require(op, offs.dtype()? == DType::I32 && offs.dims()? == [groups])?;
    let mut last = 0;
    let end = |end: f64| {
        let end = end as i64;
        let fits = end >= last && end <= rows as i64;
        last = end;
        match usize::try_from(end) {
            Ok(end) if fits => Ok(end),
            _ => Err(Error::msg(format_args!(
                "{op}: `offs` must not fall, and lie between 0 and the {rows} rows"
            ))),
        }
    };
    let ends: Vec<usize> = offs.to_vec()?.into_iter().map(end).collect::<Result<_>>()?;
    match ends.last().copied().unwrap_or(0) == rows {
        true => Ok(ends),
        false => Err(Error::msg(format_args!(
            "{op}: `offs` must end with the number of rows, {rows}"
        ))),
    }
}

/// Each row times the matrix of its group.
fn rows_by_their_own(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, matrices): (Tensor, Tensor) = (call.arg("mat_a")?, call.arg("mat_b")?);
    let ends: Tensor = call.arg("offs")?;
    let rows = Tensor::arange(0, x.size(0)?)?.unsqueeze(1)?;
    let before = rows.ge(&ends.unsqueeze(0)?)?;
    let group = super::sum(&before, 1, false)?;
    let matrices = super::index_select(&matrices, 0, &group)?;
    super::matmul(&x.unsqueeze(1)?, &matrices)?.squeeze(1)
}
