#![doc = include_str!("../README.md")]
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use fx_simd::{Kernel, Vnni};
//! use pulp::{i32x16, u32x16};
//!
//! /// Four products for each of 16 sums.
//! struct Dot(u32x16, i32);
//! impl Kernel<Vnni> for Dot {
//!     type Output = i32x16;
//!     #[inline(always)]
//!     fn run(self, simd: Vnni) -> i32x16 {
//!         simd.dot(simd.v4().splat_i32x16(100), self.0, self.1)
//!     }
//! }
//!
//! if let Some(simd) = Vnni::try_new() {
//!     let codes = simd.v4().splat_u32x16(u32::from_le_bytes([255, 1, 2, 3]));
//!     let x = i32::from_le_bytes([-1i8, 10, 20, -30].map(|x| x as u8));
//!     assert_eq!(simd.run(Dot(codes, x)).0, 100 - 255 + 10 + 40 - 90);
//! }
//! # }
//! ```

#[cfg(target_arch = "x86_64")]
mod bf16;
#[cfg(target_arch = "x86_64")]
mod vnni;

#[cfg(target_arch = "x86_64")]
pub use bf16::Bf16;
#[cfg(target_arch = "x86_64")]
pub use vnni::Vnni;

/// What is compiled for the instructions that a `T` proves, as a whole. `run` has to be `#[inline(always)]`, and so has all
/// that it calls with vectors.
pub trait Kernel<T> {
    /// What it gives.
    type Output;

    /// Runs it.
    fn run(self, simd: T) -> Self::Output;
}

/// Asks for the line of the cache where `x` starts, for soon. Only the time of what follows depends on it.
///
/// ```
/// let x = [1, 2, 3];
/// fx_simd::prefetch(&x);
/// ```
#[inline(always)]
pub fn prefetch<T>(x: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: SSE is a part of x86_64. The instruction is a hint: it reads nothing into the program, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(x).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}
