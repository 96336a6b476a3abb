//! Random numbers and sizes for tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use fx_kernels::conv::ConvSpec;

/// A small generator (xorshift*): the same numbers on each run.
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// A float from -1 to 1.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}

/// A convolution of so many groups of channels, with any window, stride, padding and dilation.
pub fn random_spec(
    random: &mut Random,
    groups: usize,
    group_in: usize,
    group_out: usize,
) -> ConvSpec {
    let kernel = [1 + random.below(4), 1 + random.below(4)];
    ConvSpec {
        in_channels: groups * group_in,
        out_channels: groups * group_out,
        groups,
        kernel,
        stride: [1 + random.below(3), 1 + random.below(3)],
        padding: [random.below(kernel[0] + 1), random.below(kernel[1] + 1)],
        dilation: [1 + random.below(2), 1 + random.below(2)],
    }
}
