//! `Bf16`: the proof that the processor has AVX-512 with products of pairs of `bfloat16`.
//!
//! Invariant: there is a [`Bf16`] only where all of its instructions are.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{__m512, __m512bh, _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps};
use std::mem::transmute;

use pulp::f32x16;
use pulp::x86::V4;

use crate::Kernel;

/// AVX-512 with BF16, as a value: who has one may use the instructions.
///
/// A pair is a word of 32 bits with two `bfloat16`, the first in its low half. Vectors of pairs have the type of vectors of
/// floats, whose bits they are: what computes with floats moves pairs as well.
///
/// ```
/// use fx_simd::{Bf16, Kernel};
/// use pulp::f32x16;
///
/// /// Two products for each of 16 sums.
/// struct Dot([f32x16; 2], f32x16);
/// impl Kernel<Bf16> for Dot {
///     type Output = f32x16;
///     #[inline(always)]
///     fn run(self, simd: Bf16) -> f32x16 {
///         let x = simd.pairs(self.0[0], self.0[1]);
///         simd.dot(self.1, x, x)
///     }
/// }
///
/// if let Some(simd) = Bf16::try_new() {
///     let [low, high, sums] = [1.0, 2.0, 0.5].map(|x| simd.v4().splat_f32x16(x));
///     let found = simd.run(Dot([low, high], sums));
///     assert_eq!((found.0, found.15), (0.5 + 1.0 + 1.0, 0.5 + 4.0 + 4.0));
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bf16 {
    v4: V4,
}

impl Bf16 {
    /// The proof, if the processor has the instructions.
    pub fn try_new() -> Option<Self> {
        let v4 = V4::try_new()?;
        is_x86_feature_detected!("avx512bf16").then_some(Bf16 { v4 })
    }

    /// The instructions of AVX-512 without BF16.
    #[inline(always)]
    pub fn v4(self) -> V4 {
        self.v4
    }

    /// Runs a kernel, in a frame of its own on the stack.
    #[inline]
    pub fn run<K: Kernel<Bf16>>(self, kernel: K) -> K::Output {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn compiled<K: Kernel<Bf16>>(kernel: K, simd: Bf16) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has BF16 and what V4 stands for: AVX-512 F, BW, CD, DQ, VL and all of V3,
        // which are AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT.
        unsafe { compiled(kernel, self) }
    }

    /// 32 neighbouring floats as 16 pairs: each float is rounded to the nearest `bfloat16`, ties to even; those below the
    /// least normal number become zero.
    #[inline(always)]
    pub fn pairs(self, low: f32x16, high: f32x16) -> f32x16 {
        // SAFETY: `self` proves that the processor has the instruction. All of these types are 64 bytes of any bits.
        unsafe {
            transmute::<__m512bh, f32x16>(_mm512_cvtne2ps_pbh(
                transmute::<f32x16, __m512>(high),
                transmute::<f32x16, __m512>(low),
            ))
        }
    }

    /// Adds two products to each sum: those of the numbers of its pair of `a` with those of its pair of `b`.
    #[inline(always)]
    pub fn dot(self, sums: f32x16, a: f32x16, b: f32x16) -> f32x16 {
        // SAFETY: `self` proves that the processor has the instruction. All of these types are 64 bytes of any bits.
        unsafe {
            transmute::<__m512, f32x16>(_mm512_dpbf16_ps(
                transmute::<f32x16, __m512>(sums),
                transmute::<f32x16, __m512bh>(a),
                transmute::<f32x16, __m512bh>(b),
            ))
        }
    }
}
