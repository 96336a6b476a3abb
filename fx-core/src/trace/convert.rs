//! Typed views of values: arguments are lent as `Param`, results are taken as `FromValue`.

use std::hash::Hash;
use std::sync::Arc;

use indexmap::IndexMap;

use super::blame::escape;
use super::unpack;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::param_type::{ParamType, ScalarType, TypeName, TypePart};
use crate::value::device::Device;
use crate::value::dtype::DType;
use crate::value::fake_tensor::FakeTensor;
use crate::value::handle::Proxy;
use crate::value::object::{Traced, short_type_name};
use crate::value::symbol::Sym;
use crate::value::value::{IntoValue, Value};

fn mismatch<T>(value: &Value) -> Error {
    Error::expected(
        format_args!("`{}`", short_type_name(std::any::type_name::<T>())),
        value.describe(),
    )
}

/// Types that a graph's results are taken as.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be taken from a graph",
    label = "neither a tensor, a plain value nor a structure of them",
    note = "where the result of a `forward` is of no known type, as in `layer.forward(x)? * y`, say it: `let h: Tensor = layer.forward(x)?;`"
)]
pub trait FromValue: Sized {
    /// The type, as data.
    const TYPE: ParamType = ParamType::Named(TypeName::named::<Self>());

    /// Takes the value.
    ///
    /// # Errors
    /// Returns an error if it is of another type, or symbolic where a plain value is needed.
    fn from_value(value: Value) -> Result<Self>;
}

/// Types that `#[wrap]` and `#[trace]` functions can return: each of them can be symbolic.
#[diagnostic::on_unimplemented(
    message = "a traced function cannot return `{Self}`: it cannot be symbolic",
    label = "not a tensor, `Int`, `Float`, `Bool` or a structure of them",
    note = "a struct of such fields derives `Tree`",
    note = "return `Bool`, `Int` or `Float` instead of `bool`, `i64` or `f64`"
)]
pub trait Output: FromValue + IntoValue {
    /// Stores the result in its place, reusing the existing box.
    #[inline]
    fn give(self, out: &mut Value) {
        *out = self.into_value();
    }
}

/// Types that fields of a `#[derive(Tree)]` struct have.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be a field of a tree",
    label = "neither a tensor, a plain value nor a structure of them"
)]
pub trait TreeField: Sized {
    /// The field as a value.
    fn into_field(self) -> Value;

    /// The field of a value.
    ///
    /// # Errors
    /// Returns an error if the value is of another type.
    fn from_field(value: Value) -> Result<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: IntoValue + FromValue> TreeField for T {
    #[inline]
    fn into_field(self) -> Value {
        self.into_value()
    }

    #[inline]
    fn from_field(value: Value) -> Result<Self> {
        T::from_value(value)
    }
}

/// Types that arguments of `#[wrap]` and `#[trace]` functions have.
#[diagnostic::on_unimplemented(
    message = "an argument of type `{Self}` cannot flow through a graph",
    label = "not a tensor, a plain value or a structure of them",
    note = "a struct of such fields derives `Tree`",
    note = "numbers are `i64`, `usize` and `f64`, or `Int` and `Float`, which can be traced"
)]
pub trait Param<'v>: Sized {
    /// What is held while the argument is lent.
    type Guard: 'v;
    /// Whether it can be symbolic.
    const SYMBOLIC: bool = true;
    /// The type, as data.
    const TYPE: ParamType = ParamType::Named(TypeName::named::<Self>());

    /// Looks at a value.
    ///
    /// # Errors
    /// Returns an error if it is of another type.
    fn guard(value: &'v Value) -> Result<Self::Guard>;

    /// Lends it.
    fn lend(guard: &'v Self::Guard) -> Self;

    /// Whether it is symbolic.
    #[inline]
    fn is_symbolic(&self) -> bool {
        false
    }

    /// The argument as a value.
    fn to_value(&self) -> Value;
}

// ---- tensors -----------------------------------------------------------------------------------

/// A tensor that is borrowed from a value, or stands for its proxy.
pub enum Held<'v, T> {
    /// Borrowed.
    Ref(&'v T),
    /// Made from a proxy.
    Own(T),
}

/// Looks at a value as a tensor, borrowed or made from its proxy.
///
/// # Errors
/// Returns an error if it is neither.
pub fn hold<T: Traced>(value: &Value) -> Result<Held<'_, T>> {
    match value {
        Value::Proxy(proxy) => Ok(Held::Own(T::from_proxy(*proxy))),
        _ => match value.downcast_ref::<T>() {
            Some(object) => Ok(Held::Ref(object)),
            None => {
                let fake = value.downcast_ref::<FakeTensor>();
                let own = match fake {
                    Some(fake) => T::from_fake(fake.clone()),
                    None => T::from_plain(value),
                };
                own.map(Held::Own).ok_or_else(|| mismatch::<T>(value))
            }
        },
    }
}

#[diagnostic::do_not_recommend]
impl<T: Traced> FromValue for T {
    const TYPE: ParamType = ParamType::TensorOf(TypeName::of::<T>());

    fn from_value(value: Value) -> Result<Self> {
        match hold::<T>(&value)? {
            Held::Ref(object) => Ok(object.clone()),
            Held::Own(object) => Ok(object),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Traced + IntoValue> Output for T {
    #[inline]
    fn give(self, out: &mut Value) {
        match self.proxy() {
            Some(proxy) => *out = Value::Proxy(proxy),
            None => out.put_object(self),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'v, T: Traced> Param<'v> for &'v T {
    type Guard = Held<'v, T>;
    const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&<T as FromValue>::TYPE));

    #[inline]
    fn guard(value: &'v Value) -> Result<Self::Guard> {
        hold(value)
    }

    #[inline]
    fn lend(guard: &'v Self::Guard) -> Self {
        match guard {
            Held::Ref(object) => object,
            Held::Own(object) => object,
        }
    }

    #[inline]
    fn is_symbolic(&self) -> bool {
        self.has_no_data()
    }

    fn to_value(&self) -> Value {
        (*self).into_value()
    }
}

impl<'v, T: Traced + IntoValue> Param<'v> for &'v [T] {
    type Guard = Vec<T>;
    const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&ParamType::Slice(
        TypePart::Fixed(&<T as FromValue>::TYPE),
    )));

    fn guard(value: &'v Value) -> Result<Vec<T>> {
        Vec::from_value(value.clone())
    }

    fn lend(guard: &'v Vec<T>) -> Self {
        guard
    }

    fn is_symbolic(&self) -> bool {
        self.iter().any(T::has_no_data)
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(IntoValue::into_value).collect())
    }
}

// ---- scalars -----------------------------------------------------------------------------------

/// A plain scalar out of a value.
pub trait Scalar: Copy {
    /// The type, as data.
    const PLAIN_TYPE: ParamType;
    /// The type that may be symbolic, as data.
    const SCALAR_TYPE: ParamType;

    /// The scalar, if the value is one of its kind.
    fn scalar(value: &Value) -> Option<Self>;
}

impl Scalar for bool {
    const PLAIN_TYPE: ParamType = ParamType::Plain(ScalarType::Bool);
    const SCALAR_TYPE: ParamType = ParamType::Scalar(ScalarType::Bool);

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(x) => Some(*x),
            _ => None,
        }
    }
}

impl Scalar for i64 {
    const PLAIN_TYPE: ParamType = ParamType::Plain(ScalarType::Int);
    const SCALAR_TYPE: ParamType = ParamType::Scalar(ScalarType::Int);

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::Int(x) => Some(*x),
            _ => None,
        }
    }
}

impl Scalar for f64 {
    const PLAIN_TYPE: ParamType = ParamType::Plain(ScalarType::Float);
    const SCALAR_TYPE: ParamType = ParamType::Scalar(ScalarType::Float);

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::Float(x) => Some(*x),
            // An integer literal is a float where a float is wanted, as in Python.
            Value::Int(n) => Some(*n as f64),
            _ => None,
        }
    }
}

impl Scalar for usize {
    const PLAIN_TYPE: ParamType = ParamType::Plain(ScalarType::Int);
    const SCALAR_TYPE: ParamType = ParamType::Scalar(ScalarType::Int);

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::Int(x) => usize::try_from(*x).ok(),
            _ => None,
        }
    }
}

impl Scalar for DType {
    const PLAIN_TYPE: ParamType = ParamType::Named(TypeName::of::<DType>());
    const SCALAR_TYPE: ParamType = ParamType::Named(TypeName::of::<Sym<DType>>());

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::DType(x) => Some(*x),
            _ => None,
        }
    }
}

impl Scalar for Device {
    const PLAIN_TYPE: ParamType = ParamType::Named(TypeName::of::<Device>());
    const SCALAR_TYPE: ParamType = ParamType::Named(TypeName::of::<Sym<Device>>());

    fn scalar(value: &Value) -> Option<Self> {
        match value {
            Value::Device(x) => Some(*x),
            _ => None,
        }
    }
}

/// The error of a plain value where a symbolic one came: it has to be specialised, or it escaped.
fn plain<T>(value: &Value) -> Error {
    match value {
        Value::Proxy(_) => ErrorKind::Unspecialised {
            argument: String::new(),
            ty: short_type_name(std::any::type_name::<T>()),
        }
        .into(),
        _ => mismatch::<T>(value),
    }
}

macro_rules! plain_param {
    ($($t:ty),*) => {$(
        impl FromValue for $t {
            const TYPE: ParamType = <$t as Scalar>::PLAIN_TYPE;

            fn from_value(value: Value) -> Result<Self> {
                match value {
                    Value::Proxy(proxy) => Err(escape(stringify!($t), proxy)),
                    value => <$t as Scalar>::scalar(&value).ok_or_else(|| mismatch::<$t>(&value)),
                }
            }
        }
        impl<'v> Param<'v> for $t {
            type Guard = $t;
            const SYMBOLIC: bool = false;
            const TYPE: ParamType = <$t as Scalar>::PLAIN_TYPE;
            fn guard(value: &'v Value) -> Result<$t> {
                <$t as Scalar>::scalar(value).ok_or_else(|| plain::<$t>(value))
            }
            fn lend(guard: &'v $t) -> $t {
                *guard
            }
            fn to_value(&self) -> Value {
                (*self).into_value()
            }
        }
    )*};
}
plain_param!(bool, i64, f64, usize, DType, Device);

impl FromValue for String {
    const TYPE: ParamType = ParamType::Str;

    fn from_value(value: Value) -> Result<Self> {
        match &value {
            Value::Str(text) => Ok(text.to_string()),
            Value::Proxy(proxy) => Err(escape("String", *proxy)),
            value => Err(mismatch::<String>(value)),
        }
    }
}

impl<'v> Param<'v> for &'v str {
    type Guard = Arc<str>;
    const SYMBOLIC: bool = false;
    const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&ParamType::Str));

    fn guard(value: &'v Value) -> Result<Arc<str>> {
        match value {
            Value::Str(text) => Ok(text.clone()),
            value => Err(plain::<&str>(value)),
        }
    }

    fn lend(guard: &'v Arc<str>) -> Self {
        guard
    }

    fn to_value(&self) -> Value {
        (*self).into_value()
    }
}

impl<T: Scalar> FromValue for Sym<T> {
    const TYPE: ParamType = T::SCALAR_TYPE;

    fn from_value(value: Value) -> Result<Self> {
        match &value {
            Value::Proxy(proxy) => Ok(Sym::Proxy(*proxy)),
            other => T::scalar(other)
                .map(Sym::Concrete)
                .ok_or_else(|| mismatch::<T>(other)),
        }
    }
}

impl<T: Scalar + IntoValue> Output for Sym<T> {}

impl<'v, T: Scalar + IntoValue + 'v> Param<'v> for Sym<T> {
    type Guard = Sym<T>;
    const TYPE: ParamType = T::SCALAR_TYPE;

    fn guard(value: &'v Value) -> Result<Sym<T>> {
        Sym::from_value(value.clone())
    }

    fn lend(guard: &'v Sym<T>) -> Self {
        *guard
    }

    fn is_symbolic(&self) -> bool {
        matches!(self, Sym::Proxy(_))
    }

    fn to_value(&self) -> Value {
        (*self).into_value()
    }
}

impl FromValue for Proxy {
    fn from_value(value: Value) -> Result<Self> {
        value.as_proxy().ok_or_else(|| mismatch::<Proxy>(&value))
    }
}

impl FromValue for Value {
    const TYPE: ParamType = ParamType::AnyValue;

    fn from_value(value: Value) -> Result<Self> {
        Ok(value)
    }
}
impl Output for Value {}

impl<'v> Param<'v> for &'v Value {
    type Guard = &'v Value;
    const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&ParamType::AnyValue));

    fn guard(value: &'v Value) -> Result<&'v Value> {
        Ok(value)
    }

    fn lend(guard: &'v &'v Value) -> Self {
        guard
    }

    fn is_symbolic(&self) -> bool {
        self.holds_no_data()
    }

    fn to_value(&self) -> Value {
        (*self).clone()
    }
}

impl<'v> Param<'v> for Value {
    type Guard = &'v Value;
    const TYPE: ParamType = ParamType::AnyValue;

    fn guard(value: &'v Value) -> Result<&'v Value> {
        Ok(value)
    }

    fn lend(guard: &'v &'v Value) -> Self {
        (*guard).clone()
    }

    fn is_symbolic(&self) -> bool {
        self.holds_no_data()
    }

    fn to_value(&self) -> Value {
        self.clone()
    }
}

// ---- structures --------------------------------------------------------------------------------

impl<'v, P: Param<'v>> Param<'v> for Option<P> {
    type Guard = Option<P::Guard>;
    const SYMBOLIC: bool = P::SYMBOLIC;
    const TYPE: ParamType = ParamType::Optional(TypePart::Fixed(&P::TYPE));

    #[inline]
    fn guard(value: &'v Value) -> Result<Self::Guard> {
        match value {
            Value::None => Ok(None),
            value => P::guard(value).map(Some),
        }
    }

    #[inline]
    fn lend(guard: &'v Self::Guard) -> Self {
        guard.as_ref().map(P::lend)
    }

    #[inline]
    fn is_symbolic(&self) -> bool {
        self.as_ref().is_some_and(P::is_symbolic)
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::None, P::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const TYPE: ParamType = ParamType::Optional(TypePart::Fixed(&T::TYPE));

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::None => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A recorded result that may be absent is taken as present, as an argument is.
impl<T: Output> Output for Option<T> {}

impl FromValue for () {
    const TYPE: ParamType = ParamType::Tuple(TypePart::Fixed(&[]));

    fn from_value(_: Value) -> Result<Self> {
        Ok(())
    }
}
impl Output for () {}

fn items<T>(mut value: Value) -> Result<Box<[Value]>> {
    match &mut value {
        Value::List(items) | Value::Tuple(items) => Ok(std::mem::take(items)),
        value => Err(mismatch::<T>(value)),
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const TYPE: ParamType = ParamType::Sequence(TypePart::Fixed(&T::TYPE));

    fn from_value(value: Value) -> Result<Self> {
        each(items::<Self>(value)?.into_vec())
    }
}

/// Each value as a `T`. A loop: the standard library's ways to collect results are several times as much code in each
/// crate.
fn each<T: FromValue>(values: Vec<Value>) -> Result<Vec<T>> {
    let mut converted = Vec::with_capacity(values.len());
    for value in values {
        converted.push(T::from_value(value)?);
    }
    Ok(converted)
}

/// As many as were asked for, as an array.
fn array<T, const N: usize>(parts: Vec<T>) -> Result<[T; N]> {
    parts
        .try_into()
        .map_err(|_| Error::msg("as many parts as were asked for"))
}

/// The results of a call that has several: taken apart, or one `getitem` each for a symbolic one.
fn unpack<const N: usize>(value: Value, what: &str) -> Result<[Value; N]> {
    array(parts(value, N, what)?)
}

fn parts(mut value: Value, count: usize, what: &str) -> Result<Vec<Value>> {
    let found = match &mut value {
        Value::Proxy(proxy) => return unpack::unpack(*proxy, count),
        Value::List(items) | Value::Tuple(items) if items.len() == count => {
            return Ok(std::mem::take(items).into_vec());
        }
        Value::List(items) | Value::Tuple(items) => items.len().to_string(),
        value => value.describe(),
    };
    Err(Error::expected(format_args!("{what} of {count}"), found))
}

/// The fields of a `#[derive(Tree)]` struct: taken out of a dict, or one `getitem` each for a
/// symbolic one.
///
/// # Errors
/// Returns an error if the value is not a dict, or has other keys.
#[doc(hidden)]
pub fn fields<const N: usize>(value: Value, what: &str, names: [&str; N]) -> Result<[Value; N]> {
    array(named(value, what, &names)?)
}

fn named(mut value: Value, what: &str, names: &[&str]) -> Result<Vec<Value>> {
    let wrong = |found: String| {
        Error::expected(
            format_args!("`{what}`, a dict with {}", names.join(", ")),
            found,
        )
    };
    match &mut value {
        Value::Proxy(proxy) => unpack::unpack_fields(*proxy, names),
        Value::Dict(map)
            if map.len() == names.len() && names.iter().all(|name| map.contains_key(*name)) =>
        {
            let field = |name: &&str| map.get_mut(*name).map(std::mem::take).unwrap_or_default();
            Ok(names.iter().map(field).collect())
        }
        Value::Dict(map) => {
            let keys: Vec<&str> = map.keys().map(|key| &**key).collect();
            Err(wrong(format!("a dict with {}", keys.join(", "))))
        }
        value => Err(wrong(value.describe())),
    }
}

/// The fields of a `#[derive(Tree)]` tuple struct.
///
/// # Errors
/// Returns an error if the value is not a tuple of the same length.
#[doc(hidden)]
pub fn tuple_fields<const N: usize>(value: Value, what: &str) -> Result<[Value; N]> {
    unpack::<N>(value, what)
}

impl<T: FromValue, const N: usize> FromValue for [T; N] {
    const TYPE: ParamType = ParamType::Slice(TypePart::Fixed(&T::TYPE));

    fn from_value(value: Value) -> Result<Self> {
        array(each(parts(value, N, "a list")?)?)
    }
}
impl<T: Output, const N: usize> Output for [T; N] {}

impl<K: From<String> + AsRef<str> + Eq + Hash, T: FromValue> FromValue for IndexMap<K, T> {
    const TYPE: ParamType = ParamType::Map(TypePart::Fixed(&T::TYPE));

    fn from_value(value: Value) -> Result<Self> {
        let mut value = value;
        match &mut value {
            Value::Dict(map) => std::mem::take(&mut **map)
                .into_iter()
                .map(|(k, v)| Ok((K::from(k.to_string()), T::from_value(v)?)))
                .collect(),
            value => Err(mismatch::<Self>(value)),
        }
    }
}

macro_rules! tuple_from_value {
    ($count:literal: $($name:ident)+) => {
        impl<$($name: FromValue),+> FromValue for ($($name,)+) {
            const TYPE: ParamType = ParamType::Tuple(TypePart::Fixed(&[$($name::TYPE),+]));

            #[allow(non_snake_case)]
            fn from_value(value: Value) -> Result<Self> {
                let [$($name),+] = unpack::<$count>(value, "a tuple")?;
                Ok(($($name::from_value($name)?,)+))
            }
        }
        impl<$($name: Output),+> Output for ($($name,)+) {}
    };
}
tuple_from_value! { 1: A }
tuple_from_value! { 2: A B }
tuple_from_value! { 3: A B C }
tuple_from_value! { 4: A B C D }
tuple_from_value! { 5: A B C D E }
tuple_from_value! { 6: A B C D E F }

macro_rules! owned_param {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        /// An owned structure is taken from the value's parts.
        impl<'v, $($generics)*> Param<'v> for $t {
            type Guard = $t;
            const TYPE: ParamType = <$t as FromValue>::TYPE;

            fn guard(value: &'v Value) -> Result<Self::Guard> {
                <$t>::from_value(value.clone())
            }

            fn lend(guard: &'v Self::Guard) -> Self {
                guard.clone()
            }

            fn is_symbolic(&self) -> bool {
                true
            }

            fn to_value(&self) -> Value {
                self.clone().into_value()
            }
        }
    )*};
}

owned_param! {
    [T: FromValue + IntoValue + Clone + 'v] Vec<T>;
    [T: FromValue + IntoValue + Clone + 'v, const N: usize] [T; N];
    [A: FromValue + IntoValue + Clone + 'v] (A,);
    [A: FromValue + IntoValue + Clone + 'v, B: FromValue + IntoValue + Clone + 'v] (A, B);
    [A: FromValue + IntoValue + Clone + 'v, B: FromValue + IntoValue + Clone + 'v, C: FromValue + IntoValue + Clone + 'v] (A, B, C);
    [A: FromValue + IntoValue + Clone + 'v, B: FromValue + IntoValue + Clone + 'v, C: FromValue + IntoValue + Clone + 'v, D: FromValue + IntoValue + Clone + 'v] (A, B, C, D);
    [T: FromValue + IntoValue + Clone + 'v] IndexMap<String, T>;
}
impl<T: Output> Output for Vec<T> {}
impl<T: Output> Output for IndexMap<String, T> {}
