//! `closure` without `std` and without an allocator, as fx wrote it.

#![no_std]
#![forbid(unsafe_code)]

use fx_static::{Aligned, Join, Kernel, Recurrent, Unit, floats, rows_at, split};

/// The floats of an [`Arena`].
pub const ARENA: usize = 156;

/// The floats of the weights.
pub const WEIGHTS: usize = 457;

static BYTES: &Aligned<[u8; 4 * WEIGHTS]> = &Aligned(*include_bytes!("weights.bin"));

#[cfg(target_endian = "big")]
compile_error!("the weights are little-endian floats");

/// What a run takes; the last dim lies in order.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[3, 2]`.
    pub tokens: &'a [i64; 6],
}

/// What a run gives: it lies in the arena.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// `[3, 2, 2]`.
    pub output_0: &'a [f32; 12],
    /// `[1, 2, 2]`.
    pub output_1: &'a [f32; 4],
}

/// The memory of a run.
#[derive(Debug, Clone)]
pub struct Arena {
    floats: [f32; ARENA],
}

impl Arena {
    /// Zeros: a `static` of it is no part of the program's file.
    pub const fn new() -> Self {
        Arena { floats: [0.0; ARENA] }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

/// Runs the model.
///
/// # Errors
/// Returns an error for an index that a table does not have.
pub fn run<'a>(inputs: &Inputs<'_>, arena: &'a mut Arena) -> Result<Outputs<'a>, fx_static::IndexError> {
    let weights = floats(BYTES);
    let arena = &mut arena.floats[..];
    // embedding
    let (_, out, _) = split(arena, 108..132);
    rows_at(4, &inputs.tokens[..], &weights[0..28], out)?;
    // lstm
    let (_, out, high) = split(arena, 0..54);
    Recurrent { unit: Unit::Lstm, time: 3, batch: 2, inputs: 4, hidden: 3, is_reverse: false, has_biases: true, is_given: [false, false] }
        .run(&[&high[54..78], &weights[28..76], &weights[76..112], &weights[112..124], &weights[124..136]], out);
    // lstm
    let (_, out, high) = split(arena, 54..108);
    Recurrent { unit: Unit::Lstm, time: 3, batch: 2, inputs: 4, hidden: 3, is_reverse: true, has_biases: true, is_given: [false, false] }
        .run(&[&high[0..24], &weights[136..184], &weights[184..220], &weights[220..232], &weights[232..244]], out);
    // lstm
    let (low, out, _) = split(arena, 108..144);
    Join { outer: 6 }
        .run(&[&low[0..18], &low[54..72]], out);
    // lstm
    let (low, out, _) = split(arena, 144..156);
    Join { outer: 1 }
        .run(&[&low[18..24], &low[72..78]], out);
    // lstm
    let (low, out, _) = split(arena, 144..156);
    Join { outer: 1 }
        .run(&[&low[24..30], &low[78..84]], out);
    // gru
    let (_, out, high) = split(arena, 0..70);
    Recurrent { unit: Unit::Gru, time: 3, batch: 2, inputs: 6, hidden: 5, is_reverse: false, has_biases: true, is_given: [false, false] }
        .run(&[&high[38..74], &weights[244..334], &weights[334..409], &weights[409..424], &weights[424..439]], out);
    // rnn_tanh
    let (low, out, _) = split(arena, 70..90);
    Recurrent { unit: Unit::Tanh, time: 3, batch: 2, inputs: 5, hidden: 2, is_reverse: false, has_biases: true, is_given: [false, false] }
        .run(&[&low[0..30], &weights[439..449], &weights[449..453], &weights[453..455], &weights[455..457]], out);
    Ok(Outputs {
        output_0: arena[70..82].first_chunk().expect("the arena has it"),
        output_1: arena[82..86].first_chunk().expect("the arena has it"),
    })
}
