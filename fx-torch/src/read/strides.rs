//! Whether a result that may be a copy lies in the memory of its argument: as PyTorch decides it, by the strides of the
//! program's own example.
//!
//! Invariant: what the file does not say of strides is taken as memory in order.

use crate::schema::{Argument, Graph, Hint, Node, Size, TensorMeta};

/// What the file says of an argument or a result that is a tensor.
fn meta<'g>(graph: &'g Graph, argument: Option<&Argument>) -> Option<&'g TensorMeta> {
    graph.tensor_values.get(argument?.tensor()?)
}

/// The tensor that a node takes, and the one that it gives.
fn both<'g>(graph: &'g Graph, node: &Node) -> Option<(&'g TensorMeta, &'g TensorMeta)> {
    let own = meta(graph, node.inputs.first().map(|input| &input.arg))?;
    Some((own, meta(graph, node.outputs.first())?))
}

/// The numbers of the example.
fn numbers(sizes: &[Size]) -> Option<Vec<i64>> {
    let numbers = sizes.iter().map(|size| match size {
        Size::AsInt(number) => Some(*number),
        Size::AsExpr(of) => match of.hint.as_ref()? {
            Hint::AsInt(number) => Some(*number),
            _ => None,
        },
    });
    numbers.collect()
}

/// Sizes and strides of a tensor, of the dims that have more than one element.
fn places(meta: &TensorMeta) -> Option<Vec<(i64, i64)>> {
    let (sizes, strides) = (numbers(&meta.sizes)?, numbers(&meta.strides)?);
    if sizes.len() != strides.len() {
        return None;
    }
    let dims = sizes.into_iter().zip(strides);
    Some(dims.filter(|(size, _)| *size != 1).collect())
}

/// Whether elements lie where they lay, in the same element type.
pub(super) fn are_same(graph: &Graph, node: &Node) -> bool {
    let Some((own, given)) = both(graph, node) else {
        return true;
    };
    own.dtype == given.dtype && places(own) == places(given)
}

/// Whether a reshaped tensor is a view: each row of its dims is part of one run of elements.
pub(super) fn are_joined(graph: &Graph, node: &Node) -> bool {
    let Some((own, given)) = both(graph, node) else {
        return true;
    };
    let (Some(dims), Some(sizes)) = (places(own), numbers(&given.sizes)) else {
        return true;
    };
    // Dims of the argument that are one run of elements.
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for (size, stride) in dims {
        match runs.last_mut() {
            Some((count, last)) if *last == stride.saturating_mul(size) => {
                *count = count.saturating_mul(size);
                *last = stride;
            }
            _ => runs.push((size, stride)),
        }
    }
    let mut runs = runs.into_iter();
    let mut left = 1;
    for size in sizes.into_iter().filter(|size| *size != 1) {
        if left == 1 {
            left = runs.next().map_or(1, |(count, _)| count);
        }
        if size == 0 || left % size != 0 {
            return false;
        }
        left /= size;
    }
    left == 1
}
