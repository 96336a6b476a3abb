//! `Factors`: what a call's dims have to do with each other, as in an einsum; a dim belongs to at most one factor.

use std::borrow::Cow;
use std::ops::Range;

use fx_nn::OpKind;
use fx_nn::ir::{Argument, BoundArgs, Function, FunctionTable, NodeRef, ValueMeta};
use fx_nn::module::{Attributes, Call};
use fx_nn::value::NodeId;
use fx_nn::{Error, Result};

/// How the parts of a contracted factor are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// Added.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// How a device computes its part of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Local {
    /// The call, with the parts of its operands.
    #[default]
    Same,
    /// The call, with its part of the result's sizes in the named parameter.
    Sizes(&'static str, Range<usize>),
    /// The call as it is: it has no operands, and each device takes its part of the result.
    Whole,
    /// A look-up in the rows that the device has.
    Rows,
}

#[derive(Debug, Clone)]
pub(super) struct Factor {
    /// The parts that the factor can have at most: what shares it divides this number.
    pub size: usize,
    pub contracted: Option<Reduction>,
}

/// The factors of a call: each dim of an operand or the result belongs to one, or is never shared.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_stablehlo::shard::{Factors, Reduction, ShardRule};
/// /// The sums of the rows of a product.
/// #[wrap]
/// fn dots(x: &Tensor, y: &Tensor) -> Result<Tensor> {
///     (x * y)?.sum(-1)
/// }
/// function_table! { ShardRule {
///     function!(dots) => ShardRule(|call| {
///         let (x, y) = (call.tensor("x")?, call.tensor("y")?);
///         let mut factors = Factors::new();
///         let row = factors.factor(x.shape[0]);
///         let inner = factors.contracted(x.shape[1], Reduction::Sum);
///         factors.operand(&x, [Some(row), Some(inner)]);
///         factors.operand(&y, [Some(row), Some(inner)]);
///         factors.result([Some(row)]);
///         Ok(Some(factors))
///     }),
/// } }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Factors {
    pub(super) factors: Vec<Factor>,
    pub(super) operands: Vec<(NodeId, Vec<Option<usize>>)>,
    pub(super) result: Vec<Option<usize>>,
    pub(super) local: Local,
    /// Tensors that the call hands on or leaves alone, in whatever layout they have.
    pub(super) free: Vec<NodeId>,
    /// A parameter that is added to the sum of a contracted factor, and not to each part of it.
    pub(super) once: Option<&'static str>,
}

impl Factors {
    /// No factors.
    pub fn new() -> Self {
        Self::default()
    }

    /// A factor of the result.
    pub fn factor(&mut self, size: usize) -> usize {
        self.factors.push(Factor {
            size,
            contracted: None,
        });
        self.factors.len() - 1
    }

    /// A factor over which the call sums.
    pub fn contracted(&mut self, size: usize, by: Reduction) -> usize {
        let at = self.factor(size);
        self.factors[at].contracted = Some(by);
        at
    }

    /// An operand, with the factor of each dim.
    pub fn operand(
        &mut self,
        operand: &ShardTensor,
        dims: impl IntoIterator<Item = Option<usize>>,
    ) {
        self.operands
            .push((operand.node, dims.into_iter().collect()));
    }

    /// The result, with the factor of each dim; several tensors have the same.
    pub fn result(&mut self, dims: impl IntoIterator<Item = Option<usize>>) {
        self.result = dims.into_iter().collect();
    }

    /// Says that a parameter has the sizes of these dims of the result.
    pub fn sizes(&mut self, param: &'static str, dims: Range<usize>) {
        self.local = Local::Sizes(param, dims);
    }

    /// Says that a parameter is added once to a sum over a contracted factor: a bias.
    pub fn added_once(&mut self, param: &'static str) {
        self.once = Some(param);
    }

    /// Says that the call has no operands: each device computes it, and takes its part.
    pub fn computed_whole(&mut self) {
        self.local = Local::Whole;
    }

    /// Says that a tensor does not matter for the result.
    pub(super) fn free(&mut self, node: NodeId) {
        self.free.push(node);
    }

    pub(super) fn rows(&mut self) {
        self.local = Local::Rows;
    }
}

/// What the dims of calls of a function have to do with each other: an entry of a
/// [`FunctionTable`]. `None` says that this call is computed on whole values, see [`Factors`].
#[derive(Debug, Clone, Copy)]
pub struct ShardRule(pub fn(&ShardCall<'_>) -> Result<Option<Factors>>);

/// A tensor that a call takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardTensor {
    /// The node.
    pub node: NodeId,
    /// Its sizes; of several tensors those of the first.
    pub shape: Vec<usize>,
}

/// A call that a [`ShardRule`] is asked about.
#[derive(Debug)]
pub struct ShardCall<'g> {
    node: NodeRef<'g>,
    function: Function,
    bound: BoundArgs<'g>,
}

/// The sizes of a value that is a tensor, or several of as many dims.
pub(super) fn shape_of(meta: &ValueMeta) -> Option<Vec<usize>> {
    match meta {
        ValueMeta::Single(tensor) => tensor.known_shape(),
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            let mut shapes = items.iter().map(|item| item.tensor()?.known_shape());
            let first = shapes.next()??;
            let same = |shape: Option<Vec<usize>>| shape.is_some_and(|s| s.len() == first.len());
            shapes.all(same).then_some(first)
        }
        _ => None,
    }
}

/// The whole number that a node is known to be.
pub(super) fn number_of(node: NodeRef<'_>) -> Option<i64> {
    match node.meta::<ValueMeta>()? {
        ValueMeta::Int(dim) => dim.as_number(),
        _ => None,
    }
}

impl ShardRule {
    /// The rule of a function: its own, or that of its kind.
    ///
    /// # Errors
    /// Returns an error if two are registered for one function.
    pub fn of(function: Function) -> Result<Option<Self>> {
        if let Some(own) = FunctionTable::<ShardRule>::registered()?.get(function) {
            return Ok(Some(*own));
        }
        Ok(match FunctionTable::<OpKind>::registered()?.get(function) {
            Some(OpKind::Unary | OpKind::Binary | OpKind::Compare) => Some(ShardRule(pointwise)),
            _ => None,
        })
    }
}

impl<'g> ShardCall<'g> {
    /// The call of a node; `None` for what calls no function that is known.
    pub(super) fn of(node: NodeRef<'g>, attributes: &'g Attributes) -> Result<Option<Self>> {
        let call = Call::of(node, attributes);
        let Some(function) = call.function() else {
            return Ok(None);
        };
        Ok(Some(ShardCall {
            node,
            function,
            bound: call.bind()?,
        }))
    }

    /// The factors by the function's rule; `None` if it has no rule, or the rule has no factors.
    pub(super) fn factors(&self) -> Result<Option<Factors>> {
        if self.result().is_none() {
            return Ok(None);
        }
        match ShardRule::of(self.function)? {
            Some(rule) => (rule.0)(self),
            None => Ok(None),
        }
    }

    /// The node.
    pub fn node(&self) -> NodeRef<'g> {
        self.node
    }

    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// The arguments with their parameters.
    pub(super) fn bound(&self) -> &BoundArgs<'g> {
        &self.bound
    }

    /// An argument.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn argument(&self, name: &str) -> Result<Cow<'g, Argument>> {
        self.bound.get(name).ok_or_else(|| {
            Error::msg(format_args!(
                "`{}` has no parameter `{name}`",
                self.function.path()
            ))
        })
    }

    fn node_of(&self, argument: &Argument) -> Option<NodeRef<'g>> {
        self.node.graph().node(argument.as_node()?).ok()
    }

    /// The tensor that an argument is, if it is one.
    pub(super) fn as_tensor(&self, argument: &Argument) -> Option<ShardTensor> {
        let node = self.node_of(argument)?;
        let shape = shape_of(node.meta()?)?;
        Some(ShardTensor {
            node: node.id(),
            shape,
        })
    }

    /// A tensor.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensor(&self, name: &str) -> Result<ShardTensor> {
        let found = self.as_tensor(&*self.argument(name)?);
        found.ok_or_else(|| Error::msg(format_args!("`{name}` is no tensor of known sizes")))
    }

    /// A tensor, or `None` for anything else.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn optional_tensor(&self, name: &str) -> Result<Option<ShardTensor>> {
        Ok(self.as_tensor(&*self.argument(name)?))
    }

    /// The tensors of a list; `None` if it has something else.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn tensors(&self, name: &str) -> Result<Option<Vec<ShardTensor>>> {
        Ok(match &*self.argument(name)? {
            Argument::List(items) | Argument::Tuple(items) => {
                items.iter().map(|item| self.as_tensor(item)).collect()
            }
            _ => None,
        })
    }

    /// Every tensor that the call takes, once for each argument that it is.
    pub fn all_tensors(&self) -> Vec<ShardTensor> {
        let mut found = Vec::new();
        for (_, argument) in self.bound.iter() {
            argument.for_each_node(&mut |id| {
                found.extend(self.as_tensor(&Argument::Node(id)));
            });
        }
        found
    }

    fn as_int(&self, argument: &Argument) -> Option<i64> {
        match argument {
            Argument::Int(int) => Some(*int),
            other => number_of(self.node_of(other)?),
        }
    }

    /// A whole number, or `None` for anything else.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.as_int(&*self.argument(name)?))
    }

    /// Whole numbers, or one of them; `None` for anything else.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        Ok(match &*self.argument(name)? {
            Argument::List(items) | Argument::Tuple(items) => {
                items.iter().map(|item| self.as_int(item)).collect()
            }
            one => self.as_int(one).map(|one| vec![one]),
        })
    }

    /// The place of a dim among so many; `None` if it is not known.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn dim(&self, name: &str, rank: usize) -> Result<Option<usize>> {
        Ok(self.int(name)?.and_then(|dim| place(dim, rank)))
    }

    /// Whether an argument is true.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(matches!(&*self.argument(name)?, Argument::Bool(true)))
    }

    /// The sizes of the result; of several tensors those of the first, `None` if it is something else.
    pub fn result(&self) -> Option<Vec<usize>> {
        shape_of(self.node.meta()?)
    }
}

/// The place of a dim, counted from the start.
pub(super) fn place(dim: i64, rank: usize) -> Option<usize> {
    let dim = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(dim).ok().filter(|dim| *dim < rank)
}

/// Adds an operand that is broadcast to the result, whose dims have these factors.
pub(super) fn broadcast(
    factors: &mut Factors,
    operand: &ShardTensor,
    result: &[usize],
    of: &[Option<usize>],
) {
    let rank = operand.shape.len();
    let from = result.len().saturating_sub(rank);
    let dims: Vec<Option<usize>> = (0..rank)
        .map(|at| match result.get(from + at) {
            Some(size) if *size == operand.shape[at] => of.get(from + at).copied().flatten(),
            _ => None,
        })
        .collect();
    factors.operand(operand, dims);
}

/// A factor for each dim; none for dims of size one.
pub(super) fn each(factors: &mut Factors, shape: &[usize]) -> Vec<Option<usize>> {
    let one = |size: &usize| (*size > 1).then(|| factors.factor(*size));
    shape.iter().map(one).collect()
}

/// Every tensor, broadcast to the result.
pub(super) fn pointwise(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let dims = each(&mut factors, &result);
    for operand in call.all_tensors() {
        broadcast(&mut factors, &operand, &result, &dims);
    }
    factors.result(dims);
    Ok(Some(factors))
}
