//! `Recompute`: which values of a forward part are computed again for the backward part, so that they need not be kept.
//!
//! Invariant: a number that is drawn is kept: the backward part sees the draw of the forward part.

use fx_core::ir::Argument;
use fx_core::module::PathPattern;
use fx_core::passes::Pass;
use fx_core::value::NodeId;
use fx_core::{Error, GraphModule, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::joint_graph::{JointGraph, Needed};
use super::min_cut::{Candidate, MOST, cheapest};
use super::segments;

/// Which values of a forward part are computed again for the backward part, instead of being kept: for
/// [`split_joint`](super::split_joint) and [`TrainStep::recompute`](crate::train::TrainStep::recompute).
///
/// What a random function gives is always kept, and what a branch or a loop gives.
#[derive(Debug, Clone)]
pub struct Recompute(How);

#[derive(Debug, Clone)]
enum How {
    Within(u64),
    Share(f64),
    Modules(String),
}

/// Whatever is computed inside of the modules whose paths fit a pattern is computed again: what enters them is kept.
/// This is `torch.utils.checkpoint` of each of these modules.
///
/// ```
/// use fx_nn::func::{Transform, checkpoint, parameters, split_joint, value_and_grad};
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// let block = || -> Result<_> { Ok(nn::Sequential::new().push(nn::Linear::new(4, 4)?).push(nn::GELU::new())) };
/// #[derive(Module)]
/// struct Net { h: nn::Sequential }
/// #[trace]
/// impl Net {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         let y: Tensor = self.h.forward(x)?;
///         y.sum(..)
///     }
/// }
/// let net = Net { h: nn::Sequential::new().push(block()?).push(block()?) };
/// let joint = value_and_grad(&net).wrt(parameters("**")).graph_module(&[spec![2, 4; F32]])?;
/// let split = split_joint(&joint, &checkpoint("h.*"))?;
/// // The result of the first block, where the second begins, and the sum.
/// assert_eq!(split.kept.len(), 2, "{:?}", split.kept);
/// # Ok::<(), Error>(())
/// ```
pub fn checkpoint(pattern: impl Into<String>) -> Recompute {
    Recompute(How::Modules(pattern.into()))
}

impl Recompute {
    /// As little as is needed so that the values of a run take at most so many bytes at once: those that are computed,
    /// without inputs and parameters. Which ones is a minimum cut between what it costs to compute them and the bytes of
    /// those that are kept. The bytes are those of the graph's values: compiled code joins some, and keeps fewer.
    pub fn within(bytes: u64) -> Self {
        Recompute(How::Within(bytes))
    }

    /// The same with a share of the bytes that there are if nothing is computed again.
    pub fn share(share: f64) -> Self {
        Recompute(How::Share(share))
    }

    /// What becomes of the values of a joint graph.
    pub(super) fn needed(&self, joint: &JointGraph) -> Result<Needed> {
        let nothing = vec![false; joint.nodes.len()];
        match &self.0 {
            How::Within(bytes) => within(joint, *bytes),
            How::Share(share) if share.is_nan() || *share <= 0.0 => Err(Error::msg(format_args!(
                "a share of the memory is above 0, not {share}"
            ))),
            How::Share(share) => within(joint, (joint.peak(&nothing) as f64 * share) as u64),
            How::Modules(pattern) => inside(joint, &PathPattern::new(pattern)?),
        }
    }

    /// Changes a joint graph so that values are computed again, each right before the backward part first reads it.
    ///
    /// # Errors
    /// Returns an error if it is no joint graph, or so few bytes are not enough.
    pub(crate) fn apply(&self, gm: &mut GraphModule) -> Result<()> {
        let joint = JointGraph::of(gm)?;
        let needed = self.needed(&joint)?;
        computed_again(gm, &joint, &needed)
    }
}

/// Changes a graph so that what is to be computed again is.
pub(super) fn computed_again(
    gm: &mut GraphModule,
    joint: &JointGraph,
    needed: &Needed,
) -> Result<()> {
    gm.apply(&ComputedAgain { joint, needed }).map(drop)
}

struct ComputedAgain<'j> {
    joint: &'j JointGraph,
    needed: &'j Needed,
}

impl Pass for ComputedAgain<'_> {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let before = gm.graph().clone();
        let mut edit = gm.graph_mut();
        let mut second: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let order = self.joint.order(&self.needed.again);
        let nodes = &self.joint.nodes;
        let mut pending: Vec<NodeId> = Vec::new();
        for (at, is_second) in order {
            let id = nodes[at as usize].id;
            if is_second {
                pending.push(id);
                continue;
            }
            // In front of the node that reads it first.
            let mut graph = edit.inserting_before(id)?;
            for again in pending.drain(..) {
                let copy = graph.node_copy(before.node(again)?, |input| {
                    Argument::Node(second.get(&input).copied().unwrap_or(input))
                })?;
                second.insert(again, copy);
            }
        }
        let behind = nodes.iter().filter(|node| !node.is_forward);
        let behind: FxHashSet<NodeId> = behind.map(|node| node.id).collect();
        for (first, copy) in &second {
            edit.node_mut(*first)?
                .replace_uses_with_filter(*copy, |user| behind.contains(&user.id()))?;
        }
        Ok(!second.is_empty())
    }
}

/// What is computed inside of modules, and read by nothing of the forward part outside of them.
fn inside(joint: &JointGraph, pattern: &PathPattern) -> Result<Needed> {
    let modules: Vec<Option<&str>> = joint
        .nodes
        .iter()
        .map(|node| {
            let mut around = node.modules.iter().rev();
            around
                .find(|path| pattern.matches(path))
                .map(|path| &**path)
        })
        .collect();
    let mut may_repeat: Vec<bool> = modules.iter().map(Option::is_some).collect();
    if !may_repeat.contains(&true) {
        return Err(Error::msg(format_args!(
            "no module of the graph has a path like `{pattern}`"
        )));
    }
    for (at, node) in joint.nodes.iter().enumerate() {
        for input in node.inputs.iter().filter(|_| node.is_forward) {
            if modules[*input as usize] != modules[at] {
                may_repeat[*input as usize] = false;
            }
        }
    }
    Ok(joint.needed(&may_repeat))
}

/// How many prices of a byte are tried, each twice the one before.
const PRICES: u32 = 32;

/// The cheapest choice with which at most so many bytes are there at once.
fn within(joint: &JointGraph, bytes: u64) -> Result<Needed> {
    let mut former = joint.needed(&vec![false; joint.nodes.len()]);
    if joint.peak(&former.again) <= bytes {
        return Ok(former);
    }
    // All values at once behind one another would take what keeping them takes: some are kept in any case.
    let (may_repeat, least) = segments::best(joint);
    if least > bytes {
        return Err(Error::msg(format_args!(
            "the values of a run cannot be within {bytes} bytes: {least} is the least that was found"
        )));
    }
    let mut candidates = candidates(joint, &may_repeat);
    for doubled in 0..PRICES {
        for (candidate, node) in candidates.iter_mut().zip(&joint.nodes) {
            // From an eighth of a picosecond for a byte.
            candidate.price = (node.bytes << doubled >> 3).min(MOST);
        }
        let again = cheapest(&candidates);
        let needed = joint.needed(&again);
        if joint.peak(&needed.again) <= bytes {
            return Ok(between(joint, &former, needed, bytes));
        }
        former = needed;
    }
    Ok(between(joint, &former, joint.needed(&may_repeat), bytes))
}

/// The values of the forward part, for a cut, of which some may be computed again or are kept for nothing.
fn candidates(joint: &JointGraph, may_repeat: &[bool]) -> Vec<Candidate> {
    let is_read = joint.read_behind();
    let is_free = |at: usize| {
        let node = &joint.nodes[at];
        !node.is_forward || node.is_given || node.is_result || !may_repeat[at]
    };
    let of = |at: usize| match is_free(at) {
        true => Candidate::default(),
        false => Candidate {
            cost: joint.nodes[at].cost.map(|cost| cost.min(MOST)),
            price: 0,
            inputs: {
                let inputs = joint.nodes[at].inputs.iter();
                inputs
                    .filter(|input| !is_free(**input as usize))
                    .copied()
                    .collect()
            },
            is_read: is_read[at],
        },
    };
    (0..joint.nodes.len()).map(of).collect()
}

/// Of what is kept in one choice and not in another that fits, as much as fits too: layers that are equal are equal in
/// both, and the choice is between all of them and none.
fn between(joint: &JointGraph, more: &Needed, fits: Needed, bytes: u64) -> Needed {
    let also: Vec<usize> = (0..joint.nodes.len())
        .filter(|at| more.kept[*at] && fits.again[*at])
        .collect();
    let with = |count: usize| {
        let mut may_repeat = fits.again.clone();
        for at in &also[also.len() - count..] {
            may_repeat[*at] = false;
        }
        joint.needed(&may_repeat)
    };
    let (mut low, mut high) = (0, also.len());
    while low < high {
        let middle = (low + high).div_ceil(2);
        match joint.peak(&with(middle).again) <= bytes {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    match low {
        0 => fits,
        count => with(count),
    }
}
