//! Blocks of integers as panels: the layout in memory, and how codes and scales become floats.
//!
//! Invariant: what is read is what the block says, to the bit. A panel is pieces of [`PIECE`] inputs; a piece is the lines of
//! all its scales, then the lines of its codes.

use pulp::Simd;
use pulp::bytemuck::cast_slice_mut;

use super::block_kind::{Block, BlockKind, CHUNK, Scaling};
use super::tile::{Columns, PANEL};
use super::words::{Words, byte, panels, widen_f16, words};
use crate::Buffer;
use crate::vector::{load, store};

/// The inputs of a piece.
pub(crate) const PIECE: usize = 512;

/// The chunks of a piece.
pub(crate) const CHUNKS: usize = PIECE / CHUNK;

/// The chunks of a long block.
const LONG: usize = 8;

/// The floats of a chunk of a panel: what codes are times in its first half, and in its second; what is added.
pub(crate) type Scales = [f32; 3 * PANEL];

/// The most panels that a row is multiplied by at once: several come from memory faster than one.
pub(crate) const TOGETHER: usize = 4;

/// The floats of the scales of a piece of so many panels.
pub(crate) const SCALES: usize = TOGETHER * CHUNKS * 3 * PANEL;

/// Weights in blocks, as panels.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    pub kind: BlockKind,
    inputs: usize,
    lines: Buffer,
}

/// The lines of a piece of a panel.
pub(crate) struct Piece<'a> {
    pub scales: &'a [Words],
    pub codes: &'a [Words],
}

impl BlockKind {
    /// The lines of the scales of some chunks.
    fn scale_lines(self, chunks: usize) -> usize {
        match self.scaling() {
            Scaling::Scale => chunks,
            Scaling::ScaleAndMin => 2 * chunks,
            Scaling::Chunks => chunks / LONG * (LONG + 2),
            Scaling::Halves => chunks / LONG * (LONG + 1),
        }
    }

    /// The lines of the codes of a chunk.
    pub(crate) fn code_lines(self) -> usize {
        match self.has_nibbles() {
            true => Nibbles::LINES,
            false => Bytes::LINES,
        }
    }

    fn lines(self, chunks: usize) -> usize {
        self.scale_lines(chunks) + chunks * self.code_lines()
    }
}

impl Blocks {
    /// Packs the blocks that `read` gives: of an output, from an input on. `inputs` is a multiple of a block's.
    pub(crate) fn new(
        kind: BlockKind,
        inputs: usize,
        outputs: usize,
        read: impl Fn(usize, usize) -> Block + Sync,
    ) -> Blocks {
        let chunks = inputs / CHUNK;
        let lines = chunks / CHUNKS * kind.lines(CHUNKS) + kind.lines(chunks % CHUNKS);
        let lines = panels(outputs, lines * 16, |panel, out| {
            let out: &mut [Words] = cast_slice_mut::<f32, u32>(out).as_chunks_mut().0;
            for n in panel * PANEL..outputs.min((panel + 1) * PANEL) {
                for k in (0..inputs).step_by(kind.block_size()) {
                    let chunks = (inputs / CHUNK - k / PIECE * CHUNKS).min(CHUNKS);
                    let piece = &mut out[k / PIECE * kind.lines(CHUNKS)..];
                    let (scales, codes) = piece.split_at_mut(kind.scale_lines(chunks));
                    let block = read(n, k);
                    let column = n % PANEL;
                    put_scales(kind, &block, k % PIECE / CHUNK, column, scales);
                    let first = k % PIECE / CHUNK * kind.code_lines();
                    put_codes(kind, &block, column, &mut codes[first..]);
                }
            }
        });
        Blocks {
            kind,
            inputs,
            lines,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * 4
    }

    /// The lines of the piece of a panel with the input `k`, and the number of its chunks.
    #[inline(always)]
    pub(crate) fn lines_of(&self, panel: usize, k: usize) -> (&[Words], usize) {
        let chunks = self.inputs / CHUNK;
        let (whole, rest) = (chunks / CHUNKS, chunks % CHUNKS);
        let all = whole * self.kind.lines(CHUNKS) + self.kind.lines(rest);
        let chunks = if k / PIECE < whole { CHUNKS } else { rest };
        let start = panel * all + k / PIECE * self.kind.lines(CHUNKS);
        let lines = &words(&self.lines)[start..][..self.kind.lines(chunks)];
        (lines, chunks)
    }

    /// The piece of a panel with the input `k`.
    #[inline(always)]
    pub(crate) fn piece(&self, panel: usize, k: usize) -> Piece<'_> {
        let (lines, chunks) = self.lines_of(panel, k);
        let (scales, codes) = lines.split_at(self.kind.scale_lines(chunks));
        Piece { scales, codes }
    }

    /// Writes the rows from `k` on of a panel, a multiple of a chunk.
    #[inline(always)]
    pub(crate) fn widen<S: Simd>(&self, simd: S, panel: usize, k: usize, space: &mut [Columns]) {
        match self.kind.has_nibbles() {
            true => self.widen_codes::<S, Nibbles>(simd, panel, k, space),
            false => self.widen_codes::<S, Bytes>(simd, panel, k, space),
        }
    }

    #[inline(always)]
    fn widen_codes<S: Simd, C: Codes>(
        &self,
        simd: S,
        panel: usize,
        k: usize,
        space: &mut [Columns],
    ) {
        let mut scales = [0.0; 3 * PANEL];
        let unit = simd.splat_f32s(C::UNIT);
        let zero = simd.splat_f32s(-C::UNIT - f32::from(self.kind.zero()));
        for (k, out) in (k..).step_by(CHUNK).zip(space.chunks_mut(CHUNK)) {
            let piece = self.piece(panel, k);
            let chunk = k % PIECE / CHUNK;
            scales_of(simd, self.kind, piece.scales, chunk, 1.0, &mut scales);
            let lines = &piece.codes[chunk * C::LINES..][..C::LINES];
            for (step, out) in out.iter_mut().enumerate() {
                let lines = &lines[step / STEPS * C::WIDE..][..C::WIDE];
                let half = step / (CHUNK / 2) * PANEL;
                for at in (0..16).step_by(S::F32_LANES) {
                    let [low, high] = C::pair(simd, lines, at, step % STEPS);
                    for (at, code) in [(at, low), (16 + at, high)] {
                        let q = simd.mul_add_f32s(code, unit, zero);
                        let scale = load(simd, &scales, half + at);
                        let shift = load(simd, &scales, 2 * PANEL + at);
                        store(simd, out, at, simd.mul_add_f32s(q, scale, shift));
                    }
                }
            }
        }
    }
}

/// Writes the scales of a block from `chunk` of its piece on.
fn put_scales(kind: BlockKind, block: &Block, chunk: usize, column: usize, lines: &mut [Words]) {
    let (word, is_high) = (column % 16, column / 16);
    let mut half = |line: usize, x: half::f16| {
        lines[line][word] |= u32::from(x.to_bits()) << (16 * is_high);
    };
    match kind.scaling() {
        Scaling::Scale => half(chunk, block.scale),
        Scaling::ScaleAndMin => {
            half(2 * chunk, block.scale);
            half(2 * chunk + 1, block.min);
        }
        Scaling::Chunks => {
            let start = chunk / LONG * (LONG + 2);
            half(start, block.scale);
            half(start + 1, block.min);
            for (at, (scale, min)) in block.scales.iter().zip(block.mins).enumerate() {
                let both = u32::from(*scale) | u32::from(min) << 16;
                lines[start + 2 + at][word] |= both << (8 * is_high);
            }
        }
        Scaling::Halves => {
            let start = chunk / LONG * (LONG + 1);
            half(start, block.scale);
            for (at, [first, second]) in block.scales.as_chunks().0.iter().enumerate() {
                let both = u32::from(*first) | u32::from(*second) << 16;
                lines[start + 1 + at][word] |= both << (8 * is_high);
            }
        }
    }
}

/// Writes the codes of a block.
fn put_codes(kind: BlockKind, block: &Block, column: usize, lines: &mut [Words]) {
    let half = column / 16;
    for (k, code) in block.codes[..kind.block_size()].iter().enumerate() {
        let (line, shift) = match kind.has_nibbles() {
            true => (k / STEPS, 8 * (k % STEPS) + 4 * half),
            false => (k / STEPS * 2 + half, 8 * (k % STEPS)),
        };
        lines[line][column % 16] |= u32::from(*code) << shift;
    }
}

/// What the codes of a chunk are times, and that times `unit`; what is added.
#[inline(always)]
pub(crate) fn scales_of<S: Simd>(
    simd: S,
    kind: BlockKind,
    lines: &[Words],
    chunk: usize,
    unit: f32,
    out: &mut Scales,
) {
    let unit = simd.splat_f32s(unit);
    let zero = simd.splat_f32s(0.0);
    // What is compiled into this function has no closures: they would be compiled without the instructions of the level.
    macro_rules! times {
        ($a:expr, $b:expr) => {{
            let (a, b): ([S::f32s; 2], [S::f32s; 2]) = ($a, $b);
            [simd.mul_f32s(a[0], b[0]), simd.mul_f32s(a[1], b[1])]
        }};
    }
    for at in (0..16).step_by(S::F32_LANES) {
        // The bytes of column i and of 16 + i from a bit on, as floats less 128.
        macro_rules! bytes {
            ($line:expr, $shift:literal) => {{
                let words = S::as_simd_u32s(&lines[$line][at..]).0[0];
                let low = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s($shift));
                let high = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s($shift + 8));
                [byte(simd, low), byte(simd, high)]
            }};
        }
        macro_rules! from_zero {
            ($pair:expr) => {{
                let [low, high] = $pair;
                let offset = simd.splat_f32s(128.0);
                [simd.add_f32s(low, offset), simd.add_f32s(high, offset)]
            }};
        }
        let [first, second, min] = match kind.scaling() {
            Scaling::Scale => {
                let scale = widen_f16(simd, &lines[chunk], at);
                [scale, scale, [zero; 2]]
            }
            Scaling::ScaleAndMin => {
                let scale = widen_f16(simd, &lines[2 * chunk], at);
                [scale, scale, widen_f16(simd, &lines[2 * chunk + 1], at)]
            }
            Scaling::Chunks => {
                let start = chunk / LONG * (LONG + 2);
                let line = start + 2 + chunk % LONG;
                let scale = widen_f16(simd, &lines[start], at);
                let min = widen_f16(simd, &lines[start + 1], at);
                let scale = times!(scale, from_zero!(bytes!(line, 0)));
                [scale, scale, times!(min, from_zero!(bytes!(line, 16)))]
            }
            Scaling::Halves => {
                let start = chunk / LONG * (LONG + 1);
                let line = start + 1 + chunk % LONG;
                let scale = widen_f16(simd, &lines[start], at);
                [
                    times!(scale, bytes!(line, 0)),
                    times!(scale, bytes!(line, 16)),
                    [zero; 2],
                ]
            }
        };
        let first = times!(first, [unit; 2]);
        let second = times!(second, [unit; 2]);
        let shift = [simd.neg_f32s(min[0]), simd.neg_f32s(min[1])];
        store(simd, out, at, first[0]);
        store(simd, out, 16 + at, first[1]);
        store(simd, out, PANEL + at, second[0]);
        store(simd, out, PANEL + 16 + at, second[1]);
        store(simd, out, 2 * PANEL + at, shift[0]);
        store(simd, out, 2 * PANEL + 16 + at, shift[1]);
    }
}

/// The steps of K whose codes lie in one word.
pub(crate) const STEPS: usize = 4;

/// Codes in words, and how they become floats.
pub(crate) trait Codes: Copy {
    /// The lines of [`STEPS`] steps.
    const WIDE: usize;
    /// The inputs that are summed before the sum is times a scale.
    const GROUP: usize;
    /// The lines of a chunk.
    const LINES: usize = CHUNK / STEPS * Self::WIDE;
    /// A code is read as `1 + code / UNIT`: bits that are put into a float.
    const UNIT: f32;

    /// Columns `at..` and `16 + at..` of a step.
    fn pair<S: Simd>(simd: S, lines: &[Words], at: usize, step: usize) -> [S::f32s; 2];
}

/// A line for each four steps: byte s of a word has the codes of step s, of column i (low) and 16 + i.
#[derive(Clone, Copy)]
pub(crate) struct Nibbles;

/// Two lines for each four steps, of columns i and of columns 16 + i: byte s of a word is the code of step s.
#[derive(Clone, Copy)]
pub(crate) struct Bytes;

/// The `bits` bits of each word from `from` on, as `1 + code / 2^bits`.
#[inline(always)]
fn fraction<S: Simd>(simd: S, line: &Words, at: usize, from: u32, bits: u32) -> S::f32s {
    let words = S::as_simd_u32s(&line[at..]).0[0];
    let to = 23 - bits;
    let moved = match from < to {
        true => simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(to - from)),
        false => simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(from - to)),
    };
    let code = simd.and_u32s(moved, simd.splat_u32s(((1 << bits) - 1) << to));
    let one = simd.splat_u32s(1f32.to_bits());
    simd.transmute_f32s_u32s(simd.or_u32s(code, one))
}

impl Codes for Nibbles {
    const WIDE: usize = 1;
    const GROUP: usize = CHUNK;
    const UNIT: f32 = 16.0;

    #[inline(always)]
    fn pair<S: Simd>(simd: S, lines: &[Words], at: usize, step: usize) -> [S::f32s; 2] {
        let from = 8 * step as u32;
        [
            fraction(simd, &lines[0], at, from, 4),
            fraction(simd, &lines[0], at, from + 4, 4),
        ]
    }
}

impl Codes for Bytes {
    const WIDE: usize = 2;
    const GROUP: usize = CHUNK / 2;
    const UNIT: f32 = 256.0;

    #[inline(always)]
    fn pair<S: Simd>(simd: S, lines: &[Words], at: usize, step: usize) -> [S::f32s; 2] {
        let from = 8 * step as u32;
        [
            fraction(simd, &lines[0], at, from, 8),
            fraction(simd, &lines[1], at, from, 8),
        ]
    }
}
