//! Entries of the tables: what an operator is in fx, and the call of a function by its parameters' names.
//!
//! Invariant: an argument that has no counterpart is refused, and never left out.

use fx_nn::ir::{Function, Literal, ParamSpec};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::trace::CallArgs;
use fx_nn::{Error, Result};

use crate::call::Call;
use crate::known;

/// What an operator is.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A function of fx whose parameters have the operator's names, but for those that are listed.
    Same(fn() -> Function, &'static [(&'static str, &'static str)]),
    /// Such a function of another crate.
    Own(Function, &'static [(&'static str, &'static str)]),
    /// A composition.
    By(fn(&Call<'_>) -> Result<Value>),
}

/// An entry of a family's table: the operator, with its overload where that decides, and what it is.
pub(crate) type Entry = (&'static str, How);

/// Arguments that change nothing of what a run gives.
const WITHOUT_MEANING: [&str; 15] = [
    "memory_format",
    "layout",
    "device",
    "pin_memory",
    "non_blocking",
    "copy",
    "cudnn_enabled",
    "cudnn_enable",
    "implicit",
    "generator",
    "sparse_grad",
    "scale_grad_by_freq",
    "sparse",
    "stable",
    "allow_tf32",
];

/// Whether an argument of this name changes nothing of what a run gives.
pub(crate) fn is_without_meaning(name: &str) -> bool {
    WITHOUT_MEANING.contains(&name)
}

/// Entries of operators that are functions of fx: `"aten.relu" => relu`, with other names of parameters behind it.
macro_rules! same {
    ($($name:literal => $function:path $([$($theirs:literal => $ours:literal),*])?),* $(,)?) => {
        &[$(($name, $crate::rules::entry::How::Same(|| fx_nn::prelude::function!($function), &[$($(($theirs, $ours)),*)?]))),*]
    };
}
pub(crate) use same;

/// Entries of operators that are compositions.
macro_rules! by {
    ($($name:literal => $rule:expr),* $(,)?) => {
        &[$(($name, $crate::rules::entry::How::By($rule))),*]
    };
}
pub(crate) use by;

/// How many dims a tensor has: in a branch or a loop, as the file says.
///
/// # Errors
/// Returns an error if a run decides that.
pub(crate) fn rank(x: &Tensor) -> Result<i64> {
    if let Some(proxy) = x.proxy()
        && let Some(known) = known::of(proxy)
    {
        return Ok(known.rank as i64);
    }
    match x.ndim()? {
        Int::Concrete(rank) => Ok(rank),
        Int::Proxy(_) => Err(Error::msg("a run decides how many dims the tensor has")),
    }
}

/// The order of dims that undoes another one, whose dims may count from the end.
pub(crate) fn undone(order: &[i64]) -> Vec<i64> {
    let rank = order.len() as i64;
    let mut back = vec![0; order.len()];
    for (at, dim) in (0..).zip(order) {
        back[dim.rem_euclid(rank) as usize] = at;
    }
    back
}

/// A call of a function with the first two arguments, in their order.
///
/// # Errors
/// Returns an error if one is missing, or as the function does.
pub(crate) fn of_two(function: Function, call: &Call<'_>) -> Result<Value> {
    function.call_as((call.at(0)?.clone(), call.at(1)?.clone()))
}

/// A call of a function by its parameters' names.
///
/// # Errors
/// Returns an error if an argument has no counterpart, or as the function does.
pub(crate) fn same_function(
    function: Function,
    renamed: &[(&str, &str)],
    call: &Call<'_>,
) -> Result<Value> {
    let params = function.params();
    let mut args = CallArgs {
        args: Vec::new(),
        kwargs: Vec::new(),
    };
    for (at, (name, value)) in call.args.iter().enumerate() {
        let name = renamed
            .iter()
            .find(|(theirs, _)| theirs == name)
            .map_or(*name, |(_, ours)| ours);
        let is_own = at == 0 && ["self", "input", "tensors"].contains(&name);
        let param = params
            .iter()
            .find(|param| *param.name == *name)
            .or(params.first().filter(|_| is_own));
        let Some(param) = param else {
            let says_nothing = is_without_meaning(name) || matches!(value, Value::None);
            match (name, value) {
                _ if says_nothing => continue,
                // A sum or a softmax in another type than its argument's.
                ("dtype", Value::DType(dtype)) if args.args.len() == 1 => {
                    let own = Tensor::from_value(args.args.remove(0))?;
                    args.args.push(Value::object(ops::to_dtype(&own, *dtype)?));
                    continue;
                }
                _ => {
                    return Err(Error::msg(format_args!(
                        "the argument `{name}` of `{}` is {}, which `{}` does not take",
                        call.target,
                        value.describe(),
                        function.name()
                    )));
                }
            }
        };
        // `None` is the default of a parameter that is left out.
        if matches!(value, Value::None)
            && param.default.as_ref().is_some_and(|d| *d != Literal::None)
        {
            continue;
        }
        let value = match value {
            // Layers over one dim have lists of one number.
            Value::List(items) if items.len() == 1 && is_number(param) => items[0].clone(),
            value => value.clone(),
        };
        match at {
            0 => args.args.push(value),
            _ => args.kwargs.push((param.name.as_ref().into(), value)),
        }
    }
    function.call(args)
}

fn is_number(param: &ParamSpec) -> bool {
    ["usize", "i64", "Int"].contains(&&*param.ty.to_string())
}
