//! Fourier transforms, of tensors whose last dim of 2 is the parts of complex numbers.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::Dim;

use super::{
    Elements, at_least, fractional, like, named, place, require, require_type, resized, rules,
    tensor, word, wrong, x,
};
use crate::ops::fft;

rules! {
    one => fft::fft, fft::ifft;
    real => fft::rfft;
    to_real => fft::irfft;
    |call| several(call, false) => fft::fftn, fft::ifftn;
    |call| several(call, true) => fft::fft2, fft::ifft2;
    shifted => fft::fftshift, fft::ifftshift;
}

/// Where the sums are divided by their number.
const NORMS: &[&str] = &["backward", "forward", "ortho"];

/// The dims before the one of the parts.
fn without_parts<'m>(call: &mut RuleCall<'_>, meta: &'m TensorMeta) -> Result<&'m [Dim]> {
    let [dims @ .., parts] = &meta.shape[..] else {
        return Err(wrong(call, "a complex tensor has 2 in its last dim"));
    };
    call.same(parts, &2.into(), || {
        format!("a complex tensor has 2 in its last dim, `rfft` takes a real one: {meta}")
    })?;
    Ok(dims)
}

/// A complex tensor of a type that transforms are of, and the dims without that of the parts.
fn complex<'c>(call: &mut RuleCall<'c>) -> Result<(&'c TensorMeta, &'c [Dim])> {
    let x = x(call)?;
    require(call, x, Elements::Single)?;
    Ok((x, without_parts(call, x)?))
}

/// The place of the dim that is transformed, and how many elements of it.
fn transformed(
    call: &mut RuleCall<'_>,
    dims: &[Dim],
    default: impl FnOnce(&Dim) -> Result<Dim>,
) -> Result<(usize, Dim)> {
    word(call, "norm", NORMS)?;
    let place = place(call, "dim", dims.len())?;
    let Some(size) = dims.get(place) else {
        return Err(wrong(call, "a tensor without dims has none to transform"));
    };
    let n = match call.arg("n")?.is_none() {
        true => default(size)?,
        false => call.size("n")?,
    };
    not_empty(call, &n)?;
    Ok((place, n))
}

fn not_empty(call: &mut RuleCall<'_>, n: &Dim) -> Result<()> {
    at_least(
        call,
        n,
        1,
        format_args!("one element at least is transformed, and not {n}"),
    )
}

fn one(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, dims) = complex(call)?;
    let (place, n) = transformed(call, dims, |size| Ok(size.clone()))?;
    Ok(tensor(resized(&x.shape, place, n), x.dtype))
}

/// Half of the numbers, which the others mirror, and the first.
fn real(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dtype = fractional(x.dtype);
    require_type(call, dtype, Elements::Single)?;
    let (place, n) = transformed(call, &x.shape, |size| Ok(size.clone()))?;
    let mut shape = resized(&x.shape, place, (n.div(2)? + 1)?);
    shape.push(Dim::known(2));
    Ok(tensor(shape, dtype))
}

fn to_real(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, dims) = complex(call)?;
    let (place, n) = transformed(call, dims, |size| (size - 1)? * 2)?;
    Ok(tensor(resized(dims, place, n), x.dtype))
}

/// Along several dims: all, or the last ones, unless they are named.
fn several(call: &mut RuleCall<'_>, is_plane: bool) -> Result<ValueMeta> {
    word(call, "norm", NORMS)?;
    let (x, dims) = complex(call)?;
    let sizes = match call.arg("s")?.is_none() {
        true => None,
        false => Some(call.sizes("s")?),
    };
    let places = match (named(call, "dim", dims.len())?, is_plane, &sizes) {
        (Some(places), ..) => places,
        (None, true, _) => last(call, dims, 2)?,
        (None, false, Some(sizes)) => last(call, dims, sizes.len())?,
        (None, false, None) => (0..dims.len()).collect(),
    };
    let sizes = sizes.unwrap_or_else(|| vec![Dim::from(-1); places.len()]);
    if sizes.len() != places.len() {
        return Err(wrong(
            call,
            format_args!(
                "{} sizes are given for {} dims: give one for each",
                sizes.len(),
                places.len()
            ),
        ));
    }
    let mut shape = x.shape.clone();
    for (place, size) in places.into_iter().zip(sizes) {
        if let Some(own) = shape.get_mut(place) {
            if size.as_number() != Some(-1) {
                *own = size;
            }
            not_empty(call, own)?;
        }
    }
    Ok(tensor(shape, x.dtype))
}

fn last(call: &RuleCall<'_>, dims: &[Dim], many: usize) -> Result<Vec<usize>> {
    match dims.len().checked_sub(many) {
        Some(first) => Ok((first..dims.len()).collect()),
        None => Err(wrong(
            call,
            format_args!("{many} dims are transformed, and there are {}", dims.len()),
        )),
    }
}

fn shifted(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dims = without_parts(call, x)?;
    // A dim that is named twice is rolled twice.
    match call.arg("dim")?.items() {
        Some(items) if !dims.is_empty() => {
            for dim in items {
                call.place(dim.int()?, dims.len())?;
            }
        }
        _ => {
            named(call, "dim", dims.len())?;
        }
    }
    Ok(like(x, x.dtype))
}
