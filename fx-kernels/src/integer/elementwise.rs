//! Bytes one by one: sums of two, other scales, and bounds.
//!
//! Invariant: what stands behind the last channel is computed like the rest, and read by nobody.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use super::block::{Ends, Way};
use super::bytes::{Bytes, Rounding, line, put_line};
use crate::error::{SizeError, check};
use crate::level::Level;

/// The words that a task has.
const TASK: usize = 1 << 14;

/// A side of a sum: how much a step of it is in steps of the result, and the byte of its 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// The scale of the side over that of the result.
    pub scale: f32,
    /// The byte of 0.
    pub zero_point: u8,
}

/// Runs a function of the bytes at the same place of each image.
struct Each<'a, F> {
    a: &'a [u32],
    b: &'a [u32],
    out: &'a mut [u32],
    of: F,
}

impl<F: Fn(u8, u8) -> u8> WithSimd for Each<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let lines = self
            .out
            .chunks_mut(4)
            .zip(self.a.chunks(4).zip(self.b.chunks(4)));
        for (out, (a, b)) in lines {
            let (a, b) = (line(a), line(b));
            let mut made = [0u8; 16];
            for i in 0..16 {
                made[i] = (self.of)(a[i], b[i]);
            }
            put_line(made, out);
        }
    }
}

/// Runs a function of the words at the same place of each image, in tasks.
fn in_tasks(
    (a, b): (&[u32], &[u32]),
    out: &mut [u32],
    run: impl Fn(&mut [u32], &[u32], &[u32]) + Sync,
) {
    if out.len() <= TASK {
        return run(out, a, b);
    }
    out.par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK).zip(b.par_chunks(TASK)))
        .for_each(|(out, (a, b))| run(out, a, b));
}

fn each(level: Level, a: &[u32], b: &[u32], out: &mut [u32], of: impl Fn(u8, u8) -> u8 + Sync) {
    in_tasks((a, b), out, |out, a, b| {
        level.run(Each { a, b, out, of: &of });
    });
}

fn like(x: &Bytes, words: Vec<u32>) -> Bytes {
    Bytes::reusing(words, x.sizes())
}

/// An image like two that have the same sizes.
fn like_both(a: &Bytes, b: &Bytes, words: Vec<u32>) -> Result<Bytes, SizeError> {
    check("an image", a.words().len(), b.words().len())?;
    check("a pixel", a.channels(), b.channels())?;
    Ok(like(a, words))
}

/// The sum of two images, each with its own scale, in the memory of `words`: `round((a - a0) * sa + (b - b0) * sb)`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, Rounding, Term, add};
/// let (mut a, mut b) = (Bytes::zeros(1, 1, 1, 4), Bytes::zeros(1, 1, 1, 4));
/// a.words_mut()[0] = u32::from_ne_bytes([10, 20, 30, 40]);
/// b.words_mut()[0] = u32::from_ne_bytes([1, 2, 3, 4]);
/// let term = |scale| Term { scale, zero_point: 0 };
/// let rounding = Rounding { zero_point: 0, low: 0, high: 30 };
/// let sum = add(Level::best(), (&a, term(0.5)), (&b, term(2.0)), rounding, Vec::new())?;
/// assert_eq!(sum.words()[0].to_ne_bytes(), [7, 14, 21, 28]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Returns an error if the images have other sizes.
pub fn add(
    level: Level,
    (a, of_a): (&Bytes, Term),
    (b, of_b): (&Bytes, Term),
    rounding: Rounding,
    words: Vec<u32>,
) -> Result<Bytes, SizeError> {
    let mut out = like_both(a, b, words)?;
    #[cfg(target_arch = "x86_64")]
    if let Way::Vnni(simd) = Way::of(level) {
        in_tasks((a.words(), b.words()), out.words_mut(), |out, a, b| {
            simd.run(FastSum {
                sides: [(a, of_a), (b, of_b)],
                rounding,
                out,
            });
        });
        return Ok(out);
    }
    let (zero_a, zero_b) = (f32::from(of_a.zero_point), f32::from(of_b.zero_point));
    each(level, a.words(), b.words(), out.words_mut(), |a, b| {
        let (a, b) = (f32::from(a) - zero_a, f32::from(b) - zero_b);
        rounding.byte(a * of_a.scale + b * of_b.scale)
    });
    Ok(out)
}

#[cfg(target_arch = "x86_64")]
struct FastSum<'a> {
    sides: [(&'a [u32], Term); 2],
    rounding: Rounding,
    out: &'a mut [u32],
}

#[cfg(target_arch = "x86_64")]
impl Kernel<Vnni> for FastSum<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: Vnni) {
        let v4 = simd.v4();
        let ends = Ends::of(v4, self.rounding);
        let [(a, of_a), (b, of_b)] = self.sides;
        let of = (Factor::of(v4, of_a), Factor::of(v4, of_b));
        let (outs, rest) = self.out.as_chunks_mut::<16>();
        for (out, (a, b)) in outs.iter_mut().zip(a.chunks(16).zip(b.chunks(16))) {
            let four = [
                sum(v4, a, b, of),
                sum(v4, &a[4..], &b[4..], of),
                sum(v4, &a[8..], &b[8..], of),
                sum(v4, &a[12..], &b[12..], of),
            ];
            *out = ends.lines(v4, four);
        }
        let done = outs.len() * 16;
        for (out, (a, b)) in (rest.chunks_mut(4)).zip(a[done..].chunks(4).zip(b[done..].chunks(4)))
        {
            let bytes = ends.lines(v4, [sum(v4, a, b, of); 4]);
            out.copy_from_slice(&bytes[..out.len()]);
        }
    }
}

/// A side of a sum in vectors.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Factor {
    zero: pulp::f32x16,
    scale: pulp::f32x16,
}

#[cfg(target_arch = "x86_64")]
impl Factor {
    #[inline(always)]
    fn of(v4: pulp::x86::V4, term: Term) -> Self {
        Factor {
            zero: v4.splat_f32x16(f32::from(term.zero_point)),
            scale: v4.splat_f32x16(term.scale),
        }
    }

    /// What 16 bytes are in steps of the result.
    #[inline(always)]
    fn term(self, v4: pulp::x86::V4, words: &[u32]) -> pulp::f32x16 {
        let whole = v4.convert_u8x16_to_i32x16(pulp::cast(line(words)));
        let moved = v4.sub_f32x16(v4.convert_i32x16_to_f32x16(whole), self.zero);
        v4.mul_f32x16(moved, self.scale)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum(v4: pulp::x86::V4, a: &[u32], b: &[u32], of: (Factor, Factor)) -> pulp::f32x16 {
    v4.add_f32x16(of.0.term(v4, a), of.1.term(v4, b))
}

/// The image with another scale, in the memory of `words`.
pub fn rescale(
    level: Level,
    (x, of_x): (&Bytes, Term),
    rounding: Rounding,
    words: Vec<u32>,
) -> Bytes {
    let zero = f32::from(of_x.zero_point);
    let mut out = like(x, words);
    each(level, x.words(), x.words(), out.words_mut(), |x, _| {
        rounding.byte((f32::from(x) - zero) * of_x.scale)
    });
    out
}

/// The product of two images element by element, in the memory of `words`: `round((a - a0) * (b - b0) * scale)`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, Rounding, multiply};
/// let (mut a, mut b) = (Bytes::zeros(1, 1, 1, 4), Bytes::zeros(1, 1, 1, 4));
/// a.words_mut()[0] = u32::from_ne_bytes([10, 20, 30, 40]);
/// b.words_mut()[0] = u32::from_ne_bytes([1, 2, 3, 4]);
/// let rounding = Rounding { zero_point: 5, low: 0, high: 60 };
/// let product = multiply(Level::best(), (&a, 10), (&b, 1), 0.5, rounding, Vec::new())?;
/// assert_eq!(product.words()[0].to_ne_bytes(), [5, 10, 25, 50]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Returns an error if the images have other sizes.
pub fn multiply(
    level: Level,
    (a, zero_of_a): (&Bytes, u8),
    (b, zero_of_b): (&Bytes, u8),
    scale: f32,
    rounding: Rounding,
    words: Vec<u32>,
) -> Result<Bytes, SizeError> {
    let mut out = like_both(a, b, words)?;
    let (zero_of_a, zero_of_b) = (f32::from(zero_of_a), f32::from(zero_of_b));
    each(level, a.words(), b.words(), out.words_mut(), |a, b| {
        let (a, b) = (f32::from(a) - zero_of_a, f32::from(b) - zero_of_b);
        rounding.byte(a * b * scale)
    });
    Ok(out)
}

/// The image with each byte as a table has it, in the memory of `words`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, lookup};
/// let mut x = Bytes::zeros(1, 1, 1, 4);
/// x.words_mut()[0] = u32::from_ne_bytes([0, 1, 2, 255]);
/// let negative = std::array::from_fn(|byte| 255 - byte as u8);
/// let y = lookup(Level::best(), &x, &negative, Vec::new());
/// assert_eq!(y.words()[0].to_ne_bytes(), [255, 254, 253, 0]);
/// ```
pub fn lookup(level: Level, x: &Bytes, table: &[u8; 256], words: Vec<u32>) -> Bytes {
    let mut out = like(x, words);
    each(level, x.words(), x.words(), out.words_mut(), |x, _| {
        table[usize::from(x)]
    });
    out
}

/// The image with each byte held between two, in the memory of `words`.
pub fn clamp(level: Level, x: &Bytes, low: u8, high: u8, words: Vec<u32>) -> Bytes {
    let mut out = like(x, words);
    each(level, x.words(), x.words(), out.words_mut(), |x, _| {
        x.max(low).min(high)
    });
    out
}
