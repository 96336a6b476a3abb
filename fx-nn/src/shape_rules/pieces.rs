//! Pieces of a tensor along a dim.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::Dim;

use super::reductions::without;
use super::{divided, place, resized, rules, tensor, wrong, x};
use crate::ops;

rules! {
    split => ops::split;
    split_with_sizes => ops::split_with_sizes;
    chunk => ops::chunk;
    unbind => ops::unbind;
    tensor_split => ops::tensor_split;
    |call| even(call, usize::from(x(call)?.shape.len() > 1), 1) => ops::hsplit;
    |call| even(call, 0, 2) => ops::vsplit;
    |call| even(call, 2, 3) => ops::dsplit;
}

/// How many pieces a rule lists.
const MOST: usize = 65_536;

/// Returns the number of pieces, or an error if they are more than a rule lists.
fn few(call: &RuleCall<'_>, many: i64) -> Result<usize> {
    let few = usize::try_from(many).ok().filter(|many| *many <= MOST);
    few.ok_or_else(|| {
        wrong(
            call,
            format_args!("{many} pieces are listed one by one, which are {MOST} at most: take larger ones, or use `narrow`"),
        )
    })
}

/// Pieces of these sizes of a dim.
fn pieces_of(
    call: &RuleCall<'_>,
    place: usize,
    sizes: impl IntoIterator<Item = Result<Dim>>,
) -> Result<ValueMeta> {
    let x = x(call)?;
    let piece = |size: Result<Dim>| Ok(tensor(resized(&x.shape, place, size?), x.dtype));
    let pieces: Result<Vec<ValueMeta>> = sizes.into_iter().map(piece).collect();
    Ok(ValueMeta::List(pieces?))
}

/// The dim that is cut, and its size.
fn cut<'c>(call: &RuleCall<'c>, place: usize) -> Result<&'c Dim> {
    let size = x(call)?.shape.get(place);
    size.ok_or_else(|| wrong(call, "a tensor without dims has no dim to split"))
}

/// A size that decides how many pieces there are.
fn known(call: &RuleCall<'_>, size: &Dim) -> Result<i64> {
    size.as_number().ok_or_else(|| {
        wrong(
            call,
            format_args!("the number of pieces depends on `{size}`, which is known only when the graph runs: use `split_with_sizes` or `narrow`"),
        )
    })
}

/// Pieces of a size, and a smaller one at the end.
fn steps(call: &RuleCall<'_>, place: usize, size: i64, by: i64) -> Result<ValueMeta> {
    let (size, by) = (size.max(0), by.max(1));
    let rounded = size / by + i64::from(size % by > 0);
    let many = few(call, rounded.max(1))?;
    let starts = (0..many).map(|at| Dim::from(at) * by);
    pieces_of(
        call,
        place,
        starts.map(|start| (Dim::from(size) - start?)?.min(by)),
    )
}

fn split(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let place = place(call, "dim", x(call)?.shape.len())?;
    let size = cut(call, place)?;
    let by = call.size("split_size")?;
    // A whole number of equal pieces, whatever the size is.
    if *size != 0
        && by != 0
        && let Some(many) = size.exact_div(&by)?.and_then(|many| many.as_number())
        && many > 0
    {
        let many = few(call, many)?;
        return pieces_of(call, place, (0..many).map(|_| Ok(by.clone())));
    }
    let size = known(call, size)?;
    match call.int("split_size")? {
        by if by > 0 || (by == 0 && size == 0) => steps(call, place, size, by),
        by => Err(wrong(
            call,
            format_args!("the size of a chunk is 1 or above, and not {by}"),
        )),
    }
}

fn split_with_sizes(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let place = place(call, "dim", x(call)?.shape.len())?;
    let size = cut(call, place)?;
    let sizes = call.sizes("split_sizes")?;
    let mut sum = Dim::known(0);
    for size in &sizes {
        sum = (sum + size)?;
        if size.as_number().is_some_and(|size| size < 0) {
            return Err(wrong(
                call,
                format_args!("the size of a chunk is 0 or above, and not {size}"),
            ));
        }
    }
    call.same(size, &sum, || {
        format!("the sizes {sizes:?} do not add up to the dim")
    })?;
    pieces_of(call, place, sizes.into_iter().map(Ok))
}

fn chunk(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let place = place(call, "dim", x(call)?.shape.len())?;
    let size = cut(call, place)?;
    let chunks = call.int("chunks")?;
    if chunks < 1 {
        return Err(wrong(
            call,
            format_args!("the number of chunks is 1 or above, and not {chunks}"),
        ));
    }
    if let Some(each) = size.exact_div(&chunks.into())? {
        let many = few(call, chunks)?;
        return pieces_of(call, place, (0..many).map(|_| Ok(each.clone())));
    }
    let size = known(call, size)?;
    let by = size / chunks + i64::from(size % chunks > 0);
    steps(call, place, size, by)
}

fn unbind(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let many = few(call, known(call, cut(call, place)?)?)?;
    let one = tensor(without(&x.shape, &[place], false), x.dtype);
    Ok(ValueMeta::List(vec![one; many]))
}

fn tensor_split(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let place = place(call, "dim", x(call)?.shape.len())?;
    sections(call, place)
}

/// A number of pieces divides the dim.
fn even(call: &mut RuleCall<'_>, place: usize, least: usize) -> Result<ValueMeta> {
    let x = x(call)?;
    if x.shape.len() < least {
        return Err(wrong(
            call,
            format_args!("{least} dims are needed at least, and not {:?}", x.shape),
        ));
    }
    let size = cut(call, place)?;
    let given = call.arg("indices_or_sections")?;
    if given.items().is_some() {
        return sections(call, place);
    }
    let count = given.int()?;
    if count < 1 {
        return Err(wrong(
            call,
            format_args!("the number of chunks is 1 or above, and not {count}"),
        ));
    }
    let many = few(call, count)?;
    let each = divided(call, size, count, "elements in pieces")?;
    pieces_of(call, place, (0..many).map(|_| Ok(each.clone())))
}

/// So many pieces, of which the first may be larger by one, or pieces between places.
fn sections(call: &mut RuleCall<'_>, place: usize) -> Result<ValueMeta> {
    let size = cut(call, place)?;
    let given = call.arg("indices_or_sections")?;
    let Some(ends) = given.items() else {
        let count = given.int()?;
        if count < 1 {
            return Err(wrong(
                call,
                format_args!("the number of chunks is 1 or above, and not {count}"),
            ));
        }
        let many = few(call, count)?;
        let each = |at: usize| ((size + (count - 1))? - at)?.div(count);
        return pieces_of(call, place, (0..many).map(each));
    };
    let mut sizes = Vec::with_capacity(ends.len() + 1);
    let mut start = Dim::known(0);
    for end in ends {
        let end = end_of(call, size, end.int()?)?;
        sizes.push(between(call, &start, &end)?);
        start = end;
    }
    sizes.push(between(call, &start, size)?);
    pieces_of(call, place, sizes.into_iter().map(Ok))
}

/// As in slices: a negative place counts from the end, and all are held in the dim.
pub(super) fn end_of(call: &mut RuleCall<'_>, size: &Dim, place: i64) -> Result<Dim> {
    let is_inside = call.env().at_least(size, place.saturating_abs())?;
    match (place, is_inside) {
        (0.., true) => Ok(place.into()),
        (0.., false) => Ok(size.clone()),
        (_, true) => size + place,
        (_, false) => Ok(Dim::known(0)),
    }
}

/// The size between two places, or 0 where the second is before the first.
pub(super) fn between(call: &mut RuleCall<'_>, start: &Dim, end: &Dim) -> Result<Dim> {
    let size = (end - start)?;
    match call.env().at_least(&size, 0)? {
        true => Ok(size),
        false => Ok(Dim::known(0)),
    }
}
