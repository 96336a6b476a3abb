//! A chain of pointwise operations, and the tape that it becomes: neighbours fused, and each value in
//! a register that is free while it lives.

use crate::Activation;
use crate::convert::Half;

/// A value of a [`Chain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(usize);

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Unary {
    /// `-x`.
    Neg,
    /// The absolute value.
    Abs,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// `1 / x`.
    Recip,
    /// `exp(x)`.
    Exp,
    /// `exp(x) - 1`, exact near 0.
    ExpMinusOne,
    /// The natural logarithm.
    Log,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The error function.
    Erf,
    /// `x^p`, by multiplications where p is a small whole number.
    Pow(f32),
    /// `min(max(x, low), high)`; NaN stays NaN.
    Clamp(f32, f32),
    /// `x - tanh(x)`, exact near 0.
    Tanhshrink,
    /// The nearest number of a type of 16 bits.
    Rounded(Half),
    /// An activation.
    Activation(Activation),
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// The smaller; NaN if one is NaN.
    Min,
    /// The larger; NaN if one is NaN.
    Max,
    /// `a^b`.
    Pow,
    /// 1 where `a < b`, else 0.
    Less,
    /// 1 where `a <= b`, else 0.
    LessEqual,
    /// 1 where `a == b`, else 0.
    Equal,
    /// 1 where `a != b`, else 0.
    NotEqual,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Node {
    Input(usize),
    Constant(f32),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    MulAdd(usize, usize, usize),
    Select(usize, usize, usize),
    /// Done by the node that uses it.
    Gone,
}

impl Node {
    fn arguments(&self) -> [Option<usize>; 3] {
        match *self {
            Node::Input(_) | Node::Constant(_) | Node::Gone => [None; 3],
            Node::Unary(_, a) => [Some(a), None, None],
            Node::Binary(_, a, b) => [Some(a), Some(b), None],
            Node::MulAdd(a, b, c) | Node::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }
}

/// Pointwise operations on inputs and constants, in order; [`Chain::finish`] makes a [`Tape`] of it.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    nodes: Vec<Node>,
    inputs: usize,
}

impl Chain {
    /// A chain without operations.
    pub fn new() -> Chain {
        Chain::default()
    }

    fn push(&mut self, node: Node) -> Value {
        self.nodes.push(node);
        Value(self.nodes.len() - 1)
    }

    /// The next input: the first call stands for the first operand of [`Tape::run`].
    pub fn input(&mut self) -> Value {
        self.inputs += 1;
        self.push(Node::Input(self.inputs - 1))
    }

    /// A number.
    pub fn constant(&mut self, x: f32) -> Value {
        self.push(Node::Constant(x))
    }

    /// A function of a value.
    pub fn unary(&mut self, f: Unary, a: Value) -> Value {
        match f {
            Unary::Pow(0.5) => self.push(Node::Unary(Unary::Sqrt, a.0)),
            Unary::Pow(-0.5) => self.push(Node::Unary(Unary::Rsqrt, a.0)),
            Unary::Pow(-1.0) => self.push(Node::Unary(Unary::Recip, a.0)),
            _ => self.push(Node::Unary(f, a.0)),
        }
    }

    /// A function of two values.
    pub fn binary(&mut self, f: Binary, a: Value, b: Value) -> Value {
        self.push(Node::Binary(f, a.0, b.0))
    }

    /// `a * b + c`, rounded once.
    pub fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.push(Node::MulAdd(a.0, b.0, c.0))
    }

    /// `yes` where `condition` is not 0, else `no`.
    pub fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        self.push(Node::Select(condition.0, yes.0, no.0))
    }

    /// The tape that computes these values. A product that only a sum uses is fused with it (and
    /// rounded once), and so is a ReLU with the sum or product that only it uses.
    pub fn finish(mut self, outputs: &[Value]) -> Tape {
        let mut uses = vec![0usize; self.nodes.len()];
        let mut wanted = vec![false; self.nodes.len()];
        for output in outputs {
            uses[output.0] += 2;
            wanted[output.0] = true;
        }
        for i in (0..self.nodes.len()).rev() {
            if !wanted[i] {
                self.nodes[i] = Node::Gone;
            }
            for argument in self.nodes[i].arguments().into_iter().flatten() {
                uses[argument] += 1;
                wanted[argument] = true;
            }
        }
        let mut relu = vec![false; self.nodes.len()];
        for i in 0..self.nodes.len() {
            let only = |a: usize| uses[a] == 1;
            match self.nodes[i] {
                Node::Binary(Binary::Add, a, b) => {
                    for (a, c) in [(a, b), (b, a)] {
                        if let (Node::Binary(Binary::Mul, x, y), true) = (self.nodes[a], only(a)) {
                            if relu[a] {
                                continue;
                            }
                            self.nodes[i] = Node::MulAdd(x, y, c);
                            self.nodes[a] = Node::Gone;
                            break;
                        }
                    }
                }
                Node::Unary(Unary::Activation(Activation::Relu), a) if only(a) && !relu[a] => {
                    use Binary::{Add, Mul, Sub};
                    if let Node::Binary(Add | Mul | Sub, ..) | Node::MulAdd(..) = self.nodes[a] {
                        self.nodes[i] = std::mem::replace(&mut self.nodes[a], Node::Gone);
                        relu[i] = true;
                    }
                }
                _ => {}
            }
        }
        Tape::new(&self.nodes, &relu, self.inputs, outputs)
    }
}

/// Where a step finds an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    Register(usize),
    Input(usize),
    Constant(f32),
}

/// What a step computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Code {
    Copy(Source),
    Unary(Unary, Source),
    Binary(Binary, Source, Source),
    MulAdd(Source, Source, Source),
    Select(Source, Source, Source),
}

/// A step writes one register.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub code: Code,
    /// Whether ReLU follows.
    pub relu: bool,
    pub to: usize,
}

/// A program of pointwise steps, run over blocks of floats that stay in the first level of the cache.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::pointwise::{Binary, Chain, Operand};
///
/// let mut chain = Chain::new();
/// let (x, two) = (chain.input(), chain.constant(2.0));
/// let y = chain.binary(Binary::Mul, x, two);
/// let tape = chain.finish(&[y]);
/// let mut out = [0.0; 3];
/// tape.run(Level::best(), &[3], &[Operand::full(&[1.0, 2.0, 3.0], &[1])], &mut [&mut out])?;
/// assert_eq!(out, [2.0, 4.0, 6.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tape {
    pub(super) steps: Vec<Step>,
    pub(super) inputs: usize,
    /// Registers of their own; behind them each output is a register too.
    pub(super) registers: usize,
    pub(super) outputs: usize,
}

impl Tape {
    fn new(nodes: &[Node], relu: &[bool], inputs: usize, outputs: &[Value]) -> Tape {
        // The first output that a node is, which is its register.
        let mut out = vec![None; nodes.len()];
        for (i, value) in outputs.iter().enumerate().rev() {
            out[value.0] = Some(i);
        }
        let mut last = vec![0; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            for argument in node.arguments().into_iter().flatten() {
                last[argument] = i;
            }
        }
        // Outputs get numbers behind all registers once those are known: until then from here on.
        const OUTPUT: usize = usize::MAX / 2;
        let mut place: Vec<Option<usize>> = vec![None; nodes.len()];
        let (mut free, mut registers, mut steps): (Vec<usize>, usize, Vec<Step>) =
            Default::default();
        for (i, node) in nodes.iter().enumerate() {
            let source = |a: usize| match nodes[a] {
                Node::Input(n) => Source::Input(n),
                Node::Constant(x) => Source::Constant(x),
                _ => Source::Register(place[a].unwrap_or(0)),
            };
            let code = match *node {
                Node::Gone => continue,
                Node::Input(_) | Node::Constant(_) => {
                    if let Some(n) = out[i] {
                        steps.push(Step {
                            code: Code::Copy(source(i)),
                            relu: false,
                            to: OUTPUT + n,
                        });
                    }
                    continue;
                }
                Node::Unary(f, a) => Code::Unary(f, source(a)),
                Node::Binary(f, a, b) => Code::Binary(f, source(a), source(b)),
                Node::MulAdd(a, b, c) => Code::MulAdd(source(a), source(b), source(c)),
                Node::Select(a, b, c) => Code::Select(source(a), source(b), source(c)),
            };
            // The register of the result is none of the arguments': those are freed after it.
            let to = match out[i] {
                Some(n) => OUTPUT + n,
                None => free.pop().unwrap_or_else(|| {
                    registers += 1;
                    registers - 1
                }),
            };
            place[i] = Some(to);
            steps.push(Step {
                code,
                relu: relu[i],
                to,
            });
            let mut arguments = node.arguments();
            if arguments[1] == arguments[0] {
                arguments[1] = None;
            }
            if arguments[2] == arguments[0] || arguments[2] == arguments[1] {
                arguments[2] = None;
            }
            for a in arguments.into_iter().flatten() {
                if let (Some(register), true) = (place[a], last[a] == i)
                    && register < OUTPUT
                {
                    free.push(register);
                }
            }
        }
        // An output that is another one again is a copy.
        for (i, value) in outputs.iter().enumerate() {
            if let Some(first) = out[value.0].filter(|first| *first != i) {
                let code = Code::Copy(Source::Register(OUTPUT + first));
                steps.push(Step {
                    code,
                    relu: false,
                    to: OUTPUT + i,
                });
            }
        }
        let number = |r: &mut usize| {
            if *r >= OUTPUT {
                *r = *r - OUTPUT + registers;
            }
        };
        let fix = |source: &mut Source| {
            if let Source::Register(r) = source {
                number(r);
            }
        };
        for step in &mut steps {
            number(&mut step.to);
            match &mut step.code {
                Code::Copy(a) | Code::Unary(_, a) => fix(a),
                Code::Binary(_, a, b) => [a, b].into_iter().for_each(fix),
                Code::MulAdd(a, b, c) | Code::Select(a, b, c) => {
                    [a, b, c].into_iter().for_each(fix);
                }
            }
        }
        Tape {
            steps,
            inputs,
            registers,
            outputs: outputs.len(),
        }
    }

    /// The operands that it reads.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The results that it writes.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The steps that the tape does for each block: after fusion fewer than the operations.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}
