//! Objects: tensors and other users' values inside a [`Value`](super::value::Value), held in boxes
//! that a running program refills instead of reallocating.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::data::TensorData;
use super::device::Device;
use super::dim::Dim;
use super::dtype::DType;
use super::fake_tensor::FakeTensor;
use super::handle::Proxy;
use super::operator::Operator;
use super::value::Value;
use crate::error::{Error, Result};

/// A value type that fx does not know, such as a library's tensor.
///
/// A tensor type implements [`operator`](Object::operator) to have `+`, `*`, comparisons and
/// indexing run in graphs, and the shape, dtype and identity queries to be displayed, shared and
/// found.
///
/// ```
/// use fx_core::tensor::Object;
/// use fx_core::value::Value;
/// #[derive(Debug, Clone)]
/// struct Config { depth: i64 }
/// impl Object for Config {
///     fn to_value(&self) -> Value { Value::object(self.clone()) }
/// }
/// let value = Value::object(Config { depth: 3 });
/// assert_eq!(value.downcast_ref::<Config>().map(|c| c.depth), Some(3));
/// ```
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// A value that shares this object's storage.
    fn to_value(&self) -> Value;

    /// A value with the same storage but without autograd state, for results that are kept.
    fn detached(&self) -> Value {
        self.to_value()
    }

    /// The type's full name.
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// The identity of the storage: equal exactly for handles of the same tensor.
    fn object_id(&self) -> Option<u64> {
        None
    }

    /// The shape of a tensor that has elements; every size is a number. A tensor with symbolic
    /// sizes returns `None` here and reports them in [`dims`](Object::dims).
    fn shape(&self) -> Option<&[usize]> {
        None
    }

    /// The sizes, known or symbolic: those of [`shape`](Object::shape), unless a type overrides it.
    fn dims(&self) -> Option<Cow<'_, [Dim]>> {
        let dims = self.shape()?.iter().copied().map(Dim::known);
        Some(dims.collect())
    }

    /// The number of elements between neighbours along each dim, if the tensor knows it.
    fn strides(&self) -> Option<Vec<Dim>> {
        None
    }

    /// Whether gradients are computed for it, if the tensor knows it.
    fn requires_grad(&self) -> Option<bool> {
        None
    }

    /// The device that holds its elements, if the tensor knows it.
    fn device(&self) -> Option<Device> {
        None
    }

    /// The element type, for tensors.
    fn dtype(&self) -> Option<DType> {
        None
    }

    /// Its elements, for saving; [`register_tensor!`](crate::register_tensor) defines how they are
    /// loaded. It is called twice, for the file's header and for the elements, and the tensor is
    /// kept as a value in between. A type that shares its elements and
    /// [streams](TensorData::streamed) them is saved without a copy.
    ///
    /// # Errors
    /// Returns an error if the type does not implement it, or the tensor is symbolic.
    fn to_data(&self) -> Result<TensorData<'_>> {
        Err(Error::saved(format_args!(
            "a `{}` cannot be saved: its type does not implement `Object::to_data`",
            short_type_name(self.type_name())
        )))
    }

    /// The proxy that this object stands for, if it is symbolic.
    fn proxy(&self) -> Option<Proxy> {
        None
    }

    /// Whether it is a tensor without data: its shape and type are known, and no elements.
    fn is_fake(&self) -> bool {
        false
    }

    /// Its boolean value: for a tensor, whether its one element is not zero.
    ///
    /// # Errors
    /// Returns an error if it has none: it is symbolic, or does not have exactly one element.
    fn truth(&self) -> Result<bool> {
        Err(Error::msg(format_args!(
            "a `{}` is neither true nor false",
            short_type_name(self.type_name())
        )))
    }

    /// Runs a built-in operator with this object among the operands.
    ///
    /// # Errors
    /// Returns an error if the type does not have the operator, or the operands do not fit.
    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        let _ = (args, out);
        Err(Error::operator(op, short_type_name(self.type_name())))
    }
}

impl Object for FakeTensor {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        Some(self.id())
    }

    fn shape(&self) -> Option<&[usize]> {
        FakeTensor::shape(self)
    }

    fn dims(&self) -> Option<Cow<'_, [Dim]>> {
        Some(Cow::Borrowed(FakeTensor::dims(self)))
    }

    fn requires_grad(&self) -> Option<bool> {
        Some(FakeTensor::requires_grad(self))
    }

    fn device(&self) -> Option<Device> {
        FakeTensor::device(self)
    }

    fn dtype(&self) -> Option<DType> {
        FakeTensor::dtype(self)
    }

    fn is_fake(&self) -> bool {
        true
    }
}

/// A type whose values are either concrete or stand for a proxy, such as a tensor type.
///
/// It provides all conversions: from and to graph values, as arguments and results of `#[trace]`
/// and `#[wrap]` functions.
pub trait Traced: Object + Clone {
    /// Creates the symbolic value of a proxy.
    fn from_proxy(proxy: Proxy) -> Self;

    /// Creates a tensor without data; `None` if the type has no such tensors.
    fn from_fake(fake: FakeTensor) -> Option<Self> {
        let _ = fake;
        None
    }

    /// Makes one of plain data, such as a list, that is given where one is taken; `None` if it is no such data.
    fn from_plain(value: &Value) -> Option<Self> {
        let _ = value;
        None
    }

    /// Whether its data is not there: it is symbolic, or a fake tensor.
    #[inline]
    fn has_no_data(&self) -> bool {
        self.proxy().is_some() || self.is_fake()
    }

    /// Runs a built-in operator; at least one operand is of this type, and none is symbolic.
    ///
    /// # Errors
    /// Returns an error if the type does not have the operator, or the operands do not fit.
    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        let _ = operands;
        let operand = short_type_name(std::any::type_name::<Self>());
        Err(Error::operator(op, operand))
    }

    /// Runs a binary operator on two known values of this type, like [`apply`](Traced::apply), for
    /// types that have a shorter way.
    ///
    /// # Errors
    /// Same as `apply`.
    #[inline]
    fn apply_pair(op: Operator, lhs: &Self, rhs: &Self) -> Result<Self> {
        Self::apply(op, &[OperandRef::Object(lhs), OperandRef::Object(rhs)])
    }
}

/// A borrowed operand of an operator.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum OperandRef<'a> {
    /// A tensor or another object.
    Object(&'a dyn Object),
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A symbolic value.
    Proxy(Proxy),
}

impl<'a> OperandRef<'a> {
    /// The operand as a tensor type.
    #[inline]
    pub fn downcast_ref<T: Object>(self) -> Option<&'a T> {
        match self {
            OperandRef::Object(object) => {
                let any: &dyn Any = object;
                any.downcast_ref()
            }
            _ => None,
        }
    }

    /// The operand for a value, if it can be one.
    pub fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Object(handle) => OperandRef::Object(handle.object()?),
            Value::Bool(x) => OperandRef::Bool(*x),
            Value::Int(x) => OperandRef::Int(*x),
            Value::Float(x) => OperandRef::Float(*x),
            Value::Proxy(x) => OperandRef::Proxy(*x),
            _ => return None,
        })
    }
}

/// A type's name with each path reduced to its last segment: `Option<nn::Linear>` as
/// `Option<Linear>`.
pub fn short_type_name(full: &str) -> String {
    let mut out = String::with_capacity(full.len());
    let mut segment = String::new();
    for c in full.chars() {
        match c {
            ':' => segment.clear(),
            c if c.is_alphanumeric() || c == '_' => segment.push(c),
            c => {
                out.push_str(&segment);
                segment.clear();
                out.push(c);
            }
        }
    }
    out.push_str(&segment);
    out
}

/// A box that outlives its object, so that it can be refilled.
trait Shell: fmt::Debug + Send + Sync + Any {
    fn object(&self) -> Option<&dyn Object>;
    fn object_mut(&mut self) -> Option<&mut dyn Object>;
    fn clear(&mut self);
    fn exchange(&mut self, other: &mut dyn Any) -> bool;
}

struct ShellOf<T>(Option<T>);

impl<T: fmt::Debug> fmt::Debug for ShellOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(object) => object.fmt(f),
            None => f.write_str("empty"),
        }
    }
}

impl<T: Object> Shell for ShellOf<T> {
    fn object(&self) -> Option<&dyn Object> {
        self.0.as_ref().map(|t| t as &dyn Object)
    }

    fn object_mut(&mut self) -> Option<&mut dyn Object> {
        self.0.as_mut().map(|t| t as &mut dyn Object)
    }

    fn clear(&mut self) {
        self.0 = None;
    }

    fn exchange(&mut self, other: &mut dyn Any) -> bool {
        match (&mut self.0, other.downcast_mut::<T>()) {
            (Some(own), Some(other)) => {
                std::mem::swap(own, other);
                true
            }
            _ => false,
        }
    }
}

/// A shared handle to an object.
#[derive(Clone)]
pub struct Handle(Arc<dyn Shell>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Handle {
    /// Boxes an object.
    pub fn new<T: Object>(object: T) -> Self {
        Handle(Arc::new(ShellOf(Some(object))))
    }

    /// The object as its concrete type.
    #[inline]
    pub fn downcast_ref<T: Object>(&self) -> Option<&T> {
        let shell: &dyn Any = &*self.0;
        shell.downcast_ref::<ShellOf<T>>()?.0.as_ref()
    }

    /// The object, unless the box was cleared.
    pub fn object(&self) -> Option<&dyn Object> {
        self.0.object()
    }

    /// Puts an object into this box if the box is not shared and the type matches; otherwise
    /// returns it.
    #[inline]
    pub(crate) fn refill<T: Object>(&mut self, object: T) -> std::result::Result<(), T> {
        let Some(shell) = Arc::get_mut(&mut self.0) else {
            return Err(object);
        };
        let shell: &mut dyn Any = shell;
        match shell.downcast_mut::<ShellOf<T>>() {
            Some(shell) => {
                shell.0 = Some(object);
                Ok(())
            }
            None => Err(object),
        }
    }

    /// Drops the object and keeps the box, if the box is not shared.
    #[inline]
    pub(crate) fn clear(&mut self) -> bool {
        match Arc::get_mut(&mut self.0) {
            Some(shell) => {
                shell.clear();
                true
            }
            None => false,
        }
    }

    /// The object, for replacement; a shared box is left to its other holders.
    pub(crate) fn make_mut(&mut self) -> Option<&mut dyn Object> {
        if Arc::get_mut(&mut self.0).is_none()
            && let Value::Object(copy) = &self.object()?.to_value()
        {
            *self = copy.clone();
        }
        Arc::get_mut(&mut self.0)?.object_mut()
    }

    /// Puts the object where another one of its type was; a shared box keeps its object, and a
    /// copy is put there. Returns `false`, and changes nothing, if the types differ.
    pub(crate) fn put_into(mut self, place: &mut dyn Object) -> bool {
        self.make_mut().is_some()
            && Arc::get_mut(&mut self.0).is_some_and(|shell| shell.exchange(place))
    }

    pub(crate) fn object_type(&self) -> Option<TypeId> {
        self.0.object().map(|o| {
            let any: &dyn Any = o;
            any.type_id()
        })
    }
}
