//! `CallRules`: whether a function of a graph refuses what a run gives it, by the shape rules alone.
//!
//! Invariant: a call is asked about again only when its arguments differ from the last ones.

use super::graph::{fakes_of, on_fakes};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::bound::BoundArgs;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::call::Callee;
use crate::shapes::ShapeEnv;
use crate::shapes::evaluation::{is_ruled, result_of};
use crate::value::dtype::DType;
use crate::value::value::Value;

/// The calls of a graph, whose [`ShapeRule`](crate::shapes::ShapeRule)s say what each refuses. Code
/// that a backend made asks them before a run on arguments of other sizes, so that it refuses what
/// the graph refuses.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::backend::CallRules;
/// use fx_core::ir::ValueMeta;
/// let gm = symbolic_trace(traced!(|n: Int, by: Int| n.floordiv(by)))?;
/// let mut rules = CallRules::of(&gm)?;
/// assert!(rules.check(vec![ValueMeta::Int(7.into()), ValueMeta::Int(2.into())]).is_ok());
/// assert!(rules.check(vec![ValueMeta::Int(7.into()), ValueMeta::Int(0.into())]).is_err());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct CallRules {
    /// Without layers.
    graph: GraphModule,
    /// What each node gave last, by index; `None` if that depends on data.
    given: Vec<Option<ValueMeta>>,
    /// Whether the last check came to its end.
    is_whole: bool,
}

impl CallRules {
    /// The calls of a graph module, and of its layers.
    ///
    /// # Errors
    /// As [`opened`](GraphModule::opened).
    pub fn of(gm: &GraphModule) -> Result<Self> {
        let graph = gm.opened()?;
        Ok(CallRules {
            given: vec![None; graph.graph().index_bound()],
            graph,
            is_whole: false,
        })
    }

    /// Asks about a run on inputs, one for each placeholder.
    ///
    /// # Errors
    /// Returns the error of the first rule that refuses its call. What depends on data is not asked
    /// about.
    pub fn check(&mut self, inputs: Vec<ValueMeta>) -> Result<()> {
        let CallRules {
            graph,
            given,
            is_whole,
        } = self;
        let is_first = !std::mem::replace(is_whole, false);
        let mut changed = vec![false; given.len()];
        let mut inputs = inputs.into_iter();
        for node in graph.graph().nodes() {
            let new = match node.op() {
                Op::Placeholder(_) => inputs.next(),
                Op::Output => break,
                Op::GetAttr(_) if !is_first => continue,
                Op::GetAttr(path) => Some(ValueMeta::of_argument(&graph.attributes().value(path)?)),
                _ => {
                    let mut used = node.all_input_nodes();
                    if !is_first && !used.any(|input| changed[input.index()]) {
                        continue;
                    }
                    result(graph, node, given)?
                }
            };
            let new = new.filter(ValueMeta::is_closed);
            let at = node.index();
            changed[at] = match (&given[at], &new) {
                (Some(old), Some(new)) => !is_equal(old, new),
                (None, None) => false,
                _ => true,
            };
            given[at] = new;
        }
        *is_whole = true;
        Ok(())
    }

    /// The element type of the tensor that each node gives, as the last check found it: in the order of the graph, and `None`
    /// where it gives no tensor, or that depends on data ([`ValueMeta::dtype`]).
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::backend::CallRules;
    /// use fx_core::ir::ValueMeta;
    /// let gm = symbolic_trace(traced!(|n: Int| n * 2))?;
    /// let mut rules = CallRules::of(&gm)?;
    /// rules.check(vec![ValueMeta::Int(7.into())])?;
    /// assert_eq!(rules.dtypes(), [None, None, None]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dtypes(&self) -> Vec<Option<DType>> {
        let nodes = self.graph.graph().nodes();
        let dtype = |node: NodeRef<'_>| self.given.get(node.index())?.as_ref()?.dtype();
        nodes.map(dtype).collect()
    }

    /// The graph, where each call and tensor has the [`ValueMeta`] entry of what the last check found that it gives, and one
    /// that says nothing where that depends on data.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::backend::CallRules;
    /// use fx_core::ir::ValueMeta;
    /// let gm = symbolic_trace(traced!(|n: Int| n * 2))?;
    /// let mut rules = CallRules::of(&gm)?;
    /// rules.check(vec![ValueMeta::Int(7.into())])?;
    /// let graph = rules.into_graph()?;
    /// let mul = graph.graph().find_name("mul").and_then(|node| node.meta::<ValueMeta>());
    /// assert_eq!(mul.map(ValueMeta::to_string).as_deref(), Some("14"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the graph is being edited.
    pub fn into_graph(self) -> Result<GraphModule> {
        let CallRules {
            mut graph, given, ..
        } = self;
        let mut is_outer = true;
        graph.set_metas(&mut |graph| {
            // The graph itself comes first; what stands inside of it has indices of its own.
            if !std::mem::replace(&mut is_outer, false) {
                return Vec::new();
            }
            let meta = |node: NodeRef<'_>| {
                let found = given.get(node.index()).cloned().flatten();
                let unknown = || ValueMeta::Opaque("what a run gives".into());
                (node.id(), found.unwrap_or_else(unknown))
            };
            graph.nodes().map(meta).collect()
        })?;
        Ok(graph)
    }
}

/// What a call gives; `None` if no rule says so.
fn result(
    gm: &GraphModule,
    node: NodeRef<'_>,
    given: &[Option<ValueMeta>],
) -> Result<Option<ValueMeta>> {
    let is_known = |input: NodeRef<'_>| given[input.index()].is_some();
    if !node.all_input_nodes().all(is_known) {
        return Ok(None);
    }
    let call = gm.call(node)?;
    let Some(function) = call.function() else {
        return Ok(match call.callee() {
            Callee::Module(layer) if layer.is_opaque() && layer.effects().is_pure() => {
                let run = |args: &[&Value], out: &mut Value| layer.run(args, out);
                let args = fakes_of(&call.bind()?, given);
                on_fakes(&mut ShapeEnv::default(), &run, &args)
            }
            _ => None,
        });
    };
    let bound = BoundArgs::of(node, function.path(), function.params())?;
    let args = fakes_of(&bound, given);
    if !is_ruled(function, &args)? {
        return Ok(None);
    }
    result_of(function, &args, &mut ShapeEnv::default()).map(Some)
}

/// Whether two are known to be equal.
fn is_equal(a: &ValueMeta, b: &ValueMeta) -> bool {
    match (a, b) {
        (ValueMeta::Plain(_), _) | (_, ValueMeta::Plain(_)) => a.is_none() && b.is_none(),
        _ => a == b,
    }
}
