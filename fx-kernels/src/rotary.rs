//! Rotary position embedding: pairs of a head's floats turned by an angle that grows with the place.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::vector::{load_some, store_some};

/// Which floats of a head are a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairs {
    /// Float i and float `n / 2 + i` of the `n` that are turned (GPT-NeoX, Llama in transformers).
    #[default]
    Halves,
    /// Float 2i and float 2i + 1 (GPT-J, the first Llama).
    Neighbours,
}

/// The sizes of the floats that [`rotate`] turns: `[batch, length, heads]` rows of `size` floats, of
/// which the first `turned` are turned and the rest is copied.
///
/// The row of head h at place p of sequence b starts at `start + b * batch_stride + p * place_stride
/// + h * head_stride`, so that queries and keys are read inside of a packed projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Sequences.
    pub batch: usize,
    /// Places of a sequence.
    pub length: usize,
    /// Heads at a place.
    pub heads: usize,
    /// Floats of a head.
    pub size: usize,
    /// The floats of a head that are turned: even, at most `size`.
    pub turned: usize,
    /// Where the first row starts.
    pub start: usize,
    /// The floats from a sequence to the next.
    pub batch_stride: usize,
    /// The floats from a place to the next.
    pub place_stride: usize,
    /// The floats from a head to the next.
    pub head_stride: usize,
}

impl Heads {
    /// The floats that a slice must have for these rows.
    fn span(&self) -> usize {
        if [self.batch, self.length, self.heads, self.size].contains(&0) {
            return 0;
        }
        self.start
            + (self.batch - 1) * self.batch_stride
            + (self.length - 1) * self.place_stride
            + (self.heads - 1) * self.head_stride
            + self.size
    }
}

/// The rows of one place.
struct Place<'a> {
    x: &'a [f32],
    heads: Heads,
    pairs: Pairs,
    cos: &'a [f32],
    sin: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Place<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Place {
            x,
            heads,
            pairs,
            cos,
            sin,
            out,
        } = self;
        let half = heads.turned / 2;
        let lanes = S::F32_LANES;
        for (h, out) in out.chunks_exact_mut(heads.size).enumerate() {
            let row = &x[h * heads.head_stride..][..heads.size];
            out[heads.turned..].copy_from_slice(&row[heads.turned..]);
            match pairs {
                Pairs::Halves => {
                    let (a, b) = row[..heads.turned].split_at(half);
                    let (out_a, out_b) = out[..heads.turned].split_at_mut(half);
                    for at in (0..half).step_by(lanes) {
                        let range = at..half.min(at + lanes);
                        let [a, b] = [a, b].map(|x| load_some(simd, &x[range.clone()]));
                        let [c, s] = [cos, sin].map(|x| load_some(simd, &x[range.clone()]));
                        let y = simd.sub_f32s(simd.mul_f32s(a, c), simd.mul_f32s(b, s));
                        store_some(simd, &mut out_a[range.clone()], y);
                        let y = simd.add_f32s(simd.mul_f32s(b, c), simd.mul_f32s(a, s));
                        store_some(simd, &mut out_b[range], y);
                    }
                }
                Pairs::Neighbours => {
                    let row = row[..heads.turned].as_chunks::<2>().0;
                    let out = out[..heads.turned].as_chunks_mut::<2>().0;
                    for (((x, out), c), s) in row.iter().zip(out).zip(cos).zip(sin) {
                        *out = [x[0] * c - x[1] * s, x[1] * c + x[0] * s];
                    }
                }
            }
        }
    }
}

/// Turns each pair `(a, b)` of each head into `(a cos - b sin, b cos + a sin)`.
///
/// `cos` and `sin` are `[length, turned / 2]`, for the places of this call. `out` is
/// `[batch, length, heads, size]`.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for (`x` may be longer), or `turned` is odd or
/// more than `size`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::rotary::{Heads, Pairs, rotate};
///
/// let heads = Heads {
///     batch: 1, length: 1, heads: 1, size: 2, turned: 2,
///     start: 0, batch_stride: 2, place_stride: 2, head_stride: 2,
/// };
/// let mut out = [0.0; 2];
/// rotate(Level::best(), &[1.0, 2.0], heads, Pairs::Halves, &[0.0], &[1.0], &mut out)?;
/// assert_eq!(out, [-2.0, 1.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn rotate(
    level: Level,
    x: &[f32],
    heads: Heads,
    pairs: Pairs,
    cos: &[f32],
    sin: &[f32],
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the input", heads.span().max(x.len()), x.len())?;
    check(
        "the turned part",
        heads.turned.min(heads.size) / 2 * 2,
        heads.turned,
    )?;
    let half = heads.turned / 2;
    check("the cosine", heads.length * half, cos.len())?;
    check("the sine", heads.length * half, sin.len())?;
    let place = heads.heads * heads.size;
    check("the result", heads.batch * heads.length * place, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let run = |(i, out): (usize, &mut [f32])| {
        let (b, p) = (i / heads.length, i % heads.length);
        let start = heads.start + b * heads.batch_stride + p * heads.place_stride;
        let [cos, sin] = [cos, sin].map(|table| &table[p * half..(p + 1) * half]);
        level.run(Place {
            x: &x[start..],
            heads,
            pairs,
            cos,
            sin,
            out,
        });
    };
    match out.len() < 64 << 10 {
        true => out.chunks_mut(place).enumerate().for_each(run),
        false => out
            .par_chunks_mut(place)
            .enumerate()
            .with_min_len(16)
            .for_each(run),
    }
    Ok(())
}
