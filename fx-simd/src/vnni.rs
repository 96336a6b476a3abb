//! `Vnni`: the proof that the processor has AVX-512 with VNNI.
//!
//! Invariant: there is a [`Vnni`] only where all of its instructions are.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{__m256i, __m512, __m512i, _mm512_cvtph_ps, _mm512_dpbusd_epi32};
use std::mem::transmute;

use pulp::x86::V4;
use pulp::{f32x16, i32x16, u16x16, u32x16};

use crate::Kernel;

/// AVX-512 with VNNI, as a value: who has one may use the instructions.
#[derive(Debug, Clone, Copy)]
pub struct Vnni {
    v4: V4,
}

impl Vnni {
    /// The proof, if the processor has the instructions.
    pub fn try_new() -> Option<Self> {
        let v4 = V4::try_new()?;
        is_x86_feature_detected!("avx512vnni").then_some(Vnni { v4 })
    }

    /// The instructions of AVX-512 without VNNI.
    #[inline(always)]
    pub fn v4(self) -> V4 {
        self.v4
    }

    /// Runs a kernel, in a frame of its own on the stack.
    #[inline]
    pub fn run<K: Kernel<Vnni>>(self, kernel: K) -> K::Output {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn compiled<K: Kernel<Vnni>>(kernel: K, simd: Vnni) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has VNNI and what V4 stands for: AVX-512 F, BW, CD, DQ, VL and all of V3,
        // which are AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT.
        unsafe { compiled(kernel, self) }
    }

    /// Adds four products to each sum: of the bytes of its word of `codes`, from 0 to 255, with those of `x`, from -128 to 127.
    #[inline(always)]
    pub fn dot(self, sums: i32x16, codes: u32x16, x: i32) -> i32x16 {
        let x = self.v4.splat_i32x16(x);
        // SAFETY: `self` proves that the processor has the instruction. All of these types are 64 bytes of any bits.
        unsafe {
            transmute::<__m512i, i32x16>(_mm512_dpbusd_epi32(
                transmute::<i32x16, __m512i>(sums),
                transmute::<u32x16, __m512i>(codes),
                transmute::<i32x16, __m512i>(x),
            ))
        }
    }

    /// Adds four products to each sum: of the bytes of its word of `x`, from 0 to 255, with those of its word of `weights`,
    /// from -128 to 127.
    #[inline(always)]
    pub fn dot_words(self, sums: i32x16, x: u32x16, weights: u32x16) -> i32x16 {
        // SAFETY: `self` proves that the processor has the instruction. All of these types are 64 bytes of any bits.
        unsafe {
            transmute::<__m512i, i32x16>(_mm512_dpbusd_epi32(
                transmute::<i32x16, __m512i>(sums),
                transmute::<u32x16, __m512i>(x),
                transmute::<u32x16, __m512i>(weights),
            ))
        }
    }

    /// Floats of 16 bits, by their bits, as floats of 32.
    #[inline(always)]
    pub fn floats_of_halves(self, halves: u16x16) -> f32x16 {
        // SAFETY: `self` proves that the processor has the instruction. The types are 32 and 64 bytes of any bits.
        unsafe {
            transmute::<__m512, f32x16>(_mm512_cvtph_ps(transmute::<u16x16, __m256i>(halves)))
        }
    }
}
