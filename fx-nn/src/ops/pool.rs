//! Pooling over windows.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require};
use crate::tensor::{Pair, Tensor};
use crate::{kernels, room};

/// The maximum of each window of `x` `[N, C, H, W]` (or `[C, H, W]`); padding counts as minus infinity.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool2d")]
pub fn max_pool2d(
    x: &Tensor,
    kernel_size: impl Into<Pair>,
    stride: impl Into<Pair>,
    padding: impl Into<Pair>,
    dilation: impl Into<Pair>,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<Tensor> {
    require("max_pool2d", !x.is_bool())?;
    kernels::max_pool::max_pool2d(
        x.data("max_pool2d")?,
        kernel_size.tuple(),
        stride.tuple(),
        padding.tuple(),
        dilation.tuple(),
        ceil_mode,
    )
    .map(Tensor::made)
    .fx()
}

/// The average of windows that divide `x` `[N, C, H, W]` (or `[C, H, W]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_avg_pool2d")]
pub fn adaptive_avg_pool2d(x: &Tensor, output_size: impl Into<Pair>) -> Result<Tensor> {
    let data = x.data("adaptive_avg_pool2d")?;
    let (rows, columns) = output_size.tuple();
    let images: usize = data.dims().iter().rev().skip(2).product();
    room::of(
        "adaptive_avg_pool2d",
        &[images, rows, columns],
        data.dtype(),
    )
    .and_then(|_| kernels::avg_pool::adaptive_avg_pool2d(data, (rows, columns)))
    .map(Tensor::made)
    .fx()
}

/// The average of each window of `x` `[N, C, H, W]` (or `[C, H, W]`); padding counts as zeros where
/// `count_include_pad`.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::avg_pool2d")]
pub fn avg_pool2d(
    x: &Tensor,
    kernel_size: impl Into<Pair>,
    stride: impl Into<Pair>,
    padding: impl Into<Pair>,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
    #[kw]
    #[default(true)]
    count_include_pad: bool,
) -> Result<Tensor> {
    kernels::avg_pool::avg_pool2d(
        x.data("avg_pool2d")?,
        kernel_size.tuple(),
        stride.tuple(),
        padding.tuple(),
        ceil_mode,
        count_include_pad,
    )
    .map(Tensor::made)
    .fx()
}
