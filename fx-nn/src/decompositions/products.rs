//! Products of matrices, by `matmul`.

use fx_core::ir::ValueMeta;
use fx_core::passes::DecomposedCall;
use fx_core::{Error, Result};

use super::{Wide, decompose, times};
use crate::ops;
use crate::tensor::{Number, Tensor};

decompose! {
    ops::mm(x: Tensor, mat2: Tensor) => ops::matmul(&x, &mat2);
    ops::bmm(x: Tensor, mat2: Tensor) => ops::matmul(&x, &mat2);
    ops::mv(x: Tensor, vec: Tensor) => ops::matmul(&x, &vec);
    ops::dot(x: Tensor, tensor: Tensor) => ops::matmul(&x, &tensor);
    ops::vdot(x: Tensor, other: Tensor) => ops::matmul(&x, &other);
    ops::outer(x: Tensor, vec2: Tensor) => outer(&x, &vec2);
    ops::ger(x: Tensor, vec2: Tensor) => outer(&x, &vec2);
    ops::addmm(x: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) |call| =>
        plus(call, &x, [("mat1", &mat1), ("mat2", &mat2)], ops::matmul, beta, alpha);
    ops::addmv(x: Tensor, mat: Tensor, vec: Tensor, beta: Number, alpha: Number) |call| =>
        plus(call, &x, [("mat", &mat), ("vec", &vec)], ops::matmul, beta, alpha);
    ops::addr(x: Tensor, vec1: Tensor, vec2: Tensor, beta: Number, alpha: Number) |call| =>
        plus(call, &x, [("vec1", &vec1), ("vec2", &vec2)], outer, beta, alpha);
    ops::baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, beta: Number, alpha: Number) |call| =>
        plus(call, &x, [("batch1", &batch1), ("batch2", &batch2)], ops::matmul, beta, alpha);
    ops::addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, beta: Number, alpha: Number) |call| => {
        let product = |a: &Tensor, b: &Tensor| summed(&ops::matmul(a, b)?);
        plus(call, &x, [("batch1", &batch1), ("batch2", &batch2)], product, beta, alpha)
    };
    ops::chain_matmul(matrices: Vec<Tensor>) |call| => chained(&matrices, call.meta("matrices"));
    ops::multi_dot(tensors: Vec<Tensor>) |call| => chained(&tensors, call.meta("tensors"));
}

fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ops::unsqueeze(a, 1)? * ops::unsqueeze(b, 0)?
}

/// The sum over the first dim, of the same type: small integers stay small.
fn summed(products: &Tensor) -> Result<Tensor> {
    ops::type_as(&ops::sum(products, 0, false)?, products)
}

/// `beta x + alpha product`; x is not read where `beta` is 0. A product of halves may be beyond the largest one where the
/// sum is not.
fn plus(
    call: &DecomposedCall<'_>,
    x: &Tensor,
    [(first, a), (second, b)]: [(&str, &Tensor); 2],
    product: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
    beta: Number,
    alpha: Number,
) -> Result<Tensor> {
    let wide = Wide::of(call, &["x", first, second]);
    let product = times(&product(&wide.up(a)?, &wide.up(b)?)?, alpha)?;
    wide.down(&match beta.as_f64() == 0.0 {
        true => product,
        false => (times(&wide.up(x)?, beta)? + product)?,
    })
}

/// The product of all matrices, in the function's order where their sizes are known.
fn chained(matrices: &[Tensor], metas: Option<&ValueMeta>) -> Result<Tensor> {
    if matrices.len() > 1
        && let Some(sizes) = metas.and_then(sizes)
    {
        return ops::in_cheapest_order(matrices, &sizes);
    }
    let (first, others) = matrices
        .split_first()
        .ok_or_else(|| Error::msg("there is no matrix to multiply"))?;
    others
        .iter()
        .try_fold(first.clone(), |product, next| ops::matmul(&product, next))
}

/// The rows of each matrix, and the columns of the last one; the first may be a row, the last a column.
fn sizes(metas: &ValueMeta) -> Option<Vec<f64>> {
    let items = metas.items()?;
    let shapes = items.iter().map(|meta| {
        let sizes = meta
            .tensor()?
            .shape
            .iter()
            .map(|dim| Some(dim.as_known()? as f64));
        sizes.collect::<Option<Vec<f64>>>()
    });
    let shapes: Vec<Vec<f64>> = shapes.collect::<Option<_>>()?;
    let rows = shapes
        .iter()
        .enumerate()
        .map(|(at, shape)| match shape[..] {
            [_] if at == 0 => Some(1.0),
            [rows, ..] => Some(rows),
            [] => None,
        });
    let columns = shapes
        .last()
        .map(|shape| shape.get(1).copied().unwrap_or(1.0));
    rows.chain([columns]).collect()
}
