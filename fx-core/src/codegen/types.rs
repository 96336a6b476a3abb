//! The Rust types of a graph's values: what functions, methods and modules declare, and what operators make of it.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operators;
use crate::ir::rust_type::RustType;
use crate::ir::signature::ParamSpec;
use crate::module::attributes::Attributes;
use crate::value::data::tensor_types;
use crate::value::operator::Operator;
use crate::value::value::Value;

/// A scalar type; the order is the one in which operators widen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scalar {
    Bool,
    Int,
    Float,
}

/// A type, as far as generated code has to know it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ty {
    /// Copied, never lent.
    Scalar(Scalar),
    Tuple(Arc<[Ty]>),
    /// A `List` of values.
    List(Arc<Ty>),
    /// A `Vec`, an array or a slice.
    Sequence(Arc<Ty>),
    /// A map by names.
    Map(Arc<Ty>),
    /// Any other, as text.
    Named(Arc<str>),
}

impl Ty {
    /// Reads a type's text; references are what they refer to. Nothing where it is no type.
    pub fn parse(text: &str) -> Option<Ty> {
        RustType::parse(text).ok().map(|ty| Ty::of(&ty))
    }

    /// What a type is here.
    pub fn of(ty: &RustType) -> Ty {
        let ty = ty.referred();
        let inner = |ty: &RustType| Arc::new(Ty::of(ty));
        let is_one = matches!(ty, RustType::Path(path) if path.segments.len() == 1);
        match (ty, ty.last()) {
            (RustType::Tuple(parts), _) => Ty::Tuple(parts.iter().map(Ty::of).collect()),
            (RustType::Slice(item) | RustType::Array(item, _), _) => Ty::Sequence(inner(item)),
            (_, Some(("Bool" | "bool", _))) if is_one => Ty::Scalar(Scalar::Bool),
            (_, Some(("Int" | "i64" | "usize", _))) if is_one => Ty::Scalar(Scalar::Int),
            (_, Some(("Float" | "f64", _))) if is_one => Ty::Scalar(Scalar::Float),
            (_, Some((name, parts))) => match (name, parts.as_slice()) {
                ("List", [item]) => Ty::List(inner(item)),
                ("Vec", [item]) => Ty::Sequence(inner(item)),
                (name, [_, value]) if name.ends_with("Map") => Ty::Map(inner(value)),
                _ => Ty::Named(ty.to_string().into()),
            },
            (ty, None) => Ty::Named(ty.to_string().into()),
        }
    }

    /// The type as Rust, of a value that is owned.
    pub fn text(&self) -> String {
        match self {
            Ty::Scalar(Scalar::Bool) => "Bool".to_string(),
            Ty::Scalar(Scalar::Int) => "Int".to_string(),
            Ty::Scalar(Scalar::Float) => "Float".to_string(),
            Ty::Tuple(parts) => tuple(&parts.iter().map(Ty::text).collect::<Vec<_>>()),
            Ty::List(item) => format!("List<{}>", item.text()),
            Ty::Sequence(item) => format!("Vec<{}>", item.text()),
            Ty::Map(value) => format!("IndexMap<String, {}>", value.text()),
            Ty::Named(text) => text.to_string(),
        }
    }

    pub fn is_scalar(&self) -> bool {
        matches!(self, Ty::Scalar(_))
    }

    /// Whether it is a struct of somebody's: no tensor, and nothing that may be one.
    pub fn is_struct(&self) -> bool {
        match self {
            Ty::Named(name) => !is_tensor(name) && **name != *"Value",
            _ => false,
        }
    }
}

/// Whether a type's text is a tensor's.
pub(super) fn is_tensor(name: &str) -> bool {
    name == "Tensor"
        || tensor_types().any(|path| path == name || path.rsplit("::").next() == Some(name))
}

/// What is inside of an optional type.
pub(super) fn optional(ty: &str) -> Option<&str> {
    ty.strip_prefix("Option<")?.strip_suffix('>')
}

/// A tuple of what is written already, types or values.
pub(super) fn tuple(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

/// The types of a graph's values.
pub(super) struct Types {
    /// By the nodes' indices.
    of: Vec<Ty>,
    /// What texts are read as.
    read: FxHashMap<String, Ty>,
    tensor: Ty,
}

impl Types {
    /// `results` has what the graph modules give that are called, by path.
    pub fn new(graph: &Graph, attributes: &Attributes, results: &FxHashMap<&str, String>) -> Self {
        let tensor = Ty::Named("Tensor".into());
        let mut types = Types {
            of: vec![tensor.clone(); graph.index_bound()],
            read: FxHashMap::default(),
            tensor,
        };
        for node in graph.nodes() {
            let ty = types.node(node, attributes, results);
            types.of[node.id().index as usize] = ty;
        }
        types
    }

    pub fn of(&self, node: NodeRef<'_>) -> &Ty {
        &self.of[node.id().index as usize]
    }

    /// What a type's text says; an empty one that it is a tensor.
    fn read(&mut self, text: &str) -> Ty {
        if text.is_empty() || text == "Tensor" {
            return self.tensor.clone();
        }
        if let Some(known) = self.read.get(text) {
            return known.clone();
        }
        let ty = Ty::parse(text).unwrap_or_else(|| self.tensor.clone());
        self.read.insert(text.to_string(), ty.clone());
        ty
    }

    fn node(
        &mut self,
        node: NodeRef<'_>,
        attributes: &Attributes,
        results: &FxHashMap<&str, String>,
    ) -> Ty {
        match node.op() {
            Op::Placeholder(_) => match node.type_expr() {
                Some(ty) => self.read(optional(ty).unwrap_or(ty)),
                None => self.tensor.clone(),
            },
            Op::GetAttr(path) => match attributes.tensors.get(path) {
                Some((_, Value::Bool(_))) => Ty::Scalar(Scalar::Bool),
                Some((_, Value::Int(_))) => Ty::Scalar(Scalar::Int),
                Some((_, Value::Float(_))) => Ty::Scalar(Scalar::Float),
                _ => self.tensor.clone(),
            },
            Op::CallModule(path) => match attributes.modules.get(path) {
                Some(module) => match results.get(&**path) {
                    Some(result) => self.read(result),
                    None => self.read(module.returns()),
                },
                None => self.tensor.clone(),
            },
            Op::CallFunction(function) => match function.def().operator {
                Some(op) => self.operator(op, &operands(*function, node)),
                None => self.function(*function, node),
            },
            Op::CallMethod(_) => match node.functions().one() {
                Some(method) => self.function(method, node),
                None => self.tensor.clone(),
            },
            Op::Output => self.tensor.clone(),
        }
    }

    fn function(&mut self, function: Function, node: NodeRef<'_>) -> Ty {
        if function == operators::getattr
            && let Some(Argument::Str(name)) = operands(function, node).get(1)
        {
            return match name.as_str() {
                "shape" => Ty::List(Arc::new(Ty::Scalar(Scalar::Int))),
                "ndim" => Ty::Scalar(Scalar::Int),
                _ => Ty::Named("Value".into()),
            };
        }
        if let Some(written) = function.def().written {
            let given = given(function, node);
            if let Some(returns) = written(&given).and_then(|written| written.returns) {
                return self.read(returns);
            }
        }
        self.read(function.def().returns)
    }

    fn argument(&self, argument: &Argument) -> Option<Ty> {
        Some(match argument {
            Argument::Node(id) => self.of.get(id.index as usize)?.clone(),
            Argument::Bool(_) => Ty::Scalar(Scalar::Bool),
            Argument::Int(_) => Ty::Scalar(Scalar::Int),
            Argument::Float(_) => Ty::Scalar(Scalar::Float),
            _ => return None,
        })
    }

    fn operator(&self, op: Operator, args: &[Argument]) -> Ty {
        let operands: Option<Vec<Ty>> = args.iter().map(|arg| self.argument(arg)).collect();
        match op {
            Operator::Getitem => {
                let of = args.first().and_then(|of| self.argument(of));
                let part = match (of, args.get(1)) {
                    (Some(list @ Ty::List(_)), Some(Argument::Slice(_))) => Some(list),
                    (Some(Ty::Tuple(parts)), Some(Argument::Int(i))) => {
                        usize::try_from(*i).ok().and_then(|i| parts.get(i).cloned())
                    }
                    (Some(Ty::List(item) | Ty::Sequence(item) | Ty::Map(item)), _) => {
                        Some((*item).clone())
                    }
                    // What its fields are is not known.
                    (Some(ty), _) if ty.is_struct() => Some(self.tensor.clone()),
                    _ => None,
                };
                let of = || args.first().and_then(|of| self.argument(of));
                return part.or_else(of).unwrap_or_else(|| self.tensor.clone());
            }
            Operator::Add => {
                let first = args.first().and_then(|of| self.argument(of));
                if let Some(list @ Ty::List(_)) = first {
                    return list;
                }
            }
            _ => {}
        }
        let object = args
            .iter()
            .filter_map(|arg| self.argument(arg))
            .find(|ty| matches!(ty, Ty::Named(_)));
        if let Some(object) = object {
            return object;
        }
        let widest = operands.and_then(|operands| {
            let scalars = operands.iter().map(|ty| match ty {
                Ty::Scalar(scalar) => Some(*scalar),
                _ => None,
            });
            scalars.collect::<Option<Vec<_>>>()?.into_iter().max()
        });
        match (widest, op) {
            (None, _) | (_, Operator::Matmul) => self.tensor.clone(),
            (
                Some(_),
                Operator::Eq
                | Operator::Ne
                | Operator::Lt
                | Operator::Le
                | Operator::Gt
                | Operator::Ge,
            ) => Ty::Scalar(Scalar::Bool),
            (Some(_), Operator::Truediv) => Ty::Scalar(Scalar::Float),
            (Some(widest), _) => Ty::Scalar(widest),
        }
    }
}

/// A call's arguments in the order of the signature, defaults filled in; as they are where they do not fit.
pub(super) fn given(function: Function, node: NodeRef<'_>) -> Vec<Argument> {
    bound_arguments(function.path(), function.params(), node)
        .unwrap_or_else(|| node.args().to_vec())
}

/// An operator's operands, also those that are given by name, in the order of its signature.
pub(super) fn operands(function: Function, node: NodeRef<'_>) -> Cow<'_, [Argument]> {
    if node.kwargs().is_empty() {
        return Cow::Borrowed(node.args());
    }
    let bound = bound_arguments(function.path(), function.params(), node);
    Cow::Owned(bound.unwrap_or_else(|| {
        let kwargs = node.kwargs().iter().map(|(_, arg)| arg);
        node.args().iter().chain(kwargs).cloned().collect()
    }))
}

/// A call's arguments in the order of a signature, defaults filled in; nothing where they do not fit it.
pub(super) fn bound_arguments(
    callee: &str,
    params: &[ParamSpec],
    node: NodeRef<'_>,
) -> Option<Vec<Argument>> {
    let bound = BoundArgs::of(node, callee, params).ok()?;
    Some(bound.iter().map(|(_, arg)| arg.into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written() {
        for text in [
            "Tensor",
            "Int",
            "(Tensor, (Int, Float), List<Tensor>)",
            "(Tensor,)",
            "List<Int>",
            "IndexMap<String, Tensor>",
            "Option<Tensor>",
        ] {
            assert_eq!(Ty::parse(text).map(|ty| ty.text()).as_deref(), Some(text));
        }
        let text = |text| Ty::parse(text).map(|ty| ty.text());
        assert_eq!(text("&'a Tensor").as_deref(), Some("Tensor"));
        assert_eq!(text("[Tensor; 3]").as_deref(), Some("Vec<Tensor>"));
        assert_eq!(text("Tensor) {"), None);
    }
}
