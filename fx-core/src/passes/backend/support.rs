//! `OperatorSupport`: which calls of a graph someone can take.

use std::borrow::Cow;

use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::value_meta::ValueMeta;
use crate::module::call::Call;
use crate::value::dtype::DType;

/// Whether a call can be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// It can.
    Yes,
    /// It can, beside others that can: a view is not worth a part of its own.
    IfFused,
    /// It can, as a part of what reads it: [`lower`](crate::GraphModule::lower) gives each reader that is taken a call of its
    /// own. The bytes of a weight as floats are worth no part, and are not to be passed from one part to another.
    WithReader,
    /// It cannot, for a reason that a report names.
    No(Cow<'static, str>),
}

impl Support {
    /// It cannot, for a reason.
    pub fn no(reason: impl Into<Cow<'static, str>>) -> Self {
        Support::No(reason.into())
    }

    /// Whether it can, alone or beside others.
    pub fn is_yes(&self) -> bool {
        !matches!(self, Support::No(_))
    }
}

/// The shapes and types around a call, as far as they are known:
/// [`infer_shapes`](crate::GraphModule::infer_shapes) or
/// [`propagate_shapes`](crate::GraphModule::propagate_shapes) make them known.
#[derive(Debug, Clone, Copy)]
pub struct Metas<'g> {
    node: NodeRef<'g>,
}

impl<'g> Metas<'g> {
    /// Those around a node of a graph.
    pub(crate) fn of(graph: &'g Graph, node: NodeRef<'g>) -> Self {
        debug_assert!(graph.node(node.id()).is_ok(), "the node is of the graph");
        Metas { node }
    }

    /// What the call returns.
    pub fn result(&self) -> Option<&'g ValueMeta> {
        self.node.meta()
    }

    /// What the nodes are that the call uses, in the order of its arguments.
    pub fn inputs(&self) -> impl Iterator<Item = Option<&'g ValueMeta>> {
        self.node.all_input_nodes().map(|input| input.meta())
    }

    /// The element types of the inputs and the result that are known tensors.
    pub fn dtypes(&self) -> impl Iterator<Item = DType> {
        let all = self.inputs().chain([self.result()]);
        all.filter_map(|meta| meta?.tensor()?.dtype)
    }
}

/// Which calls can be taken: a closure, [`functions`], [`dtypes`], and what combines them.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::backend::{Metas, OperatorSupport, Partitioner, Support, functions};
/// use fx_core::module::Call;
/// use fx_core::operator;
/// let sums = functions([operator::add, operator::sub]);
/// let named = |call: &Call<'_>, _: &Metas<'_>| match call.node().name() == "sub" {
///     true => Support::no("its name is sub"),
///     false => Support::Yes,
/// };
/// let gm = symbolic_trace(traced!(|x: Float| ((x + 1.0)? - 2.0)? * x))?;
/// let parts = Partitioner::new().partition(&gm, &sums.and(named))?;
/// assert_eq!(parts.len(), 1);
/// assert_eq!(gm.graph().node(parts[0].nodes()[0])?.name(), "add");
/// # Ok::<(), Error>(())
/// ```
pub trait OperatorSupport {
    /// Whether a call can be taken.
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support;

    /// Only what both can take.
    fn and<S: OperatorSupport>(self, other: S) -> AllOf<Self, S>
    where
        Self: Sized,
    {
        AllOf(self, other)
    }

    /// What one of the two can take.
    fn or<S: OperatorSupport>(self, other: S) -> AnyOf<Self, S>
    where
        Self: Sized,
    {
        AnyOf(self, other)
    }

    /// What this cannot take.
    fn not(self) -> Not<Self>
    where
        Self: Sized,
    {
        Not(self)
    }
}

impl<F: Fn(&Call<'_>, &Metas<'_>) -> Support> OperatorSupport for F {
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        self(call, metas)
    }
}

/// [`OperatorSupport::and`].
#[derive(Debug, Clone, Copy)]
pub struct AllOf<A, B>(A, B);

impl<A: OperatorSupport, B: OperatorSupport> OperatorSupport for AllOf<A, B> {
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        match (self.0.supports(call, metas), self.1.supports(call, metas)) {
            (no @ Support::No(_), _) | (_, no @ Support::No(_)) => no,
            (Support::WithReader, _) | (_, Support::WithReader) => Support::WithReader,
            (Support::IfFused, _) | (_, Support::IfFused) => Support::IfFused,
            (Support::Yes, Support::Yes) => Support::Yes,
        }
    }
}

/// [`OperatorSupport::or`].
#[derive(Debug, Clone, Copy)]
pub struct AnyOf<A, B>(A, B);

impl<A: OperatorSupport, B: OperatorSupport> OperatorSupport for AnyOf<A, B> {
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        match self.0.supports(call, metas) {
            Support::Yes => Support::Yes,
            Support::IfFused => match self.1.supports(call, metas) {
                Support::Yes => Support::Yes,
                _ => Support::IfFused,
            },
            Support::WithReader => match self.1.supports(call, metas) {
                Support::No(_) => Support::WithReader,
                other => other,
            },
            Support::No(_) => self.1.supports(call, metas),
        }
    }
}

/// [`OperatorSupport::not`].
#[derive(Debug, Clone, Copy)]
pub struct Not<S>(S);

impl<S: OperatorSupport> OperatorSupport for Not<S> {
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        match self.0.supports(call, metas) {
            Support::No(_) => Support::Yes,
            _ => Support::no("it is excluded"),
        }
    }
}

/// Calls of these functions, as functions or as methods.
pub fn functions(of: impl IntoIterator<Item = Function>) -> impl OperatorSupport {
    let of: Vec<Function> = of.into_iter().collect();
    move |call: &Call<'_>, _: &Metas<'_>| match call.function() {
        Some(function) if of.contains(&function) => Support::Yes,
        _ => Support::no("its function is not among the supported ones"),
    }
}

/// Calls whose tensors are of these element types, as far as that is known.
pub fn dtypes(of: impl IntoIterator<Item = DType>) -> impl OperatorSupport {
    let of: Vec<DType> = of.into_iter().collect();
    move |_: &Call<'_>, metas: &Metas<'_>| match metas.dtypes().find(|dtype| !of.contains(dtype)) {
        Some(dtype) => Support::No(format!("{dtype} is not among the supported types").into()),
        None => Support::Yes,
    }
}
