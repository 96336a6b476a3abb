//! `Partitioner`: the fewest parts of a graph that hold all supported calls.
//!
//! Invariant: the parts do not need each other in a circle. The levels of nodes rise by one wherever
//! supported and unsupported calls meet and never fall along an edge, so a path that leaves a part
//! is on a higher level and cannot come back.

use std::borrow::Cow;

use super::support::{Metas, OperatorSupport, Support};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::call::Call;
use crate::region::ordered::Ordered;
use crate::region::region::Region;
use crate::value::handle::NodeId;

/// How often parts that are given up may change the others.
const ROUNDS: usize = 3;

/// Groups the supported calls of a graph into parts, each of which one call can replace. It takes
/// one walk over the graph, and makes as few parts as there can be: along every path, supported and
/// unsupported calls alternate as often as there are parts on it. The parts are always the same for
/// the same graph.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::backend::{Partitioner, functions};
/// use fx_core::operator;
/// let f = traced!(|x: Float, y: Float| {
///     let (a, b) = ((x + 1.0)?, (y + 2.0)?); // together, though neither needs the other
///     ((a * b)? + a)? + b
/// });
/// let gm = symbolic_trace(f)?;
/// let sums = functions([operator::add]);
/// let parts = Partitioner::new().partition(&gm, &sums)?;
/// let sizes: Vec<usize> = parts.iter().map(|part| part.nodes().len()).collect();
/// assert_eq!(sizes, [2, 2]);
/// let apart = Partitioner::new().horizontal(false).partition(&gm, &sums)?;
/// assert_eq!(apart.len(), 3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Partitioner {
    horizontal: bool,
    min_nodes: usize,
}

impl Default for Partitioner {
    fn default() -> Self {
        Self::new()
    }
}

impl Partitioner {
    /// Parts of one node or more, which may hold calls that do not need each other.
    pub fn new() -> Self {
        Partitioner {
            horizontal: true,
            min_nodes: 1,
        }
    }

    /// Whether a part may hold calls that do not need each other.
    #[must_use]
    pub fn horizontal(mut self, horizontal: bool) -> Self {
        self.horizontal = horizontal;
        self
    }

    /// The fewest calls that a part has; a call that is supported only [beside
    /// others](Support::IfFused) does not count.
    #[must_use]
    pub fn min_nodes(mut self, min_nodes: usize) -> Self {
        self.min_nodes = min_nodes;
        self
    }

    /// The parts, in the order of their first nodes.
    ///
    /// # Errors
    /// Returns an error if a node is not a call of the graph's modules.
    pub fn partition(
        &self,
        gm: &GraphModule,
        support: &(impl OperatorSupport + ?Sized),
    ) -> Result<Vec<Region>> {
        let supports = |call: &Call<'_>, metas: &Metas<'_>| support.supports(call, metas);
        let colours = colours(gm, supports, |_, _| ())?;
        Ok(self.regions(gm, colours, &|_| true))
    }

    /// The parts of calls with these colours that are worth it.
    pub(super) fn regions(
        &self,
        gm: &GraphModule,
        mut colours: Vec<Colour>,
        is_worth: &dyn Fn(&Region) -> bool,
    ) -> Vec<Region> {
        let ordered = gm.ordered();
        let is_kept = |region: &Region, colours: &[Colour]| {
            let counts = |id: &&NodeId| colours[id.index as usize] == Colour::Counts;
            region.nodes().iter().filter(counts).count() >= self.min_nodes.max(1)
                && !region.outputs().is_empty()
                && is_worth(region)
        };
        for _ in 0..ROUNDS {
            let parts = self.parts(gm.graph(), &colours, &ordered);
            let (kept, given_up): (Vec<Region>, Vec<Region>) = parts
                .into_iter()
                .partition(|region| is_kept(region, &colours));
            if given_up.is_empty() {
                return kept;
            }
            for id in given_up.iter().flat_map(Region::nodes) {
                colours[id.index as usize] = Colour::Left;
            }
        }
        // What the last round gave up stays out of the parts.
        let mut parts = self.parts(gm.graph(), &colours, &ordered);
        parts.retain(|region| is_kept(region, &colours));
        parts
    }

    fn parts(&self, graph: &Graph, colours: &[Colour], ordered: &Ordered) -> Vec<Region> {
        let mut levels = vec![0u32; graph.index_bound()];
        let mut groups = Groups::new(graph.index_bound());
        let mut last_ordered: Option<usize> = None;
        // Supported calls are on odd levels, all others on even ones. What is given is on none, but a tensor that a
        // call changes: its reads come before and after that call.
        let takes = |at: usize| colours[at].is_taken();
        let mut has_level = vec![false; graph.index_bound()];
        let mut inputs: Vec<usize> = Vec::new();
        for node in graph.nodes() {
            let at = node.index();
            has_level[at] = colours[at] != Colour::None || ordered.contains(node);
            if !has_level[at] {
                continue;
            }
            let is_taken = takes(at);
            inputs.clear();
            inputs.extend(node.all_input_nodes().map(|input| input.index()));
            if ordered.contains(node) {
                inputs.extend(last_ordered.replace(at));
            }
            inputs.retain(|input| has_level[*input]);
            let mut level = u32::from(is_taken);
            for input in &inputs {
                let rises = takes(*input) != is_taken;
                level = level.max(levels[*input] + u32::from(rises));
            }
            levels[at] = level;
            if is_taken {
                for input in inputs.iter().filter(|input| levels[**input] == level) {
                    groups.join(*input, at);
                }
            }
        }
        follow_readers(graph, colours, ordered, &mut levels, &mut groups);
        let mut part_of: Vec<Option<u32>> = vec![None; graph.index_bound()];
        let mut of_key: Vec<Option<u32>> = Vec::new();
        let mut parts = 0;
        for node in graph.nodes() {
            let at = node.index();
            if !takes(at) {
                continue;
            }
            let key = match self.horizontal {
                true => levels[at] as usize,
                false => groups.root(at),
            };
            if of_key.len() <= key {
                of_key.resize(key + 1, None);
            }
            part_of[at] = Some(*of_key[key].get_or_insert_with(|| {
                parts += 1;
                parts - 1
            }));
        }
        // A tensor that only one part reads goes with it, unless a call may change it.
        let is_tensor = |node: &NodeRef<'_>| matches!(node.op(), Op::GetAttr(_));
        for node in graph.nodes().filter(is_tensor) {
            if ordered.contains(node) {
                continue;
            }
            let mut users = node.users().map(|user| part_of[user.index()]);
            if let Some(part) = users.next()
                && users.all(|other| other == part)
            {
                part_of[node.index()] = part;
            }
        }
        Region::of_parts(graph, &part_of, parts as usize)
    }
}

/// Has calls that are supported with their readers stand beside these, which they wait for.
fn follow_readers(
    graph: &Graph,
    colours: &[Colour],
    ordered: &Ordered,
    levels: &mut [u32],
    groups: &mut Groups,
) {
    for node in graph.nodes().rev() {
        let at = node.index();
        if colours[at] != Colour::Follows || ordered.contains(node) {
            continue;
        }
        let readers = || node.users().map(NodeRef::index);
        let Some(first) = readers().min_by_key(|reader| levels[*reader]) else {
            continue;
        };
        if readers().all(|reader| colours[reader].is_taken()) && levels[first] >= levels[at] {
            levels[at] = levels[first];
            groups.join(at, first);
        }
    }
}

/// Gives each reader that is taken a call of its own of what is supported with its readers, and such readers and calls tensors
/// of their own.
///
/// # Errors
/// Returns an error if a node cannot be copied.
pub(super) fn part_from_readers(gm: &mut GraphModule, colours: &[Colour]) -> Result<()> {
    let is_taken = |node: NodeRef<'_>| colours.get(node.index()).is_some_and(|c| c.is_taken());
    let ordered = gm.ordered();
    let mut wanted: Vec<(NodeId, NodeId)> = Vec::new();
    let mut followers = Vec::new();
    for node in gm.graph().nodes() {
        let follows = |node: NodeRef<'_>| colours.get(node.index()) == Some(&Colour::Follows);
        if matches!(node.op(), Op::GetAttr(_)) && !ordered.contains(node) {
            let others = node.users().skip(1);
            let others = others.filter(|reader| is_taken(*reader) && !follows(*reader));
            wanted.extend(others.map(|reader| (node.id(), reader.id())));
        }
        if !follows(node) {
            continue;
        }
        followers.push(node.id());
        let mut readers = node.users().filter(|reader| is_taken(*reader));
        // The call itself stays with the first, if all are taken.
        if node.users().all(is_taken) {
            readers.next();
        }
        wanted.extend(readers.map(|reader| (node.id(), reader.id())));
    }
    let source = gm.graph().clone();
    let is_tensor =
        |input: &NodeRef<'_>| matches!(input.op(), Op::GetAttr(_)) && !ordered.contains(*input);
    let mut edit = gm.graph_mut();
    // A tensor that two parts read would be an input of both.
    let own_tensors = |edit: &mut Graph, id: NodeId, least: usize| -> Result<()> {
        let read: Vec<NodeId> = edit.node(id)?.all_input_nodes().map(NodeRef::id).collect();
        for tensor in read {
            let tensor = source.node(tensor)?;
            if !is_tensor(&tensor) || tensor.num_users() <= least {
                continue;
            }
            let mut at = edit.inserting_before(id)?;
            let own = at.node_copy(tensor, Argument::Node)?;
            drop(at);
            edit.node_mut(id)?.replace_input_with(tensor.id(), own)?;
        }
        Ok(())
    };
    for id in followers {
        own_tensors(&mut edit, id, 1)?;
    }
    for (id, reader) in wanted {
        let mut at = edit.inserting_before(reader)?;
        let of = source.node(id)?;
        let copy = at.node_copy(of, Argument::Node)?;
        drop(at);
        edit.node_mut(reader)?.replace_input_with(id, copy)?;
        own_tensors(&mut edit, copy, 0)?;
    }
    // Those of which all readers have their own.
    let tensors = source
        .nodes()
        .filter(is_tensor)
        .filter(|tensor| tensor.num_users() > 0);
    let tensors: Vec<NodeId> = tensors.map(NodeRef::id).collect();
    edit.erase_unused(&tensors)?;
    // Copies give what the calls gave: all that was known of nodes holds.
    for node in source.nodes() {
        if let Ok(mut same) = edit.node_mut(node.id()) {
            same.take_after(node, true);
        }
    }
    Ok(())
}

/// What is said of each call, by index; `left` gets those that are not supported, with the reason.
pub(super) fn colours(
    gm: &GraphModule,
    supports: impl Fn(&Call<'_>, &Metas<'_>) -> Support,
    mut left: impl FnMut(NodeRef<'_>, Cow<'static, str>),
) -> Result<Vec<Colour>> {
    let mut colours = vec![Colour::None; gm.graph().index_bound()];
    for node in gm.graph().nodes().filter(|node| node.op().is_call()) {
        let call = gm.call(node)?;
        let colour = &mut colours[node.index()];
        *colour = match supports(&call, &Metas::of(gm.graph(), node)) {
            Support::Yes => Colour::Counts,
            Support::IfFused => Colour::Joins,
            Support::WithReader => Colour::Follows,
            Support::No(reason) => {
                left(node, reason);
                Colour::Left
            }
        };
    }
    Ok(colours)
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// No call: an input, a tensor, the output.
    None,
    /// Supported.
    Counts,
    /// Supported beside others.
    Joins,
    /// Supported with what reads it.
    Follows,
    /// Not supported.
    Left,
}

impl Colour {
    /// Whether a part can have it.
    pub fn is_taken(self) -> bool {
        matches!(self, Colour::Counts | Colour::Joins | Colour::Follows)
    }
}

/// Sets of nodes that are joined, by index.
struct Groups(Vec<u32>);

impl Groups {
    fn new(count: usize) -> Self {
        Groups((0u32..).take(count).collect())
    }

    fn root(&mut self, of: usize) -> usize {
        let mut at = of;
        while self.0[at] as usize != at {
            let above = self.0[self.0[at] as usize];
            self.0[at] = above;
            at = above as usize;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let (first, second) = (a.min(b), a.max(b));
        self.0[second] = u32::try_from(first).unwrap_or(u32::MAX);
    }
}
