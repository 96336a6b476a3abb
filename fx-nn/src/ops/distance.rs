//! Distances between vectors, row by row and of all pairs.

use crate::op;
use fx_core::Result;

use super::margins::of_floats;
use crate::error::{Fx, require, unfit};
use crate::kernels::loss::Reduction;
use crate::kernels::{dim, distance as kernels};
use crate::tensor::Tensor;

/// The distance of each row of `x1` `[.., P, M]` from each of `x2` `[.., R, M]`, by the norm `p`: `[.., P, R]`.
///
/// `compute_mode` decides when Euclidean distances are computed by a product of matrices, which is
/// faster and less exact: `"use_mm_for_euclid_dist_if_necessary"` (above 25 rows),
/// `"use_mm_for_euclid_dist"` or `"donot_use_mm_for_euclid_dist"`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::zeros((1, 2))?, Tensor::from_vec(vec![3.0f32, 4.0], (1, 2))?);
/// let mode = "use_mm_for_euclid_dist_if_necessary";
/// assert_eq!(ops::cdist(&a, &b, 2.0, mode)?.to_vec()?, [5.0]);
/// assert_eq!(ops::cdist(&a, &b, 1.0, mode)?.to_vec()?, [7.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, `p` is below 0, or the tensors are not floats of one
/// type.
#[op(member, path = "fx_nn::ops::cdist")]
pub fn cdist(
    x1: &Tensor,
    x2: &Tensor,
    #[default(2.0)] p: f64,
    #[default("use_mm_for_euclid_dist_if_necessary")] compute_mode: &str,
) -> Result<Tensor> {
    let op = "cdist";
    let (a, b) = (x1.data(op)?, x2.data(op)?);
    kernels::floats(op, a)
        .and_then(|()| dim::same_dtype(op, a, b))
        .fx()?;
    require(op, p >= 0.0)?;
    let products = match compute_mode {
        "use_mm_for_euclid_dist_if_necessary" => None,
        "use_mm_for_euclid_dist" => Some(true),
        "donot_use_mm_for_euclid_dist" => Some(false),
        _ => return Err(unfit(op)),
    };
    crate::kernels::widen::widened(a, (a, b), |(a, b)| kernels::pairs(op, &a, &b, p, products))
        .map(Tensor::made)
        .fx()
}

/// The length of x1 - x2 + `eps` along the last dim, by the norm `p`; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(path = "fx_nn::ops::pairwise_distance")]
pub fn pairwise_distance(
    x1: &Tensor,
    x2: &Tensor,
    #[default(2.0)] p: f64,
    #[default(1e-6)] eps: f64,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    let op = "pairwise_distance";
    of_floats(op, [x1, x2], Reduction::None, |[a, b]| {
        kernels::along_rows(op, &a, &b, p, eps, keepdim)
    })
}
