//! `refusal_of`: what a call that failed is refused for. The shape rule says it, if it refuses the
//! arguments.
//!
//! Invariant: it is asked only behind an error, so that a call that succeeds pays nothing for it; an
//! error whose kind programs can match on stays.

use super::env::ShapeEnv;
use super::rule::{RuleCall, ShapeRule, rule_of};
use crate::error::{Error, ErrorKind};
use crate::ir::function::Function;
use crate::ir::value_meta::ValueMeta;
use crate::value::value::Value;

/// The error of a call that failed: that of the function's shape rule if the rule refuses the
/// arguments, one for each parameter, and else the error itself. Without the feature `registry` no
/// rule is known.
#[cold]
#[inline(never)]
pub(crate) fn refusal_of(function: Function, args: &[Value], error: Error) -> Error {
    let is_text = matches!(error.kind(), ErrorKind::Message(_) | ErrorKind::Kernel(_));
    if !cfg!(feature = "registry") || !is_text {
        return error;
    }
    let Ok(Some(ShapeRule(rule))) = rule_of(function) else {
        return error;
    };
    // What a rule says of a value that only a run knows is said by the trace.
    if args.iter().any(Value::holds_no_data) {
        return error;
    }
    let args: Vec<ValueMeta> = args.iter().map(ValueMeta::of_argument).collect();
    let mut env = ShapeEnv::default();
    rule(&mut RuleCall::new(function, &args, &mut env))
        .err()
        .unwrap_or(error)
}
