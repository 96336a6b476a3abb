//! Where buffers lie in the arena.
//!
//! Invariant: two buffers that hold floats at the same step do not overlap.

use rustc_hash::{FxHashMap, FxHashSet};

use super::floats::{Place, range_of};
use super::plan::{Plan, Work};
use crate::cpu::array::strides_of;

/// The steps at which a buffer holds floats.
#[derive(Debug, Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

/// Decides where each buffer lies: large ones first, each as low as it fits.
pub(super) fn place(plan: &mut Plan) {
    let mut lives = lives(plan);
    write_over(plan, &mut lives);
    let mut order: Vec<usize> = (0..plan.buffers.len())
        .filter(|at| lives[*at].is_some())
        .collect();
    order.sort_by_key(|at| std::cmp::Reverse(plan.buffers[*at]));
    plan.starts = vec![0; plan.buffers.len()];
    // The buffers that hold floats at each step.
    let mut at_step: Vec<Vec<usize>> = vec![Vec::new(); plan.steps.len() + 1];
    for buffer in order {
        let Some(Life { first, last }) = lives[buffer] else {
            continue;
        };
        let mut met: FxHashSet<usize> = FxHashSet::default();
        for placed in &at_step[first..=last] {
            met.extend(placed);
        }
        let mut taken: Vec<(usize, usize)> = met
            .iter()
            .map(|of| (plan.starts[*of], plan.starts[*of] + plan.buffers[*of]))
            .collect();
        taken.sort_unstable();
        let mut start = 0;
        for (from, to) in taken {
            if start + plan.buffers[buffer] <= from {
                break;
            }
            start = start.max(to);
        }
        plan.starts[buffer] = start;
        plan.arena = plan.arena.max(start + plan.buffers[buffer]);
        at_step[first..=last]
            .iter_mut()
            .for_each(|placed| placed.push(buffer));
    }
}

/// From the step that writes a buffer to the last one that reads it; results are read behind all steps.
fn lives(plan: &Plan) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; plan.buffers.len()];
    for (at, step) in plan.steps.iter().enumerate() {
        lives[step.out] = Some(Life {
            first: at,
            last: at,
        });
        for (place, _) in &step.reads {
            if let Place::Buffer(buffer) = place
                && let Some(life) = &mut lives[*buffer]
            {
                life.last = at;
            }
        }
    }
    for output in &plan.outputs {
        if let Place::Buffer(buffer) = output.floats.memory
            && let Some(life) = &mut lives[buffer]
        {
            life.last = plan.steps.len();
        }
    }
    lives
}

/// Has chains of functions write over what they read last, where that is all of a buffer, in order.
fn write_over(plan: &mut Plan, lives: &mut [Option<Life>]) {
    // The buffer whose memory each one has.
    let mut moved: FxHashMap<usize, usize> = FxHashMap::default();
    for at in 0..plan.steps.len() {
        for (place, _) in &mut plan.steps[at].reads {
            if let Place::Buffer(buffer) = place
                && let Some(now) = moved.get(buffer)
            {
                *buffer = *now;
            }
        }
        let step = &plan.steps[at];
        let Work::Points(steps) = &step.work else {
            continue;
        };
        let in_order = strides_of(&steps.dims);
        let is_last = |buffer: usize| lives[buffer].is_some_and(|life| life.last == at);
        let over = step.reads.iter().position(|(place, range)| {
            let Place::Buffer(buffer) = *place else {
                return false;
            };
            let readers = step.reads.iter().filter(|(other, _)| other == place);
            readers.count() == 1
                && is_last(buffer)
                && *range == (0..step.length)
                && plan.buffers[buffer] == step.length
        });
        let Some(over) = over else {
            continue;
        };
        // A dim of one place has any stride.
        let dims = steps.dims.iter().zip(&steps.strides[over]).zip(&in_order);
        if dims
            .into_iter()
            .any(|((size, stride), own)| *size != 1 && stride != own)
        {
            continue;
        }
        let Place::Buffer(buffer) = step.reads[over].0 else {
            continue;
        };
        let out = step.out;
        let own = lives[out].take();
        if let (Some(life), Some(own)) = (&mut lives[buffer], own) {
            life.last = own.last;
        }
        moved.insert(out, buffer);
        let step = &mut plan.steps[at];
        step.out = buffer;
        step.reads.remove(over);
        if let Work::Points(steps) = &mut step.work {
            steps.write_over(over);
        }
    }
    for output in &mut plan.outputs {
        if let Place::Buffer(buffer) = output.floats.memory
            && let Some(now) = moved.get(&buffer)
        {
            output.floats.memory = Place::Buffer(*now);
        }
        debug_assert!(
            output.floats.is_contiguous() && range_of(&output.floats).start == output.floats.start
        );
    }
}
