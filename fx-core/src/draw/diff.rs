//! `GraphDiff`: which nodes of two graphs are the same, and what is new, gone and changed.
//!
//! Invariant: a node has at most one partner.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::color::ColorBy;
use super::page::{Page, write};
use super::scene::{Change, Scene};
use super::state::differences;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::print::Template;
use crate::passes::structural_hash::node_hashes;
use crate::value::handle::NodeId;

/// The difference between two graph modules: made by [`GraphModule::diff`]. Printed, it has a line
/// per node that is new (`+`), gone (`-`) or changed (`-` and `+`); with `{:#}` in colours.
pub struct GraphDiff<'m> {
    before: &'m GraphModule,
    after: &'m GraphModule,
    graphs: Vec<Compared<'m>>,
}

/// Two graphs with the same path in their modules.
struct Compared<'m> {
    path: Arc<str>,
    /// The nodes of both, in an order that keeps both orders as far as they agree.
    nodes: Vec<Pair<'m>>,
    /// What differs in the module or the tensor that a later node names.
    state: FxHashMap<NodeId, Vec<String>>,
}

/// A node before and after.
#[derive(Clone, Copy)]
struct Pair<'m> {
    before: Option<NodeRef<'m>>,
    after: Option<NodeRef<'m>>,
    change: Change,
}

impl GraphModule {
    /// Compares the graph with a later one, and so the branches and loops in both. A node of the
    /// later graph is the same as one that has its name and operation; or else as one that passes
    /// made it from, or that computes the same under another name. The modules and tensors that nodes name are compared
    /// too, by their settings and elements: a call of a layer with other weights is changed, and its line says so.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let before = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let mut after = before.clone();
    /// let add = after.graph().find_name("add").map(|node| node.id());
    /// let add = add.ok_or_else(|| Error::msg("it adds"))?;
    /// after.graph_mut().node_mut(add)?.update_arg(1, 3.0)?;
    /// assert!(before.diff(&before.clone()).is_empty());
    /// assert_eq!(
    ///     before.diff(&after).to_string(),
    ///     "- %add = call_function[fx_core::operator::add](%mul, 1.0)\n\
    ///      + %add = call_function[fx_core::operator::add](%mul, 3.0)\n"
    /// );
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { scale: Scale }
    /// #[trace]
    /// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.scale.forward(x) } }
    ///
    /// let before = symbolic_trace(&Net { scale: Scale { by: 2.0 } })?;
    /// let mut after = before.clone();
    /// after.set_submodule("scale", Scale { by: 3.0 })?;
    /// let diff = before.diff(&after);
    /// assert_eq!(diff.counts(), [0, 0, 1]);
    /// assert!(diff.to_string().ends_with("+ %scale = call_module[scale](%x)  with another by\n"), "{diff}");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn diff<'m>(&'m self, later: &'m GraphModule) -> GraphDiff<'m> {
        let before = self.with_sides();
        let after = later.with_sides();
        let mut at: FxHashMap<&str, &GraphModule> = FxHashMap::default();
        at.extend(before.iter().map(|(path, gm)| (path.as_str(), *gm)));
        let mut graphs = Vec::with_capacity(after.len());
        for (path, after) in &after {
            let before = at.remove(path.as_str());
            graphs.push(Compared::of(path, before, Some(after)));
        }
        // Only before: in the order in which they were.
        for (path, gm) in &before {
            if at.contains_key(path.as_str()) {
                graphs.push(Compared::of(path, Some(gm), None));
            }
        }
        GraphDiff {
            before: self,
            after: later,
            graphs,
        }
    }
}

impl GraphDiff<'_> {
    /// Whether the graphs are the same.
    pub fn is_empty(&self) -> bool {
        let mut nodes = self.graphs.iter().flat_map(|graph| &graph.nodes);
        nodes.all(|pair| pair.change == Change::Same)
    }

    /// How many nodes are new, gone and changed.
    pub fn counts(&self) -> [usize; 3] {
        [Change::New, Change::Gone, Change::Changed].map(|change| {
            let nodes = self.graphs.iter().flat_map(|graph| &graph.nodes);
            nodes.filter(|pair| pair.change == change).count()
        })
    }

    /// Writes both graphs as one page: what is gone, new and changed has a colour, and modules in
    /// which all is the same are closed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn to_html(&self, path: impl AsRef<Path>) -> Result<()> {
        write(path.as_ref(), &self.html()?)
    }

    /// The page of [`to_html`](GraphDiff::to_html) as text.
    ///
    /// # Errors
    /// Returns an error if the page is too large.
    pub fn html(&self) -> Result<String> {
        let page = Page::new()
            .color_by("difference", ColorBy::change())
            .table(self);
        page.html_of(&self.scene(), self.after.class_name())
    }

    /// The nodes of both graphs, each pair as one.
    fn scene(&self) -> Scene<'_> {
        let mut scene = Scene::new(self.after);
        let mut left = Vec::new();
        let mut changes: FxHashMap<(Arc<str>, NodeId), Change> = FxHashMap::default();
        let mut items: FxHashMap<NodeId, u32> = FxHashMap::default();
        let root: Arc<str> = "".into();
        for (number, graph) in self.graphs.iter().enumerate() {
            for pair in &graph.nodes {
                let (node, module) = match (pair.after, pair.before) {
                    (Some(node), _) => (node, self.after),
                    (None, Some(node)) => (node, self.before),
                    (None, None) => continue,
                };
                if number > 0 {
                    changes.insert((graph.path.clone(), node.id()), pair.change);
                    continue;
                }
                let inputs = node.all_input_nodes();
                let inputs = inputs.filter_map(|input| items.get(&input.id()).copied());
                let inputs = inputs.collect();
                let group = scene.group_of(node, 0);
                let item = scene.push_item(node, group, &root, inputs);
                scene.items[item as usize].change = pair.change;
                items.extend(
                    [pair.before, pair.after]
                        .into_iter()
                        .flatten()
                        .map(|n| (n.id(), item)),
                );
                scene.open_inner(module, item, &mut left);
            }
        }
        scene.add_inner(left);
        for item in &mut scene.items {
            let key = (item.inside.clone(), item.node.id());
            item.change = changes.get(&key).copied().unwrap_or(item.change);
        }
        scene.finish();
        scene
    }
}

impl<'m> Compared<'m> {
    fn of(path: &str, before: Option<&'m GraphModule>, after: Option<&'m GraphModule>) -> Self {
        let matched = match (before, after) {
            (Some(before), Some(after)) => partners(before, after),
            _ => FxHashMap::default(),
        };
        let is_matched: FxHashSet<NodeId> = matched.values().copied().collect();
        let nodes = |gm: Option<&'m GraphModule>| gm.into_iter().flat_map(|gm| gm.graph().nodes());
        let mut left = nodes(before).peekable();
        let mut pairs = Vec::new();
        let mut state: FxHashMap<NodeId, Vec<String>> = FxHashMap::default();
        let gone = |node: NodeRef<'m>| Pair {
            before: Some(node),
            after: None,
            change: Change::Gone,
        };
        for node in nodes(after) {
            let partner = matched.get(&node.id());
            let partner = partner
                .zip(before)
                .and_then(|(id, gm)| gm.graph().node(*id).ok());
            if let Some(partner) = partner {
                // What is gone stands where it stood.
                while let Some(old) = left.next_if(|old| old.order_key() < partner.order_key()) {
                    if !is_matched.contains(&old.id()) {
                        pairs.push(gone(old));
                    }
                }
            }
            let mut change = match partner {
                None => Change::New,
                Some(old) if is_same(old, node, &matched) => Change::Same,
                Some(_) => Change::Changed,
            };
            if let (Some(before), Some(old), Some(after)) = (before, partner, after) {
                let differences = differences((before, old), (after, node));
                if !differences.is_empty() {
                    change = Change::Changed;
                    state.insert(node.id(), differences);
                }
            }
            pairs.push(Pair {
                before: partner,
                after: Some(node),
                change,
            });
        }
        let rest = left.filter(|old| !is_matched.contains(&old.id()));
        pairs.extend(rest.map(gone));
        Compared {
            path: path.into(),
            nodes: pairs,
            state,
        }
    }
}

/// The node before, for each node after that has one.
fn partners(before: &GraphModule, after: &GraphModule) -> FxHashMap<NodeId, NodeId> {
    let (old, new) = (before.graph(), after.graph());
    let (_, old_hashes) = node_hashes(old, &before.ordered());
    let (_, new_hashes) = node_hashes(new, &after.ordered());
    let old_hash = |id: NodeId| old_hashes[id.index as usize];
    let new_hash = |id: NodeId| new_hashes[id.index as usize];
    let mut found = Partners::default();
    let named = |node: NodeRef<'_>| old.find_name(&node.name().to_string());
    for node in new.nodes() {
        if let Some(one) = named(node).filter(|one| one.op() == node.op()) {
            found.join(node.id(), one.id());
        }
    }
    for node in new.nodes() {
        let made_from = node
            .sources()
            .iter()
            .rev()
            .flat_map(|source| source.from.iter().rev());
        for name in made_from {
            if let Some(one) = old.find_name(name) {
                // A name that both graphs have is that of the same node.
                let is_there = new
                    .find_name(name)
                    .is_some_and(|same| same.id() != node.id());
                if !is_there && one.op().opcode() == node.op().opcode() {
                    found.join(node.id(), one.id());
                }
            }
        }
    }
    let mut by_hash: FxHashMap<[u64; 2], Vec<NodeId>> = FxHashMap::default();
    for node in old.nodes().filter(|node| !found.taken.contains(&node.id())) {
        by_hash
            .entry(old_hash(node.id()))
            .or_default()
            .push(node.id());
    }
    by_hash.values_mut().for_each(|nodes| nodes.reverse());
    for node in new.nodes() {
        if found.of.contains_key(&node.id()) {
            continue;
        }
        let same = by_hash.get_mut(&new_hash(node.id()));
        if let Some(same) = same.and_then(Vec::pop) {
            found.join(node.id(), same);
        }
    }
    // What keeps its name with another target was changed in place.
    for node in new.nodes() {
        if let Some(one) = named(node) {
            found.join(node.id(), one.id());
        }
    }
    found.of
}

#[derive(Default)]
struct Partners {
    of: FxHashMap<NodeId, NodeId>,
    taken: FxHashSet<NodeId>,
}

impl Partners {
    /// Joins two nodes, unless one of them has a partner.
    fn join(&mut self, new: NodeId, old: NodeId) {
        if !self.of.contains_key(&new) && self.taken.insert(old) {
            self.of.insert(new, old);
        }
    }
}

/// Whether two nodes do the same with the same.
fn is_same(old: NodeRef<'_>, new: NodeRef<'_>, partners: &FxHashMap<NodeId, NodeId>) -> bool {
    fn inputs(node: NodeRef<'_>) -> Vec<NodeId> {
        let mut found = Vec::new();
        let kwargs = node.kwargs().iter().map(|(_, argument)| argument);
        let arguments = node.args().iter().chain(kwargs);
        arguments.for_each(|argument: &Argument| argument.for_each_node(&mut |id| found.push(id)));
        found
    }
    let (of_old, of_new) = (inputs(old), inputs(new));
    old.op() == new.op()
        && of_old.len() == of_new.len()
        && of_old
            .iter()
            .zip(&of_new)
            .all(|(old, new)| partners.get(new) == Some(old))
        && Template(old).to_string() == Template(new).to_string()
}

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";

impl fmt::Display for GraphDiff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for graph in &self.graphs {
            let changed = graph
                .nodes
                .iter()
                .filter(|pair| pair.change != Change::Same);
            for (at, pair) in changed.enumerate() {
                if at == 0 && !graph.path.is_empty() {
                    writeln!(f, "@@ {}", graph.path)?;
                }
                let state = pair.after.and_then(|node| graph.state.get(&node.id()));
                let state = state.map_or(&[][..], Vec::as_slice);
                let sides = [
                    ('-', RED, pair.before, &[][..]),
                    ('+', GREEN, pair.after, state),
                ];
                for (sign, color, node, state) in sides {
                    let Some(node) = node else {
                        continue;
                    };
                    let line = Line(node, state);
                    match f.alternate() {
                        true => writeln!(f, "{color}{sign} {line}{PLAIN}")?,
                        false => writeln!(f, "{sign} {line}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// A node as a line of a difference, with what differs in what it names.
struct Line<'g>(NodeRef<'g>, &'g [String]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.0;
        write!(
            f,
            "%{} = {}[{}]",
            node.name(),
            node.opcode().name(),
            node.target()
        )?;
        Template(node).fmt_with(f, Some(node.graph()))?;
        match self.1 {
            [] => Ok(()),
            state => write!(f, "  with another {}", state.join(", ")),
        }
    }
}
