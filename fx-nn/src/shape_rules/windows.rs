//! Windows that move over the last dims: convolutions and pooling.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, at_least, count, divided, fractional, require, require_equal, require_rank,
    require_type_of, rules, tensor, with_places, wrong, x,
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
    lp_pool::<1> => ops::lp_pool1d;
    lp_pool::<2> => ops::lp_pool2d;
    adaptive::<1> => ops::adaptive_avg_pool1d, ops::adaptive_max_pool1d;
    adaptive::<2> => ops::adaptive_avg_pool2d, ops::adaptive_max_pool2d;
    adaptive::<3> => ops::adaptive_avg_pool3d, ops::adaptive_max_pool3d;
    |call| adaptive::<1>(call).map(with_places) => ops::adaptive_max_pool1d_with_indices;
    |call| adaptive::<2>(call).map(with_places) => ops::adaptive_max_pool2d_with_indices;
    |call| adaptive::<3>(call).map(with_places) => ops::adaptive_max_pool3d_with_indices;
    unpooled::<1> => ops::max_unpool1d;
    unpooled::<2> => ops::max_unpool2d;
    unpooled::<3> => ops::max_unpool3d;
}

/// How windows move over `N` dims.
pub(super) struct Steps<const N: usize> {
    pub stride: [i64; N],
    pub padding: [i64; N],
    pub dilation: [i64; N],
    pub ceil: bool,
}

/// How many windows fit into each dim.
pub(super) fn windows<const N: usize>(
    call: &mut RuleCall<'_>,
    over: &[Dim; N],
    kernel: &[Dim],
    steps: &Steps<N>,
) -> Result<Vec<Dim>> {
    let ways = steps.stride.iter().zip(&steps.padding).zip(&steps.dilation);
    let mut counts = Vec::with_capacity(N);
    for ((size, kernel), ((stride, padding), dilation)) in over.iter().zip(kernel).zip(ways) {
        if *stride > i64::MAX / 2 {
            return Err(wrong(
                call,
                format_args!("a stride of {stride} reaches too far"),
            ));
        }
        let [stride, padding, dilation] = [*stride, *padding, *dilation].map(Dim::from);
        let problem = "kernel size, stride and dilation are 1 at least, the padding is not below 0";
        for above in [kernel, &stride, &dilation, &(&padding + 1)?] {
            at_least(call, above, 1, problem)?;
        }
        let width = (((kernel - 1)? * &dilation)? + 1)?;
        let room = ((size + (&padding * 2)?)? - &width)?;
        // The last window may leave the input by less than a stride.
        let more = match steps.ceil {
            true => (&stride - 1)?,
            false => Dim::known(0),
        };
        let room = (room + &more)?;
        at_least(
            call,
            &room,
            0,
            format_args!(
                "a window of {width} does not fit into {size} with a padding of {padding}"
            ),
        )?;
        let count = (room.div(&stride)? + 1)?;
        // It begins inside of the input or the padding before it.
        counts.push(match steps.ceil {
            true => count.min((size + (&padding + &more)?)?.div(&stride)?)?,
            false => count,
        });
    }
    Ok(counts)
}

/// The batch and the channels of images, and the `N` dims that windows move over.
pub(super) fn images<const N: usize>(
    call: &RuleCall<'_>,
    x: &TensorMeta,
) -> Result<(Vec<Dim>, [Dim; N])> {
    require_rank(call, x, N + 1..=N + 2)?;
    let (before, over) = x.shape.split_at(x.shape.len().saturating_sub(N));
    let over = over.to_vec().try_into();
    let over = over.map_err(|_| wrong(call, format_args!("{:?} has too few dims", x.shape)))?;
    Ok((before.to_vec(), over))
}

/// What convolutions of both directions have in common: the input's batch, its sizes, the weight's
/// first two sizes, and the kernel's.
struct Convolved<'c, const N: usize> {
    x: &'c TensorMeta,
    batch: Vec<Dim>,
    channels: Dim,
    over: [Dim; N],
    sizes: [&'c Dim; 2],
    kernel: &'c [Dim],
    groups: i64,
}

fn convolved<'c, const N: usize>(call: &mut RuleCall<'c>) -> Result<Convolved<'c, N>> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    require_type_of(call, x, &["weight", "bias"])?;
    require(call, x, Elements::Numbers)?;
    require_rank(call, weight, N + 2..=N + 2)?;
    let (mut batch, over) = images::<N>(call, x)?;
    let groups = match count(call, "groups")? {
        0 => return Err(wrong(call, "`groups` is 1 or above, and not 0")),
        groups => groups,
    };
    match (batch.pop(), &weight.shape[..]) {
        (Some(channels), [first, second, kernel @ ..]) => Ok(Convolved {
            x,
            batch,
            channels,
            over,
            sizes: [first, second],
            kernel,
            groups,
        }),
        _ => Err(wrong(call, "a convolution's weight has channels first")),
    }
}

/// The result's shape, whose channels the bias has, and which the groups divide.
fn with_channels<const N: usize>(
    call: &mut RuleCall<'_>,
    of: &Convolved<'_, N>,
    outputs: Dim,
) -> Result<Vec<Dim>> {
    divided(call, &outputs, of.groups, "outputs in groups")?;
    if let Some(bias) = call.optional_tensor("bias")? {
        require_equal(call, &bias.shape, std::slice::from_ref(&outputs))?;
    }
    Ok(of.batch.iter().cloned().chain([outputs]).collect())
}

fn require_channels<const N: usize>(
    call: &mut RuleCall<'_>,
    of: &Convolved<'_, N>,
    channels: &Dim,
) -> Result<()> {
    let (shape, weight) = (&of.x.shape, call.tensor("weight")?);
    call.same(&of.channels, channels, || {
        format!(
            "the input {shape:?} does not fit the weight {:?} in {} groups",
            weight.shape, of.groups
        )
    })
}

fn conv<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let of = convolved::<N>(call)?;
    let [outputs, inputs] = of.sizes;
    require_channels(call, &of, &(inputs * of.groups)?)?;
    let mut shape = with_channels(call, &of, outputs.clone())?;
    let steps = Steps {
        stride: call.ints("stride")?,
        padding: call.ints("padding")?,
        dilation: call.ints("dilation")?,
        ceil: false,
    };
    shape.extend(windows(call, &of.over, of.kernel, &steps)?);
    Ok(tensor(shape, of.x.dtype))
}

fn transposed<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let of = convolved::<N>(call)?;
    let [inputs, outputs] = of.sizes;
    require_channels(call, &of, inputs)?;
    divided(call, inputs, of.groups, "inputs in groups")?;
    let mut shape = with_channels(call, &of, (outputs * of.groups)?)?;
    let (stride, padding) = (call.ints::<N>("stride")?, call.ints::<N>("padding")?);
    let (more, dilation) = (
        call.ints::<N>("output_padding")?,
        call.ints::<N>("dilation")?,
    );
    for (at, (size, kernel)) in of.over.iter().zip(of.kernel).enumerate() {
        let (stride, padding, more, dilation) = (stride[at], padding[at], more[at], dilation[at]);
        if stride < 1 || dilation < 1 || padding < 0 || more < 0 {
            return Err(wrong(
                call,
                "stride and dilation are 1 at least, the paddings are not below 0",
            ));
        }
        if more >= stride && more >= dilation {
            return Err(wrong(
                call,
                format_args!("`output_padding` {more} is below the stride or the dilation"),
            ));
        }
        for above in [size, kernel] {
            at_least(call, above, 1, "an input and a kernel have elements")?;
        }
        let width = ((((kernel - 1)? * dilation)? + 1)? + more)?;
        let full = (((size - 1)? * stride)? + width)?;
        let left = (full - (Dim::from(padding) * 2)?)?;
        at_least(
            call,
            &left,
            1,
            format_args!("a padding of {padding} leaves nothing"),
        )?;
        shape.push(left);
    }
    Ok(tensor(shape, of.x.dtype))
}

/// The shape of what windows with a padding of half of their size at most give.
fn pooled<const N: usize>(
    call: &mut RuleCall<'_>,
    padding: [i64; N],
    dilation: [i64; N],
) -> Result<Vec<Dim>> {
    let (mut shape, over) = images::<N>(call, x(call)?)?;
    let kernel = call.ints::<N>("kernel_size")?;
    for (kernel, padding) in kernel.iter().zip(&padding) {
        if *padding > kernel / 2 {
            return Err(wrong(
                call,
                format_args!("the padding {padding} is more than half of the kernel size {kernel}"),
            ));
        }
    }
    require_elements(call, &over)?;
    let steps = Steps {
        stride: match call.arg("stride")?.is_none() {
            true => kernel,
            false => call.ints("stride")?,
        },
        padding,
        dilation,
        ceil: call.flag("ceil_mode")?,
    };
    shape.extend(windows(call, &over, &kernel.map(Dim::from), &steps)?);
    Ok(shape)
}

fn require_elements(call: &mut RuleCall<'_>, over: &[Dim]) -> Result<()> {
    for size in over {
        at_least(
            call,
            size,
            1,
            "each dim that is pooled has one element at least",
        )?;
    }
    Ok(())
}

/// Returns an error if there are no channels.
fn require_some_channels<const N: usize>(call: &mut RuleCall<'_>) -> Result<()> {
    let (before, _) = images::<N>(call, x(call)?)?;
    match before.last() {
        Some(channels) => at_least(call, channels, 1, "the input needs channels, one at least"),
        None => Ok(()),
    }
}

fn max_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Numbers)?;
    require_some_channels::<N>(call)?;
    let (padding, dilation) = (call.ints::<N>("padding")?, call.ints::<N>("dilation")?);
    Ok(tensor(pooled(call, padding, dilation)?, x.dtype))
}

/// Means of `int64` are rounded, those of other whole numbers are not taken.
fn avg_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    match x.dtype {
        Some(DType::I64) if N < 3 => {}
        _ => require(call, x, Elements::Fractions)?,
    }
    require_some_channels::<N>(call)?;
    let padding = call.ints::<N>("padding")?;
    Ok(tensor(pooled(call, padding, [1; N])?, x.dtype))
}

/// The powers of whole numbers are floats.
fn lp_pool<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_some_channels::<N>(call)?;
    let shape = pooled(call, [0; N], [1; N])?;
    Ok(tensor(shape, fractional(x(call)?.dtype)))
}

fn adaptive<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let (mut shape, over) = images::<N>(call, x)?;
    require_elements(call, &over)?;
    for size in call.ints::<N>("output_size")?.map(Dim::from) {
        at_least(
            call,
            &size,
            0,
            format_args!("a size is 0 or above, and not {size}"),
        )?;
        shape.push(size);
    }
    Ok(tensor(shape, x.dtype))
}

/// The tensor that was pooled, of a size that is near to what the windows leave.
fn unpooled<const N: usize>(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, indices) = (x(call)?, call.tensor("indices")?);
    require(call, x, Elements::Numbers)?;
    require(call, indices, Elements::Long)?;
    require_equal(call, &indices.shape, &x.shape)?;
    require_some_channels::<N>(call)?;
    let (mut shape, over) = images::<N>(call, x)?;
    let (kernel, stride) = (call.ints::<N>("kernel_size")?, call.ints::<N>("stride")?);
    let padding = call.ints::<N>("padding")?;
    let given = match call.arg("output_size")?.is_none() {
        true => None,
        false => Some(call.sizes("output_size")?),
    };
    require_elements(call, &over)?;
    for (at, size) in over.iter().enumerate() {
        let own = ((((size - 1)? * stride[at])? + kernel[at])? - (Dim::from(padding[at]) * 2)?)?;
        at_least(
            call,
            &own,
            0,
            "the padding leaves nothing of a dim: make it smaller",
        )?;
        let Some(given) = &given else {
            shape.push(own);
            continue;
        };
        // The last of the sizes that are given.
        let place = (given.len() + at).checked_sub(N);
        let Some(given) = place.and_then(|place| given.get(place)) else {
            return Err(wrong(
                call,
                format_args!("the size {given:?} has {N} numbers at least"),
            ));
        };
        let room = (Dim::from(stride[at]) - 1)?;
        for way in [(given - &own)?, (&own - given)?] {
            at_least(
                call,
                &(&room - way)?,
                0,
                format_args!("a size of {given} is a stride or more from {own}"),
            )?;
        }
        shape.push(given.clone());
    }
    Ok(tensor(shape, x.dtype))
}
