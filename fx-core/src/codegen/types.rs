//! The types of a graph's values: what functions declare, and which values are scalars, which Rust copies.

use rustc_hash::FxHashMap;

use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::value::handle::NodeId;
use crate::value::operator::Operator;

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scalar {
    Bool,
    Int,
    Float,
}

impl Scalar {
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "Bool",
            Scalar::Int => "Int",
            Scalar::Float => "Float",
        }
    }

    fn named(ty: &str) -> Option<Self> {
        Some(match ty {
            "Bool" | "bool" => Scalar::Bool,
            "Int" | "i64" | "usize" => Scalar::Int,
            "Float" | "f64" => Scalar::Float,
            _ => return None,
        })
    }
}

/// The scalars among a graph's values.
pub(super) fn scalars(graph: &Graph) -> FxHashMap<NodeId, Scalar> {
    let mut found = FxHashMap::default();
    for node in graph.nodes() {
        let declared = returned_type(node).and_then(|ty| Scalar::named(&ty));
        if let Some(scalar) = declared.or_else(|| computed(node, &found)) {
            found.insert(node.id(), scalar);
        }
    }
    found
}

fn computed(node: NodeRef<'_>, known: &FxHashMap<NodeId, Scalar>) -> Option<Scalar> {
    let Op::CallFunction(function) = node.op() else {
        return None;
    };
    let op = function.def().operator?;
    let operands = node
        .args()
        .iter()
        .map(|arg| match arg {
            Argument::Node(id) => known.get(id).copied(),
            Argument::Bool(_) => Some(Scalar::Bool),
            Argument::Int(_) => Some(Scalar::Int),
            Argument::Float(_) => Some(Scalar::Float),
            _ => None,
        })
        .collect::<Option<Vec<Scalar>>>()?;
    let widest = operands.into_iter().max()?;
    Some(match op {
        Operator::Eq | Operator::Ne | Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge => {
            Scalar::Bool
        }
        Operator::Truediv => Scalar::Float,
        Operator::Getitem | Operator::Matmul => return None,
        _ => widest,
    })
}

/// The declared result of a function or method node.
pub(super) fn returned_type(node: NodeRef<'_>) -> Option<String> {
    let function = match node.op() {
        Op::CallFunction(function) => *function,
        Op::CallMethod(method) => *registry::methods(method).first()?,
        Op::Placeholder(_) => {
            return node
                .type_expr()
                .map(|t| t.trim_start_matches('&').to_string());
        }
        _ => return None,
    };
    let declared = function.def().returns;
    (!declared.is_empty()).then(|| declared.to_string())
}
