//! Weights in the blocks of GGUF files: every number of them is read right, sums are right, and a row has the same bits
//! whatever rows are beside it.

use fx_kernels::Level;
use fx_kernels::matrix::{BlockKind, Finish, PackedMatrix, WeightKind, WeightOrder, linear};
use half::f16;

use crate::common::Random;

const KINDS: [BlockKind; 8] = [
    BlockKind::Q4_0,
    BlockKind::Q4_1,
    BlockKind::Q5_0,
    BlockKind::Q5_1,
    BlockKind::Q8_0,
    BlockKind::Q4K,
    BlockKind::Q5K,
    BlockKind::Q6K,
];

/// The elements of a block, as the format has them one by one.
fn elements(kind: BlockKind, bytes: &[u8]) -> Vec<f32> {
    let number = |at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();
    let low_or_high = |bytes: &[u8], at: usize| match at < 16 {
        true => bytes[at] & 15,
        false => bytes[at - 16] >> 4,
    };
    let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (at % 8) & 1;
    // The 6 bits of the scale and of the minimum of a chunk.
    let packed = |chunk: usize| {
        let at = |byte: usize| u32::from(bytes[4 + byte]);
        match chunk < 4 {
            true => (at(chunk) % 64, at(chunk + 4) % 64),
            false => (
                at(chunk + 4) % 16 + at(chunk - 4) / 64 * 16,
                at(chunk + 4) / 16 + at(chunk) / 64 * 16,
            ),
        }
    };
    let of_chunk = |at: usize, q: u8| {
        let (scale, min) = packed(at / 32);
        number(0) * scale as f32 * f32::from(q) - number(2) * min as f32
    };
    (0..kind.block_size())
        .map(|at| match kind {
            BlockKind::Q4_0 => (f32::from(low_or_high(&bytes[2..], at)) - 8.0) * number(0),
            BlockKind::Q4_1 => f32::from(low_or_high(&bytes[4..], at)) * number(0) + number(2),
            BlockKind::Q5_0 => {
                let q = low_or_high(&bytes[6..], at) + 16 * bit(&bytes[2..6], at);
                (f32::from(q) - 16.0) * number(0)
            }
            BlockKind::Q5_1 => {
                let q = low_or_high(&bytes[8..], at) + 16 * bit(&bytes[4..8], at);
                f32::from(q) * number(0) + number(2)
            }
            BlockKind::Q8_0 => f32::from(bytes[2 + at] as i8) * number(0),
            BlockKind::Q4K | BlockKind::Q5K => {
                let codes = &bytes[kind.block_bytes() - 128..];
                let byte = codes[at / 64 * 32 + at % 32];
                let q = if at % 64 < 32 { byte & 15 } else { byte >> 4 };
                let fifth = match kind {
                    BlockKind::Q5K => bytes[16 + at % 32] >> (at / 32) & 1,
                    _ => 0,
                };
                of_chunk(at, q + 16 * fifth)
            }
            _ => {
                let (half, at_half) = (at / 128, at % 128);
                let byte = bytes[64 * half + at_half % 64];
                let q = if at_half < 64 { byte & 15 } else { byte >> 4 };
                let high = bytes[128 + 32 * half + at % 32] >> (at_half / 32 * 2) & 3;
                let scale = number(208) * f32::from(bytes[192 + at / 16] as i8);
                scale * (f32::from(q + 16 * high) - 32.0)
            }
        })
        .collect()
}

/// Rows of blocks of any bytes, but for scales that are moderate numbers.
fn random_rows(kind: BlockKind, random: &mut Random, inputs: usize, outputs: usize) -> Vec<u8> {
    let places: &[usize] = match kind {
        BlockKind::Q4_0 | BlockKind::Q5_0 | BlockKind::Q8_0 => &[0],
        BlockKind::Q6K => &[208],
        _ => &[0, 2],
    };
    let mut bytes = Vec::new();
    for _ in 0..outputs * inputs / kind.block_size() {
        let mut block: Vec<u8> = (0..kind.block_bytes())
            .map(|_| random.below(256) as u8)
            .collect();
        for place in places {
            let scale = f16::from_f32((random.below(2000) as f32 - 1000.0) / 4096.0);
            block[*place..place + 2].copy_from_slice(&scale.to_le_bytes());
        }
        bytes.extend(block);
    }
    bytes
}

fn product(level: Level, rows: usize, x: &[f32], weight: &PackedMatrix) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows * weight.outputs()];
    linear(level, rows, x, weight, Finish::default(), &mut out).expect("sizes");
    out
}

#[test]
fn every_element_of_a_block_is_read_as_it_is() {
    let mut random = Random(5);
    for kind in KINDS {
        // More than a piece, and an end of each sort.
        let (inputs, outputs) = (512 + kind.block_size(), 71);
        let bytes = random_rows(kind, &mut random, inputs, outputs);
        let of_blocks = bytes.chunks(kind.block_bytes());
        let expected: Vec<f32> = of_blocks.flat_map(|block| elements(kind, block)).collect();
        let packed = PackedMatrix::from_blocks(kind, &bytes, inputs, outputs).expect("sizes");
        assert_eq!(packed.kind(), WeightKind::Blocks(kind));
        for level in Level::available() {
            // A number that bytes represent.
            let one = if packed.rounds_rows(level) {
                127.0
            } else {
                1.0
            };
            // Many rows are widened, few are not.
            for rows in [1, inputs] {
                for first in (0..inputs).step_by(if rows == 1 { 5 } else { inputs }) {
                    let mut x = vec![0.0; rows * inputs];
                    (0..rows).for_each(|row| x[row * inputs + first + row] = one);
                    let out = product(level, rows, &x, &packed);
                    for (row, out) in out.chunks(outputs).enumerate() {
                        for (n, found) in out.iter().enumerate() {
                            let expected = one * expected[n * inputs + first + row] + 0.0;
                            // The scale and the minimum of a long block are times 127 apart from each other.
                            let step = if one == 1.0 { 0.0 } else { 3e-7 * 127.0 };
                            assert!(
                                (found - expected).abs() <= step * expected.abs().max(1.0),
                                "{kind:?} {level:?} {rows} rows: input {} of output {n}",
                                first + row
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A chunk as bytes times a scale.
fn in_bytes(chunk: &[f32]) -> Vec<f32> {
    let largest = chunk.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let scale = largest / 127.0;
    let byte = |x: &f32| (x * (1.0 / scale)).round();
    let kept = f16::from_f32(scale).to_f32();
    chunk.iter().map(|x| byte(x) * kept).collect()
}

#[test]
fn products_with_blocks_are_right_and_a_row_is_the_same_beside_others() {
    let mut random = Random(6);
    for kind in KINDS {
        for (blocks, outputs) in [(1, 1), (2, 33), (5, 160), (3, 300)] {
            let inputs = blocks * kind.block_size();
            let bytes = random_rows(kind, &mut random, inputs, outputs);
            let of_blocks = bytes.chunks(kind.block_bytes());
            let weight: Vec<f32> = of_blocks.flat_map(|block| elements(kind, block)).collect();
            let packed = PackedMatrix::from_blocks(kind, &bytes, inputs, outputs).expect("sizes");
            let given: Vec<f32> = (0..12 * inputs).map(|_| random.float()).collect();
            for level in Level::available() {
                let is_rounded = packed.rounds_rows(level);
                let rounded = || given.chunks(32).flat_map(in_bytes).collect::<Vec<f32>>();
                let exact = if is_rounded { rounded() } else { given.clone() };
                let x = &given;
                let alone = product(level, 1, &x[..inputs], &packed);
                for rows in 1..=12 {
                    let out = product(level, rows, &x[..rows * inputs], &packed);
                    if rows <= 8 || packed.rounds_rows(level) {
                        assert_eq!(out[..outputs], alone, "{kind:?} {level:?} {rows}");
                    }
                    for (row, out) in out.chunks(outputs).enumerate() {
                        let x = &exact[row * inputs..][..inputs];
                        for (n, found) in out.iter().enumerate() {
                            let weight = &weight[n * inputs..][..inputs];
                            let terms = x
                                .iter()
                                .zip(weight)
                                .map(|(x, w)| f64::from(*x) * f64::from(*w));
                            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| {
                                (sum + term, size + term.abs())
                            });
                            let error = (f64::from(*found) - sum).abs();
                            assert!(
                                error <= 4e-6 * size + 1e-6,
                                "{kind:?} {level:?} {rows} rows of {inputs}: {found} is not {sum}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn floats_are_rounded_to_blocks() {
    let mut random = Random(7);
    // The largest error of a kind, by the largest float.
    let bounds = [0.13, 0.07, 0.065, 0.035, 0.0045, 0.075, 0.04, 0.035];
    for (kind, bound) in KINDS.into_iter().zip(bounds) {
        let (inputs, outputs) = (512, 40);
        let weight: Vec<f32> = (0..inputs * outputs).map(|_| random.float()).collect();
        let of = WeightKind::Blocks(kind);
        let packed = PackedMatrix::new(&weight, inputs, outputs, WeightOrder::OutputsFirst, of);
        let packed = packed.expect("sizes");
        let turned: Vec<f32> = (0..inputs * outputs)
            .map(|at| weight[at % outputs * inputs + at / outputs])
            .collect();
        let turned = PackedMatrix::new(&turned, inputs, outputs, WeightOrder::InputsFirst, of);
        let mut identity = vec![0.0; inputs * inputs];
        (0..inputs).for_each(|at| identity[at * inputs + at] = 1.0);
        let found = product(Level::best(), inputs, &identity, &packed);
        assert_eq!(
            found,
            product(Level::best(), inputs, &identity, &turned.expect("sizes"))
        );
        let largest = weight.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for (at, x) in weight.iter().enumerate() {
            let found = found[at % inputs * outputs + at / inputs];
            assert!(
                (found - x).abs() <= bound * largest,
                "{kind:?}: {x} became {found}"
            );
        }
        let zero = product(Level::best(), 2, &vec![0.0; 2 * inputs], &packed);
        assert!(zero.iter().all(|x| *x == 0.0), "{kind:?}");
        // Zeros stay zeros, and what is no number is seen.
        let zeros = PackedMatrix::new(&vec![0.0; inputs], inputs, 1, WeightOrder::OutputsFirst, of);
        assert_eq!(
            product(
                Level::best(),
                1,
                &identity[..inputs],
                &zeros.expect("sizes")
            ),
            [0.0]
        );
        let mut infinite = vec![1.0; inputs];
        infinite[3] = f32::INFINITY;
        let infinite = PackedMatrix::new(&infinite, inputs, 1, WeightOrder::OutputsFirst, of);
        assert!(
            product(
                Level::best(),
                1,
                &identity[..inputs],
                &infinite.expect("sizes")
            )[0]
            .is_nan()
        );
    }
    let short = PackedMatrix::new(
        &[1.0f32; 33],
        33,
        1,
        WeightOrder::OutputsFirst,
        WeightKind::Blocks(BlockKind::Q8_0),
    );
    assert!(short.is_err());
    assert!(PackedMatrix::from_blocks(BlockKind::Q8_0, &[0; 33], 32, 1).is_err());
}
