//! Runs a tape over blocks: reads operands with strides, hands tasks to threads.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::program::{Source, Tape};
use super::steps::{Argument, step};
use crate::Level;
use crate::error::{SizeError, check};
use crate::transpose::span;
use crate::vector::lend;

/// The floats of a block: a dozen of them fit in the first level of the cache.
const BLOCK: usize = 1024;

/// The blocks of a task.
const TOGETHER: usize = 16;

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
}

impl Shape {
    fn new(sizes: &[usize], operands: &[Operand<'_>]) -> Shape {
        let mut shape = Shape {
            sizes: Vec::new(),
            strides: vec![Vec::new(); operands.len()],
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

    /// Whether an operand is a plain slice.
    fn is_plain(&self, operand: usize) -> bool {
        matches!(self.strides[operand][..], [] | [1])
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

/// Some blocks.
struct Job<'a, 'o> {
    tape: &'a Tape,
    shape: &'a Shape,
    operands: &'a [Operand<'a>],
    /// The number of the first float.
    first: usize,
    /// A part of each output.
    outputs: Vec<&'o mut [f32]>,
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
                if !shape.is_plain(i) {
                    shape.read(
                        i,
                        &operand.data[operand.start..],
                        first + from,
                        &mut block[..size],
                    );
                }
            }
            let mut blocks: Vec<&mut [f32]> = registers
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
        check("the list of operands", self.inputs, operands.len())?;
        check("the list of outputs", self.outputs, outputs.len())?;
        let len = sizes.iter().product();
        for operand in operands {
            check("the list of strides", sizes.len(), operand.strides.len())?;
            let span = span(operand.start, sizes, operand.strides);
            check(
                "an operand",
                span.max(operand.data.len()),
                operand.data.len(),
            )?;
        }
        for output in &*outputs {
            check("an output", len, output.len())?;
        }
        if len == 0 || outputs.is_empty() {
            return Ok(());
        }
        let shape = Shape::new(sizes, operands);
        let blocks = self.registers + operands.len();
        let run = |(i, outputs): (usize, Vec<&mut [f32]>)| {
            let first = i * BLOCK * TOGETHER;
            lend(blocks * BLOCK, |space| {
                level.run(Job {
                    tape: self,
                    shape: &shape,
                    operands,
                    first,
                    outputs,
                    space,
                });
            });
        };
        let mut tasks: Vec<Vec<&mut [f32]>> = Vec::new();
        tasks.resize_with(len.div_ceil(BLOCK * TOGETHER), || {
            Vec::with_capacity(outputs.len())
        });
        for output in outputs.iter_mut() {
            for (task, part) in tasks.iter_mut().zip(output.chunks_mut(BLOCK * TOGETHER)) {
                task.push(part);
            }
        }
        match len * self.steps.len().max(2) < 256 << 10 {
            true => tasks.into_iter().enumerate().for_each(run),
            false => tasks.into_par_iter().enumerate().for_each(run),
        }
        Ok(())
    }
}
