//! Floats of 16 bits: every one of them is read and written right, and kernels that read them give what they give for the
//! same numbers as `f32`, to the bit.

use fx_kernels::Level;
use fx_kernels::attention::{Attention, HeadRows, Mask, MaskData, attention};
use fx_kernels::convert::{Element, Half, narrow, widen};
use fx_kernels::embedding::gather;
use fx_kernels::matrix::{Finish, PackedMatrix, WeightKind, WeightOrder, linear};
use fx_kernels::pointwise::{Chain, Operand, Unary};
use half::{bf16, f16};

use crate::common::Random;
use crate::reference::close;

/// Numbers whose bits are equal, or that are both NaN.
fn same(found: &[f32], expected: &[f32], what: &str) {
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let is_same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(is_same, "{what}: {a} is not {b} at {i}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

/// A weight of every number of 16 bits, beside a zero, as one row each, times one. A word of the packed weight has both.
fn every_number<T: Element>(kind: WeightKind, of_bits: impl Fn(u16) -> T) {
    let all: Vec<T> = (0..=u16::MAX).map(&of_bits).collect();
    let expected: Vec<f32> = all.iter().map(|x| x.to_f32()).collect();
    let mut wide = vec![0.0; all.len()];
    widen(&all, &mut wide).expect("sizes");
    same(&wide, &expected, "widen");
    let zero = of_bits(0);
    let both = |first: bool| {
        all.iter()
            .flat_map(move |x| if first { [*x, zero] } else { [zero, *x] })
    };
    let packed = [true, false].map(|first| {
        let weight: Vec<T> = both(first).collect();
        let packed = PackedMatrix::new(&weight, 2, all.len(), WeightOrder::OutputsFirst, kind);
        packed.expect("sizes")
    });
    assert_eq!((packed[0].kind(), packed[0].bytes()), (kind, 4 * all.len()));
    // A sum that starts from zero loses the sign of a zero.
    let expected: Vec<f32> = expected.iter().map(|x| x + 0.0).collect();
    for level in Level::available() {
        for (rows, packed) in [1, 2, 9]
            .into_iter()
            .flat_map(|rows| [(rows, &packed[0]), (rows, &packed[1])])
        {
            let mut out = vec![0.0; rows * all.len()];
            linear(
                level,
                rows,
                &vec![1.0; 2 * rows],
                packed,
                Finish::default(),
                &mut out,
            )
            .expect("sizes");
            for row in out.chunks(all.len()) {
                same(row, &expected, &format!("{kind:?} {level:?} {rows}"));
            }
        }
    }
}

#[test]
fn every_number_of_16_bits_is_read() {
    every_number(WeightKind::Bf16, bf16::from_bits);
    every_number(WeightKind::F16, f16::from_bits);
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    let mut random = Random(3);
    let mut x: Vec<f32> = (0..20_000)
        .map(|_| f32::from_bits(random.below(u32::MAX as usize) as u32))
        .collect();
    // Halfway between two, and beside the ends.
    for bits in (0..=u16::MAX).step_by(7) {
        for x_of in [
            f32::from_bits(u32::from(bits) << 16),
            f16::from_bits(bits).to_f32(),
        ] {
            x.extend([
                x_of,
                f32::from_bits(x_of.to_bits() | 0x8000),
                f32::from_bits(x_of.to_bits() | 0x1000),
            ]);
        }
    }
    x.extend([
        65504.0,
        65519.996,
        65520.0,
        -65520.0,
        f32::MAX,
        f32::NAN,
        f32::INFINITY,
        -0.0,
        2f32.powi(-25),
    ]);
    for half in [Half::Bf16, Half::F16] {
        let expected: Vec<f32> = x
            .iter()
            .map(|x| match half {
                Half::Bf16 => bf16::from_f32(*x).to_f32(),
                _ => f16::from_f32(*x).to_f32(),
            })
            .collect();
        let written = match half {
            Half::Bf16 => {
                let mut out = vec![bf16::ZERO; x.len()];
                narrow(&x, &mut out).expect("sizes");
                out.iter().map(|x| x.to_f32()).collect::<Vec<f32>>()
            }
            _ => {
                let mut out = vec![f16::ZERO; x.len()];
                narrow(&x, &mut out).expect("sizes");
                out.iter().map(|x| x.to_f32()).collect()
            }
        };
        same(&written, &expected, "narrow");
        for level in Level::available() {
            let mut chain = Chain::new();
            let input = chain.input();
            let result = chain.unary(Unary::Rounded(half), input);
            let mut out = vec![0.0; x.len()];
            let operands = [Operand::full(&x, &[1])];
            let tape = chain.finish(&[result]);
            tape.run(level, &[x.len()], &operands, &mut [&mut out])
                .expect("sizes");
            same(&out, &expected, &format!("{half:?} {level:?}"));
        }
    }
}

/// What attention is, in `f64`.
fn attention_of(sizes: &Attention<'_>, room: usize, [q, k, v]: [&[f32]; 3]) -> Vec<f64> {
    let (batch, heads, queries) = (sizes.batch, sizes.heads, sizes.queries);
    let mut out = Vec::new();
    for row in 0..batch * heads * queries {
        let (b, head, query) = (
            row / (heads * queries),
            row / queries % heads,
            row % queries,
        );
        let of = b * sizes.kv_heads + head / (heads / sizes.kv_heads);
        let seen = sizes
            .causal
            .map_or(sizes.keys, |offset| (query as isize + offset + 1) as usize);
        let key = |j: usize| &k[(of * room + j) * sizes.size..][..sizes.size];
        let value = |j: usize, c: usize| f64::from(v[(of * room + j) * sizes.value_size + c]);
        let q = &q[row * sizes.size..][..sizes.size];
        let scores: Vec<f64> = (0..seen)
            .map(|j| {
                let product: f64 = q
                    .iter()
                    .zip(key(j))
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum();
                let added = match sizes.mask {
                    Some(Mask {
                        data: MaskData::Add(entries),
                        ..
                    }) => f64::from(entries[j]),
                    _ => 0.0,
                };
                product * f64::from(sizes.scale) + added
            })
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        out.extend((0..sizes.value_size).map(|c| {
            let sum: f64 = weights
                .iter()
                .enumerate()
                .map(|(j, weight)| weight * value(j, c))
                .sum();
            sum / total
        }));
    }
    out
}

/// Attention over keys and values of a type, over the same numbers as `f32`, and in `f64`.
fn attends<T: Element + Default>(random: &mut Random) {
    let (batch, kv_heads, group) = (
        1 + random.below(2),
        1 + random.below(3),
        1 + random.below(9),
    );
    let most = [40, 40, 40, 450][random.below(4)];
    let (queries, size, value_size) = (
        1 + random.below(6),
        1 + random.below(most),
        1 + random.below(40),
    );
    let keys = queries + random.below(700);
    let room = keys + random.below(9);
    let heads = kv_heads * group;
    let q = random.floats(batch * heads * queries * size);
    let mut made = |columns: usize| {
        let floats = random.floats(batch * kv_heads * room * columns);
        let mut narrow = vec![T::default(); floats.len()];
        T::narrow(&floats, &mut narrow);
        let mut wide = floats;
        T::widen(&narrow, &mut wide);
        (narrow, wide)
    };
    let ((k, wide_k), (v, wide_v)) = (made(size), made(value_size));
    fn rows<T>(data: &[T], places: usize, heads: usize, columns: usize) -> HeadRows<'_, T> {
        HeadRows {
            data,
            start: 0,
            batch: heads * places * columns,
            head: places * columns,
            place: columns,
            column: 1,
        }
    }
    let entries = random.floats(keys);
    let mask = Mask {
        data: MaskData::Add(&entries),
        start: 0,
        strides: [0, 0, 0, 1],
    };
    let sizes = Attention {
        kv_heads,
        keys,
        value_size,
        causal: (random.below(2) == 0).then_some((keys - queries) as isize),
        mask: (random.below(2) == 0).then_some(mask),
        ..Attention::new(batch, heads, queries, size)
    };
    for level in Level::available() {
        let mut outs = [vec![0.0; batch * heads * queries * value_size], Vec::new()];
        outs[1] = outs[0].clone();
        let q = rows(&q, queries, heads, size);
        let [narrow, wide] = &mut outs;
        let (k, v) = (
            rows(&k, room, kv_heads, size),
            rows(&v, room, kv_heads, value_size),
        );
        attention(level, sizes, q, k, v, narrow).expect("sizes");
        let (k, v) = (
            rows(&wide_k, room, kv_heads, size),
            rows(&wide_v, room, kv_heads, value_size),
        );
        attention(level, sizes, q, k, v, wide).expect("sizes");
        let context =
            format!("{level:?} {batch} {kv_heads}x{group} {queries}x{keys} {size} {value_size}");
        same(narrow, wide, &context);
        let expected = attention_of(&sizes, room, [q.data, k.data, v.data]);
        close(wide, &expected, 1e-5, &context);
    }
}

#[test]
fn attention_reads_keys_and_values_of_16_bits() {
    let mut random = Random(5);
    for _ in 0..60 {
        attends::<bf16>(&mut random);
        attends::<f16>(&mut random);
    }
}

#[test]
fn tables_of_16_bits_are_read_by_rows() {
    let table: Vec<bf16> = (0..12).map(|x| bf16::from_f32(x as f32)).collect();
    let mut out = [0.0; 6];
    gather(3, &table, &[3, 0], &mut out).expect("sizes");
    assert_eq!(out, [9.0, 10.0, 11.0, 0.0, 1.0, 2.0]);
    assert!(gather(3, &table, &[4], &mut out[..3]).is_err());
}
