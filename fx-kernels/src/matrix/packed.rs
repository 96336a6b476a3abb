//! The weight of a linear layer, laid out once in panels of 32 columns that the kernels read from
//! front to back.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use pulp::Simd;
use pulp::bytemuck::cast_slice_mut;

use super::block_kind::{Block, BlockKind};
use super::blocks::Blocks;
use super::panels::Panels;
use super::tile::{Columns, PANEL};
use super::words::{
    PairWords, pair_words, panels, widen_bf16, widen_f16, widen_i8, words, words_mut,
};
use crate::convert::Element;
use crate::error::{SizeError, check};
use crate::terms::Pairs;
use crate::{Buffer, Level};

/// How the numbers of a [`PackedMatrix`] are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WeightKind {
    /// 32-bit floats.
    #[default]
    F32,
    /// The upper half of a 32-bit float, rounded to nearest, ties to even.
    Bf16,
    /// Floats of 16 bits with 5 bits of exponent, rounded to nearest, ties to even.
    F16,
    /// Integers from -127 to 127 and one scale for each output.
    I8,
    /// Integers of a few bits, with scales for groups of 16 or 32 inputs.
    Blocks(BlockKind),
}

/// The order of the numbers that a [`PackedMatrix`] is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightOrder {
    /// `[outputs, inputs]`, as PyTorch's `Linear` has it.
    #[default]
    OutputsFirst,
    /// `[inputs, outputs]`, as GPT-2's `Conv1D` has it.
    InputsFirst,
}

#[derive(Debug, Clone)]
pub(crate) enum Store {
    /// A row of 32 columns for a step of K and a panel.
    F32(Buffer),
    /// A row of 32 words for two steps of K and a panel. A word holds both steps of a column, the first in its low half.
    Bf16(Buffer),
    /// The same of f16.
    F16(Buffer),
    /// A line for two steps of K and a panel. From low to high, a word holds column i and column
    /// 16 + i of the first step, then both of the second; 128 is added to each.
    I8 {
        lines: Buffer,
        scales: Vec<f32>,
    },
    Blocks(Blocks),
}

/// A matrix of weights that [`linear`](super::linear) multiplies by: packed once, used often.
///
/// ```
/// use fx_kernels::matrix::{PackedMatrix, WeightKind, WeightOrder};
///
/// // Two outputs of three inputs.
/// let weight = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let packed = PackedMatrix::new(&weight, 3, 2, WeightOrder::OutputsFirst, WeightKind::F32)?;
/// assert_eq!((packed.inputs(), packed.outputs()), (3, 2));
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PackedMatrix {
    inputs: usize,
    outputs: usize,
    pub(crate) store: Store,
    /// Whether rows are rounded to bf16, where the weight is bf16.
    rounds: bool,
}

/// A float as the nearest bf16, ties to even. NaN stays NaN.
pub fn to_bf16(x: f32) -> u16 {
    bf16::from_f32(x).to_bits()
}

/// A bf16 as a float.
pub fn from_bf16(x: u16) -> f32 {
    bf16::from_bits(x).to_f32()
}

/// A row of numbers as integers from -127 to 127, and the scale that turns them back: the largest
/// absolute value over 127. A row that is not finite has a scale that is not finite.
fn quantized(row: &[f32], out: &mut [i8]) -> f32 {
    let mut largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    if row.iter().any(|x| x.is_nan()) {
        largest = f32::NAN;
    }
    let scale = largest / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (out, x) in out.iter_mut().zip(row) {
        *out = (x * inverse).round_ties_even().clamp(-127.0, 127.0) as i8;
    }
    scale
}

impl PackedMatrix {
    /// Packs `inputs * outputs` elements. Those that `kind` has itself are stored as they are.
    ///
    /// For [`WeightKind::I8`] each output is rounded to 255 symmetric steps of its own scale, and for
    /// [`WeightKind::Blocks`] each block by its own scales.
    ///
    /// # Errors
    ///
    /// Where `weight` has another length, or a row is no number of whole blocks.
    pub fn new<T: Element>(
        weight: &[T],
        inputs: usize,
        outputs: usize,
        order: WeightOrder,
        kind: WeightKind,
    ) -> Result<PackedMatrix, SizeError> {
        check("the weight", inputs * outputs, weight.len())?;
        let read = |n: usize, row: &mut [f32]| match order {
            WeightOrder::OutputsFirst => T::widen(&weight[n * inputs..][..inputs], row),
            WeightOrder::InputsFirst => {
                for (k, x) in row.iter_mut().enumerate() {
                    *x = weight[k * outputs + n].to_f32();
                }
            }
        };
        let of_panel = |panel: usize| panel * PANEL..outputs.min((panel + 1) * PANEL);
        let store = match kind {
            WeightKind::F32 => Store::F32(panels(outputs, inputs * PANEL, |panel, out| {
                let mut row = vec![0.0; inputs];
                for n in of_panel(panel) {
                    read(n, &mut row);
                    let columns = out[n % PANEL..].iter_mut().step_by(PANEL);
                    columns.zip(&row).for_each(|(out, x)| *out = *x);
                }
            })),
            WeightKind::Bf16 => Store::Bf16(halves::<bf16>(inputs, outputs, read)),
            WeightKind::F16 => Store::F16(halves::<f16>(inputs, outputs, read)),
            WeightKind::I8 => {
                let mut values = vec![0; inputs * outputs];
                let mut scales = vec![0.0; outputs];
                let mut row = vec![0.0; inputs];
                for (n, scale) in scales.iter_mut().enumerate() {
                    read(n, &mut row);
                    *scale = quantized(&row, &mut values[n * inputs..][..inputs]);
                }
                return PackedMatrix::from_i8(&values, scales, inputs, outputs);
            }
            WeightKind::Blocks(kind) => {
                let size = kind.block_size();
                check("the last block of a row", 0, inputs % size)?;
                Store::Blocks(Blocks::new(kind, inputs, outputs, |n, k| {
                    let mut floats = vec![0.0; size];
                    match order {
                        WeightOrder::OutputsFirst => {
                            T::widen(&weight[n * inputs + k..][..size], &mut floats);
                        }
                        WeightOrder::InputsFirst => {
                            for (k, x) in (k..).zip(&mut floats) {
                                *x = weight[k * outputs + n].to_f32();
                            }
                        }
                    }
                    Block::of_floats(kind, &floats)
                }))
            }
        };
        Ok(PackedMatrix::of(inputs, outputs, store))
    }

    /// Packs integers `[outputs, inputs]` of which row n stands for `scales[n] * row`.
    ///
    /// # Errors
    ///
    /// Where `values` is not `outputs * inputs` long or `scales` not `outputs`.
    pub fn from_i8(
        values: &[i8],
        scales: Vec<f32>,
        inputs: usize,
        outputs: usize,
    ) -> Result<PackedMatrix, SizeError> {
        check("the weight", inputs * outputs, values.len())?;
        check("the list of scales", outputs, scales.len())?;
        let pairs = inputs.div_ceil(2);
        let mut buffer = Buffer::zeros(outputs.div_ceil(PANEL) * pairs * 16);
        let lines = words_mut(&mut buffer);
        lines.fill([0x8080_8080; 16]);
        for n in 0..outputs {
            let half = if n % PANEL < 16 { 0 } else { 8 };
            for k in 0..inputs {
                let shift = half + k % 2 * 16;
                let byte = u32::from(values[n * inputs + k] as u8 ^ 0x80);
                let word = &mut lines[n / PANEL * pairs + k / 2][n % 16];
                *word = *word & !(0xff << shift) | byte << shift;
            }
        }
        let lines = buffer;
        Ok(PackedMatrix::of(
            inputs,
            outputs,
            Store::I8 { lines, scales },
        ))
    }

    /// Packs `outputs` rows of the blocks of a GGUF file, with their numbers as they are.
    ///
    /// # Errors
    ///
    /// Where a row is no number of whole blocks, or there are more or fewer bytes.
    ///
    /// ```
    /// use fx_kernels::matrix::{BlockKind, Finish, PackedMatrix, linear};
    /// use fx_kernels::Level;
    ///
    /// // The scale 0.5, then 32 nibbles, of which 8 is zero.
    /// let mut row = vec![0x00, 0x38];
    /// row.extend([0x9a; 16]);
    /// let packed = PackedMatrix::from_blocks(BlockKind::Q4_0, &row, 32, 1)?;
    /// let mut out = [0.0];
    /// linear(Level::best(), 1, &[127.0; 32], &packed, Finish::default(), &mut out)?;
    /// assert_eq!(out, [127.0 * 16.0 * 0.5 * (2.0 + 1.0)]);
    /// # Ok::<(), fx_kernels::SizeError>(())
    /// ```
    pub fn from_blocks(
        kind: BlockKind,
        bytes: &[u8],
        inputs: usize,
        outputs: usize,
    ) -> Result<PackedMatrix, SizeError> {
        let (size, width) = (kind.block_size(), kind.block_bytes());
        check("the last block of a row", 0, inputs % size)?;
        let row = inputs / size;
        check(
            "the bytes of the weight",
            outputs * row * width,
            bytes.len(),
        )?;
        let read = |n: usize, k: usize| {
            Block::of_bytes(kind, &bytes[(n * row + k / size) * width..][..width])
        };
        let store = Store::Blocks(Blocks::new(kind, inputs, outputs, read));
        Ok(PackedMatrix::of(inputs, outputs, store))
    }

    fn of(inputs: usize, outputs: usize, store: Store) -> PackedMatrix {
        PackedMatrix {
            inputs,
            outputs,
            store,
            rounds: false,
        }
    }

    /// The length of a row of the left operand.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The length of a row of the result.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Asks for products in bf16: [`linear`](super::linear) rounds rows to bf16 as well, where the weight is
    /// [`WeightKind::Bf16`] and the processor multiplies pairs of bf16 (AVX-512 BF16), which takes about half of the time.
    /// Sums stay in `f32`. Elsewhere rows stay as they are.
    ///
    /// ```
    /// use fx_kernels::Level;
    /// use fx_kernels::matrix::{Finish, PackedMatrix, WeightKind, WeightOrder, linear};
    ///
    /// let weight = PackedMatrix::new(&[1.0, 0.5], 2, 1, WeightOrder::OutputsFirst, WeightKind::Bf16)?.round_rows();
    /// let (level, x, mut out) = (Level::best(), [1.0 + 1.0 / 512.0, 4.0], [0.0]);
    /// linear(level, 1, &x, &weight, Finish::default(), &mut out)?;
    /// let expected = if weight.rounds_rows(level) { 3.0 } else { 3.0 + 1.0 / 512.0 };
    /// assert_eq!(out, [expected]);
    /// # Ok::<(), fx_kernels::SizeError>(())
    /// ```
    #[must_use]
    pub fn round_rows(mut self) -> PackedMatrix {
        self.rounds = true;
        self
    }

    /// How the numbers are stored.
    pub fn kind(&self) -> WeightKind {
        match &self.store {
            Store::F32(_) => WeightKind::F32,
            Store::Bf16(_) => WeightKind::Bf16,
            Store::F16(_) => WeightKind::F16,
            Store::I8 { .. } => WeightKind::I8,
            Store::Blocks(blocks) => WeightKind::Blocks(blocks.kind),
        }
    }

    /// Whether [`linear`](super::linear) rounds rows at a level on this machine: to bytes where the weight is in blocks, to
    /// bf16 where [`PackedMatrix::round_rows`] asked for it.
    pub fn rounds_rows(&self, level: Level) -> bool {
        if let Store::Bf16(_) = self.store {
            return self.rounds && Pairs::of(level).is_some();
        }
        #[cfg(target_arch = "x86_64")]
        let has_dots = fx_simd::Vnni::try_new().is_some();
        #[cfg(not(target_arch = "x86_64"))]
        let has_dots = false;
        matches!(self.store, Store::Blocks(_)) && level == Level::Avx512 && has_dots
    }

    /// The bytes of the packed numbers.
    pub fn bytes(&self) -> usize {
        match &self.store {
            Store::F32(floats) => floats.len() * 4,
            Store::Bf16(lines) | Store::F16(lines) => lines.len() * 4,
            Store::I8 { lines, scales } => (lines.len() + scales.len()) * 4,
            Store::Blocks(blocks) => blocks.bytes(),
        }
    }

    /// What each column is multiplied by after the product.
    pub(crate) fn scales(&self) -> Option<&[f32]> {
        match &self.store {
            Store::I8 { scales, .. } => Some(scales),
            _ => None,
        }
    }
}

/// Lines of numbers of 16 bits: a word holds two steps of K of a column.
fn halves<H>(inputs: usize, outputs: usize, read: impl Fn(usize, &mut [f32]) + Sync) -> Buffer
where
    H: Element + Default,
    [H]: HalfFloatSliceExt,
{
    panels(outputs, inputs.div_ceil(2) * PANEL, |panel, out| {
        let mut row = vec![0.0; inputs];
        let mut narrow = vec![H::default(); inputs];
        let lines: &mut [PairWords] = cast_slice_mut::<f32, u32>(out).as_chunks_mut().0;
        for n in panel * PANEL..outputs.min((panel + 1) * PANEL) {
            read(n, &mut row);
            H::narrow(&row, &mut narrow);
            for (line, bits) in lines.iter_mut().zip(narrow.reinterpret_cast().chunks(2)) {
                let second = bits.get(1).copied().unwrap_or_default();
                line[n % PANEL] = u32::from(bits[0]) | u32::from(second) << 16;
            }
        }
    })
}

impl Panels for PackedMatrix {
    fn is_ready(&self) -> bool {
        matches!(self.store, Store::F32(_))
    }

    #[inline(always)]
    fn block<'a, S: Simd>(
        &'a self,
        simd: S,
        panel: usize,
        k: usize,
        space: &'a mut [Columns],
    ) -> &'a [Columns] {
        let depth = space.len();
        let lanes = S::F32_LANES;
        let put = |out: &mut Columns, at: usize, [low, high]: [S::f32s; 2]| {
            crate::vector::store(simd, out, at, low);
            crate::vector::store(simd, out, at + 16, high);
        };
        macro_rules! halves {
            ($lines:expr, $widen:path) => {
                let pairs = self.inputs.div_ceil(2);
                let lines = &pair_words($lines)[panel * pairs + k / 2..][..depth.div_ceil(2)];
                for (out, line) in space.chunks_mut(2).zip(lines) {
                    for at in (0..PANEL).step_by(lanes) {
                        for (out, step) in out.iter_mut().zip($widen(simd, line, at)) {
                            crate::vector::store(simd, out, at, step);
                        }
                    }
                }
            };
        }
        match &self.store {
            Store::F32(floats) => {
                return &floats.as_chunks::<PANEL>().0[panel * self.inputs + k..][..depth];
            }
            Store::Bf16(lines) => {
                halves!(lines, widen_bf16);
            }
            Store::F16(lines) => {
                halves!(lines, widen_f16);
            }
            Store::Blocks(blocks) => blocks.widen(simd, panel, k, space),
            Store::I8 { lines, .. } => {
                let pairs = self.inputs.div_ceil(2);
                let lines = &words(lines)[panel * pairs + k / 2..][..depth.div_ceil(2)];
                for (out, line) in space.chunks_mut(2).zip(lines) {
                    for at in (0..16).step_by(lanes) {
                        for (out, pair) in out.iter_mut().zip(widen_i8(simd, line, at)) {
                            put(out, at, pair);
                        }
                    }
                }
            }
        }
        space
    }
}
