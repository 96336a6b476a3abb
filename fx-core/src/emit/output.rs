//! The graph's return value: its type, and the expression that produces it.
//!
//! Invariant: the expression has the type, structure by structure.

use rustc_hash::FxHashMap;

use super::rust::{Hold, Writer};
use super::tuple::{MAX_TUPLE, tuple};
use super::types::nameable;
use crate::ir::argument::Argument;
use crate::value::handle::NodeId;

/// How many uses of each value remain in the expression being written.
type Left = FxHashMap<NodeId, u32>;

impl Writer<'_> {
    /// The type of a result, as far as it is declared; otherwise a tensor.
    pub(super) fn result_type(&self, arg: &Argument) -> String {
        self.types.result(self.input, arg)
    }

    /// The expression for a result, in the form of its type.
    pub(super) fn output(&self, arg: &Argument) -> String {
        let mut left = Left::default();
        arg.for_each_node(&mut |id| *left.entry(id).or_default() += 1);
        self.returned(arg, &mut left)
    }

    fn returned(&self, arg: &Argument, left: &mut Left) -> String {
        match arg {
            Argument::Node(id) => {
                let count = left.entry(*id).or_default();
                *count = count.saturating_sub(1);
                // An owned value is moved at its last use.
                let written = match (self.hold(*id), count) {
                    (Hold::Owned, 0) => self.name(*id),
                    _ => self.built(arg),
                };
                let ty = self.graph.node(*id).map(|node| self.types.of(node));
                match ty {
                    Ok(ty) if nameable(self.input, ty) != ty.to_string() => {
                        format!("Value::of({written})")
                    }
                    _ => written,
                }
            }
            Argument::Tuple(items) if items.len() > MAX_TUPLE => self.value(arg, left),
            Argument::None => "None".to_string(),
            Argument::Bool(_) | Argument::Int(_) | Argument::Float(_) => {
                format!("{}::from({})", self.result_type(arg), self.built(arg))
            }
            Argument::Tuple(items) => tuple(
                &items
                    .iter()
                    .map(|i| self.returned(i, left))
                    .collect::<Vec<_>>(),
            ),
            Argument::List(items) => {
                let ty = self.types.item(self.input, items.iter());
                let items: Vec<String> = items.iter().map(|i| self.item(i, &ty, left)).collect();
                format!("vec![{}]", items.join(", "))
            }
            Argument::Dict(items) => {
                let ty = self
                    .types
                    .item(self.input, items.iter().map(|(_, item)| item));
                let mut entries = Vec::with_capacity(items.len());
                for (key, item) in items.iter() {
                    let item = self.item(item, &ty, left);
                    entries.push(format!("({key:?}.to_string(), {item})"));
                }
                format!("IndexMap::from_iter([{}])", entries.join(", "))
            }
            other => self.value(other, left),
        }
    }

    /// The expressions for several results, in the form of their types.
    pub(super) fn outputs(&self, args: &[Argument], types: &[String]) -> Vec<String> {
        let mut left = Left::default();
        for arg in args {
            arg.for_each_node(&mut |id| *left.entry(id).or_default() += 1);
        }
        let items = args.iter().zip(types);
        items
            .map(|(arg, ty)| self.item(arg, ty, &mut left))
            .collect()
    }

    fn item(&self, arg: &Argument, ty: &str, left: &mut Left) -> String {
        match ty {
            "Value" => self.value(arg, left),
            _ => self.returned(arg, left),
        }
    }

    /// An argument that may be of any type; values inside it are cloned, not moved.
    pub(super) fn as_value(&self, arg: &Argument) -> String {
        let mut left = Left::default();
        arg.for_each_node(&mut |id| {
            left.insert(id, u32::MAX);
        });
        self.value(arg, &mut left)
    }

    /// A result among others of different types, as a `Value`.
    fn value(&self, arg: &Argument, left: &mut Left) -> String {
        match arg {
            Argument::None => "Value::None".to_string(),
            Argument::Bool(x) => format!("Value::Bool({x})"),
            Argument::Int(x) => format!("Value::Int({x})"),
            Argument::Float(_) => format!("Value::Float({})", self.built(arg)),
            Argument::Str(x) => format!("Value::Str({x:?}.into())"),
            Argument::DType(_) => format!("Value::DType({})", self.built(arg)),
            Argument::Device(_) => format!("Value::Device({})", self.built(arg)),
            // `None` alone has no type in a tuple.
            Argument::Tuple(items)
                if items.len() > MAX_TUPLE || items.contains(&Argument::None) =>
            {
                let items: Vec<String> = items.iter().map(|i| self.value(i, left)).collect();
                format!("Value::Tuple(Box::new([{}]))", items.join(", "))
            }
            Argument::Node(_) | Argument::List(_) | Argument::Tuple(_) | Argument::Dict(_) => {
                match self.returned(arg, left) {
                    written if written.starts_with("Value::of(") => written,
                    written => format!("Value::of({written})"),
                }
            }
            Argument::Ellipsis => "Value::Ellipsis".to_string(),
            Argument::Slice(parts) | Argument::Range(parts) => {
                let kind = match arg {
                    Argument::Slice(_) => "Slice",
                    _ => "Range",
                };
                let parts: Vec<String> = parts.iter().map(|part| self.value(part, left)).collect();
                format!("Value::{kind}(Box::new([{}]))", parts.join(", "))
            }
        }
    }
}
