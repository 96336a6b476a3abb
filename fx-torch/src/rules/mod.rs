//! What each operator of PyTorch is in fx: the same function by its parameters, or a composition of fx's functions.
//!
//! Invariant: an argument that has no counterpart is refused, and never left out.

mod attention;
mod create;
mod elements;
mod images;
mod index;
mod layers;
mod reduce;
mod shape;
mod sizes;
pub(crate) mod views;

use std::sync::OnceLock;

use fx_nn::ir::{Function, Literal};
use fx_nn::prelude::*;
use fx_nn::tensor::Number;
use fx_nn::trace::CallArgs;
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

use crate::call::Call;

/// What an operator is.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A function of fx whose parameters have the operator's names, but for those that are listed.
    Same(fn() -> Function, &'static [(&'static str, &'static str)]),
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

/// Entries of operators that are functions of fx: `"aten.relu" => relu`, with other names of parameters behind it.
macro_rules! same {
    ($($name:literal => $function:path $([$($theirs:literal => $ours:literal),*])?),* $(,)?) => {
        &[$(($name, $crate::rules::How::Same(|| fx_nn::prelude::function!($function), &[$($(($theirs, $ours)),*)?]))),*]
    };
}
use same;

/// Entries of operators that are compositions.
macro_rules! by {
    ($($name:literal => $rule:expr),* $(,)?) => {
        &[$(($name, $crate::rules::How::By($rule))),*]
    };
}
use by;

fn table() -> &'static FxHashMap<&'static str, How> {
    static TABLE: OnceLock<FxHashMap<&'static str, How>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families: [&[Entry]; 17] = [
            attention::RULES,
            create::RULES,
            create::SAME,
            elements::RULES,
            elements::SAME,
            images::RULES,
            images::SAME,
            index::RULES,
            index::SAME,
            layers::RULES,
            layers::SAME,
            reduce::RULES,
            reduce::SAME,
            shape::RULES,
            shape::SAME,
            sizes::RULES,
            views::RULES,
        ];
        families.into_iter().flatten().copied().collect()
    })
}

/// The operators that are known, by name; an overload is named where it decides.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = table().keys().copied().collect();
    names.sort_unstable();
    names
}

/// The operator without where it is defined, and without its overload.
fn short(target: &str) -> (&str, &str) {
    let target = target.strip_prefix("torch.ops.").unwrap_or(target);
    let operator = target
        .rsplit_once('.')
        .filter(|(operator, _)| operator.contains('.'));
    (target, operator.map_or(target, |(operator, _)| operator))
}

fn find(target: &str) -> Option<How> {
    let (full, operator) = short(target);
    table().get(full).or_else(|| table().get(operator)).copied()
}

/// Whether an operator is known.
pub(crate) fn is_known(target: &str) -> bool {
    find(target).is_some() || in_place(target).is_some()
}

/// What an operator gives.
///
/// # Errors
/// Returns an error if it is not known, or as it does.
pub(crate) fn run(call: &Call<'_>) -> Result<Value> {
    match find(call.target) {
        Some(How::By(rule)) => rule(call),
        Some(How::Same(function, renamed)) => same_function(function(), renamed, call),
        None => Err(Error::msg(format_args!(
            "fx has no rule for `{}`: write its part of the model with other functions",
            call.target
        ))),
    }
}

/// What an operator that writes its first argument makes of it.
pub(crate) fn in_place(target: &str) -> Option<impl Fn(&Call<'_>) -> Result<Tensor>> {
    let (full, operator) = short(target);
    let base = operator
        .strip_suffix('_')
        .filter(|base| !base.ends_with('_'))?;
    let overload = full.strip_prefix(operator).unwrap_or_default();
    let (full, base) = (format!("torch.ops.{base}{overload}"), base.to_string());
    let known = ["aten.fill", "aten.zero", "aten.copy"].contains(&&*base) || find(&full).is_some();
    known.then_some(move |call: &Call<'_>| {
        let own = call.own()?;
        let dtype = call.dtype(0)?;
        let made: Tensor = match &*base {
            "aten.fill" => ops::full_like(&own, call.of::<Number>("value")?, None)?,
            "aten.zero" => ops::zeros_like(&own, None)?,
            "aten.copy" => ops::expand(&call.of::<Tensor>("src")?, own.shape()?)?,
            _ => {
                let call = Call {
                    target: &full,
                    args: call.args.clone(),
                    dtypes: call.dtypes.clone(),
                };
                Tensor::from_value(run(&call)?)?
            }
        };
        // A product of halves and a number stays one; other operators give another type than they write.
        let is_same = Tensor::dtype(&made).ok() == Some(dtype)
            || call.dtypes.iter().flatten().all(|own| *own == dtype);
        match is_same {
            true => Ok(made),
            false => ops::to_dtype(&made, dtype),
        }
    })
}

/// How many dims a tensor has.
///
/// # Errors
/// Returns an error if a run decides that.
pub(crate) fn rank(x: &Tensor) -> Result<i64> {
    match x.ndim()? {
        Int::Concrete(rank) => Ok(rank),
        Int::Proxy(_) => Err(Error::msg("a run decides how many dims the tensor has")),
    }
}

/// A call of a function by its parameters' names.
fn same_function(function: Function, renamed: &[(&str, &str)], call: &Call<'_>) -> Result<Value> {
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
            let says_nothing = WITHOUT_MEANING.contains(&name) || matches!(value, Value::None);
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

fn is_number(param: &fx_nn::ir::ParamSpec) -> bool {
    ["usize", "i64", "Int"].contains(&&*param.ty.to_string())
}
