//! The normal distribution and the scaled complement of the error function, of numbers: precise where shares are small.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::gammas::polynomial;

/// Above and below the line of the middle: within 3/8 of a half.
const MIDDLE: [f64; 5] = [
    -59.963_350_101_410_79,
    98.001_075_418_599_97,
    -56.676_285_746_907_03,
    13.931_260_938_727_968,
    -1.239_165_838_673_812_5,
];

/// The same, below the line.
const MIDDLE_BELOW: [f64; 9] = [
    1.0,
    1.954_488_583_381_417_6,
    4.676_279_128_988_815,
    86.360_242_139_089_05,
    -225.462_687_854_119_37,
    200.260_212_380_060_66,
    -82.037_225_616_833_34,
    15.905_622_512_621_17,
    -1.183_316_211_213_3,
];

/// Of 1 / sqrt(-2 log p) between 1/8 and 1/2.
const TAIL: [f64; 9] = [
    4.055_448_923_059_624_5,
    31.525_109_459_989_388,
    57.162_819_224_642_13,
    44.080_507_389_320_08,
    14.684_956_192_885_803,
    2.186_633_068_507_902_5,
    -0.140_256_079_171_354_5,
    -0.035_042_462_682_784_82,
    -0.000_857_456_785_154_685_4,
];

/// The same, below the line.
const TAIL_BELOW: [f64; 9] = [
    1.0,
    15.779_988_325_646_675,
    45.390_763_512_887_92,
    41.317_203_825_467_2,
    15.042_538_569_290_75,
    2.504_649_462_083_094,
    -0.142_182_922_854_787_79,
    -0.038_080_640_769_157_83,
    -0.000_933_259_480_895_457_4,
];

/// Of 1 / sqrt(-2 log p) below 1/8.
const FAR_TAIL: [f64; 9] = [
    3.237_748_917_769_460_3,
    6.915_228_890_689_842,
    3.938_810_252_924_744_4,
    1.333_034_608_158_075_5,
    0.201_485_389_549_179_08,
    0.012_371_663_481_782_003,
    0.000_301_581_553_508_235_43,
    2.658_069_746_867_375_5e-6,
    6.239_745_391_849_833e-9,
];

/// The same, below the line.
const FAR_TAIL_BELOW: [f64; 9] = [
    1.0,
    6.024_270_393_647_42,
    3.679_835_638_561_608_7,
    1.377_020_994_890_813_2,
    0.216_236_993_594_496_63,
    0.013_420_400_608_854_318,
    0.000_328_014_464_682_127_74,
    2.892_478_647_453_806_8e-6,
    6.790_194_080_099_813e-9,
];

/// `exp(x²) erfc(x)`.
pub fn erfcx(x: f64) -> f64 {
    /// 1 / sqrt(π).
    const SCALE: f64 = 0.564_189_583_547_756_3;
    if x < -26.7 {
        return f64::INFINITY;
    }
    if x < 12.0 {
        // What the square lost comes back as a factor.
        let square = x * x;
        let lost = x.mul_add(x, -square);
        return square.exp() * (1.0 + lost) * libm::erfc(x);
    }
    // The asymptotic series, from its last term.
    let half = 0.5 / (x * x);
    let sum = (1..=14)
        .rev()
        .fold(1.0, |sum, k| 1.0 - f64::from(2 * k - 1) * half * sum);
    SCALE / x * sum
}

/// The logarithm of the share of a normal distribution that is below `x`.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    match x < -1.0 {
        true => (erfcx(-t) / 2.0).ln() - t * t,
        false => (-libm::erfc(t) / 2.0).ln_1p(),
    }
}

/// The number below which such a share of a normal distribution is.
pub fn ndtri(p: f64) -> f64 {
    /// exp(-2).
    const EDGE: f64 = 0.135_335_283_236_612_7;
    /// sqrt(2π).
    const WIDTH: f64 = 2.506_628_274_631_000_7;
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let is_high = p > 1.0 - EDGE;
    let tail = if is_high { 1.0 - p } else { p };
    if tail > EDGE {
        let apart = tail - 0.5;
        let square = apart * apart;
        let share = square * polynomial(square, &MIDDLE) / polynomial(square, &MIDDLE_BELOW);
        return (apart + apart * share) * WIDTH;
    }
    let x = (-2.0 * tail.ln()).sqrt();
    let z = 1.0 / x;
    let (above, below) = match x < 8.0 {
        true => (&TAIL, &TAIL_BELOW),
        false => (&FAR_TAIL, &FAR_TAIL_BELOW),
    };
    let y = x - x.ln() / x - z * polynomial(z, above) / polynomial(z, below);
    if is_high { y } else { -y }
}

/// The share of a normal distribution that is below `x`, as PyTorch rounds it: far below 0 it is 0.
pub fn ndtr(x: f64) -> f64 {
    (1.0 + libm::erf(x / SQRT_2)) * 0.5
}
