//! `Weights`: the floats that a crate has from a file.
//!
//! Invariant: the same floats stand there once.

use std::hash::Hasher;

use fx_core::Result;
use rustc_hash::{FxHashMap, FxHasher};

use super::floats::{Floats, Place};
use crate::Tensor;
use crate::cpu::array::Dims;
use crate::cpu::program::floats_of;

/// The floats of weights, one after the other.
#[derive(Debug, Default)]
pub(super) struct Weights {
    floats: Vec<f32>,
    /// Where each tensor starts, by the hash of its floats.
    known: FxHashMap<u64, Vec<(usize, usize)>>,
}

impl Weights {
    pub fn floats(&self) -> &[f32] {
        &self.floats
    }

    /// A tensor, as floats.
    pub fn add(&mut self, tensor: &Tensor) -> Result<Floats> {
        let floats = floats_of(tensor)?;
        let dims: Dims = tensor.dims()?.iter().copied().collect();
        Ok(self.add_floats(&floats, dims))
    }

    fn add_floats(&mut self, floats: &[f32], dims: Dims) -> Floats {
        let mut hasher = FxHasher::default();
        floats.iter().for_each(|x| hasher.write_u32(x.to_bits()));
        let known = self.known.entry(hasher.finish()).or_default();
        let is_same = |(start, length): &&(usize, usize)| {
            let there = &self.floats[*start..start + length];
            let pairs = there.iter().zip(floats);
            *length == floats.len() && pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits())
        };
        let start = match known.iter().find(is_same) {
            Some((start, _)) => *start,
            None => {
                known.push((self.floats.len(), floats.len()));
                self.floats.extend_from_slice(floats);
                self.floats.len() - floats.len()
            }
        };
        let mut all = Floats::of(Place::Weights, dims);
        all.start = start;
        all
    }
}
