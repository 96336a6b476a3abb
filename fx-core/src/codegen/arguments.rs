//! Arguments as Rust writes them: lent, given, or as a parameter of a known type takes them.

use super::rust::{Hold, Writer};
use super::types::{Ty, is_tensor, optional, tuple};
use crate::ir::argument::Argument;
use crate::ir::names::{as_name, is_identifier};
use crate::ir::node::NodeRef;
use crate::ir::signature::ParamSpec;
use crate::text::Escaped;
use crate::value::handle::NodeId;

/// How many arguments a graph module takes as a tuple.
const MAX_TUPLE: usize = 8;

impl Writer<'_> {
    pub(super) fn name(&self, id: NodeId) -> String {
        self.graph
            .node(id)
            .map_or_else(|_| "erased".to_string(), |node| node.name().to_string())
    }

    /// What a method is called on.
    pub(super) fn receiver(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => self.name(*id),
            other => self.lent(other),
        }
    }

    /// An argument that the callee only looks at.
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

    /// An argument as a parameter takes it.
    pub(super) fn for_param(&self, arg: &Argument, param: &ParamSpec) -> String {
        self.of_type(arg, &param.ty, param.into)
    }

    /// The arguments of a call of a graph module, whose `forward` takes any values.
    pub(super) fn for_graph_module(&self, node: NodeRef<'_>) -> String {
        let any = |arg: &Argument| match arg {
            Argument::Node(id) => match self.graph.node(*id).map(|node| self.types.of(node)) {
                Ok(Ty::Named(_)) => self.lent(arg),
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
                    // A keyword is a word, but of no macro's.
                    if as_name(name).is_none_or(|written| written != **name) {
                        self.problem(format!("`{}` is no name of an argument", Escaped(name)));
                    }
                    let name = if is_identifier(name) { name } else { "_" };
                    format!("{name} = {}", any(arg))
                });
                let all: Vec<String> = args.iter().cloned().chain(kwargs).collect();
                format!("args![{}]", all.join(", "))
            }
        }
    }

    /// An argument of an optional parameter, where the method takes the value itself.
    pub(super) fn present(&self, arg: &Argument, param: &ParamSpec) -> String {
        let ty = optional(&param.ty).unwrap_or(&param.ty);
        self.of_type(arg, ty, param.into)
    }

    /// An argument of a type; `into` where what converts into the type will do.
    fn of_type(&self, arg: &Argument, ty: &str, into: bool) -> String {
        if let Some(inner) = optional(ty) {
            return match arg {
                Argument::None => "None".to_string(),
                arg if into && is_plain(inner) => self.of_type(arg, inner, false),
                arg => format!("Some({})", self.of_type(arg, inner, false)),
            };
        }
        self.check(arg, ty, into);
        match (arg, ty) {
            (arg, "Value") if !into => self.as_value(arg),
            // What a struct is made of, taken as the struct that the parameter is of.
            (Argument::Dict(_), ty) if !ty.contains("Map<") => {
                let lent = if ty.starts_with('&') { "&" } else { "" };
                format!("{lent}FromValue::from_value({})?", self.as_value(arg))
            }
            (Argument::Node(id), ty) => match (self.hold(*id), ty.starts_with('&')) {
                (Hold::Plain, _) => self.name(*id),
                (_, true) => self.lent(arg),
                (_, false) => format!("{}.clone()", self.name(*id)),
            },
            (Argument::Int(n), "f64" | "f32") => format!("{:?}", *n as f64),
            (Argument::Int(n), "Float") => scalar(&format!("{:?}", *n as f64), ty, into),
            (
                Argument::Int(_) | Argument::Float(_) | Argument::Bool(_),
                "Int" | "Float" | "Bool",
            ) => scalar(&self.built(arg), ty, into),
            (Argument::Str(text), "String") => format!("{:?}.to_string()", text.as_str()),
            (Argument::List(_) | Argument::Tuple(_), ty) if ty.starts_with('&') => {
                format!("&{}", self.in_brackets(arg, element(ty)))
            }
            (Argument::List(_) | Argument::Tuple(_), ty) if ty.starts_with('[') => {
                self.in_brackets(arg, element(ty))
            }
            (Argument::List(_) | Argument::Tuple(_), ty) if ty.starts_with("Vec<") => {
                format!("vec!{}", self.in_brackets(arg, element(ty)))
            }
            (Argument::List(items), ty) if !ty.starts_with('(') => self.sizes(items, into),
            (Argument::Tuple(items), ty) if !ty.starts_with('(') => self.sizes(items, into),
            (arg, _) => self.built(arg),
        }
    }

    /// Notes an argument that is no tensor, where one is taken, and a tensor where a number is.
    fn check(&self, arg: &Argument, ty: &str, into: bool) {
        let wanted = ty.trim_start_matches('&').trim();
        let fits = match arg {
            _ if into => true,
            Argument::Node(id) => match self.graph.node(*id).map(|node| self.types.of(node)) {
                Ok(Ty::Named(name)) if is_tensor(wanted) => is_tensor(name),
                Ok(Ty::Named(_)) => !matches!(wanted, "i64" | "usize" | "f64" | "bool" | "str"),
                Ok(_) => !is_tensor(wanted),
                Err(_) => false,
            },
            _ => !is_tensor(wanted),
        };
        if !fits {
            let what = match arg {
                Argument::Node(id) => format!("%{}", self.name(*id)),
                _ => "a plain value".to_string(),
            };
            self.problem(format!("{what} is given where a `{wanted}` is taken"));
        }
    }

    fn in_brackets(&self, arg: &Argument, element: &str) -> String {
        let items: &[Argument] = match arg {
            Argument::List(items) | Argument::Tuple(items) => items,
            _ => &[],
        };
        let items: Vec<String> = items
            .iter()
            .map(|item| match element {
                "Int" | "Float" | "Bool" => self.of_type(item, element, false),
                _ => self.built(item),
            })
            .collect();
        format!("[{}]", items.join(", "))
    }

    /// Several numbers for a type of its own, such as sizes or dims: what converts into it.
    fn sizes(&self, items: &[Argument], into: bool) -> String {
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

    /// What a list of numbers is joined with.
    pub(super) fn list(&self, arg: &Argument) -> String {
        match arg {
            Argument::List(_) | Argument::Tuple(_) => {
                format!("vec!{}", self.in_brackets(arg, "Int"))
            }
            other => self.built(other),
        }
    }

    /// What a tensor is indexed by.
    pub(super) fn index(&self, index: &Argument) -> String {
        match index {
            Argument::None => "NewAxis".to_string(),
            Argument::Ellipsis => "Ellipsis".to_string(),
            Argument::Tuple(parts) => tuple(
                &parts
                    .iter()
                    .map(|part| self.index(part))
                    .collect::<Vec<_>>(),
            ),
            Argument::Slice(ends) => {
                let end = |at: usize| match &ends[at] {
                    Argument::None => String::new(),
                    end => self.built(end),
                };
                let range = format!("{}..{}", end(0), end(1));
                match (&ends[2], range.as_str()) {
                    (Argument::None, _) => range,
                    (step, "..") => format!("every({})", self.built(step)),
                    (step, range) => format!("every({}).of({range})", self.built(step)),
                }
            }
            other => self.lent(other),
        }
    }

    /// An argument written out; the values in it are left to their owners.
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

/// A scalar as a parameter of a scalar's type takes it.
fn scalar(text: &str, ty: &str, into: bool) -> String {
    match into {
        true => text.to_string(),
        false => format!("{ty}::from({text})"),
    }
}

/// Whether Rust's own numbers and texts are of the type.
fn is_plain(ty: &str) -> bool {
    matches!(ty, "f64" | "f32" | "i64" | "usize" | "bool" | "&str")
}

/// The element's type of a slice, an array or a vector.
fn element(ty: &str) -> &str {
    let inner = ty.trim_start_matches('&').trim_start_matches("Vec<");
    let inner = inner.trim_start_matches('[').trim_end_matches([']', '>']);
    inner.split(';').next().unwrap_or(inner).trim()
}
