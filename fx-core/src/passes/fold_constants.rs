//! `FoldConstants`: computes once what depends only on parameters and constants.
//!
//! Invariant: folding runs the graph's own computation, as the graph would run it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::constants::Constants;
use super::folded::FoldedConstants;
use super::pass::Pass;
use super::predicate::{self, Predicate};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::module::walk::TensorKind;
use crate::run::interpreter::Interpretation;
use crate::text::free_name;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// Computes what depends only on parameters and constants, and replaces it by the results: tensors
/// become buffers `_folded_0`, `_folded_1`, ..., plain values become literals. Parameters and
/// modules that are no longer named are removed.
///
/// What is impure is left. A folded weight no longer follows the parameters that it was computed
/// from: fold what is no longer trained, or [`skip`](FoldConstants::skip) what is.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Graph;
/// use fx_core::operator;
/// use fx_core::module::Attributes;
/// use fx_core::passes::FoldConstants;
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x")?;
/// let two = graph.call_function(operator::add, (1, 1), ())?;
/// let y = graph.call_function(operator::mul, (x, two), ())?;
/// graph.output(y)?;
/// let mut gm = GraphModule::new(Attributes::default(), graph, "Doubled")?;
/// gm.apply(&FoldConstants::new())?;
/// assert_eq!(gm.graph().to_string(), "\
/// graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, 2), kwargs = {})
///     return %mul");
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct FoldConstants {
    skip: Option<Predicate>,
    lazy: bool,
}

impl FoldConstants {
    /// Folds when the pass runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds when the module first runs: until then, weights can be loaded and files stay small.
    /// The constant part becomes a separate module, [`FoldedConstants`], at `_folded`.
    #[must_use]
    pub fn lazily(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// Skips the nodes for which this is true, and so what depends on them.
    #[must_use]
    pub fn skip(mut self, skip: impl Fn(NodeRef<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.skip = Some(Box::new(skip));
        self
    }
}

impl fmt::Debug for FoldConstants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lazy {
            "FoldConstants, lazily"
        } else {
            "FoldConstants"
        })
    }
}

impl Pass for FoldConstants {
    fn enters_control(&self) -> bool {
        !self.lazy
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        // A module that runs once is not put into another module that runs once.
        let runs_once = |node: NodeRef<'_>| match node.op() {
            Op::CallModule(path) if self.lazy => {
                let module = attributes.modules.get(path);
                let module = module.map(|module| module.as_module() as &dyn Any);
                module.is_some_and(|module| module.is::<FoldedConstants>())
            }
            _ => false,
        };
        let constants = Constants::of(graph, attributes, |node| {
            runs_once(node) || predicate::holds(&self.skip, node)
        });
        if constants.results.is_empty() {
            return Ok(false);
        }
        if self.lazy {
            lift(graph, attributes, &constants)?;
        } else {
            fold(graph, attributes, &constants)?;
        }
        edit.erase_unused(&constants.nodes)?;
        Ok(true)
    }
}

/// Runs the constant part, and replaces its results by their values.
fn fold(graph: &mut Graph, attributes: &mut Attributes, constants: &Constants) -> Result<()> {
    let mut run = Interpretation::new(graph, attributes);
    let values = run.run_part(&constants.nodes, &constants.results)?;
    let mut fresh = Fresh::default();
    let mut folded = Vec::with_capacity(values.len());
    for (result, value) in constants.results.iter().zip(values) {
        let is_known = graph.node(*result)?.meta::<ValueMeta>().is_some();
        let mut place = graph.inserting_before(*result)?;
        let argument = fresh.argument(&mut place, attributes, &value)?;
        drop(place);
        if is_known {
            graph.learn(&argument, &ValueMeta::of(&value))?;
        }
        folded.push((*result, argument));
    }
    graph.put_all(&folded)
}

/// Numbers for the buffers of one fold.
#[derive(Default)]
struct Fresh {
    next: usize,
    /// The nodes that already read a tensor, by its identity.
    read: FxHashMap<u64, NodeId>,
}

impl Fresh {
    /// The value as an argument; tensors become buffers, read at the insertion point.
    fn argument(
        &mut self,
        graph: &mut Graph,
        attributes: &mut Attributes,
        value: &Value,
    ) -> Result<Argument> {
        let mut all = |items: &[Value]| -> Result<Vec<Argument>> {
            let items = items.iter();
            items.map(|v| self.argument(graph, attributes, v)).collect()
        };
        Ok(match value {
            Value::Object(_) => {
                let object = value.as_object();
                let id = object.and_then(|object| object.object_id());
                if let Some(read) = id.and_then(|id| self.read.get(&id)) {
                    return Ok(Argument::Node(*read));
                }
                let path = self.path(attributes);
                let value = object.map_or(Value::None, |object| object.detached());
                let tensor = (TensorKind::Buffer, value);
                attributes.tensors.insert(path.clone(), tensor);
                let read = graph.get_attr(&path)?;
                self.read.extend(id.map(|id| (id, read)));
                Argument::Node(read)
            }
            Value::List(items) => Argument::List(Arc::new(all(items)?)),
            Value::Tuple(items) => Argument::Tuple(Arc::new(all(items)?)),
            Value::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), self.argument(graph, attributes, item)?)));
                Argument::Dict(Arc::new(items.collect::<Result<_>>()?))
            }
            Value::Slice(parts) => Argument::Slice(Arc::new(three(all(&**parts)?)?)),
            Value::Range(parts) => Argument::Range(Arc::new(three(all(&**parts)?)?)),
            plain => Argument::of_plain(plain).ok_or_else(|| {
                Error::msg(format_args!("{} cannot be a constant", plain.describe()))
            })?,
        })
    }

    /// A free path.
    fn path(&mut self, attributes: &Attributes) -> Arc<str> {
        loop {
            let path: Arc<str> = format!("_folded_{}", self.next).into();
            self.next += 1;
            let taken =
                attributes.tensors.contains_key(&path) || attributes.modules.contains_key(&path);
            if !taken {
                return path;
            }
        }
    }
}

fn three(parts: Vec<Argument>) -> Result<[Argument; 3]> {
    let parts = <[Argument; 3]>::try_from(parts);
    parts.map_err(|_| Error::msg("a slice has a start, a stop and a step"))
}

/// Turns the constant part into a module that runs once.
fn lift(graph: &mut Graph, attributes: &mut Attributes, constants: &Constants) -> Result<()> {
    let part = constants.graph(graph)?;
    let inner = GraphModule::new(attributes.named_by(&part), part, "FoldedConstants")?;
    let path = free_name("_folded", |path| {
        attributes.modules.contains_key(path) || attributes.conflict(path).is_some()
    });
    attributes
        .modules
        .insert(path.as_str().into(), Box::new(FoldedConstants::new(inner)));
    // All uses of the results come after the first node of the part.
    let first = constants.nodes.first().copied();
    let first = first.ok_or_else(|| Error::msg("what is folded has nodes"))?;
    let mut place = graph.inserting_before(first)?;
    let call = place.call_module(&path, (), ())?;
    let items = place.take_items(call, &constants.results)?;
    drop(place);
    let items = items.into_iter().map(Argument::Node);
    let lifted: Vec<(NodeId, Argument)> = constants.results.iter().copied().zip(items).collect();
    graph.put_all(&lifted)
}
