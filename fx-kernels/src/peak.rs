//! The speed that a machine can reach at all: multiplications and additions on registers alone.

use std::hint::black_box;

use pulp::{Simd, WithSimd};
use web_time::Instant;

use crate::Level;

/// Sums that wait for nobody: more than a multiplication takes, on every machine.
const SUMS: usize = 12;

/// The rounds of a measurement: a few milliseconds.
const ROUNDS: usize = 400_000;

struct Peak;

impl WithSimd for Peak {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (a, b) = (
            simd.splat_f32s(black_box(0.999)),
            simd.splat_f32s(black_box(0.001)),
        );
        let mut sums = [a; SUMS];
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for x in &mut sums {
                *x = simd.mul_add_e_f32s(*x, a, b);
            }
        }
        black_box(&sums);
        (ROUNDS * SUMS * 2 * S::F32_LANES) as f64 / start.elapsed().as_secs_f64()
    }
}

/// Floating-point operations in a second on the calling thread, measured in some milliseconds: a
/// multiplication and an addition are two.
///
/// ```
/// use fx_kernels::{Level, peak_flops};
///
/// assert!(peak_flops(Level::best()) > 1e6);
/// ```
pub fn peak_flops(level: Level) -> f64 {
    level.run(Peak)
}
