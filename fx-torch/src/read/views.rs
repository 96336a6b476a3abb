//! Views: operators whose result lies in the memory of their first argument, and how what is written through one gets there.
//!
//! Invariant: an operator that gives a view is listed here, also where nothing can be written through it.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::strides;
use crate::call::Call;
use crate::rules::{self, slices};
use crate::schema::{Argument, Graph, Node};

/// The result of an operator that writes is the tensor that it wrote.
pub(crate) const SAME: &str = "torch.ops.aten.alias.default";

/// What gives the very elements.
const IDENTITIES: [&str; 13] = [
    "aten.alias",
    "aten.conj",
    "aten.contiguous",
    "aten.detach",
    "aten.dropout",
    "aten.feature_dropout",
    "aten.lift",
    "aten.lift_fresh",
    "aten.positive",
    "aten.resolve_conj",
    "aten.resolve_neg",
    "aten.to",
    "aten.type_as",
];

/// What gives them in another shape.
const SHAPES: [&str; 14] = [
    "aten._reshape_alias",
    "aten._unsafe_view",
    "aten.atleast_1d",
    "aten.atleast_2d",
    "aten.atleast_3d",
    "aten.flatten",
    "aten.ravel",
    "aten.reshape",
    "aten.reshape_as",
    "aten.squeeze",
    "aten.unflatten",
    "aten.unsqueeze",
    "aten.view",
    "aten.view_as",
];

/// What gives them in another order, or some of them.
const PARTS: [&str; 27] = [
    "aten.H",
    "aten.T",
    "aten.adjoint",
    "aten.chunk",
    "aten.diagonal",
    "aten.linalg_diagonal",
    "aten.mH",
    "aten.mT",
    "aten.matrix_H",
    "aten.moveaxis",
    "aten.movedim",
    "aten.narrow",
    "aten.numpy_T",
    "aten.permute",
    "aten.select",
    "aten.slice",
    "aten.split",
    "aten.split_with_sizes",
    "aten.swapaxes",
    "aten.swapdims",
    "aten.t",
    "aten.tensor_split",
    "aten.transpose",
    "aten.unbind",
    "aten.unsafe_chunk",
    "aten.unsafe_split",
    "aten.unsafe_split_with_sizes",
];

/// Views that nothing can be written through here: of repeated or overlapping elements, or of parts of numbers.
const READ: [&str; 14] = [
    "aten.as_strided",
    "aten.broadcast_tensors",
    "aten.broadcast_to",
    "aten.dsplit",
    "aten.expand",
    "aten.expand_as",
    "aten.hsplit",
    "aten.imag",
    "aten.meshgrid",
    "aten.real",
    "aten.unfold",
    "aten.view_as_complex",
    "aten.view_as_real",
    "aten.vsplit",
];

fn operator_of(target: &str) -> &str {
    rules::short(target).1
}

/// Whether the results of a node lie in the memory of its first argument.
pub(crate) fn is_view(graph: &Graph, node: &Node) -> bool {
    let operator = operator_of(&node.target);
    let is = |list: &[&str]| list.contains(&operator);
    if !(is(&IDENTITIES) || is(&SHAPES) || is(&PARTS) || is(&READ)) {
        return false;
    }
    let flag = |name: &str| {
        let found = node.inputs.iter().find(|input| input.name == name);
        matches!(found.map(|input| &input.arg), Some(Argument::AsBool(true)))
    };
    match operator {
        "aten.dropout" | "aten.feature_dropout" => !flag("train"),
        "aten.contiguous" | "aten.to" | "aten.type_as" => {
            !flag("copy") && strides::are_same(graph, node)
        }
        "aten.reshape" | "aten.reshape_as" | "aten.flatten" | "aten.ravel" => {
            strides::are_joined(graph, node)
        }
        _ => true,
    }
}

/// Which of several results a view is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub at: usize,
    pub of: usize,
}

/// A result: the whole, or an item of a list or a tuple, known or symbolic.
///
/// # Errors
/// Returns an error if there are fewer results.
pub(crate) fn part(given: &Value, index: Option<usize>) -> Result<Value> {
    match (given, index) {
        (given, None) => Ok(given.clone()),
        (Value::List(items) | Value::Tuple(items), Some(at)) => {
            items.get(at).cloned().ok_or_else(|| {
                Error::msg(format_args!(
                    "{} results, and the file names more",
                    items.len()
                ))
            })
        }
        (other, Some(at)) => operator::getitem.call_as((other.clone(), at as i64)),
    }
}

/// A tensor with another one in place of one of its parts along a dim.
fn put_among(call: &Call<'_>, index: Option<Part>, new: Tensor, dim: i64) -> Result<Tensor> {
    let index = index.ok_or_else(|| Error::msg("an operator of several results gives one"))?;
    let given = rules::run(call)?;
    let parts = (0..index.of).map(|at| match at == index.at {
        true => Ok(new.clone()),
        false => Tensor::from_value(part(&given, Some(at))?),
    });
    ops::cat(&parts.collect::<Result<Vec<Tensor>>>()?, dim)
}

/// The first argument of a view with other elements where the view lies.
///
/// # Errors
/// Returns an error if elements cannot be put there.
pub(crate) fn put(call: &Call<'_>, index: Option<Part>, new: Tensor) -> Result<Tensor> {
    let whole = call.own()?;
    let operator = operator_of(call.target);
    match operator {
        _ if IDENTITIES.contains(&operator) => Ok(new),
        _ if SHAPES.contains(&operator) => ops::reshape(&new, whole.shape()?),
        "aten.t" => ops::t(&new),
        "aten.T" | "aten.numpy_T" | "aten.H" | "aten.matrix_H" => {
            let call = Call {
                target: "torch.ops.aten.numpy_T.default",
                args: vec![("self", Value::object(new))],
                dtypes: Vec::new(),
            };
            Tensor::from_value(rules::run(&call)?)
        }
        "aten.mT" | "aten.mH" | "aten.adjoint" => ops::transpose(&new, -2, -1),
        "aten.transpose" | "aten.swapdims" => {
            ops::transpose(&new, call.of("dim0")?, call.of("dim1")?)
        }
        "aten.swapaxes" => ops::transpose(&new, call.of("axis0")?, call.of("axis1")?),
        "aten.movedim" | "aten.moveaxis" => {
            let dims = |name: &str| match call.value(name)? {
                Value::Int(dim) => Ok(vec![*dim]),
                _ => call.of::<Vec<i64>>(name),
            };
            ops::movedim(&new, dims("destination")?, dims("source")?)
        }
        "aten.permute" => {
            let dims: Vec<i64> = call.of("dims")?;
            ops::permute(&new, rules::undone(&dims))
        }
        "aten.select" => {
            ops::select_scatter(&whole, &new, call.of("dim")?, call.of::<Int>("index")?)
        }
        "aten.slice" => slices::put(call, &whole, new),
        "aten.narrow" => {
            let (start, length): (Int, Int) = (call.of("start")?, call.of("length")?);
            let end = (start + length)?;
            slices::put_between(
                &whole,
                new,
                call.of("dim")?,
                Value::of(start),
                Value::of(end),
            )
        }
        "aten.diagonal" => ops::diagonal_scatter(
            &whole,
            &new,
            call.or("offset", 0)?,
            call.or("dim1", 0)?,
            call.or("dim2", 1)?,
        ),
        "aten.linalg_diagonal" => ops::diagonal_scatter(
            &whole,
            &new,
            call.or("offset", 0)?,
            call.or("dim1", -2)?,
            call.or("dim2", -1)?,
        ),
        "aten.chunk"
        | "aten.split"
        | "aten.split_with_sizes"
        | "aten.tensor_split"
        | "aten.unsafe_chunk"
        | "aten.unsafe_split"
        | "aten.unsafe_split_with_sizes" => put_among(call, index, new, call.or("dim", 0)?),
        "aten.unbind" => {
            let index = index.ok_or_else(|| Error::msg("`unbind` gives several tensors"))?;
            let at = Int::from(index.at as i64);
            ops::select_scatter(&whole, &new, call.or("dim", 0)?, at)
        }
        "aten.expand"
        | "aten.expand_as"
        | "aten.broadcast_to"
        | "aten.broadcast_tensors"
        | "aten.meshgrid" => Err(Error::msg(format_args!(
            "it writes what `{operator}` repeats: make a copy with `clone` first"
        ))),
        _ => Err(Error::msg(format_args!(
            "it writes through a view that `{operator}` made: make a copy with `clone` first"
        ))),
    }
}
