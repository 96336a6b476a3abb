//! Shape rules of the operations, a family a file: what each gives, without data.
//!
//! Invariant: a rule and its kernel give the same shape and type, and refuse the same arguments.

mod creation;
mod elementwise;
mod products;
mod reductions;
mod views;
mod windows;

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};

/// Entries of one rule for several functions.
macro_rules! rules {
    (@entries $rule:tt $(($($function:ident)::+))+) => {
        ::fx_core::function_table! { ::fx_core::shapes::ShapeRule {
            $(::fx_core::function!($($function)::+) => ::fx_core::shapes::ShapeRule($rule)),+
        } }
    };
    ($($rule:expr => $($($function:ident)::+),+ $(,)?;)*) => {$(
        rules! { @entries ($rule) $(($($function)::+))+ }
    )*};
}
use rules;

/// A tensor of a shape and a type.
fn tensor(shape: Vec<Dim>, dtype: Option<DType>) -> Fake {
    let mut meta = TensorMeta::new(shape);
    meta.dtype = dtype;
    Fake::tensor(meta)
}

/// A tensor like another one.
fn like(meta: &TensorMeta, dtype: Option<DType>) -> Fake {
    tensor(meta.shape.clone(), dtype)
}

/// Its own type if it holds fractions, and `f32` otherwise.
fn fractional(dtype: Option<DType>) -> Option<DType> {
    dtype.map(|dtype| match dtype.is_floating_point() {
        true => dtype,
        false => DType::F32,
    })
}

/// The type of arithmetic between arguments: tensors by their types, numbers by their kind.
fn common<'f>(args: impl IntoIterator<Item = &'f Fake>) -> Option<DType> {
    let mut dtype: Option<DType> = None;
    let mut numbers = Vec::new();
    for arg in args {
        match arg {
            Fake::Tensor(meta) => {
                let own = meta.dtype?;
                dtype = Some(dtype.map_or(own, |dtype| dtype.promote(own)));
            }
            other => numbers.push(other),
        }
    }
    let mut dtype = dtype?;
    for number in numbers {
        dtype = match number {
            Fake::Float(_) if !dtype.is_floating_point() => DType::F32,
            Fake::Int(_) if dtype == DType::Bool => DType::I64,
            _ => dtype,
        };
    }
    Some(dtype)
}

/// The sizes of an argument that may be a number, which has none.
fn shape_of(fake: &Fake) -> &[Dim] {
    fake.as_tensor().map_or(&[], |meta| &meta.shape)
}

/// The product of sizes.
fn product(dims: &[Dim]) -> Result<Dim> {
    Dim::product(dims)
}

/// The shape and type of a parameter that is a tensor.
fn x<'c>(call: &RuleCall<'c>) -> Result<&'c TensorMeta> {
    call.tensor("x")
}
