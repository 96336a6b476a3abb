//! Tensors as images of bytes: four dims are images, others rows.
//!
//! Invariant: the bytes of a tensor are in the order of its elements on one side, and channels side by side on the other.

use fx_core::{Error, Result};
use fx_kernels::integer::Bytes;
use fx_nn::{Tensor, candle_core};

/// The sizes of the images that a tensor is.
pub(super) fn image_of(dims: &[usize]) -> (usize, usize, usize, usize) {
    match *dims {
        [batch, channels, height, width] => (batch, height, width, channels),
        [.., last] => (dims[..dims.len() - 1].iter().product(), 1, 1, last),
        [] => (1, 1, 1, 1),
    }
}

/// The bytes in the order of a tensor's elements.
pub(super) fn plain(x: &Bytes) -> Vec<u8> {
    let (batch, height, width, channels) = x.sizes();
    let (pixels, stride) = (height * width, x.stride());
    let mut out = vec![0; batch * pixels * channels];
    if pixels == 1 {
        let rows = x.words().chunks_exact(stride.max(1));
        for (words, out) in rows.zip(out.chunks_mut(channels.max(1))) {
            for (word, out) in words.iter().zip(out.chunks_mut(4)) {
                let len = out.len();
                out.copy_from_slice(&word.to_ne_bytes()[..len]);
            }
        }
        return out;
    }
    for (pixel, words) in x.words().chunks_exact(stride.max(1)).enumerate() {
        let (image, at) = (pixel / pixels.max(1), pixel % pixels.max(1));
        for channel in 0..channels {
            let byte = words[channel / 4].to_ne_bytes()[channel % 4];
            out[(image * channels + channel) * pixels + at] = byte;
        }
    }
    out
}

/// Bytes in the order of a tensor's elements as images.
pub(super) fn imaged(bytes: &[u8], dims: &[usize], words: Vec<u32>) -> Bytes {
    let (batch, height, width, channels) = image_of(dims);
    let mut out = Bytes::reusing(words, (batch, height, width, channels));
    let (pixels, stride) = (height * width, out.stride());
    if pixels == 1 {
        let rows = out.words_mut().chunks_exact_mut(stride.max(1));
        for (words, row) in rows.zip(bytes.chunks(channels.max(1))) {
            let (whole, rest) = row.as_chunks::<4>();
            let (own, behind) = words.split_at_mut(whole.len());
            for (to, from) in own.iter_mut().zip(whole) {
                *to = u32::from_ne_bytes(*from);
            }
            behind.fill(0);
            if let Some(to) = behind.first_mut() {
                let mut last = [0; 4];
                last[..rest.len()].copy_from_slice(rest);
                *to = u32::from_ne_bytes(last);
            }
        }
        return out;
    }
    for (pixel, words) in out.words_mut().chunks_exact_mut(stride.max(1)).enumerate() {
        let (image, at) = (pixel / pixels.max(1), pixel % pixels.max(1));
        for (word, to) in words.iter_mut().enumerate() {
            let of = |byte: usize| match word * 4 + byte < channels {
                true => bytes[(image * channels + word * 4 + byte) * pixels + at],
                false => 0,
            };
            *to = u32::from_ne_bytes([of(0), of(1), of(2), of(3)]);
        }
    }
    out
}

/// Images behind each other along the dim of channels; `None` if they are none of whole words, or of other sizes.
pub(super) fn channels_together(
    all: &[(&Bytes, &[usize])],
    words: Vec<u32>,
) -> Option<(Bytes, Vec<usize>)> {
    let &[batch, _, height, width] = all.first()?.1 else {
        return None;
    };
    let mut channels = 0;
    for (_, dims) in all {
        let &[b, own, h, w] = *dims else {
            return None;
        };
        ((b, h, w) == (batch, height, width) && own.is_multiple_of(4)).then_some(())?;
        channels += own;
    }
    let mut out = Bytes::reusing(words, (batch, height, width, channels));
    let stride = out.stride().max(1);
    let mut first = 0;
    for (x, _) in all {
        let count = x.channels() / 4;
        let pixels = x.words().chunks_exact(x.stride().max(1));
        for (to, from) in out.words_mut().chunks_exact_mut(stride).zip(pixels) {
            to[first..first + count].copy_from_slice(&from[..count]);
        }
        first += count;
    }
    Some((out, vec![batch, channels, height, width]))
}

/// Rows `[batch, channels, length]` as images of height 1.
pub(super) fn rows_as_images(dims: &[usize]) -> Result<[usize; 4]> {
    match *dims {
        [batch, channels, length] => Ok([batch, channels, 1, length]),
        _ => Err(Error::msg("a row of channels has three dims")),
    }
}

/// The sizes that two shapes have together.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let of = |dims: &[usize], at: usize| match at + dims.len() >= rank {
        true => dims[at + dims.len() - rank],
        false => 1,
    };
    (0..rank)
        .map(|at| match (of(a, at), of(b, at)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::msg(format_args!(
                "the shapes {a:?} and {b:?} do not broadcast"
            ))),
        })
        .collect()
}

/// Bytes of a shape, repeated in a wider one.
pub(super) fn spread(x: &Bytes, own: &[usize], dims: &[usize]) -> Bytes {
    // A pixel for each image stands for all of them.
    if let (&[batch, channels, 1, 1], &[all, of, height, width]) = (own, dims)
        && (batch, channels) == (all, of)
    {
        let mut out = Bytes::zeros(batch, height, width, channels);
        let size = (height * width * out.stride()).max(1);
        let pixels = x.words().chunks_exact(x.stride().max(1));
        for (image, pixel) in out.words_mut().chunks_exact_mut(size).zip(pixels) {
            for to in image.chunks_exact_mut(pixel.len()) {
                to.copy_from_slice(pixel);
            }
        }
        return out;
    }
    let bytes = plain(x);
    let (last, count) = match dims.last() {
        Some(last) => (*last, dims.iter().product::<usize>()),
        None => (1, 1),
    };
    let is_filled = own.last().is_none_or(|own| *own == 1);
    let mut made = vec![0; count];
    for (row, to) in made.chunks_mut(last.max(1)).enumerate() {
        let (mut rest, mut at) = (row, 0);
        let mut stride = own.last().copied().unwrap_or(1);
        for (from_end, size) in dims.iter().rev().enumerate().skip(1) {
            let index = rest % size;
            rest /= size;
            if let Some(own) = own.iter().rev().nth(from_end) {
                at += if *own == 1 { 0 } else { index * stride };
                stride *= own;
            }
        }
        match is_filled {
            true => to.fill(bytes[at]),
            false => to.copy_from_slice(&bytes[at..at + to.len()]),
        }
    }
    imaged(&made, dims, Vec::new())
}

/// Runs a function on the elements of a tensor on the CPU.
fn with_elements<T: candle_core::WithDType, R>(
    x: &Tensor,
    run: impl FnOnce(&[T]) -> Result<R>,
) -> Result<R> {
    let x = x.candle()?.contiguous().map_err(Error::other)?;
    let (storage, layout) = x.storage_and_layout();
    match &*storage {
        candle_core::Storage::Cpu(own) => {
            let all = T::cpu_storage_as_slice(own).map_err(Error::other)?;
            let start = layout.start_offset();
            run(&all[start..start + layout.shape().elem_count()])
        }
        _ => Err(Error::msg("an input is not on the CPU")),
    }
}

/// Runs a function on the floats of a tensor.
pub(super) fn with_floats<R>(x: &Tensor, run: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
    with_elements(x, run)
}

/// The bytes of a tensor of `uint8`; of `int8` moved by 128.
pub(super) fn bytes_of(x: &Tensor, is_signed: bool) -> Result<Vec<u8>> {
    match is_signed {
        false => with_elements(x, |all: &[u8]| Ok(all.to_vec())),
        true => Ok(x.to_vec()?.into_iter().map(|x| (x + 128.0) as u8).collect()),
    }
}
