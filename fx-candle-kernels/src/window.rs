//! The windows that a convolution or a pooling slides over one axis of an image.

use candle_core::{DType, Result, Tensor, bail};

use crate::room;

/// The index that candle's `index_select`, `gather` and their gradients read as a zero.
pub const NOTHING: u32 = u32::MAX;

/// One axis: its size and how a window moves along it.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The size of the input.
    pub size: usize,
    /// The number of positions in a window.
    pub kernel: usize,
    /// The step between windows.
    pub stride: usize,
    /// The positions added before and after the input.
    pub padding: usize,
    /// The step between the positions of a window.
    pub dilation: usize,
}

impl Axis {
    /// Whether each window is one position, and each position has its window.
    pub fn is_whole(&self) -> bool {
        self.kernel == 1 && self.stride == 1 && self.padding == 0
    }

    /// The number of windows; under `ceil` the last one may leave the padded input, but it
    /// starts inside the input or the padding before it.
    ///
    /// # Errors
    /// Returns an error if the kernel, stride or dilation is 0, one of them is too large, or the
    /// window is larger than the padded input.
    pub fn windows(&self, op: &str, shape: &[usize], ceil: bool) -> Result<usize> {
        let Self {
            size,
            kernel,
            stride,
            padding,
            dilation,
        } = *self;
        if kernel == 0 || stride == 0 || dilation == 0 {
            bail!(
                "{op}: kernel {kernel}, stride {stride} and dilation {dilation} must be above 0, \
                 for input {shape:?}"
            )
        }
        let measures = dilation
            .checked_mul(kernel - 1)
            .and_then(|span| span.checked_add(1))
            .zip(
                padding
                    .checked_mul(2)
                    .and_then(|both| both.checked_add(size)),
            )
            // The last window may go as far as a stride beyond the padded input.
            .filter(|(span, padded)| {
                let ends = [*span, *padded, stride];
                ends.iter().all(|n| *n <= isize::MAX as usize / 2)
            });
        let Some((span, padded)) = measures else {
            bail!(
                "{op}: a kernel of {kernel}, stride {stride}, padding {padding} and dilation {dilation} reach too far, \
                 for input {shape:?}"
            )
        };
        if ceil && span > padded && span - padded < stride {
            // The one window leaves the padded input.
            return Ok(1);
        }
        if span > padded {
            bail!(
                "{op}: a kernel of {kernel} with dilation {dilation} spans {span}, more than the \
                 {padded} of input {shape:?} with padding {padding}"
            )
        }
        let room = padded - span;
        let mut count = if ceil {
            room.div_ceil(stride)
        } else {
            room / stride
        } + 1;
        if ceil && (count - 1) * stride >= size + padding {
            count -= 1;
        }
        Ok(count)
    }

    /// The input index of position `k` in window `o`, or none in the padding.
    pub fn at(&self, o: usize, k: usize) -> Option<usize> {
        (o * self.stride + k * self.dilation)
            .checked_sub(self.padding)
            .filter(|&i| i < self.size)
    }
}

/// Both axes of an image pooled with the given options, and their window counts.
///
/// # Errors
/// Returns the errors of [`Axis::windows`], and an error if a padding is more than half its kernel,
/// or the windows do not fit into memory.
pub fn pooled(
    op: &str,
    shape: &[usize],
    options: [(usize, usize); 4],
    ceil: bool,
) -> Result<([Axis; 2], [usize; 2])> {
    let [kernel, stride, padding, dilation] = options;
    let (h, w) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    if padding.0 > kernel.0 / 2 || padding.1 > kernel.1 / 2 {
        bail!(
            "{op}: padding {padding:?} is more than half of kernel {kernel:?}, for input {shape:?}"
        )
    }
    if h == 0 || w == 0 {
        bail!("{op}: input {shape:?} has an empty image")
    }
    let rows = Axis {
        size: h,
        kernel: kernel.0,
        stride: stride.0,
        padding: padding.0,
        dilation: dilation.0,
    };
    let columns = Axis {
        size: w,
        kernel: kernel.1,
        stride: stride.1,
        padding: padding.1,
        dilation: dilation.1,
    };
    let count = [
        rows.windows(op, shape, ceil)?,
        columns.windows(op, shape, ceil)?,
    ];
    let images = shape[..shape.len() - 2].iter().product();
    // The result, the padded input, and the places that the windows read.
    let (padded_h, padded_w) = (h + 2 * padding.0, w + 2 * padding.1);
    room::of(op, &[images, count[0], count[1]], DType::F32)?;
    room::of(op, &[images, padded_h, padded_w], DType::F32)?;
    room::of(op, &[count[0], count[1], kernel.0, kernel.1], DType::U32)?;
    Ok(([rows, columns], count))
}

/// `x [c, h, w]` or `[n, c, h, w]` as `[n, c, h, w]`.
///
/// # Errors
/// Returns an error if `x` has a different rank.
pub fn image(op: &str, x: &Tensor) -> Result<Tensor> {
    match x.rank() {
        3 => x.unsqueeze(0),
        4 => Ok(x.clone()),
        _ => bail!(
            "{op}: input {:?} must be [c, h, w] or [n, c, h, w]",
            x.dims()
        ),
    }
}

/// `y [n, c, ..]` in the rank of the input `x` of [`image`].
///
/// # Errors
/// Returns only candle's errors.
pub fn like(x: &Tensor, y: Tensor) -> Result<Tensor> {
    if x.rank() == 3 { y.squeeze(0) } else { Ok(y) }
}
