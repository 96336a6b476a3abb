//! What branches and loops share while they are recorded: values as leaves, branches and bodies as graph modules,
//! and the call that takes the place of what was cut.

use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use super::decide::Truth;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::op::Op;
use crate::ir::param_type::ParamType;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::trace::open_side::{Region, SideId};
use crate::trace::scope::Active;
use crate::trace::side::{Mark, Side};
use crate::value::handle::{NodeId, Proxy};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// A value as its structure and its leaves.
pub(super) fn flat(value: Value) -> Result<(Tree, Vec<Value>)> {
    let tree = Tree::of(&value)?;
    let leaves = tree.flatten(value)?;
    Ok((tree, leaves))
}

/// What a call gives: the one result, or a tuple of them.
pub(super) fn given(results: Vec<Value>) -> Value {
    match <[Value; 1]>::try_from(results) {
        Ok([only]) => only,
        Err(results) => Value::Tuple(results.into()),
    }
}

/// The truth of what a branch or a loop is called with: it is traced where a trace opens the branch or the loop.
pub(super) fn truth_of(condition: &Value, caller: &'static Location<'static>) -> Result<Truth> {
    match condition.as_proxy().filter(|proxy| !proxy.is_fake()) {
        Some(proxy) => Truth::Traced(proxy).or_tracers(caller),
        None => condition.truth().map(Truth::Known),
    }
}

/// Runs a branch or a body as a module.
pub(super) fn run_side(
    _: &'static str,
    side: &dyn Module,
    args: &[&Value],
    out: &mut Value,
) -> Result<()> {
    side.run(args, out)
}

/// A branch or an iteration that is recorded; one that is left before its end is an error of the trace.
pub(super) struct Recording {
    active: Rc<Active>,
    id: SideId,
    mark: Mark,
}

impl Recording {
    /// What is recorded from here on is in it.
    pub fn begin(
        active: &Rc<Active>,
        region: Region,
        caller: &'static Location<'static>,
    ) -> Result<Self> {
        Ok(Recording {
            id: active.context.open_side(region, caller),
            mark: active.context.mark()?,
            active: active.clone(),
        })
    }

    /// Its nodes so far.
    pub fn nodes(&self) -> Result<Vec<NodeId>> {
        self.active.context.recorded_since(self.mark)
    }

    /// The next branch begins here.
    pub fn next(&mut self) -> Result<()> {
        self.mark = self.active.context.mark()?;
        Ok(())
    }

    /// What is recorded from here on is that of a jump, up to the end of the function or loop.
    pub fn becomes(&self, jump: &'static str) {
        self.active
            .context
            .rename_side(self.id, Region::After(jump));
    }

    /// Ends it, with all of its branches.
    pub fn end(&self) -> Result<()> {
        self.active.context.end_side(self.id)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.active.context.leave_side(self.id);
    }
}

/// An input of a body that is recorded.
pub(super) fn input(active: &Active, name: &str) -> Result<NodeId> {
    let op = Op::Placeholder(Arc::from(name));
    active
        .context
        .insert_known(op, Args::new(), Kwargs::new(), Some(name))
}

/// Whether two leaves are the same whichever branch gives them.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Proxy(a), Value::Proxy(b)) => a == b,
        _ => a.is_same_object(b),
    }
}

/// Whether a leaf of a state can change from iteration to iteration.
pub(super) fn is_carried(leaf: &Value) -> bool {
    matches!(
        leaf,
        Value::Proxy(_) | Value::Object(_) | Value::Bool(_) | Value::Int(_) | Value::Float(_)
    )
}

/// The leaves as arguments of nodes.
pub(super) fn arguments(active: &Active, leaves: &[Value]) -> Result<Vec<Argument>> {
    let argument = |leaf| active.tracer.create_arg(&active.context, leaf);
    leaves.iter().map(argument).collect()
}

/// A part of a trace as a module of the inputs.
pub(super) fn part_module(
    active: &Active,
    side: &Side,
    inputs: &[NodeId],
    as_tuple: bool,
    name: &str,
) -> Result<GraphModule> {
    let (graph, attributes) = active.context.as_graph(side, inputs, as_tuple)?;
    GraphModule::new(attributes, graph, name)
}

/// The parameters of a module with branches or a body: the condition, and what these take.
pub(super) fn with_condition(rest: &[ParamSpec]) -> Vec<ParamSpec> {
    let condition = ParamSpec::positional("condition", "Value", ParamType::AnyValue);
    std::iter::once(condition)
        .chain(rest.iter().cloned())
        .collect()
}

/// Records a call of a new module with the condition and the rest of its arguments, and returns its
/// results: one per output.
pub(super) fn call(
    active: &Active,
    name: &str,
    module: &dyn Module,
    condition: Option<Proxy>,
    rest: impl IntoIterator<Item = Argument>,
    results: usize,
) -> Result<Vec<Value>> {
    let context = &active.context;
    let condition = condition.map(|condition| Argument::Node(condition.node()));
    let args: Args = condition.into_iter().chain(rest).collect();
    let path = context.fresh_path(&format!("{name}_"));
    context.keep_module(&path, module);
    context.number_call(&path);
    let node = context.insert_known(Op::CallModule(path), args, Kwargs::new(), Some(name))?;
    let whole = context.proxy(node);
    match results {
        1 => Ok(vec![Value::Proxy(whole)]),
        count => {
            let items = active.tracer.create_items(context, whole, count)?;
            Ok(items.into_iter().map(Value::Proxy).collect())
        }
    }
}

/// The nodes as arguments.
pub(super) fn nodes(nodes: &[NodeId]) -> impl Iterator<Item = Argument> {
    nodes.iter().map(|node| Argument::Node(*node))
}
