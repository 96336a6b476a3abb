//! What a node of the graph is while it is written: a name of the file, or what is known without one.

use std::sync::Arc;

use fx_nn::value::{DType, Dim};

/// The name of a value in the file.
pub type Name = Arc<str>;

/// A tensor of the file.
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
    pub(crate) fn describe(&self) -> String {
        match self {
            Val::Tensor(of) => format!("the tensor `{}`", of.name),
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
