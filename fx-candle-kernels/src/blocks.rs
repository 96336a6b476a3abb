//! Blocks of images: laid out as columns and added up again, and pixels as channels.

use candle_core::{Result, Tensor, bail};

use super::places::along;
use super::widen::widened;
use super::window::{Axis, NOTHING, image};
use crate::room;

/// Kernel, dilation, padding and stride of the blocks.
pub type Options = [(usize, usize); 4];

/// The pixel of each position of each block: positions first, then blocks; and the number of
/// blocks.
fn pixels(
    op: &str,
    size: (usize, usize),
    options: Options,
    shape: &[usize],
) -> Result<(Vec<u32>, [usize; 2])> {
    let [kernel, dilation, padding, stride] = options;
    let axis = |size: usize, at: fn((usize, usize)) -> usize| Axis {
        size,
        kernel: at(kernel),
        stride: at(stride),
        padding: at(padding),
        dilation: at(dilation),
    };
    let (rows, columns) = (axis(size.0, |p| p.0), axis(size.1, |p| p.1));
    let blocks = [
        rows.windows(op, shape, false)?,
        columns.windows(op, shape, false)?,
    ];
    room::of(
        op,
        &[kernel.0, kernel.1, blocks[0], blocks[1]],
        candle_core::DType::I64,
    )?;
    if size.0.saturating_mul(size.1) >= NOTHING as usize {
        bail!("{op}: shape {shape:?} has too large an image")
    }
    let mut ids = Vec::with_capacity(kernel.0 * kernel.1 * blocks[0] * blocks[1]);
    for (ky, kx) in (0..kernel.0).flat_map(|y| (0..kernel.1).map(move |x| (y, x))) {
        for oy in 0..blocks[0] {
            let row = rows.at(oy, ky);
            ids.extend((0..blocks[1]).map(|ox| match (row, columns.at(ox, kx)) {
                (Some(row), Some(column)) => (row * size.1 + column) as u32,
                _ => NOTHING,
            }));
        }
    }
    Ok((ids, blocks))
}

/// The blocks of `x [n, c, h, w]` or `[c, h, w]` as columns: `[n, c * kh * kw, blocks]`.
///
/// # Errors
/// Returns an error if `x` has a different rank, an option is 0, or no block fits.
pub fn unfold(x: &Tensor, options: Options) -> Result<Tensor> {
    let op = "unfold";
    let image = image(op, x)?;
    let (n, c, h, w) = image.dims4()?;
    if [c, h, w].contains(&0) {
        bail!("{op}: input {:?} has no pixels", x.dims())
    }
    let (ids, blocks) = pixels(op, (h, w), options, x.dims())?;
    let count = blocks[0] * blocks[1];
    let wide = c * options[0].0 * options[0].1;
    let y = along(op, &image.contiguous()?.reshape((n * c, h * w))?, 1, ids)?;
    match x.rank() {
        3 => y.reshape((wide, count)),
        _ => y.reshape((n, wide, count)),
    }
}

/// The columns of `x [n, c * kh * kw, blocks]` as blocks, added up at their places in an image of
/// `size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or an option is 0.
pub fn fold(x: &Tensor, size: (usize, usize), options: Options) -> Result<Tensor> {
    let op = "fold";
    let (n, wide, count) = match x.dims() {
        &[wide, count] => (1, wide, count),
        &[n, wide, count] => (n, wide, count),
        other => bail!("{op}: input {other:?} must be [n, c * kh * kw, blocks] or without n"),
    };
    let each = options[0].0.saturating_mul(options[0].1);
    if size.0 == 0 || size.1 == 0 || each == 0 || wide == 0 || wide % each != 0 {
        bail!(
            "{op}: {wide} rows of input {:?} are not channels of {each} positions of an image {size:?}",
            x.dims()
        )
    }
    let (ids, blocks) = pixels(op, size, options, x.dims())?;
    if blocks[0] * blocks[1] != count {
        bail!(
            "{op}: an image {size:?} has {} x {} blocks, input {:?} has {count}",
            blocks[0],
            blocks[1],
            x.dims()
        )
    }
    let c = wide / each;
    let shape = match x.rank() {
        2 => vec![c, size.0, size.1],
        _ => vec![n, c, size.0, size.1],
    };
    room::of(op, &shape, x.dtype())?;
    if n == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    widened(x, x, |x| {
        let columns = x.contiguous()?.reshape((n * c, each * count))?;
        let ids = Tensor::from_vec(ids, each * count, x.device())?;
        Tensor::zeros((n * c, size.0 * size.1), x.dtype(), x.device())?
            .index_add(&ids, &columns, 1)?
            .reshape(shape)
    })
}

/// `x [.., c * r * r, h, w]` with channels as pixels: `[.., c, h * r, w * r]`.
///
/// # Errors
/// Returns an error if there are fewer than three dims, or `r` does not divide the channels.
pub fn shuffle(op: &str, x: &Tensor, r: usize) -> Result<Tensor> {
    let &[ref lead @ .., c, h, w] = x.dims() else {
        bail!("{op}: input {:?} must be [.., c, h, w]", x.dims())
    };
    let Some(square) = r.checked_mul(r).filter(|n| *n > 0 && c % n == 0) else {
        bail!(
            "{op}: {c} channels of input {:?} are not a number of squares of {r}",
            x.dims()
        )
    };
    let n: usize = lead.iter().product();
    let own = c / square;
    let shape = [lead, &[own, h * r, w * r]].concat();
    if x.elem_count() == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    x.reshape(vec![n * own, r, r, h, w])?
        .permute(vec![0, 3, 1, 4, 2])?
        .contiguous()?
        .reshape(shape)
}

/// `x [.., c, h, w]` with squares of pixels as channels: `[.., c * r * r, h / r, w / r]`.
///
/// # Errors
/// Returns an error if there are fewer than three dims, or `r` does not divide the image.
pub fn unshuffle(op: &str, x: &Tensor, r: usize) -> Result<Tensor> {
    let &[ref lead @ .., c, h, w] = x.dims() else {
        bail!("{op}: input {:?} must be [.., c, h, w]", x.dims())
    };
    if r == 0 || h % r != 0 || w % r != 0 {
        bail!(
            "{op}: an image of {h} x {w} of input {:?} is not of squares of {r}",
            x.dims()
        )
    }
    let n: usize = lead.iter().product();
    let shape = [lead, &[c * r * r, h / r, w / r]].concat();
    if x.elem_count() == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    x.reshape(vec![n * c, h / r, r, w / r, r])?
        .permute(vec![0, 2, 4, 1, 3])?
        .contiguous()?
        .reshape(shape)
}

/// `x [n, c, ..]` with the channels of `groups` groups interleaved.
///
/// # Errors
/// Returns an error if there are fewer than three dims, or `groups` does not divide the channels.
pub fn channels(op: &str, x: &Tensor, groups: usize) -> Result<Tensor> {
    let &[n, c, ref rest @ ..] = x.dims() else {
        bail!("{op}: input {:?} must be [n, c, ..]", x.dims())
    };
    if rest.is_empty() || groups == 0 || c % groups != 0 {
        bail!(
            "{op}: {groups} groups do not divide the channels of input {:?}, [n, c, ..]",
            x.dims()
        )
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let inner: usize = rest.iter().product();
    x.reshape((n, groups, c / groups, inner))?
        .transpose(1, 2)?
        .contiguous()?
        .reshape(x.dims())
}
