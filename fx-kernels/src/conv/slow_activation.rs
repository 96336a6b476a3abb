//! The activations that need an exponential, on a slice: the one place where the convolutions call them.

use crate::Activation;

/// Applies the activation to each float.
pub(crate) fn activate_slice(activation: Activation, floats: &mut [f32]) {
    for x in floats {
        *x = match activation {
            Activation::None => *x,
            Activation::Relu => {
                if *x < 0.0 {
                    0.0
                } else {
                    *x
                }
            }
            Activation::Relu6 => x.clamp(0.0, 6.0),
            Activation::Silu => *x / (1.0 + (-*x).exp()),
            Activation::Hardswish => *x * (*x + 3.0).clamp(0.0, 6.0) / 6.0,
            Activation::Gelu => 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2)),
            Activation::GeluTanh => {
                let inner = 0.797_884_6 * (*x + 0.044_715 * *x * *x * *x);
                0.5 * *x * (1.0 + inner.tanh())
            }
            Activation::Sigmoid => 1.0 / (1.0 + (-*x).exp()),
            Activation::Tanh => x.tanh(),
        };
    }
}

/// The error function: a series near zero, a continued fraction away from it.
fn erf(x: f32) -> f32 {
    let x = f64::from(x);
    let square = x * x;
    if x.is_nan() {
        return f32::NAN;
    }
    let value = if x.abs() < 2.5 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-12 * sum.abs() {
            n += 1.0;
            term *= -square / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let mut fraction = 0.0;
        for n in (1..40).rev() {
            fraction = f64::from(n) / 2.0 / (x.abs() + fraction);
        }
        let tail = (-square).exp() / (x.abs() + fraction) * std::f64::consts::FRAC_2_SQRT_PI / 2.0;
        (1.0 - tail).copysign(x)
    };
    value as f32
}
