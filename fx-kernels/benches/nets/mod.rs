//! The convolutions, pools and sums of whole networks in their order, each with its own weights and images.

use fx_kernels::Activation;
use fx_kernels::conv::{self, Blocked, Conv2d, ConvOptions, ConvSpec, PoolSpec};

use super::floats;

enum Step {
    First {
        conv: Box<Conv2d>,
        activation: Activation,
        out: usize,
    },
    Conv {
        conv: Box<Conv2d>,
        input: usize,
        residual: Option<usize>,
        activation: Activation,
        out: usize,
    },
    MaxPool {
        input: usize,
        out: usize,
    },
    Mean {
        input: usize,
    },
}

/// A network without its last matrix product.
pub struct Net {
    steps: Vec<Step>,
    names: Vec<String>,
    images: Vec<Blocked>,
    plain: Vec<f32>,
    means: Vec<f32>,
    options: ConvOptions,
}

impl Net {
    fn new(options: ConvOptions) -> Net {
        let image = Blocked::zeros(1, 3, 224, 224, 0);
        let plain = floats(3 * 224 * 224);
        let (steps, names) = (Vec::new(), Vec::new());
        Net {
            steps,
            names,
            images: vec![image],
            plain,
            means: Vec::new(),
            options,
        }
    }

    /// Gives image `index` at least this halo.
    fn need(&mut self, index: usize, halo: usize) {
        let image = &self.images[index];
        if image.halo() < halo {
            self.images[index] =
                Blocked::zeros(1, image.channels(), image.height(), image.width(), halo);
        }
    }

    fn conv(
        &mut self,
        input: usize,
        spec: ConvSpec,
        activation: Activation,
        residual: Option<usize>,
    ) -> usize {
        let count = spec.out_channels * spec.group_in() * spec.kernel[0] * spec.kernel[1];
        let scale = 1.0 / (count as f32 / spec.out_channels as f32).sqrt();
        let weight: Vec<f32> = floats(count).iter().map(|w| w * scale).collect();
        let conv = Conv2d::new(
            spec,
            &weight,
            Some(&vec![0.1; spec.out_channels]),
            self.options,
        )
        .expect("sizes");
        self.need(input, conv.halo());
        let (height, width) =
            spec.out_size(self.images[input].height(), self.images[input].width());
        self.images
            .push(Blocked::zeros(1, spec.out_channels, height, width, 0));
        let out = self.images.len() - 1;
        let (k, s, groups) = (spec.kernel[0], spec.stride[0], spec.groups);
        self.names.push(format!(
            "{}_{}_k{k}_s{s}_g{groups}_{height}",
            spec.in_channels, spec.out_channels
        ));
        let conv = Box::new(conv);
        let step = if input == 0 {
            Step::First {
                conv,
                activation,
                out,
            }
        } else {
            Step::Conv {
                conv,
                input,
                residual,
                activation,
                out,
            }
        };
        self.steps.push(step);
        out
    }

    fn max_pool(&mut self, input: usize) -> usize {
        let (channels, side) = (
            self.images[input].channels(),
            self.images[input].height().div_ceil(2),
        );
        self.images.push(Blocked::zeros(1, channels, side, side, 0));
        let out = self.images.len() - 1;
        self.steps.push(Step::MaxPool { input, out });
        self.names.push("max_pool".to_owned());
        out
    }

    fn mean(mut self, input: usize) -> Net {
        self.means = vec![0.0; self.images[input].channels()];
        self.steps.push(Step::Mean { input });
        self.names.push("mean".to_owned());
        self
    }

    /// Runs all steps; adds the least time of each to `times`.
    pub fn run(&mut self, times: Option<&mut Vec<f64>>) {
        let level = self.options.level;
        let pool = PoolSpec {
            padding: [1, 1],
            stride: [2, 2],
            ..PoolSpec::new(3)
        };
        let mut times = times;
        for (i, step) in self.steps.iter().enumerate() {
            let start = std::time::Instant::now();
            match step {
                Step::First {
                    conv,
                    activation,
                    out,
                } => {
                    let mut result = std::mem::take(&mut self.images[*out]);
                    conv.run_nchw(&self.plain, (1, 224, 224), None, *activation, &mut result)
                        .expect("sizes");
                    self.images[*out] = result;
                }
                Step::Conv {
                    conv,
                    input,
                    residual,
                    activation,
                    out,
                } => {
                    let mut result = std::mem::take(&mut self.images[*out]);
                    let residual = residual.map(|r| &self.images[r]);
                    conv.run(&self.images[*input], residual, *activation, &mut result)
                        .expect("sizes");
                    self.images[*out] = result;
                }
                Step::MaxPool { input, out } => {
                    let mut result = std::mem::take(&mut self.images[*out]);
                    conv::max_pool(level, &self.images[*input], &pool, &mut result).expect("sizes");
                    self.images[*out] = result;
                }
                Step::Mean { input } => {
                    conv::global_average_pool(level, &self.images[*input], &mut self.means)
                        .expect("sizes");
                }
            }
            if let Some(times) = &mut times {
                times.resize(self.steps.len(), f64::MAX);
                times[i] = times[i].min(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

fn strided(input: usize, out: usize, kernel: usize, stride: usize) -> ConvSpec {
    ConvSpec {
        stride: [stride; 2],
        ..ConvSpec::new(input, out, kernel)
    }
}

/// ResNet-18 at 224 x 224.
pub fn resnet18(options: ConvOptions) -> Net {
    let mut net = Net::new(options);
    let mut x = net.conv(0, strided(3, 64, 7, 2), Activation::Relu, None);
    x = net.max_pool(x);
    let mut input = 64;
    for (stage, width) in [64, 128, 256, 512].into_iter().enumerate() {
        for block in 0..2 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let y = net.conv(x, strided(input, width, 3, stride), Activation::Relu, None);
            let short = if stride == 2 {
                net.conv(x, strided(input, width, 1, 2), Activation::None, None)
            } else {
                x
            };
            x = net.conv(
                y,
                strided(width, width, 3, 1),
                Activation::Relu,
                Some(short),
            );
            input = width;
        }
    }
    net.mean(x)
}

/// ResNet-50 at 224 x 224.
pub fn resnet50(options: ConvOptions) -> Net {
    let mut net = Net::new(options);
    let mut x = net.conv(0, strided(3, 64, 7, 2), Activation::Relu, None);
    x = net.max_pool(x);
    let mut input = 64;
    for (stage, (width, blocks)) in [(64, 3), (128, 4), (256, 6), (512, 3)]
        .into_iter()
        .enumerate()
    {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let y = net.conv(x, strided(input, width, 1, 1), Activation::Relu, None);
            let y = net.conv(y, strided(width, width, 3, stride), Activation::Relu, None);
            let short = strided(input, width * 4, 1, stride);
            let short = if block == 0 {
                net.conv(x, short, Activation::None, None)
            } else {
                x
            };
            x = net.conv(
                y,
                strided(width, width * 4, 1, 1),
                Activation::Relu,
                Some(short),
            );
            input = width * 4;
        }
    }
    net.mean(x)
}

/// MobileNetV2 at 224 x 224.
pub fn mobilenet_v2(options: ConvOptions) -> Net {
    let mut net = Net::new(options);
    let depthwise = |c: usize, stride: usize| ConvSpec {
        groups: c,
        ..strided(c, c, 3, stride)
    };
    let mut x = net.conv(0, strided(3, 32, 3, 2), Activation::Relu6, None);
    x = net.conv(x, depthwise(32, 1), Activation::Relu6, None);
    x = net.conv(x, strided(32, 16, 1, 1), Activation::None, None);
    let mut input = 16;
    let stages = [
        (24, 2, 2),
        (32, 3, 2),
        (64, 4, 2),
        (96, 3, 1),
        (160, 3, 2),
        (320, 1, 1),
    ];
    for (width, blocks, first) in stages {
        for block in 0..blocks {
            let stride = if block == 0 { first } else { 1 };
            let y = net.conv(x, strided(input, input * 6, 1, 1), Activation::Relu6, None);
            let y = net.conv(y, depthwise(input * 6, stride), Activation::Relu6, None);
            let short = (stride == 1 && input == width).then_some(x);
            x = net.conv(y, strided(input * 6, width, 1, 1), Activation::None, short);
            input = width;
        }
    }
    x = net.conv(x, strided(320, 1280, 1, 1), Activation::Relu6, None);
    net.mean(x)
}
