//! Branches and loops inside a graph module: the results and operands that nobody needs go.
//!
//! Invariant: a call of a region and its sides agree on what is given and taken.

use rustc_hash::{FxHashMap, FxHashSet};

use super::GraphModule;
use super::parts::{for_each_graph_of, graphs_of};
use crate::error::Result;
use crate::ir::argument::{Args, Argument};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::within;
use crate::value::handle::NodeId;

/// A region that one node calls.
struct Called {
    node: NodeId,
    /// Where its module is among the modules.
    at: usize,
    /// Whether it is a loop, whose results are carried from turn to turn behind whether there is
    /// another one.
    is_loop: bool,
}

impl GraphModule {
    /// Removes the results of branches and loops that nobody uses. Returns how many there were.
    pub(super) fn drop_unused_results(&mut self) -> Result<usize> {
        let mut dropped = 0;
        for called in self.called_regions() {
            let Some((kept, count)) = self.needed_results(&called) else {
                continue;
            };
            dropped += count - kept.len();
            let skipped = usize::from(called.is_loop);
            self.change_sides(&called, |graph| {
                let results = graph.results().to_vec();
                let go = results.iter().take(skipped).cloned();
                let kept_results = kept.iter().map(|at| results[at + skipped].clone());
                let left: Vec<Argument> = go.chain(kept_results).collect();
                let result = match (<[Argument; 1]>::try_from(left), called.is_loop) {
                    (Ok([one]), false) => one,
                    (Ok(one), true) => Argument::Tuple(one.to_vec().into()),
                    (Err(several), _) => Argument::Tuple(several.into()),
                };
                if let Some(output) = graph.output_node().map(|node| node.id()) {
                    graph.node_mut(output)?.set_args(vec![result])?;
                }
                Ok(())
            })?;
            if called.is_loop {
                // What only the dropped results read goes; then their inputs have no users.
                self.change_sides(&called, |graph| {
                    let inputs: Vec<NodeId> = graph.placeholders().map(|node| node.id()).collect();
                    graph.eliminate_dead_code()?;
                    for at in (0..count)
                        .rev()
                        .filter(|at| kept.binary_search(at).is_err())
                    {
                        graph.erase_node(inputs[at])?;
                    }
                    Ok(())
                })?;
                self.keep_operands(called.node, |at| {
                    at >= count || kept.binary_search(&at).is_ok()
                })?;
            }
            self.renumber(called.node, &kept)?;
        }
        Ok(dropped)
    }

    /// Removes the operands of branches and loops that no side reads.
    pub(super) fn drop_unused_operands(&mut self) -> Result<bool> {
        let mut any = false;
        for called in self.called_regions() {
            let Some((_, module)) = self.attributes.modules.get_index(called.at) else {
                continue;
            };
            let sides = graphs_of(&**module);
            let mut unused: Option<FxHashSet<usize>> = None;
            for (_, side) in &sides {
                let carried = match called.is_loop {
                    true => side.graph.results().len().saturating_sub(1),
                    false => 0,
                };
                let inputs = side.graph.placeholders().enumerate().skip(carried);
                let here = inputs.filter(|(_, node)| node.num_users() == 0);
                let here: FxHashSet<usize> = here.map(|(at, _)| at).collect();
                unused = Some(match unused {
                    None => here,
                    Some(before) => &before & &here,
                });
            }
            let unused = unused.unwrap_or_default();
            if unused.is_empty() {
                continue;
            }
            self.change_sides(&called, |graph| {
                let inputs: Vec<NodeId> = graph.placeholders().map(|node| node.id()).collect();
                unused
                    .iter()
                    .try_for_each(|at| graph.erase_node(inputs[*at]))
            })?;
            self.keep_operands(called.node, |at| !unused.contains(&at))?;
            any = true;
        }
        Ok(any)
    }

    /// Changes the sides of the branches and loops that the module holds, each by itself: `change`
    /// gets its path.
    pub(crate) fn for_each_side(
        &mut self,
        mut change: impl FnMut(&str, &mut GraphModule) -> Result<()>,
    ) -> Result<()> {
        for at in 0..self.attributes.modules.len() {
            let Some((path, module)) = self.attributes.modules.get_index(at) else {
                continue;
            };
            if module.graph_names().is_empty() {
                continue;
            }
            let path = path.clone();
            if let Some((_, module)) = self.attributes.modules.lend(at) {
                for_each_graph_of(&mut **module, |name, side| {
                    change(&within(&path, name), side)
                })?;
                module.graphs_changed();
            }
        }
        Ok(())
    }

    /// The module itself, at an empty path, and the sides of the branches and loops in it, by path;
    /// outer ones come first.
    pub(crate) fn with_sides(&self) -> Vec<(String, &GraphModule)> {
        let mut found: Vec<(String, &GraphModule)> = vec![(String::new(), self)];
        let mut next = 0;
        while let Some((around, module)) = found.get(next) {
            let mut inside = Vec::new();
            for (path, called) in &module.attributes.modules {
                if !called.graph_names().is_empty() {
                    let sides = graphs_of(&**called).into_iter();
                    let path = within(around, path);
                    inside.extend(sides.map(|(name, side)| (within(&path, name), side)));
                }
            }
            found.extend(inside);
            next += 1;
        }
        found
    }

    /// Sets entries of nodes, of sides too: `metas_of` gives those of a graph.
    pub(crate) fn set_metas(
        &mut self,
        metas_of: &mut dyn FnMut(&Graph) -> Vec<(NodeId, ValueMeta)>,
    ) -> Result<()> {
        let mut graph = self.graph_mut();
        for (node, meta) in metas_of(&graph) {
            graph.node_mut(node)?.set_meta(meta);
        }
        drop(graph);
        self.for_each_side(|_, side| side.set_metas(metas_of))
    }

    /// The regions that exactly one node calls.
    fn called_regions(&self) -> Vec<Called> {
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut several: FxHashSet<usize> = FxHashSet::default();
        let mut called = Vec::new();
        for node in self.graph.nodes() {
            let Op::CallModule(path) = node.op() else {
                continue;
            };
            let Some((at, _, module)) = self.attributes.modules.get_full(path) else {
                continue;
            };
            let is_loop = match module.graph_names() {
                ["then", "otherwise"] => false,
                ["body"] => true,
                _ => continue,
            };
            if !seen.insert(at) {
                several.insert(at);
            }
            let node = node.id();
            called.push(Called { node, at, is_loop });
        }
        called.retain(|called| !several.contains(&called.at));
        called
    }

    /// The results of a region that are needed, and how many there are; `None` if all of them are.
    fn needed_results(&self, called: &Called) -> Option<(Vec<usize>, usize)> {
        let node = self.graph.node(called.node).ok()?;
        let (_, module) = self.attributes.modules.get_index(called.at)?;
        let (_, side) = graphs_of(&**module).into_iter().next()?;
        let results = side.graph.results();
        let results = &results[usize::from(called.is_loop).min(results.len())..];
        let count = results.len();
        let mut needed: Vec<bool> = vec![false; count];
        if count < 2 {
            return None;
        }
        for user in node.users() {
            *needed.get_mut(item(user)?)? = true;
        }
        if called.is_loop {
            add_carried(&side.graph, &mut needed);
        }
        // Something is given, since a call has a value.
        if needed.iter().all(|needed| !needed) {
            needed[0] = true;
            if called.is_loop {
                add_carried(&side.graph, &mut needed);
            }
        }
        let kept: Vec<usize> = (0..count).filter(|at| needed[*at]).collect();
        (kept.len() < count).then_some((kept, count))
    }

    /// Changes the graph of each side of a region.
    fn change_sides(
        &mut self,
        called: &Called,
        mut change: impl FnMut(&mut Graph) -> Result<()>,
    ) -> Result<()> {
        if let Some((_, module)) = self.attributes.modules.lend(called.at) {
            for_each_graph_of(&mut **module, |_, side| change(&mut side.graph_mut()))?;
            module.graphs_changed();
        }
        Ok(())
    }

    /// Keeps the operands of a call at these positions behind its condition.
    fn keep_operands(&mut self, node: NodeId, keeps: impl Fn(usize) -> bool) -> Result<()> {
        let mut graph = self.graph_mut();
        let mut node = graph.node_mut(node)?;
        let args = node.as_ref().args().iter().enumerate();
        let kept = args.filter(|(at, _)| at.checked_sub(1).is_none_or(&keeps));
        let kept: Args = kept.map(|(_, arg)| arg.clone()).collect();
        node.set_args(kept)
    }

    /// The items of a call that now gives these results alone.
    fn renumber(&mut self, node: NodeId, kept: &[usize]) -> Result<()> {
        let mut graph = self.graph_mut();
        let items = graph.node(node)?.users();
        let items: Vec<(NodeId, usize)> = items
            .filter_map(|user| Some((user.id(), item(user)?)))
            .collect();
        for (user, at) in items {
            match (kept, kept.binary_search(&at)) {
                ([_], _) => {
                    graph.node_mut(user)?.replace_all_uses_with(node)?;
                    graph.erase_node(user)?;
                }
                (_, Ok(now)) => {
                    let now = Argument::Int(i64::try_from(now).unwrap_or(i64::MAX));
                    graph.node_mut(user)?.update_arg(1, now)?;
                }
                (_, Err(_)) => {}
            }
        }
        Ok(())
    }
}

/// Adds the carried values that a turn needs for those that are needed, and for whether there is
/// another turn.
fn add_carried(body: &Graph, needed: &mut [bool]) {
    let results = body.results();
    let inputs = body.placeholders().enumerate();
    let inputs: FxHashMap<NodeId, usize> = inputs.map(|(at, node)| (node.id(), at)).collect();
    let mut reached: FxHashSet<NodeId> = FxHashSet::default();
    let mut left: Vec<NodeId> = Vec::new();
    let reach = |arg: &Argument, left: &mut Vec<NodeId>| arg.for_each_node(&mut |id| left.push(id));
    if let Some(go) = results.first() {
        reach(go, &mut left);
    }
    for (result, _) in results
        .iter()
        .skip(1)
        .zip(&*needed)
        .filter(|(_, needed)| **needed)
    {
        reach(result, &mut left);
    }
    // What has an effect is kept, and what it reads.
    let impure = body.nodes().filter(|node| match node.op() {
        Op::Placeholder(_) | Op::Output => false,
        Op::CallModule(_) => true,
        _ => node.is_impure(),
    });
    left.extend(impure.map(|node| node.id()));
    while let Some(id) = left.pop() {
        if !reached.insert(id) {
            continue;
        }
        if let Some(&at) = inputs.get(&id)
            && at < needed.len()
            && !std::mem::replace(&mut needed[at], true)
            && let Some(result) = results.get(at + 1)
        {
            reach(result, &mut left);
        }
        if let Ok(node) = body.node(id) {
            left.extend(node.all_input_nodes().map(|input| input.id()));
        }
    }
}

/// Which item of its first argument a node takes.
fn item(node: NodeRef<'_>) -> Option<usize> {
    match (node.op(), node.args()) {
        (Op::CallFunction(function), [_, Argument::Int(at)]) if *function == operator::getitem => {
            usize::try_from(*at).ok()
        }
        _ => None,
    }
}
