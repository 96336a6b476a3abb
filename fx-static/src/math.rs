//! The exponential function and its relatives on vectors: each is good to a few units in the last
//! place, and gives what PyTorch gives for infinities and NaN.

use pulp::Simd;

use crate::Activation;
use crate::vector::{inlined, load_some, store_some};

/// 1.5 * 2^23: a float plus this has the nearest integer in its low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn splat<S: Simd>(simd: S, x: f32) -> S::f32s {
    simd.splat_f32s(x)
}

/// `coefficients[0] * x^n + .. + coefficients[n]`.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::f32s, coefficients: [f32; N]) -> S::f32s {
    let mut sum = splat(simd, coefficients[0]);
    for c in &coefficients[1..] {
        sum = simd.mul_add_e_f32s(sum, x, splat(simd, *c));
    }
    sum
}

/// `n` with `n + 0x4b400000` as bits, and `exp(x) / 2^n - 1`.
#[inline(always)]
fn exp_minus_one_parts<S: Simd>(simd: S, x: S::f32s) -> (S::u32s, S::f32s) {
    let round = splat(simd, ROUND);
    let shifted = simd.mul_add_e_f32s(x, splat(simd, core::f32::consts::LOG2_E), round);
    let n = simd.sub_f32s(shifted, round);
    let r = simd.mul_add_e_f32s(n, splat(simd, -0.693_359_4), x);
    let r = simd.mul_add_e_f32s(n, splat(simd, 2.121_944_4e-4), r);
    let p = polynomial(
        simd,
        r,
        [
            1.987_569_1e-4,
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            0.166_666_65,
            0.5,
        ],
    );
    (
        simd.transmute_u32s_f32s(shifted),
        simd.mul_add_e_f32s(p, simd.mul_f32s(r, r), r),
    )
}

/// `n` and `exp(x) / 2^n`, with `n + 0x4b400000` as bits.
#[inline(always)]
fn exp_parts<S: Simd>(simd: S, x: S::f32s) -> (S::u32s, S::f32s) {
    let (bits, p) = exp_minus_one_parts(simd, x);
    (bits, simd.add_f32s(p, splat(simd, 1.0)))
}

/// `exp(x)`.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let number = simd.equal_f32s(x, x);
    let bounded = simd.min_f32s(simd.max_f32s(x, splat(simd, -104.0)), splat(simd, 89.0));
    let (bits, p) = exp_parts(simd, bounded);
    // 2^n in two factors, so that neither leaves the range of floats.
    let sum = simd.add_u32s(bits, simd.splat_u32s(254u32.wrapping_sub(0x4b40_0000)));
    let first = simd.wrapping_dyn_shr_u32s(sum, simd.splat_u32s(1));
    let second = simd.sub_u32s(sum, first);
    let power = |n| simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(n, simd.splat_u32s(23)));
    let y = simd.mul_f32s(simd.mul_f32s(p, power(first)), power(second));
    simd.select_f32s(number, y, x)
}

/// `exp(x) - 1`.
#[inline(always)]
pub fn exp_minus_one<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let large = simd.sub_f32s(exp(simd, x), splat(simd, 1.0));
    // Nearer to 0 than half the logarithm of 2, n is 0. A zero keeps its sign.
    let (_, small) = exp_minus_one_parts(simd, x);
    let is_small = simd.less_than_f32s(simd.abs_f32s(x), splat(simd, 0.34));
    let y = simd.select_f32s(is_small, small, large);
    simd.select_f32s(simd.equal_f32s(x, splat(simd, 0.0)), x, y)
}

/// `exp(x)` for x of at most 0 (or NaN); below 2^-126 it is 0.
#[inline(always)]
pub fn exp_negative<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let tiny = simd.less_than_f32s(x, splat(simd, -87.0));
    let (bits, p) = exp_parts(simd, x);
    let n = simd.add_u32s(bits, simd.splat_u32s(127u32.wrapping_sub(0x4b40_0000)));
    let power = simd.wrapping_dyn_shl_u32s(n, simd.splat_u32s(23));
    let y = simd.mul_f32s(p, simd.transmute_f32s_u32s(power));
    simd.select_f32s(tiny, splat(simd, 0.0), y)
}

/// The absolute value of `x` with the sign of `sign`.
#[inline(always)]
fn copysign<S: Simd>(simd: S, x: S::f32s, sign: S::f32s) -> S::f32s {
    let high = simd.splat_u32s(0x8000_0000);
    let sign = simd.and_u32s(simd.transmute_u32s_f32s(sign), high);
    let bits = simd.transmute_u32s_f32s(simd.abs_f32s(x));
    simd.transmute_f32s_u32s(simd.or_u32s(bits, sign))
}

/// `tanh(x)`.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = splat(simd, 1.0);
    let size = simd.abs_f32s(x);
    let square = simd.mul_f32s(x, x);
    let p = polynomial(
        simd,
        square,
        [
            -5.704_988_6e-3,
            2.063_909e-2,
            -5.373_971_6e-2,
            0.133_314_42,
            -0.333_332_8,
        ],
    );
    let small = simd.mul_add_e_f32s(simd.mul_f32s(p, square), x, x);
    // 1 - 2e/(1 + e) with e = exp(-2|x|): nothing overflows.
    let e = exp_negative(simd, simd.mul_f32s(size, splat(simd, -2.0)));
    let large = simd.div_f32s(simd.sub_f32s(one, e), simd.add_f32s(one, e));
    let is_small = simd.less_than_f32s(size, splat(simd, 0.625));
    simd.select_f32s(is_small, small, copysign(simd, large, x))
}

/// `x - tanh(x)`.
#[inline(always)]
pub fn tanhshrink<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let square = simd.mul_f32s(x, x);
    let p = polynomial(
        simd,
        square,
        [
            -1.461_509_1e-4,
            9.344_846e-4,
            -3.220_686e-3,
            8.706_304e-3,
            -2.183_204_3e-2,
            5.396_371_2e-2,
            -0.133_333_11,
            0.333_333_33,
        ],
    );
    // Up to 1 the difference would have fewer digits than its parts; that of two zeros is 0, of whichever sign they are.
    let zero = splat(simd, 0.0);
    let small = simd.mul_add_e_f32s(simd.mul_f32s(p, square), x, zero);
    let large = simd.sub_f32s(x, tanh(simd, x));
    let is_small = simd.less_than_f32s(simd.abs_f32s(x), splat(simd, 1.0));
    simd.select_f32s(is_small, small, large)
}

/// The error function.
#[inline(always)]
pub fn erf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let size = simd.abs_f32s(x);
    let square = simd.mul_f32s(x, x);
    let p = polynomial(
        simd,
        square,
        [
            -5.967_617e-4,
            4.991_194e-3,
            -2.676_813_5e-2,
            0.112_819_92,
            -0.376_125_34,
            0.128_379_17,
        ],
    );
    let small = simd.mul_add_e_f32s(p, x, x);
    // erf(x) = 1 - exp(q(x)).
    let q = polynomial(
        simd,
        size,
        [
            -1.728_534_7e-5,
            3.831_971_3e-4,
            -3.883_964_4e-3,
            2.425_462_2e-2,
            -0.106_777_88,
            -0.634_846_7,
            -0.128_717_51,
        ],
    );
    let q = simd.mul_add_e_f32s(q, size, simd.neg_f32s(size));
    let large = simd.sub_f32s(splat(simd, 1.0), exp_negative(simd, q));
    let is_small = simd.less_than_f32s(size, splat(simd, 0.927_734_4));
    simd.select_f32s(is_small, small, copysign(simd, large, x))
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = splat(simd, 1.0);
    simd.div_f32s(one, simd.add_f32s(one, exp(simd, simd.neg_f32s(x))))
}

/// The natural logarithm.
#[inline(always)]
pub fn ln<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let tiny = simd.less_than_f32s(x, splat(simd, f32::MIN_POSITIVE));
    let scaled = simd.select_f32s(tiny, simd.mul_f32s(x, splat(simd, 8_388_608.0)), x);
    let less = simd.select_f32s(tiny, splat(simd, -23.0), splat(simd, 0.0));
    let bits = simd.transmute_u32s_f32s(scaled);
    let exponent = simd.and_u32s(
        simd.sub_u32s(bits, simd.splat_u32s(0x3f2a_aaab)),
        simd.splat_u32s(0xff80_0000),
    );
    let m = simd.transmute_f32s_u32s(simd.sub_u32s(bits, exponent));
    // The exponent as a float: 2^23 + (e + 128), less 2^23 + 128.
    let biased = simd.wrapping_dyn_shr_u32s(
        simd.add_u32s(exponent, simd.splat_u32s(0x4000_0000)),
        simd.splat_u32s(23),
    );
    let e = simd.transmute_f32s_u32s(simd.or_u32s(biased, simd.splat_u32s(0x4b00_0000)));
    let e = simd.add_f32s(simd.sub_f32s(e, splat(simd, 8_388_736.0)), less);
    let f = simd.sub_f32s(m, splat(simd, 1.0));
    let s = simd.mul_f32s(f, f);
    let r = polynomial(
        simd,
        s,
        [-0.130_310_06, -0.121_484_19, -0.166_846_05, -0.249_996_2],
    );
    let t = polynomial(simd, s, [0.140_869_14, 0.139_814_85, 0.200_120_35]);
    let r = simd.mul_add_e_f32s(t, f, r);
    let r = simd.mul_add_e_f32s(r, f, splat(simd, 0.333_331_97));
    let r = simd.mul_add_e_f32s(r, f, splat(simd, -0.5));
    let r = simd.mul_add_e_f32s(r, s, f);
    let y = simd.mul_add_e_f32s(e, splat(simd, core::f32::consts::LN_2), r);
    // Zero, negative numbers, infinity, NaN.
    let zero = splat(simd, 0.0);
    let infinite = splat(simd, f32::INFINITY);
    let y = simd.select_f32s(
        simd.less_than_f32s(x, infinite),
        y,
        simd.add_f32s(x, infinite),
    );
    let y = simd.select_f32s(simd.less_than_f32s(x, zero), splat(simd, f32::NAN), y);
    simd.select_f32s(simd.equal_f32s(x, zero), simd.neg_f32s(infinite), y)
}

/// The largest absolute value that [`sin`] is good for.
pub const SINE_LIMIT: f32 = 30_000.0;

/// The sine, moved on by `quarters` quarters of a turn, for x up to [`SINE_LIMIT`].
#[inline(always)]
pub fn sin<S: Simd>(simd: S, x: S::f32s, quarters: u32) -> S::f32s {
    let round = splat(simd, ROUND);
    let shifted = simd.mul_add_f32s(x, splat(simd, core::f32::consts::FRAC_2_PI), round);
    let n = simd.sub_f32s(shifted, round);
    let quadrant = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(quarters));
    // Pi / 2 in three parts, large to small; the first is 1.570796.
    let first = f32::from_bits(0xbfc9_0fd8);
    let r = simd.mul_add_f32s(n, splat(simd, first), x);
    let r = simd.mul_add_f32s(n, splat(simd, -3.139_164_7e-7), r);
    let r = simd.mul_add_f32s(n, splat(simd, -5.390_302_5e-15), r);
    let s = simd.mul_f32s(r, r);
    let p = polynomial(
        simd,
        s,
        [2.865_679_6e-6, -1.985_599_2e-4, 8.333_386e-3, -0.166_666_67],
    );
    let sine = simd.mul_add_e_f32s(p, simd.mul_f32s(s, r), r);
    let cosine = polynomial(
        simd,
        s,
        [2.446_770_7e-5, -1.388_773e-3, 4.166_665_7e-2, -0.5, 1.0],
    );
    let bit = |shift: u32| simd.wrapping_dyn_shl_u32s(quadrant, simd.splat_u32s(shift));
    let odd = simd.greater_than_u32s(bit(31), simd.splat_u32s(0));
    let value = simd.select_f32s(odd, cosine, sine);
    let sign = simd.and_u32s(bit(30), simd.splat_u32s(0x8000_0000));
    simd.transmute_f32s_u32s(simd.xor_u32s(simd.transmute_u32s_f32s(value), sign))
}

/// `max(x, low)` and NaN stays NaN.
#[inline(always)]
pub fn at_least<S: Simd>(simd: S, x: S::f32s, low: f32) -> S::f32s {
    let low = splat(simd, low);
    simd.select_f32s(simd.less_than_f32s(x, low), low, x)
}

/// `min(x, high)` and NaN stays NaN.
#[inline(always)]
pub fn at_most<S: Simd>(simd: S, x: S::f32s, high: f32) -> S::f32s {
    let high = splat(simd, high);
    simd.select_f32s(simd.less_than_f32s(high, x), high, x)
}

/// The activation of each float of a vector.
#[inline(always)]
pub fn apply<S: Simd>(simd: S, activation: Activation, x: S::f32s) -> S::f32s {
    let half = |x| simd.mul_f32s(splat(simd, 0.5), x);
    let one = splat(simd, 1.0);
    match activation {
        Activation::None => x,
        Activation::Relu => at_least(simd, x, 0.0),
        Activation::Relu6 => at_most(simd, at_least(simd, x, 0.0), 6.0),
        Activation::Silu => simd.div_f32s(x, simd.add_f32s(one, exp(simd, simd.neg_f32s(x)))),
        Activation::Hardswish => {
            let gate = simd.add_f32s(x, splat(simd, 3.0));
            let gate = at_most(simd, at_least(simd, gate, 0.0), 6.0);
            simd.mul_f32s(simd.mul_f32s(x, gate), splat(simd, 1.0 / 6.0))
        }
        Activation::Gelu => {
            let root = splat(simd, core::f32::consts::FRAC_1_SQRT_2);
            let e = erf(simd, simd.mul_f32s(x, root));
            simd.mul_f32s(half(x), simd.add_f32s(one, e))
        }
        Activation::GeluTanh => {
            let cube = simd.mul_f32s(simd.mul_f32s(x, x), x);
            let inner = simd.mul_add_e_f32s(cube, splat(simd, 0.044_715), x);
            let t = tanh(simd, simd.mul_f32s(inner, splat(simd, 0.797_884_6)));
            simd.mul_f32s(half(x), simd.add_f32s(one, t))
        }
        Activation::Sigmoid => sigmoid(simd, x),
        Activation::Tanh => tanh(simd, x),
    }
}

/// Replaces each vector of a slice by its function.
#[inline(always)]
pub fn map<S: Simd>(simd: S, floats: &mut [f32], f: impl Fn(S::f32s) -> S::f32s) {
    let (vectors, rest) = S::as_mut_simd_f32s(floats);
    for v in vectors {
        *v = f(*v);
    }
    if !rest.is_empty() {
        let v = f(load_some(simd, rest));
        store_some(simd, rest, v);
    }
}

/// The activation of each float of a slice, in place: the branch is outside of the loop.
#[inline(always)]
pub fn apply_all<S: Simd>(simd: S, activation: Activation, floats: &mut [f32]) {
    macro_rules! each {
        ($($name:ident)*) => {
            match activation {
                Activation::None => {}
                $(Activation::$name => inlined!(map(simd, floats; |x| apply(simd, Activation::$name, x))),)*
            }
        };
    }
    each!(Relu Relu6 Silu Hardswish Gelu GeluTanh Sigmoid Tanh)
}
