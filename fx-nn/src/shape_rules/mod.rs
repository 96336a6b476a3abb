//! Shape rules of the operations, a family a file: what each gives, without data.
//!
//! Invariant: a rule and its kernel give the same shape and type, and refuse the same arguments.

mod algebra;
mod checks;
mod creation;
mod diagonals;
mod einsum;
mod elementwise;
mod factors;
mod fourier;
mod images;
mod joins;
mod losses;
mod norms;
mod picks;
mod pieces;
mod products;
mod quantization;
mod recurrent;
mod reductions;
mod scatters;
mod views;
mod windows;

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use checks::{
    Elements, are_equal, at_least, count, divided, kind, named, not_negative, number, place,
    require, require_equal, require_fits, require_held, require_number, require_one_type,
    require_probability, require_rank, require_type, require_type_of, truth, word, wrong,
};

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
fn tensor(shape: Vec<Dim>, dtype: Option<DType>) -> ValueMeta {
    let mut meta = TensorMeta::new(shape);
    meta.dtype = dtype;
    ValueMeta::from(meta)
}

/// A tensor of the shape of all arguments, broadcast.
fn of_all<'f>(
    call: &mut RuleCall<'_>,
    args: impl IntoIterator<Item = &'f ValueMeta>,
    dtype: Option<DType>,
) -> Result<ValueMeta> {
    let shapes: Vec<&[Dim]> = args.into_iter().map(shape_of).collect();
    Ok(tensor(call.broadcast(&shapes)?, dtype))
}

/// A tensor like another one.
fn like(meta: &TensorMeta, dtype: Option<DType>) -> ValueMeta {
    tensor(meta.shape.clone(), dtype)
}

/// Its own type if it holds fractions, and `f32` otherwise.
fn of_floats(dtype: DType) -> DType {
    match dtype.is_floating_point() {
        true => dtype,
        false => DType::F32,
    }
}

fn fractional(dtype: Option<DType>) -> Option<DType> {
    dtype.map(of_floats)
}

/// The sizes of an argument that may be a number, which has none.
fn shape_of(fake: &ValueMeta) -> &[Dim] {
    fake.as_tensor().map_or(&[], |meta| &meta.shape)
}

/// The shape and type of a parameter that is a tensor.
fn x<'c>(call: &RuleCall<'c>) -> Result<&'c TensorMeta> {
    call.tensor("x")
}

/// A shape with another size at a place.
fn resized(shape: &[Dim], place: usize, size: Dim) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    if let Some(own) = shape.get_mut(place) {
        *own = size;
    }
    shape
}

/// A shape with so many dims, new ones of 1 in front.
fn wide(shape: &[Dim], rank: usize) -> Vec<Dim> {
    let new = rank.saturating_sub(shape.len());
    let ones = std::iter::repeat_n(Dim::known(1), new);
    ones.chain(shape.iter().cloned()).collect()
}

/// Values, and where they are (`int64`).
fn with_places(values: ValueMeta) -> ValueMeta {
    let places = tensor(shape_of(&values).to_vec(), Some(DType::I64));
    ValueMeta::Tuple(vec![values, places])
}

/// The type that all tensors are converted to.
fn promoted(tensors: &[&TensorMeta]) -> Option<DType> {
    let dtypes = tensors.iter().map(|meta| meta.dtype);
    dtypes.reduce(|a, b| Some(a?.promote(b?))).flatten()
}
