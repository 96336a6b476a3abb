//! `ParamType`: the type of a parameter or a result, as data: written by macros, or parsed from a
//! type's text.
//!
//! Invariant: the meaning of a type name is defined only here.

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use super::rust_type::RustType;
use crate::error::{Error, Result};
use crate::value::object::{Object, short_type_name};
use crate::value::tensor_types::{Registered, only_tensor_type, tensor_type, tensor_type_named};

/// A type, as far as graphs and generated source need to know it.
///
/// [`Param::TYPE`](crate::tensor::Param::TYPE) and
/// [`FromValue::TYPE`](crate::trace::FromValue::TYPE) hold those of Rust types; text is parsed by
/// the grammar of types. `Display` writes it as the type of an owned value.
///
/// ```
/// use fx_core::ir::{ParamType, ScalarType};
/// use fx_core::trace::FromValue;
/// use fx_core::value::Int;
/// let read: ParamType = "Vec<(Int, f64)>".parse()?;
/// assert_eq!(read, <Vec<(Int, f64)> as FromValue>::TYPE);
/// assert_eq!(read.item(0).and_then(|pair| pair.item(1)), Some(&ParamType::Plain(ScalarType::Float)));
/// assert!("Vec<Int".parse::<ParamType>().is_err());
/// # Ok::<(), fx_core::Error>(())
/// ```
// No variant is named like a type: rustc would print the paths of such types in its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamType {
    /// A tensor type.
    TensorOf(TypeName),
    /// `Bool`, `Int` or `Float`: known, or symbolic.
    Scalar(ScalarType),
    /// `bool`, `i64`, `usize` or `f64`: always known.
    Plain(ScalarType),
    /// `String`; `&str` is a reference to it.
    Str,
    /// `Value`: any value.
    AnyValue,
    /// `&T`
    Reference(TypePart<ParamType>),
    /// `Option<T>`
    Optional(TypePart<ParamType>),
    /// `List<T>`
    List(TypePart<ParamType>),
    /// `Vec<T>`
    Sequence(TypePart<ParamType>),
    /// `[T; N]` or `[T]`
    Slice(TypePart<ParamType>),
    /// `IndexMap<String, T>`
    Map(TypePart<ParamType>),
    /// `(A, B)`
    Tuple(TypePart<[ParamType]>),
    /// Any other type.
    Named(TypeName),
}

/// A kind of scalar; the order is the one in which operators widen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say all")]
#[non_exhaustive]
pub enum ScalarType {
    Bool,
    Int,
    Float,
}

impl ScalarType {
    /// The name of the type with possibly symbolic values.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::Bool => "Bool",
            ScalarType::Int => "Int",
            ScalarType::Float => "Float",
        }
    }
}

/// The inner part of a type: a constant from a macro, or a parsed part.
pub enum TypePart<T: ?Sized + 'static> {
    /// A constant.
    Fixed(&'static T),
    /// Parsed at run time.
    Parsed(Arc<T>),
}

impl<T: ?Sized> Deref for TypePart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            TypePart::Fixed(part) => part,
            TypePart::Parsed(part) => part,
        }
    }
}

impl<T: ?Sized> Clone for TypePart<T> {
    fn clone(&self) -> Self {
        match self {
            TypePart::Fixed(part) => TypePart::Fixed(part),
            TypePart::Parsed(part) => TypePart::Parsed(part.clone()),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for TypePart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for TypePart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for TypePart<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
impl<T: ?Sized + Eq> Eq for TypePart<T> {}

/// The name of a type, with its id if known.
#[derive(Clone)]
pub struct TypeName {
    id: Option<TypeId>,
    name: Name,
}

#[derive(Clone)]
enum Name {
    /// The name from `type_name`.
    Of(fn() -> &'static str),
    /// The same, taken from a value.
    Known(&'static str),
    /// A type's text.
    Text(Arc<str>),
}

impl TypeName {
    /// The name of a `'static` type.
    pub const fn of<T: 'static>() -> Self {
        TypeName {
            id: Some(TypeId::of::<T>()),
            name: Name::Of(std::any::type_name::<T>),
        }
    }

    /// The name of any type.
    pub const fn named<T>() -> Self {
        TypeName {
            id: None,
            name: Name::Of(std::any::type_name::<T>),
        }
    }

    /// The id of the named type, if known.
    pub fn id(&self) -> Option<TypeId> {
        self.id
    }
}

impl TypeName {
    /// Whether several registered tensor types share the name.
    pub(crate) fn is_shared(&self) -> bool {
        let registered = self.id.and_then(tensor_type);
        registered.is_some_and(|ty| ty.name() == ty.path() && ty.path().contains("::"))
    }
}

impl fmt::Display for TypeName {
    /// The name in source: a tensor type's registered name; otherwise each path is reduced to its
    /// last segment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(registered) = self.id.and_then(tensor_type) {
            return f.write_str(registered.name());
        }
        match &self.name {
            Name::Of(name) => f.write_str(&short_type_name(name())),
            Name::Known(name) => f.write_str(&short_type_name(name)),
            Name::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for TypeName {
    fn eq(&self, other: &Self) -> bool {
        match (self.id, other.id) {
            (Some(a), Some(b)) => a == b,
            _ => self.to_string() == other.to_string(),
        }
    }
}
impl Eq for TypeName {}

impl ParamType {
    /// The type of a tensor.
    pub(crate) fn of_tensor(tensor: &dyn Object) -> Self {
        let any: &dyn std::any::Any = tensor;
        ParamType::TensorOf(TypeName {
            id: Some(any.type_id()),
            name: Name::Known(tensor.type_name()),
        })
    }

    /// The type of a value, with its full name.
    pub(crate) fn of_value(value: &dyn std::any::Any, name: &'static str) -> Self {
        ParamType::Named(TypeName {
            id: Some(value.type_id()),
            name: Name::Known(name),
        })
    }

    /// A registered tensor type.
    pub(crate) fn of_registered(tensor: &Registered) -> Self {
        ParamType::TensorOf(TypeName {
            id: Some(tensor.id()),
            name: Name::Known(tensor.path()),
        })
    }

    /// The target of a reference; otherwise the type itself.
    pub fn referred(&self) -> &ParamType {
        let mut ty = self;
        while let ParamType::Reference(inner) = ty {
            ty = inner;
        }
        ty
    }

    /// The inner type of an option.
    pub fn optional(&self) -> Option<&ParamType> {
        match self {
            ParamType::Optional(inner) => Some(inner),
            _ => None,
        }
    }

    /// The type of an item: the one at the position for a tuple; for a list, a map or an option of
    /// one, the item type.
    pub fn item(&self, at: usize) -> Option<&ParamType> {
        match self.referred() {
            ParamType::Tuple(parts) => parts.get(at),
            ParamType::List(item)
            | ParamType::Sequence(item)
            | ParamType::Slice(item)
            | ParamType::Map(item) => Some(item),
            ParamType::Optional(inner) => inner.item(at),
            _ => None,
        }
    }

    /// The first tensor type: the type itself, or one inside it.
    pub fn tensor(&self) -> Option<&TypeName> {
        match self {
            ParamType::TensorOf(name) => Some(name),
            ParamType::Tuple(parts) => parts.iter().find_map(ParamType::tensor),
            ParamType::Optional(inner) | ParamType::Reference(inner) => inner.tensor(),
            _ => self.item(0)?.tensor(),
        }
    }

    /// Whether it is a scalar type.
    pub fn is_scalar(&self) -> bool {
        matches!(self, ParamType::Scalar(_) | ParamType::Plain(_))
    }

    /// Whether a graph may omit it for an input: it is, or refers to, the only registered tensor
    /// type.
    pub(crate) fn goes_without_saying(&self) -> bool {
        let known = only_tensor_type();
        match (self.referred(), known) {
            (ParamType::TensorOf(name), Some(known)) => name.id() == Some(known.id()),
            _ => false,
        }
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamType::TensorOf(name) | ParamType::Named(name) => name.fmt(f),
            ParamType::Scalar(scalar) | ParamType::Plain(scalar) => f.write_str(scalar.name()),
            ParamType::Str => f.write_str("String"),
            ParamType::AnyValue => f.write_str("Value"),
            ParamType::Reference(inner) => inner.fmt(f),
            ParamType::Optional(inner) => write!(f, "Option<{inner}>"),
            ParamType::List(item) => write!(f, "List<{item}>"),
            ParamType::Sequence(item) | ParamType::Slice(item) => write!(f, "Vec<{item}>"),
            ParamType::Map(value) => write!(f, "IndexMap<String, {value}>"),
            ParamType::Tuple(parts) => {
                f.write_str("(")?;
                for (at, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str(if parts.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}

impl FromStr for ParamType {
    type Err = Error;

    /// Parses a type's text.
    fn from_str(text: &str) -> Result<Self> {
        RustType::parse(text).map(|ty| ParamType::of(&ty))
    }
}

impl ParamType {
    /// The meaning of a parsed type.
    pub(crate) fn of(ty: &RustType) -> Self {
        let part = |inner: &RustType| TypePart::Parsed(Arc::new(ParamType::of(inner)));
        match ty.meaning() {
            Meaning::Scalar(scalar) => ParamType::Scalar(scalar),
            Meaning::Plain(scalar) => ParamType::Plain(scalar),
            Meaning::Str => ParamType::Str,
            Meaning::Value => ParamType::AnyValue,
            Meaning::Ref(inner) => ParamType::Reference(part(inner)),
            Meaning::Option(inner) => ParamType::Optional(part(inner)),
            Meaning::List(item) => ParamType::List(part(item)),
            Meaning::Vec(item) => ParamType::Sequence(part(item)),
            Meaning::Array(item) => ParamType::Slice(part(item)),
            Meaning::Map(value) => ParamType::Map(part(value)),
            Meaning::Tuple(parts) => {
                let parts: Vec<ParamType> = parts.iter().map(ParamType::of).collect();
                ParamType::Tuple(TypePart::Parsed(parts.into()))
            }
            Meaning::Other => match ty {
                RustType::Path(path) if let Some(found) = tensor_type_named(&path.plain()) => {
                    ParamType::of_registered(found)
                }
                _ => ParamType::Named(TypeName {
                    id: None,
                    name: Name::Text(ty.to_string().into()),
                }),
            },
        }
    }
}

/// The meaning of a type, with its inner types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning<'t> {
    Scalar(ScalarType),
    Plain(ScalarType),
    Str,
    Value,
    Ref(&'t RustType),
    Option(&'t RustType),
    List(&'t RustType),
    Vec(&'t RustType),
    Array(&'t RustType),
    Map(&'t RustType),
    Tuple(&'t [RustType]),
    /// A tensor, or a type that graphs do not know.
    Other,
}

impl RustType {
    /// The meaning of the type for graphs.
    pub fn meaning(&self) -> Meaning<'_> {
        let path = match self {
            RustType::Reference { inner, .. } => return Meaning::Ref(inner),
            RustType::Tuple(parts) => return Meaning::Tuple(parts),
            RustType::Slice(item) | RustType::Array(item, _) => return Meaning::Array(item),
            RustType::Path(path) => path,
            RustType::Bounds(..) | RustType::Function(_) => return Meaning::Other,
        };
        let Some((name, parts)) = self.last() else {
            return Meaning::Other;
        };
        // A name in another module is another type.
        let root = path
            .segments
            .first()
            .map_or("", |first| first.name.as_str());
        let is_ours =
            path.segments.len() == 1 || matches!(root, "std" | "core" | "alloc" | "fx_core");
        match (name, parts.as_slice()) {
            ("Bool", []) if is_ours => Meaning::Scalar(ScalarType::Bool),
            ("Int", []) if is_ours => Meaning::Scalar(ScalarType::Int),
            ("Float", []) if is_ours => Meaning::Scalar(ScalarType::Float),
            ("bool", []) if is_ours => Meaning::Plain(ScalarType::Bool),
            ("i64" | "usize", []) if is_ours => Meaning::Plain(ScalarType::Int),
            ("f64" | "f32", []) if is_ours => Meaning::Plain(ScalarType::Float),
            ("str" | "String", []) if is_ours => Meaning::Str,
            ("Value", []) => Meaning::Value,
            ("Option", [inner]) if is_ours => Meaning::Option(inner),
            ("List", [item]) => Meaning::List(item),
            ("Vec", [item]) => Meaning::Vec(item),
            ("IndexMap" | "HashMap" | "BTreeMap", [_, value]) => Meaning::Map(value),
            _ => Meaning::Other,
        }
    }

    /// The type of an item of a tuple or a list.
    pub fn item(&self, at: usize) -> Option<&RustType> {
        match self.meaning() {
            Meaning::Tuple(parts) => parts.get(at),
            Meaning::List(item) | Meaning::Vec(item) | Meaning::Array(item) => Some(item),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written() -> Result<()> {
        for (text, owned) in [
            ("Array", "Array"),
            ("&'a Array", "Array"),
            ("Int", "Int"),
            ("&i64", "Int"),
            (
                "(Array, (Int, Float), List<Array>)",
                "(Array, (Int, Float), List<Array>)",
            ),
            ("(Array,)", "(Array,)"),
            ("[Array; 3]", "Vec<Array>"),
            ("&[Array]", "Vec<Array>"),
            (
                "std::collections::HashMap<String, Array>",
                "IndexMap<String, Array>",
            ),
            ("Option<&str>", "Option<String>"),
            ("my::TensorMap<String, Int>", "my::TensorMap<String, Int>"),
        ] {
            assert_eq!(text.parse::<ParamType>()?.to_string(), owned);
        }
        assert!("Array) {".parse::<ParamType>().is_err());
        Ok(())
    }

    #[test]
    fn a_name_is_the_same_however_it_was_learnt() -> Result<()> {
        struct Cache;
        let declared = ParamType::Named(TypeName::named::<Cache>());
        assert_eq!("Cache".parse::<ParamType>()?, declared);
        assert_ne!("Other".parse::<ParamType>()?, declared);
        let (a, b) = (TypeName::of::<Cache>(), TypeName::of::<u8>());
        assert!(a == a.clone() && a != b);
        Ok(())
    }
}
