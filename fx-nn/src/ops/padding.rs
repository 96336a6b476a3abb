//! Padding: elements around a tensor.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::pad::{Edge, Sides, constant, repeated};
use crate::tensor::{Bound, Number, Sizes, Tensor};

/// Elements around the last dims of `x`: `pad` is how many before and after the last dim, then the one before it, and
/// so on; negative ones take elements off.
///
/// `mode` selects the elements: `"constant"`, which is `value`; `"reflect"`, `"replicate"` or
/// `"circular"`, which are `x`'s own, around the last one, two or three dims of an image without or
/// with a batch.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], (1, 3))?;
/// assert_eq!(ops::pad(&x, (1, 2), "constant", 9.0)?.to_vec()?, [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
/// assert_eq!(ops::pad(&x, (2, 1), "reflect", None)?.to_vec()?, [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
/// assert_eq!(ops::pad(&x, (2, 1), "replicate", None)?.to_vec()?, [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
/// assert_eq!(ops::pad(&x, (2, 1), "circular", None)?.to_vec()?, [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `pad` is not two numbers per dim, a mode does not support so many dims,
/// nothing is left of a dim, or `value` is given for a mode other than `"constant"`.
#[op(member, path = "fx_nn::ops::pad")]
pub fn pad(
    x: &Tensor,
    pad: impl Into<Sizes>,
    #[default("constant")] mode: &str,
    #[default(None)] value: impl Into<Bound>,
) -> Result<Tensor> {
    let data = x.elements("pad")?;
    let given = pad.known()?;
    let (pairs, rest) = given.as_chunks::<2>();
    require("pad", rest.is_empty() && pairs.len() <= data.rank())?;
    let sides: Vec<Sides> = pairs
        .iter()
        .map(|[before, after]| (*before, *after))
        .collect();
    let edge = match mode {
        "constant" => {
            let value = value
                .0
                .unwrap_or(Number::Int(0))
                .checked("pad", x.dtype()?)?;
            return constant("pad", data, &sides, &value)
                .map(|data| x.with_data(data))
                .fx();
        }
        "reflect" => Edge::Reflect,
        "replicate" => Edge::Replicate,
        "circular" => Edge::Circular,
        _ => return Err(unfit("pad")),
    };
    require("pad", !value.0.is_some_and(|value| value.as_f64() != 0.0))?;
    let dims = sides.len();
    require(
        "pad",
        (1..=3).contains(&dims) && (dims + 1..=dims + 2).contains(&data.rank()),
    )?;
    repeated("pad", data, &sides, edge)
        .map(|data| x.with_data(data))
        .fx()
}
