//! `Curve`: what steps make of one input where that is a line, a clamped line, or such a one times the input: gates that
//! files write out.
//!
//! Invariant: a curve is an activation only where their numbers agree to about the last bits of a float.

use fx_kernels::Activation;
use fx_kernels::pointwise::{Binary, Unary};

use super::draft::PointOp;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Curve {
    /// `factor * x + shift`.
    Line { factor: f64, shift: f64 },
    /// `scale * clamp(factor * x + shift, low, high)`, times `x` where it is a gate.
    Clamped {
        factor: f64,
        shift: f64,
        low: f64,
        high: f64,
        scale: f64,
        is_gate: bool,
    },
}

/// A curve, or a number.
#[derive(Clone, Copy)]
enum Term {
    Of(Curve),
    Number(f64),
}

impl Curve {
    /// The input itself.
    pub const SAME: Curve = Curve::Line {
        factor: 1.0,
        shift: 0.0,
    };

    /// What steps make of inputs that are curves of one number.
    pub fn of(points: &[PointOp], inputs: &[Curve]) -> Option<Curve> {
        let mut terms: Vec<Term> = Vec::with_capacity(points.len());
        for point in points {
            terms.push(match *point {
                PointOp::Input(at) => Term::Of(*inputs.get(at)?),
                PointOp::Number(x) => Term::Number(f64::from(x)),
                PointOp::Unary(f, of) => match terms[of] {
                    Term::Of(curve) => Term::Of(curve.unary(f)?),
                    Term::Number(_) => return None,
                },
                PointOp::Binary(f, a, b) => Term::Of(binary(f, terms[a], terms[b])?),
                PointOp::Select(..) => return None,
            });
        }
        match terms.last() {
            Some(Term::Of(curve)) => Some(*curve),
            _ => None,
        }
    }

    fn unary(self, f: Unary) -> Option<Curve> {
        let (low, high) = match f {
            Unary::Clamp(low, high) => (f64::from(low), f64::from(high)),
            Unary::Activation(Activation::Relu6) => (0.0, 6.0),
            _ => return None,
        };
        match self {
            Curve::Line { factor, shift } => Some(Curve::Clamped {
                factor,
                shift,
                low,
                high,
                scale: 1.0,
                is_gate: false,
            }),
            Curve::Clamped { .. } => None,
        }
    }

    /// The curve times a number.
    fn times(self, by: f64) -> Curve {
        let mut curve = self;
        match &mut curve {
            Curve::Line { factor, shift } => (*factor, *shift) = (*factor * by, *shift * by),
            Curve::Clamped { scale, .. } => *scale *= by,
        }
        curve
    }

    /// The curve plus a number.
    fn plus(self, by: f64) -> Option<Curve> {
        match self {
            Curve::Line { factor, shift } => Some(Curve::Line {
                factor,
                shift: shift + by,
            }),
            Curve::Clamped { .. } => None,
        }
    }

    /// The curve times a line through zero.
    fn gated(self, by: Curve) -> Option<Curve> {
        match (self, by) {
            (
                Curve::Clamped {
                    factor,
                    shift,
                    low,
                    high,
                    scale,
                    is_gate: false,
                },
                Curve::Line {
                    factor: by,
                    shift: 0.0,
                },
            ) => Some(Curve::Clamped {
                factor,
                shift,
                low,
                high,
                scale: scale * by,
                is_gate: true,
            }),
            _ => None,
        }
    }

    /// The activation that it is.
    pub fn activation(self) -> Option<Activation> {
        let Curve::Clamped {
            factor,
            shift,
            low,
            high,
            scale,
            is_gate: true,
        } = self
        else {
            return None;
        };
        // x * clamp(x + 3, 0, 6) / 6, with the factor taken out of the clamp.
        let is = |x: f64, y: f64| (x - y).abs() <= 3e-7 * y.abs();
        let fits = is(shift / factor, 3.0) && low == 0.0 && is(high / factor, 6.0);
        (factor > 0.0 && fits && is(6.0 * scale * factor, 1.0)).then_some(Activation::Hardswish)
    }
}

fn binary(f: Binary, a: Term, b: Term) -> Option<Curve> {
    match (f, a, b) {
        (Binary::Add, Term::Of(x), Term::Number(y))
        | (Binary::Add, Term::Number(y), Term::Of(x)) => x.plus(y),
        (Binary::Sub, Term::Of(x), Term::Number(y)) => x.plus(-y),
        (Binary::Mul, Term::Of(x), Term::Number(y))
        | (Binary::Mul, Term::Number(y), Term::Of(x)) => Some(x.times(y)),
        (Binary::Div, Term::Of(x), Term::Number(y)) if y != 0.0 => Some(x.times(1.0 / y)),
        (Binary::Mul, Term::Of(x), Term::Of(y)) => x.gated(y).or_else(|| y.gated(x)),
        _ => None,
    }
}
