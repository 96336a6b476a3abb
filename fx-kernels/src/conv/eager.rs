//! Depthwise and grouped convolution on plain images `[n][channels][height][width]`, for callers that cannot pack first.
//!
//! Each plane is copied once with its padding, its pixels sorted by their place modulo the stride. Then each tap of the
//! window is one offset, whatever the stride, and a result is a sum of vectors of neighbouring pixels.

use pulp::{Simd, WithSimd};

use crate::conv::ConvSpec;
use crate::conv::phases::Plan;
use crate::conv::share;
use crate::conv::spec::{self, check_conv};
use crate::error::check;
use crate::{Buffer, Level, SizeError};

/// Floats behind the last plane that a block of vectors may read.
const SLACK: usize = 4 * 16;

/// A convolution on plain images: `out = conv(input) + bias`, with the weight as PyTorch stores it.
///
/// `input` is `[n][in channels][height][width]`, `weight` `[out, in / groups, kernel rows, kernel columns]`, `out` as
/// [`ConvSpec::out_size`] says. It is meant for depthwise convolutions and others with few channels in a group: nothing
/// is packed, and each group costs time for each pair of its channels. For one large group a
/// [`Conv2d`](crate::conv::Conv2d) is faster.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::conv::{ConvSpec, grouped_nchw};
///
/// // Two channels, each with a window of its own: ones, and zeros.
/// let spec = ConvSpec { groups: 2, ..ConvSpec::new(2, 2, 3) };
/// let weight: Vec<f32> = [[1.0; 9], [0.0; 9]].concat();
/// let mut out = [0.0; 8];
/// grouped_nchw(Level::best(), &spec, &[1.0; 8], &weight, Some(&[0.0, 5.0]), (1, 2, 2), &mut out)?;
/// assert_eq!(out, [4.0, 4.0, 4.0, 4.0, 5.0, 5.0, 5.0, 5.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
///
/// Where a size of the spec but the padding is zero, groups do not divide the channels, or a slice has another length
/// than the sizes say.
pub fn grouped_nchw(
    level: Level,
    spec: &ConvSpec,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    (batch, height, width): (usize, usize, usize),
    out: &mut [f32],
) -> Result<(), SizeError> {
    check_conv(spec, weight, bias)?;
    check(
        "the input",
        batch * spec.in_channels * height * width,
        input.len(),
    )?;
    let (oh, ow) = spec.out_size(height, width);
    check("the result", batch * spec.out_channels * oh * ow, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let plan = Plan::new(spec, height, width);
    // Copies cost a few operations for each float, whatever the window.
    let copies = 10 * batch * spec.in_channels * plan.phases.len() * plan.rows * plan.pitch;
    let work = 2 * spec::work(spec, batch * oh * ow) + copies;
    let (group_in, group_out) = (spec.group_in(), spec.group_out());
    let all = batch * spec.groups;
    let groups = all.div_ceil((4 * share::TASKS).min(work / share::TASK).max(1));
    let tasks: Vec<(usize, &mut [f32])> = out
        .chunks_mut(groups * group_out * oh * ow)
        .enumerate()
        .collect();
    share::run(tasks, work, |(index, out)| {
        let mut copy = Buffer::zeros(group_in * plan.channel() + SLACK);
        let mut sums = vec![0.0; oh * plan.pitch + SLACK];
        for (i, out) in out.chunks_exact_mut(group_out * oh * ow).enumerate() {
            let group = index * groups + i;
            let source = &input[group * group_in * height * width..][..group_in * height * width];
            if source.is_empty() {
                copy.fill(0.0);
            } else {
                let planes = source.chunks_exact(height * width);
                for (plane, target) in planes.zip(copy.chunks_exact_mut(plan.channel())) {
                    plan.copy(plane, target);
                }
            }
            let first = group % spec.groups * group_out;
            let weights = spec.taps() * group_in;
            level.run(Group {
                plan: &plan,
                copy: &copy,
                weight: &weight[first * weights..(first + group_out) * weights],
                bias: bias.map(|bias| &bias[first..first + group_out]),
                sums: &mut sums,
                out,
            });
        }
    });
    Ok(())
}

/// All output channels of one group.
struct Group<'a> {
    plan: &'a Plan,
    copy: &'a [f32],
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
    sums: &'a mut [f32],
    out: &'a mut [f32],
}

impl WithSimd for Group<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let plan = self.plan;
        let (oh, ow) = plan.out;
        let places = oh * plan.pitch;
        let weights = self
            .weight
            .chunks_exact(plan.taps.len() * plan.spec.group_in());
        for (channel, (weight, out)) in weights.zip(self.out.chunks_exact_mut(oh * ow)).enumerate()
        {
            let bias = self.bias.map_or(0.0, |bias| bias[channel]);
            let mut at = 0;
            while at < places {
                let target = &mut self.sums[at..];
                // A block reads and writes past the last place, where there is slack.
                if at + S::F32_LANES < places {
                    block::<S, 4>(simd, plan, &self.copy[at..], weight, bias, target);
                    at += 4 * S::F32_LANES;
                } else {
                    block::<S, 1>(simd, plan, &self.copy[at..], weight, bias, target);
                    at += S::F32_LANES;
                }
            }
            for (out, sums) in out
                .chunks_exact_mut(ow)
                .zip(self.sums.chunks_exact(plan.pitch))
            {
                out.copy_from_slice(&sums[..ow]);
            }
        }
    }
}

/// Sums of `N` vectors of places.
#[inline(always)]
fn block<S: Simd, const N: usize>(
    simd: S,
    plan: &Plan,
    copy: &[f32],
    weight: &[f32],
    bias: f32,
    target: &mut [f32],
) {
    let mut sums = [simd.splat_f32s(bias); N];
    let plane = plan.rows * plan.pitch;
    for (channel, weight) in weight.chunks_exact(plan.taps.len()).enumerate() {
        let base = channel * plan.channel();
        for (tap, w) in plan.taps.iter().zip(weight) {
            let start = base + tap.phase * plane + tap.offset;
            let (pixels, _) = S::as_simd_f32s(&copy[start..start + N * S::F32_LANES]);
            let w = simd.splat_f32s(*w);
            for v in 0..N {
                sums[v] = simd.mul_add_e_f32s(pixels[v], w, sums[v]);
            }
        }
    }
    S::as_mut_simd_f32s(&mut target[..N * S::F32_LANES])
        .0
        .copy_from_slice(&sums);
}
