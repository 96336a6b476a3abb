//! `SubgraphMatcher`: a pattern, checked when it is built, and what may stand for each of its
//! nodes.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::compare::{Literals, calls, same_call};
use super::found::Shape;
use super::subgraph::{IntoSubgraph, Subgraph};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::module::path_pattern::PathPattern;
use crate::value::handle::NodeId;

type LiteralTest = Arc<dyn Fn(&Argument) -> bool + Send + Sync>;
type ModuleTest = Arc<dyn Fn(&dyn Module) -> bool + Send + Sync>;

/// Which literals a parameter may have.
#[derive(Clone)]
enum LiteralRule {
    Any,
    Where(LiteralTest),
}

/// What may stand for a node of the pattern, beyond the node itself.
#[derive(Clone, Default)]
pub(super) struct NodeRule {
    /// Ops besides the node's own.
    alternatives: Vec<Op>,
    pub optional: bool,
    literals: Vec<(String, LiteralRule)>,
    module: Option<ModuleTest>,
    module_path: Option<PathPattern>,
}

impl NodeRule {
    /// Whether the node's own op alone decides which ops fit.
    pub fn is_plain(&self) -> bool {
        self.alternatives.is_empty() && self.module.is_none() && self.module_path.is_none()
    }

    /// Ops besides the node's own.
    pub fn alternatives(&self) -> &[Op] {
        &self.alternatives
    }

    /// The parameters whose literals have a rule.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.literals.iter().map(|(param, _)| param.as_str())
    }

    /// Which paths a module may have.
    pub fn module_path(&self) -> Option<&PathPattern> {
        self.module_path.as_ref()
    }
}

/// A pattern and how to search for it. Inputs of the pattern stand for anything; nodes are named as
/// the printed [`graph`](SubgraphMatcher::graph) of the pattern names them.
///
/// Ops are equal if they are one function, as function or as method; arguments are compared
/// parameter by parameter, with defaults; the first two arguments of a commutative op may be
/// swapped; modules are equal if they have the same type. It is not a match if values inside it, other
/// than parameters, are also used outside.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::pattern::SubgraphMatcher;
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
/// #[wrap] fn triple(x: Float) -> Result<Float> { x * 3.0 }
///
/// let gm = symbolic_trace(traced!(|x: Float, y: Float| (y + double(x)?)? * triple((y + double(y)?)?)?))?;
/// let pattern = traced!(|a: Float, b: Float| double(a)? + b);
/// let matches = SubgraphMatcher::new(pattern)?.find(&gm)?;
/// let names: Vec<String> = matches
///     .iter()
///     .map(|m| gm.graph().node(m.anchors().next().ok_or_else(|| Error::msg("one value is returned"))?))
///     .map(|node| Ok(node?.name().to_string()))
///     .collect::<Result<_>>()?;
/// // Of the second sum the pattern's two inputs would be one value: an input stands for a value of its own.
/// assert_eq!(names, ["add"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct SubgraphMatcher {
    pub(super) pattern: Subgraph,
    /// The pattern's nodes in order, without the output.
    pub(super) order: Vec<NodeId>,
    /// Where each node is in the order, by its index.
    pub(super) places: Vec<u32>,
    /// Returned nodes that no other node of the pattern uses.
    pub(super) anchors: Vec<u32>,
    /// By place, whether it is returned.
    pub(super) is_returned: Vec<bool>,
    pub(super) rules: Vec<NodeRule>,
    pub(super) shape: Arc<Shape>,
    pub(super) match_output: bool,
    pub(super) match_placeholder: bool,
    pub(super) remove_overlapping: bool,
    pub(super) ignore_literals: bool,
    budget: Option<u64>,
}

impl fmt::Debug for SubgraphMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SubgraphMatcher({})", self.pattern.graph)
    }
}

impl SubgraphMatcher {
    /// A matcher of a pattern.
    ///
    /// # Errors
    /// Returns an error if the pattern cannot be traced, is empty, has dead code or an unused
    /// input, returns something other than its own nodes, or has parts that share no value.
    pub fn new(pattern: impl IntoSubgraph) -> Result<Self> {
        let pattern = pattern.into_subgraph().map_err(in_pattern)?;
        if pattern.graph.is_empty() {
            return Err(in_pattern(Error::msg("it is empty")));
        }
        pattern.graph.lint().map_err(in_pattern)?;
        Self::checked(pattern).map_err(in_pattern)
    }

    fn checked(pattern: Subgraph) -> Result<Self> {
        let graph = &pattern.graph;
        let mut places = vec![u32::MAX; graph.index_bound()];
        let mut order = Vec::with_capacity(graph.len());
        let mut shape = Shape::default();
        for node in graph.nodes().filter(|node| *node.op() != Op::Output) {
            let place = order.len() as u32;
            places[node.index()] = place;
            order.push(node.id());
            let name = node.name().to_string();
            shape.by_name.insert(name.clone(), place);
            shape.names.push(name);
            if let Op::Placeholder(_) = node.op() {
                shape.inputs.push(place);
            }
        }
        let place_of = |id: NodeId| places[id.index as usize];
        let returned = pattern.returned()?;
        let mut is_returned = vec![false; order.len()];
        for value in &returned.values {
            let Some(id) = value.as_node() else {
                return Err(Error::msg(format_args!(
                    "it returns {value:?}, a literal: what is to be replaced is a node"
                )));
            };
            if shape.inputs.contains(&place_of(id)) {
                return Err(Error::msg(format_args!(
                    "it returns its input `{}` as it is, which every value would match",
                    graph.node(id)?.name()
                )));
            }
            shape.returned.push(place_of(id));
            is_returned[place_of(id) as usize] = true;
        }
        if shape.returned.is_empty() {
            return Err(Error::msg(
                "it returns nothing: there is nothing to replace",
            ));
        }
        for (name, id) in returned.named {
            shape.by_name.insert(name, place_of(id));
        }
        // Every node leads to a returned one.
        let mut used = is_returned.clone();
        for (place, id) in order.iter().enumerate().rev() {
            let node = graph.node(*id)?;
            if !used[place] {
                return Err(Error::msg(match node.op() {
                    Op::Placeholder(_) => {
                        format!("its input `{}` is not used: leave it out", node.name())
                    }
                    _ => format!(
                        "%{} is dead code: nothing that it returns needs it",
                        node.name()
                    ),
                }));
            }
            for input in node.all_input_nodes() {
                used[place_of(input.id()) as usize] = true;
            }
        }
        if let Some(apart) = disconnected(graph, &order, &places)? {
            return Err(Error::msg(format_args!(
                "%{apart} shares no value with the rest: look for the parts with patterns of their own"
            )));
        }
        let anchors = (0..order.len() as u32)
            .filter(|place| is_returned[*place as usize])
            .filter(|place| {
                let node = graph.node(order[*place as usize]);
                node.is_ok_and(|node| node.users().all(|user| *user.op() == Op::Output))
            })
            .collect();
        Ok(SubgraphMatcher {
            rules: vec![NodeRule::default(); order.len()],
            order,
            places,
            anchors,
            is_returned,
            shape: Arc::new(shape),
            pattern,
            match_output: false,
            match_placeholder: false,
            remove_overlapping: true,
            ignore_literals: false,
            budget: None,
        })
    }

    /// The pattern.
    pub fn graph(&self) -> &Graph {
        &self.pattern.graph
    }

    /// Whether the values that the pattern returns must be those that the graph returns.
    #[must_use]
    pub fn match_output(mut self, yes: bool) -> Self {
        self.match_output = yes;
        self
    }

    /// Whether the pattern's inputs stand only for inputs of the graph.
    #[must_use]
    pub fn match_placeholder(mut self, yes: bool) -> Self {
        self.match_placeholder = yes;
        self
    }

    /// Whether only the first, in the order of the graph, of matches that share nodes is kept; the
    /// default is yes. Without it there are as many as there are combinations of nodes that the
    /// pattern returns.
    #[must_use]
    pub fn remove_overlapping_matches(mut self, yes: bool) -> Self {
        self.remove_overlapping = yes;
        self
    }

    /// Whether all literals count as equal.
    #[must_use]
    pub fn ignore_literals(mut self, yes: bool) -> Self {
        self.ignore_literals = yes;
        self
    }

    /// Functions that may be called instead of the node's own.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node, or it calls no function.
    pub fn one_of(
        mut self,
        node: &str,
        functions: impl IntoIterator<Item = Function>,
    ) -> Result<Self> {
        let place = self.call(node)?;
        let alternatives = functions.into_iter().map(Op::CallFunction);
        self.rules[place].alternatives.extend(alternatives);
        Ok(self)
    }

    /// A node that may be absent: its first argument then stands for it.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node, its first argument is not a node, or the
    /// pattern returns it.
    pub fn optional(mut self, node: &str) -> Result<Self> {
        let place = self.call(node)?;
        let first = self
            .node_at(place as u32)?
            .args()
            .first()
            .and_then(Argument::as_node);
        if first.is_none() {
            return Err(Error::msg(format_args!(
                "%{node} has no value that could stand for it when it is absent"
            )));
        }
        if self.shape.returned.contains(&(place as u32)) {
            return Err(Error::msg(format_args!(
                "%{node} is returned: what is replaced has to be there"
            )));
        }
        self.rules[place].optional = true;
        Ok(self)
    }

    /// Any literal fits the parameter of a node.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node.
    pub fn any_literal(mut self, node: &str, param: &str) -> Result<Self> {
        let place = self.call(node)?;
        self.rules[place]
            .literals
            .push((param.to_string(), LiteralRule::Any));
        Ok(self)
    }

    /// Literals for which the predicate holds fit the parameter of a node.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node.
    pub fn literal_where(
        mut self,
        node: &str,
        param: &str,
        holds: impl Fn(&Argument) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let place = self.call(node)?;
        let rule = LiteralRule::Where(Arc::new(holds));
        self.rules[place].literals.push((param.to_string(), rule));
        Ok(self)
    }

    /// Modules of a type for which the predicate holds fit the node, which calls a module.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node, or it calls no module.
    pub fn module_where<M: Module>(
        mut self,
        node: &str,
        holds: impl Fn(&M) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let place = self.module_call(node)?;
        self.rules[place].module = Some(Arc::new(move |module: &dyn Module| {
            let any: &dyn Any = module;
            any.downcast_ref::<M>().is_some_and(&holds)
        }));
        Ok(self)
    }

    /// Modules of a type fit the node, which calls a module.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node, or it calls no module.
    pub fn module_type<M: Module>(self, node: &str) -> Result<Self> {
        self.module_where::<M>(node, |_| true)
    }

    /// Modules whose path matches a path pattern (`layers.*.attn`) fit the node, if their type fits
    /// too.
    ///
    /// # Errors
    /// Returns an error if the pattern has no such node, or it calls no module.
    pub fn module_path(mut self, node: &str, path: &str) -> Result<Self> {
        let place = self.module_call(node)?;
        self.rules[place].module_path = Some(PathPattern::new(path)?);
        Ok(self)
    }

    /// How much work a call may spend on ways that it abandons: comparisons of a node or an
    /// argument after a choice failed, and matches that share their first anchor with another one.
    /// The default is ten million plus a hundred per node of the graph.
    ///
    /// A pattern that is a tree, or has several outputs, takes time at most proportional to the
    /// pairs of its nodes and the graph's, if overlaps are removed. Patterns whose commutative
    /// operations share operands, and all overlapping matches, can take exponentially more: then
    /// the call returns an error, in bounded time and memory.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Graph;
    /// use fx_core::operator;
    /// use fx_core::pattern::SubgraphMatcher;
    /// // 40 users of one value: a thousand pairs of them.
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let users = (0..40).map(|i| graph.call_function(if i % 2 == 0 { operator::abs } else { operator::neg }, (x,), ()));
    /// let users = users.collect::<Result<Vec<_>>>()?;
    /// graph.output(users)?;
    /// let gm = GraphModule::new(Default::default(), graph, "Hub")?;
    ///
    /// let mut pair = Graph::new();
    /// let x = pair.placeholder("x")?;
    /// let first = pair.call_function(operator::abs, (x,), ())?;
    /// let second = pair.call_function(operator::neg, (x,), ())?;
    /// pair.output(vec![first, second])?;
    /// let pairs = SubgraphMatcher::new(&pair)?.remove_overlapping_matches(false);
    /// assert_eq!(pairs.find(&gm)?.len(), 400);
    /// let error = pairs.budget(1000).find(&gm).unwrap_err();
    /// assert!(error.to_string().contains("its budget of 1000 comparisons is spent"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn budget(mut self, comparisons: u64) -> Self {
        self.budget = Some(comparisons);
        self
    }

    /// The budget of a call on a graph.
    pub(super) fn budget_for(&self, graph: &Graph) -> u64 {
        let usual = 10_000_000 + 100 * graph.len() as u64;
        self.budget.unwrap_or(usual)
    }

    // ---- queries of the search -----------------------------------------------------------------

    pub(super) fn node_at(&self, place: u32) -> Result<NodeRef<'_>> {
        self.pattern.graph.node(self.order[place as usize])
    }

    pub(super) fn place_of(&self, id: NodeId) -> u32 {
        self.places[id.index as usize]
    }

    /// Whether the pattern itself uses what it returns.
    pub(super) fn uses_returned(&self) -> bool {
        let returned = self.shape.returned.iter();
        let mut users = returned.flat_map(|place| {
            let node = self.node_at(*place).ok();
            node.into_iter().flat_map(NodeRef::users)
        });
        users.any(|user| *user.op() != Op::Output)
    }

    /// Whether a node's op fits a place of the pattern.
    pub(super) fn op_fits(&self, place: u32, node: NodeRef<'_>, attributes: &Attributes) -> bool {
        let Ok(pattern) = self.node_at(place) else {
            return false;
        };
        let rule = &self.rules[place as usize];
        match (pattern.op(), node.op()) {
            (Op::GetAttr(_), Op::GetAttr(_)) => true,
            (Op::CallModule(path), Op::CallModule(other)) => {
                let fits_path = rule.module_path.as_ref().is_none_or(|p| p.matches(other));
                let Some(module) = attributes.modules.get(other) else {
                    return false;
                };
                let named = !self.knows_module(place) && rule.module_path.is_none();
                fits_path && self.module_fits(place, &**module) && (!named || path == other)
            }
            _ => {
                let mut alternatives = rule.alternatives.iter();
                same_call(pattern, node) || alternatives.any(|op| calls(op, node))
            }
        }
    }

    /// Whether the pattern says which modules fit a place, by a predicate or a sample.
    fn knows_module(&self, place: u32) -> bool {
        self.rules[place as usize].module.is_some() || self.sample(place).is_some()
    }

    /// The module that the pattern itself calls at a place.
    fn sample(&self, place: u32) -> Option<&dyn Module> {
        let Op::CallModule(path) = self.node_at(place).ok()?.op() else {
            return None;
        };
        let sample = self.pattern.attributes.modules.get(path)?;
        Some(&**sample)
    }

    /// Whether a module fits a place, as far as it depends on the module itself.
    pub(super) fn module_fits(&self, place: u32, module: &dyn Module) -> bool {
        match (&self.rules[place as usize].module, self.sample(place)) {
            (Some(holds), _) => holds(module),
            (None, Some(sample)) => type_of(sample) == type_of(module),
            (None, None) => true,
        }
    }

    /// Whether the literals of a place have their own rules.
    pub(super) fn has_literal_rules(&self, place: u32) -> bool {
        !self.rules[place as usize].literals.is_empty()
    }

    /// Which literals a parameter may have.
    pub(super) fn literals(&self, place: u32, param: &str) -> Literals<'_> {
        let rules = self.rules[place as usize].literals.iter();
        match rules.rev().find(|(name, _)| name == param) {
            Some((_, LiteralRule::Any)) => Literals::Any,
            Some((_, LiteralRule::Where(holds))) => Literals::Where(&**holds),
            None => Literals::Equal,
        }
    }

    // ---- names to places -----------------------------------------------------------------------

    /// The place of a node that calls something.
    fn call(&self, name: &str) -> Result<usize> {
        let place = self.shape.by_name.get(name).copied();
        let place = place.filter(|place| {
            let node = self.node_at(*place);
            node.is_ok_and(|node| !matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_)))
        });
        place.map(|place| place as usize).ok_or_else(|| {
            in_pattern(Error::unknown(
                name,
                format_args!(
                    "no call is named `{name}`; it has {}",
                    self.shape.names.join(", ")
                ),
            ))
        })
    }

    fn module_call(&self, name: &str) -> Result<usize> {
        let place = self.call(name)?;
        match self.node_at(place as u32)?.op() {
            Op::CallModule(_) => Ok(place),
            _ => Err(in_pattern(Error::msg(format_args!(
                "%{name} calls no module"
            )))),
        }
    }
}

fn in_pattern(error: Error) -> Error {
    ErrorKind::Pattern(Box::new(error)).into()
}

fn type_of(module: &dyn Module) -> TypeId {
    let any: &dyn Any = module;
    any.type_id()
}

/// The name of a node that is not connected with the first one, through any values.
fn disconnected(graph: &Graph, order: &[NodeId], places: &[u32]) -> Result<Option<String>> {
    let mut parents: Vec<u32> = (0..order.len() as u32).collect();
    fn root(parents: &mut [u32], mut at: u32) -> u32 {
        while parents[at as usize] != at {
            parents[at as usize] = parents[parents[at as usize] as usize];
            at = parents[at as usize];
        }
        at
    }
    let mut attributes: FxHashMap<&Op, u32> = FxHashMap::default();
    for (place, id) in order.iter().enumerate() {
        let node = graph.node(*id)?;
        let here = root(&mut parents, place as u32);
        if let Op::GetAttr(_) = node.op() {
            let same = *attributes.entry(node.op()).or_insert(here);
            let same = root(&mut parents, same);
            parents[same as usize] = here;
        }
        for input in node.all_input_nodes() {
            let (here, there) = (
                root(&mut parents, place as u32),
                root(&mut parents, places[input.index()]),
            );
            parents[there as usize] = here;
        }
    }
    let first = root(&mut parents, 0);
    for (place, id) in order.iter().enumerate() {
        if root(&mut parents, place as u32) != first {
            return Ok(Some(graph.node(*id)?.name().to_string()));
        }
    }
    Ok(None)
}
