//! `Signature`: what shapes depend on in the arguments of a run: kinds, types, sizes and numbers.
//!
//! Invariant: arguments of one signature are refused by the same calls, data aside.

use fx_core::ir::ValueMeta;
use fx_core::value::{DType, Value};
use smallvec::SmallVec;

use crate::Tensor;

/// The arguments of a run, without the elements of tensors: what a backend has code for.
///
/// ```
/// use fx_nn::lowering::Signature;
/// use fx_nn::prelude::*;
/// let (x, y) = (Value::of(Tensor::ones(3)?), Value::of(Tensor::ones(4)?));
/// let of = Signature::of(&[&x]);
/// assert!(of.is_of(&[&x]) && !of.is_of(&[&y]));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Signature(SmallVec<[Part; 4]>);

#[derive(Debug, Clone)]
enum Part {
    Tensor(DType, SmallVec<[usize; 6]>),
    Int(i64),
    Float(u64),
    Bool(bool),
    None,
    Items(Vec<Part>),
    /// Like nothing else.
    Other,
}

impl Signature {
    /// That of arguments.
    pub fn of(inputs: &[&Value]) -> Self {
        Signature(inputs.iter().map(|value| Part::of(value)).collect())
    }

    /// Whether it is that of other arguments.
    pub fn is_of(&self, inputs: &[&Value]) -> bool {
        let mut both = self.0.iter().zip(inputs);
        self.0.len() == inputs.len() && both.all(|(part, value)| part.is_of(value))
    }
}

impl Part {
    fn of(value: &Value) -> Self {
        match value {
            Value::Int(n) => Part::Int(*n),
            Value::Float(x) => Part::Float(x.to_bits()),
            Value::Bool(truth) => Part::Bool(*truth),
            Value::None => Part::None,
            Value::List(items) | Value::Tuple(items) => {
                Part::Items(items.iter().map(Part::of).collect())
            }
            value => Part::of_tensor(value).unwrap_or(Part::Other),
        }
    }

    /// A tensor whose type and sizes are known; it may lack data.
    fn of_tensor(value: &Value) -> Option<Self> {
        if let Some(tensor) = value.downcast_ref::<Tensor>()
            && let (Ok(dtype), Ok(dims)) = (tensor.dtype(), tensor.dims())
        {
            return Some(Part::Tensor(dtype, dims.into()));
        }
        let meta = ValueMeta::of(value);
        let meta = meta.tensor()?;
        let sizes = meta.shape.iter();
        let sizes = sizes.map(|dim| usize::try_from(dim.as_number()?).ok());
        Some(Part::Tensor(meta.dtype?, sizes.collect::<Option<_>>()?))
    }

    fn is_of(&self, value: &Value) -> bool {
        match (self, value) {
            (Part::Tensor(dtype, dims), value) => {
                value.downcast_ref::<Tensor>().is_some_and(|tensor| {
                    tensor.dims().is_ok_and(|own| *own == dims[..])
                        && tensor.dtype().is_ok_and(|own| own == *dtype)
                })
            }
            (Part::Int(known), Value::Int(n)) => known == n,
            (Part::Float(known), Value::Float(x)) => *known == x.to_bits(),
            (Part::Bool(known), Value::Bool(truth)) => known == truth,
            (Part::None, Value::None) => true,
            (Part::Items(known), Value::List(items) | Value::Tuple(items)) => {
                let mut both = known.iter().zip(items.iter());
                known.len() == items.len() && both.all(|(part, value)| part.is_of(value))
            }
            _ => false,
        }
    }
}
