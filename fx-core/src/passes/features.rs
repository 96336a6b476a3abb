//! Feature extractors: a model as a module that returns the values of chosen nodes, as torchvision's
//! `create_feature_extractor` does.
//!
//! Invariant: the model that is traced is a copy, so that neither its modes nor its layers change.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::node_names::node_names;
use crate::error::{Error, Result};
use crate::graph_module::{DualGraphModule, GraphModule};
use crate::ir::argument::Argument;
use crate::ir::function::Effects;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::call::Call;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::walk::{TensorKind, Visitor, walk};
use crate::text::{did_you_mean, free_name};
use crate::trace::root::Trace;
use crate::value::handle::NodeId;
use crate::value::object::Object;

/// A node of which a feature extractor returns the value, and the name of that value in its result:
/// made of one name for both, or of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReturnNode {
    /// The node's name, or the path of a module.
    pub node: String,
    /// The value's name in the result.
    pub output: String,
}

impl From<&str> for ReturnNode {
    fn from(name: &str) -> Self {
        ReturnNode::from((name, name))
    }
}

impl From<String> for ReturnNode {
    fn from(name: String) -> Self {
        ReturnNode::from((name.clone(), name))
    }
}

impl<N: Into<String>, O: Into<String>> From<(N, O)> for ReturnNode {
    fn from((node, output): (N, O)) -> Self {
        ReturnNode {
            node: node.into(),
            output: output.into(),
        }
    }
}

/// A module of a model that returns the values of chosen nodes as a dict: torchvision's
/// `create_feature_extractor`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::create_feature_extractor;
/// # #[derive(Module)] struct Scale { by: f64 }
/// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
/// #[derive(Module)]
/// struct Block { scale: Scale }
/// #[trace]
/// impl Block { fn forward(&self, x: Float) -> Result<Float> { self.scale.forward(x)? + 1.0 } }
/// #[derive(Module)]
/// struct Net { block: Block, head: Scale }
/// #[trace]
/// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.head.forward(self.block.forward(x)?) } }
///
/// let net = Net { block: Block { scale: Scale { by: 2.0 } }, head: Scale { by: 10.0 } };
/// let extractor = create_feature_extractor(&net, [("block.scale", "scaled"), ("block", "features")])?;
/// let found: IndexMap<String, f64> = extractor.forward(3.0)?;
/// assert_eq!(found["scaled"], 6.0);
/// assert_eq!(found["features"], 7.0);
/// // `head` is in neither of the graphs, so it is gone.
/// assert!(extractor.graph_module().submodule("head").is_err());
///
/// let error = create_feature_extractor(&net, ["block.scal"]).unwrap_err();
/// assert!(error.to_string().contains("did you mean `block.scale`?"));
/// # Ok::<(), Error>(())
/// ```
///
/// A node's name is the path of the module around it and its operation, as in `layer1.0.add`; what a
/// module repeats is numbered, as in `layer1.0.relu_1`. A node that calls a layer has the layer's
/// path. The path of a module that is traced through means the last node in it. A number at the end
/// of a layer's path counts as such a number, too: of two layers `ln_1` and `ln_2`, the first one is
/// `ln`. [`get_graph_node_names`] lists all names.
///
/// The model is traced in both modes; the result starts in the model's mode and changes graphs with
/// [`train`](ComponentExt::train) and [`eval`](ComponentExt::eval). Its tensors are the model's. The
/// dict is in the order of the nodes. What these nodes do not need is removed: dropout and batch
/// norms behind them do not run, but assertions stay, and functions that act on the outside.
///
/// Trace with another tracer, fix arguments, or name nodes for each mode with a
/// [`FeatureExtractor`].
///
/// # Errors
/// Returns an error if the trace fails in a mode, a node is not there, or two values would have one
/// name.
pub fn create_feature_extractor<M: Module + ?Sized>(
    model: &M,
    return_nodes: impl IntoIterator<Item = impl Into<ReturnNode>>,
) -> Result<DualGraphModule> {
    FeatureExtractor::new(model).create(return_nodes)
}

/// The names of a model's nodes in training mode and in evaluation mode, in the order of the graphs:
/// torchvision's `get_graph_node_names`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::get_graph_node_names;
/// # #[derive(Module)] struct Scale { by: f64 }
/// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
/// #[derive(Module)]
/// struct Block { scale: Scale }
/// #[trace]
/// impl Block {
///     fn forward(&self, x: Float) -> Result<Float> {
///         let x = (self.scale.forward(x)? + 1.0)?;
///         self.scale.forward(x)? + 1.0
///     }
/// }
/// #[derive(Module)]
/// struct Net { block: Block }
/// #[trace]
/// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.block.forward(x)? * 2.0 } }
///
/// let (train, eval) = get_graph_node_names(&Net { block: Block { scale: Scale { by: 2.0 } } })?;
/// assert_eq!(train, ["x", "block.scale", "block.add", "block.scale_1", "block.add_1", "mul"]);
/// assert_eq!(train, eval);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the trace fails in a mode.
pub fn get_graph_node_names<M: Module + ?Sized>(model: &M) -> Result<(Vec<String>, Vec<String>)> {
    FeatureExtractor::new(model).node_names()
}

/// How a feature extractor is made of a model: [`create_feature_extractor`] with options.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::FeatureExtractor;
/// #[derive(Module)]
/// struct Net { training: bool }
/// #[trace]
/// impl Net {
///     fn forward(&self, x: Float, twice: bool) -> Result<Float> {
///         let x = if self.training { (x + 1.0)? } else { (x * 3.0)? };
///         if twice { x * 2.0 } else { Ok(x) }
///     }
/// }
/// let net = Net { training: true };
/// let extractor = FeatureExtractor::new(&net).tracing(|trace| trace.concrete("twice", false));
/// let mut extractor = extractor.create_for_modes(["add"], [("mul", "product")])?;
/// assert_eq!(extractor.forward::<IndexMap<String, f64>>((2.0, false))?["add"], 3.0);
/// extractor.eval();
/// assert_eq!(extractor.forward::<IndexMap<String, f64>>((2.0, false))?["product"], 6.0);
/// # Ok::<(), Error>(())
/// ```
pub struct FeatureExtractor<'m> {
    model: &'m dyn Module,
    tracing: Box<Tracing<'m>>,
}

type Tracing<'m> = dyn for<'t> Fn(Trace<'t>) -> Trace<'t> + 'm;

impl<'m> FeatureExtractor<'m> {
    /// Creates an extractor of a model, traced by default.
    pub fn new<M: Module + ?Sized>(model: &'m M) -> Self {
        FeatureExtractor {
            model: model.as_module(),
            tracing: Box::new(|trace| trace),
        }
    }

    /// Configures the trace of each mode: its tracer, and arguments that are fixed (torchvision's
    /// `tracer_kwargs` and `concrete_args`).
    #[must_use]
    pub fn tracing(mut self, tracing: impl for<'t> Fn(Trace<'t>) -> Trace<'t> + 'm) -> Self {
        self.tracing = Box::new(tracing);
        self
    }

    /// The names of the nodes in training mode and in evaluation mode, as
    /// [`get_graph_node_names`] lists them.
    ///
    /// # Errors
    /// Returns an error if the trace fails in a mode.
    pub fn node_names(&self) -> Result<(Vec<String>, Vec<String>)> {
        let mut model = self.model.duplicate_box();
        let mut names = |training| -> Result<Vec<String>> {
            let names = node_names(&self.traced(&mut *model, training)?);
            Ok(names.into_iter().map(|(_, name)| name).collect())
        };
        Ok((names(true)?, names(false)?))
    }

    /// The extractor that returns the same nodes in both modes.
    ///
    /// # Errors
    /// As [`create_feature_extractor`].
    pub fn create(
        &self,
        return_nodes: impl IntoIterator<Item = impl Into<ReturnNode>>,
    ) -> Result<DualGraphModule> {
        let nodes: Vec<ReturnNode> = return_nodes.into_iter().map(Into::into).collect();
        self.create_for_modes(nodes.clone(), nodes)
    }

    /// The extractor that returns some nodes in training mode, and some in evaluation mode
    /// (torchvision's `train_return_nodes` and `eval_return_nodes`).
    ///
    /// # Errors
    /// As [`create_feature_extractor`].
    pub fn create_for_modes(
        &self,
        train_return_nodes: impl IntoIterator<Item = impl Into<ReturnNode>>,
        eval_return_nodes: impl IntoIterator<Item = impl Into<ReturnNode>>,
    ) -> Result<DualGraphModule> {
        let train_nodes: Vec<ReturnNode> = train_return_nodes.into_iter().map(Into::into).collect();
        let eval_nodes: Vec<ReturnNode> = eval_return_nodes.into_iter().map(Into::into).collect();
        let mut model = self.model.duplicate_box();
        let mut train = self.traced(&mut *model, true)?;
        let mut eval = self.traced(&mut *model, false)?;
        let found = [places(&train, &train_nodes), places(&eval, &eval_nodes)];
        let [train_places, eval_places] = match found {
            [Ok(train), Ok(eval)] => [train, eval],
            [train, eval] => {
                let mode = match (&train, &eval) {
                    (Err(a), Err(b)) if a.name == b.name => "in either mode",
                    (Err(_), _) => "in training mode",
                    _ => "in evaluation mode",
                };
                let missing = train.err().or(eval.err());
                let missing = missing.expect("one of the two modes lacks a node");
                return Err(missing.in_mode(mode));
            }
        };
        return_only(&mut train, train_places)?;
        return_only(&mut eval, eval_places)?;
        set_apart(&mut eval, &train, &*model)?;
        let mut both = DualGraphModule::new(train, eval)?;
        both.set_training(is_training(self.model));
        Ok(both)
    }

    fn traced(&self, model: &mut dyn Module, training: bool) -> Result<GraphModule> {
        model.set_training(training);
        (self.tracing)(Trace::new(&*model)).graph_module()
    }
}

/// Whether a model is in training mode: something in it is, or nothing has a mode.
fn is_training(model: &dyn Module) -> bool {
    #[derive(Default)]
    struct Flags {
        on: bool,
        off: bool,
    }
    impl Visitor for Flags {
        fn training(&mut self, _: &str, training: bool) {
            self.on |= training;
            self.off |= !training;
        }
    }
    let mut flags = Flags::default();
    walk(model, &mut flags);
    flags.on || !flags.off
}

/// The name of a node that is not there, with the question for names like it.
struct NoNode {
    name: String,
    question: Option<String>,
}

impl NoNode {
    fn in_mode(self, mode: &str) -> Error {
        let NoNode { name, question } = self;
        let hint = question.map_or(";".to_string(), |question| format!("; {question}"));
        let rest = match mode {
            "in either mode" => "",
            _ => ", and `FeatureExtractor::create_for_modes` takes the nodes of each mode",
        };
        Error::unknown(
            &name,
            format_args!(
                "the graph has no node `{name}` {mode}{hint} `get_graph_node_names` lists the names of both modes, a module's path means its last node{rest}"
            ),
        )
    }
}

/// The node and the name of each result, in the order of the nodes.
type Places = Vec<(NodeId, Arc<str>)>;

/// Finds the nodes of names: the last one of each name, or inside it.
fn places(gm: &GraphModule, wanted: &[ReturnNode]) -> std::result::Result<Places, NoNode> {
    let names = node_names(gm);
    let mut last: FxHashMap<&str, Option<usize>> = FxHashMap::default();
    for node in wanted {
        last.insert(&node.node, None);
    }
    for (at, (_, name)) in names.iter().enumerate() {
        for (end, _) in name.match_indices('.').chain([(name.len(), "")]) {
            if let Some(last) = last.get_mut(&name[..end]) {
                *last = Some(at);
            }
        }
    }
    let mut found = Vec::with_capacity(wanted.len());
    for node in wanted {
        let Some(at) = last.get(&*node.node).copied().flatten() else {
            let mut known: Vec<&str> = Vec::with_capacity(names.len());
            let mut seen: FxHashSet<&str> = FxHashSet::default();
            for (_, name) in &names {
                let ends = name.match_indices('.').chain([(name.len(), "")]);
                known.extend(ends.map(|(end, _)| &name[..end]).filter(|n| seen.insert(n)));
            }
            return Err(NoNode {
                name: node.node.clone(),
                question: did_you_mean(&node.node, known),
            });
        };
        found.push((at, Arc::<str>::from(&*node.output)));
    }
    found.sort_by_key(|(at, _)| *at);
    let found = found.into_iter();
    Ok(found.map(|(at, output)| (names[at].0, output)).collect())
}

/// Has a module return these values alone, and removes what they do not need.
fn return_only(gm: &mut GraphModule, places: Places) -> Result<()> {
    let mut outputs: FxHashSet<&str> = FxHashSet::default();
    for (_, output) in &places {
        if !outputs.insert(output) {
            return Err(Error::taken(
                output,
                format_args!("two nodes are to be returned as `{output}`: give one another name"),
            ));
        }
    }
    let result = places.into_iter();
    let result = result.map(|(node, output)| (output, Argument::Node(node)));
    let result = Argument::Dict(Arc::new(result.collect()));
    let mut edit = gm.graph_mut();
    let (graph, attributes) = edit.parts();
    let output = graph.output_node().map(|node| node.id());
    let output = output.ok_or_else(|| Error::msg("a graph without an output returns nothing"))?;
    let mut output = graph.node_mut(output)?;
    output.set_args((result,))?;
    output.set_type_expr(None);
    graph.eliminate_dead_code_with(|node| acts(node, attributes))?;
    drop(edit);
    gm.eliminate_dead_code()?;
    let mut edit = gm.graph_mut();
    let (graph, attributes) = edit.parts();
    let named = named_by(graph);
    attributes.modules.retain(|path, _| named.contains(path));
    attributes.tensors.retain(|path, _| named.contains(path));
    Ok(())
}

/// Whether a node has to run for more than its value: it checks something, or acts on the outside.
/// A layer does not, but for one of graphs, such as a branch.
fn acts(node: NodeRef<'_>, attributes: &Attributes) -> bool {
    if let Op::CallModule(path) = node.op() {
        let module = attributes.modules.get(path);
        let has_graphs =
            |module: &dyn Module| module.as_graph().is_some() || !module.graph_names().is_empty();
        if !module.is_some_and(|module| has_graphs(&**module)) {
            return false;
        }
    }
    Call::of(node, attributes).effects().contains(Effects::IO)
}

/// The paths that a graph names.
fn named_by(graph: &Graph) -> FxHashSet<Arc<str>> {
    let paths = graph.nodes().filter_map(|node| match node.op() {
        Op::GetAttr(path) | Op::CallModule(path) => Some(path.clone()),
        _ => None,
    });
    paths.collect()
}

/// Gives fresh paths to what a trace made, where the other trace made something at that path:
/// constants and branches, which are not the model's.
fn set_apart(eval: &mut GraphModule, train: &GraphModule, model: &dyn Module) -> Result<()> {
    struct Paths(FxHashSet<String>);
    impl Visitor for Paths {
        fn tensor(&mut self, path: &str, _: TensorKind, _: &dyn Object) {
            self.0.insert(path.to_string());
        }
    }
    let mut tensors = Paths(FxHashSet::default());
    walk(model, &mut tensors);
    let mut edit = eval.graph_mut();
    let (graph, attributes) = edit.parts();
    let mut fresh: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    let is_made = |path: &str| !tensors.0.contains(path) && model.part(path).is_none();
    let paths = attributes.modules.keys().chain(attributes.tensors.keys());
    let mut taken: FxHashSet<Arc<str>> = paths.clone().cloned().collect();
    for path in paths {
        if train.attributes().has(path) && is_made(path) {
            let free = free_name(path, |name| {
                taken.contains(name) || train.attributes().has(name) || !is_made(name)
            });
            let free: Arc<str> = free.into();
            taken.insert(free.clone());
            fresh.insert(path.clone(), free);
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    for (path, free) in &fresh {
        if let Some(module) = attributes.modules.take(path) {
            attributes.modules.insert(free.clone(), module);
        }
        if let Some(tensor) = attributes.tensors.take(path) {
            attributes.tensors.insert(free.clone(), tensor);
        }
    }
    let nodes: Vec<(NodeId, Op)> = graph
        .nodes()
        .filter_map(|node| match node.op() {
            Op::GetAttr(path) => Some((node.id(), Op::GetAttr(fresh.get(path)?.clone()))),
            Op::CallModule(path) => Some((node.id(), Op::CallModule(fresh.get(path)?.clone()))),
            _ => None,
        })
        .collect();
    for (node, op) in nodes {
        graph.node_mut(node)?.write_op(op)?;
    }
    Ok(())
}
