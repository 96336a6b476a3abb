//! Arguments as Rust source: borrowed, owned, or converted to the type of a parameter.

use super::rust::{Hold, Writer};
use super::tensor_source::IndexSource;
use super::tuple::tuple;
use crate::ir::argument::Argument;
use crate::ir::names::{as_name, is_identifier};
use crate::ir::node::NodeRef;
use crate::ir::param_type::{ParamType, ScalarType};
use crate::ir::signature::ParamSpec;
use crate::text::Escaped;
use crate::value::handle::NodeId;

/// The most arguments that a graph module takes as a tuple.
const MAX_TUPLE: usize = 8;

impl Writer<'_> {
    pub(super) fn name(&self, id: NodeId) -> String {
        self.graph
            .node(id)
            .map_or_else(|_| "erased".to_string(), |node| node.name().to_string())
    }

    /// The receiver of a method call.
    pub(super) fn receiver(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => self.name(*id),
            other => self.lent(other),
        }
    }

    /// An argument that the callee only borrows.
    pub(super) fn lent(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => match self.hold(*id) {
                Hold::Owned => format!("&{}", self.name(*id)),
                Hold::Ref | Hold::Plain => self.name(*id),
            },
            Argument::List(items)
                if items.iter().any(|a| !a.is_leaf() || a.as_node().is_some()) =>
            {
                format!("&{}", self.built(arg))
            }
            other => self.built(other),
        }
    }

    /// An argument in the form that its parameter takes.
    pub(super) fn for_param(&self, arg: &Argument, param: &ParamSpec) -> String {
        self.of_type(arg, &param.param_type, param.into)
    }

    /// The arguments of a call to a graph module, whose `forward` accepts any values.
    pub(super) fn for_graph_module(&self, node: NodeRef<'_>) -> String {
        let any = |arg: &Argument| match arg {
            Argument::Node(id) => match self.graph.node(*id).map(|node| self.types.of(node)) {
                Ok(ty) if ty.is_object() => self.lent(arg),
                _ => self.built(arg),
            },
            Argument::Bool(_) | Argument::Float(_) => self.built(arg),
            arg => self.as_value(arg),
        };
        let args: Vec<String> = node.args().iter().map(any).collect();
        match (args.as_slice(), node.args(), node.kwargs()) {
            ([one], [Argument::Node(_)], []) => one.clone(),
            (args, _, []) if args.len() <= MAX_TUPLE => tuple(args),
            (args, _, kwargs) => {
                let kwargs = kwargs.iter().map(|(name, arg)| {
                    // A Rust keyword is an identifier, but `args!` cannot take it as a name.
                    if as_name(name).is_none_or(|written| written != **name) {
                        self.problem(format!("`{}` is not a name of an argument", Escaped(name)));
                    }
                    let name = if is_identifier(name) { name } else { "_" };
                    format!("{name} = {}", any(arg))
                });
                let all: Vec<String> = args.iter().cloned().chain(kwargs).collect();
                format!("args![{}]", all.join(", "))
            }
        }
    }

    /// An argument for an optional parameter, where the method takes the value itself.
    pub(super) fn present(&self, arg: &Argument, param: &ParamSpec) -> String {
        let ty = param.param_type.optional();
        self.of_type(arg, ty.unwrap_or(&param.param_type), param.into)
    }

    /// An argument for a type; with `into`, anything that converts into the type is accepted.
    fn of_type(&self, arg: &Argument, ty: &ParamType, into: bool) -> String {
        if let Some(inner) = ty.optional() {
            return match arg {
                Argument::None => "None".to_string(),
                arg if into && is_plain(inner) => self.of_type(arg, inner, false),
                arg => format!("Some({})", self.of_type(arg, inner, false)),
            };
        }
        self.check(arg, ty, into);
        let lent = matches!(ty, ParamType::Reference(_));
        match (arg, ty) {
            (arg, ParamType::AnyValue) if !into => self.as_value(arg),
            // The fields of a struct, converted to the struct type of the parameter.
            (Argument::Dict(_), ty) if !matches!(ty.referred(), ParamType::Map(_)) => {
                let lent = if lent { "&" } else { "" };
                format!("{lent}FromValue::from_value({})?", self.as_value(arg))
            }
            (Argument::Node(id), _) => match (self.hold(*id), lent) {
                (Hold::Plain, _) => self.name(*id),
                (_, true) => self.lent(arg),
                (_, false) => format!("{}.clone()", self.name(*id)),
            },
            (Argument::Int(n), ParamType::Plain(ScalarType::Float)) => format!("{:?}", *n as f64),
            (Argument::Int(n), ParamType::Scalar(kind @ ScalarType::Float)) => {
                scalar(&format!("{:?}", *n as f64), *kind, into)
            }
            (
                Argument::Int(_) | Argument::Float(_) | Argument::Bool(_),
                ParamType::Scalar(kind),
            ) => scalar(&self.built(arg), *kind, into),
            (Argument::Str(text), ParamType::Str) => format!("{:?}.to_string()", text.as_str()),
            (Argument::List(_) | Argument::Tuple(_), ty) => match ty {
                ParamType::Reference(_) => format!("&{}", self.in_brackets(arg, ty.item(0))),
                ParamType::Slice(item) => self.in_brackets(arg, Some(item)),
                ParamType::Sequence(item) => format!("vec!{}", self.in_brackets(arg, Some(item))),
                ParamType::Tuple(_) => self.built(arg),
                _ => self.sizes(arg, into),
            },
            (arg, _) => self.built(arg),
        }
    }

    /// Reports a non-tensor passed as a tensor, or a tensor passed as a number.
    fn check(&self, arg: &Argument, ty: &ParamType, into: bool) {
        let wanted = ty.referred();
        let is_tensor = matches!(wanted, ParamType::TensorOf(_));
        let fits = match arg {
            _ if into => true,
            Argument::Node(id) => match self.graph.node(*id).map(|node| self.types.of(node)) {
                Ok(found) if found.is_object() && is_tensor => found.is_tensor_of(wanted),
                Ok(found) if found.is_object() => {
                    !matches!(wanted, ParamType::Plain(_) | ParamType::Str)
                }
                Ok(_) => !is_tensor,
                Err(_) => false,
            },
            _ => !is_tensor,
        };
        if !fits {
            let what = match arg {
                Argument::Node(id) => format!("%{}", self.name(*id)),
                _ => "a plain value".to_string(),
            };
            self.problem(format!("{what} is passed where a `{wanted}` is expected"));
        }
    }

    fn in_brackets(&self, arg: &Argument, element: Option<&ParamType>) -> String {
        let items = items_of(arg).iter();
        let items: Vec<String> = items
            .map(|item| match element {
                Some(ty @ ParamType::Scalar(_)) => self.of_type(item, ty, false),
                _ => self.built(item),
            })
            .collect();
        format!("[{}]", items.join(", "))
    }

    /// Several numbers for a dedicated type, such as sizes or dims, in a form that converts into
    /// it.
    fn sizes(&self, arg: &Argument, into: bool) -> String {
        let items = items_of(arg);
        let written: Vec<String> = items.iter().map(|item| self.built(item)).collect();
        let text = match written.as_slice() {
            [] => "()".to_string(),
            [one] => format!("[{one}]"),
            many if many.len() <= 6 => format!("({})", many.join(", ")),
            many if items.iter().any(|item| item.as_node().is_some()) => {
                let ints: Vec<String> = many.iter().map(|n| format!("Int::from({n})")).collect();
                format!("vec![{}]", ints.join(", "))
            }
            many => format!("[{}]", many.join(", ")),
        };
        match into {
            true => text,
            false => format!("{text}.into()"),
        }
    }

    /// The right-hand side of a list concatenation.
    pub(super) fn list(&self, arg: &Argument) -> String {
        match arg {
            Argument::List(_) | Argument::Tuple(_) => {
                format!(
                    "vec!{}",
                    self.in_brackets(arg, Some(&ParamType::Scalar(ScalarType::Int)))
                )
            }
            other => self.built(other),
        }
    }

    /// The index of a tensor, for its library to write.
    pub(super) fn index(&self, index: &Argument) -> IndexSource {
        match index {
            Argument::None => IndexSource::NewDim,
            Argument::Ellipsis => IndexSource::Rest,
            Argument::Tuple(parts) => {
                IndexSource::Parts(parts.iter().map(|part| self.index(part)).collect())
            }
            Argument::Slice(ends) => {
                let end = |at: usize| match &ends[at] {
                    Argument::None => None,
                    end => Some(self.built(end)),
                };
                IndexSource::Slice([end(0), end(1), end(2)])
            }
            other => IndexSource::At(self.lent(other)),
        }
    }

    /// The index as a value, which every library accepts.
    pub(super) fn index_value(&self, index: &Argument) -> String {
        match index {
            Argument::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.index_value(part)).collect();
                format!("Value::Tuple(Box::new([{}]))", parts.join(", "))
            }
            other => self.as_value(other),
        }
    }

    /// An argument written out; values inside it are cloned, not moved.
    pub(super) fn built(&self, arg: &Argument) -> String {
        let all =
            |items: &[Argument]| -> Vec<String> { items.iter().map(|a| self.built(a)).collect() };
        match arg {
            Argument::Node(id) => match self.hold(*id) {
                Hold::Owned | Hold::Ref => format!("{}.clone()", self.name(*id)),
                Hold::Plain => self.name(*id),
            },
            Argument::None => "None".to_string(),
            Argument::Ellipsis => "..".to_string(),
            Argument::Bool(x) => x.to_string(),
            Argument::Int(x) => x.to_string(),
            Argument::Float(x) if x.is_nan() => "f64::NAN".to_string(),
            Argument::Float(x) if x.is_infinite() => {
                format!("f64::{}INFINITY", if *x < 0.0 { "NEG_" } else { "" })
            }
            Argument::Float(x) => format!("{x:?}"),
            Argument::Str(x) => format!("{x:?}"),
            Argument::DType(x) => format!("DType::{x:?}"),
            Argument::Device(x) => format!("Device::{x:?}"),
            Argument::List(items) => format!("[{}]", all(items).join(", ")),
            Argument::Tuple(items) => tuple(&all(items)),
            Argument::Dict(items) => {
                let entries: Vec<String> = items
                    .iter()
                    .map(|(k, a)| format!("({k:?}.to_string(), {})", self.built(a)))
                    .collect();
                format!("IndexMap::from_iter([{}])", entries.join(", "))
            }
            Argument::Slice(_) | Argument::Range(_) => self.as_value(arg),
        }
    }
}

/// A scalar in the form that a parameter of a scalar type takes.
fn scalar(text: &str, kind: ScalarType, into: bool) -> String {
    match into {
        true => text.to_string(),
        false => format!("{}::from({text})", kind.name()),
    }
}

/// Whether the type is one of Rust's own numbers or `&str`.
fn is_plain(ty: &ParamType) -> bool {
    match ty {
        ParamType::Plain(_) => true,
        ParamType::Reference(inner) => **inner == ParamType::Str,
        _ => false,
    }
}

/// The items of a list or a tuple.
fn items_of(arg: &Argument) -> &[Argument] {
    match arg {
        Argument::List(items) | Argument::Tuple(items) => items,
        _ => &[],
    }
}
