//! Views: operators whose result lies in the memory of their first argument, and how what is written through one gets there.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use crate::call::Call;
use crate::rules;

/// The result of an operator that writes is the tensor that it wrote.
pub(crate) const SAME: &str = "torch.ops.aten.alias.default";

/// What gives the very elements.
const IDENTITIES: [&str; 10] = [
    "aten.alias",
    "aten.detach",
    "aten.contiguous",
    "aten.to",
    "aten.type_as",
    "aten.dropout",
    "aten.lift_fresh",
    "aten._unsafe_view",
    "aten.resolve_conj",
    "aten.resolve_neg",
];

/// What gives them in another shape.
const SHAPES: [&str; 10] = [
    "aten.view",
    "aten.reshape",
    "aten.flatten",
    "aten.unflatten",
    "aten.squeeze",
    "aten.unsqueeze",
    "aten.view_as",
    "aten.reshape_as",
    "aten.ravel",
    "aten.expand",
];

/// What gives them in another order, or some of them.
const PARTS: [&str; 12] = [
    "aten.transpose",
    "aten.t",
    "aten.permute",
    "aten.swapaxes",
    "aten.swapdims",
    "aten.numpy_T",
    "aten.select",
    "aten.slice",
    "aten.narrow",
    "aten.chunk",
    "aten.split",
    "aten.unbind",
];

fn operator_of(target: &str) -> &str {
    rules::short(target).1
}

/// Whether the results of an operator lie in the memory of its first argument.
pub(crate) fn is_view(target: &str) -> bool {
    let operator = operator_of(target);
    IDENTITIES.contains(&operator) || SHAPES.contains(&operator) || PARTS.contains(&operator)
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

/// The first argument of a view with other elements where the view lies.
///
/// # Errors
/// Returns an error if elements cannot be put there.
pub(crate) fn put(call: &Call<'_>, index: Option<usize>, new: Tensor) -> Result<Tensor> {
    let whole = call.own()?;
    let operator = operator_of(call.target);
    match operator {
        _ if IDENTITIES.contains(&operator) => Ok(new),
        "aten.expand" => Err(Error::msg(
            "it writes what `expand` repeats: make a copy with `clone` first",
        )),
        _ if SHAPES.contains(&operator) => ops::reshape(&new, whole.shape()?),
        "aten.t" => ops::t(&new),
        "aten.transpose" => ops::transpose(&new, call.of("dim0")?, call.of("dim1")?),
        "aten.swapaxes" => ops::transpose(&new, call.of("axis0")?, call.of("axis1")?),
        "aten.swapdims" => ops::transpose(&new, call.of("dim0")?, call.of("dim1")?),
        "aten.permute" => {
            let dims: Vec<i64> = call.of("dims")?;
            let rank = dims.len() as i64;
            let mut back = vec![0i64; dims.len()];
            for (at, dim) in dims.iter().enumerate() {
                back[dim.rem_euclid(rank) as usize] = at as i64;
            }
            ops::permute(&new, back)
        }
        "aten.select" => {
            ops::select_scatter(&whole, &new, call.of("dim")?, call.of::<Int>("index")?)
        }
        "aten.slice" if !has_known_ends(call) => put_slice(call, &whole, new),
        "aten.slice" => {
            let known = |name: &str| match call.get(name) {
                // The largest number is the end.
                None | Some(Value::Int(i64::MAX)) => Ok(None),
                Some(Value::Int(number)) => Ok(Some(*number)),
                Some(_) => Err(Error::msg(format_args!("`{name}` is no number"))),
            };
            let step = known("step")?.unwrap_or(1);
            ops::slice_scatter(
                &whole,
                &new,
                call.or("dim", 0)?,
                known("start")?,
                known("end")?,
                step as usize,
            )
        }
        "aten.unbind" => {
            let index = index.ok_or_else(|| Error::msg("`unbind` gives several tensors"))?;
            ops::select_scatter(&whole, &new, call.or("dim", 0)?, Int::from(index as i64))
        }
        _ => Err(Error::msg(format_args!(
            "it writes through a view that `{operator}` made: make a copy with `clone` first"
        ))),
    }
}

/// Whether the ends of a slice are numbers.
fn has_known_ends(call: &Call<'_>) -> bool {
    let is_known = |name: &str| matches!(call.get(name), None | Some(Value::Int(_)));
    is_known("start") && is_known("end")
}

/// A tensor with other elements in a slice from its start or to its end, the other end of which a run decides.
fn put_slice(call: &Call<'_>, whole: &Tensor, new: Tensor) -> Result<Tensor> {
    let start = call.get("start").filter(|at| !matches!(at, Value::Int(0)));
    let end = call
        .get("end")
        .filter(|at| !matches!(at, Value::Int(i64::MAX)));
    let dim: i64 = call.or("dim", 0)?;
    let rest = |from: Value, to: Value| -> Result<Tensor> {
        let args = vec![
            ("self", Value::object(whole.clone())),
            ("dim", Value::Int(dim)),
            ("start", from),
            ("end", to),
        ];
        Tensor::from_value(rules::run(&call.with_args(args))?)
    };
    match (start, end, call.or("step", 1i64)?) {
        (None, Some(end), 1) => ops::cat(&[new, rest(end.clone(), Value::None)?], dim),
        (Some(start), None, 1) => ops::cat(&[rest(Value::None, start.clone())?, new], dim),
        _ => Err(Error::msg(
            "it writes a slice whose ends or steps a run decides",
        )),
    }
}
