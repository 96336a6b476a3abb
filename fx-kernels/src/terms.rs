//! What the terms of sums are: floats, or pairs of `bf16` that one instruction multiplies. Kernels of products and
//! convolutions are written once for both.
//!
//! Invariant: a float whose bits are a pair is moved, and never computed with.

use pulp::{Simd, WithSimd};

use crate::Level;

/// A type of terms, as the proof that this machine multiplies them.
pub(crate) trait Terms: Copy + Send + Sync {
    /// Whether a term has two numbers.
    const ARE_PAIRS: bool;

    /// Runs a kernel with the instructions of a level that has the terms.
    fn run<K: Kernel<Self>>(self, level: Level, kernel: K);
}

/// Terms with the instructions of a level.
pub(crate) trait MulAdd<S: Simd>: Terms {
    /// `sum + x * w` for terms that are floats, and the sum of both products for pairs.
    fn mul_add(self, simd: S, x: S::f32s, w: S::f32s, sum: S::f32s) -> S::f32s;

    /// As [`framed`](crate::vector::framed), with the instructions of the terms.
    fn framed(self, simd: S, part: impl FnOnce());
}

/// What is compiled for each level and type of terms. `run` has to be `#[inline(always)]`.
pub(crate) trait Kernel<T: Terms> {
    fn run<S: Simd>(self, simd: S, terms: T)
    where
        T: MulAdd<S>;
}

/// Terms of one float.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floats;

/// A kernel for floats as pulp runs it.
struct OfFloats<K>(K);

impl<K: Kernel<Floats>> WithSimd for OfFloats<K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run(simd, Floats);
    }
}

impl Terms for Floats {
    const ARE_PAIRS: bool = false;

    #[inline]
    fn run<K: Kernel<Self>>(self, level: Level, kernel: K) {
        level.run(OfFloats(kernel));
    }
}

impl<S: Simd> MulAdd<S> for Floats {
    #[inline(always)]
    fn mul_add(self, simd: S, x: S::f32s, w: S::f32s, sum: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(x, w, sum)
    }

    #[inline(always)]
    fn framed(self, simd: S, part: impl FnOnce()) {
        crate::vector::framed(simd, part);
    }
}

/// Terms of two `bf16`. There is one only on a processor that multiplies them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs {
    #[cfg(target_arch = "x86_64")]
    simd: fx_simd::Bf16,
    #[cfg(not(target_arch = "x86_64"))]
    never: std::convert::Infallible,
}

impl Pairs {
    /// Pairs, where the machine and the level have them.
    pub(crate) fn of(level: Level) -> Option<Pairs> {
        #[cfg(target_arch = "x86_64")]
        if level == Level::Avx512 {
            return fx_simd::Bf16::try_new().map(|simd| Pairs { simd });
        }
        let _ = level;
        None
    }

    /// Rows of `inputs` floats as rows of half as many pairs; the last pair of an odd row ends with zero.
    pub(crate) fn of_rows(self, rows: &[f32], inputs: usize, out: &mut [f32]) {
        self.run(Level::Avx512, Narrow { rows, inputs, out });
    }

    /// Neighbouring floats, 32 or fewer, as pairs; behind them are zeros.
    #[inline(always)]
    pub(crate) fn of_block(self, low: &[f32], high: &[f32]) -> [f32; 16] {
        #[cfg(target_arch = "x86_64")]
        {
            use crate::vector::load_some;
            let simd = self.simd.v4();
            let pairs = self.simd.pairs(load_some(simd, low), load_some(simd, high));
            pulp::bytemuck::cast(pairs)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (low, high);
            match self.never {}
        }
    }
}

/// A kernel for pairs as a whole.
#[cfg(target_arch = "x86_64")]
struct OfPairs<K>(K);

#[cfg(target_arch = "x86_64")]
impl<K: Kernel<Pairs>> fx_simd::Kernel<fx_simd::Bf16> for OfPairs<K> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: fx_simd::Bf16) {
        self.0.run(simd.v4(), Pairs { simd });
    }
}

/// A part of a kernel for pairs.
#[cfg(target_arch = "x86_64")]
struct Part<F>(F);

#[cfg(target_arch = "x86_64")]
impl<F: FnOnce()> fx_simd::Kernel<fx_simd::Bf16> for Part<F> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: fx_simd::Bf16) {
        (self.0)();
    }
}

impl Terms for Pairs {
    const ARE_PAIRS: bool = true;

    #[inline]
    fn run<K: Kernel<Self>>(self, _: Level, kernel: K) {
        #[cfg(target_arch = "x86_64")]
        self.simd.run(OfPairs(kernel));
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = kernel;
            match self.never {}
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl MulAdd<pulp::x86::V4> for Pairs {
    #[inline(always)]
    fn mul_add(
        self,
        _: pulp::x86::V4,
        x: pulp::f32x16,
        w: pulp::f32x16,
        sum: pulp::f32x16,
    ) -> pulp::f32x16 {
        self.simd.dot(sum, x, w)
    }

    #[inline(always)]
    fn framed(self, _: pulp::x86::V4, part: impl FnOnce()) {
        self.simd.run(Part(part));
    }
}

/// Rounds rows to pairs.
struct Narrow<'a> {
    rows: &'a [f32],
    inputs: usize,
    out: &'a mut [f32],
}

impl Kernel<Pairs> for Narrow<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, _: S, terms: Pairs)
    where
        Pairs: MulAdd<S>,
    {
        let pairs = self.inputs.div_ceil(2);
        if pairs == 0 {
            return;
        }
        let rows = self.rows.chunks_exact(self.inputs);
        for (row, out) in rows.zip(self.out.chunks_exact_mut(pairs)) {
            for (x, out) in row.chunks(32).zip(out.chunks_mut(16)) {
                let (low, high) = x.split_at(x.len().min(16));
                let block = terms.of_block(low, high);
                match out.as_chunks_mut::<16>().0 {
                    [out] => *out = block,
                    _ => out.copy_from_slice(&block[..out.len()]),
                }
            }
        }
    }
}
