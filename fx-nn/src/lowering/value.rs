//! `Val`: what a node of the graph is while it is written: a name of the program that is written, or what is known
//! without one.

use std::sync::Arc;

use fx_core::ir::{TensorMeta, ValueMeta};
use fx_core::value::{DType, Device, Dim, Value};
use fx_core::{Error, Result};

/// The name of a value in the written program.
pub type Name = Arc<str>;

/// A tensor of the written program.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// Its name.
    pub name: Name,
    /// Its element type.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<Dim>,
}

impl Operand {
    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
}

/// A value of the graph that is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Val {
    /// A tensor, or a number that a run knows, as a tensor without dims.
    Tensor(Operand),
    /// A tensor whose number of dims a run decides: its name and its element type.
    Unranked(Name, DType),
    /// A tensor of text: its name and its sizes.
    Texts(Name, Vec<Dim>),
    /// A list of tensors of one element type, whose length a run decides: its name.
    Sequence(Name, DType),
    /// A list of maps from text to numbers: its name.
    Maps(Name),
    /// A size or a whole number.
    Dim(Dim),
    /// A number.
    Float(f64),
    /// A truth.
    Bool(bool),
    /// Text.
    Str(String),
    /// An element type.
    DType(DType),
    /// A device.
    Device(Device),
    /// `...` in an index.
    Ellipsis,
    /// A list or a tuple.
    List(Vec<Val>),
    /// Values by name.
    Dict(Vec<(String, Val)>),
    /// Start, stop and step.
    Slice(Box<[Val; 3]>),
    /// Nothing.
    None,
}

impl Val {
    /// The whole number, if it is one that is known.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Val::Dim(dim) => dim.as_number(),
            Val::Bool(truth) => Some(i64::from(*truth)),
            _ => None,
        }
    }

    /// The number, if it is one that is known.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Val::Float(number) => Some(*number),
            other => other.as_int().map(|int| int as f64),
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Val::Tensor(of) => format!("the tensor `{}`", of.name),
            Val::Unranked(name, _) => {
                format!("the tensor `{name}`, whose number of dims a run decides")
            }
            Val::Texts(name, _) => format!("the tensor of text `{name}`"),
            Val::Sequence(name, _) => format!("the sequence `{name}`"),
            Val::Maps(name) => format!("the maps `{name}`"),
            Val::Dim(dim) => format!("the size {dim}"),
            Val::List(items) => format!("a list of {}", items.len()),
            Val::None => "nothing".to_string(),
            other => format!("{other:?}"),
        }
    }
}

impl From<Operand> for Val {
    fn from(operand: Operand) -> Self {
        Val::Tensor(operand)
    }
}

impl Val {
    /// Values of a structure, one by one.
    pub fn flatten(self, flat: &mut Vec<Val>) {
        let mut left = vec![self];
        while let Some(val) = left.pop() {
            match val {
                Val::List(items) => left.extend(items.into_iter().rev()),
                Val::Dict(items) => left.extend(items.into_iter().rev().map(|(_, item)| item)),
                other => flat.push(other),
            }
        }
    }

    /// The value that an entry says: a number of which `is_known` holds, a boolean, nothing, or a
    /// list of them.
    pub fn known(meta: &ValueMeta, is_known: &dyn Fn(&Dim) -> bool) -> Option<Val> {
        Some(match meta {
            ValueMeta::Int(dim) if is_known(dim) => Val::Dim(dim.clone()),
            ValueMeta::Float(number) => Val::Float((*number)?),
            ValueMeta::Bool(boolean) => Val::Bool((*boolean)?),
            ValueMeta::Plain(Value::None) => Val::None,
            ValueMeta::Plain(Value::Str(text)) => Val::Str(text.to_string()),
            ValueMeta::Plain(Value::DType(dtype)) => Val::DType(*dtype),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                let items = items.iter().map(|item| Val::known(item, is_known));
                Val::List(items.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

/// What a value is as a tensor: a number or a truth is one without dims.
///
/// # Errors
/// Returns an error if it is none of them, or its element type is not known.
pub fn as_tensor(meta: &ValueMeta) -> Result<TensorMeta> {
    let number = |dtype| Ok(TensorMeta::new([0usize; 0]).dtype(dtype));
    match meta {
        ValueMeta::Single(tensor) => match tensor.dtype {
            Some(_) => Ok((**tensor).clone()),
            None => Err(Error::msg(format_args!(
                "the element type of a value {tensor} is not known: it is not the same on all ways that give the value"
            ))),
        },
        ValueMeta::Int(_) => number(DType::I64),
        ValueMeta::Float(_) => number(DType::F64),
        ValueMeta::Bool(_) => number(DType::Bool),
        ValueMeta::Unranked(_) => Err(Error::msg(format_args!(
            "a value is {meta}, where that number has to be known: reshape it to sizes of a known number first"
        ))),
        _ => Err(Error::msg(format_args!(
            "a value is {meta}, and neither a tensor nor a number"
        ))),
    }
}
