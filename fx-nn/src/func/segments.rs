//! `best`: where a forward part is cut into segments, so that what one of them computes again is gone before the next.
//!
//! Invariant: a value that one segment makes for another is kept.

use super::joint_graph::JointGraph;

/// Which values may be computed again if the rest is kept, and the bytes that a run takes at once if they are: of the
/// numbers of segments that are tried, the best.
pub(super) fn best(joint: &JointGraph) -> (Vec<bool>, u64) {
    let forward = Forward::of(joint);
    let counts = std::iter::successors(Some(1usize), |count| Some(count + count.div_ceil(2)));
    let tried = counts
        .take_while(|count| *count <= forward.places.len().max(1))
        .map(|count| {
            let may_repeat = forward.repeated(joint, count);
            let peak = joint.peak(&joint.needed(&may_repeat).again);
            (may_repeat, peak)
        });
    let nothing = vec![false; joint.nodes.len()];
    let peak = joint.peak(&nothing);
    tried.fold((nothing, peak), |best, found| match found.1 < best.1 {
        true => found,
        false => best,
    })
}

/// The values that a forward part computes, in their order.
struct Forward {
    /// Their places in the graph.
    places: Vec<usize>,
    /// By place in the graph: the number of the value here, and of the last that reads it.
    lives: Vec<Option<(usize, usize)>>,
    /// The bytes of all values up to each, its own included.
    bytes: Vec<u64>,
    /// The bytes that are there behind each value for later ones.
    crossing: Vec<u64>,
}

impl Forward {
    fn of(joint: &JointGraph) -> Self {
        let mut places = Vec::new();
        let mut lives: Vec<Option<(usize, usize)>> = vec![None; joint.nodes.len()];
        for (at, node) in joint.nodes.iter().enumerate() {
            if !node.is_forward || node.is_given {
                continue;
            }
            let number = places.len();
            places.push(at);
            lives[at] = Some((number, number));
            for input in &node.inputs {
                if let Some((_, last)) = &mut lives[*input as usize] {
                    *last = number;
                }
            }
        }
        let mut forward = Forward {
            bytes: Vec::with_capacity(places.len()),
            crossing: vec![0; places.len()],
            places,
            lives,
        };
        let (mut sum, mut now) = (0, 0);
        let mut gone = vec![0; forward.places.len()];
        for (number, at) in forward.places.iter().enumerate() {
            let own = joint.nodes[*at].bytes;
            sum += own;
            forward.bytes.push(sum);
            if let Some((_, last)) = forward.lives[*at] {
                now += own;
                gone[last] += own;
            }
            now -= gone[number];
            forward.crossing[number] = now;
        }
        forward
    }

    /// The values that may be computed again with so many segments: each ends where little is there for later ones.
    fn repeated(&self, joint: &JointGraph, segments: usize) -> Vec<bool> {
        let total = self.bytes.last().copied().unwrap_or(0);
        let up_to = |bytes: u64| self.bytes.partition_point(|so_far| *so_far < bytes);
        let share = |numerator: usize| {
            let part = u128::from(total) * numerator as u128 / (2 * segments as u128);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let ends: Vec<usize> = (1..segments)
            .filter_map(|segment| {
                // Within half a segment of equal parts.
                let around = up_to(share(2 * segment - 1))..up_to(share(2 * segment + 1));
                around.min_by_key(|number| self.crossing[*number])
            })
            .collect();
        let is_kept = |(made, last): (usize, usize)| {
            let next = ends.partition_point(|end| *end < made);
            ends.get(next).is_some_and(|end| *end < last)
        };
        let may_repeat =
            joint.nodes.iter().zip(&self.lives).map(|(node, lives)| {
                node.cost.is_some() && lives.is_some_and(|lives| !is_kept(lives))
            });
        may_repeat.collect()
    }
}
