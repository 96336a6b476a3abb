//! The products of a query with keys.
//!
//! Invariant: sums of a level are in one order, whatever the number of keys.

use pulp::Simd;

use crate::vector::load_some;

/// The products of a row with others, `pitch` floats apart, each times `scale`.
#[inline(always)]
pub(super) fn dots<S: Simd>(
    simd: S,
    a: &[f32],
    rows: &[f32],
    pitch: usize,
    scale: f32,
    out: &mut [f32],
) {
    let done = by_sixteen::<S>(a, rows, pitch, scale, out);
    let (rows, out) = (&rows[done * pitch..], &mut out[done..]);
    let (vectors, rest) = S::as_simd_f32s(a);
    let (fours, last) = match rest {
        [] => out.as_chunks_mut::<4>(),
        _ => (&mut [][..], out),
    };
    let done = 4 * fours.len();
    for (i, out) in fours.iter_mut().enumerate() {
        let row = |j: usize| S::as_simd_f32s(&rows[(4 * i + j) * pitch..][..a.len()]).0;
        let rows = [row(0), row(1), row(2), row(3)];
        let mut sums = [simd.splat_f32s(0.0); 4];
        for (c, a) in vectors.iter().enumerate() {
            sums[0] = simd.mul_add_e_f32s(*a, rows[0][c], sums[0]);
            sums[1] = simd.mul_add_e_f32s(*a, rows[1][c], sums[1]);
            sums[2] = simd.mul_add_e_f32s(*a, rows[2][c], sums[2]);
            sums[3] = simd.mul_add_e_f32s(*a, rows[3][c], sums[3]);
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = simd.reduce_sum_f32s(sum) * scale;
        }
    }
    for (j, out) in last.iter_mut().enumerate() {
        *out = dot(simd, a, &rows[(done + j) * pitch..][..a.len()]) * scale;
    }
}

/// The product of two rows.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut total = simd.splat_f32s(0.0);
    for (a, b) in a.iter().zip(b) {
        total = simd.mul_add_e_f32s(*a, *b, total);
    }
    if !a_rest.is_empty() {
        total = simd.mul_add_e_f32s(load_some(simd, a_rest), load_some(simd, b_rest), total);
    }
    simd.reduce_sum_f32s(total)
}

/// As [`dots`], of 16 rows at once, as far as there are so many; gives how many are done. It is for vectors of 16 floats, and
/// rows of common sizes that lie one behind another.
#[inline(always)]
fn by_sixteen<S: Simd>(
    a: &[f32],
    rows: &[f32],
    pitch: usize,
    scale: f32,
    out: &mut [f32],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if const { S::F32_LANES == 16 }
        && pitch == a.len()
        && let Some(simd) = pulp::x86::V4::try_new()
    {
        let (whole, _) = out.as_chunks_mut();
        macro_rules! of_sizes {
            ($($size:literal)*) => {
                match a.len() {
                    $($size => {
                        if let Some(a) = a.first_chunk::<$size>() {
                            sixteen(simd, a, rows.as_chunks().0, scale, whole);
                        }
                    })*
                    _ => return 0,
                }
            };
        }
        of_sizes!(64 128 256);
        return 16 * whole.len();
    }
    let _ = (a, rows, pitch, scale, out);
    0
}

/// The products of a row with 16 others at a time. Each sum has a constant index, so that it stays in a register.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sixteen<const SIZE: usize>(
    simd: pulp::x86::V4,
    a: &[f32; SIZE],
    rows: &[[f32; SIZE]],
    scale: f32,
    out: &mut [[f32; 16]],
) {
    use pulp::bytemuck::cast;
    use pulp::f32x16;

    let (a, _) = a.as_chunks::<16>();
    for (rows, out) in rows.as_chunks::<16>().0.iter().zip(out) {
        let zero = simd.splat_f32x16(0.0);
        macro_rules! products {
            ($($r:literal)*) => {{
                let mut sums = [$({ let _ = $r; zero },)*];
                for (c, a) in a.iter().enumerate() {
                    let a: f32x16 = cast(*a);
                    $(
                        let x: f32x16 = cast(rows[$r].as_chunks::<16>().0[c]);
                        sums[$r] = simd.mul_add_f32x16(a, x, sums[$r]);
                    )*
                }
                sums
            }};
        }
        let sums = sums_of(simd, products!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15));
        *out = cast(simd.mul_f32x16(sums, simd.splat_f32x16(scale)));
    }
}

/// The sum of the floats of each of 16 vectors.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sums_of(simd: pulp::x86::V4, x: [pulp::f32x16; 16]) -> pulp::f32x16 {
    use std::arch::x86_64::{__m512, __m512d};

    use pulp::bytemuck::cast;

    let f = simd.avx512f;
    // Two plain shuffles of two vectors, and their sum: half as many vectors, whose lanes are sums of twice as many floats.
    macro_rules! of_neighbours {
        ($a:expr, $b:expr) => {{
            let (a, b): (__m512, __m512) = (cast($a), cast($b));
            f._mm512_add_ps(f._mm512_unpacklo_ps(a, b), f._mm512_unpackhi_ps(a, b))
        }};
    }
    macro_rules! of_four {
        ($i:literal) => {{
            let low: __m512d = cast(of_neighbours!(x[$i], x[$i + 1]));
            let high: __m512d = cast(of_neighbours!(x[$i + 2], x[$i + 3]));
            let a: __m512 = cast(f._mm512_unpacklo_pd(low, high));
            let b: __m512 = cast(f._mm512_unpackhi_pd(low, high));
            f._mm512_add_ps(a, b)
        }};
    }
    // Even and odd quarters.
    macro_rules! of_quarters {
        ($a:expr, $b:expr) => {{
            let (a, b) = ($a, $b);
            f._mm512_add_ps(
                f._mm512_shuffle_f32x4::<0x88>(a, b),
                f._mm512_shuffle_f32x4::<0xdd>(a, b),
            )
        }};
    }
    let low = of_quarters!(of_four!(0), of_four!(4));
    let high = of_quarters!(of_four!(8), of_four!(12));
    cast(of_quarters!(low, high))
}
