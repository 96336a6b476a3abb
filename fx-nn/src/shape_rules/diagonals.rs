//! Diagonals of matrices, matrices of diagonals, and the places of triangles.

use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::reductions::without;
use super::{at_least, not_negative, rules, tensor, wrong, x};
use crate::ops;

rules! {
    diagonal => ops::diagonal;
    embedded => ops::diag_embed;
    diag => ops::diag;
    diagflat => ops::diagflat;
    |call| triangle(call, false) => ops::tril_indices;
    |call| triangle(call, true) => ops::triu_indices;
}

/// The dims without two, and the length of the diagonal of those.
pub(super) fn of_dims(
    call: &mut RuleCall<'_>,
    shape: &[Dim],
    offset: i64,
    dims: [i64; 2],
) -> Result<Vec<Dim>> {
    let [a, b] = dims;
    let (a, b) = (call.place(a, shape.len())?, call.place(b, shape.len())?);
    let (Some(rows), Some(columns), false) = (shape.get(a), shape.get(b), a == b) else {
        return Err(wrong(
            call,
            format_args!("{dims:?} are not two dims of the shape {shape:?}"),
        ));
    };
    let (down, right) = (offset.min(0).saturating_neg(), offset.max(0));
    let length = (rows - down)?.min((columns - right)?)?;
    let length = not_negative(call, length)?;
    let mut others = without(shape, &[a, b], false);
    others.push(length);
    Ok(others)
}

/// The shape with two more dims for the last one, of matrices that have it as a diagonal.
fn as_diagonal(
    call: &mut RuleCall<'_>,
    shape: &[Dim],
    offset: i64,
    [a, b]: [i64; 2],
) -> Result<Vec<Dim>> {
    let rank = shape.len() + 1;
    let (a, b) = (call.place(a, rank)?, call.place(b, rank)?);
    let ([others @ .., length], false) = (shape, a == b) else {
        return Err(wrong(
            call,
            format_args!("a diagonal of the shape {shape:?} has a dim, and two in the result"),
        ));
    };
    let offset = i64::try_from(offset.unsigned_abs()).map_err(Error::other)?;
    let side = (length + offset)?;
    let mut others = others.iter();
    let size = |at: usize| match at == a || at == b {
        true => Some(side.clone()),
        false => others.next().cloned(),
    };
    Ok((0..rank).filter_map(size).collect())
}

fn diagonal(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dims = [call.int("dim1")?, call.int("dim2")?];
    let shape = of_dims(call, &x.shape, call.int("offset")?, dims)?;
    Ok(tensor(shape, x.dtype))
}

fn embedded(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dims = [call.int("dim1")?, call.int("dim2")?];
    let shape = as_diagonal(call, &x.shape, call.int("offset")?, dims)?;
    Ok(tensor(shape, x.dtype))
}

/// The matrix of a vector, the diagonal of a matrix.
fn diag(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let offset = call.int("diagonal")?;
    let shape = match x.shape.len() {
        1 => as_diagonal(call, &x.shape, offset, [0, 1])?,
        2 => of_dims(call, &x.shape, offset, [0, 1])?,
        rank => {
            return Err(wrong(
                call,
                format_args!(
                    "a vector or a matrix is taken, and not {rank} dims: use `diagonal` or `diag_embed`"
                ),
            ));
        }
    };
    Ok(tensor(shape, x.dtype))
}

fn diagflat(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let flat = [Dim::product(&x.shape)?];
    let shape = as_diagonal(call, &flat, call.int("offset")?, [0, 1])?;
    Ok(tensor(shape, x.dtype))
}

/// How many places of a matrix are on a diagonal and on one side of it.
fn triangle(call: &mut RuleCall<'_>, is_upper: bool) -> Result<ValueMeta> {
    let (rows, columns) = (call.size("row")?, call.size("col")?);
    let offset = call.int("offset")?;
    for size in [&rows, &columns] {
        at_least(
            call,
            size,
            0,
            format_args!("a size is 0 or above, and not {size}"),
        )?;
    }
    let many = match (rows.as_number(), columns.as_number()) {
        (Some(rows), Some(columns)) => Dim::from(places(rows, columns, offset, is_upper)?),
        // As much as is below the mirrored diagonal.
        _ if rows == columns => match is_upper {
            true => of_square(call, &rows, offset.saturating_neg())?,
            false => of_square(call, &rows, offset)?,
        },
        _ => call.env().fresh(0, None)?,
    };
    Ok(tensor(vec![Dim::known(2), many], Some(DType::I64)))
}

fn places(rows: i64, columns: i64, offset: i64, is_upper: bool) -> Result<i64> {
    let (rows, columns, offset) = (i128::from(rows), i128::from(columns), i128::from(offset));
    // The sum of 1, 2, .. until it stays at the number of columns.
    let sum = |to: i128| {
        let to = to.max(0);
        let rising = to.min(columns);
        let stays = (to - rising).checked_mul(columns)?;
        (rising * (rising + 1) / 2).checked_add(stays)
    };
    let below = |offset: i128| sum(offset + rows)?.checked_sub(sum(offset)?);
    let many = match is_upper {
        false => below(offset),
        true => below(offset - 1).and_then(|below| (rows * columns).checked_sub(below)),
    };
    let many = many.and_then(|many| i64::try_from(many).ok());
    many.ok_or_else(|| {
        Error::msg("the number of indices does not fit an `int64`: take fewer rows or columns")
    })
}

/// On and below a diagonal of a square of a size with a name.
fn of_square(call: &mut RuleCall<'_>, n: &Dim, offset: i64) -> Result<Dim> {
    let sum = |to: Dim| (&to * (&to + 1)?)?.div(2);
    match offset {
        ..=0 => {
            let side = not_negative(call, (n + offset)?)?;
            sum(side)
        }
        _ => {
            let side = not_negative(call, ((n - offset)? - 1)?)?;
            (n * n)? - sum(side)?
        }
    }
}
