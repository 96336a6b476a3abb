//! Products of a few pixels with a few panels of weights, in sums of 32 bits.
//!
//! Invariant: sums are exact, so that all ways of computing them give the same.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};

use crate::level::Level;

/// The columns of a panel of weights.
pub(super) const PANEL: usize = 16;
/// The pixels that a block has at most.
pub(super) const ROWS: usize = 6;
/// The panels that a block has at most.
pub(super) const PANELS: usize = 4;

/// A word of four weights for each column of a panel.
pub(super) type Words = [u32; PANEL];

/// Which words of pixels meet which words of weights.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    /// The words of all pixels.
    pub x: &'a [u32],
    /// Where each run of words begins, counted from where a pixel begins.
    pub runs: &'a [usize],
    /// The words of a run.
    pub len: usize,
    /// The weights: for each word of each run, one of each panel.
    pub weights: &'a [Words],
}

/// The sums of a block.
pub(super) type Sums = [[[i32; PANEL]; PANELS]; ROWS];

#[cfg(target_arch = "x86_64")]
struct Fast<'a, const R: usize, const P: usize> {
    walk: Walk<'a>,
    starts: [usize; R],
    sums: &'a mut Sums,
}

#[cfg(target_arch = "x86_64")]
impl<const R: usize, const P: usize> Kernel for Fast<'_, R, P> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: Vnni) {
        use pulp::{i32x16, u32x16};
        let Walk {
            x,
            runs,
            len,
            weights,
        } = self.walk;
        let zero = simd.v4().splat_i32x16(0);
        let mut sums: [[i32x16; P]; R] = [[zero; P]; R];
        let (weights, _) = weights.as_chunks::<P>();
        for (run, weights) in runs.iter().zip(weights.chunks_exact(len)) {
            let weights = &weights[..len];
            let rows: [&[u32]; R] =
                std::array::from_fn(|r| &x[self.starts[r] + run..self.starts[r] + run + len]);
            for at in 0..len {
                let words: [u32x16; P] = std::array::from_fn(|p| pulp::cast(weights[at][p]));
                for r in 0..R {
                    let word = simd.v4().splat_u32x16(rows[r][at]);
                    for p in 0..P {
                        sums[r][p] = simd.dot_words(sums[r][p], word, words[p]);
                    }
                }
            }
        }
        for (to, from) in self.sums.iter_mut().zip(sums) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = pulp::cast(from);
            }
        }
    }
}

struct Portable<'a> {
    walk: Walk<'a>,
    starts: &'a [usize],
    panels: usize,
    sums: &'a mut Sums,
}

impl WithSimd for Portable<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Walk {
            x,
            runs,
            len,
            weights,
        } = self.walk;
        for (row, start) in self.sums.iter_mut().zip(self.starts) {
            for (p, sums) in row.iter_mut().take(self.panels).enumerate() {
                let mut own = [0i32; PANEL];
                for (at, run) in runs.iter().enumerate() {
                    for (w, word) in x[start + run..start + run + len].iter().enumerate() {
                        let word = word.to_ne_bytes().map(i32::from);
                        let weights = &weights[(at * len + w) * self.panels + p];
                        for (sum, weights) in own.iter_mut().zip(weights) {
                            let weights = weights.to_ne_bytes().map(|w| i32::from(w.cast_signed()));
                            let products = word.iter().zip(weights).map(|(x, w)| x * w);
                            *sum = sum.wrapping_add(products.sum());
                        }
                    }
                }
                *sums = own;
            }
        }
    }
}

/// How blocks are computed on a machine.
#[derive(Clone, Copy)]
pub(super) enum Way {
    #[cfg(target_arch = "x86_64")]
    Vnni(Vnni),
    Portable(Level),
}

impl Way {
    /// The fastest of a level.
    pub fn of(level: Level) -> Way {
        #[cfg(target_arch = "x86_64")]
        if level == Level::Avx512
            && let Some(simd) = Vnni::try_new()
        {
            return Way::Vnni(simd);
        }
        Way::Portable(level)
    }

    /// The sums of up to [`ROWS`] pixels, which begin at these words, for 1, 2 or 4 panels.
    #[inline]
    pub fn sums(self, walk: Walk<'_>, starts: &[usize], panels: usize, sums: &mut Sums) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Way::Vnni(simd) => {
                macro_rules! fast {
                    ($($rows:literal)*) => {
                        match starts.len() {
                            $($rows => {
                                let mut own = [0; $rows];
                                own.copy_from_slice(starts);
                                match panels {
                                    4 => simd.run(Fast::<$rows, 4> { walk, starts: own, sums }),
                                    2 => simd.run(Fast::<$rows, 2> { walk, starts: own, sums }),
                                    _ => simd.run(Fast::<$rows, 1> { walk, starts: own, sums }),
                                }
                            })*
                            _ => {}
                        }
                    };
                }
                fast!(1 2 3 4 5 6);
            }
            Way::Portable(level) => level.run(Portable {
                walk,
                starts,
                panels,
                sums,
            }),
        }
    }
}
