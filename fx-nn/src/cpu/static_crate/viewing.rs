//! Views of what a crate has, and their copies.
//!
//! Invariant: a view is copied only where a kernel reads floats in order.

use fx_core::{Error, Result};
use fx_static::Contiguous;
use smallvec::SmallVec;

use super::floats::{DIMS, Floats, Place, collapsed};
use super::items::{Given, Planner};
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
