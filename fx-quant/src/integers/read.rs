//! What the calls of a graph say: their arguments as numbers, scales, bounds, and who reads their results.
//!
//! Invariant: what is not a constant of the graph has no answer.

use std::borrow::Cow;

use fx_core::ir::{Argument, Function, FunctionTable, NodeRef};
use fx_core::value::DType;
use fx_core::{function, operator};
use fx_nn::{OpKind, ops};

/// What is found, or why nothing is.
pub(super) type Found<T> = std::result::Result<T, Cow<'static, str>>;

/// The node that is one argument.
pub(super) fn input<'g>(node: NodeRef<'g>, name: &str) -> Found<NodeRef<'g>> {
    match node.argument(name) {
        Ok(Argument::Node(id)) => node
            .graph()
            .node(id)
            .map_err(|error| error.to_string().into()),
        _ => Err(format!("`{name}` is not one tensor").into()),
    }
}

pub(super) fn is_call(node: NodeRef<'_>, function: Function) -> bool {
    node.function() == Some(function)
}

pub(super) fn is_matmul(node: NodeRef<'_>) -> bool {
    is_call(node, function!(ops::matmul)) || is_call(node, operator::matmul)
}

/// The two nodes that a call is of, and nothing else.
pub(super) fn two_nodes<'g>(node: NodeRef<'g>) -> Option<[NodeRef<'g>; 2]> {
    let [Argument::Node(a), Argument::Node(b)] = node.args() else {
        return None;
    };
    let graph = node.graph();
    (node.kwargs().is_empty())
        .then(|| Some([graph.node(*a).ok()?, graph.node(*b).ok()?]))
        .flatten()
}

/// What a product or a convolution is of: its input and its weight.
pub(super) fn operands<'g>(node: NodeRef<'g>) -> Found<(NodeRef<'g>, NodeRef<'g>)> {
    match is_matmul(node) {
        true => match two_nodes(node) {
            Some([x, weight]) => Ok((x, weight)),
            None => Err("it is not of two tensors alone".into()),
        },
        false => Ok((input(node, "x")?, input(node, "weight")?)),
    }
}

/// The one node that a call is of.
pub(super) fn only_input(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let mut inputs = node.all_input_nodes();
    match (inputs.next(), inputs.next()) {
        (Some(x), None) => Some(x),
        _ => None,
    }
}

/// What a call does to dims, if the table of functions says so.
pub(super) fn kind_of(node: NodeRef<'_>) -> Option<OpKind> {
    let kinds = FunctionTable::<OpKind>::registered().ok()?;
    kinds.get(node.function()?).copied()
}

/// The scale and zero point of a pair's half, if they are numbers.
pub(super) fn scale_of(node: NodeRef<'_>) -> Option<(f64, i64)> {
    let scale = match node.argument("scale").ok()? {
        Argument::Float(scale) => scale,
        _ => return None,
    };
    let zero_point = match node.argument("zero_point").ok()? {
        Argument::Int(zero_point) => zero_point,
        _ => return None,
    };
    Some((scale, zero_point))
}

/// The integers of a quantization: the type, the least and the largest one.
pub(super) fn range_of(node: NodeRef<'_>) -> Option<(DType, i64, i64)> {
    let whole = |name: &str| match node.argument(name).ok()? {
        Argument::Int(whole) => Some(whole),
        _ => None,
    };
    match node.argument("dtype").ok()? {
        Argument::DType(dtype @ (DType::U8 | DType::I8)) => {
            Some((dtype, whole("quant_min")?, whole("quant_max")?))
        }
        _ => None,
    }
}

/// Whole numbers that are a list, or one.
pub(super) fn wholes(node: NodeRef<'_>, name: &str) -> Found<Vec<i64>> {
    let argument = node.argument(name).map_err(|error| error.to_string())?;
    let one = |argument: &Argument| match argument {
        Argument::Int(size) => Some(*size),
        _ => None,
    };
    let found = match &argument {
        Argument::Int(size) => Some(vec![*size]),
        Argument::Tuple(items) | Argument::List(items) => items.iter().map(one).collect(),
        _ => None,
    };
    found.ok_or_else(|| format!("`{name}` is not of known numbers").into())
}

/// Two sizes; one stands for both.
pub(super) fn two(node: NodeRef<'_>, name: &str) -> Found<[usize; 2]> {
    let size = |size: i64| usize::try_from(size).ok();
    let found = match wholes(node, name)?[..] {
        [both] => size(both).map(|both| [both; 2]),
        [a, b] => size(a).zip(size(b)).map(|(a, b)| [a, b]),
        _ => None,
    };
    found.ok_or_else(|| format!("`{name}` is not of two known sizes").into())
}

pub(super) fn number(node: NodeRef<'_>, name: &str) -> Found<f64> {
    match node.argument(name) {
        Ok(Argument::Float(number)) => Ok(number),
        Ok(Argument::Int(number)) => Ok(number as f64),
        _ => Err(format!("`{name}` is not a known number").into()),
    }
}

pub(super) fn whole(node: NodeRef<'_>, name: &str) -> Found<i64> {
    match node.argument(name) {
        Ok(Argument::Int(number)) => Ok(number),
        _ => Err(format!("`{name}` is not a known number").into()),
    }
}

pub(super) fn is_off(node: NodeRef<'_>, name: &str) -> bool {
    matches!(node.argument(name), Ok(Argument::Bool(false)) | Err(_))
}

pub(super) fn only_reader(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    match node.num_users() {
        1 => node.users().next(),
        _ => None,
    }
}

/// Whether a call rounds to integers of 8 bits, by numbers.
pub(super) fn is_rounding(node: NodeRef<'_>) -> bool {
    is_call(node, function!(ops::quantize_affine))
        && range_of(node).is_some()
        && scale_of(node).is_some()
}

/// The numbers between which a call holds its input.
pub(super) fn bounds(node: NodeRef<'_>) -> Option<(f64, f64)> {
    let function = node.function()?;
    if function == function!(ops::relu) {
        return Some((0.0, f64::INFINITY));
    }
    if function == function!(ops::relu6) {
        return Some((0.0, 6.0));
    }
    if function == function!(ops::clamp) {
        let end = |name: &str, none: f64| match node.argument(name) {
            Ok(Argument::None) => Some(none),
            _ => number(node, name).ok(),
        };
        return Some((end("min", f64::NEG_INFINITY)?, end("max", f64::INFINITY)?));
    }
    if function == function!(ops::hardtanh) {
        return Some((number(node, "min_val").ok()?, number(node, "max_val").ok()?));
    }
    None
}
