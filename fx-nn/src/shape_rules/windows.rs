//! Windows that move over the last dims: convolutions, pooling, resampling.

use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{rules, tensor, x};
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
    with_places::<1> => ops::max_pool1d_with_indices;
    with_places::<2> => ops::max_pool2d_with_indices;
    with_places::<3> => ops::max_pool3d_with_indices;
    avg_pool::<1> => ops::avg_pool1d;
    avg_pool::<2> => ops::avg_pool2d;
    avg_pool::<3> => ops::avg_pool3d;
    adaptive::<1> => ops::adaptive_avg_pool1d, ops::adaptive_max_pool1d;
    adaptive::<2> => ops::adaptive_avg_pool2d, ops::adaptive_max_pool2d;
    adaptive::<3> => ops::adaptive_avg_pool3d, ops::adaptive_max_pool3d;
    places_of::<1> => ops::adaptive_max_pool1d_with_indices;
    places_of::<2> => ops::adaptive_max_pool2d_with_indices;
    places_of::<3> => ops::adaptive_max_pool3d_with_indices;
    unfold => ops::unfold;
    interpolate => ops::interpolate;
}

/// How many windows fit.
struct Window {
    kernel: Dim,
    stride: i64,
    padding: i64,
    dilation: i64,
    ceil: bool,
}

fn windows(call: &mut RuleCall<'_>, size: &Dim, window: &Window) -> Result<Dim> {
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
fn parted<const N: usize>(call: &RuleCall<'_>, shape: &[Dim]) -> Result<(Vec<Dim>, [Dim; N])> {
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

fn pooled<const N: usize>(call: &mut RuleCall<'_>, dilated: bool) -> Result<Vec<Dim>> {
    let x = x(call)?;
    let (mut shape, over) = parted::<N>(call, &x.shape)?;
    let kernel = call.ints::<N>("kernel_size")?;
    let stride = match call.arg("stride")? {
        none if none.is_none() => kernel,
        _ => call.ints::<N>("stride")?,
    };
    let padding = call.ints::<N>("padding")?;
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
    let shape = pooled::<N>(call, true)?;
    Ok(tensor(shape, x(call)?.dtype))
}

fn with_places<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let shape = pooled::<N>(call, true)?;
    let places = tensor(shape.clone(), Some(DType::I64));
    Ok(Fake::Tuple(vec![tensor(shape, x(call)?.dtype), places]))
}

fn avg_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let shape = pooled::<N>(call, false)?;
    Ok(tensor(shape, x(call)?.dtype))
}

fn adaptive<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, _) = parted::<N>(call, &x.shape)?;
    shape.extend(call.ints::<N>("output_size")?.map(Dim::from));
    Ok(tensor(shape, x.dtype))
}

fn interpolate(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (before, over) = x.shape.split_at(x.shape.len().min(2));
    let mut shape = before.to_vec();
    match (call.arg("size")?, call.arg("scale_factor")?) {
        (size, _) if !size.is_none() => {
            let sizes = call.sizes("size")?;
            match &sizes[..] {
                [one] => shape.extend(over.iter().map(|_| one.clone())),
                all => shape.extend(all.iter().cloned()),
            }
        }
        (_, Fake::Float(Some(factor))) => {
            for size in over {
                shape.push(match (size.as_known(), factor.fract() == 0.0) {
                    (Some(size), _) => Dim::known((size as f64 * factor).floor() as usize),
                    (None, true) => (size * (*factor as i64))?,
                    (None, false) => {
                        return Err(Error::msg(format_args!(
                            "interpolate: {size} times {factor} is known only when the graph runs: give `size`"
                        )));
                    }
                });
            }
        }
        _ => return Err(Error::msg("interpolate takes a size or a factor")),
    }
    Ok(tensor(shape, x.dtype))
}

fn places_of<const N: usize>(call: &mut RuleCall<'_>) -> Result<Fake> {
    let values = adaptive::<N>(call)?;
    let places = match &values {
        Fake::Single(meta) => tensor(meta.shape.clone(), Some(DType::I64)),
        other => other.clone(),
    };
    Ok(Fake::Tuple(vec![values, places]))
}

/// The windows as columns.
fn unfold(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, over) = parted::<2>(call, &x.shape)?;
    let (kernel, dilation) = (call.ints::<2>("kernel_size")?, call.ints::<2>("dilation")?);
    let (padding, stride) = (call.ints::<2>("padding")?, call.ints::<2>("stride")?);
    let mut count = Dim::known(1);
    for (at, size) in over.iter().enumerate() {
        let window = Window {
            kernel: kernel[at].into(),
            stride: stride[at],
            padding: padding[at],
            dilation: dilation[at],
            ceil: false,
        };
        count = (count * windows(call, size, &window)?)?;
    }
    if let Some(channels) = shape.last_mut() {
        *channels = (&*channels * (kernel[0] * kernel[1]))?;
    }
    shape.push(count);
    Ok(tensor(shape, x.dtype))
}
