//! Transposed convolution: each input pixel adds its weights to a window of the result.

use candle_core::{Result, Tensor, bail};

use super::dim::same_dtype;
use super::expand::channel;
use super::widen::{is_half, widened};
use super::window::{NOTHING, image, like};
use crate::room;

/// One axis of the result and the elements added to it.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    out: usize,
}

impl Axis {
    /// For each place of the result the pairs (position in the kernel, position in the input) that
    /// meet there, as positions in both laid side by side; all places are padded to one length.
    fn meetings(&self) -> (Vec<u32>, usize) {
        let pairs: Vec<Vec<u32>> = (0..self.out)
            .map(|o| {
                (0..self.kernel)
                    .filter_map(|k| {
                        let from = (o + self.padding).checked_sub(k * self.dilation)?;
                        let i = from / self.stride;
                        (from.is_multiple_of(self.stride) && i < self.size)
                            .then(|| (k * self.size + i) as u32)
                    })
                    .collect()
            })
            .collect();
        let wide = pairs.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let ids = pairs
            .into_iter()
            .flat_map(|mut at| {
                at.resize(wide, NOTHING);
                at
            })
            .collect();
        (ids, wide)
    }
}

/// The transposed convolution of `x [n, c, h, w]` or `[c, h, w]` with `w [c, o / groups, kh, kw]`, plus `b [o]`, as
/// `torch.nn.functional.conv_transpose2d`.
///
/// Along each axis the result has `(h - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1` pixels.
///
/// # Errors
/// Returns an error if a rank differs, an option is 0, the channels do not fit the groups, `b` is
/// not `[o]`, `output_padding` is not below stride or dilation, or nothing is left of the result.
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv_transpose2d(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    stride: (usize, usize),
    padding: (usize, usize),
    output_padding: (usize, usize),
    groups: usize,
    dilation: (usize, usize),
) -> Result<Tensor> {
    let op = "conv_transpose2d";
    same_dtype(op, x, w)?;
    b.map_or(Ok(()), |b| same_dtype(op, x, b))?;
    if is_half(x.dtype()) {
        return widened(x, (x, w, b), |(x, w, b)| {
            let b = b.as_ref();
            conv_transpose2d(&x, &w, b, stride, padding, output_padding, groups, dilation)
        });
    }
    let image = image(op, x)?;
    let &[ins, each, kh, kw] = w.dims() else {
        bail!(
            "{op}: weight {:?} must be [in, out / groups, kh, kw]",
            w.dims()
        )
    };
    let (n, c, height, width) = image.dims4()?;
    if c != ins || groups == 0 || !c.is_multiple_of(groups) {
        bail!(
            "{op}: input {:?} has {c} channels, weight {:?} in {groups} groups needs {ins}",
            x.dims(),
            w.dims()
        )
    }
    let Some(outs) = each.checked_mul(groups) else {
        bail!(
            "{op}: weight {:?} in {groups} groups has too many outputs",
            w.dims()
        )
    };
    if let Some(b) = b
        && b.dims() != [outs]
    {
        bail!(
            "{op}: bias {:?} does not fit weight {:?}, it must be [{outs}]",
            b.dims(),
            w.dims()
        )
    }
    let axis = |size: usize,
                kernel: usize,
                stride: usize,
                padding: usize,
                extra: usize,
                dilation: usize|
     -> Result<Axis> {
        if kernel == 0 || stride == 0 || dilation == 0 {
            bail!(
                "{op}: kernel {kernel}, stride {stride} and dilation {dilation} must be above 0, for input {:?}",
                x.dims()
            )
        }
        if extra >= stride && extra >= dilation {
            bail!(
                "{op}: output_padding {extra} must be below stride {stride} or dilation {dilation}"
            )
        }
        let pixels = (size.max(1) - 1)
            .checked_mul(stride)
            .zip(dilation.checked_mul(kernel - 1))
            .and_then(|(starts, span)| starts.checked_add(span)?.checked_add(extra)?.checked_add(1))
            .zip(padding.checked_mul(2));
        let Some((full, cut)) = pixels else {
            bail!(
                "{op}: stride {stride}, padding {padding}, output_padding {extra} and dilation {dilation} reach too far, \
                 for input {:?}",
                x.dims()
            )
        };
        match full.checked_sub(cut) {
            Some(out) if out > 0 && size > 0 => Ok(Axis {
                size,
                kernel,
                stride,
                padding,
                dilation,
                out,
            }),
            _ => bail!(
                "{op}: padding {padding} leaves nothing of the {full} pixels that input {:?} gives",
                x.dims()
            ),
        }
    };
    let rows = axis(
        height,
        kh,
        stride.0,
        padding.0,
        output_padding.0,
        dilation.0,
    )?;
    let columns = axis(width, kw, stride.1, padding.1, output_padding.1, dilation.1)?;
    room::of(op, &[n, outs, rows.out, columns.out], x.dtype())?;
    if [n, c, outs].contains(&0) {
        let y = Tensor::zeros((n, outs, rows.out, columns.out), x.dtype(), x.device())?;
        return like(x, y);
    }
    if height * kh >= NOTHING as usize || width * kw >= NOTHING as usize {
        bail!("{op}: input {:?} is too large", x.dims())
    }
    // The intermediate results: every pixel times every weight, then the sums at each column.
    let meet = |axis: &Axis| axis.kernel.min(axis.size);
    room::of(op, &[n, outs, kh, kw, height, width], x.dtype())?;
    room::of(
        op,
        &[n, outs, kh, height, columns.out, meet(&columns)],
        x.dtype(),
    )?;
    room::of(
        op,
        &[n, outs, rows.out, meet(&rows), columns.out],
        x.dtype(),
    )?;
    // Every pixel times every weight: [groups, out / groups * kh * kw, n * h * w].
    let spots = n * height * width;
    let left = w
        .contiguous()?
        .reshape((groups, c / groups, each * kh * kw))?
        .transpose(1, 2)?;
    let right = image
        .transpose(0, 1)?
        .contiguous()?
        .reshape((groups, c / groups, spots))?;
    let y = left.contiguous()?.matmul(&right)?;
    // Then the products that meet at a column of the result are added up, and after that those at a
    // row.
    let y = y
        .reshape(vec![outs, kh, kw, n, height, width])?
        .permute(vec![3, 0, 1, 4, 2, 5])?
        .contiguous()?
        .reshape((n * outs * kh * height, kw * width))?;
    let (ids, wide) = columns.meetings();
    let ids = Tensor::from_vec(ids, columns.out * wide, x.device())?;
    let y = y.index_select(&ids, 1)?;
    let y = if wide == 1 {
        y
    } else {
        y.reshape((n * outs * kh * height * columns.out, wide))?
            .sum(1)?
    };
    let y = y.reshape((n * outs, kh * height, columns.out))?;
    let (ids, wide) = rows.meetings();
    let ids = Tensor::from_vec(ids, rows.out * wide, x.device())?;
    let y = y.index_select(&ids, 1)?;
    let y = if wide == 1 {
        y
    } else {
        y.reshape((n * outs, rows.out, wide, columns.out))?.sum(2)?
    };
    let y = y.reshape((n, outs, rows.out, columns.out))?;
    let y = match b {
        Some(b) => y.add(&channel(op, b, y.dims())?)?,
        None => y,
    };
    like(x, y)
}
