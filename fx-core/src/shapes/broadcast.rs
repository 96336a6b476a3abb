//! Broadcasting of shapes whose sizes may be symbolic.

use super::env::ShapeEnv;
use crate::error::{Error, Result};
use crate::value::dim::Dim;

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
