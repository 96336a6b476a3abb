//! Views of what a crate has, and their copies.
//!
//! Invariant: a view is copied only where a kernel reads floats in order.

use fx_core::{Error, Result};
use fx_static::Contiguous;
use smallvec::SmallVec;

use super::items::{Given, Planner};
use super::plan::{DIMS, Floats, Place};
use crate::cpu::draft::{Id, SizeArg};
use crate::cpu::views::Viewing;

impl Planner<'_> {
    /// The floats of a view in a buffer of their own.
    pub fn copied(&mut self, x: Floats) -> Result<Floats> {
        let (dims, strides) = collapsed::<DIMS>(&x.dims, &[&x.strides])?;
        let copy = Contiguous {
            dims,
            strides: strides[0],
        };
        let what = format!("{}, in order", self.what);
        self.plan.kernel(&what, copy, &[&x], x.dims.clone())
    }
}

impl Viewing<Place> for Planner<'_> {
    fn size(&self, size: SizeArg) -> Result<i64> {
        match size {
            SizeArg::Known(size) => Ok(size),
            SizeArg::Of(id) => match &self.given[id] {
                Given::Int(size) => Ok(*size),
                _ => Err(Error::msg("a size is not known before it runs")),
            },
        }
    }

    fn sizes_of(&self, id: Id) -> Result<SmallVec<[i64; 6]>> {
        match &self.given[id] {
            Given::Ints(sizes) => Ok(sizes.iter().copied().collect()),
            Given::Int(size) => Ok(SmallVec::from_slice(&[*size])),
            _ => Err(Error::msg("sizes are not known before it runs")),
        }
    }

    fn contiguous(&mut self, x: Floats) -> Result<Floats> {
        match x.is_contiguous() {
            true => Ok(x),
            false => self.copied(x),
        }
    }
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
