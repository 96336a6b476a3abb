//! `Plan`: the steps of a crate in order, each with the floats that it reads and the buffer that it writes.
//!
//! Invariant: a buffer is written by one step, before the steps that read it, or by one that writes over what it reads last.

use std::ops::Range;

use fx_core::{Error, Result};
use fx_static::{Kernel, rows_at};

use super::floats::{Floats, Place, range_of};
use super::points::Steps;
use super::weights::Weights;
use crate::cpu::array::Dims;

/// What a step runs.
pub(super) enum Work {
    Kernel(Box<dyn Kernel + Send + Sync>),
    Points(Steps),
    /// The rows of a table, which is read, at the indices that an input has.
    Rows {
        size: usize,
        input: usize,
    },
}

/// A step.
pub(super) struct Step {
    /// The nodes that it computes, and what it does.
    pub what: String,
    pub work: Work,
    pub reads: Vec<(Place, Range<usize>)>,
    /// The buffer that it writes.
    pub out: usize,
    /// The floats of it that it writes; room for what a kernel keeps lies behind its result.
    pub length: usize,
}

/// An input of a crate.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub name: String,
    pub dims: Vec<usize>,
    /// Whether it has whole numbers, which are indices.
    pub is_indices: bool,
}

/// A result of a crate: contiguous floats.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub name: String,
    pub floats: Floats,
}

/// All of a crate but its text.
#[derive(Default)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub weights: Weights,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    /// The buffers with their floats.
    pub buffers: Vec<usize>,
    /// Where each buffer starts in the arena, once that is decided.
    pub starts: Vec<usize>,
    pub arena: usize,
}

impl Plan {
    /// A step that writes a new buffer, with room behind its result.
    pub fn push(
        &mut self,
        what: &str,
        work: Work,
        reads: &[&Floats],
        dims: Dims,
        room: usize,
    ) -> Result<Floats> {
        let length = dims
            .iter()
            .try_fold(1usize, |all, size| all.checked_mul(*size));
        let length = length.and_then(|length| length.checked_add(room));
        let length = length.ok_or_else(|| Error::msg("its result is too large"))?;
        let out = self.buffers.len();
        self.buffers.push(length);
        self.steps.push(Step {
            what: what.to_string(),
            work,
            reads: reads.iter().map(|x| (x.memory, range_of(x))).collect(),
            out,
            length,
        });
        Ok(Floats::of(Place::Buffer(out), dims))
    }

    /// A step of a kernel.
    pub fn kernel(
        &mut self,
        what: &str,
        kernel: impl Kernel + Send + Sync + 'static,
        reads: &[&Floats],
        dims: Dims,
    ) -> Result<Floats> {
        self.push(what, Work::Kernel(Box::new(kernel)), reads, dims, 0)
    }

    /// Where a range of a buffer lies in the arena.
    pub fn in_arena(&self, buffer: usize, range: &Range<usize>) -> Range<usize> {
        let start = self.starts[buffer];
        start + range.start..start + range.end
    }

    /// Where a result lies in the arena.
    pub fn result(&self, output: &Output) -> Range<usize> {
        let Place::Buffer(buffer) = output.floats.memory else {
            unreachable!("a result is in a buffer: the planner copies what is not");
        };
        self.in_arena(buffer, &range_of(&output.floats))
    }

    /// Runs the steps here.
    pub fn run(
        &self,
        floats: &[Option<Vec<f32>>],
        indices: &[Option<Vec<i64>>],
    ) -> Result<Vec<f32>> {
        let mut arena = vec![f32::NAN; self.arena];
        for step in &self.steps {
            let part = self.in_arena(step.out, &(0..step.length));
            let behind = part.end;
            let (low, out, high) = fx_static::split(&mut arena, part.clone());
            let read = |(place, range): &(Place, Range<usize>)| -> &[f32] {
                match place {
                    _ if range.is_empty() => &[],
                    Place::Buffer(buffer) => {
                        let range = self.in_arena(*buffer, range);
                        match range.start < part.start {
                            true => &low[range],
                            false => &high[range.start - behind..range.end - behind],
                        }
                    }
                    Place::Weights => &self.weights.floats()[range.clone()],
                    Place::Input(at) => floats[*at].as_ref().map_or(&[], |x| &x[range.clone()]),
                }
            };
            let reads: Vec<&[f32]> = step.reads.iter().map(read).collect();
            match &step.work {
                Work::Kernel(kernel) => kernel.run(&reads, out),
                Work::Points(steps) => steps.run(&reads, out),
                Work::Rows { size, input } => {
                    let indices = indices[*input].as_deref().unwrap_or(&[]);
                    rows_at(*size, indices, reads[0], out).map_err(Error::other)?;
                }
            }
        }
        Ok(arena)
    }
}
