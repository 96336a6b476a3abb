//! Fourier transforms, of tensors whose last dim of 2 is the parts of complex numbers.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, are_equal, at_least, fractional, like, named, place, require, require_one_type,
    require_type, resized, rules, tensor, word, wrong, x,
};
use crate::ops::{self, fft};

rules! {
    one => fft::fft, fft::ifft;
    real => fft::rfft, fft::ihfft;
    to_real => fft::irfft, fft::hfft;
    |call| several(call, false) => fft::fftn, fft::ifftn;
    |call| several(call, true) => fft::fft2, fft::ifft2;
    |call| real_many(call, false) => fft::rfftn, fft::ihfftn;
    |call| real_many(call, true) => fft::rfft2, fft::ihfft2;
    |call| to_real_many(call, false) => fft::irfftn, fft::hfftn;
    |call| to_real_many(call, true) => fft::irfft2, fft::hfft2;
    |call| frequencies(call, false) => fft::fftfreq;
    |call| frequencies(call, true) => fft::rfftfreq;
    stft => ops::stft;
    istft => ops::istft;
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

/// The dims that are transformed: all, or the last ones, unless they are named. With the sizes, where some are given.
fn places(call: &mut RuleCall<'_>, dims: &[Dim], is_plane: bool) -> Result<(Vec<usize>, Vec<Dim>)> {
    word(call, "norm", NORMS)?;
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
    Ok((places, sizes))
}

/// Sizes of dims put in their places; -1 stands for the size that is there.
fn put(
    call: &mut RuleCall<'_>,
    shape: &mut [Dim],
    places: &[usize],
    sizes: Vec<Dim>,
) -> Result<()> {
    for (place, size) in places.iter().zip(sizes) {
        if let Some(own) = shape.get_mut(*place) {
            if size.as_number() != Some(-1) {
                *own = size;
            }
            not_empty(call, own)?;
        }
    }
    Ok(())
}

fn several(call: &mut RuleCall<'_>, is_plane: bool) -> Result<ValueMeta> {
    let (x, dims) = complex(call)?;
    let (places, sizes) = places(call, dims, is_plane)?;
    let mut shape = x.shape.clone();
    put(call, &mut shape, &places, sizes)?;
    Ok(tensor(shape, x.dtype))
}

/// The last of the dims that are transformed.
fn last_of(call: &RuleCall<'_>, places: &[usize]) -> Result<usize> {
    let last = places.last().copied();
    last.ok_or_else(|| wrong(call, "no dim is transformed: name one at least"))
}

/// A real tensor, of which half is left along the last dim.
fn real_many(call: &mut RuleCall<'_>, is_plane: bool) -> Result<ValueMeta> {
    let x = x(call)?;
    let dtype = fractional(x.dtype);
    require_type(call, dtype, Elements::Single)?;
    let (places, sizes) = places(call, &x.shape, is_plane)?;
    let last = last_of(call, &places)?;
    let mut shape = x.shape.clone();
    put(call, &mut shape, &places, sizes)?;
    if let Some(size) = shape.get_mut(last) {
        *size = (size.div(2)? + 1)?;
    }
    shape.push(Dim::known(2));
    Ok(tensor(shape, dtype))
}

/// A complex tensor that is half of another along the last dim.
fn to_real_many(call: &mut RuleCall<'_>, is_plane: bool) -> Result<ValueMeta> {
    let (x, dims) = complex(call)?;
    let (places, sizes) = places(call, dims, is_plane)?;
    let last = last_of(call, &places)?;
    let mut shape = dims.to_vec();
    if let Some(size) = shape.get_mut(last) {
        *size = ((&*size - 1)? * 2)?;
    }
    put(call, &mut shape, &places, sizes)?;
    Ok(tensor(shape, x.dtype))
}

fn frequencies(call: &mut RuleCall<'_>, is_half: bool) -> Result<ValueMeta> {
    let dtype = call.dtype("dtype")?.or(Some(DType::F32));
    require_type(call, dtype, Elements::Fractions)?;
    let n = call.size("n")?;
    let count = if is_half { (n.div(2)? + 1)? } else { n };
    Ok(tensor(vec![count], dtype))
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

/// The frame's length, the hop, and the window's length.
fn frames(call: &mut RuleCall<'_>) -> Result<[Dim; 3]> {
    let n_fft = call.size("n_fft")?;
    let hop = match call.arg("hop_length")?.is_none() {
        true => n_fft.div(4)?,
        false => call.size("hop_length")?,
    };
    let win = match call.arg("win_length")?.is_none() {
        true => n_fft.clone(),
        false => call.size("win_length")?,
    };
    at_least(
        call,
        &hop,
        1,
        format_args!("frames are one element apart at least, and not {hop}"),
    )?;
    at_least(
        call,
        &win,
        1,
        format_args!("a window has one element at least, and not {win}"),
    )?;
    at_least(
        call,
        &(&n_fft - &win)?,
        0,
        format_args!("a window of {win} is no longer than the frame, which has {n_fft}"),
    )?;
    Ok([n_fft, hop, win])
}

/// The window, of the type of the tensor, or of a type that transforms are of.
fn require_window(call: &mut RuleCall<'_>, win: &Dim, like: Option<&TensorMeta>) -> Result<()> {
    if call.arg("window")?.is_none() {
        return Ok(());
    }
    let window = call.tensor("window")?;
    match like {
        Some(like) => require_one_type(call, like, window)?,
        None => require(call, window, Elements::Single)?,
    }
    match &window.shape[..] {
        [own] => call.same(own, win, || {
            format!("the window {window} has {win} elements")
        }),
        _ => Err(wrong(
            call,
            format_args!("a window has one dim, and {window} has others"),
        )),
    }
}

fn stft(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Single)?;
    let [n_fft, hop, win] = frames(call)?;
    require_window(call, &win, None)?;
    let (lead, length) = match &x.shape[..] {
        [length] => (&x.shape[..0], length),
        [_, length] => (&x.shape[..1], length),
        _ => {
            return Err(wrong(
                call,
                format_args!("a signal has one dim, or is a row of a batch, and not {x}"),
            ));
        }
    };
    let mut length = length.clone();
    if call.flag("center")? {
        let modes = ["constant", "reflect", "replicate", "circular"];
        let mode = word(call, "pad_mode", &modes)?;
        let side = n_fft.div(2)?;
        let most = match mode {
            "reflect" => Some((&length - 1)?),
            "circular" => Some(length.clone()),
            _ => None,
        };
        if let Some(most) = most {
            at_least(
                call,
                &(most - &side)?,
                0,
                format_args!(
                    "half a frame is {side} elements, and {x} has not so many to pad with"
                ),
            )?;
        }
        length = (length + (side * 2)?)?;
    }
    at_least(
        call,
        &(&length - &n_fft)?,
        0,
        format_args!("a frame has {n_fft} elements, and the signal has {length}"),
    )?;
    let mut shape = lead.to_vec();
    shape.push(match call.flag("onesided")? {
        true => (n_fft.div(2)? + 1)?,
        false => n_fft.clone(),
    });
    shape.push(((length - n_fft)?.div(&hop)? + 1)?);
    shape.push(Dim::known(2));
    Ok(tensor(shape, x.dtype))
}

fn istft(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, dims) = complex(call)?;
    let [n_fft, hop, win] = frames(call)?;
    require_window(call, &win, Some(x))?;
    at_least(
        call,
        &(&win - &hop)?,
        0,
        format_args!("frames are at most a window apart, {win}, and not {hop}"),
    )?;
    let (lead, frequencies, count) = match dims {
        [frequencies, count] => (&dims[..0], frequencies, count),
        [_, frequencies, count] => (&dims[..1], frequencies, count),
        _ => {
            return Err(wrong(
                call,
                format_args!(
                    "the transforms of a signal are of frequencies and frames, and not {x}"
                ),
            ));
        }
    };
    let is_half = match call.arg("onesided")?.is_none() {
        true => !are_equal(
            call,
            std::slice::from_ref(frequencies),
            std::slice::from_ref(&n_fft),
        )?,
        false => call.flag("onesided")?,
    };
    let expected = if is_half {
        (n_fft.div(2)? + 1)?
    } else {
        n_fft.clone()
    };
    call.same(frequencies, &expected, || {
        format!("frames of {n_fft} elements have {expected} frequencies, and {x} has {frequencies}")
    })?;
    at_least(call, count, 1, "a signal has one frame at least")?;
    let covered = (((count - 1)? * &hop)? + &n_fft)?;
    let length = match (call.arg("length")?.is_none(), call.flag("center")?) {
        (false, _) => call.size("length")?,
        (true, true) => (covered - (n_fft.div(2)? * 2)?)?,
        (true, false) => covered,
    };
    let mut shape = lead.to_vec();
    shape.push(length);
    Ok(tensor(shape, x.dtype))
}
