//! `Points`: the steps of a pointwise item, as the lowering of a function writes them.
//!
//! Invariant: a step refers to steps before it, and a tensor is read once, however often it is named.

use std::borrow::Cow;

use fx_core::ir::Argument;
use fx_core::value::DType;

use super::call::{Args, Lowering};
use super::draft::{Id, PointOp};
use super::types::dtype_of;
use super::{Binary, Unary};

/// A value of a step: a number for each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point(usize);

/// The steps by which compiled code computes each element of a call's result, in `f32`. They run in
/// one pass with those of the calls before and after it.
///
/// ```
/// use fx_nn::cpu::{Binary, Cpu, CpuLowering, Unary};
/// use fx_nn::function_table;
/// use fx_nn::passes::backend::{Compile, LowerReport};
/// use fx_nn::prelude::*;
/// /// x / sqrt(1 + x²).
/// #[wrap]
/// fn softclip(x: &Tensor) -> Result<Tensor> {
///     x / (1.0 + (x * x)?)?.sqrt()?
/// }
/// function_table! { CpuLowering {
///     function!(softclip) => CpuLowering::pointwise(|points| {
///         let x = points.tensor("x")?;
///         let square = points.unary(Unary::Pow(2.0), x);
///         let sum = points.add(square, 1.0);
///         let root = points.unary(Unary::Sqrt, sum);
///         Some(points.binary(Binary::Div, x, root))
///     }),
/// } }
/// let gm = symbolic_trace(traced!(|x: &Tensor| (softclip(&x.relu()?)? * 2.0)?.tanh()))?;
/// let x = Tensor::randn((4, 5))?;
/// let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
/// let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
/// assert!(fx_nn::allclose(&found, &expected, 1e-5, 1e-6)?.close);
/// let report = fast.meta::<LowerReport>().ok_or_else(|| Error::msg("it is compiled"))?;
/// let code = fast.submodule_as::<GraphModule>(&report.parts[0].path)?.compiled();
/// assert_eq!(code.map(|code| code.steps().len()), Some(1));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Points<'a, 'g> {
    lowering: &'a mut Lowering<'g>,
    args: &'a Args<'g>,
    inputs: Vec<Id>,
    steps: Vec<PointOp>,
}

impl<'a, 'g> Points<'a, 'g> {
    pub(super) fn new(lowering: &'a mut Lowering<'g>, args: &'a Args<'g>) -> Self {
        Points {
            lowering,
            args,
            inputs: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The steps up to a result, and the items that they read.
    pub(super) fn finish(mut self, result: Point) -> (Vec<PointOp>, Vec<Id>) {
        // The last step is the result.
        self.steps.truncate(result.0 + 1);
        (self.steps, self.inputs)
    }

    fn push(&mut self, step: PointOp) -> Point {
        self.steps.push(step);
        Point(self.steps.len() - 1)
    }

    fn input(&mut self, id: Id) -> Point {
        let Some(known) = self.inputs.iter().position(|other| *other == id) else {
            self.inputs.push(id);
            return self.push(PointOp::Input(self.inputs.len() - 1));
        };
        let index = self.steps.iter().position(|s| *s == PointOp::Input(known));
        match index {
            Some(index) => Point(index),
            None => self.push(PointOp::Input(known)),
        }
    }

    /// The argument of a parameter; `None` if it is left out and has no default.
    pub fn argument(&self, param: &str) -> Option<Cow<'g, Argument>> {
        self.args.get(param)
    }

    /// The number of a parameter, if it is a literal.
    pub fn float(&self, param: &str) -> Option<f64> {
        self.args.float(param)
    }

    /// Whether an argument is left out, or `None`.
    pub fn is_none(&self, param: &str) -> bool {
        self.args.is_none(param)
    }

    /// Whether an argument is a tensor of `f32`.
    pub fn is_tensor(&self, param: &str) -> bool {
        let argument = self.args.get(param);
        let item = argument.and_then(|argument| self.lowering.item_of(&argument));
        item.is_some_and(|id| self.lowering.has_floats(id))
    }

    /// The elements of a tensor of `f32`; `None` if the argument is something else.
    pub fn tensor(&mut self, param: &str) -> Option<Point> {
        let id = self.lowering.floats(self.args, param)?;
        Some(self.input(id))
    }

    /// The elements of a tensor of any type, such as a mask.
    pub fn any(&mut self, param: &str) -> Option<Point> {
        let argument = self.args.get(param)?;
        if let Some(mask) = self.lowering.mask_of(&argument) {
            return Some(self.input(mask));
        }
        let id = self.lowering.item_of(&argument)?;
        if let Some(floats) = self.lowering.floats_of(id) {
            return Some(self.input(floats));
        }
        let given = self.lowering.gm.graph().node(argument.as_node()?).ok()?;
        let dtype = dtype_of(given);
        if dtype.is_some_and(DType::is_floating_point) {
            return None;
        }
        let integers = self.input(id);
        // Where the result has 16 bits, integers are rounded to these before.
        Some(match self.lowering.half_of_result(self.args) {
            Some(half) if dtype != Some(DType::Bool) => self.unary(Unary::Rounded(half), integers),
            _ => integers,
        })
    }

    /// The elements of a tensor, or a number.
    pub fn operand(&mut self, param: &str) -> Option<Point> {
        match self.float(param) {
            Some(number) => Some(self.number(number)),
            None => self.any(param),
        }
    }

    /// A number that is written in the call.
    pub fn literal(&mut self, param: &str) -> Option<Point> {
        let number = self.float(param)?;
        Some(self.number(number))
    }

    /// [`tensor`](Points::tensor), by the index of the parameter.
    pub(super) fn tensor_at(&mut self, index: usize) -> Option<Point> {
        self.tensor(self.args.param(index)?)
    }

    /// [`is_tensor`](Points::is_tensor), by the index of the parameter.
    pub(super) fn is_tensor_at(&self, index: usize) -> bool {
        let param = self.args.param(index);
        param.is_some_and(|param| self.is_tensor(param))
    }

    /// [`operand`](Points::operand), by the index of the parameter.
    pub(super) fn at(&mut self, index: usize) -> Option<Point> {
        self.operand(self.args.param(index)?)
    }

    /// A number.
    pub fn number(&mut self, x: f64) -> Point {
        self.push(PointOp::Number(x as f32))
    }

    /// A function of a value.
    pub fn unary(&mut self, f: Unary, a: Point) -> Point {
        self.push(PointOp::Unary(f, a.0))
    }

    /// A function of two values.
    pub fn binary(&mut self, f: Binary, a: Point, b: Point) -> Point {
        self.push(PointOp::Binary(f, a.0, b.0))
    }

    /// A value plus a number.
    pub fn add(&mut self, a: Point, b: f64) -> Point {
        let b = self.number(b);
        self.binary(Binary::Add, a, b)
    }

    /// A value times a number.
    pub fn mul(&mut self, a: Point, b: f64) -> Point {
        let b = self.number(b);
        self.binary(Binary::Mul, a, b)
    }

    /// `yes` where the condition is not 0, else `no`.
    pub fn select(&mut self, condition: Point, yes: Point, no: Point) -> Point {
        self.push(PointOp::Select(condition.0, yes.0, no.0))
    }
}
