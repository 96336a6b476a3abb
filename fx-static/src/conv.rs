//! Convolutions of images `[images, channels, rows, columns]`, and transposed ones.

use crate::kernel::{Kernel, next, next_if};
use crate::point::activated;
use crate::source::source;
use crate::{Activation, ConvSpec};

/// `activation(convolution + bias + residual)`. Reads images, weights `[out_channels, channels of a group, rows, columns]`,
/// and a bias and a residual where it has them.
///
/// ```
/// use fx_static::{Activation, Conv, ConvSpec, Kernel};
///
/// let conv = Conv {
///     spec: ConvSpec { padding: [0; 2], ..ConvSpec::new(1, 1, 2) },
///     size: [2, 2],
///     has_bias: true,
///     has_residual: false,
///     activation: Activation::Relu,
/// };
/// let mut out = [0.0];
/// conv.run(&[&[1.0, 2.0, 3.0, 4.0], &[1.0; 4], &[-3.0]], &mut out);
/// assert_eq!(out, [7.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv {
    /// The channels, groups and windows.
    pub spec: ConvSpec,
    /// The rows and columns of an image.
    pub size: [usize; 2],
    /// Whether a float is added to each channel.
    pub has_bias: bool,
    /// Whether images of the size of the result are added.
    pub has_residual: bool,
    /// What follows.
    pub activation: Activation,
}

/// What one image and one group read and write.
struct Group<'a> {
    conv: &'a Conv,
    out_size: [usize; 2],
    /// The channels of the group.
    x: &'a [f32],
    /// Its weights.
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
}

impl Group<'_> {
    /// `C` channels of the result from one on.
    fn channels<const C: usize, const P: usize>(&self, first: usize, out: &mut [f32]) {
        let ConvSpec {
            kernel: [rows, columns],
            stride,
            padding,
            dilation,
            ..
        } = self.conv.spec;
        let [height, width] = self.conv.size;
        let [out_height, out_width] = self.out_size;
        let plane = out_height * out_width;
        let each = self.conv.spec.group_in() * rows * columns;
        for oy in 0..out_height {
            for ox in (0..out_width).step_by(P) {
                let mut sums = [[0.0f32; P]; C];
                for (channel, x) in self.x.chunks_exact(height * width).enumerate() {
                    for ky in 0..rows {
                        // Before the first row it wraps to a large number.
                        let y = (oy * stride[0] + ky * dilation[0]).wrapping_sub(padding[0]);
                        if y >= height {
                            continue;
                        }
                        let row = &x[y * width..][..width];
                        for kx in 0..columns {
                            let at = (channel * rows + ky) * columns + kx;
                            let place = kx * dilation[1];
                            let pixels: [f32; P] = core::array::from_fn(|p| {
                                let x = ((ox + p) * stride[1] + place).wrapping_sub(padding[1]);
                                row.get(x).copied().unwrap_or(0.0)
                            });
                            for (c, sums) in sums.iter_mut().enumerate() {
                                let w = self.weight[(first + c) * each + at];
                                for (sum, pixel) in sums.iter_mut().zip(pixels) {
                                    *sum += w * pixel;
                                }
                            }
                        }
                    }
                }
                let count = P.min(out_width - ox);
                for (c, sums) in sums.iter().enumerate() {
                    let start = (first + c) * plane + oy * out_width + ox;
                    let bias = self.bias.map_or(0.0, |bias| bias[first + c]);
                    for (p, sum) in sums[..count].iter().enumerate() {
                        let residual = self.residual.map_or(0.0, |x| x[start + p]);
                        let sum = sum + bias + residual;
                        out[start + p] = activated(self.conv.activation, sum);
                    }
                }
            }
        }
    }

    fn run(&self, out: &mut [f32]) {
        let channels = self.conv.spec.group_out();
        let mut at = 0;
        while at + 4 <= channels {
            self.channels::<4, 4>(at, out);
            at += 4;
        }
        for at in at..channels {
            self.channels::<1, 4>(at, out);
        }
    }
}

impl Kernel for Conv {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let (x, weight) = (next(reads), next(reads));
        let bias = next_if(reads, self.has_bias);
        let residual = next_if(reads, self.has_residual);
        let spec = &self.spec;
        let [height, width] = self.size;
        let (out_height, out_width) = spec.out_size(height, width);
        let taken = spec.group_in() * height * width;
        let made = spec.group_out() * out_height * out_width;
        let weights = spec.group_out() * spec.group_in() * spec.taps();
        if taken == 0 || made == 0 {
            return;
        }
        let groups = x.chunks_exact(taken).zip(out.chunks_exact_mut(made));
        for (at, (x, out)) in groups.enumerate() {
            let group = at % spec.groups;
            let of_group = Group {
                conv: self,
                out_size: [out_height, out_width],
                x,
                weight: &weight[group * weights..][..weights],
                bias: bias.map(|bias| &bias[group * spec.group_out()..]),
                residual: residual.map(|residual| &residual[at * made..][..made]),
            };
            of_group.run(out);
        }
    }
}

/// A transposed convolution. Reads images and weights `[channels, out_channels of a group, rows, columns]`.
///
/// ```
/// use fx_static::{ConvSpec, ConvTranspose, Kernel};
///
/// let conv = ConvTranspose {
///     spec: ConvSpec { stride: [1, 2], kernel: [1, 2], padding: [0; 2], ..ConvSpec::new(1, 1, 1) },
///     size: [1, 2],
///     out_size: [1, 4],
/// };
/// let mut out = [0.0; 4];
/// conv.run(&[&[1.0, 2.0], &[1.0, 10.0]], &mut out);
/// assert_eq!(out, [1.0, 10.0, 2.0, 20.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConvTranspose {
    /// The channels of the images and of the result, the groups and the windows.
    pub spec: ConvSpec,
    /// The rows and columns of an image.
    pub size: [usize; 2],
    /// The rows and columns of the result.
    pub out_size: [usize; 2],
}

impl Kernel for ConvTranspose {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let (x, weight) = (next(reads), next(reads));
        let spec = &self.spec;
        let [height, width] = self.size;
        let [out_height, out_width] = self.out_size;
        let [rows, columns] = spec.kernel;
        let plane = out_height * out_width;
        out.fill(0.0);
        if height * width == 0 || plane == 0 {
            return;
        }
        for (at, x) in x.chunks_exact(height * width).enumerate() {
            let (image, channel) = (at / spec.in_channels, at % spec.in_channels);
            let group = channel / spec.group_in();
            for c in 0..spec.group_out() {
                let taps = &weight[(channel * spec.group_out() + c) * spec.taps()..][..spec.taps()];
                let first = image * spec.out_channels + group * spec.group_out() + c;
                let out = &mut out[first * plane..][..plane];
                for (pixel, x) in x.iter().enumerate() {
                    let [y, x_at] = [pixel / width, pixel % width];
                    for (tap, w) in taps.iter().enumerate() {
                        let [ky, kx] = [tap / columns, tap % columns];
                        debug_assert!(ky < rows);
                        let oy = (y * spec.stride[0] + ky * spec.dilation[0])
                            .wrapping_sub(spec.padding[0]);
                        let ox = (x_at * spec.stride[1] + kx * spec.dilation[1])
                            .wrapping_sub(spec.padding[1]);
                        if oy < out_height && ox < out_width {
                            out[oy * out_width + ox] += w * x;
                        }
                    }
                }
            }
        }
    }
}

source!(Conv {
    spec,
    size,
    has_bias,
    has_residual,
    activation
});
source!(ConvTranspose {
    spec,
    size,
    out_size
});
