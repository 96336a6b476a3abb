//! Other orders and shapes of the same elements, parts of tensors, and tensors put together.

use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{like, product, rules, tensor, x};
use crate::{control, ops};

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
    cat => ops::cat;
    stack => ops::stack;
    stacked => control::stacked;
    split => ops::split;
    split_with_sizes => ops::split_with_sizes;
    chunk => ops::chunk;
    unbind => ops::unbind;
    index_select => ops::index_select;
    gather => ops::gather;
    embedding => ops::embedding;
    one_hot => ops::one_hot;
    repeat => ops::repeat, ops::tile;
    pad => ops::pad;
    nonzero => ops::nonzero, ops::argwhere;
    masked_select => ops::masked_select;
    pixel_shuffle => ops::pixel_shuffle;
    pixel_unshuffle => ops::pixel_unshuffle;
    |call| with_dims(call, 1) => ops::atleast_1d;
    |call| with_dims(call, 2) => ops::atleast_2d;
    |call| with_dims(call, 3) => ops::atleast_3d;
    |call| joined(call, 1, 0) => ops::vstack, ops::row_stack;
    |call| joined(call, 0, 1) => ops::hstack;
    |call| joined(call, 2, 2) => ops::dstack;
    moved => ops::movedim, ops::moveaxis;
    take => ops::take;
    rotated => ops::rot90;
}

/// Sizes of which one may be -1: what is left for it.
fn filled(call: &mut RuleCall<'_>, from: &[Dim], to: Vec<Dim>) -> Result<Vec<Dim>> {
    let name = call.function().name();
    let elements = product(from)?;
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
    shape.push(product(&x.shape[start..=end])?);
    shape.extend_from_slice(&x.shape[end + 1..]);
    Ok(tensor(shape, x.dtype))
}

fn ravel(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    Ok(tensor(vec![product(&x.shape)?], x.dtype))
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

fn cat(call: &mut RuleCall<'_>) -> Result<Fake> {
    let mut tensors = call.tensors("tensors")?;
    // An empty vector fits everything.
    if tensors.iter().any(|meta| meta.shape.len() != 1) {
        tensors.retain(|meta| meta.shape.len() != 1 || meta.shape[0] != 0);
    }
    let dtype = result_type(call.arg("tensors")?.items().unwrap_or_default());
    let [first, rest @ ..] = &tensors[..] else {
        return Err(Error::msg("cat: the list of tensors is empty"));
    };
    let place = call.place(call.int("dim")?, first.shape.len())?;
    let mut shape = first.shape.clone();
    for other in rest {
        if other.shape.len() != shape.len() {
            return Err(Error::msg(format_args!(
                "cat: the shapes {shape:?} and {:?} differ in their dims",
                other.shape
            )));
        }
        for (at, (size, own)) in shape.iter_mut().zip(&other.shape).enumerate() {
            if at == place {
                *size = (&*size + own)?;
            } else {
                call.same(size, own, || {
                    format!(
                        "the shapes {:?} and {:?} do not fit",
                        first.shape, other.shape
                    )
                })?;
            }
        }
    }
    Ok(tensor(shape, dtype))
}

fn stack(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dim = call.int("dim")?;
    put_together(call, "tensors", dim)
}

fn stacked(call: &mut RuleCall<'_>) -> Result<Fake> {
    if let Fake::Repeated(item, length) = call.arg("items")?
        && let Fake::Single(item) = &**item
    {
        let shape = std::iter::once(length).chain(&item.shape).cloned();
        return Ok(tensor(shape.collect(), item.dtype));
    }
    put_together(call, "items", 0)
}

fn put_together(call: &mut RuleCall<'_>, param: &str, dim: i64) -> Result<Fake> {
    let tensors = call.tensors(param)?;
    let dtype = result_type(call.arg(param)?.items().unwrap_or_default());
    let [first, rest @ ..] = &tensors[..] else {
        return Err(Error::msg("stack: the list of tensors is empty"));
    };
    for other in rest {
        if other.shape.len() != first.shape.len() {
            return Err(Error::msg(format_args!(
                "stack: the shapes {:?} and {:?} differ",
                first.shape, other.shape
            )));
        }
        for (size, own) in first.shape.iter().zip(&other.shape) {
            call.same(size, own, || {
                format!("the shapes {:?} and {:?} differ", first.shape, other.shape)
            })?;
        }
    }
    let place = call.place(dim, first.shape.len() + 1)?;
    let mut shape = first.shape.clone();
    shape.insert(place, Dim::from(tensors.len()));
    Ok(tensor(shape, dtype))
}

/// Pieces of these sizes of a dim.
fn pieces(call: &RuleCall<'_>, place: usize, sizes: impl IntoIterator<Item = Dim>) -> Result<Fake> {
    let x = x(call)?;
    let piece = |size: Dim| {
        let mut shape = x.shape.clone();
        shape[place] = size;
        tensor(shape, x.dtype)
    };
    Ok(Fake::List(sizes.into_iter().map(piece).collect()))
}

/// A dim that is cut, whose size is a number, since it decides how many pieces there are.
fn cut(call: &RuleCall<'_>) -> Result<(usize, i64)> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let size = x.shape.get(place).and_then(Dim::as_number);
    let size = size.ok_or_else(|| {
        Error::msg(format_args!(
            "{}: the number of pieces depends on {:?}, which is known only when the graph runs: use `split_with_sizes` or `narrow`",
            call.function().name(),
            x.shape.get(place)
        ))
    })?;
    Ok((place, size))
}

fn split(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let by = call.size("split_size")?;
    // A whole number of equal pieces, whatever the size is.
    if let Some(size) = x.shape.get(place)
        && let Some(count) = size.exact_div(&by)?.and_then(|count| count.as_known())
    {
        return pieces(call, place, std::iter::repeat_n(by, count.max(1)));
    }
    let (place, size) = cut(call)?;
    let by = call.int("split_size")?;
    if by < 1 {
        return Err(Error::msg(format_args!("split: pieces of {by}")));
    }
    let sizes = (0..size.max(1)).step_by(by as usize);
    pieces(call, place, sizes.map(|start| by.min(size - start).into()))
}

fn split_with_sizes(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let sizes = call.sizes("split_sizes")?;
    let sum = sizes
        .iter()
        .try_fold(Dim::known(0), |sum, size| sum + size)?;
    if let Some(size) = x.shape.get(place) {
        call.same(size, &sum, || format!("the sizes {sizes:?} do not add up"))?;
    }
    pieces(call, place, sizes)
}

fn chunk(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let chunks = call.int("chunks")?;
    if chunks < 1 {
        return Err(Error::msg(format_args!("chunk: {chunks} pieces")));
    }
    if let Some(size) = x.shape.get(place)
        && let Some(each) = size.exact_div(&chunks.into())?
    {
        return pieces(call, place, std::iter::repeat_n(each, chunks as usize));
    }
    let (place, size) = cut(call)?;
    let by = (size + chunks - 1) / chunks;
    let sizes = (0..size.max(1)).step_by(by.max(1) as usize);
    pieces(call, place, sizes.map(|start| by.min(size - start).into()))
}

fn unbind(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (place, size) = cut(call)?;
    let x = x(call)?;
    let mut shape = x.shape.clone();
    shape.remove(place);
    let one = tensor(shape, x.dtype);
    Ok(Fake::List(vec![one; usize::try_from(size).unwrap_or(0)]))
}

fn index_select(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(place) {
        *size = product(&index.shape)?;
    }
    Ok(tensor(shape, x.dtype))
}

fn gather(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    call.place(call.int("dim")?, x.shape.len())?;
    Ok(like(index, x.dtype))
}

fn embedding(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    let mut shape = x.shape.clone();
    shape.extend(weight.shape.get(1).cloned());
    Ok(tensor(shape, weight.dtype))
}

fn one_hot(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let classes = match call.int("num_classes")? {
        -1 => call.env().fresh(1, None)?,
        classes => classes.into(),
    };
    let mut shape = x.shape.clone();
    shape.push(classes);
    Ok(tensor(shape, Some(DType::I64)))
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

fn nonzero(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let most = call.env().bounds(&product(&x.shape)?).1;
    let found = call.env().fresh(0, most)?;
    Ok(tensor(
        vec![found, Dim::from(x.shape.len())],
        Some(DType::I64),
    ))
}

fn masked_select(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, mask) = (x(call)?, call.tensor("mask")?);
    let shape = call.broadcast(&[&x.shape, &mask.shape])?;
    let most = call.env().bounds(&product(&shape)?).1;
    Ok(tensor(vec![call.env().fresh(0, most)?], x.dtype))
}

fn pixel_shuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let by = call.int("upscale_factor")?;
    let mut shape = x.shape.clone();
    if let [.., channels, h, w] = &mut shape[..] {
        *channels = call.env().divided(channels, &(by * by).into())?;
        (*h, *w) = ((&*h * by)?, (&*w * by)?);
    }
    Ok(tensor(shape, x.dtype))
}

fn pixel_unshuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let by = call.int("downscale_factor")?;
    let mut shape = x.shape.clone();
    if let [.., channels, h, w] = &mut shape[..] {
        *channels = (&*channels * (by * by))?;
        for size in [h, w] {
            *size = call.env().divided(size, &by.into())?;
        }
    }
    Ok(tensor(shape, x.dtype))
}

/// At least so many dims.
fn lifted(shape: &[Dim], dims: usize) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    match (shape.len(), dims) {
        (2, 3) => shape.push(Dim::known(1)),
        (1, 3) => {
            shape.insert(0, Dim::known(1));
            shape.push(Dim::known(1));
        }
        _ => {
            while shape.len() < dims {
                shape.insert(0, Dim::known(1));
            }
        }
    }
    shape
}

fn with_dims(call: &mut RuleCall<'_>, dims: usize) -> Result<Fake> {
    let x = x(call)?;
    Ok(tensor(lifted(&x.shape, dims), x.dtype))
}

/// Joined along a dim, each with more dims than `above`; vectors along their only one.
fn joined(call: &mut RuleCall<'_>, above: usize, place: usize) -> Result<Fake> {
    let tensors = call.tensors("tensors")?;
    let dtype = result_type(call.arg("tensors")?.items().unwrap_or_default());
    let shapes: Vec<Vec<Dim>> = tensors
        .iter()
        .map(|meta| lifted(&meta.shape, above + 1))
        .collect();
    let [first, rest @ ..] = &shapes[..] else {
        return Err(Error::msg("the list of tensors is empty"));
    };
    let place = place.min(first.len() - 1);
    let mut shape = first.clone();
    for other in rest {
        if other.len() != shape.len() {
            return Err(Error::msg(format_args!(
                "the shapes {first:?} and {other:?} differ in their dims"
            )));
        }
        for (at, (size, own)) in shape.iter_mut().zip(other).enumerate() {
            if at == place {
                *size = (&*size + own)?;
            } else {
                call.same(size, own, || {
                    format!("the shapes {first:?} and {other:?} do not fit")
                })?;
            }
        }
    }
    Ok(tensor(shape, dtype))
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

fn take(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, index) = (x(call)?, call.tensor("index")?);
    Ok(like(index, x.dtype))
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
