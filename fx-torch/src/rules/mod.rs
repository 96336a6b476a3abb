//! What each operator of PyTorch is in fx: the same function by its parameters, or a composition of fx's functions.
//!
//! Invariant: an operator has one entry.

mod aliases;
mod attention;
mod complex;
mod create;
mod elements;
mod entry;
mod gradients;
mod identities;
mod images;
mod index;
mod layers;
mod linalg;
mod losses;
mod native;
mod numbers;
mod reduce;
mod regions;
mod shape;
mod sizes;
pub(crate) mod slices;
pub(crate) mod training;
mod windows;

use std::sync::OnceLock;

use fx_nn::prelude::*;
use fx_nn::tensor::Number;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

pub(crate) use self::complex::is_complex;
use self::entry::{Entry, How, same_function};
pub(crate) use self::entry::{is_without_meaning, undone};
use crate::call::{Call, element_type};
use crate::operator;

fn table() -> &'static FxHashMap<&'static str, How> {
    static TABLE: OnceLock<FxHashMap<&'static str, How>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families: [&[Entry]; 28] = [
            attention::RULES,
            complex::RULES,
            create::RULES,
            create::SAME,
            elements::RULES,
            elements::SAME,
            gradients::RULES,
            images::RULES,
            images::SAME,
            index::RULES,
            index::SAME,
            layers::RULES,
            layers::SAME,
            linalg::RULES,
            linalg::SAME,
            losses::RULES,
            native::RULES,
            numbers::RULES,
            reduce::RULES,
            reduce::SAME,
            regions::RULES,
            shape::RULES,
            shape::SAME,
            sizes::RULES,
            slices::RULES,
            training::RULES,
            identities::RULES,
            windows::RULES,
        ];
        let mut table: FxHashMap<&str, How> = families.into_iter().flatten().copied().collect();
        for (other, name) in aliases::ALIASES {
            table.insert(other, table[name]);
        }
        table
    })
}

/// The operators that are known, by name; an overload is named where it decides.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = table().keys().copied().collect();
    names.extend(
        operator::registered()
            .into_iter()
            .flat_map(|all| all.keys()),
    );
    names.sort_unstable();
    names.dedup();
    names
}

/// The operator without where it is defined, and without its overload.
pub(crate) fn short(target: &str) -> (&str, &str) {
    let target = target.strip_prefix("torch.ops.").unwrap_or(target);
    let operator = target
        .rsplit_once('.')
        .filter(|(operator, _)| operator.contains('.'));
    (target, operator.map_or(target, |(operator, _)| operator))
}

fn find(target: &str) -> Option<How> {
    let (full, operator) = short(target);
    let theirs = |name: &str| {
        let (function, operator) = operator::registered().ok()?.get(name)?;
        Some(How::Own(*function, operator.names()))
    };
    let ours = |name: &str| table().get(name).copied();
    let names = [full, operator].into_iter();
    names
        .clone()
        .find_map(theirs)
        .or_else(|| names.clone().find_map(ours))
}

/// Whether an operator is known.
pub(crate) fn is_known(target: &str) -> bool {
    find(target).is_some() || in_place(target).is_some()
}

/// Whether an operator asserts something of a tensor, which is the contract of the inputs.
pub(crate) fn asserts(target: &str) -> bool {
    short(target).1 == "aten._assert_tensor_metadata"
}

/// What an operator gives.
///
/// # Errors
/// Returns an error if it is not known, or as it does.
pub(crate) fn run(call: &Call<'_>) -> Result<Value> {
    if let Some(given) = complex::run(short(call.target).1, call, of_real) {
        return given;
    }
    of_real(call)
}

fn of_real(call: &Call<'_>) -> Result<Value> {
    match find(call.target) {
        Some(How::By(rule)) => rule(call),
        Some(How::Same(function, renamed)) => same_function(function(), renamed, call),
        Some(How::Own(function, renamed)) => same_function(function, renamed, call),
        None => Err(Error::msg(format_args!(
            "fx has no operator `{}`: register a function for it (`fx_torch::Operator`), or write its part of the model \
             with other functions",
            call.target
        ))),
    }
}

/// What an operator that writes its first argument makes of it.
pub(crate) fn in_place(target: &str) -> Option<impl Fn(&Call<'_>) -> Result<Tensor>> {
    let (full, operator) = short(target);
    let overload = full.strip_prefix(operator).unwrap_or_default();
    // `a |= b` is `__ior__`.
    let plain = operator
        .strip_prefix("aten.__i")
        .map(|name| format!("aten.__{name}"));
    let base = match &plain {
        Some(plain) => plain,
        None => operator
            .strip_suffix('_')
            .filter(|base| !base.ends_with('_'))?,
    };
    let (full, base) = (format!("torch.ops.{base}{overload}"), base.to_string());
    let known = ["aten.fill", "aten.zero", "aten.copy"].contains(&&*base) || find(&full).is_some();
    known.then_some(move |call: &Call<'_>| {
        let own = call.own()?;
        let dtype = call.dtype(0)?;
        let made: Tensor = match &*base {
            "aten.fill" => match Number::from_value(call.value("value")?.clone()) {
                Ok(number) => ops::full_like(&own, number, None)?,
                Err(_) => ops::expand(&call.of::<Tensor>("value")?, own.shape()?)?,
            },
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
        // An operator may give another type than it writes: a comparison truth values.
        let is_same = element_type(&made.clone().into_value()) == Some(dtype);
        match is_same {
            true => Ok(made),
            false => ops::to_dtype(&made, dtype),
        }
    })
}
