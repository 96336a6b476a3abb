//! Models as crates without `std`, each with inputs and with what its compiled module gives.

#![no_std]

use fx_static::{Aligned, floats};

/// How far results are from what they should be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Apart {
    /// The largest difference; infinite where a number is NaN.
    pub difference: f32,
    /// The largest number.
    pub largest: f32,
    /// How many numbers.
    pub count: usize,
}

impl Apart {
    fn add(&mut self, found: &[f32], given: &[f32]) {
        assert_eq!(found.len(), given.len());
        self.count += found.len();
        for (found, given) in found.iter().zip(given) {
            let apart = (found - given).abs();
            let apart = if apart.is_nan() { f32::INFINITY } else { apart };
            self.difference = self.difference.max(apart);
            self.largest = self.largest.max(given.abs());
        }
    }

    /// Whether no number is further than 1e-5 of the largest one, or of 1.
    pub fn is_close(&self) -> bool {
        self.difference <= 1e-5 * self.largest.max(1.0)
    }
}

