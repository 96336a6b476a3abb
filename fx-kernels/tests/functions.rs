//! The functions of one number against `f64`'s, at every level: how far they are off, and what they give at the ends.

use fx_kernels::math::activate;
use fx_kernels::pointwise::{Chain, Operand, Unary};
use fx_kernels::{Activation, Level};

/// Above this a sine is computed otherwise.
const FAR: f32 = 30_000.0;

const EXP: Unary = Unary::Exp;
const EXP_MINUS_ONE: Unary = Unary::ExpMinusOne;
const TANHSHRINK: Unary = Unary::Tanhshrink;
const TANH: Unary = Unary::Activation(Activation::Tanh);
const SIGMOID: Unary = Unary::Activation(Activation::Sigmoid);
const ERF: Unary = Unary::Erf;
const LN: Unary = Unary::Log;
const SIN: Unary = Unary::Sin;
const COS: Unary = Unary::Cos;

fn run_at(level: Level, function: Unary, x: &[f32]) -> Vec<f32> {
    let mut chain = Chain::new();
    let input = chain.input();
    let result = chain.unary(function, input);
    let mut out = vec![0.0; x.len()];
    chain
        .finish(&[result])
        .run(
            level,
            &[x.len()],
            &[Operand::full(x, &[1])],
            &mut [&mut out],
        )
        .expect("sizes");
    out
}

/// The series up to 3 and the continued fraction above it.
fn erf64(x: f64) -> f64 {
    let a = x.abs();
    let y = if a < 3.0 {
        let (mut term, mut sum) = (a, a);
        for n in 1..200 {
            term *= -a * a / n as f64;
            sum += term / (2 * n + 1) as f64;
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let mut f = a;
        for n in (1..100).rev() {
            f = a + n as f64 / 2.0 / f;
        }
        1.0 - (-a * a).exp() / f / std::f64::consts::PI.sqrt()
    };
    y.copysign(x)
}

fn worst(function: Unary, low: f32, high: f32, truth: impl Fn(f64) -> f64) -> f64 {
    let mut worst = 0.0f64;
    for level in Level::available() {
        let n = 200_003;
        let x: Vec<f32> = (0..n)
            .map(|i| low + (high - low) * (i as f32 / n as f32))
            .collect();
        let y = run_at(level, function, &x);
        for (x, y) in x.iter().zip(&y) {
            let t = truth(f64::from(*x));
            if t.abs() < 1.2e-38 {
                assert!(
                    (f64::from(*y) - t).abs() < 1.3e-38,
                    "{function:?}({x}) = {y}, not {t}"
                );
                continue;
            }
            if f64::from(t as f32).is_infinite() {
                assert_eq!(
                    f64::from(*y),
                    t.signum() * f64::INFINITY,
                    "{function:?}({x})"
                );
                continue;
            }
            worst = worst.max(((f64::from(*y) - t) / t).abs());
        }
    }
    worst
}

#[test]
fn functions_are_close_to_the_truth() {
    let ulp = f64::from(f32::EPSILON);
    let sigmoid64 = |x: f64| 1.0 / (1.0 + (-x).exp());
    assert!(worst(EXP, -86.0, 88.7, f64::exp) < 1.5 * ulp);
    assert!(worst(EXP, -110.0, 100.0, f64::exp) < 1.5 * ulp);
    assert!(worst(TANH, -10.0, 10.0, f64::tanh) < 3.0 * ulp);
    assert!(worst(TANH, -0.01, 0.01, f64::tanh) < 2.0 * ulp);
    assert!(worst(EXP_MINUS_ONE, -20.0, 20.0, f64::exp_m1) < 3.0 * ulp);
    assert!(worst(EXP_MINUS_ONE, -1e-3, 1e-3, f64::exp_m1) < 1.5 * ulp);
    let tanhshrink64 = |x: f64| x - x.tanh();
    assert!(worst(TANHSHRINK, 0.01, 0.999, tanhshrink64) < 3.0 * ulp);
    assert!(worst(TANHSHRINK, -10.0, 10.0, tanhshrink64) < 6.0 * ulp);
    assert!(worst(ERF, -5.0, 5.0, erf64) < 2.5 * ulp);
    assert!(worst(ERF, -0.01, 0.01, erf64) < 2.0 * ulp);
    assert!(worst(SIGMOID, -80.0, 80.0, sigmoid64) < 3.0 * ulp);
    assert!(worst(SIN, -3.0, 3.0, f64::sin) < 2.5 * ulp);
    assert!(worst(COS, -1.5, 1.5, f64::cos) < 2.5 * ulp);
    // Next to a zero far out the reduction shows: this bounds it by the size of a sine.
    for (name, truth) in [(SIN, f64::sin as fn(f64) -> f64), (COS, f64::cos)] {
        let error = worst(name, -FAR, FAR, truth);
        assert!(error < 1e-3, "{name:?} {error}");
    }
    assert!(worst(LN, 1e-6, 0.9, f64::ln) < 2.0 * ulp);
    assert!(worst(LN, 1.1, 1e6, f64::ln) < 2.0 * ulp);
    assert!(worst(LN, 0.9, 1.1, f64::ln) < 4.0 * ulp);
    assert!(worst(LN, 1e-42, 1e-37, f64::ln) < 2.0 * ulp);
}

#[test]
fn extremes() {
    let inf = f32::INFINITY;
    for level in Level::available() {
        let run = |function, x: f32| {
            let y = run_at(level, function, &[x; 19]);
            for other in &y {
                assert_eq!(other.to_bits(), y[0].to_bits(), "{function:?} at {level:?}");
            }
            y[0]
        };
        for name in [EXP, EXP_MINUS_ONE, TANH, TANHSHRINK, ERF, SIGMOID, LN] {
            assert!(run(name, f32::NAN).is_nan(), "{name:?} at {level:?}");
            assert!(run(name, -f32::NAN).is_nan(), "{name:?} at {level:?}");
        }
        assert_eq!([run(EXP, inf), run(EXP, 1e30), run(EXP, 89.0)], [inf; 3]);
        assert_eq!(
            [run(EXP, -inf), run(EXP, -1e30), run(EXP, -104.0)],
            [0.0; 3]
        );
        assert_eq!(run(EXP, 0.0), 1.0);
        assert!(run(EXP, -100.0) > 0.0);
        assert_eq!(
            [EXP_MINUS_ONE, TANHSHRINK].map(|name| run(name, -0.0).to_bits()),
            [-0.0f32, 0.0].map(f32::to_bits)
        );
        assert_eq!(
            [run(EXP_MINUS_ONE, inf), run(EXP_MINUS_ONE, -inf)],
            [inf, -1.0]
        );
        assert_eq!([run(TANHSHRINK, inf), run(TANHSHRINK, -inf)], [inf, -inf]);
        assert_eq!(
            [run(TANH, inf), run(TANH, -inf), run(TANH, 1e30)],
            [1., -1., 1.]
        );
        assert_eq!(
            [run(ERF, inf), run(ERF, -inf), run(ERF, 1e30)],
            [1., -1., 1.]
        );
        assert_eq!([run(SIGMOID, inf), run(SIGMOID, -inf)], [1.0, 0.0]);
        assert_eq!(
            [run(LN, 0.0), run(LN, -0.0), run(LN, inf)],
            [-inf, -inf, inf]
        );
        assert!(run(LN, -1.0).is_nan() && run(LN, -inf).is_nan());
        assert_eq!(run(LN, 1.0), 0.0);
    }
}

#[test]
fn activations() {
    type Truth = fn(f64) -> f64;
    let all: [(Activation, Truth); 9] = [
        (Activation::None, |x| x),
        (Activation::Relu, |x| x.max(0.0)),
        (Activation::Relu6, |x| x.clamp(0.0, 6.0)),
        (Activation::Silu, |x| x / (1.0 + (-x).exp())),
        (Activation::Hardswish, |x| {
            x * (x + 3.0).clamp(0.0, 6.0) / 6.0
        }),
        (Activation::Gelu, |x| {
            0.5 * x * (1.0 + erf64(x / 2f64.sqrt()))
        }),
        (Activation::GeluTanh, |x| {
            0.5 * x
                * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }),
        (Activation::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (Activation::Tanh, f64::tanh),
    ];
    for level in Level::available() {
        for (activation, truth) in all {
            let x: Vec<f32> = (-5000..=5000).map(|i| i as f32 / 500.0).collect();
            let mut y = x.clone();
            activate(level, activation, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let t = truth(f64::from(*x));
                let bound = 1e-6 * t.abs().max(f64::from(x.abs()).min(1.0) * 0.5);
                assert!(
                    (f64::from(*y) - t).abs() <= bound,
                    "{activation:?}({x}) = {y}, not {t}"
                );
            }
            let mut nan = [f32::NAN; 5];
            activate(level, activation, &mut nan);
            assert!(nan.iter().all(|x| x.is_nan()), "{activation:?}");
        }
    }
}
