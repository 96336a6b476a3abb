//! Sums of products of integers in reference form: floats that are whole numbers, which a file casts to integers and back.
//!
//! Invariant: a cast that is left out gives the same numbers.

use fx_nn::ir::{Argument, NodeRef};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;
use fx_nn::{Result, operator};

/// Leaves out casts to `int32` and back of what products of integers give.
pub(super) fn leave_out_casts(gm: &mut GraphModule) -> Result<()> {
    let mut found: Vec<(NodeId, NodeId, NodeId)> = Vec::new();
    for node in gm.graph().nodes() {
        let whole = cast_of(node, DType::F32).and_then(|whole| cast_of(whole, DType::I32));
        if let (Some(sums), Some(whole)) = (whole, cast_of(node, DType::F32))
            && is_of_whole_numbers(sums)
        {
            found.push((node.id(), whole.id(), sums.id()));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    gm.edit(|gm| {
        let mut unused = Vec::new();
        let mut edit = gm.graph_mut();
        for (back, whole, sums) in found {
            edit.node_mut(back)?.replace_all_uses_with(sums)?;
            unused.extend([whole, back]);
        }
        drop(edit);
        gm.graph_mut().erase_unused(&unused)
    })
}

/// What a cast to a type is of.
fn cast_of(node: NodeRef<'_>, dtype: DType) -> Option<NodeRef<'_>> {
    let is_cast = node.function() == Some(function!(ops::to_dtype))
        && matches!(node.argument("dtype"), Ok(Argument::DType(to)) if to == dtype);
    is_cast.then(|| node.all_input_nodes().next()).flatten()
}

/// Whether a node gives sums of products of integers, as floats.
fn is_of_whole_numbers(node: NodeRef<'_>) -> bool {
    let function = node.function();
    if function == Some(function!(ops::round)) {
        return (node.all_input_nodes().next()).is_some_and(|product| {
            let convs = [
                function!(ops::conv1d),
                function!(ops::conv2d),
                function!(ops::conv3d),
            ];
            product.function().is_some_and(|of| convs.contains(&of)) && is_of_steps(product)
        });
    }
    let is_product = function == Some(function!(ops::matmul)) || function == Some(operator::matmul);
    is_product && is_of_steps(node)
}

/// Whether all inputs are integers beside their zero points, in steps of 1.
fn is_of_steps(node: NodeRef<'_>) -> bool {
    node.all_input_nodes().all(|input| {
        input.function() == Some(function!(ops::dequantize_affine))
            && matches!(input.argument("scale"), Ok(Argument::Float(1.0)))
    })
}
