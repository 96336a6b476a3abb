//! Other orders and shapes of the same elements, and parts of dims.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::Dim;

use super::picks::inside;
use super::reductions::without;
use super::{
    at_least, count, divided, like, number, place, require_held, require_rank, resized, rules,
    tensor, wide, word, wrong, x,
};
use crate::ops;

rules! {
    reshape => ops::reshape, ops::view;
    flatten => ops::flatten;
    ravel => ops::ravel;
    |call| swapped(call, "dim0", "dim1") => ops::transpose, ops::swapdims;
    |call| swapped(call, "axis0", "axis1") => ops::swapaxes;
    transposed => ops::t;
    permute => ops::permute;
    unsqueeze => ops::unsqueeze;
    squeeze => ops::squeeze;
    expand => ops::expand, ops::broadcast_to;
    size => ops::size;
    select => ops::select;
    narrow => ops::narrow;
    unflatten => ops::unflatten;
    repeat => ops::repeat, ops::tile;
    pad => ops::pad;
    moved => ops::movedim, ops::moveaxis;
    rotated => ops::rot90;
    flip => ops::flip;
    |call| same_of_rank(call, 2) => ops::fliplr;
    |call| same_of_rank(call, 1) => ops::flipud;
    roll => ops::roll;
    channel_shuffle => ops::channel_shuffle;
}

/// Sizes of which one may be -1: what is left for it.
fn filled(call: &mut RuleCall<'_>, from: &[Dim], to: Vec<Dim>) -> Result<Vec<Dim>> {
    let elements = Dim::product(from)?;
    let is_open = |size: &&Dim| size.as_number() == Some(-1);
    let known = Dim::product(to.iter().filter(|size| !is_open(size)))?;
    let misfit = |call: &RuleCall<'_>| {
        wrong(
            call,
            format_args!("the shape {from:?} of {elements} elements cannot become {to:?}"),
        )
    };
    if to
        .iter()
        .any(|size| size.as_number().is_some_and(|size| size < -1))
    {
        return Err(misfit(call));
    }
    let left = match to.iter().filter(is_open).count() {
        0 if call.env().same(&elements, &known)? => return Ok(to),
        1 => call.env().divided(&elements, &known).ok(),
        _ => None,
    };
    let left = left.ok_or_else(|| misfit(call))?;
    let fill = |size: &Dim| match size.as_number() {
        Some(-1) => left.clone(),
        _ => size.clone(),
    };
    Ok(to.iter().map(fill).collect())
}

fn reshape(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let to = call.sizes("shape")?;
    if call.is_unranked("x")?
        && let ValueMeta::Unranked(dtype) = *call.arg("x")?
    {
        // Of a tensor whose number of dims a run decides, the sizes that it gets are known.
        let sizes = to
            .into_iter()
            .map(|size| match size.as_number() == Some(-1) {
                true => call.env().fresh(0, None),
                false => Ok(size),
            });
        return Ok(tensor(sizes.collect::<Result<Vec<Dim>>>()?, dtype));
    }
    let x = x(call)?;
    let shape = filled(call, &x.shape, to)?;
    Ok(tensor(shape, x.dtype))
}

fn ravel(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(tensor(vec![Dim::product(&x.shape)?], x.dtype))
}

fn unsqueeze(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len() + 1)?;
    let mut shape = x.shape.clone();
    shape.insert(place, Dim::known(1));
    Ok(tensor(shape, x.dtype))
}

fn squeeze(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    // A size with a name is taken not to be 1.
    if let Some(size) = shape.get(place)
        && *size != 0
        && !call.env().at_least(size, 2)?
    {
        shape.remove(place);
    }
    Ok(tensor(shape, x.dtype))
}

fn flatten(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (start, end) = (
        place(call, "start_dim", rank)?,
        place(call, "end_dim", rank)?,
    );
    let merged = x.shape.get(start..=end);
    let (Some(merged), Some(behind)) = (merged, x.shape.get(end + 1..)) else {
        return match rank {
            0 => Ok(tensor(vec![Dim::known(1)], x.dtype)),
            _ => Err(wrong(
                call,
                "`start_dim` is behind `end_dim`: name the first one first",
            )),
        };
    };
    let before = x.shape.iter().take(start).cloned();
    let shape = before.chain([Dim::product(merged)?]);
    Ok(tensor(
        shape.chain(behind.iter().cloned()).collect(),
        x.dtype,
    ))
}

fn swapped(call: &mut RuleCall<'_>, a: &str, b: &str) -> Result<ValueMeta> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (a, b) = (place(call, a, rank)?, place(call, b, rank)?);
    Ok(tensor(exchanged(&x.shape, a, b), x.dtype))
}

/// Two sizes in each other's place.
fn exchanged(shape: &[Dim], a: usize, b: usize) -> Vec<Dim> {
    match (shape.get(a), shape.get(b)) {
        (Some(of_a), Some(of_b)) => resized(&resized(shape, a, of_b.clone()), b, of_a.clone()),
        _ => shape.to_vec(),
    }
}

fn transposed(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    if x.shape.len() > 2 {
        return Err(wrong(
            call,
            format_args!(
                "the shape {:?} has more than two dims: use `transpose` or `permute`",
                x.shape
            ),
        ));
    }
    let shape = x.shape.iter().rev().cloned();
    Ok(tensor(shape.collect(), x.dtype))
}

fn permute(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let rank = x.shape.len();
    let places = call.places("dims", rank)?;
    let named = match (call.arg("dims")?.is_none(), call.arg("dims")?.items()) {
        (true, _) => rank,
        (false, Some(items)) => items.len(),
        (false, None) => 1,
    };
    if named != rank {
        return Err(wrong(
            call,
            format_args!(
                "{named} dims are named, and not each of the shape {:?} once",
                x.shape
            ),
        ));
    }
    let shape = places.iter().filter_map(|at| x.shape.get(*at)).cloned();
    Ok(tensor(shape.collect(), x.dtype))
}

/// -1 keeps a size.
fn expand(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let mut shape = call.sizes("size")?;
    let Some(new) = shape.len().checked_sub(x.shape.len()) else {
        return Err(wrong(
            call,
            format_args!(
                "the shape {:?} has more dims than {shape:?}: name a size for each",
                x.shape
            ),
        ));
    };
    for (size, own) in shape.iter_mut().skip(new).zip(&x.shape) {
        if size.as_number() == Some(-1) {
            *size = own.clone();
        } else if *own != 1 {
            call.same(own, size, || {
                format!(
                    "only dims of size 1 are repeated, of the shape {:?}",
                    x.shape
                )
            })?;
        }
    }
    for size in &shape {
        at_least(
            call,
            size,
            0,
            format_args!("only dims that there are stay with -1: {size} is new"),
        )?;
    }
    Ok(tensor(shape, x.dtype))
}

fn size(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let size = x.shape.get(place).cloned();
    size.map(ValueMeta::Int)
        .ok_or_else(|| wrong(call, "a tensor without dims has no sizes"))
}

fn select(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    inside(call, x.shape.get(place), "index")?;
    Ok(tensor(without(&x.shape, &[place], false), x.dtype))
}

/// A start below 0 counts from the end.
fn narrow(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let Some(size) = x.shape.get(place) else {
        return Err(wrong(call, "a tensor without dims has no slices"));
    };
    let (start, length) = (call.size("start")?, call.size("length")?);
    let problem = format!("{length} slices from {start} on are not all in a dim of {size}");
    let first = match call.env().bounds(&start) {
        (_, Some(..0)) => (size + &start)?,
        // A start with a name is taken not to count from the end.
        _ => start,
    };
    at_least(call, &length, 0, &problem)?;
    at_least(call, &first, 0, &problem)?;
    at_least(call, &((size - first)? - &length)?, 0, &problem)?;
    Ok(tensor(resized(&x.shape, place, length), x.dtype))
}

fn unflatten(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let to = call.sizes("sizes")?;
    let Some(from) = x.shape.get(place).filter(|_| !to.is_empty()) else {
        return Err(wrong(
            call,
            "a dim becomes one dim or more: give one size at least",
        ));
    };
    let sizes = filled(call, std::slice::from_ref(from), to)?;
    let mut shape = x.shape.clone();
    shape.splice(place..=place, sizes);
    Ok(tensor(shape, x.dtype))
}

/// New dims are in front; of `tile` the numbers are those of the last dims.
fn repeat(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let is_tile = call.function() == fx_core::function!(ops::tile);
    let times = call.sizes(if is_tile { "dims" } else { "repeats" })?;
    let rank = times.len().max(x.shape.len());
    if times.len() < rank && !is_tile {
        return Err(wrong(
            call,
            format_args!("{} numbers for {rank} dims: give one for each", times.len()),
        ));
    }
    for times in &times {
        at_least(
            call,
            times,
            0,
            format_args!("a number of times is 0 or above, and not {times}"),
        )?;
    }
    let sizes = wide(&x.shape, rank).into_iter().zip(wide(&times, rank));
    let shape: Result<_> = sizes.map(|(size, times)| size * times).collect();
    Ok(tensor(shape?, x.dtype))
}

/// Two numbers per dim, the last dim's first.
fn pad(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let pads = call.sizes("pad")?;
    let (pairs, rest) = pads.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > x.shape.len() {
        return Err(wrong(
            call,
            format_args!(
                "{} numbers for {} dims: give two for each dim that is padded",
                pads.len(),
                x.shape.len()
            ),
        ));
    }
    let mode = word(
        call,
        "mode",
        &["constant", "reflect", "replicate", "circular"],
    )?;
    if mode == "constant" {
        require_held(call, "value", x.dtype)?;
    } else {
        if number(call, "value")?.is_some_and(|value| value != 0.0) {
            return Err(wrong(call, "a value is for the mode \"constant\""));
        }
        if pairs.is_empty() || pairs.len() > 3 {
            return Err(wrong(call, "the mode pads one, two or three dims"));
        }
        require_rank(call, x, pairs.len() + 1..=pairs.len() + 2)?;
        let batch = usize::from(x.shape.len() == pairs.len() + 2);
        for size in x.shape.iter().skip(batch).filter(|_| mode != "circular") {
            at_least(call, size, 1, "no dim but that of the batch may be empty")?;
        }
    }
    let mut shape = x.shape.clone();
    for (size, [before, after]) in shape.iter_mut().rev().zip(pairs) {
        *size = padded(call, size, [before, after], mode)?;
    }
    Ok(tensor(shape, x.dtype))
}

/// A dim with elements before and after it, or without some of its own where these are negative.
fn padded(call: &mut RuleCall<'_>, size: &Dim, sides: [&Dim; 2], mode: &str) -> Result<Dim> {
    let [before, after] = sides;
    let problem = format!("a padding of {before} and {after} does not fit a dim of {size}");
    if before.as_number() == Some(0) && after.as_number() == Some(0) {
        return Ok(size.clone());
    }
    let mut own = size.clone();
    for side in sides {
        match (side.as_number(), mode) {
            (Some(side @ ..0), _) => own = (own + side)?,
            (_, "reflect") => at_least(call, &((size - side)? - 1)?, 0, &problem)?,
            (_, "circular") => at_least(call, &(size - side)?, 0, &problem)?,
            _ => {}
        }
    }
    let all = ((size + before)? + after)?;
    match mode {
        "constant" => at_least(call, &own, 0, &problem)?,
        "circular" => at_least(call, &all, 0, &problem)?,
        _ => at_least(call, &all, 1, &problem)?,
    }
    Ok(all)
}

fn moved(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (from, to) = (
        call.places("source", rank)?,
        call.places("destination", rank)?,
    );
    if from.len() != to.len() {
        return Err(wrong(
            call,
            format_args!(
                "{} dims do not move to {} dims: name as many",
                from.len(),
                to.len()
            ),
        ));
    }
    let mut left = (0..rank).filter(|at| !from.contains(at));
    let mut shape = Vec::with_capacity(rank);
    for at in 0..rank {
        let position = to.iter().position(|place| *place == at);
        let source = match position {
            Some(position) => from.get(position).copied(),
            None => left.next(),
        };
        shape.extend(source.and_then(|at| x.shape.get(at)).cloned());
    }
    Ok(tensor(shape, x.dtype))
}

/// An odd number of quarter turns swaps the two sizes.
fn rotated(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let places = call.places("dims", x.shape.len())?;
    let [a, b] = places[..] else {
        return Err(wrong(call, "a plane is turned: name two dims"));
    };
    Ok(match call.int("k")? % 2 {
        0 => like(x, x.dtype),
        _ => tensor(exchanged(&x.shape, a, b), x.dtype),
    })
}

fn flip(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    call.places("dims", x.shape.len())?;
    Ok(like(x, x.dtype))
}

fn same_of_rank(call: &mut RuleCall<'_>, least: usize) -> Result<ValueMeta> {
    let x = x(call)?;
    require_rank(call, x, least..)?;
    Ok(like(x, x.dtype))
}

/// A shift for each dim that is named, or one without dims; a dim may be named twice.
fn roll(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let (shifts, dims) = (call.sizes("shifts")?, call.arg("dims")?);
    let named = match (dims.is_none(), dims.items()) {
        (true, _) | (_, Some([])) => Vec::new(),
        (_, Some(items)) => items.iter().map(ValueMeta::int).collect::<Result<_>>()?,
        (_, None) => vec![dims.int()?],
    };
    if shifts.len() != named.len().max(1) {
        return Err(wrong(
            call,
            format_args!(
                "{} shifts for {} dims: give one for each, or one without dims",
                shifts.len(),
                named.len()
            ),
        ));
    }
    // Nothing is rolled along any dim.
    if x.shape.iter().all(|size| *size != 0) {
        for dim in &named {
            call.place(*dim, x.shape.len())?;
            require_rank(call, x, 1..)?;
        }
    }
    Ok(like(x, x.dtype))
}

fn channel_shuffle(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require_rank(call, x, 3..)?;
    let groups = count(call, "groups")?;
    if let Some(channels) = x.shape.get(1) {
        divided(call, channels, groups, "channels in groups")?;
    }
    Ok(like(x, x.dtype))
}
