//! Functions of elements, as steps of a pointwise item.
//!
//! Invariant: a function that is written here gives PyTorch's value for every float, NaN and
//! infinities included.

use fx_core::ir::Argument;
use fx_kernels::Activation;
use fx_kernels::pointwise::{Binary, Unary};

use super::draft::{Id, Kind, Point};
use super::lower::{Args, Lowering};

/// Whether a function is written here.
pub(super) fn is_elementwise(path: &str) -> bool {
    let name = match path.strip_prefix("fx_nn::ops::") {
        Some(name) => name,
        None => path,
    };
    unary(name).is_some() || binary(name).is_some() || COMPOSED.contains(&name)
}

/// Functions that take some steps.
const COMPOSED: [&str; 19] = [
    "addcdiv",
    "addcmul",
    "celu",
    "clamp",
    "clip",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardtanh",
    "leaky_relu",
    "lerp",
    "masked_fill",
    "mish",
    "selu",
    "softplus",
    "softsign",
    "square",
    "threshold",
    "where",
];

/// The function of one value, if a name is one.
fn unary(name: &str) -> Option<Unary> {
    let activation = Unary::Activation;
    Some(match name {
        "relu" => activation(Activation::Relu),
        "relu6" => activation(Activation::Relu6),
        "silu" => activation(Activation::Silu),
        "hardswish" => activation(Activation::Hardswish),
        "sigmoid" => activation(Activation::Sigmoid),
        "tanh" => activation(Activation::Tanh),
        "exp" => Unary::Exp,
        "expm1" => Unary::ExpMinusOne,
        "tanhshrink" => Unary::Tanhshrink,
        "log" => Unary::Log,
        "sqrt" => Unary::Sqrt,
        "rsqrt" => Unary::Rsqrt,
        "sin" => Unary::Sin,
        "cos" => Unary::Cos,
        "abs" | "absolute" | "fx_core::operator::abs" => Unary::Abs,
        "neg" | "fx_core::operator::neg" => Unary::Neg,
        "reciprocal" => Unary::Recip,
        "erf" => Unary::Erf,
        _ => return None,
    })
}

/// The function of two values, if a name is one.
fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        "fx_core::operator::add" => Binary::Add,
        "fx_core::operator::sub" => Binary::Sub,
        "fx_core::operator::mul" => Binary::Mul,
        "fx_core::operator::truediv" => Binary::Div,
        "fx_core::operator::pow" => Binary::Pow,
        "maximum" => Binary::Max,
        "minimum" => Binary::Min,
        _ => return None,
    })
}

/// Steps, and the items that they read.
#[derive(Default)]
struct Steps {
    inputs: Vec<Id>,
    points: Vec<Point>,
}

/// The place of a step.
type At = usize;

impl Steps {
    fn push(&mut self, point: Point) -> At {
        self.points.push(point);
        self.points.len() - 1
    }

    /// An item that is read: once, however often it is named.
    fn input(&mut self, id: Id) -> At {
        let Some(known) = self.inputs.iter().position(|other| *other == id) else {
            self.inputs.push(id);
            return self.push(Point::Input(self.inputs.len() - 1));
        };
        let at = self.points.iter().position(|p| *p == Point::Input(known));
        at.unwrap_or_else(|| self.push(Point::Input(known)))
    }

    fn number(&mut self, x: f64) -> At {
        self.push(Point::Number(x as f32))
    }

    fn unary(&mut self, f: Unary, a: At) -> At {
        self.push(Point::Unary(f, a))
    }

    fn binary(&mut self, f: Binary, a: At, b: At) -> At {
        self.push(Point::Binary(f, a, b))
    }

    fn add(&mut self, a: At, b: f64) -> At {
        let b = self.number(b);
        self.binary(Binary::Add, a, b)
    }

    fn mul(&mut self, a: At, b: f64) -> At {
        let b = self.number(b);
        self.binary(Binary::Mul, a, b)
    }

    fn select(&mut self, condition: At, yes: At, no: At) -> At {
        self.push(Point::Select(condition, yes, no))
    }

    /// `slope * x` where x is above 0, else `bottom * (exp(rate * x) - 1)`.
    fn bent(&mut self, x: At, slope: f64, bottom: f64, rate: f64) -> At {
        let zero = self.number(0.0);
        let is_above = self.binary(Binary::Less, zero, x);
        let scaled = self.mul(x, rate);
        let below = self.unary(Unary::ExpMinusOne, scaled);
        let below = self.mul(below, bottom);
        let above = self.mul(x, slope);
        self.select(is_above, above, below)
    }

    /// `log(1 + x)` of a finite number: what `1 + x` has lost of x is added, over the sum.
    fn log_of_more(&mut self, x: At) -> At {
        let sum = self.add(x, 1.0);
        let log = self.unary(Unary::Log, sum);
        let kept = self.add(sum, -1.0);
        let lost = self.binary(Binary::Sub, x, kept);
        let lost = self.binary(Binary::Div, lost, sum);
        self.binary(Binary::Add, log, lost)
    }

    /// `log(1 + exp(beta * x)) / beta`, and x where `beta * x` is above the threshold.
    fn softplus(&mut self, x: At, beta: f64, threshold: f64) -> At {
        let scaled = self.mul(x, beta);
        // max(y, 0) + log(1 + exp(-|y|)): nothing overflows.
        let size = self.unary(Unary::Abs, scaled);
        let less = self.unary(Unary::Neg, size);
        let e = self.unary(Unary::Exp, less);
        let log = self.log_of_more(e);
        let relu = self.unary(Unary::Activation(Activation::Relu), scaled);
        let y = self.binary(Binary::Add, relu, log);
        let y = self.mul(y, 1.0 / beta);
        let limit = self.number(threshold);
        let is_above = self.binary(Binary::Less, limit, scaled);
        self.select(is_above, x, y)
    }
}

impl Lowering<'_> {
    /// The item of a function of elements; `None` if it is none, or has arguments that no step
    /// takes.
    pub fn elementwise(&mut self, args: &Args<'_>, path: &str) -> Option<Id> {
        let name = match path.strip_prefix("fx_nn::ops::") {
            Some(name) => name,
            None => path,
        };
        let is_operator = path.starts_with("fx_core");
        let mut steps = Steps::default();
        let result = if let Some(f) = unary(name) {
            let x = steps.input(self.floats(args, if is_operator { "a" } else { "x" })?);
            steps.unary(f, x)
        } else if let Some(f) = binary(name) {
            let names = match is_operator {
                true => ["a", "b"],
                false => ["x", "other"],
            };
            self.binary(args, &mut steps, f, names)?
        } else if COMPOSED.contains(&name) {
            self.composed(args, &mut steps, name)?
        } else {
            return None;
        };
        let Steps { inputs, mut points } = steps;
        // The last point is the result.
        points.truncate(result + 1);
        self.push(args, Kind::Pointwise(points), inputs)
    }

    /// An argument as a step: floats, or a number.
    fn operand(&self, args: &Args<'_>, steps: &mut Steps, name: &str) -> Option<At> {
        match &*args.get(name)? {
            Argument::Float(x) => Some(steps.number(*x)),
            Argument::Int(n) => Some(steps.number(*n as f64)),
            side => Some(steps.input(self.item_of(side)?)),
        }
    }

    fn binary(
        &self,
        args: &Args<'_>,
        steps: &mut Steps,
        f: Binary,
        [a, b]: [&str; 2],
    ) -> Option<At> {
        self.floats(args, a).or_else(|| self.floats(args, b))?;
        let a = self.operand(args, steps, a)?;
        let b = self.operand(args, steps, b)?;
        match (f, steps.points[b]) {
            // An exponent that is too large for `f32` is an error, which the function returns.
            (Binary::Pow, Point::Number(power)) if power.is_infinite() => None,
            (Binary::Pow, Point::Number(power)) => {
                steps.points.pop();
                Some(steps.unary(Unary::Pow(power), a))
            }
            _ => Some(steps.binary(f, a, b)),
        }
    }

    fn composed(&self, args: &Args<'_>, steps: &mut Steps, name: &str) -> Option<At> {
        if name == "where" {
            let condition = steps.input(self.item_of(&*args.get("condition")?)?);
            self.floats(args, "input")
                .or_else(|| self.floats(args, "other"))?;
            let yes = self.operand(args, steps, "input")?;
            let no = self.operand(args, steps, "other")?;
            return Some(steps.select(condition, yes, no));
        }
        let x = steps.input(self.floats(args, "x")?);
        Some(match name {
            "clamp" | "clip" | "hardtanh" => {
                let (low, high) = match name {
                    "hardtanh" => ("min_val", "max_val"),
                    _ => ("min", "max"),
                };
                let bound = |name: &str, missing: f64| match args.is_none(name) {
                    true => Some(missing),
                    false => args.float(name),
                };
                let low = bound(low, f64::NEG_INFINITY)? as f32;
                let high = bound(high, f64::INFINITY)? as f32;
                if low.is_nan() || high.is_nan() {
                    return None;
                }
                steps.unary(Unary::Clamp(low, high), x)
            }
            "leaky_relu" => {
                let zero = steps.number(0.0);
                let is_below = steps.binary(Binary::Less, x, zero);
                let small = steps.mul(x, args.float("negative_slope")?);
                steps.select(is_below, small, x)
            }
            "gelu" => {
                let f = match args.get("approximate").as_deref() {
                    Some(Argument::Str(form)) if **form == "tanh" => Activation::GeluTanh,
                    Some(Argument::Str(form)) if **form == "none" => Activation::Gelu,
                    _ => return None,
                };
                steps.unary(Unary::Activation(f), x)
            }
            "elu" => steps.bent(x, 1.0, args.float("alpha")?, 1.0),
            "celu" => {
                // 0 is an error, which the graph returns.
                let alpha = args.float("alpha").filter(|alpha| *alpha != 0.0)?;
                steps.bent(x, 1.0, alpha, 1.0 / alpha)
            }
            "selu" => {
                let (alpha, slope) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
                steps.bent(x, slope, alpha * slope, 1.0)
            }
            "softplus" => steps.softplus(x, args.float("beta")?, args.float("threshold")?),
            "softsign" => {
                let size = steps.unary(Unary::Abs, x);
                let sum = steps.add(size, 1.0);
                steps.binary(Binary::Div, x, sum)
            }
            "mish" => {
                let y = steps.softplus(x, 1.0, 20.0);
                let y = steps.unary(Unary::Activation(Activation::Tanh), y);
                steps.binary(Binary::Mul, x, y)
            }
            "hardsigmoid" => {
                let y = steps.add(x, 3.0);
                let y = steps.unary(Unary::Clamp(0.0, 6.0), y);
                steps.mul(y, 1.0 / 6.0)
            }
            "square" => steps.unary(Unary::Pow(2.0), x),
            "threshold" => {
                let limit = steps.number(args.float("threshold")?);
                let is_below = steps.binary(Binary::LessEqual, x, limit);
                let value = steps.number(args.float("value")?);
                steps.select(is_below, value, x)
            }
            "masked_fill" => {
                let mask = steps.input(self.item_of(&*args.get("mask")?)?);
                let value = steps.number(args.float("value")?);
                steps.select(mask, value, x)
            }
            "addcmul" | "addcdiv" => {
                let a = steps.input(self.floats(args, "tensor1")?);
                let b = steps.input(self.floats(args, "tensor2")?);
                let f = match name {
                    "addcmul" => Binary::Mul,
                    _ => Binary::Div,
                };
                let factor = args.float("value")?;
                // In PyTorch's order: the first tensor times the number may overflow.
                let y = steps.mul(a, factor);
                let y = steps.binary(f, y, b);
                steps.binary(Binary::Add, x, y)
            }
            "lerp" => {
                let end = steps.input(self.floats(args, "end")?);
                let weight = self.operand(args, steps, "weight")?;
                let way = steps.binary(Binary::Sub, end, x);
                let one = steps.number(1.0);
                // From the nearer end, as PyTorch does.
                let from_start = steps.binary(Binary::Mul, way, weight);
                let from_start = steps.binary(Binary::Add, x, from_start);
                let rest = steps.binary(Binary::Sub, one, weight);
                let from_end = steps.binary(Binary::Mul, way, rest);
                let from_end = steps.binary(Binary::Sub, end, from_end);
                match &*args.get("weight")? {
                    Argument::Float(weight) if weight.abs() < 0.5 => from_start,
                    Argument::Int(0) => from_start,
                    Argument::Float(_) | Argument::Int(_) => from_end,
                    _ => {
                        let half = steps.number(0.5);
                        let size = steps.unary(Unary::Abs, weight);
                        let is_near = steps.binary(Binary::Less, size, half);
                        steps.select(is_near, from_start, from_end)
                    }
                }
            }
            _ => return None,
        })
    }
}
