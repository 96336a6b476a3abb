//! `Call`: a node's arguments by the names of the operator's schema.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Proxy;
use fx_nn::{Error, Result};

use crate::known;

/// The arguments of a node.
#[derive(Debug)]
pub(crate) struct Call<'n> {
    pub target: &'n str,
    pub args: Vec<(&'n str, Value)>,
    /// The element types of the arguments that are tensors, as the file says them.
    pub dtypes: Vec<Option<DType>>,
}

impl<'n> Call<'n> {
    /// An argument, unless it is left out or `None`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.args.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value)
            .filter(|value| !matches!(value, Value::None))
    }

    /// An argument by its index.
    ///
    /// # Errors
    /// Returns an error if there are fewer.
    pub fn at(&self, index: usize) -> Result<&Value> {
        let found = self.args.get(index).map(|(_, value)| value);
        found.ok_or_else(|| Error::msg(format_args!("the argument {index} is missing")))
    }

    /// An argument that has to be there.
    ///
    /// # Errors
    /// Returns an error if it is left out.
    pub fn value(&self, name: &str) -> Result<&Value> {
        self.get(name)
            .ok_or_else(|| Error::msg(format_args!("the argument `{name}` is missing")))
    }

    /// An argument of a type.
    ///
    /// # Errors
    /// Returns an error if it is left out, or of another type.
    pub fn of<T: FromValue>(&self, name: &str) -> Result<T> {
        let value = self.value(name)?.clone();
        T::from_value(value).map_err(|e| Error::msg(format_args!("the argument `{name}`: {e}")))
    }

    /// An argument of a type, unless it is left out or `None`.
    ///
    /// # Errors
    /// Returns an error if it is of another type.
    pub fn maybe<T: FromValue>(&self, name: &str) -> Result<Option<T>> {
        self.get(name).map(|_| self.of(name)).transpose()
    }

    /// An argument of a type, or what it is where it is left out.
    ///
    /// # Errors
    /// Returns an error if it is of another type.
    pub fn or<T: FromValue>(&self, name: &str, otherwise: T) -> Result<T> {
        Ok(self.maybe(name)?.unwrap_or(otherwise))
    }

    /// The tensor that the operator is about: its first argument.
    ///
    /// # Errors
    /// Returns an error if it is no tensor.
    pub fn own(&self) -> Result<Tensor> {
        Tensor::from_value(self.at(0)?.clone())
    }

    /// The items of a list.
    ///
    /// # Errors
    /// Returns an error if it is left out or no list.
    pub fn items(&self, name: &str) -> Result<&[Value]> {
        match self.value(name)? {
            Value::List(items) | Value::Tuple(items) => Ok(items),
            other => Err(Error::msg(format_args!(
                "the argument `{name}` is {}, not a list",
                other.describe()
            ))),
        }
    }

    /// The same call with another first argument.
    pub fn with_own(&self, own: Value) -> Self {
        let mut args = self.args.clone();
        if let Some((_, first)) = args.first_mut() {
            *first = own;
        }
        self.with_args(args)
    }

    /// The same call with other arguments.
    pub fn with_args(&self, args: Vec<(&'n str, Value)>) -> Self {
        Call {
            target: self.target,
            args,
            dtypes: self.dtypes.clone(),
        }
    }

    /// The element type of an argument that is a tensor.
    ///
    /// # Errors
    /// Returns an error if neither the file nor the tensor says it.
    pub fn dtype(&self, index: usize) -> Result<DType> {
        match self.dtypes.get(index) {
            Some(Some(dtype)) => Ok(*dtype),
            _ => element_type(self.at(index)?)
                .ok_or_else(|| Error::msg("a run decides of which element type a tensor is")),
        }
    }
}

/// What a value stands for in a graph, as a symbolic value or as a tensor that is one.
pub(crate) fn proxy_of(value: &Value) -> Option<Proxy> {
    match value {
        Value::Proxy(proxy) => Some(*proxy),
        value => value.downcast_ref::<Tensor>()?.proxy(),
    }
}

/// The element type of a tensor, if it is known: in a branch or a loop, as the file says.
pub(crate) fn element_type(value: &Value) -> Option<DType> {
    let Some(proxy) = proxy_of(value) else {
        return Tensor::dtype(value.downcast_ref::<Tensor>()?).ok();
    };
    match proxy.meta().ok()? {
        Some(ValueMeta::Single(meta)) => meta.dtype,
        Some(ValueMeta::Unranked(dtype)) => dtype,
        None => known::of(proxy)?.dtype,
        _ => None,
    }
}
