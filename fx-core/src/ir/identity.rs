//! When two arguments are the same: by type and bits, so that 1, 1.0 and true differ, as do 0.0 and
//! -0.0.
//!
//! Invariant: identical arguments have equal hashes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::argument::Argument;
use super::node::NodeRef;
use super::op::Op;
use crate::value::handle::NodeId;

/// Feeds an argument to a hasher; `node` feeds in each node.
pub(crate) fn hash_argument<H: Hasher>(
    argument: &Argument,
    hasher: &mut H,
    node: &mut dyn FnMut(NodeId, &mut H),
) {
    // A number for each kind; it stays fixed when kinds are added, since users keep the hashes.
    let mut many = |hasher: &mut H, kind: u8, items: &[Argument]| {
        kind.hash(hasher);
        (items.len() as u64).hash(hasher);
        for item in items {
            hash_argument(item, hasher, node);
        }
    };
    match argument {
        Argument::Node(id) => {
            0u8.hash(hasher);
            node(*id, hasher);
        }
        Argument::None => 1u8.hash(hasher),
        Argument::Ellipsis => 2u8.hash(hasher),
        Argument::Bool(x) => (3u8, x).hash(hasher),
        Argument::Int(x) => (4u8, x).hash(hasher),
        Argument::Float(x) => (5u8, x.to_bits()).hash(hasher),
        Argument::Str(x) => (6u8, x.as_str()).hash(hasher),
        Argument::DType(x) => (7u8, x.name()).hash(hasher),
        Argument::Device(x) => (8u8, x.to_string()).hash(hasher),
        Argument::List(items) => many(hasher, 9, items),
        Argument::Tuple(items) => many(hasher, 10, items),
        Argument::Slice(parts) => many(hasher, 11, &**parts),
        Argument::Range(parts) => many(hasher, 12, &**parts),
        Argument::Dict(items) => {
            (13u8, items.len() as u64).hash(hasher);
            for (key, item) in items.iter() {
                key.hash(hasher);
                hash_argument(item, hasher, node);
            }
        }
    }
}

/// Whether two nodes do the same with the same arguments, written the same way; `same` decides
/// which nodes are the same.
pub(crate) fn is_same_call(
    old: NodeRef<'_>,
    new: NodeRef<'_>,
    same: &dyn Fn(NodeId, NodeId) -> bool,
) -> bool {
    does_same((Some(old.op()), old.args(), old.kwargs()), new, same)
}

/// An op and its arguments, positional and by name.
type Call<'c> = (Option<&'c Op>, &'c [Argument], &'c [(Arc<str>, Argument)]);

/// Same as [`is_same_call`], for a call that is no longer a node: its op and arguments.
pub(crate) fn does_same(
    old: Call<'_>,
    new: NodeRef<'_>,
    same: &dyn Fn(NodeId, NodeId) -> bool,
) -> bool {
    let (op, args, kwargs) = old;
    let mut pairs = args.iter().zip(new.args());
    op == Some(new.op())
        && args.len() == new.args().len()
        && pairs.all(|(a, b)| identical_but(a, b, same))
        && identical_named(kwargs, new.kwargs(), same)
}

/// Whether two arguments are the same; `same` decides which nodes are the same.
pub(crate) fn identical_but(
    a: &Argument,
    b: &Argument,
    same: &dyn Fn(NodeId, NodeId) -> bool,
) -> bool {
    let all = |a: &[Argument], b: &[Argument]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical_but(a, b, same))
    };
    match (a, b) {
        (Argument::Node(a), Argument::Node(b)) => same(*a, *b),
        (Argument::Float(a), Argument::Float(b)) => a.to_bits() == b.to_bits(),
        (Argument::List(a), Argument::List(b)) | (Argument::Tuple(a), Argument::Tuple(b)) => {
            all(a, b)
        }
        (Argument::Slice(a), Argument::Slice(b)) | (Argument::Range(a), Argument::Range(b)) => {
            all(&**a, &**b)
        }
        (Argument::Dict(a), Argument::Dict(b)) => identical_named(a, b, same),
        (a, b) => a == b,
    }
}

/// Whether named arguments are the same in the same order; `same` decides which nodes are the same.
pub(crate) fn identical_named(
    a: &[(Arc<str>, Argument)],
    b: &[(Arc<str>, Argument)],
    same: &dyn Fn(NodeId, NodeId) -> bool,
) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|((k, a), (l, b))| k == l && identical_but(a, b, same))
}
