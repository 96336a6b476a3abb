//! Chains of functions of elements: what they compute here, and the closure that says it in Rust.
//!
//! Invariant: the name of a function and the function itself stand in one line.

use std::fmt::Write as _;

use fx_core::{Error, Result};
use fx_kernels::pointwise::{Binary, Unary};
use fx_static::{Source as _, point};

use super::floats::DIMS;
use crate::cpu::draft::PointOp;

/// Where an input of the steps comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// What is written over.
    Old,
    /// A view, by its index among what is read.
    Read(usize),
}

/// Functions of the elements of views.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub points: Vec<PointOp>,
    pub dims: [usize; DIMS],
    pub inputs: Vec<Source>,
    /// The strides of each view.
    pub strides: Vec<[usize; DIMS]>,
}

/// A function of one float, with its name in `fx_static::point`.
enum One {
    Plain(&'static str, fn(f32) -> f32),
    Pow(f32),
    Clamp(f32, f32),
    Activation(fx_static::Activation),
}

/// A function of two floats.
enum Two {
    /// As an operator.
    Operator(&'static str, fn(f32, f32) -> f32),
    Named(&'static str, fn(f32, f32) -> f32),
}

macro_rules! named {
    ($kind:ident, $name:ident) => {
        $kind(stringify!($name), point::$name)
    };
}

fn one(f: Unary) -> Result<One> {
    use One::Plain;
    Ok(match f {
        Unary::Neg => named!(Plain, neg),
        Unary::Abs => named!(Plain, abs),
        Unary::Sqrt => named!(Plain, sqrt),
        Unary::Rsqrt => named!(Plain, rsqrt),
        Unary::Recip => named!(Plain, recip),
        Unary::Exp => named!(Plain, exp),
        Unary::ExpMinusOne => named!(Plain, exp_minus_one),
        Unary::Log => named!(Plain, ln),
        Unary::Sin => named!(Plain, sin),
        Unary::Cos => named!(Plain, cos),
        Unary::Erf => named!(Plain, erf),
        Unary::Tanhshrink => named!(Plain, tanhshrink),
        Unary::Pow(p) => One::Pow(p),
        Unary::Clamp(low, high) => One::Clamp(low, high),
        Unary::Activation(activation) => One::Activation(activation),
        _ => {
            return Err(Error::msg(
                "it rounds to 16 bits, and a static crate has f32 alone",
            ));
        }
    })
}

fn two(f: Binary) -> Result<Two> {
    use Two::{Named, Operator};
    Ok(match f {
        Binary::Add => Operator("+", |a, b| a + b),
        Binary::Sub => Operator("-", |a, b| a - b),
        Binary::Mul => Operator("*", |a, b| a * b),
        Binary::Div => Operator("/", |a, b| a / b),
        Binary::Min => named!(Named, min),
        Binary::Max => named!(Named, max),
        Binary::Pow => named!(Named, pow),
        Binary::Less => named!(Named, less),
        Binary::LessEqual => named!(Named, less_equal),
        Binary::Equal => named!(Named, equal),
        Binary::NotEqual => named!(Named, not_equal),
        _ => return Err(Error::msg("no function of a static crate is for it")),
    })
}

/// A float as Rust.
fn literal(x: f32) -> String {
    let mut text = String::new();
    // A text takes all that is written.
    let _ = x.source(&mut text);
    text
}

impl Steps {
    /// Fails if a step has no function.
    pub fn check(&self) -> Result<()> {
        for op in &self.points {
            match op {
                PointOp::Unary(f, _) => one(*f).map(drop)?,
                PointOp::Binary(f, ..) => two(*f).map(drop)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes over the one input that is the view at an index of what is read.
    pub fn write_over(&mut self, read: usize) {
        self.strides.remove(read);
        for input in &mut self.inputs {
            *input = match *input {
                Source::Read(at) if at == read => Source::Old,
                Source::Read(at) if at > read => Source::Read(at - 1),
                other => other,
            };
        }
    }

    /// Computes each element.
    pub fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let mut values = Vec::with_capacity(self.points.len());
        for (at, out) in out.iter_mut().enumerate() {
            values.clear();
            let place = |strides: &[usize; DIMS]| {
                let (mut rest, mut from) = (at, 0);
                for (size, stride) in self.dims.iter().zip(strides).rev() {
                    from += rest % size * stride;
                    rest /= size;
                }
                from
            };
            for op in &self.points {
                let value = |at: usize| -> f32 { values[at] };
                values.push(match *op {
                    PointOp::Input(input) => match self.inputs[input] {
                        Source::Old => *out,
                        Source::Read(read) => reads[read][place(&self.strides[read])],
                    },
                    PointOp::Number(x) => x,
                    PointOp::Unary(f, a) => match one(f) {
                        Ok(One::Plain(_, f)) => f(value(a)),
                        Ok(One::Pow(p)) => point::pow(value(a), p),
                        Ok(One::Clamp(low, high)) => point::clamp(value(a), low, high),
                        Ok(One::Activation(of)) => point::activated(of, value(a)),
                        Err(_) => f32::NAN,
                    },
                    PointOp::Binary(f, a, b) => match two(f) {
                        Ok(Two::Operator(_, f) | Two::Named(_, f)) => f(value(a), value(b)),
                        Err(_) => f32::NAN,
                    },
                    PointOp::Select(a, b, c) => point::select(value(a), value(b), value(c)),
                });
            }
            *out = values.last().copied().unwrap_or(f32::NAN);
        }
    }

    /// The call of `each` on these expressions for what is read.
    pub fn text(&self, reads: &[String]) -> Result<String> {
        let views: Vec<String> = reads
            .iter()
            .zip(&self.strides)
            .map(|(read, strides)| format!("({read}, {strides:?})"))
            .collect();
        let names: Vec<String> = (0..reads.len()).map(|at| format!("x{at}")).collect();
        let old = match self.inputs.contains(&Source::Old) {
            true => "old",
            false => "_",
        };
        let mut text = format!(
            "point::each({:?}, [{}], out, |{old}, [{}]| {{\n        ",
            self.dims,
            views.join(", "),
            names.join(", ")
        );
        // What a step of an input or of a number is, is written where it is used.
        let mut values: Vec<String> = Vec::with_capacity(self.points.len());
        for (at, op) in self.points.iter().enumerate() {
            let value = |at: usize| values[at].as_str();
            let made = match *op {
                PointOp::Input(input) => {
                    values.push(match self.inputs[input] {
                        Source::Old => "old".to_string(),
                        Source::Read(read) => format!("x{read}"),
                    });
                    continue;
                }
                PointOp::Number(x) => {
                    values.push(literal(x));
                    continue;
                }
                PointOp::Unary(f, a) => match one(f)? {
                    One::Plain(name, _) => format!("point::{name}({})", value(a)),
                    One::Pow(p) => format!("point::pow({}, {})", value(a), literal(p)),
                    One::Clamp(low, high) => format!(
                        "point::clamp({}, {}, {})",
                        value(a),
                        literal(low),
                        literal(high)
                    ),
                    One::Activation(of) => {
                        format!("point::activated(Activation::{of:?}, {})", value(a))
                    }
                },
                PointOp::Binary(f, a, b) => match two(f)? {
                    Two::Operator(sign, _) => format!("{} {sign} {}", value(a), value(b)),
                    Two::Named(name, _) => format!("point::{name}({}, {})", value(a), value(b)),
                },
                PointOp::Select(a, b, c) => {
                    format!("point::select({}, {}, {})", value(a), value(b), value(c))
                }
            };
            if at + 1 == self.points.len() {
                values.push(made);
                break;
            }
            let _ = write!(text, "let v{at} = {made};\n        ");
            values.push(format!("v{at}"));
        }
        let result = values.last().map_or("f32::NAN", |value| value);
        let _ = write!(text, "{result}\n    }})");
        Ok(text)
    }
}
