//! What a function gives without data: known numbers are computed, everything else is by its rule.

use std::cell::RefCell;
use std::sync::Arc;

use super::env::ShapeEnv;
use super::rule::{RuleCall, ShapeRule, rule_of};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::function::Function;
use crate::ir::operator;
use crate::ir::param_type::{ParamType, ScalarType};
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
use crate::submit::REGISTRY_HINT;
use crate::value::value::Value;

/// What a function gives for arguments, one for each parameter.
pub(crate) fn result_of(
    function: Function,
    args: &[ValueMeta],
    env: &mut ShapeEnv,
) -> Result<ValueMeta> {
    let scalar = scalar_result(function);
    if (scalar.is_some() || function.def().operator.is_some()) && function.is_pure() {
        // What is computed of known numbers is known.
        let known: Option<Vec<Value>> = args.iter().map(ValueMeta::known).collect();
        if let Some(known) = known {
            let lent: Vec<&Value> = known.iter().collect();
            let mut out = Value::None;
            function.run(&lent, &mut out)?;
            return Ok(ValueMeta::of_argument(&out));
        }
    }
    let is_unranked = |arg: &ValueMeta| match function == operator::getitem {
        // An item of a tuple is what it is.
        true => arg.items().is_none() && arg.has_unranked(),
        false => arg.has_unranked(),
    };
    let has_unranked = args.iter().any(is_unranked);
    if let Some(ShapeRule(rule)) = rule_of(function)? {
        let before = has_unranked.then(|| env.clone());
        let mut call = RuleCall::new(function, args, env);
        let given = rule(&mut call);
        let counts = given.is_ok() && call.knows_unranked;
        match (given, before) {
            // A rule that asks for the number of dims says nothing.
            (_, Some(before)) if !counts => *env = before,
            (given, _) => {
                let mut value = given?;
                complete(&mut value, args);
                env.are_sizes(&value)?;
                return Ok(value);
            }
        }
    }
    if has_unranked && scalar.is_none() {
        return Ok(of_some_rank(function, args, env));
    }
    match scalar {
        Some(ScalarType::Int) => Ok(ValueMeta::Int(env.fresh(i64::MIN, None)?)),
        Some(ScalarType::Bool) => Ok(ValueMeta::Bool(None)),
        Some(_) => Ok(ValueMeta::Float(None)),
        None if is_nothing(function) => Ok(ValueMeta::none()),
        None => Err(ErrorKind::Unregistered {
            name: function.path().to_string(),
            problem: format!(
                "`{}` has no shape rule, and its body reads elements: give it one with `#[op(rule = ..)]` or `function_table! {{ ShapeRule {{ .. }} }}`, or run the graph on a sample (`propagate_shapes`){REGISTRY_HINT}",
                function.path()
            ),
        }
        .into()),
    }
}

/// What a function gives where a run decides the number of dims of arguments: as for the first number of them that its
/// rule takes, without the sizes.
fn of_some_rank(function: Function, args: &[ValueMeta], env: &ShapeEnv) -> ValueMeta {
    let given = |rank: usize| {
        let mut env = env.clone();
        let ranked = args
            .iter()
            .map(|arg| arg.of_rank(rank, &mut || env.fresh(1, None)));
        let ranked: Vec<ValueMeta> = ranked.collect::<Result<_>>()?;
        let ShapeRule(rule) = rule_of(function)?.ok_or_else(|| Error::msg("there is no rule"))?;
        rule(&mut RuleCall::new(function, &ranked, &mut env))
    };
    let found = RANKS.into_iter().find_map(|rank| given(rank).ok());
    found.map_or(ValueMeta::Unranked(None), |found| found.unranked())
}

/// Numbers of dims with which a rule is asked what it gives where a run decides them.
const RANKS: [usize; 6] = [3, 2, 4, 1, 5, 0];

/// Whether a rule says what a function gives for these arguments, or the numbers are computed.
pub(crate) fn is_ruled(function: Function, args: &[ValueMeta]) -> Result<bool> {
    let is_of_numbers = function.def().operator.is_some();
    if scalar_result(function).is_some()
        || is_nothing(function)
        || is_of_numbers && args.iter().all(|arg| arg.known().is_some())
    {
        return Ok(true);
    }
    Ok(rule_of(function)?.is_some())
}

/// Whether an error says that a function has no rule.
pub(crate) fn lacks_rule(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unregistered { .. })
}

thread_local! {
    /// The symbols of the fake tensors that no trace holds.
    static SYMBOLS: RefCell<ShapeEnv> = RefCell::default();
    /// What an inference assumes, while it runs a layer on fake tensors.
    static KEPT: RefCell<Option<ShapeEnv>> = const { RefCell::new(None) };
}

/// Runs `body`, in which the claims about fake tensors are those of an inference.
pub(crate) fn keeping<R>(env: &mut ShapeEnv, body: impl FnOnce() -> R) -> R {
    struct Restore<'e>(&'e mut ShapeEnv, Option<ShapeEnv>);
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            if let Some(env) = KEPT.replace(self.1.take()) {
                *self.0 = env;
            }
        }
    }
    let former = KEPT.replace(Some(std::mem::take(env)));
    let _restore = Restore(env, former);
    body()
}

/// What a function gives for values of which some are fake, outside of traces. A claim that no range
/// of a symbol decides is taken to hold, and nothing keeps it.
pub(crate) fn fake_result(function: Function, args: &[Value]) -> Result<Value> {
    let args: Vec<ValueMeta> = args.iter().map(ValueMeta::of_argument).collect();
    if let Some(mut env) = KEPT.take() {
        let given = result_of(function, &args, &mut env);
        KEPT.set(Some(env));
        return given?.to_value();
    }
    let mut env = SYMBOLS.with_borrow_mut(|symbols| {
        args.iter().for_each(|arg| symbols.declare_value(arg));
        symbols.clone()
    });
    let given = result_of(function, &args, &mut env)?;
    SYMBOLS.with_borrow_mut(|symbols| symbols.learn(&env));
    given.to_value()
}

/// The kind of number that a function gives.
fn scalar_result(function: Function) -> Option<ScalarType> {
    match function.def().result {
        Some(ParamType::Scalar(scalar)) => Some(*scalar),
        _ => None,
    }
}

fn is_nothing(function: Function) -> bool {
    function.def().returns == "()"
}

/// Adds what tensors take from the arguments: the device, and whether gradients are computed.
fn complete(value: &mut ValueMeta, args: &[ValueMeta]) {
    match value {
        ValueMeta::Single(meta) => {
            let mut tensors = args.iter().filter_map(ValueMeta::as_tensor);
            let device = tensors.clone().find_map(|arg| arg.device);
            let grad = tensors.any(|arg| arg.requires_grad == Some(true));
            let wanted = meta.device.is_none() && device.is_some();
            if wanted || (grad && meta.requires_grad.is_none()) {
                let meta: &mut TensorMeta = Arc::make_mut(meta);
                meta.device = meta.device.or(device);
                let is_float = meta.dtype.is_some_and(|dtype| dtype.is_floating_point());
                meta.requires_grad = meta.requires_grad.or(Some(grad && is_float));
            }
        }
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            items.iter_mut().for_each(|item| complete(item, args));
        }
        _ => {}
    }
}
