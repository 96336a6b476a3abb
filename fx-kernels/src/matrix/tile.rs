//! The innermost product: a tile of rows by two vectors of columns that stays in registers while it
//! walks along a block of K.

use pulp::Simd;

use crate::terms::{Floats, MulAdd};
use crate::vector::{load, load_some, store, store_some};

/// The columns of a panel of the right operand.
pub(crate) const PANEL: usize = 32;

/// One row of a panel.
pub(crate) type Columns = [f32; PANEL];

/// The steps of K, each of one term, that are done before the sums go to memory.
pub(crate) const DEPTH: usize = 384;

/// A row of a block of the left operand. The floats behind `DEPTH` keep neighbouring rows out of
/// each other's lines of the cache.
pub(crate) type Row = [f32; DEPTH + 16];

/// The most rows of a tile.
pub(crate) const fn most_rows<S: Simd>() -> usize {
    match S::REGISTER_COUNT {
        32.. => 14,
        _ => 6,
    }
}

/// Each accumulator has a constant index, so that it stays in a register.
macro_rules! tiles {
    ($($name:ident $rows:literal [$($r:literal)*])*) => {
        $(
            #[inline(always)]
            fn $name<S: Simd, T: MulAdd<S>>(
                simd: S,
                terms: T,
                a: &[Row; $rows],
                b: &[Columns],
                at: usize,
            ) -> ([S::f32s; $rows], [S::f32s; $rows]) {
                let zero = simd.splat_f32s(0.0);
                let mut left = [$({ let _ = $r; zero },)*];
                let mut right = left;
                assert!(at + 2 * S::F32_LANES <= PANEL);
                for (k, b) in b.iter().enumerate().take(DEPTH) {
                    let first = load(simd, b, at);
                    let second = load(simd, b, at + S::F32_LANES);
                    $(
                        let x = simd.splat_f32s(a[$r][k]);
                        left[$r] = terms.mul_add(simd, x, first, left[$r]);
                        right[$r] = terms.mul_add(simd, x, second, right[$r]);
                    )*
                }
                (left, right)
            }
        )*

        /// Multiplies rows of `a` (at most [`most_rows`]) by the columns of the panel block `b` from `at` on, two vectors
        /// of them, and writes the sums to the rows of `out` from `column` on, or adds them to what is there.
        #[inline(always)]
        pub(crate) fn multiply_at<S: Simd, T: MulAdd<S>, R: AsMut<[f32]>>(
            (simd, terms): (S, T),
            a: &[Row],
            b: &[Columns],
            at: usize,
            add: bool,
            out: &mut [R],
            column: usize,
        ) {
            match a.len() {
                $(
                    $rows if $rows <= most_rows::<S>() => {
                        let Some((a, _)) = a.split_first_chunk::<$rows>() else { return };
                        let (left, right) = $name(simd, terms, a, b, at);
                        for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
                            put(simd, out.as_mut(), column, left, right, add);
                        }
                    }
                )*
                _ => {}
            }
        }
    };
}

/// Multiplies rows of `a` (at most [`most_rows`]) by the panel block `b`, and writes the sums to the rows of `out` from
/// column `column`, or adds them to what is there.
#[inline(always)]
pub(crate) fn multiply<S: Simd, R: AsMut<[f32]>>(
    simd: S,
    a: &[Row],
    b: &[Columns],
    add: bool,
    out: &mut [R],
    column: usize,
) {
    for at in (0..PANEL).step_by(2 * S::F32_LANES) {
        multiply_at((simd, Floats), a, b, at, add, out, column + at);
    }
}

/// Writes two vectors of sums at `at`, as far as the row goes.
#[inline(always)]
fn put<S: Simd>(simd: S, out: &mut [f32], at: usize, left: S::f32s, right: S::f32s, add: bool) {
    let lanes = S::F32_LANES;
    if let Some(out) = out.get_mut(at..at + 2 * lanes) {
        let (mut left, mut right) = (left, right);
        if add {
            left = simd.add_f32s(left, load(simd, out, 0));
            right = simd.add_f32s(right, load(simd, out, lanes));
        }
        store(simd, out, 0, left);
        store(simd, out, lanes, right);
        return;
    }
    for (i, sum) in [left, right].into_iter().enumerate() {
        put_some(simd, out, at + i * lanes, sum, add);
    }
}

/// Writes a vector of sums at `at`, as far as the row goes, or adds it to what is there.
#[inline(always)]
pub(crate) fn put_some<S: Simd>(simd: S, out: &mut [f32], at: usize, sum: S::f32s, add: bool) {
    let Some(out) = out.get_mut(at..) else {
        return;
    };
    let sum = if add {
        simd.add_f32s(sum, load_some(simd, out))
    } else {
        sum
    };
    store_some(simd, out, sum);
}

tiles! {
    tile_1 1 [0]
    tile_2 2 [0 1]
    tile_3 3 [0 1 2]
    tile_4 4 [0 1 2 3]
    tile_5 5 [0 1 2 3 4]
    tile_6 6 [0 1 2 3 4 5]
    tile_7 7 [0 1 2 3 4 5 6]
    tile_8 8 [0 1 2 3 4 5 6 7]
    tile_9 9 [0 1 2 3 4 5 6 7 8]
    tile_10 10 [0 1 2 3 4 5 6 7 8 9]
    tile_11 11 [0 1 2 3 4 5 6 7 8 9 10]
    tile_12 12 [0 1 2 3 4 5 6 7 8 9 10 11]
    tile_13 13 [0 1 2 3 4 5 6 7 8 9 10 11 12]
    tile_14 14 [0 1 2 3 4 5 6 7 8 9 10 11 12 13]
}

/// Cuts `rows` rows into parts of at most `most` that differ by at most one.
pub(crate) fn even(rows: usize, most: usize) -> impl ExactSizeIterator<Item = (usize, usize)> {
    let parts = rows.div_ceil(most);
    let (size, longer) = match parts {
        0 => (0, 0),
        _ => (rows / parts, rows % parts),
    };
    (0..parts).map(move |i| (i * size + i.min(longer), size + usize::from(i < longer)))
}
