//! What arguments of one computation have in common: a shape by broadcasting, an element type.

use super::env::ShapeEnv;
use crate::error::{Error, Result};
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::dtype::DType;

/// Truths, whole numbers, fractions.
fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_floating_point() => 2,
        _ => 1,
    }
}

/// The element type that tensors and numbers are computed in (`torch.result_type`): those without
/// dims, and numbers, decide it only by their kind. `None` if no tensor with a known type is among
/// them.
///
/// ```
/// use fx_core::ir::TensorMeta;
/// use fx_core::ir::ValueMeta;
/// use fx_core::shapes::result_type;
/// use fx_core::value::DType;
/// let row = ValueMeta::from(TensorMeta::new([3]).dtype(DType::F16));
/// let one = ValueMeta::from(TensorMeta::new([0; 0]).dtype(DType::F64));
/// assert_eq!(result_type([&row, &one]), Some(DType::F16));
/// let counts = ValueMeta::from(TensorMeta::new([3]).dtype(DType::I64));
/// assert_eq!(result_type([&counts, &ValueMeta::Float(None)]), Some(DType::F32));
/// ```
pub fn result_type<'f>(args: impl IntoIterator<Item = &'f ValueMeta>) -> Option<DType> {
    let (mut with_dims, mut without, mut numbers) = (None, None, Vec::new());
    for arg in args {
        let ValueMeta::Single(meta) = arg else {
            numbers.push(arg);
            continue;
        };
        let seen = match meta.shape.is_empty() {
            true => &mut without,
            false => &mut with_dims,
        };
        let dtype = meta.dtype?;
        *seen = Some(seen.map_or(dtype, |seen: DType| seen.promote(dtype)));
    }
    let mut dtype = match (with_dims, without) {
        (Some(dtype), Some(other)) if category(other) <= category(dtype) => dtype,
        (Some(dtype), Some(other)) => dtype.promote(other),
        (dtype, other) => dtype.or(other)?,
    };
    for number in numbers {
        dtype = match number {
            ValueMeta::Float(_) if !dtype.is_floating_point() => DType::F32,
            ValueMeta::Int(_) if dtype == DType::Bool => DType::I64,
            _ => dtype,
        };
    }
    Some(dtype)
}

/// The shape of tensors of these shapes that are computed with each other element by element.
///
/// A size of 1 takes the other's. Of a symbol it is not asked whether it is 1: two sizes of which
/// one is symbolic are equal, which becomes a guard unless it is known.
///
/// ```
/// use fx_core::shapes::{ShapeEnv, broadcast_shapes};
/// use fx_core::value::Dim;
/// let mut env = ShapeEnv::default();
/// let (batch, one, four) = (Dim::symbol("batch")?, Dim::known(1), Dim::known(4));
/// let shape = broadcast_shapes(&mut env, "add", &[&[batch.clone(), one], &[four.clone()]])?;
/// assert_eq!(shape, [batch, four]);
/// assert!(env.guards().is_empty());
/// # Ok::<(), fx_core::Error>(())
/// ```
///
/// # Errors
/// Returns an error that names `what` if two known sizes differ and none is 1.
pub fn broadcast_shapes(env: &mut ShapeEnv, what: &str, shapes: &[&[Dim]]) -> Result<Vec<Dim>> {
    let [first, rest @ ..] = shapes else {
        return Ok(Vec::new());
    };
    let mut result = first.to_vec();
    for shape in rest {
        let rank = result.len().max(shape.len());
        while result.len() < rank {
            result.insert(0, Dim::known(1));
        }
        for (size, other) in result.iter_mut().rev().zip(shape.iter().rev()) {
            if *size == 1 {
                *size = other.clone();
            } else if *other != 1 && !env.same(size, other)? {
                return Err(Error::msg(format_args!(
                    "{what}: the shapes {first:?} and {shape:?} do not broadcast: {size} and {other} differ"
                )));
            }
        }
    }
    Ok(result)
}
