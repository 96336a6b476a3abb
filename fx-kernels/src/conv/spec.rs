//! What kernels ask of the sizes of a convolution, checked once: everything behind [`check_conv`] may divide by them.

pub use fx_static::ConvSpec;

use crate::buffer::BLOCK;
use crate::error::check;
use crate::{Level, SizeError};

/// Whether a convolution has so few input channels that it reads plain images faster than
/// blocks of channels: [`Conv2d::run_nchw`](super::Conv2d::run_nchw).
pub fn reads_plain(spec: &ConvSpec) -> bool {
    spec.groups == 1 && spec.in_channels <= BLOCK / 2
}

/// The floating-point operations for an output of this many pixels.
pub(crate) fn work(spec: &ConvSpec, pixels: usize) -> usize {
    2 * pixels * spec.out_channels * spec.group_in() * spec.taps()
}

/// Fails where a size is zero or the groups do not divide the channels, and where the weight or the bias has
/// another length than these sizes say.
pub(crate) fn check_conv(
    spec: &ConvSpec,
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Result<(), SizeError> {
    let sides = spec.kernel.iter().chain(&spec.stride).chain(&spec.dilation);
    for side in sides.chain([&spec.groups, &spec.in_channels, &spec.out_channels]) {
        check("a size of the convolution", 1, (*side).min(1))?;
    }
    let rest = spec.in_channels % spec.groups + spec.out_channels % spec.groups;
    check("the rest of channels that groups leave", 0, rest)?;
    check(
        "the weight",
        spec.out_channels * spec.group_in() * spec.taps(),
        weight.len(),
    )?;
    bias.map_or(Ok(()), |bias| {
        check("the bias", spec.out_channels, bias.len())
    })
}

/// How a convolution is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvOptions {
    /// The instructions to use.
    pub level: Level,
    /// Whether Winograd's algorithm may be used where it is faster. Its rounding errors are about twice as large.
    pub winograd: bool,
    /// Whether images and weights may be rounded to `bf16`, where the processor multiplies pairs of it (AVX-512 BF16) and
    /// that is faster. Sums stay in `f32`.
    pub bf16: bool,
}

impl Default for ConvOptions {
    /// The widest level of the machine, with Winograd, in `f32`.
    fn default() -> ConvOptions {
        ConvOptions {
            level: Level::best(),
            winograd: true,
            bf16: false,
        }
    }
}
