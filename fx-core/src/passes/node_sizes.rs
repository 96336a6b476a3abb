//! `get_size_of_all_nodes`: the bytes of each node's result, and of the parameters that it uses.
//!
//! Invariant: nothing runs; a size that is not known is an error.

use indexmap::IndexMap;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::hierarchy::ComponentExt;
use crate::value::dim::Dim;

/// The memory of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeBytes {
    /// Bytes of its result.
    pub output_size: Dim,
    /// The same, plus the bytes of the parameters of the module that it calls.
    pub total_size: Dim,
}

impl SizeBytes {
    /// The memory of a node of `gm` whose result takes `output_size` bytes.
    ///
    /// # Errors
    /// Returns an error if the node calls a module that is not there, or the number does not fit an
    /// `i64`.
    pub fn with_output(gm: &GraphModule, node: NodeRef<'_>, output_size: Dim) -> Result<Self> {
        let parameters = match node.op() {
            Op::CallModule(path) => gm.attributes().module(path)?.named_parameters(),
            _ => IndexMap::new(),
        };
        let sizes = parameters
            .values()
            .map(|value| ValueMeta::of(value).bytes());
        let parameters = sizes.fold(0, usize::saturating_add);
        Ok(SizeBytes {
            total_size: (&output_size + Dim::known(parameters))?,
            output_size,
        })
    }
}

/// The memory of one node, by the shape that
/// [`propagate_shapes`](GraphModule::propagate_shapes) or
/// [`infer_shapes`](GraphModule::infer_shapes) left in it.
///
/// # Errors
/// Returns an error if the shape is not known, the node calls a module that is not there, or the
/// number does not fit an `i64`. It names the node.
pub fn get_size_of_node(gm: &GraphModule, node: NodeRef<'_>) -> Result<SizeBytes> {
    let size = || {
        let meta = node.meta::<ValueMeta>().ok_or_else(|| {
            Error::msg("its shape is not known: `infer_shapes` or `propagate_shapes` writes it")
        })?;
        SizeBytes::with_output(gm, node, meta.memory()?)
    };
    size().map_err(|error| node.blame("finding the size of", error))
}

/// [`get_size_of_node`] of every node but the output, by name and in the order of the graph.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::get_size_of_all_nodes;
/// use fx_core::shapes::spec;
/// let mut gm = symbolic_trace(traced!(|x: Value, y: Value| Ok((y, x))))?;
/// assert!(get_size_of_all_nodes(&gm).is_err());
/// gm.infer_shapes(&[spec!["n", 8; F32], spec!["n"; I64]])?;
/// let sizes = get_size_of_all_nodes(&gm)?;
/// assert_eq!(sizes["x"].output_size.to_string(), "32*n");
/// assert_eq!(sizes["y"].total_size.to_string(), "8*n");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the error of the first node whose size is not known.
pub fn get_size_of_all_nodes(gm: &GraphModule) -> Result<IndexMap<String, SizeBytes>> {
    let nodes = gm.graph().nodes().filter(|node| *node.op() != Op::Output);
    let sizes = nodes.map(|node| Ok((node.name().to_string(), get_size_of_node(gm, node)?)));
    sizes.collect()
}
