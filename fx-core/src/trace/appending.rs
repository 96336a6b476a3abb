//! `GraphAppendingTracer`: records operations on symbolic values of an existing graph into it.
//!
//! Invariant: the graph is given back, also if the body unwinds.

use std::rc::Rc;

use super::context::{Specialised, TraceContext};
use super::infers::Infers;
use super::scope::{Active, Running};
use super::tracer::Tracer;
use crate::error::Result;
use crate::ir::graph::Graph;
use crate::module::attributes::Attributes;

/// Records into an existing graph: at its insertion point, or at its end.
///
/// Written in plain Rust, a rule becomes nodes: here `double` becomes an addition.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Op;
/// use fx_core::module::Attributes;
/// use fx_core::trace::GraphAppendingTracer;
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
///
/// let mut gm = symbolic_trace(traced!(|x: Float| double(x)? * 3.0))?;
/// let nodes = gm.graph().find_nodes(&Op::CallFunction(function!(double)));
/// for node in nodes.iter().map(|node| node.id()).collect::<Vec<_>>() {
///     gm.append_before(node, |cx| {
///         let x = cx.graph()?.node(node)?.args()[0].as_node();
///         let x: Float = cx.proxy(x.ok_or_else(|| Error::msg("double has an argument"))?).to()?;
///         x + x
///     })?;
/// }
/// gm.eliminate_dead_code()?;
/// assert!(gm.graph().find_name("add").is_some() && gm.graph().find_name("double").is_none());
/// assert_eq!(gm.forward::<f64>(1.5)?, 9.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct GraphAppendingTracer;

impl Tracer for GraphAppendingTracer {}

impl GraphAppendingTracer {
    /// Runs `body`; what it does to proxies of the graph's nodes ([`TraceContext::proxy`]) is
    /// recorded into the graph, and constants and layers that it uses are added to the attributes.
    ///
    /// # Errors
    /// Returns the error of `body`; what it recorded before stays.
    #[track_caller]
    pub fn append<R>(
        graph: &mut Graph,
        attributes: &mut Attributes,
        body: impl FnOnce(&TraceContext) -> Result<R>,
    ) -> Result<R> {
        Self::append_knowing(graph, attributes, None, body)
    }

    /// [`append`](GraphAppendingTracer::append) into a graph whose shapes are known: what follows from them is no node.
    #[track_caller]
    pub(crate) fn append_knowing<R>(
        graph: &mut Graph,
        attributes: &mut Attributes,
        shapes: Option<Box<dyn Infers>>,
        body: impl FnOnce(&TraceContext) -> Result<R>,
    ) -> Result<R> {
        /// Gives graph and attributes back, also on unwinding.
        struct Lent<'g> {
            graph: &'g mut Graph,
            attributes: &'g mut Attributes,
            active: Rc<Active>,
        }
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                let recorded = self.active.context.take_parts();
                *self.graph = recorded.graph;
                *self.attributes = recorded.attributes;
            }
        }
        let context = TraceContext::new(None, Specialised::default());
        context.shapes.replace(shapes);
        context.give_parts(std::mem::take(graph), std::mem::take(attributes));
        let lent = Lent {
            graph,
            attributes,
            active: Rc::new(Active {
                tracer: Rc::new(GraphAppendingTracer),
                context,
            }),
        };
        let _running = Running::start(lent.active.clone());
        body(&lent.active.context)
    }
}
