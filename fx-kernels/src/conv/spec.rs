//! The sizes of a convolution, checked once: everything behind [`ConvSpec::check`] may divide by them.

use crate::buffer::BLOCK;
use crate::error::check;
use crate::{Level, SizeError};

/// The sizes of a two-dimensional convolution, as PyTorch's `Conv2d` names them; pairs are (rows, columns).
///
/// ```
/// use fx_kernels::conv::ConvSpec;
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
    pub fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    /// The output channels of one group.
    pub fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// The places of the window.
    pub(crate) fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each group is one channel in and out.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.in_channels && self.groups == self.out_channels
    }

    /// Whether the convolution has so few input channels that it reads plain images faster than
    /// blocks of channels: [`Conv2d::run_nchw`](super::Conv2d::run_nchw).
    pub fn reads_plain(&self) -> bool {
        self.groups == 1 && self.in_channels <= BLOCK / 2
    }

    /// The floating-point operations for an output of this many pixels.
    pub(crate) fn work(&self, pixels: usize) -> usize {
        2 * pixels * self.out_channels * self.group_in() * self.taps()
    }

    /// Fails where a size is zero or the groups do not divide the channels, and where the weight or the bias has
    /// another length than these sizes say.
    pub(crate) fn check(&self, weight: &[f32], bias: Option<&[f32]>) -> Result<(), SizeError> {
        let sides = self.kernel.iter().chain(&self.stride).chain(&self.dilation);
        for side in sides.chain([&self.groups, &self.in_channels, &self.out_channels]) {
            check("a size of the convolution", 1, (*side).min(1))?;
        }
        let rest = self.in_channels % self.groups + self.out_channels % self.groups;
        check("the rest of channels that groups leave", 0, rest)?;
        check(
            "the weight",
            self.out_channels * self.group_in() * self.taps(),
            weight.len(),
        )?;
        bias.map_or(Ok(()), |bias| {
            check("the bias", self.out_channels, bias.len())
        })
    }
}

/// How a convolution is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvOptions {
    /// The instructions to use.
    pub level: Level,
    /// Whether Winograd's algorithm may be used where it is faster. Its rounding errors are about twice as large.
    pub winograd: bool,
}

impl Default for ConvOptions {
    /// The widest level of the machine, with Winograd.
    fn default() -> ConvOptions {
        ConvOptions {
            level: Level::best(),
            winograd: true,
        }
    }
}
