//! `Factors`: which dims of a call's operands and result are one, and `ShardRule`, which says it of a function.
//!
//! Invariant: dims of one factor are split alike; a factor that no result has is summed.

use fx_nn::ir::{Argument, BoundArgs, Graph, NodeRef, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

/// Which dims of a call's operands and result are one: each has a number, its factor.
#[derive(Debug, Clone, Default)]
pub struct Factors {
    pub(super) operands: Vec<(NodeId, Vec<Option<usize>>)>,
    pub(super) result: Vec<Option<usize>>,
    pub(super) count: usize,
}

impl Factors {
    /// A factor for each dim of a result of so many dims.
    pub fn of_result(rank: usize) -> Self {
        Factors {
            operands: Vec::new(),
            result: (0..rank).map(Some).collect(),
            count: rank,
        }
    }

    /// A new factor, which the result does not have: it is summed over.
    pub fn summed(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }

    /// The factors of an operand's dims; `None` is a dim that is not split.
    pub fn operand(&mut self, of: NodeId, dims: Vec<Option<usize>>) {
        self.operands.push((of, dims));
    }
}

/// What a function does to dims: an entry of a [`FunctionTable`](fx_nn::ir::FunctionTable), registered by any crate.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_stablehlo::shard::{Factors, ShardRule};
/// #[wrap]
/// fn rows(x: &Tensor) -> Result<Tensor> { x * 2.0 }
/// function_table! { ShardRule {
///     function!(rows) => ShardRule(|call| {
///         let mut factors = Factors::of_result(call.result().len());
///         if let Some((x, shape)) = call.tensor("x") {
///             factors.operand(x, (0..shape.len()).map(Some).collect());
///         }
///         Ok(factors)
///     }),
/// } }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ShardRule(pub fn(&ShardCall<'_>) -> Result<Factors>);

/// A call whose dims a rule names.
#[derive(Debug)]
pub struct ShardCall<'c> {
    pub(super) graph: &'c Graph,
    pub(super) node: NodeRef<'c>,
    pub(super) bound: BoundArgs<'c>,
}

/// The sizes of a node's value, or of the first of its values, if they are known.
pub(super) fn shape_of(node: NodeRef<'_>) -> Option<Vec<i64>> {
    let mut meta = node.meta::<ValueMeta>()?;
    while let ValueMeta::Sequence(items) = meta {
        meta = items.first()?;
    }
    meta.tensor()?
        .shape
        .iter()
        .map(fx_nn::value::Dim::as_number)
        .collect()
}

impl ShardCall<'_> {
    /// The sizes of the result, or of the first of the results.
    pub fn result(&self) -> Vec<i64> {
        shape_of(self.node).unwrap_or_default()
    }

    /// A tensor among the arguments, with its sizes.
    pub fn tensor(&self, name: &str) -> Option<(NodeId, Vec<i64>)> {
        let argument = self.bound.get(name)?;
        self.value(&argument)
    }

    fn value(&self, argument: &Argument) -> Option<(NodeId, Vec<i64>)> {
        let id = argument.as_node()?;
        Some((id, shape_of(self.graph.node(id).ok()?)?))
    }

    /// All tensors among the arguments, those of lists too.
    pub fn tensors(&self) -> Vec<(NodeId, Vec<i64>)> {
        let mut all = Vec::new();
        for (_, argument) in self.bound.iter() {
            argument.for_each_node(&mut |id| {
                if !all.iter().any(|(known, _)| *known == id) {
                    all.extend(self.value(&Argument::Node(id)));
                }
            });
        }
        all
    }

    /// Whole numbers that are known: a list, or one.
    pub fn ints(&self, name: &str) -> Vec<i64> {
        let number = |argument: &Argument| match argument {
            Argument::Int(int) => Some(*int),
            Argument::Node(id) => match self.graph.node(*id).ok()?.meta::<ValueMeta>()? {
                ValueMeta::Size(dim) => dim.as_number(),
                ValueMeta::Plain(text) => text.parse().ok(),
                _ => None,
            },
            _ => None,
        };
        match self.bound.get(name).as_deref() {
            Some(Argument::List(items) | Argument::Tuple(items)) => {
                items.iter().filter_map(number).collect()
            }
            Some(one) => number(one).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// A dim, counted from the front, of a tensor with so many.
    pub fn dim(&self, name: &str, rank: usize) -> Option<usize> {
        let dim = *self.ints(name).first()?;
        usize::try_from(if dim < 0 { dim + rank as i64 } else { dim }).ok()
    }

    /// A truth that is known.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.bound.get(name).as_deref(), Some(Argument::Bool(true)))
    }

    /// Text that is known.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.bound.get(name).as_deref() {
            Some(Argument::Str(text)) => Some(text.to_string()),
            _ => None,
        }
    }
}
