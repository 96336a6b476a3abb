//! `Placement`: which part of a tensor each device has.
//!
//! Invariant: the parts of a tensor have one shape; what lies past the tensor's end in a part is zero, and is not read.

use fx_nn::{Error, Result};

/// Which part of a tensor each device of a program has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    whole: Vec<usize>,
    part: Vec<usize>,
    /// Where the part of each device begins, in the order of the program's devices.
    starts: Vec<Vec<usize>>,
}

impl Placement {
    /// Each of so many devices has the whole tensor.
    pub fn replicated(whole: Vec<usize>, devices: usize) -> Self {
        Placement {
            part: whole.clone(),
            starts: vec![vec![0; whole.len()]; devices],
            whole,
        }
    }

    /// Dims are cut into equal tiles, `tiles` of each dim; `coordinates` says which tile each device has.
    pub fn tiled(whole: Vec<usize>, tiles: &[usize], coordinates: Vec<Vec<usize>>) -> Self {
        let part = whole.iter().zip(tiles);
        let part: Vec<usize> = part.map(|(size, tiles)| size.div_ceil(*tiles)).collect();
        let starts = coordinates.into_iter();
        let starts = starts.map(|at| at.iter().zip(&part).map(|(at, size)| at * size).collect());
        Placement {
            starts: starts.collect(),
            whole,
            part,
        }
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.starts.len()
    }

    /// The sizes of the whole tensor.
    pub fn whole(&self) -> &[usize] {
        &self.whole
    }

    /// The sizes of a part.
    pub fn part(&self) -> &[usize] {
        &self.part
    }

    /// Whether a device has all of the tensor.
    pub fn is_whole(&self) -> bool {
        self.part == self.whole && self.starts.iter().flatten().all(|start| *start == 0)
    }

    /// The bytes of a device's part of a tensor, whose elements have `size` bytes each.
    pub fn part_of(&self, device: usize, whole: &[u8], size: usize) -> Result<Vec<u8>> {
        let count: usize = self.part.iter().product();
        let mut part = Vec::new();
        part.try_reserve_exact(count * size).map_err(Error::other)?;
        part.resize(count * size, 0);
        self.rows(device, |in_whole, in_part, len| {
            let (from, to) = (in_whole * size, in_part * size);
            part[to..to + len * size].copy_from_slice(&whole[from..from + len * size]);
        });
        Ok(part)
    }

    /// Writes a device's part into the bytes of the whole tensor.
    pub fn put(&self, device: usize, part: &[u8], whole: &mut [u8], size: usize) {
        self.rows(device, |in_whole, in_part, len| {
            let (from, to) = (in_part * size, in_whole * size);
            whole[to..to + len * size].copy_from_slice(&part[from..from + len * size]);
        });
    }

    /// The devices of which each has a part that no device before it has.
    pub fn distinct(&self) -> impl Iterator<Item = usize> {
        let is_new = |at: &usize| !self.starts[..*at].contains(&self.starts[*at]);
        (0..self.starts.len()).filter(is_new)
    }

    /// Calls `each` with the rows that a device's part has of the tensor: where they begin in both, and their length in
    /// elements.
    fn rows(&self, device: usize, mut each: impl FnMut(usize, usize, usize)) {
        let start = &self.starts[device];
        // How much of the part lies within the tensor.
        let within = start.iter().zip(&self.whole).zip(&self.part);
        let block: Vec<usize> = within
            .map(|((start, whole), part)| whole.saturating_sub(*start).min(*part))
            .collect();
        if block.contains(&0) {
            return;
        }
        let Some((row, outer)) = block.split_last() else {
            return each(0, 0, 1);
        };
        let strides = |shape: &[usize]| {
            let mut all = vec![1; shape.len()];
            for at in (1..shape.len()).rev() {
                all[at - 1] = all[at] * shape[at];
            }
            all
        };
        let (of_whole, of_part) = (strides(&self.whole), strides(&self.part));
        let mut at = vec![0; outer.len()];
        loop {
            let last = start.len() - 1;
            let outer_of = |strides: &[usize], start: &[usize]| -> usize {
                let all = at.iter().zip(start).zip(strides);
                all.map(|((at, start), stride)| (at + start) * stride).sum()
            };
            let in_whole = outer_of(&of_whole, start) + start[last];
            let in_part = outer_of(&of_part, &vec![0; start.len()]);
            each(in_whole, in_part, *row);
            // The next row, the last dim first.
            let Some(dim) = (0..outer.len())
                .rev()
                .find(|dim| at[*dim] + 1 < outer[*dim])
            else {
                return;
            };
            at[dim] += 1;
            at[dim + 1..].fill(0);
        }
    }
}
