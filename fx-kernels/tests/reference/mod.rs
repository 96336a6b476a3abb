//! Plain loops in f64 that the kernels are compared with.

#![allow(dead_code, reason = "each test uses some of it")]

use fx_kernels::Activation;
use fx_kernels::conv::ConvSpec;

pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Relu6 => x.clamp(0.0, 6.0),
        Activation::Hardswish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        other => unreachable!("no test uses {other:?}"),
    }
}

/// The largest absolute value.
pub fn largest(floats: &[f64]) -> f64 {
    floats.iter().fold(0.5, |m, x| m.max(x.abs()))
}

/// The largest difference is at most `tolerance`.
pub fn close(found: &[f32], expected: &[f64], tolerance: f64, context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*f) - e).abs();
        assert!(
            difference <= tolerance || f64::from(*f) == *e,
            "at {i}: {f} and not {e}; {context}"
        );
    }
}

/// The convolution without an activation, on plain images.
pub fn conv(
    spec: &ConvSpec,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    batch: usize,
    height: usize,
    width: usize,
) -> Vec<f64> {
    let (oh, ow) = spec.out_size(height, width);
    let [kh, kw] = spec.kernel;
    let (group_in, group_out) = (spec.group_in(), spec.group_out());
    let mut out = vec![0.0; batch * spec.out_channels * oh * ow];
    for (index, out) in out.iter_mut().enumerate() {
        let (x, y) = (index % ow, index / ow % oh);
        let (o, n) = (
            index / ow / oh % spec.out_channels,
            index / ow / oh / spec.out_channels,
        );
        let mut sum = bias.map_or(0.0, |bias| f64::from(bias[o]));
        for i in 0..group_in {
            let channel = o / group_out * group_in + i;
            for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
                let row =
                    (y * spec.stride[0] + ky * spec.dilation[0]).wrapping_sub(spec.padding[0]);
                let column =
                    (x * spec.stride[1] + kx * spec.dilation[1]).wrapping_sub(spec.padding[1]);
                if row < height && column < width {
                    let pixel =
                        input[((n * spec.in_channels + channel) * height + row) * width + column];
                    sum += f64::from(pixel)
                        * f64::from(weight[((o * group_in + i) * kh + ky) * kw + kx]);
                }
            }
        }
        *out = sum;
    }
    out
}
