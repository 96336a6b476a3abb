//! Kernels beside sums that define them, in `f64`.

use fx_static::{Activation, Conv, ConvSpec, ConvTranspose, Kernel, Linear, Matmul, Source};
use proptest::prelude::*;

fn floats(count: usize, seed: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1000.0 - 1.0)
        .collect()
}

fn close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let apart = (f64::from(*found) - expected).abs();
        assert!(
            apart <= 1e-5 * expected.abs().max(1.0),
            "{found}, not {expected}"
        );
    }
}

prop_compose! {
    fn specs()(
        groups in 1usize..4,
        each in (1usize..4, 1usize..7),
        kernel in [1usize..4, 1usize..4],
        stride in [1usize..3, 1usize..3],
        padding in [0usize..3, 0usize..3],
        dilation in [1usize..3, 1usize..3],
    ) -> ConvSpec {
        ConvSpec {
            in_channels: groups * each.0,
            out_channels: groups * each.1,
            groups,
            kernel,
            stride,
            padding,
            dilation,
        }
    }
}

/// Calls a function for each product of a convolution: the places in the images, the weight and the result.
fn products(
    spec: ConvSpec,
    images: usize,
    [height, width]: [usize; 2],
    mut f: impl FnMut([usize; 3]),
) {
    let (out_height, out_width) = spec.out_size(height, width);
    for image in 0..images {
        for out in 0..spec.out_channels {
            for channel in 0..spec.group_in() {
                let from = out / spec.group_out() * spec.group_in() + channel;
                for (y, x) in (0..out_height).flat_map(|y| (0..out_width).map(move |x| (y, x))) {
                    for tap in 0..spec.taps() {
                        let [ky, kx] = [tap / spec.kernel[1], tap % spec.kernel[1]];
                        let iy = y * spec.stride[0] + ky * spec.dilation[0];
                        let ix = x * spec.stride[1] + kx * spec.dilation[1];
                        let (Some(iy), Some(ix)) = (
                            iy.checked_sub(spec.padding[0]),
                            ix.checked_sub(spec.padding[1]),
                        ) else {
                            continue;
                        };
                        if iy < height && ix < width {
                            f([
                                ((image * spec.in_channels + from) * height + iy) * width + ix,
                                (out * spec.group_in() + channel) * spec.taps() + tap,
                                ((image * spec.out_channels + out) * out_height + y) * out_width
                                    + x,
                            ]);
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn convolutions(spec in specs(), images in 1usize..3, size in [1usize..9, 1usize..9]) {
        let (rows, columns) = spec.out_size(size[0], size[1]);
        let x = floats(images * spec.in_channels * size[0] * size[1], 1);
        let weight = floats(spec.out_channels * spec.group_in() * spec.taps(), 2);
        let bias = floats(spec.out_channels, 3);
        let count = images * spec.out_channels * rows * columns;
        let residual = floats(count, 4);
        let mut expected: Vec<f64> = (0..count)
            .map(|at| f64::from(bias[at / (rows * columns) % spec.out_channels]) + f64::from(residual[at]))
            .collect();
        products(spec, images, size, |[from, by, to]| {
            expected[to] += f64::from(x[from]) * f64::from(weight[by]);
        });
        expected.iter_mut().for_each(|x| *x = x.max(0.0));
        let conv = Conv {
            spec,
            size,
            has_bias: true,
            has_residual: true,
            activation: Activation::Relu,
        };
        let mut out = vec![f32::NAN; count];
        conv.run(&[&x, &weight, &bias, &residual], &mut out);
        close(&out, &expected);
    }

    /// The products of a convolution from its results back to its images.
    #[test]
    fn transposed_convolutions(spec in specs(), images in 1usize..3, size in [3usize..9, 3usize..9]) {
        let (rows, columns) = spec.out_size(size[0], size[1]);
        prop_assume!(rows > 0 && columns > 0);
        let x = floats(images * spec.out_channels * rows * columns, 1);
        let weight = floats(spec.out_channels * spec.group_in() * spec.taps(), 2);
        let mut expected = vec![0.0f64; images * spec.in_channels * size[0] * size[1]];
        products(spec, images, size, |[to, by, from]| {
            expected[to] += f64::from(x[from]) * f64::from(weight[by]);
        });
        let back = ConvTranspose {
            spec: ConvSpec {
                in_channels: spec.out_channels,
                out_channels: spec.in_channels,
                ..spec
            },
            size: [rows, columns],
            out_size: size,
        };
        let mut out = vec![f32::NAN; expected.len()];
        back.run(&[&x, &weight], &mut out);
        close(&out, &expected);
    }

    #[test]
    fn linear_layers(rows in 0usize..4, inputs in 0usize..150, outputs in 1usize..7) {
        let (x, weight) = (floats(rows * inputs, 1), floats(inputs * outputs, 2));
        let (bias, residual) = (floats(outputs, 3), floats(rows * outputs, 4));
        let mut expected = Vec::new();
        for row in 0..rows {
            for out in 0..outputs {
                let pairs = (0..inputs).map(|i| (x[row * inputs + i], weight[out * inputs + i]));
                let sum: f64 = pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum();
                let sum = (sum + f64::from(bias[out])).max(0.0);
                expected.push(sum + f64::from(residual[row * outputs + out]));
            }
        }
        let linear = Linear {
            inputs,
            outputs,
            has_bias: true,
            has_residual: true,
            is_residual_first: false,
            activation: Activation::Relu,
        };
        let mut out = vec![f32::NAN; expected.len()];
        linear.run(&[&x, &weight, &bias, &residual], &mut out);
        close(&out, &expected);
    }

    /// Both operands in both orders.
    #[test]
    fn products_of_matrices(
        batch in 1usize..4,
        size in [1usize..6, 1usize..140, 1usize..9],
        turned in [any::<bool>(), any::<bool>()],
    ) {
        let [rows, depth, columns] = size;
        let (a, b) = (floats(batch * rows * depth, 1), floats(depth * columns, 2));
        let strides = |turned: bool, rows: usize, columns: usize| match turned {
            true => [1, rows],
            false => [columns, 1],
        };
        let (of_a, of_b) = (strides(turned[0], rows, depth), strides(turned[1], depth, columns));
        let product = Matmul {
            batch: [1, 1, 1, batch],
            a_batch: [0, 0, 0, rows * depth],
            b_batch: [0; 4],
            size,
            a: of_a,
            b: of_b,
        };
        let mut expected = Vec::new();
        for (at, row) in (0..batch).flat_map(|at| (0..rows).map(move |row| (at, row))) {
            for column in 0..columns {
                let sum = (0..depth).map(|i| {
                    let a = a[at * rows * depth + row * of_a[0] + i * of_a[1]];
                    f64::from(a) * f64::from(b[i * of_b[0] + column * of_b[1]])
                });
                expected.push(sum.sum());
            }
        }
        let mut out = vec![f32::NAN; expected.len()];
        product.run(&[&a, &b], &mut out);
        close(&out, &expected);
    }

    /// A float is written so that it is read as the same float.
    #[test]
    fn floats_are_written_whole(bits in any::<u32>()) {
        let x = f32::from_bits(bits);
        let mut text = String::new();
        x.source(&mut text).expect("a text takes all");
        let read = match text.strip_suffix("_f32") {
            Some(number) => number.parse::<f32>().expect("a float").to_bits(),
            None => {
                let digits = text.trim_start_matches("f32::from_bits(0x").trim_end_matches(')');
                u32::from_str_radix(digits, 16).expect("bits")
            }
        };
        prop_assert_eq!(read, bits);
    }
}
