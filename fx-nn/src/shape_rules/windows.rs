//! Windows that move over the last dims: convolutions and pooling.

use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{
    Elements, at_least, fractional, require, require_equal, rules, tensor, with_places, wrong, x,
};
use crate::ops;

rules! {
    conv::<1> => ops::conv1d;
    conv::<2> => ops::conv2d;
    conv::<3> => ops::conv3d;
    transposed::<1> => ops::conv_transpose1d;
    transposed::<2> => ops::conv_transpose2d;
    transposed::<3> => ops::conv_transpose3d;
    max_pool::<1> => ops::max_pool1d;
    max_pool::<2> => ops::max_pool2d;
    max_pool::<3> => ops::max_pool3d;
    |call| max_pool::<1>(call).map(with_places) => ops::max_pool1d_with_indices;
    |call| max_pool::<2>(call).map(with_places) => ops::max_pool2d_with_indices;
    |call| max_pool::<3>(call).map(with_places) => ops::max_pool3d_with_indices;
    avg_pool::<1> => ops::avg_pool1d;
    avg_pool::<2> => ops::avg_pool2d;
    avg_pool::<3> => ops::avg_pool3d;
    adaptive::<1> => ops::adaptive_avg_pool1d, ops::adaptive_max_pool1d;
    adaptive::<2> => ops::adaptive_avg_pool2d, ops::adaptive_max_pool2d;
    adaptive::<3> => ops::adaptive_avg_pool3d, ops::adaptive_max_pool3d;
    |call| adaptive::<1>(call).map(with_places) => ops::adaptive_max_pool1d_with_indices;
    |call| adaptive::<2>(call).map(with_places) => ops::adaptive_max_pool2d_with_indices;
    |call| adaptive::<3>(call).map(with_places) => ops::adaptive_max_pool3d_with_indices;
    lp_pool::<1> => ops::lp_pool1d;
    lp_pool::<2> => ops::lp_pool2d;
    unpooled::<1> => ops::max_unpool1d;
    unpooled::<2> => ops::max_unpool2d;
    unpooled::<3> => ops::max_unpool3d;
}

/// How many windows fit.
pub(super) struct Window {
    pub kernel: Dim,
    pub stride: i64,
    pub padding: i64,
    pub dilation: i64,
    pub ceil: bool,
}

pub(super) fn windows(call: &mut RuleCall<'_>, size: &Dim, window: &Window) -> Result<Dim> {
    let Window {
        kernel,
        stride,
        padding,
        dilation,
        ceil,
    } = window;
    let (stride, padding, dilation) = (*stride, *padding, *dilation);
    if stride < 1 || dilation < 1 || kernel.as_number().is_some_and(|kernel| kernel < 1) {
        return Err(Error::msg(format_args!(
            "{}: kernel size, stride and dilation are 1 or more",
            call.function().name()
        )));
    }
    let width = (((kernel - 1)? * dilation)? + 1)?;
    let room = ((size + 2 * padding)? - &width)?;
    let least = if *ceil { 1 - stride } else { 0 };
    if !call.env().at_least(&room, least)? {
        return Err(Error::msg(format_args!(
            "{}: a window of {width} does not fit into {size} with a padding of {padding}",
            call.function().name()
        )));
    }
    if !*ceil {
        return room.div(stride)? + 1;
    }
    let count = ((&room + (stride - 1))?.div(stride)? + 1)?;
    // The last window begins inside of the input or the padding before it.
    let inside = ((size + (padding + stride - 1))?.div(stride))?;
    count.min(inside)
}

/// The dims before the `N` that windows move over, and those.
pub(super) fn parted<const N: usize>(
    call: &RuleCall<'_>,
    shape: &[Dim],
) -> Result<(Vec<Dim>, [Dim; N])> {
    let split = shape.len().checked_sub(N).filter(|before| *before > 0);
    let split = split.ok_or_else(|| {
        Error::msg(format_args!(
            "{}: the shape {shape:?} has fewer than {} dims",
            call.function().name(),
            N + 1
        ))
    })?;
    let (before, over) = shape.split_at(split);
    let over = over.to_vec().try_into();
    let over = over.map_err(|_| Error::msg("the split is at the last dims"))?;
    Ok((before.to_vec(), over))
}

fn conv<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    let (mut shape, over) = parted::<N>(call, &x.shape)?;
    let (stride, padding) = (call.ints::<N>("stride")?, call.ints::<N>("padding")?);
    let (dilation, groups) = (call.ints::<N>("dilation")?, call.int("groups")?);
    let [outputs, inputs, kernel @ ..] = &weight.shape[..] else {
        return Err(Error::msg("a convolution's weight has channels first"));
    };
    let channels = (inputs * groups)?;
    if let Some(own) = shape.last() {
        call.same(own, &channels, || {
            format!(
                "the input {:?} does not fit the weight {:?}",
                x.shape, weight.shape
            )
        })?;
    }
    if let Some(own) = shape.last_mut() {
        *own = outputs.clone();
    }
    for (at, size) in over.iter().enumerate() {
        let kernel = kernel.get(at).cloned().unwrap_or(Dim::known(1));
        let window = Window {
            kernel,
            stride: stride[at],
            padding: padding[at],
            dilation: dilation[at],
            ceil: false,
        };
        shape.push(windows(call, size, &window)?);
    }
    Ok(tensor(shape, x.dtype))
}

fn transposed<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    let (mut shape, over) = parted::<N>(call, &x.shape)?;
    let (stride, padding) = (call.ints::<N>("stride")?, call.ints::<N>("padding")?);
    let (more, dilation) = (
        call.ints::<N>("output_padding")?,
        call.ints::<N>("dilation")?,
    );
    let groups = call.int("groups")?;
    let [inputs, outputs, kernel @ ..] = &weight.shape[..] else {
        return Err(Error::msg("a convolution's weight has channels first"));
    };
    if let Some(own) = shape.last() {
        call.same(own, inputs, || {
            format!(
                "the input {:?} does not fit the weight {:?}",
                x.shape, weight.shape
            )
        })?;
    }
    if let Some(own) = shape.last_mut() {
        *own = (outputs * groups)?;
    }
    for (at, size) in over.iter().enumerate() {
        let kernel = kernel.get(at).cloned().unwrap_or(Dim::known(1));
        let width = (((kernel - 1)? * dilation[at])? + (more[at] + 1 - 2 * padding[at]))?;
        let size = (((size - 1)? * stride[at])? + width)?;
        if !call.env().at_least(&size, 1)? {
            return Err(Error::msg(format_args!(
                "{}: a padding of {} leaves nothing",
                call.function().name(),
                padding[at]
            )));
        }
        shape.push(size);
    }
    Ok(tensor(shape, x.dtype))
}

fn pooled<const N: usize>(
    call: &mut RuleCall<'_>,
    padded: bool,
    dilated: bool,
) -> Result<Vec<Dim>> {
    let x = x(call)?;
    let (mut shape, over) = parted::<N>(call, &x.shape)?;
    let kernel = call.ints::<N>("kernel_size")?;
    let stride = match call.arg("stride")? {
        none if none.is_none() => kernel,
        _ => call.ints::<N>("stride")?,
    };
    let padding = match padded {
        true => call.ints::<N>("padding")?,
        false => [0; N],
    };
    let dilation = match dilated {
        true => call.ints::<N>("dilation")?,
        false => [1; N],
    };
    let ceil = call.flag("ceil_mode")?;
    for (at, size) in over.iter().enumerate() {
        if padding[at] * 2 > kernel[at] {
            return Err(Error::msg(format_args!(
                "{}: the padding {} is more than half of the kernel size {}",
                call.function().name(),
                padding[at],
                kernel[at]
            )));
        }
        let window = Window {
            kernel: kernel[at].into(),
            stride: stride[at],
            padding: padding[at],
            dilation: dilation[at],
            ceil,
        };
        shape.push(windows(call, size, &window)?);
    }
    Ok(shape)
}

fn max_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let shape = pooled::<N>(call, true, true)?;
    Ok(tensor(shape, x(call)?.dtype))
}

fn avg_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let shape = pooled::<N>(call, true, false)?;
    Ok(tensor(shape, x(call)?.dtype))
}

fn adaptive<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, _) = parted::<N>(call, &x.shape)?;
    shape.extend(call.ints::<N>("output_size")?.map(Dim::from));
    Ok(tensor(shape, x.dtype))
}

/// The powers of whole numbers are floats.
fn lp_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let shape = pooled::<N>(call, false, false)?;
    Ok(tensor(shape, fractional(x(call)?.dtype)))
}

/// The tensor that was pooled, of a size that is near to what the windows leave.
fn unpooled<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, indices) = (x(call)?, call.tensor("indices")?);
    require(call, x, Elements::Numbers)?;
    require_equal(call, &indices.shape, &x.shape)?;
    if indices.dtype.is_some_and(|dtype| dtype != DType::I64) {
        return Err(wrong(
            call,
            "the indices are of `int64`: convert them with `to_dtype`",
        ));
    }
    let (mut shape, over) = parted::<N>(call, &x.shape)?;
    let (kernel, stride) = (call.ints::<N>("kernel_size")?, call.ints::<N>("stride")?);
    let padding = call.ints::<N>("padding")?;
    let given = match call.arg("output_size")?.is_none() {
        true => None,
        false => Some(call.sizes("output_size")?),
    };
    if let Some(given) = &given
        && given.len() < N
    {
        return Err(wrong(
            call,
            format_args!("the size {given:?} has {N} numbers at least"),
        ));
    }
    for (at, size) in over.iter().enumerate() {
        let steps = (size - 1)?;
        at_least(call, &steps, 0, "a dim that is pooled is empty")?;
        let own = (((steps * stride[at])? + kernel[at])? - (Dim::from(padding[at]) * 2)?)?;
        at_least(call, &own, 0, "the padding leaves nothing")?;
        let from_end = N - at;
        let given = given.as_ref().and_then(|all| all.get(all.len() - from_end));
        shape.push(match given {
            None => own,
            Some(given) => {
                let room = (Dim::from(stride[at]) - 1)?;
                for way in [(given - &own)?, (&own - given)?] {
                    at_least(
                        call,
                        &(&room - way)?,
                        0,
                        format_args!("a size of {given} is a stride or more from {own}"),
                    )?;
                }
                given.clone()
            }
        });
    }
    Ok(tensor(shape, x.dtype))
}
