//! Which instructions kernels use, and the one place where a kernel is compiled for them.

use pulp::WithSimd;

/// The instructions that kernels may use.
///
/// ```
/// use fx_kernels::Level;
///
/// let best = Level::best();
/// assert!(Level::available().contains(&best));
/// assert!(Level::available().contains(&Level::Scalar));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// One float at a time, on every machine.
    Scalar,
    /// 128-bit vectors of ARM.
    Neon,
    /// 128-bit vectors of WebAssembly: a host that cannot run them does not load a program that has them.
    Simd128,
    /// 256-bit vectors of x86-64, with fused multiplication and addition.
    Avx2,
    /// 512-bit vectors of x86-64.
    Avx512,
}

impl Level {
    /// The widest level of this machine.
    pub fn best() -> Level {
        Level::available().pop().unwrap_or(Level::Scalar)
    }

    /// The levels of this machine, narrow to wide.
    pub fn available() -> Vec<Level> {
        let all = [
            Level::Scalar,
            Level::Neon,
            Level::Simd128,
            Level::Avx2,
            Level::Avx512,
        ];
        all.into_iter()
            .filter(|level| level.is_available())
            .collect()
    }

    /// Whether this machine has the level.
    pub fn is_available(self) -> bool {
        match self {
            Level::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => pulp::x86::V3::try_new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => pulp::x86::V4::try_new().is_some(),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => pulp::aarch64::Neon::try_new().is_some(),
            #[cfg(target_arch = "wasm32")]
            Level::Simd128 => {
                pulp::wasm::enable_simd128();
                pulp::wasm::Simd128::try_new().is_some()
            }
            #[allow(unreachable_patterns, reason = "the levels of other machines")]
            _ => false,
        }
    }

    /// Runs a kernel with the instructions of this level; with scalar ones where the machine does
    /// not have it.
    #[inline]
    pub(crate) fn run<K: WithSimd>(self, kernel: K) -> K::Output {
        // Scalar code stands here once: it is as much as that of another level.
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    return pulp::Simd::vectorize(simd, kernel);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                if let Some(simd) = pulp::x86::V4::try_new() {
                    return pulp::Simd::vectorize(simd, kernel);
                }
            }
            #[cfg(target_arch = "wasm32")]
            Level::Simd128 => {
                if let Some(simd) = pulp::wasm::Simd128::try_new() {
                    return pulp::Simd::vectorize(simd, kernel);
                }
            }
            #[cfg(target_arch = "aarch64")]
            Level::Neon => {
                if let Some(simd) = pulp::aarch64::Neon::try_new() {
                    return pulp::Simd::vectorize(simd, kernel);
                }
            }
            _ => {}
        }
        pulp::Simd::vectorize(pulp::Scalar::new(), kernel)
    }
}
