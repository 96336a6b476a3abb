//! `Value`: anything that flows along a graph's edges while it runs or is traced.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::device::Device;
use super::dtype::DType;
use super::handle::Proxy;
use super::nested::{self, MAX_DEPTH, Nested, Shown, ShownItems};
use super::object::{Handle, Object, Traced, short_type_name};
use crate::error::{Error, Result};

/// Anything that flows through a graph: a plain value, a structure of values, an object such as a
/// tensor, or, while tracing, a proxy.
///
/// Structures of any depth can be cloned and dropped; `{:?}` shows 64 levels. Move values out of
/// one with [`std::mem::take`].
#[derive(Default)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    #[default]
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// An element type.
    DType(DType),
    /// A device.
    Device(Device),
    /// `...` in an index.
    Ellipsis,
    /// A list.
    List(Box<[Value]>),
    /// A tuple.
    Tuple(Box<[Value]>),
    /// Named values, in order.
    Dict(Box<IndexMap<Arc<str>, Value>>),
    /// Start, stop and step of a slice.
    Slice(Box<[Value; 3]>),
    /// Start, stop and step of a range of integers.
    Range(Box<[Value; 3]>),
    /// A tensor or another user's object.
    Object(Handle),
    /// A symbolic value of a running trace.
    Proxy(Proxy),
}

impl Value {
    /// Converts anything that can be a value.
    ///
    /// ```
    /// use fx_core::value::Value;
    /// assert_eq!(Value::of((1, "a")).describe(), "a tuple of 2");
    /// ```
    pub fn of(value: impl IntoValue) -> Self {
        value.into_value()
    }

    /// Wraps an object.
    pub fn object<T: Object>(object: T) -> Self {
        Value::Object(Handle::new(object))
    }

    /// Whether both are one object, such as a tensor: with the same storage.
    pub(crate) fn is_same_object(&self, other: &Value) -> bool {
        let id = |value: &Value| value.as_object().and_then(Object::object_id);
        id(self).is_some() && id(self) == id(other)
    }

    /// Wraps an object into `self`, reusing the present box if it can be refilled.
    #[inline]
    pub fn put_object<T: Object>(&mut self, object: T) {
        let object = match self {
            Value::Object(handle) => match handle.refill(object) {
                Ok(()) => return,
                Err(object) => object,
            },
            _ => object,
        };
        *self = Value::object(object);
    }

    /// Drops what the value holds; an unshared object's box is kept for the next one.
    #[inline]
    pub(crate) fn clear(&mut self) {
        match self {
            Value::Object(handle) => {
                if !handle.clear() {
                    *self = Value::None;
                }
            }
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
            other => *other = Value::None,
        }
    }

    /// The object as its concrete type, if it has that type.
    #[inline]
    pub fn downcast_ref<T: Object>(&self) -> Option<&T> {
        match self {
            Value::Object(handle) => handle.downcast_ref(),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&dyn Object> {
        match self {
            Value::Object(handle) => handle.object(),
            _ => None,
        }
    }

    /// Its truth: of a boolean, or of an object that has one.
    ///
    /// # Errors
    /// Returns an error if it is neither true nor false.
    pub(crate) fn truth(&self) -> Result<bool> {
        match (self, self.as_object()) {
            (Value::Bool(truth), _) => Ok(*truth),
            (_, Some(object)) => object.truth(),
            _ => Err(Error::expected("a truth value", self.describe())),
        }
    }

    /// The proxy, if the value is symbolic.
    pub fn as_proxy(&self) -> Option<Proxy> {
        match self {
            Value::Proxy(proxy) => Some(*proxy),
            Value::Object(handle) => handle.object().and_then(|o| o.proxy()),
            _ => None,
        }
    }

    /// Whether it is symbolic or contains a symbolic value.
    #[inline]
    pub fn holds_proxy(&self) -> bool {
        if !self.is_container() {
            return self.as_proxy().is_some();
        }
        let mut found = false;
        self.for_each(&mut |inner| found = found || inner.as_proxy().is_some());
        found
    }

    /// Whether it is without data, or contains such a value: a symbolic value, a fake tensor.
    #[inline]
    pub(crate) fn holds_no_data(&self) -> bool {
        let has_none = |value: &Value| match value {
            Value::Proxy(_) => true,
            Value::Object(handle) => {
                let object = handle.object();
                object.is_some_and(|o| o.proxy().is_some() || o.is_fake())
            }
            _ => false,
        };
        if !self.is_container() {
            return has_none(self);
        }
        let mut found = false;
        self.for_each(&mut |inner| found = found || has_none(inner));
        found
    }

    /// Calls `visit` with this value and every value inside it.
    pub fn for_each<'v>(&'v self, visit: &mut dyn FnMut(&'v Value)) {
        if !self.is_container() {
            return visit(self);
        }
        let mut pending = vec![self];
        while let Some(value) = pending.pop() {
            visit(value);
            match value {
                Value::List(items) | Value::Tuple(items) => pending.extend(items.iter().rev()),
                Value::Dict(map) => pending.extend(map.values().rev()),
                Value::Slice(parts) | Value::Range(parts) => pending.extend(parts.iter().rev()),
                _ => {}
            }
        }
    }

    /// Whether it contains other values.
    #[inline]
    pub(crate) fn is_container(&self) -> bool {
        matches!(
            self,
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Slice(_) | Value::Range(_)
        )
    }

    /// A description of the value, for messages: `a float`, `a list of 4`, or how a
    /// tensor type describes itself: `a tensor of shape [2, 3]`.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "none".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Int(_) => "an int".into(),
            Value::Float(_) => "a float".into(),
            Value::Str(_) => "a string".into(),
            Value::DType(_) => "a dtype".into(),
            Value::Ellipsis => "an ellipsis".into(),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Tuple(items) => format!("a tuple of {}", items.len()),
            Value::Dict(map) => format!("a dict of {}", map.len()),
            Value::Slice(_) => "a slice".into(),
            Value::Range(_) => "a range".into(),
            Value::Device(_) => "a device".into(),
            Value::Object(handle) => match handle.object() {
                Some(object) => match object.shape() {
                    Some(shape) => format!("a tensor of shape {shape:?}"),
                    None => format!("a `{}`", short_type_name(object.type_name())),
                },
                None => "a value that was freed".into(),
            },
            Value::Proxy(_) => "a symbolic value".into(),
        }
    }
}

impl Nested for Value {
    fn is_structure(&self) -> bool {
        self.is_container()
    }

    fn child(&self, at: usize) -> Option<&Self> {
        match self {
            Value::List(items) | Value::Tuple(items) => items.get(at),
            Value::Dict(map) => map.get_index(at).map(|(_, item)| item),
            Value::Slice(parts) | Value::Range(parts) => parts.get(at),
            _ => None,
        }
    }

    fn take_structures(&mut self, out: &mut SmallVec<[Self; 4]>) {
        let take = |child: &mut Value| {
            if child.is_container() {
                out.push(std::mem::take(child));
            }
        };
        match self {
            Value::List(items) | Value::Tuple(items) => items.iter_mut().for_each(take),
            Value::Dict(map) => map.values_mut().for_each(take),
            Value::Slice(parts) | Value::Range(parts) => parts.iter_mut().for_each(take),
            _ => {}
        }
    }

    fn with(&self, inside: Vec<Self>) -> Self {
        let three = |inside: Vec<Self>| {
            let mut inside = inside.into_iter();
            Box::new([(); 3].map(|()| inside.next().unwrap_or_default()))
        };
        match self {
            Value::List(_) => Value::List(inside.into()),
            Value::Tuple(_) => Value::Tuple(inside.into()),
            Value::Dict(map) => Value::Dict(Box::new(map.keys().cloned().zip(inside).collect())),
            Value::Slice(_) => Value::Slice(three(inside)),
            Value::Range(_) => Value::Range(three(inside)),
            leaf => leaf.clone(),
        }
    }

    fn is_like(&self, _: &Self) -> bool {
        // Objects cannot be compared.
        false
    }
}

impl Clone for Value {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Value::None => Value::None,
            Value::Bool(x) => Value::Bool(*x),
            Value::Int(x) => Value::Int(*x),
            Value::Float(x) => Value::Float(*x),
            Value::Str(x) => Value::Str(x.clone()),
            Value::DType(x) => Value::DType(*x),
            Value::Device(x) => Value::Device(*x),
            Value::Ellipsis => Value::Ellipsis,
            Value::Object(x) => Value::Object(x.clone()),
            Value::Proxy(x) => Value::Proxy(*x),
            structure => copied(structure),
        }
    }
}

/// A copy of a structure. Not generic, so that other crates do not compile it again.
#[inline(never)]
fn copied(structure: &Value) -> Value {
    nested::copy(structure)
}

/// Empties a structure. Not generic, so that other crates do not compile it again.
#[inline(never)]
fn release(value: &mut Value) {
    nested::release(value);
}

impl Drop for Value {
    #[inline]
    fn drop(&mut self) {
        if self.is_structure() {
            release(self);
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, MAX_DEPTH).fmt(f)
    }
}

impl fmt::Debug for Shown<'_, Value> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(value, levels) = *self;
        if levels == 0 && value.is_container() {
            return f.write_str("..");
        }
        let inside = levels.saturating_sub(1);
        let mut shown =
            |name: &str, field: &dyn fmt::Debug| f.debug_tuple(name).field(field).finish();
        match value {
            Value::Bool(x) => shown("Bool", x),
            Value::Int(x) => shown("Int", x),
            Value::Float(x) => shown("Float", x),
            Value::Str(x) => shown("Str", x),
            Value::DType(x) => shown("DType", x),
            Value::Device(x) => shown("Device", x),
            Value::List(items) => shown("List", &ShownItems(items, inside)),
            Value::Tuple(items) => shown("Tuple", &ShownItems(items, inside)),
            Value::Dict(map) => shown("Dict", &ShownMap(map, inside)),
            Value::Slice(parts) => shown("Slice", &ShownItems(&parts[..], inside)),
            Value::Range(parts) => shown("Range", &ShownItems(&parts[..], inside)),
            Value::Object(x) => shown("Object", x),
            Value::Proxy(x) => shown("Proxy", x),
            Value::None => f.write_str("None"),
            Value::Ellipsis => f.write_str("Ellipsis"),
        }
    }
}

struct ShownMap<'a>(&'a IndexMap<Arc<str>, Value>, usize);

impl fmt::Debug for ShownMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.0.iter().map(|(key, item)| (key, Shown(item, self.1)));
        f.debug_map().entries(items).finish()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Str(s) => write!(f, "{s:?}"),
            Value::DType(d) => write!(f, "{d}"),
            Value::Device(d) => write!(f, "{d}"),
            _ => f.write_str(&self.describe()),
        }
    }
}

/// Types that flow into a graph: plain values, tensors, and structures of them.
///
/// ```
/// use fx_core::value::{IntoValue, Value};
/// assert!(matches!(2.5.into_value(), Value::Float(_)));
/// assert!(matches!(&("a", 3).into_value(), Value::Tuple(items) if items.len() == 2));
/// assert!(matches!(None::<f64>.into_value(), Value::None));
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot flow through a graph",
    label = "neither a tensor, a plain value nor a structure of them"
)]
pub trait IntoValue {
    /// Converts it to a value.
    fn into_value(self) -> Value;
}

/// Marks types that are a single argument of a call; a tuple is a whole argument list.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be an argument of a graph",
    label = "neither a tensor, a plain value nor a structure of them"
)]
pub trait Arg: IntoValue {}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}
impl Arg for Value {}

impl IntoValue for &Value {
    fn into_value(self) -> Value {
        self.clone()
    }
}
impl Arg for &Value {}

impl IntoValue for Proxy {
    fn into_value(self) -> Value {
        Value::Proxy(self)
    }
}
impl Arg for Proxy {}

impl<T: Traced> IntoValue for &T {
    fn into_value(self) -> Value {
        match self.proxy() {
            Some(proxy) => Value::Proxy(proxy),
            None => self.to_value(),
        }
    }
}
impl<T: Traced> Arg for &T {}

macro_rules! behind_references {
    ($($t:ty)*) => {$(
        impl IntoValue for &$t {
            fn into_value(self) -> Value {
                (*self).into_value()
            }
        }
    )*};
}

behind_references! { bool i64 f64 usize }

macro_rules! plain_into_value {
    ($($t:ty => |$x:ident| $value:expr;)*) => {$(
        impl IntoValue for $t {
            fn into_value(self) -> Value {
                let $x = self;
                $value
            }
        }
        impl Arg for $t {}
    )*};
}

plain_into_value! {
    bool => |x| Value::Bool(x);
    i64 => |x| Value::Int(x);
    i32 => |x| Value::Int(x.into());
    u32 => |x| Value::Int(x.into());
    u8 => |x| Value::Int(x.into());
    // Sizes above `i64::MAX` do not occur: they are lengths of things in memory.
    usize => |x| Value::Int(i64::try_from(x).unwrap_or(i64::MAX));
    f64 => |x| Value::Float(x);
    f32 => |x| Value::Float(x.into());
    &str => |x| Value::Str(x.into());
    String => |x| Value::Str(x.into());
    Arc<str> => |x| Value::Str(x);
    DType => |x| Value::DType(x);
    Device => |x| Value::Device(x);
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::None, T::into_value)
    }
}
impl<T: Arg> Arg for Option<T> {}

/// A list of these. A loop: the standard library's ways to collect into the memory of a `Vec` are several times as much
/// code in each crate.
fn list_of<T: IntoValue>(items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>) -> Value {
    let items = items.into_iter();
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(item.into_value());
    }
    Value::List(values.into_boxed_slice())
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Value {
        list_of(self)
    }
}
impl<T: Arg> Arg for Vec<T> {}

impl<T: IntoValue, const N: usize> IntoValue for [T; N] {
    fn into_value(self) -> Value {
        list_of(self)
    }
}
impl<T: Arg, const N: usize> Arg for [T; N] {}

impl<T> IntoValue for &[T]
where
    T: Clone + IntoValue,
{
    fn into_value(self) -> Value {
        list_of(self.iter().cloned())
    }
}
impl<T: Clone + Arg> Arg for &[T] {}

impl<K: AsRef<str>, T: IntoValue> IntoValue for IndexMap<K, T> {
    fn into_value(self) -> Value {
        Value::Dict(Box::new(
            self.into_iter()
                .map(|(k, v)| (Arc::from(k.as_ref()), v.into_value()))
                .collect(),
        ))
    }
}
impl<K: AsRef<str>, T: Arg> Arg for IndexMap<K, T> {}

impl IntoValue for () {
    fn into_value(self) -> Value {
        Value::None
    }
}

macro_rules! tuple_into_value {
    ($($name:ident)+) => {
        impl<$($name: IntoValue),+> IntoValue for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_value(self) -> Value {
                let ($($name,)+) = self;
                Value::Tuple(Box::new([$($name.into_value()),+]))
            }
        }
    };
}
tuple_into_value! { A }
tuple_into_value! { A B }
tuple_into_value! { A B C }
tuple_into_value! { A B C D }
tuple_into_value! { A B C D E }
tuple_into_value! { A B C D E F }
tuple_into_value! { A B C D E F G }
tuple_into_value! { A B C D E F G H }
