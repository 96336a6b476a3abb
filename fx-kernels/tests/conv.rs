//! Convolutions on blocked images against plain loops in f64, on random sizes, at every level of the machine.

use crate::common;
use crate::reference;

use common::{Random, random_spec};
use fx_kernels::conv::{Blocked, Conv2d, ConvFinish, ConvOptions, ConvSpec, grouped_nchw};
use fx_kernels::{Activation, Level};
use reference::{activate, close, conv, largest};

/// Runs one convolution at every level, with and without a residual, and compares it.
fn check(
    random: &mut Random,
    spec: ConvSpec,
    batch: usize,
    height: usize,
    width: usize,
    winograd: bool,
) {
    let (oh, ow) = spec.out_size(height, width);
    let input = random.floats(batch * spec.in_channels * height * width);
    let weight =
        random.floats(spec.out_channels * spec.group_in() * spec.kernel[0] * spec.kernel[1]);
    let bias = random.floats(spec.out_channels);
    let bias = (random.below(4) > 0).then_some(&bias[..]);
    let residual = random.floats(batch * spec.out_channels * oh * ow);
    let residual = (random.below(2) == 0).then_some(&residual[..]);
    let activations = [
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::Hardswish,
        Activation::Silu,
    ];
    let activation = activations[random.below(activations.len())];
    let mut expected = conv(&spec, &input, &weight, bias, batch, height, width);
    // Rounding errors are of the size of the sums, whatever the activation leaves of them.
    let tolerance = largest(&expected) * if winograd { 1e-5 } else { 2e-6 };
    for (i, x) in expected.iter_mut().enumerate() {
        *x = activate(activation, *x + residual.map_or(0.0, |r| f64::from(r[i])));
    }
    let finish = ConvFinish {
        adds: residual.is_some(),
        activation,
    };
    let (extra, out_halo) = (random.below(3) / 2, random.below(2));
    for level in Level::available() {
        let conv = Conv2d::new(
            spec,
            &weight,
            bias,
            ConvOptions {
                level,
                winograd,
                bf16: false,
            },
        )
        .expect("the sizes fit");
        let halo = conv.halo() + extra;
        let image = Blocked::from_nchw(&input, batch, spec.in_channels, height, width, halo)
            .expect("the sizes fit");
        let before = || {
            let mut out = Blocked::zeros(batch, spec.out_channels, oh, ow, out_halo);
            if let Some(residual) = residual {
                out.copy_from_nchw(residual).expect("the sizes fit");
            }
            out
        };
        let mut out = before();
        conv.run(&image, finish, &mut out).expect("the sizes fit");
        let mut plain = vec![f32::NAN; expected.len()];
        out.to_nchw(&mut plain).expect("the sizes fit");
        let context =
            format!("{level:?} {spec:?} batch {batch}, {height} x {width}, {activation:?}");
        close(&plain, &expected, tolerance, &context);
        check_halo(&out, &context);
        let mut out = before();
        conv.run_nchw(&input, (batch, height, width), finish, &mut out)
            .expect("the sizes fit");
        out.to_nchw(&mut plain).expect("the sizes fit");
        close(
            &plain,
            &expected,
            tolerance,
            &format!("from a plain image, {context}"),
        );
        check_halo(&out, &context);
    }
}

/// The halo is still zero.
fn check_halo(image: &Blocked, context: &str) {
    let halo = image.halo();
    let (rows, row) = (image.height() + 2 * halo, image.width() + 2 * halo);
    for (i, block) in image.blocks().iter().enumerate() {
        let (y, x) = (i / row % rows, i % row);
        let inside = (halo..rows - halo).contains(&y) && (halo..row - halo).contains(&x);
        assert!(inside || block == &[0.0; 16], "halo at {y}, {x}: {context}");
    }
}

#[test]
fn any_window() {
    let mut random = Random::new(1);
    for _ in 0..700 {
        let (group_in, group_out) = (1 + random.below(40), 1 + random.below(70));
        let spec = random_spec(&mut random, 1, group_in, group_out);
        let (batch, height, width) = (random.below(3), 1 + random.below(10), 1 + random.below(34));
        check(&mut random, spec, batch, height, width, false);
    }
}

#[test]
fn common_windows() {
    let mut random = Random::new(2);
    for i in 0..300 {
        let mut spec = ConvSpec::new(1 + random.below(70), 1 + random.below(70), [1, 3][i % 2]);
        spec.stride = [1 + random.below(2); 2];
        let (height, width) = (1 + random.below(16), 1 + random.below(30));
        check(&mut random, spec, 1, height, width, false);
    }
}

#[test]
fn few_pixels_of_many_channels() {
    let mut random = Random::new(21);
    for i in 0..150 {
        let inputs = 60 + random.below(140);
        let mut spec = ConvSpec::new(inputs, 1 + random.below(70), [1, 3, 2][i % 3]);
        spec.stride = [1 + random.below(3); 2];
        let (height, width) = (1 + random.below(4), 1 + random.below(7));
        check(&mut random, spec, 1 + i % 2, height, width, false);
    }
}

#[test]
fn columns() {
    let mut random = Random::new(22);
    for _ in 0..150 {
        let (inputs, outputs) = (1 + random.below(40), 1 + random.below(70));
        let mut spec = random_spec(&mut random, 1, inputs, outputs);
        spec.kernel[1] = 1;
        spec.padding[1] = 0;
        let height = 1 + random.below(60);
        check(&mut random, spec, 1, height, 1, false);
    }
}

#[test]
fn few_channels() {
    let mut random = Random::new(7);
    for _ in 0..300 {
        let (inputs, outputs) = (1 + random.below(8), 1 + random.below(70));
        let spec = random_spec(&mut random, 1, inputs, outputs);
        let (batch, height, width) = (random.below(3), 1 + random.below(20), 1 + random.below(40));
        check(&mut random, spec, batch, height, width, false);
    }
}

#[test]
fn groups() {
    let mut random = Random::new(3);
    for _ in 0..400 {
        let (groups, group_in, group_out) = (
            2 + random.below(9),
            1 + random.below(20),
            1 + random.below(20),
        );
        let spec = random_spec(&mut random, groups, group_in, group_out);
        let (height, width) = (1 + random.below(8), 1 + random.below(18));
        check(&mut random, spec, 1, height, width, false);
    }
}

#[test]
fn depthwise() {
    let mut random = Random::new(4);
    for i in 0..600 {
        let channels = 2 + random.below(50);
        let mut spec = random_spec(&mut random, channels, 1, 1);
        if i % 2 == 0 {
            spec = ConvSpec {
                groups: channels,
                ..ConvSpec::new(channels, channels, [3, 5, 7][i % 3])
            };
            spec.stride = [1 + random.below(2); 2];
        }
        let (batch, height, width) = (random.below(3), 1 + random.below(10), 1 + random.below(34));
        check(&mut random, spec, batch, height, width, false);
    }
}

#[test]
fn winograd() {
    let mut random = Random::new(5);
    for _ in 0..60 {
        let mut spec = ConvSpec::new(16 + random.below(70), 16 + random.below(70), 3);
        spec.padding = [random.below(3), random.below(3)];
        let (batch, height, width) = (random.below(3), 30 + random.below(6), 30 + random.below(9));
        check(&mut random, spec, batch, height, width, true);
    }
}

#[test]
fn plain_groups() {
    let mut random = Random::new(6);
    for i in 0..1000 {
        let groups = 1 + random.below(6);
        let (group_in, group_out) = if i % 2 == 0 {
            (1, 1)
        } else {
            (1 + random.below(4), 1 + random.below(4))
        };
        let mut spec = random_spec(&mut random, groups, group_in, group_out);
        if i % 3 == 0 {
            let kernel = [3, 5, 7][random.below(3)];
            spec.kernel = [kernel; 2];
            spec.padding = [kernel / 2; 2];
            spec.stride = [1 + random.below(2); 2];
        }
        let (batch, height, width) = (random.below(3), 1 + random.below(14), 1 + random.below(40));
        let (oh, ow) = spec.out_size(height, width);
        let input = random.floats(batch * spec.in_channels * height * width);
        let weight =
            random.floats(spec.out_channels * spec.group_in() * spec.kernel[0] * spec.kernel[1]);
        let bias = random.floats(spec.out_channels);
        let bias = (random.below(2) == 0).then_some(&bias[..]);
        let expected = conv(&spec, &input, &weight, bias, batch, height, width);
        for level in Level::available() {
            let mut out = vec![f32::NAN; batch * spec.out_channels * oh * ow];
            grouped_nchw(
                level,
                &spec,
                &input,
                &weight,
                bias,
                (batch, height, width),
                &mut out,
            )
            .expect("sizes");
            let context = format!("{level:?} {spec:?} batch {batch}, {height} x {width}");
            close(&out, &expected, largest(&expected) * 2e-6, &context);
        }
    }
}

#[test]
fn nan_and_infinity_pass() {
    for level in Level::available() {
        let conv = Conv2d::new(
            ConvSpec::new(1, 1, 1),
            &[1.0],
            None,
            ConvOptions {
                level,
                winograd: true,
                bf16: false,
            },
        );
        let conv = conv.expect("the sizes fit");
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0];
        let input = Blocked::from_nchw(&values, 1, 1, 1, 4, 0).expect("the sizes fit");
        for (activation, infinite) in [(Activation::Relu, f32::INFINITY), (Activation::Relu6, 6.0)]
        {
            let mut out = Blocked::zeros(1, 1, 1, 4, 0);
            conv.run(&input, activation.into(), &mut out)
                .expect("the sizes fit");
            let mut plain = [0.0; 4];
            out.to_nchw(&mut plain).expect("the sizes fit");
            assert!(plain[0].is_nan(), "{level:?} {activation:?} {plain:?}");
            assert_eq!(plain[1..], [infinite, 0.0, 0.0], "{level:?} {activation:?}");
        }
    }
}

#[test]
fn wrong_sizes_are_errors() {
    let options = ConvOptions::default();
    let spec = ConvSpec::new(4, 8, 3);
    assert!(Conv2d::new(spec, &[0.0; 287], None, options).is_err());
    assert!(Conv2d::new(spec, &[0.0; 288], Some(&[0.0; 7]), options).is_err());
    assert!(Conv2d::new(ConvSpec { groups: 3, ..spec }, &[0.0; 96], None, options).is_err());
    assert!(
        Conv2d::new(
            ConvSpec {
                stride: [0, 1],
                ..spec
            },
            &[0.0; 288],
            None,
            options
        )
        .is_err()
    );
    let conv = Conv2d::new(spec, &[0.0; 288], None, options).expect("the sizes fit");
    let mut out = Blocked::zeros(1, 8, 5, 5, 0);
    let none = ConvFinish::default();
    assert!(
        conv.run(&Blocked::zeros(1, 4, 5, 5, 0), none, &mut out)
            .is_err(),
        "no halo"
    );
    assert!(
        conv.run(&Blocked::zeros(1, 5, 5, 5, 1), none, &mut out)
            .is_err(),
        "channels"
    );
    assert!(
        conv.run(&Blocked::zeros(1, 4, 5, 6, 1), none, &mut out)
            .is_err(),
        "the size of the result"
    );
    let input = Blocked::zeros(1, 4, 5, 5, 1);
    assert!(
        conv.run(&input, none, &mut Blocked::zeros(1, 8, 25, 1, 0))
            .is_err(),
        "as many floats"
    );
    conv.run(&input, none, &mut out).expect("the sizes fit");
}

#[test]
fn reset_zeroes_the_halo() {
    let mut image = Blocked::from_nchw(&[1.0; 2 * 20 * 36], 2, 20, 6, 6, 0).expect("the sizes fit");
    image.reset(1, 20, 4, 5, 2);
    check_halo(&image, "smaller, with a halo");
    image.copy_from_nchw(&[2.0; 400]).expect("the sizes fit");
    image.reset(1, 20, 5, 4, 2);
    check_halo(&image, "turned");
}
