//! `Array`: floats while a program runs, as a view of memory that several arrays can share.
//!
//! Invariant: the sizes and strides of an array stay inside its memory.

use std::sync::Arc;

use fx_kernels::Buffer;
use smallvec::SmallVec;

/// Sizes or strides of the dimensions.
pub(super) type Dims = SmallVec<[usize; 6]>;

/// Where the floats of an array are.
#[derive(Debug, Clone)]
pub(super) enum Memory {
    /// In a buffer of the run's pool, or of the program.
    Buffer(Arc<Buffer>),
    /// In an argument, by its place.
    Input(usize),
    /// In memory that the program returns.
    Result(Arc<Vec<f32>>),
}

/// A view of floats, in memory of a kind: a run's own, unless another is named.
#[derive(Debug, Clone)]
pub(super) struct Array<M = Memory> {
    pub memory: M,
    /// The first float of the view.
    pub start: usize,
    pub dims: Dims,
    pub strides: Dims,
}

/// The strides of floats that lie next to each other.
pub(super) fn strides_of(dims: &[usize]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, dims.len());
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at] * dims[at];
    }
    strides
}

impl<M: Clone> Array<M> {
    /// All floats of a memory, in order.
    pub fn of(memory: M, dims: Dims) -> Self {
        let strides = strides_of(&dims);
        Array {
            memory,
            start: 0,
            dims,
            strides,
        }
    }

    /// The number of floats.
    pub fn numel(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether the floats lie next to each other, in order.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (size, stride) in self.dims.iter().zip(&self.strides).rev() {
            if *size != 1 && *stride != expected {
                return false;
            }
            expected *= size;
        }
        true
    }

    /// The same floats with other sizes, if that needs no copy.
    pub fn reshaped(&self, dims: &[usize]) -> Option<Self> {
        let view = |strides: Dims| Array {
            memory: self.memory.clone(),
            start: self.start,
            dims: dims.into(),
            strides,
        };
        if self.is_contiguous() {
            return Some(view(strides_of(dims)));
        }
        // Groups of dimensions that have the same product on both sides; each is split or merged
        // where its floats lie evenly.
        let old: Vec<(usize, usize)> = self
            .dims
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .filter(|(size, _)| *size != 1)
            .collect();
        let mut strides: Dims = SmallVec::from_elem(0, dims.len());
        let (mut at, mut to) = (0, 0);
        while to < dims.len() {
            if dims[to] == 1 {
                to += 1;
                continue;
            }
            let (first, begin) = (to, at);
            let (mut have, mut want) = (old.get(at)?.0, dims[to]);
            at += 1;
            to += 1;
            while have != want {
                if have < want {
                    have *= old.get(at)?.0;
                    at += 1;
                } else {
                    want *= dims.get(to)?;
                    to += 1;
                }
            }
            let even = |pair: &[(usize, usize)]| pair[0].1 == pair[1].0 * pair[1].1;
            if !old[begin..at].windows(2).all(even) {
                return None;
            }
            let mut stride = old[at - 1].1;
            for dim in (first..to).rev() {
                strides[dim] = stride;
                stride *= dims[dim];
            }
        }
        Some(view(strides))
    }

    /// The dimensions in another order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        Array {
            memory: self.memory.clone(),
            start: self.start,
            dims: order.iter().map(|at| self.dims[*at]).collect(),
            strides: order.iter().map(|at| self.strides[*at]).collect(),
        }
    }

    /// Some places of a dimension, `step` apart.
    pub fn sliced(&self, dim: usize, first: usize, count: usize, step: usize) -> Self {
        let mut part = self.clone();
        if count > 0 {
            part.start += first * self.strides[dim];
        }
        part.dims[dim] = count;
        part.strides[dim] *= step;
        part
    }

    /// Without a dimension, whose first place stays.
    pub fn without(&self, dim: usize) -> Self {
        let mut part = self.clone();
        part.dims.remove(dim);
        part.strides.remove(dim);
        part
    }

    /// With a dimension of size 1.
    pub fn with_one(&self, dim: usize) -> Self {
        let mut part = self.clone();
        part.dims.insert(dim, 1);
        part.strides.insert(dim, 0);
        part
    }

    /// Broadcast to sizes; `None` if they do not fit.
    pub fn expanded(&self, dims: &[usize]) -> Option<Self> {
        let more = dims.len().checked_sub(self.dims.len())?;
        let mut strides: Dims = SmallVec::from_elem(0, dims.len());
        for (at, (size, stride)) in self.dims.iter().zip(&self.strides).enumerate() {
            strides[more + at] = match (*size, dims[more + at]) {
                (a, b) if a == b => *stride,
                (1, _) => 0,
                _ => return None,
            };
        }
        Some(Array {
            memory: self.memory.clone(),
            start: self.start,
            dims: dims.into(),
            strides,
        })
    }
}

/// The sizes of the result of an operation on arrays of these sizes; `None` if they do not fit.
pub(super) fn broadcast<'d>(all: impl IntoIterator<Item = &'d [usize]>) -> Option<Dims> {
    let mut joined = Dims::new();
    for dims in all {
        while joined.len() < dims.len() {
            joined.insert(0, 1);
        }
        let more = joined.len() - dims.len();
        for (at, size) in dims.iter().enumerate() {
            let here = &mut joined[more + at];
            match (*here, *size) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *here = b,
                _ => return None,
            }
        }
    }
    Some(joined)
}
