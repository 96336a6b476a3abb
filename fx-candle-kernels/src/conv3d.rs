//! Three-dimensional convolution and its transpose, by the two-dimensional ones over the slices of a volume.

use candle_core::{Result, Tensor, bail};

use super::conv::conv2d;
use super::conv_transpose::conv_transpose2d;
use super::dim::same_dtype;
use super::expand::channel;
use super::places::along;
use super::widen::{is_half, widened};
use super::window::{Axis, NOTHING};
use crate::room;

/// `x [c, d, h, w]` or `[n, c, d, h, w]` as `[n, c, d, h, w]`.
fn volume(op: &str, x: &Tensor) -> Result<Tensor> {
    match x.rank() {
        4 => x.unsqueeze(0),
        5 => Ok(x.clone()),
        _ => bail!(
            "{op}: input {:?} must be [c, d, h, w] or [n, c, d, h, w]",
            x.dims()
        ),
    }
}

fn like(x: &Tensor, y: Tensor) -> Result<Tensor> {
    if x.rank() == 4 { y.squeeze(0) } else { Ok(y) }
}

/// The convolution of `x [n, c, d, h, w]` or `[c, d, h, w]` with `w [o, c / groups, kd, kh, kw]`, plus `b [o]`, as
/// `torch.nn.functional.conv3d`.
///
/// # Errors
/// Returns an error if a rank differs, an option is 0, the channels do not fit the groups, `b` is
/// not `[o]`, or the kernel is larger than the padded input.
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv3d(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
    groups: usize,
) -> Result<Tensor> {
    let op = "conv3d";
    same_dtype(op, x, w)?;
    b.map_or(Ok(()), |b| same_dtype(op, x, b))?;
    if is_half(x.dtype()) {
        return widened(x, (x, w, b), |(x, w, b)| {
            conv3d(&x, &w, b.as_ref(), stride, padding, dilation, groups)
        });
    }
    let whole = volume(op, x)?;
    let &[outs, ins, deep, kh, kw] = w.dims() else {
        bail!(
            "{op}: weight {:?} must be [out, in / groups, kd, kh, kw]",
            w.dims()
        )
    };
    let (n, c, depth, height, width) = whole.dims5()?;
    if ins.checked_mul(groups) != Some(c) {
        bail!(
            "{op}: input {:?} has {c} channels, weight {:?} in {groups} groups needs {}",
            x.dims(),
            w.dims(),
            ins.saturating_mul(groups)
        )
    }
    let axis = Axis {
        size: depth,
        kernel: deep,
        stride: stride[0],
        padding: padding[0],
        dilation: dilation[0],
    };
    let windows = axis.windows(op, x.dims(), false)?;
    // The slices that a window sees become channels of one image.
    room::of(op, &[n, windows, c, deep, height, width], x.dtype())?;
    if depth >= NOTHING as usize {
        bail!("{op}: input {:?} is too large", x.dims())
    }
    let ids = (0..windows)
        .flat_map(|o| (0..deep).map(move |k| axis.at(o, k).map_or(NOTHING, |i| i as u32)))
        .collect();
    let seen = along(op, &whole, 2, ids)?
        .reshape(vec![n, c, windows, deep, height * width])?
        .permute(vec![0, 2, 1, 3, 4])?
        .contiguous()?
        .reshape((n * windows, c * deep, height, width))?;
    let y = conv2d(
        &seen,
        &w.reshape((outs, ins * deep, kh, kw))?,
        b,
        (stride[1], stride[2]),
        (padding[1], padding[2]),
        (dilation[1], dilation[2]),
        groups,
    )?;
    let (_, _, oh, ow) = y.dims4()?;
    let y = y.reshape((n, windows, outs, oh, ow))?;
    like(x, y.transpose(1, 2)?.contiguous()?)
}

/// The transposed convolution of `x [n, c, d, h, w]` or `[c, d, h, w]` with `w [c, o / groups, kd, kh, kw]`, plus
/// `b [o]`, as `torch.nn.functional.conv_transpose3d`.
///
/// # Errors
/// Returns an error if a rank differs, an option is 0, the channels do not fit the groups, `b` is
/// not `[o]`, `output_padding` is not below stride or dilation, or nothing is left of the result.
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv_transpose3d(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    stride: [usize; 3],
    padding: [usize; 3],
    output_padding: [usize; 3],
    groups: usize,
    dilation: [usize; 3],
) -> Result<Tensor> {
    let op = "conv_transpose3d";
    same_dtype(op, x, w)?;
    b.map_or(Ok(()), |b| same_dtype(op, x, b))?;
    if is_half(x.dtype()) {
        return widened(x, (x, w, b), |(x, w, b)| {
            let b = b.as_ref();
            conv_transpose3d(&x, &w, b, stride, padding, output_padding, groups, dilation)
        });
    }
    let whole = volume(op, x)?;
    let &[ins, each, deep, kh, kw] = w.dims() else {
        bail!(
            "{op}: weight {:?} must be [in, out / groups, kd, kh, kw]",
            w.dims()
        )
    };
    let (n, c, depth, height, width) = whole.dims5()?;
    let outs = each.saturating_mul(groups);
    if let Some(b) = b
        && b.dims() != [outs]
    {
        bail!(
            "{op}: bias {:?} does not fit weight {:?}, it must be [{outs}]",
            b.dims(),
            w.dims()
        )
    }
    let [step, cut, more, apart] = [stride[0], padding[0], output_padding[0], dilation[0]];
    if deep == 0 || step == 0 || apart == 0 || (more >= step && more >= apart) {
        bail!(
            "{op}: kernel {deep}, stride {step} and dilation {apart} must be above 0 and output_padding {more} below \
             one of them, for input {:?}",
            x.dims()
        )
    }
    let full = depth
        .checked_sub(1)
        .and_then(|steps| steps.checked_mul(step))
        .zip(apart.checked_mul(deep - 1))
        .and_then(|(starts, span)| starts.checked_add(span)?.checked_add(more)?.checked_add(1))
        .zip(cut.checked_mul(2));
    let out = full
        .and_then(|(full, cut)| full.checked_sub(cut))
        .filter(|out| *out > 0);
    let Some(out) = out else {
        bail!(
            "{op}: padding {cut} leaves nothing of the output for input {:?} gives",
            x.dims()
        )
    };
    // Each slice makes an image for every depth of the kernel; images that meet are added up.
    let slices = whole
        .transpose(1, 2)?
        .contiguous()?
        .reshape((n * depth, c, height, width))?;
    let images = conv_transpose2d(
        &slices,
        &w.reshape((ins, each * deep, kh, kw))?,
        None,
        (stride[1], stride[2]),
        (padding[1], padding[2]),
        (output_padding[1], output_padding[2]),
        groups,
        (dilation[1], dilation[2]),
    )?;
    let (_, _, oh, ow) = images.dims4()?;
    room::of(op, &[n, outs, out, oh, ow], x.dtype())?;
    let y = Tensor::zeros((n * outs, out, oh * ow), x.dtype(), x.device())?;
    let y = if n * outs * depth == 0 {
        y
    } else {
        let images = images
            .reshape(vec![n, depth, outs, deep, oh * ow])?
            .permute(vec![0, 2, 3, 1, 4])?
            .contiguous()?
            .reshape((n * outs, deep * depth, oh * ow))?;
        let ids: Vec<u32> = (0..deep)
            .flat_map(|k| (0..depth).map(move |i| (i * step + k * apart).checked_sub(cut)))
            .map(|at| at.filter(|at| *at < out).map_or(NOTHING, |at| at as u32))
            .collect();
        let ids = Tensor::from_vec(ids, deep * depth, x.device())?;
        y.index_add(&ids, &images, 1)?
    };
    let y = y.reshape((n, outs, out, oh, ow))?;
    let y = match b {
        Some(b) => y.add(&channel(op, b, y.dims())?)?,
        None => y,
    };
    like(x, y)
}
