//! Reductions over dims: `..` for all of them.

use crate::op;
use fx_core::Result;
use fx_core::ir::{Argument, Written, WrittenArg};
use fx_core::value::Int;

use super::create::count;
use crate::error::{Fx, require};
use crate::kernels;
use crate::kernels::reduce::{Side, Spread};
use crate::tensor::{Dims, Tensor};

/// How a reduction's method is written: by one of two names, `..` for all dims.
fn written([name, keeping]: [&'static str; 2], args: &[Argument]) -> Option<Written> {
    let (Argument::Bool(keepdim), rest) = args.split_last()? else {
        return None;
    };
    let args = rest.iter().enumerate().skip(1).map(|(at, arg)| match arg {
        Argument::None => WrittenArg::Text(".."),
        _ => WrittenArg::Of(at),
    });
    Some(Written::new(if *keepdim { keeping } else { name }, args))
}

/// The sum over `dim`; of truth values and integers as `int64`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(reduce, member, method = custom, path = "fx_nn::ops::sum", written = |args| written(["sum", "sum_keepdim"], args))]
pub fn sum(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data("sum")?;
    let dims = reduced("sum", &dim, data)?;
    kernels::reduce::sum(data, &dims, keepdim)
        .map(Tensor::made)
        .fx()
}

/// The mean over `dim`.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, member, method = custom, path = "fx_nn::ops::mean", written = |args| written(["mean", "mean_keepdim"], args))]
pub fn mean(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data("mean")?;
    let dims = reduced("mean", &dim, data)?;
    kernels::reduce::mean(data, &dims, keepdim)
        .map(Tensor::made)
        .fx()
}

/// The maximum over `dim`.
///
/// # Errors
/// Returns an error if there is no such dim, or no element to take the maximum of.
#[op(reduce, member, method = custom, path = "fx_nn::ops::amax", written = |args| written(["amax", "amax_keepdim"], args))]
pub fn amax(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data("amax")?;
    let dims = reduced("amax", &dim, data)?;
    kernels::reduce::max(data, &dims, keepdim)
        .map(|data| x.with_data(data))
        .fx()
}

/// The minimum over `dim`.
///
/// # Errors
/// Returns an error if there is no such dim, or no element to take the minimum of.
#[op(reduce, member, method = custom, path = "fx_nn::ops::amin", written = |args| written(["amin", "amin_keepdim"], args))]
pub fn amin(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data("amin")?;
    let dims = reduced("amin", &dim, data)?;
    kernels::reduce::min(data, &dims, keepdim)
        .map(|data| x.with_data(data))
        .fx()
}

/// The indices of the dims that are reduced: an empty list names all of them, as in PyTorch.
pub(super) fn reduced(op: &str, dim: &Dims, data: &candle_core::Tensor) -> Result<Vec<usize>> {
    let dims = dim.resolve(op, data.rank()).fx()?;
    // A tensor without dims accepts one dim, but has none.
    Ok(match dims.is_empty() || data.rank() == 0 {
        true => (0..data.rank()).collect(),
        false => dims,
    })
}

fn spread(
    of: Spread,
    op: &str,
    x: &Tensor,
    dim: &Dims,
    unbiased: bool,
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data(op)?;
    let dims = reduced(op, dim, data)?;
    kernels::reduce::spread(of, data, &dims, unbiased, keepdim)
        .map(Tensor::made)
        .fx()
}

/// The variance over `dim`: the sum of squared distances from the mean over their count, less one if `unbiased`.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, member, method = custom, path = "fx_nn::ops::var", written = |args| written(["var", "var_keepdim"], args))]
pub fn var(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(true)]
    unbiased: bool,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    spread(Spread::Var, "var", x, &dim, unbiased, keepdim)
}

/// The standard deviation over `dim`: the square root of the variance.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, method = custom, path = "fx_nn::ops::std", written = |args| written(["std", "std_keepdim"], args))]
pub fn std(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(true)]
    unbiased: bool,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    spread(Spread::Std, "std", x, &dim, unbiased, keepdim)
}

/// The sum of each element and those before it along `dim`; of truth values and integers as `int64`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, member, method, path = "fx_nn::ops::cumsum")]
pub fn cumsum(x: &Tensor, dim: i64) -> Result<Tensor> {
    kernels::scan::cumsum(x.data("cumsum")?, dim)
        .map(Tensor::made)
        .fx()
}

/// Refuses truth values, which PyTorch does not put in order either.
pub(super) fn no_truth(op: &str, x: &Tensor) -> Result<()> {
    require(op, !x.is_bool())
}

/// Where the largest element along `dim` is (`int64`); the first of several.
///
/// # Errors
/// Returns an error if there is no such dim, it is empty, or the tensor is of truth values.
#[op(
    reduce,
    member,
    flat = "gives places",
    method,
    path = "fx_nn::ops::argmax"
)]
pub fn argmax(
    x: &Tensor,
    dim: i64,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    no_truth("argmax", x)?;
    extremes("argmax", x, dim, keepdim, Side::Max).map(|(_, at)| at)
}

/// Where the smallest element along `dim` is (`int64`); the first of several.
///
/// # Errors
/// Returns an error if there is no such dim, it is empty, or the tensor is of truth values.
#[op(
    reduce,
    member,
    flat = "gives places",
    method,
    path = "fx_nn::ops::argmin"
)]
pub fn argmin(
    x: &Tensor,
    dim: i64,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    no_truth("argmin", x)?;
    extremes("argmin", x, dim, keepdim, Side::Min).map(|(_, at)| at)
}

fn extremes(op: &str, x: &Tensor, dim: i64, keepdim: bool, side: Side) -> Result<(Tensor, Tensor)> {
    let data = x.data(op)?;
    let (values, at) = kernels::dim::dim(op, dim, data.rank())
        .and_then(|dim| kernels::reduce::extreme_dim(data, dim, keepdim, side))
        .fx()?;
    Ok((x.with_data(values), at.into()))
}

/// The largest elements along `dim` and where they are (`int64`), PyTorch's `max(x, dim)`.
///
/// # Errors
/// Returns an error if there is no such dim, or it is empty.
#[op(reduce, member, method, path = "fx_nn::ops::max")]
pub fn max(
    x: &Tensor,
    dim: i64,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    extremes("max", x, dim, keepdim, Side::Max)
}

/// The smallest elements along `dim` and where they are (`int64`), PyTorch's `min(x, dim)`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 1.0, 2.0], 3)?;
/// let (values, indices) = x.min(0, false)?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![1.0], vec![1.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or it is empty.
#[op(reduce, member, method, path = "fx_nn::ops::min")]
pub fn min(
    x: &Tensor,
    dim: i64,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    extremes("min", x, dim, keepdim, Side::Min)
}

/// The `k` largest (or smallest) elements along `dim`, in order, and where they are (`int64`).
///
/// # Errors
/// Returns an error if there is no such dim, it has fewer than `k` elements, or the tensor is of
/// truth values.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 3.0, 2.0], 3)?;
/// let (values, indices) = x.topk(2, -1, true, true)?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![3.0, 2.0], vec![1.0, 2.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[op(reduce, member, method, path = "fx_nn::ops::topk")]
pub fn topk(
    x: &Tensor,
    k: impl Into<Int>,
    #[default(-1)] dim: i64,
    #[default(true)] largest: bool,
    #[default(true)] sorted: bool,
) -> Result<(Tensor, Tensor)> {
    no_truth("topk", x)?;
    let k = count("topk", k)?;
    let data = x.data("topk")?;
    let (values, indices) = kernels::dim::dim("topk", dim, data.rank())
        .and_then(|dim| kernels::topk::topk(data, k, dim, largest, sorted))
        .fx()?;
    Ok((values.into(), indices.into()))
}

macro_rules! reduction_methods {
    ($($name:ident $keep:ident $what:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("The ", $what, " over `dim`: `..` for all dims.")]
            ///
            /// # Errors
            /// Returns an error if there is no such dim.
            #[track_caller]
            pub fn $name(&self, dim: impl Into<Dims>) -> Result<Tensor> {
                $name::method(self, dim, false)
            }

            #[doc = concat!("The ", $what, " over `dim`, which stays with size 1.")]
            ///
            /// # Errors
            /// Returns an error if there is no such dim.
            #[track_caller]
            pub fn $keep(&self, dim: impl Into<Dims>) -> Result<Tensor> {
                $name::method(self, dim, true)
            }
        )*}
    };
}

macro_rules! spread_methods {
    ($($name:ident $keep:ident $what:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("The ", $what, " over `dim`, `..` for all dims; `unbiased` divides by one less than the count.")]
            ///
            /// # Errors
            /// Returns an error if there is no such dim.
            #[track_caller]
            pub fn $name(&self, dim: impl Into<Dims>, unbiased: bool) -> Result<Tensor> {
                $name::method(self, dim, unbiased, false)
            }

            #[doc = concat!("The ", $what, " over `dim`, which stays with size 1.")]
            ///
            /// # Errors
            /// Returns an error if there is no such dim.
            #[track_caller]
            pub fn $keep(&self, dim: impl Into<Dims>, unbiased: bool) -> Result<Tensor> {
                $name::method(self, dim, unbiased, true)
            }
        )*}
    };
}

spread_methods! {
    var var_keepdim "variance";
    std std_keepdim "standard deviation";
}

reduction_methods! {
    sum sum_keepdim "sum";
    mean mean_keepdim "mean";
    amax amax_keepdim "maximum";
    amin amin_keepdim "minimum";
}
