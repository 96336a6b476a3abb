//! Shapes: asking for them, and putting tensors together.

use fx_core::{Int, Result, wrap};

use crate::error::Fx;
use crate::kernels::{dim, shape};
use crate::tensor::Tensor;

/// Dims `start_dim` to `end_dim` as one.
///
/// # Errors
/// When there are no such dims, or `start_dim` comes after `end_dim`.
#[wrap(method, path = "fx_nn::ops::flatten")]
pub fn flatten(
    x: &Tensor,
    #[default(0)] start_dim: i64,
    #[default(-1)] end_dim: i64,
) -> Result<Tensor> {
    shape::flatten(x.data("flatten")?, start_dim, end_dim)
        .map(|data| like(x, data))
        .fx()
}

/// The size of a dim.
///
/// # Errors
/// When there is no such dim.
#[wrap(method = custom, path = "fx_nn::ops::size")]
pub fn size(x: &Tensor, dim: i64) -> Result<Int> {
    let data = x.data("size")?;
    let at = dim::dim("size", dim, data.rank()).fx()?;
    Ok(data.dims().get(at).copied().unwrap_or(0).into())
}

/// Tensors one after another along a dim that they have.
///
/// # Errors
/// When there are none, or their other sizes differ.
#[wrap(path = "fx_nn::ops::cat")]
pub fn cat(
    tensors: &[Tensor],
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<Tensor> {
    joined("cat", tensors, |data| shape::cat(data, dim))
}

/// Tensors of one shape along a new dim.
///
/// # Errors
/// When there are none, or their shapes differ.
#[wrap(path = "fx_nn::ops::stack")]
pub fn stack(
    tensors: &[Tensor],
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<Tensor> {
    joined("stack", tensors, |data| shape::stack(data, dim))
}

fn joined(
    what: &str,
    tensors: &[Tensor],
    join: impl FnOnce(&[candle_core::Tensor]) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    let common = tensors
        .iter()
        .map(Tensor::dtype)
        .reduce(|a, b| Ok(a?.promote(b?)));
    let Some(common) = common else {
        return Err(fx_core::Error::msg(format_args!(
            "{what}: the list of tensors is empty"
        )));
    };
    let common = common?;
    let data = tensors
        .iter()
        .map(|t| t.to_dtype(common)?.data(what).cloned())
        .collect::<Result<Vec<_>>>()?;
    let result = join(&data).fx()?;
    Ok(if common == fx_core::DType::Bool {
        Tensor::from_bools(result)
    } else {
        result.into()
    })
}

/// A result of the operand's element type.
fn like(x: &Tensor, data: candle_core::Tensor) -> Tensor {
    if x.is_bool() {
        Tensor::from_bools(data)
    } else {
        data.into()
    }
}
