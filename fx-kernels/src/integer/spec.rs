//! `IntegerSpec`: the sizes and steps of a convolution of bytes.
//!
//! Invariant: what is supported has a kernel.

use super::block::PANEL;

/// The sizes and steps of a convolution, as PyTorch's `Conv2d` has them. A matrix is one with windows of one pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerSpec {
    /// The channels of the input.
    pub in_channels: usize,
    /// The channels of the result.
    pub out_channels: usize,
    /// The rows and pixels of a window.
    pub kernel: [usize; 2],
    /// How far windows are apart.
    pub stride: [usize; 2],
    /// The rows and pixels of zeros on each side.
    pub padding: [usize; 2],
    /// How far the pixels of a window are apart.
    pub dilation: [usize; 2],
    /// The blocks of channels that do not see each other.
    pub groups: usize,
}

impl IntegerSpec {
    /// A product with a matrix.
    pub fn matrix(in_channels: usize, out_channels: usize) -> Self {
        IntegerSpec {
            in_channels,
            out_channels,
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
        }
    }

    /// Whether there are kernels for it: groups have whole words of inputs and whole panels of results, or one channel each.
    pub fn is_supported(&self) -> bool {
        let fits = |size: usize, of: usize| size.is_multiple_of(self.groups * of);
        let nothing = [self.in_channels, self.out_channels, self.groups];
        let steps = self.kernel.iter().chain(&self.stride).chain(&self.dilation);
        nothing.iter().chain(steps).all(|size| *size > 0)
            && (self.groups == 1
                || self.is_depthwise()
                || fits(self.in_channels, 4) && fits(self.out_channels, PANEL))
    }

    pub(super) fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.in_channels && self.groups == self.out_channels
    }

    /// The rows and pixels of the result for an image of so many; `None` if no window fits.
    pub fn out_size(&self, height: usize, width: usize) -> Option<(usize, usize)> {
        let side = |size: usize, at: usize| {
            let reach = self.dilation[at] * (self.kernel[at] - 1) + 1;
            let room = (size + 2 * self.padding[at]).checked_sub(reach)?;
            Some(room / self.stride[at] + 1)
        };
        Some((side(height, 0)?, side(width, 1)?))
    }

    /// How many weights a channel of the result has.
    pub(super) fn depth(&self) -> usize {
        self.in_channels / self.groups * self.kernel[0] * self.kernel[1]
    }
}
