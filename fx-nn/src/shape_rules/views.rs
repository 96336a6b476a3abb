//! Other orders and shapes of the same elements, and parts of dims.

use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::{rules, tensor, x};
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
}

/// Sizes of which one may be -1: what is left for it.
fn filled(call: &mut RuleCall<'_>, from: &[Dim], to: Vec<Dim>) -> Result<Vec<Dim>> {
    let name = call.function().name();
    let elements = Dim::product(from)?;
    let rest = to.iter().filter(|dim| dim.as_number() != Some(-1));
    let known = Dim::product(rest)?;
    let text = format!("{to:?}");
    let fits = |elements: &Dim| {
        Error::msg(format_args!(
            "{name}: the shape {from:?} of {elements} elements cannot become {text}"
        ))
    };
    match to.iter().filter(|dim| dim.as_number() == Some(-1)).count() {
        0 => match call.env().same(&elements, &known)? {
            true => Ok(to),
            false => Err(fits(&elements)),
        },
        1 => {
            let left = call
                .env()
                .divided(&elements, &known)
                .map_err(|_| fits(&elements))?;
            let fill = |dim: Dim| match dim.as_number() {
                Some(-1) => left.clone(),
                _ => dim,
            };
            Ok(to.into_iter().map(fill).collect())
        }
        _ => Err(fits(&elements)),
    }
}

fn reshape(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let to = call.sizes("shape")?;
    let shape = filled(call, &x.shape, to)?;
    Ok(tensor(shape, x.dtype))
}

fn flatten(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (start, end) = (
        call.place(call.int("start_dim")?, rank)?,
        call.place(call.int("end_dim")?, rank)?,
    );
    if rank == 0 {
        return Ok(tensor(vec![Dim::known(1)], x.dtype));
    }
    if start > end {
        return Err(Error::msg("flatten: the first dim is behind the last"));
    }
    let mut shape = x.shape[..start].to_vec();
    shape.push(Dim::product(&x.shape[start..=end])?);
    shape.extend_from_slice(&x.shape[end + 1..]);
    Ok(tensor(shape, x.dtype))
}

fn ravel(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    Ok(tensor(vec![Dim::product(&x.shape)?], x.dtype))
}

fn swapped(call: &mut RuleCall<'_>, a: &str, b: &str) -> Result<Fake> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (a, b) = (
        call.place(call.int(a)?, rank)?,
        call.place(call.int(b)?, rank)?,
    );
    let mut shape = x.shape.clone();
    if rank > 0 {
        shape.swap(a, b);
    }
    Ok(tensor(shape, x.dtype))
}

fn transposed(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let mut shape = x.shape.clone();
    match shape.len() {
        0..=2 => shape.reverse(),
        rank => {
            return Err(Error::msg(format_args!(
                "t: a tensor has {rank} dims, and 2 at most"
            )));
        }
    }
    Ok(tensor(shape, x.dtype))
}

fn permute(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dims", x.shape.len())?;
    let mut seen = places.clone();
    seen.sort_unstable();
    if !seen.into_iter().eq(0..x.shape.len()) {
        return Err(Error::msg(format_args!(
            "permute: {places:?} are not the {} dims",
            x.shape.len()
        )));
    }
    let shape = places.iter().map(|at| x.shape[*at].clone());
    Ok(tensor(shape.collect(), x.dtype))
}

fn unsqueeze(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len() + 1)?;
    let mut shape = x.shape.clone();
    shape.insert(place, Dim::known(1));
    Ok(tensor(shape, x.dtype))
}

fn squeeze(call: &mut RuleCall<'_>) -> Result<Fake> {
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

/// -1 keeps a size.
fn expand(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let mut shape = call.sizes("size")?;
    let new = shape.len().checked_sub(x.shape.len());
    let new = new.ok_or_else(|| {
        Error::msg(format_args!(
            "expand: {:?} has more dims than {shape:?}",
            x.shape
        ))
    })?;
    for (size, own) in shape[new..].iter_mut().zip(&x.shape) {
        if size.as_number() == Some(-1) {
            *size = own.clone();
        } else if *own != 1 {
            call.same(own, size, || {
                format!("the shape {:?} does not expand", x.shape)
            })?;
        }
    }
    Ok(tensor(shape, x.dtype))
}

fn size(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let size = x.shape.get(place).cloned();
    size.map(Fake::Int)
        .ok_or_else(|| Error::msg("size: the tensor has no dims"))
}

fn select(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if place < shape.len() {
        shape.remove(place);
    }
    Ok(tensor(shape, x.dtype))
}

fn narrow(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(place) {
        let length = call.size("length")?;
        let left = (&*size - &length)?;
        if !call.env().at_least(&left, 0)? {
            return Err(Error::msg(format_args!("narrow: {length} of {size}")));
        }
        *size = length;
    }
    Ok(tensor(shape, x.dtype))
}

fn unflatten(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let to = call.sizes("sizes")?;
    let from = x.shape.get(place..=place).unwrap_or(&[]).to_vec();
    let sizes = filled(call, &from, to)?;
    let mut shape = x.shape.clone();
    if place < shape.len() {
        shape.splice(place..=place, sizes);
    }
    Ok(tensor(shape, x.dtype))
}

fn repeat(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let param = match call.function().name() {
        "tile" => "dims",
        _ => "repeats",
    };
    let mut times = call.sizes(param)?;
    let mut shape = x.shape.clone();
    if times.len() < shape.len() && param == "repeats" {
        return Err(Error::msg(format_args!(
            "repeat: {} numbers for {} dims",
            times.len(),
            shape.len()
        )));
    }
    while times.len() < shape.len() {
        times.insert(0, Dim::known(1));
    }
    while shape.len() < times.len() {
        shape.insert(0, Dim::known(1));
    }
    let shape = shape.iter().zip(&times).map(|(size, times)| size * times);
    Ok(tensor(shape.collect::<Result<_>>()?, x.dtype))
}

/// Two numbers per dim, the last dim's first.
fn pad(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let pads = call.sizes("pad")?;
    let mut shape = x.shape.clone();
    if pads.len() % 2 != 0 || pads.len() / 2 > shape.len() {
        return Err(Error::msg(format_args!(
            "pad: {} numbers for {} dims",
            pads.len(),
            shape.len()
        )));
    }
    for (size, pad) in shape.iter_mut().rev().zip(pads.chunks(2)) {
        for amount in pad {
            *size = (&*size + amount)?;
        }
    }
    Ok(tensor(shape, x.dtype))
}

fn moved(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let rank = x.shape.len();
    let (from, to) = (
        call.places("source", rank)?,
        call.places("destination", rank)?,
    );
    if from.len() != to.len() {
        return Err(Error::msg(format_args!(
            "{} dims move to {} places",
            from.len(),
            to.len()
        )));
    }
    let mut left = (0..rank).filter(|at| !from.contains(at));
    let mut shape = Vec::with_capacity(rank);
    for at in 0..rank {
        let source = match to.iter().position(|place| *place == at) {
            Some(position) => Some(from[position]),
            None => left.next(),
        };
        shape.extend(source.and_then(|at| x.shape.get(at)).cloned());
    }
    Ok(tensor(shape, x.dtype))
}

fn rotated(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dims", x.shape.len())?;
    let mut shape = x.shape.clone();
    match (&places[..], call.int("k")? % 2) {
        ([_, _], 0) => {}
        ([a, b], _) => shape.swap(*a, *b),
        _ => return Err(Error::msg("rot90: two dims are turned")),
    }
    Ok(tensor(shape, x.dtype))
}
