//! The sizes of convolutions and pools and the units of networks over sequences, as PyTorch names them.
//!
//! Invariant: the size of a result is said here alone.

/// The sizes of a two-dimensional convolution, as PyTorch's `Conv2d` names them; pairs are (rows, columns).
///
/// ```
/// use fx_static::ConvSpec;
///
/// let spec = ConvSpec { stride: [2, 2], ..ConvSpec::new(64, 128, 3) };
/// assert_eq!(spec.padding, [1, 1]);
/// assert_eq!(spec.out_size(56, 56), (28, 28));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvSpec {
    /// The channels of the input.
    pub in_channels: usize,
    /// The channels of the output.
    pub out_channels: usize,
    /// The groups that the channels are divided into; each reads only its own channels.
    pub groups: usize,
    /// The rows and columns of the window.
    pub kernel: [usize; 2],
    /// The pixels from one window to the next.
    pub stride: [usize; 2],
    /// The zeros around the input.
    pub padding: [usize; 2],
    /// The pixels from one row or column of the window to the next.
    pub dilation: [usize; 2],
}

impl ConvSpec {
    /// A square convolution with one group, stride 1, and the padding that keeps the size for an odd `kernel`.
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize) -> ConvSpec {
        ConvSpec {
            in_channels,
            out_channels,
            groups: 1,
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [kernel / 2; 2],
            dilation: [1; 2],
        }
    }

    /// The height and width of the output for an input of this size; zero where no window fits.
    #[inline]
    pub fn out_size(&self, height: usize, width: usize) -> (usize, usize) {
        let side = |i: usize, size: usize| {
            let window = self.dilation[i] * (self.kernel[i] - 1) + 1;
            let padded = size + 2 * self.padding[i];
            if padded < window {
                0
            } else {
                (padded - window) / self.stride[i] + 1
            }
        };
        (side(0, height), side(1, width))
    }

    /// The input channels of one group.
    #[inline]
    pub fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    /// The output channels of one group.
    #[inline]
    pub fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// The places of the window.
    #[inline]
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each group is one channel in and out.
    #[inline]
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.in_channels && self.groups == self.out_channels
    }
}

/// The windows of a pool; pairs are (rows, columns).
///
/// ```
/// use fx_static::PoolSpec;
///
/// let spec = PoolSpec { padding: [1, 1], stride: [2, 2], ..PoolSpec::new(3) };
/// assert_eq!(spec.out_size(112, 112), (56, 56));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolSpec {
    /// The rows and columns of the window.
    pub kernel: [usize; 2],
    /// The pixels from one window to the next.
    pub stride: [usize; 2],
    /// The pixels around the image that windows may cover; at most half of the window.
    pub padding: [usize; 2],
    /// The pixels from one row or column of the window to the next. An average takes 1 only.
    pub dilation: [usize; 2],
    /// Whether a last window that does not fit whole is used too.
    pub ceil_mode: bool,
    /// Whether an average counts the pixels of the padding.
    pub count_include_pad: bool,
}

impl PoolSpec {
    /// Square windows side by side, as PyTorch's defaults.
    pub fn new(kernel: usize) -> PoolSpec {
        PoolSpec {
            kernel: [kernel; 2],
            stride: [kernel; 2],
            padding: [0; 2],
            dilation: [1; 2],
            ceil_mode: false,
            count_include_pad: true,
        }
    }

    /// The windows along a side of a size: 0 is the rows.
    #[inline]
    pub fn side(&self, i: usize, size: usize) -> usize {
        let (stride, padding) = (self.stride[i], self.padding[i]);
        let window = self.dilation[i] * (self.kernel[i] - 1) + 1;
        if size + 2 * padding < window {
            return 0;
        }
        let more = if self.ceil_mode { stride - 1 } else { 0 };
        let out = (size + 2 * padding - window + more) / stride + 1;
        // The last window starts inside the image or the padding before it.
        if self.ceil_mode && (out - 1) * stride >= size + padding {
            out - 1
        } else {
            out
        }
    }

    /// The height and width of the result for an image of this size; zero where no window fits.
    #[inline]
    pub fn out_size(&self, height: usize, width: usize) -> (usize, usize) {
        (self.side(0, height), self.side(1, width))
    }

    /// A window along a side of a size: 0 is the rows.
    #[inline]
    pub fn window(&self, i: usize, size: usize, at: usize) -> Window {
        let (padding, step) = (self.padding[i], self.dilation[i]);
        let start = at * self.stride[i];
        let end = start + step * (self.kernel[i] - 1) + 1;
        let skipped = padding.saturating_sub(start).div_ceil(step);
        let first = (start + skipped * step).saturating_sub(padding);
        let last = end.saturating_sub(padding).min(size).max(first);
        let count = if self.count_include_pad {
            end.min(size + 2 * padding) - start
        } else {
            last - first
        };
        Window { first, last, count }
    }
}

/// Pixels of a window along one side, clipped to the image, and how many an average counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first pixel.
    pub first: usize,
    /// The one behind the last pixel.
    pub last: usize,
    /// How many an average counts.
    pub count: usize,
}

/// How the next state is computed from the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Long short-term memory: input, forget, cell and output, in this order.
    Lstm,
    /// A gated unit: reset, update and new, in this order.
    Gru,
    /// The hyperbolic tangent of the sum.
    Tanh,
    /// The sum where it is above 0.
    Relu,
}

impl Unit {
    /// How many rows of the weights a feature of the state has.
    #[inline]
    pub fn gates(self) -> usize {
        match self {
            Unit::Lstm => 4,
            Unit::Gru => 3,
            Unit::Tanh | Unit::Relu => 1,
        }
    }
}

crate::source::source!(ConvSpec {
    in_channels,
    out_channels,
    groups,
    kernel,
    stride,
    padding,
    dilation
});
crate::source::source!(PoolSpec {
    kernel,
    stride,
    padding,
    dilation,
    ceil_mode,
    count_include_pad
});
crate::source::source!(Unit);
