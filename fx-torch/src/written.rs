//! What a run writes, as functions of a graph: a tensor as it was before, and what writes it.
//!
//! Invariant: what is written lies where the tensor lies, whichever view of it the tensor is.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::ShapeRule;
use fx_nn::{Error, Result, candle_core};

/// The elements of a tensor as they are now: a later [`assign`] does not show in them.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros(2)?;
/// let before = fx_torch::copied(&x)?;
/// fx_torch::assign(&x, &Tensor::ones(2)?)?;
/// assert_eq!(before.to_vec()?, [0., 0.]);
/// assert_eq!(x.to_vec()?, [1., 1.]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if it does not fit into memory.
#[wrap(path = "fx_torch::copied", effects(reads), always)]
pub fn copied(x: &Tensor) -> Result<Tensor> {
    if Tensor::dtype(x)?.is_floating_point() {
        // With the gradient.
        let copy = x.candle()?.affine(1.0, 0.0).map_err(Error::other)?;
        return Ok(copy.into());
    }
    let mut copy = ops::zeros_like(x, None)?;
    copy.copy_from(x)?;
    Ok(copy)
}

/// Writes the elements of a tensor in place, as a program does with its buffers: every holder of the tensor sees them.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros((2, 3))?;
/// fx_torch::assign(&x.t()?, &Tensor::arange(0, 6)?.reshape((3, 2))?)?;
/// assert_eq!(x.to_vec()?, [0., 2., 4., 1., 3., 5.]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes differ, or several elements of the tensor are one place in memory.
#[wrap(path = "fx_torch::assign", effects(writes), always)]
pub fn assign(x: &Tensor, value: &Tensor) -> Result<()> {
    let mut own = x.clone();
    let data = x.candle()?;
    if data.is_variable() || data.is_contiguous() {
        return own.copy_from(&value.detach()?);
    }
    let mut steps = data.dims().iter().zip(data.stride());
    if steps.any(|(size, step)| *size > 1 && *step == 0) {
        return Err(Error::msg(format_args!(
            "assign: several elements of a tensor {:?} that is written are one place in memory: give it as `contiguous()`",
            data.dims()
        )));
    }
    // In the element type, where another is given.
    let mut made = ops::zeros_like(x, None)?;
    made.copy_from(&value.detach()?)?;
    write_parts(&data.detach(), made.candle()?).map_err(Error::other)
}

/// Writes a view by its parts whose elements are next to each other.
fn write_parts(
    into: &candle_core::Tensor,
    values: &candle_core::Tensor,
) -> candle_core::Result<()> {
    let mut left = vec![(into.clone(), values.clone())];
    while let Some((into, values)) = left.pop() {
        if into.is_contiguous() {
            let count = into.elem_count();
            if count > 0 {
                let values = values.contiguous()?.reshape(count)?;
                into.reshape(count)?.slice_set(&values, 0, 0)?;
            }
            continue;
        }
        for at in 0..into.dim(0)? {
            let part = |x: &candle_core::Tensor| x.narrow(0, at, 1)?.squeeze(0);
            left.push((part(&into)?, part(&values)?));
        }
    }
    Ok(())
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::written::copied) => ShapeRule(|call| Ok(call.tensor("x")?.clone().into())),
    fx_nn::function!(crate::written::assign) => ShapeRule(|call| {
        let (x, value) = (call.tensor("x")?, call.tensor("value")?);
        let wrong = || format!("assign: a tensor {:?} cannot take {:?}", x.shape, value.shape);
        if x.shape.len() != value.shape.len() {
            return Err(Error::msg(wrong()));
        }
        for (a, b) in x.shape.iter().zip(&value.shape) {
            call.same(a, b, wrong)?;
        }
        Ok(ValueMeta::Plain(Value::None))
    }),
} }
