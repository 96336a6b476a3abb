//! Where a row of calls is cut into stages: the largest stage as small as can be, then few bytes
//! between them.
//!
//! Invariant: each stage has a call, and the largest one costs at most 5 % more than it must.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashSet;

/// What each call of a graph costs, in the order of the graph.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub costs: Vec<u64>,
    /// The tensors that each call reads, as places in `tensors`.
    pub reads: Vec<Vec<u32>>,
    /// The bytes of each tensor.
    pub tensors: Vec<u64>,
    /// The bytes that go from the calls before a call to it and those behind it.
    pub crossing: Vec<u64>,
}

/// How much a stage may be.
#[derive(Debug, Clone, Copy)]
struct Most {
    cost: u128,
    bytes: u128,
}

/// Why the weights do not fit.
#[derive(Debug)]
pub(super) struct TooLarge {
    /// The bytes that a stage must be allowed for this number of stages.
    pub bytes: u128,
    /// The stages that there must be with the bytes that are allowed; none is enough if one call
    /// needs more.
    pub stages: Option<usize>,
    /// The call that reads most.
    pub largest: usize,
}

/// A range of calls that grows at its end and shrinks at its beginning.
struct Window<'l> {
    load: &'l Load,
    cost: u128,
    bytes: u128,
    /// How many calls of the range read each tensor.
    readers: Vec<u32>,
}

impl<'l> Window<'l> {
    fn new(load: &'l Load) -> Self {
        Window {
            load,
            cost: 0,
            bytes: 0,
            readers: vec![0; load.tensors.len()],
        }
    }

    fn add(&mut self, call: usize) {
        self.cost += u128::from(self.load.costs[call]);
        for tensor in &self.load.reads[call] {
            let readers = &mut self.readers[*tensor as usize];
            if *readers == 0 {
                self.bytes += u128::from(self.load.tensors[*tensor as usize]);
            }
            *readers += 1;
        }
    }

    fn remove(&mut self, call: usize) {
        self.cost -= u128::from(self.load.costs[call]);
        for tensor in &self.load.reads[call] {
            let readers = &mut self.readers[*tensor as usize];
            *readers -= 1;
            if *readers == 0 {
                self.bytes -= u128::from(self.load.tensors[*tensor as usize]);
            }
        }
    }

    fn fits(&self, most: Most) -> bool {
        self.cost <= most.cost && self.bytes <= most.bytes
    }
}

impl Load {
    /// The first call of each stage. There are at least as many calls as stages, and a stage.
    pub fn starts(&self, stages: usize, limit: Option<u64>) -> Result<Vec<usize>, TooLarge> {
        let total: u128 = self.costs.iter().copied().map(u128::from).sum();
        let bytes = limit.map_or(u128::MAX, u128::from);
        let everything = Most { cost: total, bytes };
        if self.stages_within(everything).is_none_or(|n| n > stages) {
            return Err(self.too_large(stages, everything));
        }
        let each = total.div_ceil(stages as u128);
        let largest = self.costs.iter().copied().max().unwrap_or(0);
        let least = least(each.max(u128::from(largest)), total, |cost| {
            self.stages_within(Most { cost, bytes })
                .is_some_and(|n| n <= stages)
        });
        let best = self.fewest_bytes(stages, Most { cost: least, bytes });
        let near = Most {
            cost: least + least / 20,
            bytes,
        };
        let near = self.fewest_bytes(stages, near);
        let (_, starts) = if near.0 < best.0 { near } else { best };
        Ok(starts)
    }

    /// The bytes of the tensors that some calls read.
    pub fn bytes_of(&self, calls: Range<usize>) -> u64 {
        let read: FxHashSet<u32> = self.reads[calls].iter().flatten().copied().collect();
        let bytes = read.into_iter().map(|tensor| self.tensors[tensor as usize]);
        bytes.fold(0, u64::saturating_add)
    }

    /// The fewest stages that are not more than this; `None` if one call is.
    fn stages_within(&self, most: Most) -> Option<usize> {
        let mut window = Window::new(self);
        let mut stages = 0;
        let mut from = 0;
        for call in 0..self.costs.len() {
            window.add(call);
            if stages == 0 {
                stages = 1;
            }
            if window.fits(most) {
                continue;
            }
            // A smaller range is never more, so the longest one that fits is best.
            (from..call).for_each(|earlier| window.remove(earlier));
            if !window.fits(most) {
                return None;
            }
            from = call;
            stages += 1;
        }
        Some(stages)
    }

    fn too_large(&self, stages: usize, most: Most) -> TooLarge {
        let mut window = Window::new(self);
        let mut largest = (0, 0);
        for call in 0..self.costs.len() {
            window.add(call);
            if window.bytes > largest.1 {
                largest = (call, window.bytes);
            }
            window.remove(call);
        }
        let all = self.tensors.iter().copied().map(u128::from).sum();
        let bytes = least(largest.1, all, |bytes| {
            self.stages_within(Most { bytes, ..most })
                .is_some_and(|n| n <= stages)
        });
        TooLarge {
            bytes,
            stages: self.stages_within(most),
            largest: largest.0,
        }
    }

    /// The bytes between the stages, and their first calls, so that the bytes are fewest.
    fn fewest_bytes(&self, stages: usize, most: Most) -> (u128, Vec<usize>) {
        let calls = self.costs.len();
        // The first call of the longest stage that ends before each call.
        let mut window = Window::new(self);
        let mut longest = vec![0; calls + 1];
        let mut from = 0;
        for call in 0..calls {
            window.add(call);
            while !window.fits(most) && from < call {
                window.remove(from);
                from += 1;
            }
            longest[call + 1] = from;
        }
        // The fewest bytes of stages that end before each call, stage by stage.
        let mut fewest: Vec<Option<u128>> = (0..=calls)
            .map(|end| (end > 0 && longest[end] == 0).then_some(0))
            .collect();
        let mut begins: Vec<Vec<u32>> = Vec::with_capacity(stages);
        for _ in 1..stages {
            let mut next = vec![None; calls + 1];
            let mut begin = vec![0u32; calls + 1];
            // Places where the stage may begin, with rising bytes.
            let mut open: VecDeque<(usize, u128)> = VecDeque::new();
            for end in 1..=calls {
                let last = end - 1;
                if let Some(bytes) = fewest[last] {
                    let bytes = bytes + u128::from(self.crossing[last]);
                    while open.back().is_some_and(|(_, other)| *other > bytes) {
                        open.pop_back();
                    }
                    open.push_back((last, bytes));
                }
                while open.front().is_some_and(|(at, _)| *at < longest[end]) {
                    open.pop_front();
                }
                if let Some((at, bytes)) = open.front() {
                    next[end] = Some(*bytes);
                    begin[end] = u32::try_from(*at).unwrap_or(u32::MAX);
                }
            }
            begins.push(begin);
            fewest = next;
        }
        let Some(bytes) = fewest[calls] else {
            // `stages_within` found stages, and they can be cut further.
            return (u128::MAX, Vec::new());
        };
        let mut starts = vec![0; stages];
        let mut end = calls;
        for (stage, begin) in begins.iter().enumerate().rev() {
            end = begin[end] as usize;
            starts[stage + 1] = end;
        }
        (bytes, starts)
    }
}

/// The least number from `low` to `high` for which `is_enough` holds; it holds for `high`.
fn least(low: u128, high: u128, is_enough: impl Fn(u128) -> bool) -> u128 {
    let (mut low, mut high) = (low.min(high), high);
    while low < high {
        let middle = low.midpoint(high);
        match is_enough(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    high
}
