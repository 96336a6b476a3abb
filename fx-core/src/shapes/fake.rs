//! `Fake`: a value as a shape rule sees it, tensors without their data.

use std::fmt;
use std::sync::Arc;

use super::env::ShapeEnv;
use crate::error::{Error, Result};
use crate::ir::value_meta::{TensorMeta, ValueMeta};
use crate::text::count;
use crate::value::dim::Dim;
use crate::value::fake_tensor::{FakeNumber, FakeTensor};
use crate::value::value::Value;

/// What an entry says of a number, and of a truth, that a run decides.
const A_NUMBER: &str = "a number";
const A_TRUTH: &str = "a truth";

/// How many equal items an entry lists.
const LISTED: usize = 4096;

/// A value of which as much is known as without a run: of a tensor the shape and the type, of a
/// whole number the expression, of another number only if it is a literal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fake {
    /// A tensor.
    Single(Arc<TensorMeta>),
    /// A whole number, such as a size.
    Int(Dim),
    /// A number; `None` if a run decides it.
    Float(Option<f64>),
    /// A truth; `None` if a run decides it.
    Bool(Option<bool>),
    /// A list.
    List(Vec<Fake>),
    /// A list of items that are alike, of a length that may be symbolic.
    Repeated(Box<Fake>, Dim),
    /// A tuple.
    Tuple(Vec<Fake>),
    /// Named values, in order.
    Dict(Vec<(Arc<str>, Fake)>),
    /// Start, stop and step.
    Slice(Box<[Fake; 3]>),
    /// Anything else: it is itself.
    Plain(Value),
}

impl Fake {
    /// A tensor.
    pub fn tensor(meta: TensorMeta) -> Self {
        Fake::Single(Arc::new(meta))
    }

    /// No value.
    pub fn none() -> Self {
        Fake::Plain(Value::None)
    }

    /// A value that is there.
    pub fn of(value: &Value) -> Self {
        let all = |items: &[Value]| items.iter().map(Fake::of).collect();
        match value {
            Value::Int(number) => Fake::Int((*number).into()),
            Value::Float(number) => Fake::Float(Some(*number)),
            Value::Bool(truth) => Fake::Bool(Some(*truth)),
            Value::List(items) => Fake::List(all(items)),
            Value::Tuple(items) => Fake::Tuple(all(items)),
            Value::Dict(items) => {
                let items = items.iter();
                Fake::Dict(items.map(|(k, v)| (k.clone(), Fake::of(v))).collect())
            }
            Value::Slice(ends) => Fake::Slice(Box::new(ends.each_ref().map(Fake::of))),
            Value::Proxy(proxy) => match FakeNumber::of(*proxy) {
                Some(FakeNumber::Size(dim)) => Fake::Int(dim),
                Some(FakeNumber::Float) => Fake::Float(None),
                Some(FakeNumber::Bool) => Fake::Bool(None),
                None => Fake::Plain(value.clone()),
            },
            other => match ValueMeta::of(other) {
                ValueMeta::Single(meta) => Fake::tensor(meta),
                _ => Fake::Plain(other.clone()),
            },
        }
    }

    /// As a value, tensors without their data.
    ///
    /// # Errors
    /// Returns an error if it is a list whose length is not known.
    pub(crate) fn to_value(&self) -> Result<Value> {
        let all = |items: &[Fake]| {
            items
                .iter()
                .map(Fake::to_value)
                .collect::<Result<Box<[_]>>>()
        };
        Ok(match self {
            Fake::Single(meta) => {
                let fake = FakeTensor::new(meta.shape.clone(), meta.dtype, meta.device);
                Value::object(fake.with_grad(meta.requires_grad == Some(true)))
            }
            Fake::Int(dim) => FakeNumber::Size(dim.clone()).into_value(),
            Fake::Float(None) => FakeNumber::Float.into_value(),
            Fake::Bool(None) => FakeNumber::Bool.into_value(),
            Fake::Float(Some(number)) => Value::Float(*number),
            Fake::Bool(Some(truth)) => Value::Bool(*truth),
            Fake::List(items) => Value::List(all(items)?),
            Fake::Tuple(items) => Value::Tuple(all(items)?),
            Fake::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.to_value()?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
            Fake::Repeated(item, length) => match length.as_known() {
                Some(length @ ..=LISTED) => Value::List(vec![item.to_value()?; length].into()),
                _ => {
                    return Err(Error::msg(format_args!(
                        "a list of {length} items cannot be made: trace the function, and infer the shapes of the graph"
                    )));
                }
            },
            Fake::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(Fake::to_value);
                Value::Slice(Box::new([start?, stop?, step?]))
            }
            Fake::Plain(value) => value.clone(),
        })
    }

    /// Makes the symbols in it known: of sizes, and of numbers.
    pub(super) fn declare(&self, env: &mut ShapeEnv) {
        match self {
            Fake::Single(meta) => meta.shape.iter().for_each(|dim| env.declare(dim)),
            Fake::Int(dim) => env.declare_number(dim),
            Fake::List(items) | Fake::Tuple(items) => {
                items.iter().for_each(|item| item.declare(env));
            }
            Fake::Dict(items) => items.iter().for_each(|(_, item)| item.declare(env)),
            Fake::Slice(ends) => ends.iter().for_each(|end| end.declare(env)),
            Fake::Repeated(item, length) => {
                item.declare(env);
                env.declare(length);
            }
            Fake::Float(_) | Fake::Bool(_) | Fake::Plain(_) => {}
        }
    }

    /// The value, if all of it is known; tensors are not.
    pub fn known(&self) -> Option<Value> {
        let all = |items: &[Fake]| items.iter().map(Fake::known).collect::<Option<Box<[_]>>>();
        Some(match self {
            Fake::Single(_) | Fake::Repeated(..) => return None,
            Fake::Int(dim) => Value::Int(dim.as_number()?),
            Fake::Float(number) => Value::Float((*number)?),
            Fake::Bool(truth) => Value::Bool((*truth)?),
            Fake::List(items) => Value::List(all(items)?),
            Fake::Tuple(items) => Value::Tuple(all(items)?),
            Fake::Dict(items) => {
                let items = items.iter().map(|(k, v)| Some((k.clone(), v.known()?)));
                Value::Dict(Box::new(items.collect::<Option<_>>()?))
            }
            Fake::Slice(ends) => {
                let [start, stop, step] = ends.each_ref().map(Fake::known);
                Value::Slice(Box::new([start?, stop?, step?]))
            }
            Fake::Plain(value) => value.clone(),
        })
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Fake::Plain(Value::None))
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&Arc<TensorMeta>> {
        match self {
            Fake::Single(meta) => Some(meta),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<&[Fake]> {
        match self {
            Fake::List(items) | Fake::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The whole number, which may be symbolic.
    ///
    /// # Errors
    /// Returns an error if it is something else.
    pub fn dim(&self) -> Result<Dim> {
        match self {
            Fake::Int(dim) => Ok(dim.clone()),
            other => Err(Error::expected("a whole number", other)),
        }
    }

    /// The whole number.
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

    /// Whether another one is known to be the same, as far as shapes go.
    pub(crate) fn is_same(&self, other: &Fake) -> bool {
        match (self, other) {
            (Fake::Single(a), Fake::Single(b)) => a == b,
            (Fake::Int(a), Fake::Int(b)) => a == b,
            (Fake::Float(a), Fake::Float(b)) => a.map(f64::to_bits) == b.map(f64::to_bits),
            (Fake::Bool(a), Fake::Bool(b)) => a == b,
            (Fake::Plain(_), Fake::Plain(_)) => true,
            _ => match (self.items(), other.items()) {
                (Some(a), Some(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
                }
                _ => false,
            },
        }
    }

    /// What a node's entry says; `None` if that is not enough.
    pub fn of_meta(meta: &ValueMeta) -> Option<Self> {
        let all = |items: &[ValueMeta]| items.iter().map(Fake::of_meta).collect::<Option<_>>();
        Some(match meta {
            ValueMeta::Single(meta) => Fake::tensor(meta.clone()),
            ValueMeta::Size(dim) => Fake::Int(dim.clone()),
            ValueMeta::Sequence(items) => Fake::List(all(items)?),
            ValueMeta::Dict(items) => {
                let items = items.iter();
                let items =
                    items.map(|(key, item)| Some((key.as_str().into(), Fake::of_meta(item)?)));
                Fake::Dict(items.collect::<Option<_>>()?)
            }
            ValueMeta::Plain(text) => match (text.as_str(), text.parse::<i64>()) {
                ("true", _) => Fake::Bool(Some(true)),
                ("false", _) => Fake::Bool(Some(false)),
                (_, Ok(number)) => Fake::Int(number.into()),
                ("None", _) => Fake::none(),
                (A_NUMBER, _) => Fake::Float(None),
                (A_TRUTH, _) => Fake::Bool(None),
                (text, _) => Fake::Float(Some(text.parse().ok()?)),
            },
        })
    }

    /// The kind of number that an entry's text stands for, if a run decides the number.
    pub(super) fn open_number(meta: &ValueMeta) -> Option<Self> {
        let ValueMeta::Plain(text) = meta else {
            return None;
        };
        let mut kinds = [Fake::Float(None), Fake::Bool(None)].into_iter();
        kinds.find(|kind| kind.to_string() == *text)
    }

    /// What a run is compared with: as the entry of a node, but that a known number is a size.
    pub(super) fn expected(&self) -> ValueMeta {
        match self {
            Fake::Int(dim) => ValueMeta::Size(dim.clone()),
            other => other.meta(),
        }
    }

    /// The entry of a node.
    pub(crate) fn meta(&self) -> ValueMeta {
        let all = |items: &[Fake]| ValueMeta::Sequence(items.iter().map(Fake::meta).collect());
        match self {
            Fake::Single(meta) => ValueMeta::Single((**meta).clone()),
            Fake::Int(dim) if dim.as_number().is_none() => ValueMeta::Size(dim.clone()),
            Fake::List(items) | Fake::Tuple(items) => all(items),
            Fake::Repeated(item, length) if let Some(length @ ..=LISTED) = length.as_known() => {
                ValueMeta::Sequence(vec![item.meta(); length])
            }
            Fake::Dict(items) => {
                let items = items.iter().map(|(k, v)| (k.to_string(), v.meta()));
                ValueMeta::Dict(items.collect())
            }
            other => match other.known() {
                Some(value) => ValueMeta::of(&value),
                None => ValueMeta::Plain(other.to_string()),
            },
        }
    }
}

/// What it is, for messages.
impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fake::Single(meta) => write!(f, "a tensor {meta}"),
            Fake::Int(dim) => write!(f, "{dim}"),
            Fake::Repeated(item, length) => write!(f, "{length} times {item}"),
            Fake::Float(None) => f.write_str(A_NUMBER),
            Fake::Bool(None) => f.write_str(A_TRUTH),
            Fake::List(items) => write!(f, "a list of {}", items.len()),
            Fake::Tuple(items) => write!(f, "a tuple of {}", items.len()),
            Fake::Dict(items) => write!(f, "a dict of {}", count(items.len(), "item")),
            Fake::Slice(_) => f.write_str("a slice"),
            Fake::Float(Some(number)) => write!(f, "{number:?}"),
            Fake::Bool(Some(truth)) => write!(f, "{truth}"),
            Fake::Plain(value) => f.write_str(&value.describe()),
        }
    }
}
