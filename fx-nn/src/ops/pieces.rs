//! Pieces of tensors along a dim.

use crate::op;
use fx_core::Result;
use fx_core::trace::List;

use crate::error::{Fx, require, unfit};
use crate::kernels::dim;
use crate::kernels::view::narrow;
use crate::room;
use crate::tensor::{Sections, Tensor};

fn pieces(op: &str, x: &Tensor, sections: &Sections, at: usize) -> Result<List<Tensor>> {
    let data = x.elements(op)?;
    let size = data.dims().get(at).copied();
    let size = size.ok_or_else(|| unfit(op))?;
    let ends: Vec<(usize, usize)> = match sections {
        Sections::Count(count) => {
            let count = usize::try_from(*count).ok().filter(|count| *count > 0);
            let count = count.ok_or_else(|| unfit(op))?;
            room::of(op, &[count], candle_core::DType::I64).fx()?;
            let (each, more) = (size / count, size % count);
            let start = |i: usize| i * each + i.min(more);
            (0..count).map(|i| (start(i), start(i + 1))).collect()
        }
        Sections::At(places) => {
            // As in slices: negative ones count from the end, and all are clamped to the dim.
            let place = |n: &i64| match *n < 0 {
                true => {
                    size.saturating_sub(usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX))
                }
                false => usize::try_from(*n).unwrap_or(usize::MAX).min(size),
            };
            let starts = std::iter::once(0).chain(places.iter().map(place));
            let ends = places.iter().map(place).chain([size]);
            starts
                .zip(ends)
                .map(|(start, end)| (start, end.max(start)))
                .collect()
        }
    };
    ends.into_iter()
        .map(|(start, end)| {
            narrow(data, at, start, end - start)
                .map(|data| x.with_data(data))
                .fx()
        })
        .collect()
}

/// So many pieces along a dim, the first ones larger by one where they do not divide it, or pieces between the given
/// places.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 5)?;
/// let [a, b] = x.tensor_split(2, 0)?.unpack()?;
/// assert_eq!((a.to_vec()?, b.to_vec()?), (vec![0.0, 1.0, 2.0], vec![3.0, 4.0]));
/// let [a, b, c] = x.tensor_split([1, 4], 0)?.unpack()?;
/// assert_eq!((a.dims()?, b.dims()?, c.dims()?), (&[1][..], &[3][..], &[1][..]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or zero pieces are requested.
#[op(view, member, method, path = "fx_nn::ops::tensor_split")]
pub fn tensor_split(
    x: &Tensor,
    indices_or_sections: impl Into<Sections>,
    #[default(0)] dim: i64,
) -> Result<List<Tensor>> {
    let op = "tensor_split";
    let at = dim::dim(op, dim, x.dims()?.len()).fx()?;
    pieces(op, x, &indices_or_sections, at)
}

/// Pieces along one dim of a tensor that has at least `rank`; a number of them divides the dim.
fn even(op: &str, x: &Tensor, sections: &Sections, at: usize, rank: usize) -> Result<List<Tensor>> {
    let dims = x.dims()?;
    require(op, dims.len() >= rank)?;
    if let Sections::Count(count) = sections
        && !usize::try_from(*count).is_ok_and(|count| count > 0 && dims[at].is_multiple_of(count))
    {
        return Err(unfit(op));
    }
    pieces(op, x, sections, at)
}

/// [`tensor_split`] of the columns: dim 1, or dim 0 of a vector; a number of pieces divides it.
///
/// # Errors
/// Returns an error if there are no dims, or the pieces are not of one size.
#[op(view, member, method, path = "fx_nn::ops::hsplit")]
pub fn hsplit(x: &Tensor, indices_or_sections: impl Into<Sections>) -> Result<List<Tensor>> {
    let at = usize::from(x.dims()?.len() > 1);
    even("hsplit", x, &indices_or_sections, at, 1)
}

/// [`tensor_split`] of the rows, dim 0; a number of pieces divides it.
///
/// # Errors
/// Returns an error if there are fewer than two dims, or the pieces are not of one size.
#[op(view, method, path = "fx_nn::ops::vsplit")]
pub fn vsplit(x: &Tensor, indices_or_sections: impl Into<Sections>) -> Result<List<Tensor>> {
    even("vsplit", x, &indices_or_sections, 0, 2)
}

/// [`tensor_split`] of dim 2; a number of pieces divides it.
///
/// # Errors
/// Returns an error if there are fewer than three dims, or the pieces are not of one size.
#[op(view, method, path = "fx_nn::ops::dsplit")]
pub fn dsplit(x: &Tensor, indices_or_sections: impl Into<Sections>) -> Result<List<Tensor>> {
    even("dsplit", x, &indices_or_sections, 2, 3)
}
