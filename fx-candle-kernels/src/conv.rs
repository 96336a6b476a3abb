//! Two-dimensional convolution with separate options for each axis.

use candle_core::{CpuStorage, CustomOp2, DType, Error, Layout, Result, Shape, Tensor, bail};
use fx_kernels::Level;
use fx_kernels::conv::{ConvSpec, grouped_nchw};

use super::dim::same_dtype;
use super::expand::channel;
use super::fold::slice;
use super::widen::{is_half, widened};
use super::window::{Axis, NOTHING, image, like};
use crate::room;

/// Groups of at most so many input channels are summed tap by tap: nothing is laid out.
const FEW: usize = 8;
/// Columns of more values than this are not laid out when candle's own convolution will do.
const LARGE: usize = 1 << 23;
/// The same limit if a gradient is needed: candle's own is several times slower.
const LARGE_TRACKED: usize = 1 << 26;

/// The convolution of `x [n, c, h, w]` or `[c, h, w]` with `w [o, c / groups, kh, kw]`, plus
/// `b [o]`, as `torch.nn.functional.conv2d`.
///
/// The result is `[n, o, oh, ow]` or `[o, oh, ow]`.
///
/// # Errors
/// Returns an error if a rank differs, an option is 0, the channels do not fit the groups, `b` is
/// not `[o]`, or the kernel is larger than the padded input.
#[allow(clippy::too_many_arguments)]
pub fn conv2d(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    stride: (usize, usize),
    padding: (usize, usize),
    dilation: (usize, usize),
    groups: usize,
) -> Result<Tensor> {
    let op = "conv2d";
    same_dtype(op, x, w)?;
    b.map_or(Ok(()), |b| same_dtype(op, x, b))?;
    if is_half(x.dtype()) {
        return widened(x, (x, w, b), |(x, w, b)| {
            conv2d(&x, &w, b.as_ref(), stride, padding, dilation, groups)
        });
    }
    let image = image(op, x)?;
    let &[outs, ins, kh, kw] = w.dims() else {
        bail!(
            "{op}: weight {:?} must be [out, in / groups, kh, kw]",
            w.dims()
        )
    };
    let (n, c, height, width) = image.dims4()?;
    if groups == 0 || outs % groups != 0 {
        bail!(
            "{op}: weight {:?} does not split its {outs} outputs into {groups} groups",
            w.dims()
        )
    }
    if ins.checked_mul(groups) != Some(c) {
        bail!(
            "{op}: input {:?} has {c} channels, weight {:?} in {groups} groups needs {}",
            x.dims(),
            w.dims(),
            ins.saturating_mul(groups)
        )
    }
    if let Some(b) = b
        && b.dims() != [outs]
    {
        bail!(
            "{op}: bias {:?} does not fit weight {:?}, it must be [{outs}]",
            b.dims(),
            w.dims()
        )
    }
    let rows = Axis {
        size: height,
        kernel: kh,
        stride: stride.0,
        padding: padding.0,
        dilation: dilation.0,
    };
    let columns = Axis {
        size: width,
        kernel: kw,
        stride: stride.1,
        padding: padding.1,
        dilation: dilation.1,
    };
    let oh = rows.windows(op, x.dims(), false)?;
    let ow = columns.windows(op, x.dims(), false)?;
    room::of(op, &[n, outs, oh, ow], x.dtype())?;
    if [n, c, outs, height, width].contains(&0) {
        let y = Tensor::zeros((n, outs, oh, ow), x.dtype(), x.device())?;
        return like(x, y);
    }
    if n * height * kw >= NOTHING as usize {
        bail!("{op}: input {:?} is too large", x.dims())
    }
    let sides = Sides {
        axes: [rows, columns],
        out: [oh, ow],
    };
    let y = if groups > 1 && ins <= FEW && is_plain([Some(&image), Some(w), b]) {
        let grouped = Grouped {
            spec: ConvSpec {
                in_channels: c,
                out_channels: outs,
                groups,
                kernel: [kh, kw],
                stride: [stride.0, stride.1],
                padding: [padding.0, padding.1],
                dilation: [dilation.0, dilation.1],
            },
            bias: b.map(Tensor::to_vec1).transpose()?,
        };
        image
            .contiguous()?
            .apply_op2_no_bwd(&w.contiguous()?, &grouped)?
    } else if groups == 1 && sides.are_whole() && (n == 1 || !tracked(&image, w)) {
        pixels(&image, w, b)?
    } else {
        let of = |images: &Tensor| {
            if !sides.suits_candle(images, w) {
                return product(images, w, b, &sides, groups);
            }
            let y = images.conv2d(w, padding.0, stride.0, dilation.0, groups)?;
            match b {
                Some(b) => y.add(&channel(op, b, y.dims())?),
                None => Ok(y),
            }
        };
        // So many images that their windows are laid out in bounded memory.
        let most = LARGE_TRACKED / sides.values(1, c).clamp(1, LARGE_TRACKED);
        if n <= most || tracked(&image, w) {
            of(&image)?
        } else {
            let parts = (0..n).step_by(most);
            let parts = parts.map(|at| of(&image.narrow(0, at, most.min(n - at))?));
            Tensor::cat(&parts.collect::<Result<Vec<Tensor>>>()?, 0)?
        }
    };
    like(x, y)
}

/// Whether all are of `f32` on the CPU, and none needs a gradient.
fn is_plain(all: [Option<&Tensor>; 3]) -> bool {
    let is_plain = |t: &&Tensor| t.dtype() == DType::F32 && t.device().is_cpu() && !t.track_op();
    all.iter().flatten().all(is_plain)
}

/// A convolution with few channels in a group, as depthwise ones, without windows laid out.
struct Grouped {
    spec: ConvSpec,
    bias: Option<Vec<f32>>,
}

impl CustomOp2 for Grouped {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        w: &CpuStorage,
        w_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, _, height, width) = x_layout.shape().dims4()?;
        let (oh, ow) = self.spec.out_size(height, width);
        let shape = Shape::from((n, self.spec.out_channels, oh, ow));
        let mut out = vec![0.0; shape.elem_count()];
        grouped_nchw(
            Level::best(),
            &self.spec,
            slice("conv2d", x, x_layout)?,
            slice("conv2d", w, w_layout)?,
            self.bias.as_deref(),
            (n, height, width),
            &mut out,
        )
        .map_err(Error::wrap)?;
        Ok((CpuStorage::F32(out), shape))
    }
}

struct Sides {
    axes: [Axis; 2],
    out: [usize; 2],
}

/// Whether a gradient may be asked for.
fn tracked(x: &Tensor, w: &Tensor) -> bool {
    x.track_op() || w.track_op()
}

impl Sides {
    /// Whether each window is one pixel, and each pixel has its window.
    fn are_whole(&self) -> bool {
        self.axes.iter().all(Axis::is_whole)
    }

    /// How many values the windows of images have.
    fn values(&self, images: usize, channels: usize) -> usize {
        let [rows, columns] = &self.axes;
        let sizes = [self.out[0], self.out[1], rows.kernel, columns.kernel];
        let images = images.saturating_mul(channels);
        sizes.iter().fold(images, |all, &n| all.saturating_mul(n))
    }

    /// Whether candle's own convolution is correct for these options, and the better choice.
    fn suits_candle(&self, x: &Tensor, w: &Tensor) -> bool {
        let [rows, columns] = &self.axes;
        let same = rows.stride == columns.stride
            && rows.padding == columns.padding
            && rows.dilation == columns.dilation;
        if !same {
            return false;
        }
        let values = self.values(x.dims()[0], x.dims()[1]);
        if !tracked(x, w) {
            return values > LARGE;
        }
        // Candle uses one count of rows left over by the last window for both axes.
        let over = |axis: &Axis, out: usize| {
            let used = (out - 1) * axis.stride + axis.dilation * (axis.kernel - 1) + 1;
            axis.size + 2 * axis.padding - used
        };
        let (down, across) = (over(rows, self.out[0]), over(columns, self.out[1]));
        values > LARGE_TRACKED && down == across && down <= rows.size.min(columns.size)
    }
}

/// A convolution of single pixels: a matrix product for each image, as it is. A gradient of the weight would
/// be one for each image first.
fn pixels(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
    let (n, c, height, width) = x.dims4()?;
    let outs = w.dims()[0];
    let w = w.contiguous()?.reshape((outs, c))?;
    let x = x.contiguous()?.reshape((n, c, height * width))?;
    let y = w.broadcast_as((n, outs, c))?.matmul(&x)?;
    let y = y.reshape((n, outs, height, width))?;
    match b {
        Some(b) => y.add(&channel("conv2d", b, y.dims())?),
        None => Ok(y),
    }
}

/// The convolution as one matrix product per group: all windows of all images are laid out as the
/// columns of a matrix `[c * kh * kw, n * oh * ow]`.
fn product(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    sides: &Sides,
    groups: usize,
) -> Result<Tensor> {
    let (n, c, _, _) = x.dims4()?;
    let (outs, _, kh, kw) = w.dims4()?;
    let [oh, ow] = sides.out;
    let spots = n * oh * ow;
    let inner = c / groups * kh * kw;
    // The windows, and their rows in order.
    room::of("conv2d", &[c, kh, kw, n, oh, ow], x.dtype())?;
    room::of("conv2d", &[kh, kw, n, oh], DType::U32)?;
    let columns = columns(x, sides)?;
    let w = w.contiguous()?;
    let y = if groups == 1 {
        w.reshape((outs, inner))?
            .matmul(&columns.reshape((inner, spots))?)?
    } else {
        w.reshape((groups, outs / groups, inner))?
            .matmul(&columns.reshape((groups, inner, spots))?)?
            .reshape((outs, spots))?
    };
    let y = match b {
        Some(b) => y.add(&b.reshape((outs, 1))?.broadcast_as((outs, spots))?)?,
        None => y,
    };
    if n == 1 {
        return y.reshape((1, outs, oh, ow));
    }
    y.reshape((outs, n, oh * ow))?
        .transpose(0, 1)?
        .contiguous()?
        .reshape((n, outs, oh, ow))
}

/// The windows of `x [n, c, h, w]`, contiguous in the order `c, kh, kw, n, oh, ow`.
fn columns(x: &Tensor, sides: &Sides) -> Result<Tensor> {
    let (n, c, h, w) = x.dims4()?;
    let [rows, across] = &sides.axes;
    let [oh, ow] = sides.out;
    let id = |i: Option<usize>| i.map_or(NOTHING, |i| i as u32);
    let mut x = x.transpose(0, 1)?.contiguous()?;
    if !across.is_whole() {
        // Each row is expanded to its windows: kw rows of ow values.
        let ids: Vec<u32> = (0..across.kernel)
            .flat_map(|k| (0..ow).map(move |o| id(across.at(o, k))))
            .collect();
        let ids = Tensor::from_vec(ids, across.kernel * ow, x.device())?;
        x = x.reshape((c * n * h, w))?.index_select(&ids, 1)?;
    }
    if rows.is_whole() && across.kernel == 1 {
        return Ok(x);
    }
    // Then rows of ow values are put in order, each copied as a whole.
    let mut ids = Vec::with_capacity(rows.kernel * across.kernel * n * oh);
    for ky in 0..rows.kernel {
        for kx in 0..across.kernel {
            for image in 0..n {
                ids.extend((0..oh).map(|o| {
                    id(rows
                        .at(o, ky)
                        .map(|row| (image * h + row) * across.kernel + kx))
                }));
            }
        }
    }
    let count = ids.len();
    let ids = Tensor::from_vec(ids, count, x.device())?;
    x.reshape((c, n * h * across.kernel, ow))?
        .index_select(&ids, 1)
}
