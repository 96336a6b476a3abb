//! Factors of matrices whose signs are free: what is compared are products of them.

use fx_nn::ops::linalg;
use fx_nn::prelude::*;

fn turned(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

/// The singular values, the product of all parts, and the products of the vectors.
pub(crate) fn svd(x: &Tensor, full: bool) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let (u, s, vh) = linalg::svd(x, full)?;
    let k = s.size(-1)?;
    let left = u.narrow(-1, 0, k)? * s.unsqueeze(-2)?;
    let again = left?.matmul(&vh.narrow(-2, 0, k)?)?;
    let (of_u, of_v) = (turned(&u)?.matmul(&u)?, vh.matmul(&turned(&vh)?)?);
    Ok((s, again, of_u, of_v))
}

/// The eigenvalues, the product of all parts, and the product of the vectors.
pub(crate) fn eigh(x: &Tensor, uplo: &str) -> Result<(Tensor, Tensor, Tensor)> {
    let (values, vectors) = linalg::eigh(x, uplo)?;
    let again = (&vectors * values.unsqueeze(-2)?)?.matmul(&turned(&vectors)?)?;
    let square = turned(&vectors)?.matmul(&vectors)?;
    Ok((values, again, square))
}
