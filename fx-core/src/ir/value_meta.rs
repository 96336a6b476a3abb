//! `ValueMeta`: what a value is without its data, as nodes' entries and shape rules have it.
//!
//! Invariant: it holds no tensor, and an entry of a node holds no object at all.

use std::fmt;
use std::sync::Arc;

use super::meta::{Meta, MetaPolicy};
use super::tensor_meta::TensorMeta;
use crate::error::{Error, Result};
use crate::text::count;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::fake_number::FakeNumber;
use crate::value::fake_tensor::FakeTensor;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// How many equal items an entry lists.
const LISTED: usize = 4096;

/// What is known of a value without a run: the shape and the type of a tensor, the expression of a
/// whole number, the kind of another number, and the items of a structure.
///
/// It is what a shape rule reads and returns, and the entry that describes a node's value. A list
/// equals a tuple of the same items.
///
/// ```
/// use fx_core::ir::{TensorMeta, ValueMeta};
/// use fx_core::value::{DType, Dim, Value};
/// let rows = ValueMeta::from(TensorMeta::new([Dim::symbol("n")?, 8.into()]).dtype(DType::F32));
/// let pair = ValueMeta::Tuple(vec![rows, ValueMeta::Int(Dim::symbol("n")?)]);
/// assert_eq!(pair.to_string(), "(float32[n, 8], n)");
/// assert!(pair.known().is_none());
/// assert_eq!(ValueMeta::of(&Value::Int(7)), ValueMeta::Int(7.into()));
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ValueMeta {
    /// A tensor.
    Single(Arc<TensorMeta>),
    /// An integer, such as a size.
    Int(Dim),
    /// A number; `None` if a run decides it.
    Float(Option<f64>),
    /// A boolean; `None` if a run decides it.
    Bool(Option<bool>),
    /// A list.
    List(Vec<ValueMeta>),
    /// A list of items that are alike, of a length that may be symbolic.
    Repeated(Box<ValueMeta>, Dim),
    /// A tuple.
    Tuple(Vec<ValueMeta>),
    /// Named values, in order.
    Dict(Vec<(Arc<str>, ValueMeta)>),
    /// Start, stop and step.
    Slice(Box<[ValueMeta; 3]>),
    /// A value that is known: `None`, a string, an element type, a device, an ellipsis or a range.
    /// Of an argument of a shape rule it may be an object.
    Plain(Value),
    /// A tensor of which a run decides even the number of dims; its element type, if that is known.
    Unranked(Option<DType>),
    /// A value of which nothing is known but this description.
    Opaque(Arc<str>),
}

impl Meta for ValueMeta {
    // A copy has the same value; a replacement may not.
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Recompute;
    const IN_PARTS: bool = true;
}

impl From<TensorMeta> for ValueMeta {
    fn from(meta: TensorMeta) -> Self {
        ValueMeta::Single(Arc::new(meta))
    }
}

impl ValueMeta {
    /// What is known of a value. Of an object that is no tensor, that is its type.
    pub fn of(value: &Value) -> Self {
        ValueMeta::build(value, &|other| ValueMeta::Opaque(other.to_string().into()))
    }

    /// What a shape rule knows of an argument: an object that is no tensor is itself.
    pub(crate) fn of_argument(value: &Value) -> Self {
        ValueMeta::build(value, &|other| ValueMeta::Plain(other.clone()))
    }

    fn build(value: &Value, object: &dyn Fn(&Value) -> Self) -> Self {
        let of = |value: &Value| ValueMeta::build(value, object);
        let all = |items: &[Value]| items.iter().map(of).collect();
        match value {
            Value::Int(number) => ValueMeta::Int((*number).into()),
            Value::Float(number) => ValueMeta::Float(Some(*number)),
            Value::Bool(boolean) => ValueMeta::Bool(Some(*boolean)),
            Value::List(items) => ValueMeta::List(all(items)),
            Value::Tuple(items) => ValueMeta::Tuple(all(items)),
            Value::Dict(items) => {
                let items = items.iter().map(|(key, item)| (key.clone(), of(item)));
                ValueMeta::Dict(items.collect())
            }
            Value::Slice(ends) => ValueMeta::Slice(Box::new(ends.each_ref().map(of))),
            Value::Proxy(proxy) => match proxy.fake_number() {
                Some(FakeNumber::Size(dim)) => ValueMeta::Int(dim),
                Some(FakeNumber::Float) => ValueMeta::Float(None),
                Some(FakeNumber::Bool) => ValueMeta::Bool(None),
                None => object(value),
            },
            Value::Object(_) => match value.as_object().and_then(TensorMeta::of) {
                Some(tensor) => tensor.into(),
                None => object(value),
            },
            plain => ValueMeta::Plain(plain.clone()),
        }
    }

    /// The entry, if it says more than a description.
    #[deprecated(note = "an entry is what a shape rule takes")]
    pub fn of_meta(meta: &ValueMeta) -> Option<Self> {
        (!meta.is_opaque()).then(|| meta.clone())
    }

    /// No value.
    pub fn none() -> Self {
        ValueMeta::Plain(Value::None)
    }

    /// Whether it is a tensor whose number of dims a run decides, or has one among its items.
    pub(crate) fn has_unranked(&self) -> bool {
        let of = |item: &ValueMeta| matches!(item, ValueMeta::Unranked(_));
        of(self) || self.items().is_some_and(|items| items.iter().any(of))
    }

    /// The same with tensors of this many dims, of any sizes, in place of those whose number of dims a run decides.
    pub(crate) fn of_rank(
        &self,
        rank: usize,
        size: &mut dyn FnMut() -> Result<Dim>,
    ) -> Result<Self> {
        let mut one = |item: &ValueMeta| {
            let ValueMeta::Unranked(dtype) = item else {
                return Ok(item.clone());
            };
            let sizes = (0..rank).map(|_| size()).collect::<Result<Vec<Dim>>>()?;
            let mut meta = TensorMeta::new(sizes);
            meta.dtype = *dtype;
            Ok(ValueMeta::from(meta))
        };
        Ok(match self {
            ValueMeta::List(items) => {
                ValueMeta::List(items.iter().map(one).collect::<Result<_>>()?)
            }
            ValueMeta::Tuple(items) => {
                ValueMeta::Tuple(items.iter().map(one).collect::<Result<_>>()?)
            }
            other => one(other)?,
        })
    }

    /// The same with tensors whose number of dims a run decides in place of those of known dims; nothing of what else it
    /// says is known then.
    pub(crate) fn unranked(&self) -> Self {
        match self {
            ValueMeta::Single(meta) => ValueMeta::Unranked(meta.dtype),
            ValueMeta::Tuple(items) if items.iter().all(|item| item.as_tensor().is_some()) => {
                ValueMeta::Tuple(items.iter().map(ValueMeta::unranked).collect())
            }
            _ => ValueMeta::Unranked(None),
        }
    }

    /// As a value, tensors without their data.
    ///
    /// # Errors
    /// Returns an error if it is a list whose length is not known, or a value of which only a
    /// description is.
    pub(crate) fn to_value(&self) -> Result<Value> {
        let all = |items: &[ValueMeta]| {
            let items = items.iter().map(ValueMeta::to_value);
            items.collect::<Result<Box<[_]>>>()
        };
        Ok(match self {
            ValueMeta::Single(meta) => {
                let fake = FakeTensor::new(meta.shape.clone(), meta.dtype, meta.device);
                Value::object(fake.with_grad(meta.requires_grad == Some(true)))
            }
            ValueMeta::Int(dim) => match dim.as_number() {
                Some(number) => Value::Int(number),
                None => Value::Proxy(Proxy::of_fake(FakeNumber::Size(dim.clone()))),
            },
            ValueMeta::Float(None) => Value::Proxy(Proxy::of_fake(FakeNumber::Float)),
            ValueMeta::Bool(None) => Value::Proxy(Proxy::of_fake(FakeNumber::Bool)),
            ValueMeta::Float(Some(number)) => Value::Float(*number),
            ValueMeta::Bool(Some(boolean)) => Value::Bool(*boolean),
            ValueMeta::List(items) => Value::List(all(items)?),
            ValueMeta::Tuple(items) => Value::Tuple(all(items)?),
            ValueMeta::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.to_value()?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
            ValueMeta::Repeated(item, length) => match length.as_known() {
                Some(length @ ..=LISTED) => Value::List(vec![item.to_value()?; length].into()),
                _ => {
                    return Err(Error::msg(format_args!(
                        "a list of {length} items cannot be made: trace the function, and infer the shapes of the graph"
                    )));
                }
            },
            ValueMeta::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(ValueMeta::to_value);
                Value::Slice(Box::new([start?, stop?, step?]))
            }
            ValueMeta::Plain(value) => value.clone(),
            unknown @ (ValueMeta::Opaque(_) | ValueMeta::Unranked(_)) => {
                return Err(Error::msg(format_args!("nothing is known of {unknown}")));
            }
        })
    }

    /// The value, if all of it is known; tensors are not.
    pub fn known(&self) -> Option<Value> {
        let all = |items: &[ValueMeta]| {
            let items = items.iter().map(ValueMeta::known);
            items.collect::<Option<Box<[_]>>>()
        };
        Some(match self {
            ValueMeta::Single(_)
            | ValueMeta::Repeated(..)
            | ValueMeta::Unranked(_)
            | ValueMeta::Opaque(_) => return None,
            ValueMeta::Int(dim) => Value::Int(dim.as_number()?),
            ValueMeta::Float(number) => Value::Float((*number)?),
            ValueMeta::Bool(boolean) => Value::Bool((*boolean)?),
            ValueMeta::List(items) => Value::List(all(items)?),
            ValueMeta::Tuple(items) => Value::Tuple(all(items)?),
            ValueMeta::Dict(items) => {
                let items = items.iter().map(|(k, v)| Some((k.clone(), v.known()?)));
                Value::Dict(Box::new(items.collect::<Option<_>>()?))
            }
            ValueMeta::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(ValueMeta::known);
                Value::Slice(Box::new([start?, stop?, step?]))
            }
            ValueMeta::Plain(value) => value.clone(),
        })
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, ValueMeta::Plain(Value::None))
    }

    /// Whether nothing in it is left to a run: all sizes and numbers are known.
    ///
    /// ```
    /// use fx_core::ir::ValueMeta;
    /// assert!(ValueMeta::Int(7.into()).is_closed());
    /// assert!(!ValueMeta::Float(None).is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        match self {
            ValueMeta::Single(meta) => meta.shape.iter().all(|dim| dim.as_known().is_some()),
            ValueMeta::Int(dim) => dim.as_number().is_some(),
            ValueMeta::Float(number) => number.is_some(),
            ValueMeta::Bool(truth) => truth.is_some(),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                items.iter().all(ValueMeta::is_closed)
            }
            ValueMeta::Repeated(item, length) => length.as_known().is_some() && item.is_closed(),
            ValueMeta::Dict(items) => items.iter().all(|(_, item)| item.is_closed()),
            ValueMeta::Slice(ends) => ends.iter().all(ValueMeta::is_closed),
            ValueMeta::Plain(_) => true,
            ValueMeta::Unranked(_) | ValueMeta::Opaque(_) => false,
        }
    }

    /// Whether only a description is known of a part of it.
    pub(crate) fn is_opaque(&self) -> bool {
        match self {
            ValueMeta::Opaque(_) | ValueMeta::Unranked(_) => true,
            ValueMeta::Repeated(item, _) => item.is_opaque(),
            ValueMeta::Dict(items) => items.iter().any(|(_, item)| item.is_opaque()),
            ValueMeta::Slice(ends) => ends.iter().any(ValueMeta::is_opaque),
            other => other
                .items()
                .is_some_and(|items| items.iter().any(ValueMeta::is_opaque)),
        }
    }

    /// The tensor's meta, if the value is one tensor.
    pub fn tensor(&self) -> Option<&TensorMeta> {
        self.as_tensor().map(|meta| &**meta)
    }

    /// The tensor's meta to share, if the value is one tensor.
    pub fn as_tensor(&self) -> Option<&Arc<TensorMeta>> {
        match self {
            ValueMeta::Single(meta) => Some(meta),
            _ => None,
        }
    }

    /// The element type of the tensor, or of the first of several.
    ///
    /// ```
    /// use fx_core::ir::ValueMeta;
    /// assert_eq!(ValueMeta::Int(7.into()).dtype(), None);
    /// ```
    pub fn dtype(&self) -> Option<DType> {
        let first = self.items().and_then(<[ValueMeta]>::first);
        first.unwrap_or(self).tensor()?.dtype
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<&[ValueMeta]> {
        match self {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The integer, which may be symbolic.
    ///
    /// # Errors
    /// Returns an error if it is something else.
    pub fn dim(&self) -> Result<Dim> {
        match self {
            ValueMeta::Int(dim) => Ok(dim.clone()),
            other => Err(Error::expected("a whole number", other.describe())),
        }
    }

    /// The integer.
    ///
    /// # Errors
    /// Returns an error if it is something else, or symbolic.
    pub fn int(&self) -> Result<i64> {
        let dim = self.dim()?;
        dim.as_number().ok_or_else(|| {
            Error::msg(format_args!(
                "the shape depends on the value of `{dim}`, which only a run knows"
            ))
        })
    }

    /// The entry of a node with this value: objects are described, and a short list of items that
    /// are alike is listed.
    pub(crate) fn entry(&self) -> Self {
        let all = |items: &[ValueMeta]| items.iter().map(ValueMeta::entry).collect();
        match self {
            ValueMeta::Plain(object @ (Value::Object(_) | Value::Proxy(_))) => {
                ValueMeta::of(object)
            }
            ValueMeta::List(items) => ValueMeta::List(all(items)),
            ValueMeta::Tuple(items) => ValueMeta::Tuple(all(items)),
            ValueMeta::Dict(items) => {
                let items = items.iter().map(|(key, item)| (key.clone(), item.entry()));
                ValueMeta::Dict(items.collect())
            }
            ValueMeta::Repeated(item, length) => match length.as_known() {
                Some(length @ ..=LISTED) => ValueMeta::List(vec![item.entry(); length]),
                _ => ValueMeta::Repeated(Box::new(item.entry()), length.clone()),
            },
            ValueMeta::Slice(ends) => {
                ValueMeta::Slice(Box::new(ends.each_ref().map(ValueMeta::entry)))
            }
            other => other.clone(),
        }
    }

    /// With other sizes in place of symbols.
    pub(crate) fn with(&self, of: &dyn Fn(&str) -> Option<Dim>) -> Result<Self> {
        let sizes = |dims: &[Dim]| dims.iter().map(|dim| dim.with(of)).collect::<Result<_>>();
        let all = |items: &[ValueMeta]| {
            let items = items.iter().map(|item| item.with(of));
            items.collect::<Result<Vec<_>>>()
        };
        Ok(match self {
            ValueMeta::Single(meta) => {
                let strides = meta.strides.as_deref().map(sizes).transpose()?;
                ValueMeta::from(TensorMeta {
                    shape: sizes(&meta.shape)?,
                    strides,
                    ..(**meta).clone()
                })
            }
            ValueMeta::Int(dim) => ValueMeta::Int(dim.with(of)?),
            ValueMeta::List(items) => ValueMeta::List(all(items)?),
            ValueMeta::Tuple(items) => ValueMeta::Tuple(all(items)?),
            ValueMeta::Repeated(item, length) => {
                ValueMeta::Repeated(Box::new(item.with(of)?), length.with(of)?)
            }
            ValueMeta::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| Ok((key.clone(), item.with(of)?)));
                ValueMeta::Dict(items.collect::<Result<_>>()?)
            }
            ValueMeta::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(|end| end.with(of));
                ValueMeta::Slice(Box::new([start?, stop?, step?]))
            }
            ValueMeta::Float(_)
            | ValueMeta::Bool(_)
            | ValueMeta::Plain(_)
            | ValueMeta::Unranked(_)
            | ValueMeta::Opaque(_) => self.clone(),
        })
    }

    /// Whether any size in it is as asked for.
    pub(crate) fn any_dim(&self, is_it: &dyn Fn(&Dim) -> bool) -> bool {
        match self {
            ValueMeta::Single(meta) => meta.shape.iter().any(is_it),
            ValueMeta::Int(dim) => is_it(dim),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                items.iter().any(|item| item.any_dim(is_it))
            }
            ValueMeta::Dict(items) => items.iter().any(|(_, item)| item.any_dim(is_it)),
            ValueMeta::Slice(ends) => ends.iter().any(|end| end.any_dim(is_it)),
            ValueMeta::Repeated(item, length) => is_it(length) || item.any_dim(is_it),
            ValueMeta::Float(_)
            | ValueMeta::Bool(_)
            | ValueMeta::Plain(_)
            | ValueMeta::Unranked(_)
            | ValueMeta::Opaque(_) => false,
        }
    }

    /// The bytes of all tensors in it, as an expression of their sizes.
    ///
    /// ```
    /// use fx_core::ir::{TensorMeta, ValueMeta};
    /// use fx_core::value::{DType, Dim};
    /// let rows = TensorMeta::new([Dim::symbol("n")?, 8.into()]).dtype(DType::F32);
    /// let meta = ValueMeta::List(vec![rows.clone().into(), rows.into()]);
    /// assert_eq!(meta.memory()?.to_string(), "64*n");
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if an element type is not known, or the number does not fit an `i64`.
    pub fn memory(&self) -> Result<Dim> {
        let mut all: Box<dyn Iterator<Item = &ValueMeta>> = match self {
            ValueMeta::Single(meta) => return meta.memory(),
            ValueMeta::Repeated(item, length) => return item.memory()? * length.clone(),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => Box::new(items.iter()),
            ValueMeta::Dict(items) => Box::new(items.iter().map(|(_, item)| item)),
            _ => return Ok(Dim::known(0)),
        };
        all.try_fold(Dim::known(0), |sum, item| sum + item.memory()?)
    }

    /// The total size of all tensors in bytes, as far as their types are known.
    pub fn bytes(&self) -> usize {
        match self {
            ValueMeta::Single(meta) => meta.bytes().unwrap_or(0),
            ValueMeta::Repeated(item, length) => {
                item.bytes().saturating_mul(length.as_known().unwrap_or(0))
            }
            ValueMeta::List(items) | ValueMeta::Tuple(items) => total(items.iter()),
            ValueMeta::Dict(items) => total(items.iter().map(|(_, v)| v)),
            _ => 0,
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            ValueMeta::Single(meta) => format!("a tensor {meta}"),
            ValueMeta::Repeated(item, length) => format!("{length} times {}", item.describe()),
            ValueMeta::List(items) => format!("a list of {}", items.len()),
            ValueMeta::Tuple(items) => format!("a tuple of {}", items.len()),
            ValueMeta::Dict(items) => format!("a dict of {}", count(items.len(), "item")),
            ValueMeta::Slice(_) => "a slice".to_string(),
            ValueMeta::Plain(value) => value.describe(),
            number => number.to_string(),
        }
    }
}

fn total<'m>(items: impl Iterator<Item = &'m ValueMeta>) -> usize {
    items.fold(0, |sum, item| sum.saturating_add(item.bytes()))
}

/// Numbers are equal by their bits, and objects by their type.
impl PartialEq for ValueMeta {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ValueMeta::Single(a), ValueMeta::Single(b)) => a == b,
            (ValueMeta::Int(a), ValueMeta::Int(b)) => a == b,
            (ValueMeta::Float(a), ValueMeta::Float(b)) => {
                a.map(f64::to_bits) == b.map(f64::to_bits)
            }
            (ValueMeta::Bool(a), ValueMeta::Bool(b)) => a == b,
            (ValueMeta::Repeated(a, m), ValueMeta::Repeated(b, n)) => a == b && m == n,
            (ValueMeta::Dict(a), ValueMeta::Dict(b)) => a == b,
            (ValueMeta::Slice(a), ValueMeta::Slice(b)) => a == b,
            (ValueMeta::Plain(a), ValueMeta::Plain(b)) => is_same_plain(a, b),
            (ValueMeta::Unranked(a), ValueMeta::Unranked(b)) => a == b,
            (ValueMeta::Opaque(a), ValueMeta::Opaque(b)) => a == b,
            _ => match (self.items(), other.items()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }
}

impl Eq for ValueMeta {}

/// Whether two values without items are the same, as far as can be told.
fn is_same_plain(a: &Value, b: &Value) -> bool {
    if let (Value::Range(a), Value::Range(b)) = (a, b) {
        let ends = |ends: &[Value; 3]| ends.each_ref().map(ValueMeta::of_argument);
        return ends(a) == ends(b);
    }
    a.is_same_object(b)
        || std::mem::discriminant(a) == std::mem::discriminant(b) && a.to_string() == b.to_string()
}

/// Shown like [`TensorMeta`], also with `{:#}`; structures are in parentheses and braces.
impl fmt::Display for ValueMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_full = f.alternate();
        let shown = |meta: &ValueMeta| match in_full {
            true => format!("{meta:#}"),
            false => meta.to_string(),
        };
        match self {
            ValueMeta::Single(meta) => meta.fmt(f),
            ValueMeta::Int(dim) => dim.fmt(f),
            ValueMeta::Float(Some(number)) => write!(f, "{number:?}"),
            ValueMeta::Float(None) => f.write_str("a number"),
            ValueMeta::Bool(Some(boolean)) => write!(f, "{boolean}"),
            ValueMeta::Bool(None) => f.write_str("a boolean"),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                write!(f, "({})", items.join(", "))
            }
            ValueMeta::Repeated(item, length) => write!(f, "({length} times {})", shown(item)),
            ValueMeta::Dict(items) => {
                let items = items.iter().map(|(k, v)| format!("{k}: {}", shown(v)));
                let items: Vec<String> = items.collect();
                write!(f, "{{{}}}", items.join(", "))
            }
            ValueMeta::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(shown);
                write!(f, "slice({start}, {stop}, {step})")
            }
            ValueMeta::Plain(value) => value.fmt(f),
            ValueMeta::Unranked(Some(dtype)) => {
                write!(f, "a tensor of {dtype} whose number of dims a run decides")
            }
            ValueMeta::Unranked(None) => f.write_str("a tensor whose number of dims a run decides"),
            ValueMeta::Opaque(what) => f.write_str(what),
        }
    }
}
