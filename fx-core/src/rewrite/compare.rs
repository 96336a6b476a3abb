//! When a node of a pattern and a node of a graph do the same: op, literals, arguments in the order of the signature.

use smallvec::SmallVec;

use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::ir::signature::{Literal, ParamSpec};
use crate::module::attributes::Attributes;

/// Whether two ops are one: a method is its function.
pub(super) fn same_op(pattern: &Op, op: &Op) -> bool {
    match (pattern, op) {
        (Op::CallFunction(function), Op::CallMethod(name))
        | (Op::CallMethod(name), Op::CallFunction(function)) => {
            registry::methods(name).contains(function)
        }
        (a, b) => a == b,
    }
}

/// The function that an op calls, where it is one: of a method the first type's.
pub(super) fn function_of(op: &Op) -> Option<Function> {
    match op {
        Op::CallFunction(function) => Some(*function),
        Op::CallMethod(name) => registry::methods(name).first().copied(),
        _ => None,
    }
}

/// Whether the first two arguments of a call may change places.
pub(super) fn is_commutative(op: &Op) -> bool {
    function_of(op).is_some_and(|function| function.def().commutative)
}

/// The parameters that a node's arguments are for, where they are known.
fn params_of<'a>(op: &Op, attributes: &'a Attributes) -> Option<&'a [ParamSpec]> {
    match op {
        Op::CallModule(path) => attributes.modules.get(path).map(|module| module.params()),
        op => function_of(op).map(Function::params),
    }
}

/// Whether two plain arguments are equal in type and value; a nan equals itself.
pub(super) fn same_literal(a: &Argument, b: &Argument) -> bool {
    match (a, b) {
        (Argument::Float(a), Argument::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// An argument of the pattern beside what the graph has in its place.
pub(super) type Pair<'p> = (&'p Argument, Argument);

/// What stands beside a parameter of a call.
pub(super) enum Literals<'r> {
    /// Literals are equal.
    Equal,
    /// Any literal fits.
    Any,
    /// A literal fits that the predicate holds for.
    Where(&'r (dyn Fn(&Argument) -> bool + Send + Sync)),
}

/// Pairs the arguments of a pattern's node with those of a graph's node, parameter by parameter, defaults filled in.
/// `rule` says which literals fit a parameter; those that a rule is for are compared here.
///
/// # Errors
/// Why they do not fit.
pub(super) fn pairs<'p, 'r>(
    pattern: NodeRef<'p>,
    node: NodeRef<'_>,
    attributes: &Attributes,
    rule: Option<&dyn Fn(&str) -> Literals<'r>>,
) -> Result<SmallVec<[Pair<'p>; 4]>, String> {
    let positional = pattern.kwargs().is_empty() && node.kwargs().is_empty();
    if rule.is_none() && positional && pattern.args().len() == node.args().len() {
        return Ok(pattern
            .args()
            .iter()
            .zip(node.args().iter().cloned())
            .collect());
    }
    let Some(params) = params_of(node.op(), attributes) else {
        return by_position(pattern, node);
    };
    let ours = bound(pattern, params)?;
    let theirs = bound(node, params)?;
    let mut pairs = SmallVec::new();
    for ((param, ours), theirs) in params.iter().zip(ours).zip(theirs) {
        let literals = rule.map_or(Literals::Equal, |rule| rule(&param.name));
        let default = || param.default.as_ref().map(Argument::from);
        let theirs = match theirs {
            Some(arg) => arg.clone(),
            None => match default() {
                Some(default) => default,
                None => continue,
            },
        };
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

/// A node's arguments by parameter; `None` where a default stands.
fn bound<'a>(
    node: NodeRef<'a>,
    params: &[ParamSpec],
) -> Result<SmallVec<[Option<&'a Argument>; 8]>, String> {
    if node.args().len() > params.len() {
        return Err(format!(
            "%{} has more arguments than parameters",
            node.name()
        ));
    }
    let mut bound: SmallVec<[Option<&Argument>; 8]> = node.args().iter().map(Some).collect();
    bound.resize(params.len(), None);
    for (name, arg) in node.kwargs() {
        let place = params.iter().position(|param| param.name == **name);
        match place.map(|at| &mut bound[at]) {
            Some(place @ None) => *place = Some(arg),
            _ => {
                return Err(format!(
                    "%{} has no parameter `{name}` to give",
                    node.name()
                ));
            }
        }
    }
    Ok(bound)
}

/// Without a signature: positions beside positions, names beside names.
fn by_position<'p>(
    pattern: NodeRef<'p>,
    node: NodeRef<'_>,
) -> Result<SmallVec<[Pair<'p>; 4]>, String> {
    if pattern.args().len() != node.args().len() || pattern.kwargs().len() != node.kwargs().len() {
        return Err(format!("%{} has another number of arguments", node.name()));
    }
    let mut pairs: SmallVec<[Pair<'p>; 4]> = pattern
        .args()
        .iter()
        .zip(node.args().iter().cloned())
        .collect();
    for (name, ours) in pattern.kwargs() {
        match node.kwargs().iter().find(|(key, _)| key == name) {
            Some((_, theirs)) => pairs.push((ours, theirs.clone())),
            None => return Err(format!("%{} has no `{name}`", node.name())),
        }
    }
    Ok(pairs)
}

/// An argument in a reason.
pub(super) fn shown(arg: &Argument) -> String {
    match arg.as_node() {
        Some(_) => "a computed value".to_string(),
        None => arg
            .plain_value()
            .map_or_else(|| "a structure".to_string(), |v| v.to_string()),
    }
}
