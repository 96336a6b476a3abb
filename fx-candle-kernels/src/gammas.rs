//! The gamma function's relatives, of numbers: each has the limits at poles and infinities that PyTorch gives.

use std::f64::consts::PI;

/// Half of the distance from 1 to the next number.
pub(super) const STEP: f64 = f64::EPSILON / 2.0;

/// A polynomial, from the highest power.
pub(super) fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

/// `log |Γ(x)|`.
pub fn lgamma(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::INFINITY;
    }
    libm::lgamma(x)
}

/// The slope of `log Γ(x)`: an infinity at 0, nan at whole numbers below it.
pub fn digamma(x: f64) -> f64 {
    /// Bernoulli's numbers, each divided by its place, from the last.
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -691.0 / 32_760.0,
        1.0 / 132.0,
        -1.0 / 240.0,
        1.0 / 252.0,
        -1.0 / 120.0,
        1.0 / 12.0,
    ];
    const AT_TEN: f64 = 2.251_752_589_066_721;
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // The part behind the point keeps its digits, which a multiple of π would lose.
        return digamma(1.0 - x) - PI / (PI * x.fract()).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    if x == 10.0 {
        return sum + AT_TEN;
    }
    let rest = match x < 1e17 {
        true => {
            let square = 1.0 / (x * x);
            square * polynomial(square, &TERMS)
        }
        false => 0.0,
    };
    sum + x.ln() - 0.5 / x - rest
}

/// The slope of `digamma`, of as many terms as PyTorch takes.
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum, mut sign) = (x, 0.0, 1.0);
    if x < 0.5 {
        let sine = (PI * x).sin();
        (sum, sign, x) = (-(PI * PI) / (sine * sine), -1.0, 1.0 - x);
    }
    for _ in 0..6 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let inner = 1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0);
    sign * (sum + (1.0 + 0.5 / x + square * inner) / x)
}

/// The same of `f32`, in which PyTorch computes it: at poles and far away it is what rounding makes of it.
pub fn trigamma_single(x: f32) -> f32 {
    use std::f32::consts::PI;
    let (mut x, mut sum, mut sign) = (x, 0.0, 1.0);
    if x < 0.5 {
        let sine = (PI * x).sin();
        (sum, sign, x) = (-(PI * PI) / (sine * sine), -1.0, 1.0 - x);
    }
    for _ in 0..6 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let inner = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0));
    sign * (sum + (1.0 + 1.0 / (2.0 * x) + square * inner) / x)
}

/// The `n`th slope of `digamma`.
pub fn polygamma(n: u32, x: f64) -> f64 {
    match n {
        0 => digamma(x),
        1 => trigamma(x),
        _ => {
            let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
            sign * lgamma(f64::from(n) + 1.0).exp() * zeta(f64::from(n) + 1.0, x)
        }
    }
}

/// Hurwitz's zeta function, the sum of `(q + k)^-x` for k from 0: by terms, then by Euler and Maclaurin's formula.
pub fn zeta(x: f64, q: f64) -> f64 {
    /// The factorials of even numbers, divided by Bernoulli's numbers.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1_307_674_368_000.0 / 691.0,
        74_724_249_600.0,
        -10_670_622_842_880_000.0 / 3617.0,
        5_109_094_217_170_944_000.0 / 43_867.0,
        -802_857_662_698_291_200_000.0 / 174_611.0,
        155_112_100_433_309_859_840_000.0 / 854_513.0,
        -1_693_824_136_731_743_669_452_800_000.0 / 236_364_091.0,
    ];
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
        if q < -1000.0 {
            // The terms below 0 are mirror images of terms above it, which are sums themselves.
            let first = q - q.floor();
            let sign = if x % 2.0 == 0.0 { 1.0 } else { -1.0 };
            return zeta(x, first) + sign * (zeta(x, 1.0 - first) - zeta(x, 1.0 - q));
        }
    }
    let (mut sum, mut at, mut term, mut count) = (q.powf(-x), q, 0.0, 0);
    while count < 9 || at <= 9.0 {
        count += 1;
        at += 1.0;
        term = at.powf(-x);
        sum += term;
        if -STEP * sum < term && term < STEP * sum {
            return sum;
        }
    }
    sum += term * at / (x - 1.0);
    sum -= 0.5 * term;
    let (mut rising, mut place) = (1.0, 0.0);
    for factor in FACTORS {
        rising *= x + place;
        term /= at;
        let part = rising * term / factor;
        sum += part;
        if (part / sum).abs() < STEP {
            return sum;
        }
        place += 1.0;
        rising *= x + place;
        term /= at;
        place += 1.0;
    }
    sum
}
