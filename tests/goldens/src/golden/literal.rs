//! `Literal`: a value in a graph's arguments, PyTorch's and ours in one form; it owns when two are equal, to the last bit.

use std::fmt;

/// A value in a graph's arguments: PyTorch's and ours in one form.
///
/// `==` holds floats to the last bit by [`f64::total_cmp`]'s rules (so NaN equals NaN, and 0.0 is not -0.0).
#[derive(Clone, Debug)]
pub enum Literal {
    /// The result of the node of this name.
    Node(String),
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer; never equal to a float.
    Int(i64),
    /// A float, infinities and NaN too.
    Float(f64),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Literal>),
    /// A tuple; never equal to a list.
    Tuple(Vec<Literal>),
    /// Keys and values in order.
    Dict(Vec<(Literal, Literal)>),
    /// Start, stop and step.
    Slice(Box<[Literal; 3]>),
    /// `...`
    Ellipsis,
    /// A dtype by name.
    DType(String),
    /// A function by its qualified name.
    Function(String),
    /// A tensor's size.
    Size(Vec<Literal>),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::None, Literal::None) | (Literal::Ellipsis, Literal::Ellipsis) => true,
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => {
                (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
            }
            (Literal::Node(a), Literal::Node(b))
            | (Literal::Str(a), Literal::Str(b))
            | (Literal::DType(a), Literal::DType(b))
            | (Literal::Function(a), Literal::Function(b)) => a == b,
            (Literal::List(a), Literal::List(b))
            | (Literal::Tuple(a), Literal::Tuple(b))
            | (Literal::Size(a), Literal::Size(b)) => a == b,
            (Literal::Dict(a), Literal::Dict(b)) => a == b,
            (Literal::Slice(a), Literal::Slice(b)) => a == b,
            _ => false,
        }
    }
}

impl Literal {
    /// What kind of value this is, in a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Literal::Node(_) => "node",
            Literal::None => "None",
            Literal::Bool(_) => "bool",
            Literal::Int(_) => "int",
            Literal::Float(_) => "float",
            Literal::Str(_) => "string",
            Literal::List(_) => "list",
            Literal::Tuple(_) => "tuple",
            Literal::Dict(_) => "dict",
            Literal::Slice(_) => "slice",
            Literal::Ellipsis => "ellipsis",
            Literal::DType(_) => "dtype",
            Literal::Function(_) => "function",
            Literal::Size(_) => "size",
        }
    }

    /// Calls `visit` with the name of every node in this value, in order.
    pub fn for_each_node<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Literal::Node(name) => visit(name),
            Literal::List(items) | Literal::Tuple(items) | Literal::Size(items) => {
                items.iter().for_each(|item| item.for_each_node(visit));
            }
            Literal::Slice(parts) => parts.iter().for_each(|part| part.for_each_node(visit)),
            Literal::Dict(entries) => {
                for (key, value) in entries {
                    key.for_each_node(visit);
                    value.for_each_node(visit);
                }
            }
            _ => {}
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, items: &[Literal]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Node(name) => write!(f, "%{name}"),
            Literal::None => f.write_str("None"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Str(text) => write!(f, "{text:?}"),
            Literal::List(items) => {
                f.write_str("[")?;
                write_list(f, items)?;
                f.write_str("]")
            }
            Literal::Tuple(items) => {
                f.write_str("(")?;
                write_list(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Literal::Size(items) => {
                f.write_str("Size([")?;
                write_list(f, items)?;
                f.write_str("])")
            }
            Literal::Dict(entries) => {
                f.write_str("{")?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{key}: {value}")?;
                }
                f.write_str("}")
            }
            Literal::Slice(parts) => {
                f.write_str("slice(")?;
                write_list(f, parts.as_slice())?;
                f.write_str(")")
            }
            Literal::Ellipsis => f.write_str("..."),
            Literal::DType(name) => write!(f, "dtype {name}"),
            Literal::Function(name) => write!(f, "function {name}"),
        }
    }
}
