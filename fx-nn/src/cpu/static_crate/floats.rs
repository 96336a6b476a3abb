//! `Floats`: a view of what a crate has: of a buffer, of the weights, or of an input.
//!
//! Invariant: what a kernel is given of a view ends with the view's last float.

use std::ops::Range;

use fx_core::{Error, Result};

use crate::cpu::array::Array;

/// The most dims that a kernel goes over.
pub(super) const DIMS: usize = 6;

/// Where floats are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// In a buffer of the arena.
    Buffer(usize),
    Weights,
    /// In an input.
    Input(usize),
}

/// A view of floats.
pub(super) type Floats = Array<Place>;

/// The floats of a view, from its first to its last.
pub(super) fn range_of(x: &Floats) -> Range<usize> {
    if x.numel() == 0 {
        return x.start..x.start;
    }
    let reach = x.dims.iter().zip(&x.strides);
    let last: usize = reach.map(|(size, stride)| (size - 1) * stride).sum();
    x.start..x.start + last + 1
}

/// Dims with strides of several views, as `N` dims: those that lie evenly in each view are one.
pub(super) fn collapsed<const N: usize>(
    dims: &[usize],
    strides: &[&[usize]],
) -> Result<([usize; N], Vec<[usize; N]>)> {
    // The last first: a size, and the stride of each view.
    let mut kept: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, size) in dims
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, size)| **size != 1)
    {
        let here: Vec<usize> = strides.iter().map(|strides| strides[at]).collect();
        match kept.last_mut() {
            Some((inner, of_inner))
                if here.iter().zip(&*of_inner).all(|(a, b)| *a == b * *inner) =>
            {
                *inner *= size;
            }
            _ => kept.push((*size, here)),
        }
    }
    if kept.len() > N {
        return Err(Error::msg(format_args!(
            "it goes over {} dims that do not lie evenly, and a kernel over {N} at most",
            kept.len()
        )));
    }
    let mut all = [1; N];
    let mut of_views = vec![[0; N]; strides.len()];
    for (at, (size, strides)) in kept.into_iter().enumerate() {
        all[N - 1 - at] = size;
        for (view, stride) in of_views.iter_mut().zip(strides) {
            view[N - 1 - at] = stride;
        }
    }
    Ok((all, of_views))
}
