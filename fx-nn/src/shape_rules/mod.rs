//! Shape rules of the operations, a family a file: what each gives, without data.
//!
//! Invariant: a rule and its kernel give the same shape and type, and refuse the same arguments.

mod algebra;
mod creation;
mod elementwise;
mod products;
mod recurrent;
mod reductions;
mod views;
mod windows;

use fx_core::ir::TensorMeta;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

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

/// What the elements of a tensor have to be.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    Fractions,
    WholeNumbers,
    /// Whole numbers or truths.
    Bits,
    /// Anything but truths.
    Numbers,
}

/// Returns an error if a tensor is of other elements.
fn require(call: &RuleCall<'_>, meta: &TensorMeta, elements: Elements) -> Result<()> {
    require_type(call, meta.dtype, elements)
}

/// Returns an error if an element type is another one.
fn require_type(call: &RuleCall<'_>, dtype: Option<DType>, elements: Elements) -> Result<()> {
    let Some(dtype) = dtype else {
        return Ok(());
    };
    let (fits, what) = match elements {
        Elements::Fractions => (dtype.is_floating_point(), "floats"),
        Elements::WholeNumbers => (
            !dtype.is_floating_point() && dtype != DType::Bool,
            "whole numbers",
        ),
        Elements::Bits => (!dtype.is_floating_point(), "whole numbers or truths"),
        Elements::Numbers => (dtype != DType::Bool, "numbers"),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "{}: the tensor is of {dtype}, and not of {what}: convert it with `to_dtype`",
            call.function().name()
        ))),
    }
}
