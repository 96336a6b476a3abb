//! `Rule` and `replace_pattern`: replace the matches of a pattern, one by one.
//!
//! Invariant: a match is replaced whole or not at all, and after an error the graph module is as it
//! was.

use std::fmt;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::found::Match;
use super::matcher::SubgraphMatcher;
use super::place::{Place, place};
use super::search::{Near, Search};
use super::subgraph::{IntoSubgraph, Subgraph};
use crate::error::{Error, ErrorKind, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::copy::Stamp;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::walk::TensorKind;
use crate::text::{count, free_name};
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// Finds a pattern in a graph module and replaces each match; returns the matches.
///
/// Pattern and replacement are [`traced!`](crate::traced) functions, graphs or graph modules; the
/// replacement takes the pattern's inputs in order and returns as many values. Of matches that
/// share nodes, the first in the graph's order is replaced. Modules and tensors that the
/// replacement names are added to the module. [`Rule`] has filters and other options.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::pattern::replace_pattern;
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
///
/// let mut gm = symbolic_trace(traced!(|x: Float| double(double(x)?)? + 1.0))?;
/// let matches = replace_pattern(&mut gm, traced!(|a: Float| double(a)), traced!(|a: Float| a + a))?;
/// assert_eq!(matches.len(), 2);
/// assert!(gm.code().contains("= (x + x)?;"));
/// assert_eq!(gm.forward::<f64>(1.5)?, 7.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the rule is wrong: another number of inputs or values, or a pattern that
/// [`SubgraphMatcher::new`] refuses. The graph module is then unchanged.
pub fn replace_pattern(
    gm: &mut GraphModule,
    pattern: impl IntoMatcher,
    replacement: impl IntoSubgraph,
) -> Result<Vec<Match>> {
    Rule::new(pattern, replacement)?.apply(gm)
}

/// What can be searched for: a [`SubgraphMatcher`], or what one is made of.
pub trait IntoMatcher {
    /// The matcher.
    ///
    /// # Errors
    /// Those of [`SubgraphMatcher::new`].
    fn into_matcher(self) -> Result<SubgraphMatcher>;
}

impl IntoMatcher for SubgraphMatcher {
    fn into_matcher(self) -> Result<SubgraphMatcher> {
        Ok(self)
    }
}

impl<T: IntoSubgraph> IntoMatcher for T {
    fn into_matcher(self) -> Result<SubgraphMatcher> {
        SubgraphMatcher::new(self)
    }
}

type Filter = Arc<dyn Fn(&GraphModule, &Match) -> bool + Send + Sync>;
type Compute = Arc<dyn Fn(&GraphModule, &Match) -> Result<GraphModule> + Send + Sync>;

#[derive(Clone)]
enum Replacement {
    Fixed(Arc<Subgraph>),
    Computed(Compute),
}

/// A pattern with its replacement, checked when it is made.
#[derive(Clone)]
pub struct Rule {
    name: Arc<str>,
    matcher: SubgraphMatcher,
    replacement: Replacement,
    filters: Vec<Filter>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({}: {:?})", self.name, self.matcher)
    }
}

/// A node's name and source line, for reports.
pub(super) type Named = (String, Option<String>);

/// What a rule did.
#[derive(Default)]
pub(super) struct Applied {
    pub matches: Vec<Match>,
    /// The names of the matches' first anchors, before they were replaced.
    pub anchors: Vec<Named>,
    pub near: Vec<(Named, Near)>,
}

fn named(gm: &GraphModule, id: NodeId) -> Named {
    let node = gm.graph().node(id);
    node.map_or_else(
        |_| Named::default(),
        |node| {
            let location = node.location().map(|l| format!("{}:{}", l.file, l.line));
            (node.name().to_string(), location)
        },
    )
}

impl Rule {
    /// A rule with a replacement that is the same for every match.
    ///
    /// # Errors
    /// Returns an error if either cannot be traced, the pattern is refused
    /// ([`SubgraphMatcher::new`]), or the replacement has another number of inputs or values.
    pub fn new(pattern: impl IntoMatcher, replacement: impl IntoSubgraph) -> Result<Self> {
        let matcher = pattern.into_matcher()?;
        let replacement = replacement.into_subgraph().map_err(in_replacement)?;
        check(&matcher, &replacement)?;
        Ok(Rule {
            name: "replace_pattern".into(),
            matcher,
            replacement: Replacement::Fixed(Arc::new(replacement)),
            filters: Vec::new(),
        })
    }

    /// A rule whose replacement is computed for each match.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::pattern::{Rule, SubgraphMatcher};
    /// #[wrap] fn scale(x: Float, by: f64) -> Result<Float> { x * by }
    ///
    /// let mut gm = symbolic_trace(traced!(|x: Float| scale(scale(x, 3.0)?, 0.5)))?;
    /// let pattern = SubgraphMatcher::new(traced!(|x: Float| scale(x, 1.0)))?.any_literal("scale", "by")?;
    /// // Each factor becomes a division by its inverse.
    /// let rule = Rule::computed(pattern, |gm, found| {
    ///     let node = found.node("scale").ok_or_else(|| Error::msg("it was found"))?;
    ///     let by = gm.graph().node(node)?.args()[1].to_value(&mut |_| Ok(Value::None))?;
    ///     let inverse = 1.0 / f64::from_value(by)?;
    ///     symbolic_trace(traced!(move |x: Float| x / inverse))
    /// })?;
    /// assert_eq!(rule.apply(&mut gm)?.len(), 2);
    /// assert_eq!(gm.forward::<f64>(4.0)?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the pattern is refused.
    pub fn computed(
        pattern: impl IntoMatcher,
        compute: impl Fn(&GraphModule, &Match) -> Result<GraphModule> + Send + Sync + 'static,
    ) -> Result<Self> {
        Ok(Rule {
            name: "replace_pattern".into(),
            matcher: pattern.into_matcher()?,
            replacement: Replacement::Computed(Arc::new(compute)),
            filters: Vec::new(),
        })
    }

    /// Names the rule: nodes that it makes remember the name, and reports show it.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Replaces only matches for which the filter holds; the nodes of a refused match stay free for
    /// others.
    #[must_use]
    pub fn filter(
        mut self,
        filter: impl Fn(&GraphModule, &Match) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its matcher.
    pub fn matcher(&self) -> &SubgraphMatcher {
        &self.matcher
    }

    /// Replaces every match, and returns the matches.
    ///
    /// # Errors
    /// Returns an error if a replacement cannot be computed or does not fit; the graph module is
    /// then unchanged.
    pub fn apply(&self, gm: &mut GraphModule) -> Result<Vec<Match>> {
        Ok(self.apply_and_explain(gm, false)?.matches)
    }

    pub(super) fn apply_and_explain(&self, gm: &mut GraphModule, explain: bool) -> Result<Applied> {
        let mut found = Vec::new();
        let mut search = Search::new(&self.matcher, gm.graph(), gm.attributes())?;
        let mut refused: Vec<Near> = Vec::new();
        search.near = explain.then(Vec::new);
        search.run(&mut |one| {
            let accepted = self.filters.iter().all(|filter| filter(gm, &one));
            if accepted {
                found.push(one);
            } else if explain && let Some(anchor) = one.anchors().next() {
                refused.push(Near {
                    anchor,
                    found: one.bound.len(),
                    why: "a filter refused it".to_string(),
                });
            }
            Ok(accepted)
        })?;
        let mut near = search.near.take().unwrap_or_default();
        near.extend(refused);
        if found.is_empty() && near.is_empty() {
            return Ok(Applied::default());
        }
        // Replaced nodes lose their names, so they are read first.
        let near = near.into_iter().map(|near| (named(gm, near.anchor), near));
        let near = near.collect();
        let mut anchors: FxHashMap<NodeId, Named> = FxHashMap::default();
        if explain {
            let ids = found.iter().filter_map(|one| one.anchors().next());
            anchors.extend(ids.map(|id| (id, named(gm, id))));
        }
        let matches = match found.is_empty() {
            true => found,
            false => self.replace_all(gm, found)?,
        };
        gm.fill_shapes();
        let ids = matches.iter().filter_map(|one| one.anchors().next());
        let anchors = ids.filter_map(|id| anchors.remove(&id)).collect();
        Ok(Applied {
            matches,
            anchors,
            near,
        })
    }

    fn replace_all(&self, gm: &mut GraphModule, found: Vec<Match>) -> Result<Vec<Match>> {
        let roles = self
            .matcher
            .graph()
            .nodes()
            .filter_map(|node| match node.op() {
                Op::Output => None,
                Op::Placeholder(_) => Some(Role::Input),
                Op::GetAttr(_) => Some(Role::Parameter),
                _ => Some(Role::Call),
            });
        let mut work = Work {
            rule: self,
            roles: roles.collect(),
            uses_returned: self.matcher.uses_returned(),
            replaced: Replaced {
                at: vec![NONE; gm.graph().index_bound()],
                values: Vec::new(),
            },
            called: FxHashSet::default(),
        };
        match &self.replacement {
            // It was checked when the rule was made: nothing fails once it is installed.
            Replacement::Fixed(fixed) => {
                let fixed = gm.edit(|gm| {
                    let mut fixed = Subgraph::clone(fixed);
                    work.install(gm, &mut fixed)?;
                    Ok(fixed)
                })?;
                work.run_fixed(gm, found, &fixed)
            }
            Replacement::Computed(compute) => gm.edit(|gm| work.run_computed(gm, found, compute)),
        }
    }
}

fn in_replacement(error: Error) -> Error {
    ErrorKind::Replacement(Box::new(error)).into()
}

/// Whether a replacement fits a pattern.
fn check(matcher: &SubgraphMatcher, replacement: &Subgraph) -> Result<()> {
    replacement.graph.lint().map_err(in_replacement)?;
    let inputs = replacement.graph.placeholders().count();
    if inputs != matcher.shape.inputs.len() {
        let names: Vec<&str> = matcher
            .shape
            .inputs
            .iter()
            .map(|at| matcher.shape.names[*at as usize].as_str())
            .collect();
        return Err(in_replacement(Error::msg(format_args!(
            "it has {}, and the pattern has {} ({}): take those it does not need too",
            count(inputs, "input"),
            names.len(),
            names.join(", ")
        ))));
    }
    let values = replacement.returned().map_err(in_replacement)?.values.len();
    if values != matcher.shape.returned.len() {
        return Err(in_replacement(Error::msg(format_args!(
            "it returns {values} values, and the pattern {}",
            matcher.shape.returned.len()
        ))));
    }
    Ok(())
}

/// The role of a node of a pattern in a replacement.
#[derive(Clone, Copy)]
enum Role {
    Input,
    Parameter,
    Call,
}

const NONE: u32 = u32::MAX;

/// The replacements of erased nodes.
struct Replaced {
    /// The place among the values, by the erased node's index.
    at: Vec<u32>,
    values: Vec<(NodeId, Argument)>,
}

impl Replaced {
    fn insert(&mut self, node: NodeId, value: Argument) {
        if let Some(at) = self.at.get_mut(node.index as usize) {
            *at = self.values.len() as u32;
            self.values.push((node, value));
        }
    }

    /// A new node may have the index of an erased one.
    fn get(&self, node: NodeId) -> Option<&Argument> {
        let at = *self.at.get(node.index as usize)?;
        let (gone, value) = self.values.get(at as usize)?;
        (*gone == node).then_some(value)
    }
}

/// What a replacement makes.
struct Made {
    /// What replaces the pattern's values.
    values: Vec<Argument>,
    /// Its nodes that replace no value: their origin is noted separately.
    inner: Vec<Argument>,
}

impl Made {
    fn by(replacement: &Subgraph) -> Result<Self> {
        let values = replacement.returned()?.values;
        let returned: FxHashSet<NodeId> = values.iter().filter_map(Argument::as_node).collect();
        let nodes = replacement.graph.nodes();
        let nodes = nodes.filter(|node| !matches!(node.op(), Op::Placeholder(_) | Op::Output));
        let inner = nodes
            .map(|node| node.id())
            .filter(|id| !returned.contains(id));
        let inner = inner.map(Argument::Node).collect();
        Ok(Made { values, inner })
    }
}

/// Replacements in progress.
struct Work<'r> {
    rule: &'r Rule,
    /// By place.
    roles: Vec<Role>,
    /// Whether the pattern itself uses what it returns.
    uses_returned: bool,
    /// The replacements of values that earlier matches returned.
    replaced: Replaced,
    /// Modules that replaced nodes called.
    called: FxHashSet<Arc<str>>,
}

impl Work<'_> {
    fn run_fixed(
        mut self,
        gm: &mut GraphModule,
        mut found: Vec<Match>,
        fixed: &Subgraph,
    ) -> Result<Vec<Match>> {
        let replacement = Made::by(fixed)?;
        let mut stamp = Stamp::new(&fixed.graph);
        let mut edit = gm.graph_mut();
        let mut graph = edit.in_pass(self.rule.name.clone());
        let mut result = Ok(());
        found.retain_mut(|one| {
            let replaced = match &result {
                Ok(()) => self.replace(&mut graph, one, &mut stamp, &replacement),
                Err(_) => Ok(false),
            };
            replaced.unwrap_or_else(|error| {
                result = Err(error);
                false
            })
        });
        result?;
        drop(graph);
        drop(edit);
        gm.graph_mut().remove_unnamed(self.called);
        Ok(found)
    }

    fn run_computed(
        mut self,
        gm: &mut GraphModule,
        found: Vec<Match>,
        compute: &Compute,
    ) -> Result<Vec<Match>> {
        let mut done = Vec::with_capacity(found.len());
        for mut one in found {
            let computed = self.computed(gm, &one, compute)?;
            let replacement = Made::by(&computed)?;
            let mut stamp = Stamp::new(&computed.graph);
            let mut edit = gm.graph_mut();
            let mut graph = edit.in_pass(self.rule.name.clone());
            if self.replace(&mut graph, &mut one, &mut stamp, &replacement)? {
                done.push(one);
            }
        }
        gm.graph_mut().remove_unnamed(self.called);
        Ok(done)
    }

    fn computed(
        &mut self,
        gm: &mut GraphModule,
        one: &Match,
        compute: &Compute,
    ) -> Result<Subgraph> {
        let blamed = |error: Error| match one.anchors().next().map(|id| gm.graph().node(id)) {
            Some(Ok(node)) => node.blame("replacing", error),
            _ => error,
        };
        let computed = compute(gm, one).and_then(|gm| gm.into_subgraph());
        let mut computed = computed
            .and_then(|computed| check(&self.rule.matcher, &computed).map(|()| computed))
            .map_err(blamed)?;
        self.install(gm, &mut computed)?;
        Ok(computed)
    }

    /// Adds what a replacement names to the module, and has the replacement name it there.
    fn install(&mut self, gm: &mut GraphModule, replacement: &mut Subgraph) -> Result<()> {
        let mut edit = gm.graph_mut();
        let (_, attributes) = edit.parts();
        let Subgraph {
            graph: copy,
            attributes: own,
        } = replacement;
        // Where the module has what the replacement names.
        let mut installed: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
        let mut renamed: Vec<(NodeId, Op)> = Vec::new();
        for node in copy.nodes() {
            let path = match node.op() {
                Op::CallModule(path) | Op::GetAttr(path) => path,
                _ => continue,
            };
            let place = match installed.get(path) {
                Some(place) => place.clone(),
                None => {
                    let place = self.bring(attributes, own, path)?;
                    installed.insert(path.clone(), place.clone());
                    place
                }
            };
            if place != *path {
                let op = match node.op() {
                    Op::CallModule(_) => Op::CallModule(place),
                    _ => Op::GetAttr(place),
                };
                renamed.push((node.id(), op));
            }
        }
        for (node, op) in renamed {
            copy.node_mut(node)?.write_op(op)?;
        }
        Ok(())
    }

    /// The path at which the module has what a replacement names: the same path if it is the same,
    /// else a free one.
    fn bring(
        &mut self,
        attributes: &mut Attributes,
        own: &Attributes,
        path: &Arc<str>,
    ) -> Result<Arc<str>> {
        let is_there = |attributes: &Attributes, path: &str| {
            attributes.modules.contains_key(path)
                || attributes.tensors.contains_key(path)
                || attributes.conflict(path).is_some()
        };
        let same = match (own.tensors.get(path), attributes.tensors.get(path)) {
            (Some((_, a)), Some((_, b))) => a.is_same_object(b),
            // A graph without attributes names what the module has.
            (None, there) => {
                !own.modules.contains_key(path)
                    && (there.is_some() || attributes.modules.contains_key(path))
            }
            _ => false,
        };
        if same {
            return Ok(path.clone());
        }
        let place: Arc<str> = free_name(path, |place| is_there(attributes, place)).into();
        if let Some(module) = own.modules.get(path) {
            attributes.modules.insert(place.clone(), module.clone());
        } else if let Some((kind, tensor)) = own.tensors.get(path) {
            let tensor: (TensorKind, Value) = (*kind, tensor.clone());
            attributes.tensors.insert(place.clone(), tensor);
        } else {
            return Err(in_replacement(Error::msg(format_args!(
                "it names `{path}`, which neither it nor the graph module has"
            ))));
        }
        Ok(place)
    }

    /// Replaces one match; `false` if an input depends on an output, so that nothing can replace
    /// the match.
    fn replace(
        &mut self,
        graph: &mut Graph,
        one: &mut Match,
        stamp: &mut Stamp<'_>,
        replacement: &Made,
    ) -> Result<bool> {
        type Ids = SmallVec<[NodeId; 8]>;
        let (mut calls, mut parameters) = (Ids::new(), Ids::new());
        for (role, bound) in self.roles.iter().zip(&one.bound) {
            if let Some(Argument::Node(id)) = bound {
                match role {
                    Role::Input => {}
                    Role::Parameter => parameters.push(*id),
                    Role::Call => calls.push(*id),
                }
            }
        }
        let outputs: Ids = one.anchors().collect();
        let inputs: SmallVec<[Argument; 4]> = one.inputs().map(|input| self.now(input)).collect();
        let mut needed = Ids::new();
        for input in &inputs {
            input.for_each_node(&mut |id| needed.push(id));
        }
        let Some(place) = place(graph, &calls, &outputs, &needed)? else {
            return Ok(false);
        };
        let scope = graph.enter_scope_of(outputs[0])?;
        let copied = match place {
            Place::After(node) => stamp.copy(&mut *graph.inserting_after(node)?, &inputs),
            Place::Before(node) => stamp.copy(&mut *graph.inserting_before(node)?, &inputs),
        };
        graph.leave_scope(scope);
        copied?;
        one.replacements = stamp.made().collect();
        let inner = replacement.inner.iter();
        let inner: Ids = inner.filter_map(|node| stamp.now(node).as_node()).collect();
        graph.note_made_from(&inner, &outputs);
        // Users inside are erased with the match; they come before its replacement.
        let inside: FxHashSet<NodeId> = match self.uses_returned {
            true => calls.iter().copied().collect(),
            false => FxHashSet::default(),
        };
        for (output, value) in outputs.iter().zip(&replacement.values) {
            let new = stamp.now(value);
            match &new {
                Argument::Node(new) if self.uses_returned => {
                    let mut output = graph.node_mut(*output)?;
                    output.replace_uses_with_filter(*new, |user| !inside.contains(&user.id()))?;
                }
                Argument::Node(new) => {
                    graph.node_mut(*output)?.give_uses_to(*new)?;
                }
                plain => graph.put_in_place_of(*output, plain)?,
            }
            self.replaced.insert(*output, new);
        }
        for id in calls.iter().rev() {
            if let Op::CallModule(path) = graph.node(*id)?.op() {
                self.called.insert(path.clone());
            }
            graph.erase_node(*id)?;
        }
        for id in parameters.iter().rev() {
            // A parameter that others use stays.
            if graph.node(*id)?.num_users() == 0 {
                graph.erase_node(*id)?;
            }
        }
        Ok(true)
    }

    /// What stands for a value now.
    fn now(&self, argument: &Argument) -> Argument {
        // An earlier match's result may have been the result of a still earlier one, also inside a
        // list.
        let mut now = argument.clone();
        loop {
            if let Argument::Node(id) = &now {
                match self.replaced.get(*id) {
                    Some(next) => now = next.clone(),
                    None => return now,
                }
                continue;
            }
            let mut gone = false;
            now = now.map_nodes(&mut |id| match self.replaced.get(id) {
                Some(next) => {
                    gone = true;
                    next.clone()
                }
                None => Argument::Node(id),
            });
            if !gone {
                return now;
            }
        }
    }
}
