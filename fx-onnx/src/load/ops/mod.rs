//! What each operator of ONNX is in fx, a family a file.
//!
//! Invariant: a rule gives ONNX's numbers, or an error that says what fx does not have.

mod attention;
mod control;
mod create;
mod math;
mod nn;
mod picks;
mod quant;
mod reduce;
mod resize;
mod sequence;
mod shape;
mod windows;

use super::node::{Given, NodeCx};

/// What reads a node.
pub(super) type Rule = fn(&mut NodeCx<'_>) -> Given;

/// The rule of an operator.
pub(super) fn rule(domain: &str, op: &str) -> Option<Rule> {
    if !domain.is_empty() {
        return None;
    }
    let families = [
        math::rule,
        reduce::rule,
        shape::rule,
        picks::rule,
        nn::rule,
        windows::rule,
        resize::rule,
        create::rule,
        control::rule,
        sequence::rule,
        quant::rule,
        attention::rule,
    ];
    families.iter().find_map(|family| family(op))
}
