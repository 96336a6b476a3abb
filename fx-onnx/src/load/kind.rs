//! `Kind`: what an input of a file is: a tensor of numbers or of text, or a sequence of them, of which it may be missing.
//!
//! Invariant: a value of another kind is an error that names the input.

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::{Error, Result};

use super::value::V;
use crate::dtype::{self, TEXT};
use crate::proto::{TensorType, TypeProto, TypeValue};
use crate::texts::Texts;

/// What an input is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    is_sequence: bool,
    /// ONNX's number of the element type.
    code: i32,
}

/// The tensor that a type is, or of which it is the value that may be missing.
pub(super) fn held(ty: &TypeProto) -> Option<&TensorType> {
    match ty.value.as_ref()? {
        TypeValue::Tensor(tensor) => Some(tensor),
        TypeValue::Optional(of) => held(of.elem_type.as_ref()?),
        _ => None,
    }
}

/// A structure with all of its parts open, if a spec is of a list of such; `None` if it is one value.
pub(super) fn open(spec: &Spec) -> Result<Option<Value>> {
    Ok(match &spec.fake_value()? {
        Value::List(items) | Value::Tuple(items) => Some(Value::List(
            items.iter().map(|_| Value::object(PH)).collect(),
        )),
        _ => None,
    })
}

impl Kind {
    pub fn of(ty: &TypeProto) -> Option<Self> {
        let mut ty = ty;
        let mut is_sequence = false;
        // Of a sequence the items are tensors, and an optional value has no other one in it.
        for _ in 0..3 {
            match ty.value.as_ref()? {
                TypeValue::Tensor(tensor) => {
                    let code = tensor.elem_type;
                    return Some(Kind { is_sequence, code });
                }
                TypeValue::Optional(of) => ty = of.elem_type.as_ref()?,
                TypeValue::Sequence(of) if !is_sequence => {
                    is_sequence = true;
                    ty = of.elem_type.as_ref()?;
                }
                _ => return None,
            }
        }
        None
    }

    /// The element type of numbers.
    pub fn dtype(&self) -> Option<DType> {
        dtype::known(self.code)
    }

    /// Refuses elements that fx does not hold.
    pub fn check(&self, name: &str) -> Result<()> {
        match self.code == TEXT || self.dtype().is_some() {
            true => Ok(()),
            false => Err(dtype::unknown(self.code, name)),
        }
    }

    /// The type of the parameter.
    pub fn type_text(&self) -> &'static str {
        match (self.is_sequence, self.code == TEXT) {
            (false, false) => "&Tensor",
            (false, true) => "&Texts",
            (true, false) => "Vec<Tensor>",
            (true, true) => "Vec<Texts>",
        }
    }

    /// An argument as a value of the file.
    pub fn read(&self, value: &Value) -> Result<V> {
        let one = |value: &Value| match self.dtype() {
            Some(dtype) => Ok(V::of(Tensor::from_value(value.clone())?, dtype)),
            None => Texts::from_value(value.clone()).map(V::Texts),
        };
        match (self.is_sequence, value) {
            (true, Value::List(items) | Value::Tuple(items)) => {
                items.iter().map(one).collect::<Result<_>>().map(V::Seq)
            }
            (true, other) => Err(Error::expected("a list", other.describe())),
            (false, value) => one(value),
        }
    }
}
