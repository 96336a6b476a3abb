//! Whether a node of a pattern and a node of a graph do the same: op, literals, arguments in the
//! order of the signature.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::Literal;
use crate::module::attributes::Attributes;
use crate::module::call::Call;

/// Whether a node does the same as a pattern's node: a method equals its function. A method that
/// several types have equals a function only if the node says whose method it is; in a pattern it
/// stands for each of them.
pub(super) fn same_call(pattern: NodeRef<'_>, node: NodeRef<'_>) -> bool {
    match (pattern.op(), node.op()) {
        (Op::CallMethod(_), Op::CallMethod(_)) => pattern.calls_same_method(node),
        (Op::CallMethod(_), Op::CallFunction(function)) => {
            pattern.functions().as_slice().contains(function)
        }
        (op, _) => calls(op, node),
    }
}

/// Whether a node calls what an op names: a method equals its function, if only one type has it.
pub(super) fn calls(op: &Op, node: NodeRef<'_>) -> bool {
    match (op, node.op()) {
        (Op::CallFunction(function), Op::CallMethod(_)) => {
            node.functions().one() == Some(*function)
        }
        (Op::CallMethod(name), Op::CallFunction(function)) => {
            function.def().receiver.is_some() && function.name() == &**name
        }
        (a, b) => a == b,
    }
}

/// Whether two plain arguments are equal in type and value; NaN equals itself.
pub(super) fn same_literal(a: &Argument, b: &Argument) -> bool {
    match (a, b) {
        (Argument::Float(a), Argument::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// An argument of the pattern with its counterpart in the graph.
pub(super) type Pair<'p> = (&'p Argument, Cow<'p, Argument>);

/// Which literals fit a parameter of a call.
pub(super) enum Literals<'r> {
    /// Literals are equal.
    Equal,
    /// Any literal fits.
    Any,
    /// A literal fits if the predicate holds for it.
    Where(&'r (dyn Fn(&Argument) -> bool + Send + Sync)),
}

/// Pairs the arguments of a pattern's node with those of a graph's node, parameter by parameter,
/// defaults filled in. `rule` defines which literals fit a parameter; literals with a rule are
/// compared here.
///
/// # Errors
/// Returns the reason if they do not fit.
pub(super) fn pairs<'p, 'r>(
    pattern: NodeRef<'p>,
    node: NodeRef<'p>,
    attributes: &'p Attributes,
    rule: Option<&dyn Fn(&str) -> Literals<'r>>,
) -> Result<SmallVec<[Pair<'p>; 4]>, String> {
    let positional = pattern.kwargs().is_empty() && node.kwargs().is_empty();
    if rule.is_none() && positional && pattern.args().len() == node.args().len() {
        let theirs = node.args().iter().map(Cow::Borrowed);
        return Ok(pattern.args().iter().zip(theirs).collect());
    }
    let call = Call::of(node, attributes);
    let Some(params) = call.params() else {
        return by_position(pattern, node);
    };
    let ours = pattern.given(node.target(), params);
    let ours = ours.map_err(|error| error.to_string())?;
    let theirs = BoundArgs::of(node, node.target(), params);
    let theirs = theirs.map_err(|error| error.to_string())?;
    let mut pairs = SmallVec::new();
    for (ours, (param, theirs)) in ours.into_iter().zip(theirs.iter()) {
        let literals = rule.map_or(Literals::Equal, |rule| rule(&param.name));
        match literals {
            Literals::Any if theirs.as_node().is_none() => continue,
            Literals::Where(holds) if theirs.as_node().is_none() => {
                if !holds(&theirs) {
                    return Err(format!("`{}` is {}", param.name, shown(&theirs)));
                }
                continue;
            }
            _ => {}
        }
        match ours {
            Some(arg) => pairs.push((arg, theirs)),
            None if equals_default(&theirs, param.default.as_ref()) => {}
            None => {
                return Err(format!(
                    "`{}` is {}, not its default",
                    param.name,
                    shown(&theirs)
                ));
            }
        }
    }
    Ok(pairs)
}

fn equals_default(arg: &Argument, default: Option<&Literal>) -> bool {
    default.is_some_and(|default| arg.equals_literal(default))
}

/// Without a signature: pairs positions with positions, and names with names.
fn by_position<'p>(
    pattern: NodeRef<'p>,
    node: NodeRef<'p>,
) -> Result<SmallVec<[Pair<'p>; 4]>, String> {
    if pattern.args().len() != node.args().len() || pattern.kwargs().len() != node.kwargs().len() {
        return Err(format!("%{} has another number of arguments", node.name()));
    }
    let mut pairs: SmallVec<[Pair<'p>; 4]> = pattern
        .args()
        .iter()
        .zip(node.args().iter().map(Cow::Borrowed))
        .collect();
    for (name, ours) in pattern.kwargs() {
        match node.kwargs().iter().find(|(key, _)| key == name) {
            Some((_, theirs)) => pairs.push((ours, Cow::Borrowed(theirs))),
            None => return Err(format!("%{} has no `{name}`", node.name())),
        }
    }
    Ok(pairs)
}

/// An argument as a reason shows it.
pub(super) fn shown(arg: &Argument) -> String {
    match arg.as_node() {
        Some(_) => "a computed value".to_string(),
        None => arg
            .plain_value()
            .map_or_else(|| "a structure".to_string(), |v| v.to_string()),
    }
}
