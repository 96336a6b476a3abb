//! Runs a tape over blocks: reads operands with strides, hands tasks to threads.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::program::{Source, Tape};
use super::steps::{Argument, step};
use crate::Level;
use crate::error::{SizeError, check};
use crate::scratch::lend;
use crate::transpose::span;

/// The floats of a block: a dozen of them fit in the first level of the cache.
const BLOCK: usize = 1024;

/// The blocks of a task.
const TOGETHER: usize = 16;

/// The floats that are handed on at once: two lines of the cache.
const LINE: usize = 32;

/// A block that a thread computed last, and its number.
struct Held {
    block: [f32; BLOCK],
    number: Option<usize>,
}

impl Default for Held {
    fn default() -> Held {
        Held {
            block: [0.0; BLOCK],
            number: None,
        }
    }
}

/// An input of a tape: float `[i, j, ..]` is `data[start + i * strides[0] + j * strides[1] + ..]`.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// The floats.
    pub data: &'a [f32],
    /// Where the first one is.
    pub start: usize,
    /// The floats from an entry to the next, for each dimension; 0 where it is broadcast.
    pub strides: &'a [usize],
}

impl<'a> Operand<'a> {
    /// An operand that starts with its slice.
    pub fn full(data: &'a [f32], strides: &'a [usize]) -> Operand<'a> {
        Operand {
            data,
            start: 0,
            strides,
        }
    }
}

/// The sizes of all operands and each operand's strides, neighbouring dimensions joined where all
/// operands can be read so.
struct Shape {
    sizes: Vec<usize>,
    /// For each operand.
    strides: Vec<Vec<usize>>,
    /// The operand that the output holds before it is written.
    own: Option<usize>,
}

impl Shape {
    fn new(sizes: &[usize], operands: &[Operand<'_>], own: Option<usize>) -> Shape {
        let mut shape = Shape {
            sizes: Vec::new(),
            strides: vec![Vec::new(); operands.len()],
            own,
        };
        for (d, &size) in sizes.iter().enumerate() {
            if size == 1 {
                continue;
            }
            let joins = !shape.sizes.is_empty()
                && operands
                    .iter()
                    .zip(&shape.strides)
                    .all(|(operand, strides)| strides.last() == Some(&(operand.strides[d] * size)));
            if joins {
                if let Some(last) = shape.sizes.last_mut() {
                    *last *= size;
                }
            } else {
                shape.sizes.push(size);
            }
            for (operand, strides) in operands.iter().zip(&mut shape.strides) {
                if joins {
                    strides.pop();
                }
                strides.push(operand.strides[d]);
            }
        }
        shape
    }

    /// Whether an operand is a plain slice that nothing writes.
    fn is_plain(&self, operand: usize) -> bool {
        matches!(self.strides[operand][..], [] | [1]) && self.own != Some(operand)
    }

    /// Copies the entries of an operand from number `from` on.
    #[inline(always)]
    fn read(&self, operand: usize, data: &[f32], from: usize, out: &mut [f32]) {
        let Some((&inner, outer)) = self.sizes.split_last() else {
            return;
        };
        let strides = &self.strides[operand];
        let stride = strides.last().copied().unwrap_or(0);
        let (mut place, mut done) = (from, 0);
        while done < out.len() {
            let (mut rest, column) = (place / inner, place % inner);
            let mut at = column * stride;
            for (size, stride) in outer.iter().zip(strides).rev() {
                at += rest % size * stride;
                rest /= size;
            }
            let len = (inner - column).min(out.len() - done);
            let part = &mut out[done..done + len];
            match stride {
                0 => part.fill(data[at]),
                1 => part.copy_from_slice(&data[at..at + len]),
                _ => part
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, x)| *x = data[at + i * stride]),
            }
            place += len;
            done += len;
        }
    }
}

/// Parts of registers and outputs.
type Blocks<'o> = SmallVec<[&'o mut [f32]; 8]>;

/// Some blocks.
struct Job<'a, 'o> {
    tape: &'a Tape,
    shape: &'a Shape,
    operands: &'a [Operand<'a>],
    /// The number of the first float.
    first: usize,
    /// A part of each output.
    outputs: Blocks<'o>,
    /// A block for each register, then one for each operand that is no plain slice.
    space: &'a mut [f32],
}

impl WithSimd for Job<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Job {
            tape,
            shape,
            operands,
            first,
            mut outputs,
            space,
        } = self;
        let len = outputs.first().map_or(0, |out| out.len());
        let (registers, gathered) = space.split_at_mut(tape.registers * BLOCK);
        for from in (0..len).step_by(BLOCK) {
            let size = BLOCK.min(len - from);
            for (i, (block, operand)) in gathered.chunks_exact_mut(BLOCK).zip(operands).enumerate()
            {
                if shape.own == Some(i) {
                    block[..size].copy_from_slice(&outputs[0][from..from + size]);
                } else if !shape.is_plain(i) {
                    shape.read(
                        i,
                        &operand.data[operand.start..],
                        first + from,
                        &mut block[..size],
                    );
                }
            }
            let mut blocks: Blocks<'_> = registers
                .chunks_exact_mut(BLOCK)
                .map(|block| &mut block[..size])
                .chain(outputs.iter_mut().map(|out| &mut out[from..from + size]))
                .collect();
            for each in &tape.steps {
                // A step does not read what it writes.
                let out = std::mem::take(&mut blocks[each.to]);
                let argument = |source: &Source| match *source {
                    Source::Register(r) => Argument::Block(&*blocks[r]),
                    Source::Constant(x) => Argument::Number(x),
                    Source::Input(i) if shape.is_plain(i) => {
                        let at = operands[i].start + first + from;
                        Argument::Block(&operands[i].data[at..at + size])
                    }
                    Source::Input(i) => Argument::Block(&gathered[i * BLOCK..][..size]),
                };
                step(simd, &each.code, each.relu, argument, out);
                blocks[each.to] = out;
            }
        }
    }
}

/// A run of a tape: what it reads, and as which sizes.
struct Run<'a> {
    tape: &'a Tape,
    level: Level,
    shape: Shape,
    operands: &'a [Operand<'a>],
    /// The floats of each output.
    len: usize,
}

impl<'a> Run<'a> {
    fn new(
        tape: &'a Tape,
        level: Level,
        sizes: &[usize],
        operands: &'a [Operand<'a>],
        own: Option<usize>,
    ) -> Result<Run<'a>, SizeError> {
        check("the list of operands", tape.inputs, operands.len())?;
        for (i, operand) in operands.iter().enumerate() {
            check("the list of strides", sizes.len(), operand.strides.len())?;
            if own == Some(i) {
                continue;
            }
            let span = span(operand.start, sizes, operand.strides);
            check(
                "an operand",
                span.max(operand.data.len()),
                operand.data.len(),
            )?;
        }
        Ok(Run {
            tape,
            level,
            shape: Shape::new(sizes, operands, own),
            operands,
            len: sizes.iter().product(),
        })
    }

    /// Whether it is done before another thread has taken up a part of it.
    fn is_short(&self) -> bool {
        self.len * self.tape.steps.len().max(2) < 256 << 10
    }

    /// Writes a part of each output, from number `first` on.
    fn part(&self, first: usize, outputs: Blocks<'_>) {
        let blocks = self.tape.registers + self.operands.len();
        lend(blocks * BLOCK, |space| {
            self.level.run(Job {
                tape: self.tape,
                shape: &self.shape,
                operands: self.operands,
                first,
                outputs,
                space,
            });
        });
    }
}

/// The strides of floats in order.
fn contiguous(sizes: &[usize]) -> SmallVec<[usize; 8]> {
    let mut strides: SmallVec<[usize; 8]> = SmallVec::from_elem(1, sizes.len());
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at] * sizes[at];
    }
    strides
}

impl Tape {
    /// Computes the outputs, `sizes` floats each and contiguous, from operands that are read as
    /// `sizes` by their strides.
    ///
    /// # Errors
    ///
    /// Where there are other numbers of operands, outputs or strides than the tape and `sizes` ask
    /// for, an operand leaves its slice, or an output has another length.
    pub fn run(
        &self,
        level: Level,
        sizes: &[usize],
        operands: &[Operand<'_>],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), SizeError> {
        self.run_all(Run::new(self, level, sizes, operands, None)?, outputs)
    }

    /// Computes the one output of a tape, as [`Tape::run`] does, over the operand of number `own`: `out` holds that
    /// operand, in order, and `operands` has the others.
    ///
    /// # Errors
    ///
    /// As [`Tape::run`], or where the tape has no operand of that number.
    ///
    /// ```
    /// use fx_kernels::Level;
    /// use fx_kernels::pointwise::{Binary, Chain, Operand};
    ///
    /// let mut chain = Chain::new();
    /// let (x, y) = (chain.input(), chain.input());
    /// let difference = chain.binary(Binary::Sub, x, y);
    /// let tape = chain.finish(&[difference]);
    /// let mut out = [5.0, 6.0, 7.0];
    /// let others = [Operand::full(&[1.0, 2.0, 3.0], &[1])];
    /// tape.run_over(Level::best(), &[3], &others, 0, &mut out)?;
    /// assert_eq!(out, [4.0, 4.0, 4.0]);
    /// assert!(tape.run_over(Level::best(), &[3], &others, 2, &mut out).is_err());
    /// # Ok::<(), fx_kernels::SizeError>(())
    /// ```
    pub fn run_over(
        &self,
        level: Level,
        sizes: &[usize],
        operands: &[Operand<'_>],
        own: usize,
        out: &mut [f32],
    ) -> Result<(), SizeError> {
        let strides = contiguous(sizes);
        let mut all: SmallVec<[Operand<'_>; 8]> = SmallVec::from_slice(operands);
        check("the operand that is written over", own.min(all.len()), own)?;
        all.insert(own, Operand::full(&[], &strides));
        let run = Run::new(self, level, sizes, &all, Some(own))?;
        self.run_all(run, &mut [out])
    }

    fn run_all(&self, run: Run<'_>, outputs: &mut [&mut [f32]]) -> Result<(), SizeError> {
        check("the list of outputs", self.outputs, outputs.len())?;
        for output in &*outputs {
            check("an output", run.len, output.len())?;
        }
        if run.len == 0 || outputs.is_empty() {
            return Ok(());
        }
        const TASK: usize = BLOCK * TOGETHER;
        let mut tasks: Vec<Blocks<'_>> = Vec::new();
        tasks.resize_with(run.len.div_ceil(TASK), Blocks::new);
        for output in outputs.iter_mut() {
            for (task, part) in tasks.iter_mut().zip(output.chunks_mut(TASK)) {
                task.push(part);
            }
        }
        let part = |(i, outputs)| run.part(i * TASK, outputs);
        match run.is_short() {
            true => tasks.into_iter().enumerate().for_each(part),
            false => tasks.into_par_iter().enumerate().for_each(part),
        }
        Ok(())
    }

    /// Computes the one output of a tape, as [`Tape::run`] does, into new memory, which is written
    /// once: no zeros before the results.
    ///
    /// # Errors
    ///
    /// As [`Tape::run`].
    ///
    /// ```
    /// use fx_kernels::Level;
    /// use fx_kernels::pointwise::{Chain, Operand, Unary};
    ///
    /// let mut chain = Chain::new();
    /// let x = chain.input();
    /// let y = chain.unary(Unary::Neg, x);
    /// let tape = chain.finish(&[y]);
    /// let out = tape.collect(Level::best(), &[3], &[Operand::full(&[1.0, 2.0, 3.0], &[1])])?;
    /// assert_eq!(out, [-1.0, -2.0, -3.0]);
    /// # Ok::<(), fx_kernels::SizeError>(())
    /// ```
    pub fn collect(
        &self,
        level: Level,
        sizes: &[usize],
        operands: &[Operand<'_>],
    ) -> Result<Vec<f32>, SizeError> {
        let run = Run::new(self, level, sizes, operands, None)?;
        check("the list of outputs", self.outputs, 1)?;
        // Each thread computes a block at a time and hands it on line by line, so that nothing but the results is
        // written to memory, and each of them once.
        let line = |held: &mut Held, i: usize| {
            let (number, at) = (i * LINE / BLOCK, i * LINE % BLOCK);
            if held.number != Some(number) {
                let size = BLOCK.min(run.len - number * BLOCK);
                run.part(number * BLOCK, smallvec![&mut held.block[..size]]);
                held.number = Some(number);
            }
            let mut line = [0.0; LINE];
            line.copy_from_slice(&held.block[at..at + LINE]);
            line
        };
        let count = run.len.div_ceil(LINE);
        let mut lines = Vec::with_capacity(count);
        match run.is_short() {
            true => {
                let mut held = Held::default();
                lines.extend((0..count).map(|i| line(&mut held, i)));
            }
            false => (0..count)
                .into_par_iter()
                .with_min_len(TOGETHER * BLOCK / LINE)
                .map_init(Held::default, line)
                .collect_into_vec(&mut lines),
        }
        let mut floats = lines.into_flattened();
        floats.truncate(run.len);
        Ok(floats)
    }
}
