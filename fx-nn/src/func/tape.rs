//! Reverse mode over what a trace has recorded: from gradients of results to gradients of what they were made of.
//!
//! Invariant: a node is taken back once, when all that uses it is.

use fx_core::ir::{
    Argument, Effects, Function, FunctionTable, NodeRef, Op, SourceLocation, ValueMeta, operator,
};
use fx_core::module::Module;
use fx_core::passes::{CoreSet, DecomposedCall};
use fx_core::trace::{FromValue, List, TraceContext, placed};
use fx_core::value::{IntoValue, NodeId, Value};
use fx_core::{Error, Result, function};
use rustc_hash::{FxHashMap, FxHashSet};

use super::derivative::{Cotangent, Derivative, Pullback, args_of, sum_to};
use super::known;
use super::region::Region;
use super::source::meta_of;
use super::stand_ins::with_vjp;
use crate::lowering::Composed;
use crate::op_kind::{NoGradient, OpKind};
use crate::ops;
use crate::tensor::Tensor;

/// What other functions give for the arguments of a call.
pub(crate) type Composite = fn(&DecomposedCall<'_>) -> Result<Value>;

/// How a function is taken back.
enum Way {
    Rule(fn(&mut Pullback<'_>) -> Result<()>),
    Composite(Composite),
    /// No gradient runs through it.
    Flat,
    Missing,
}

/// The tables that say how.
pub(crate) struct Ways {
    derivatives: &'static FunctionTable<Derivative>,
    flat: &'static FunctionTable<NoGradient>,
    core: &'static FunctionTable<CoreSet>,
    composed: &'static FunctionTable<Composed>,
    kinds: &'static FunctionTable<OpKind>,
    regions: RegionBack,
}

/// Takes a branch or a loop back: it gives the gradient of each argument that is needed.
pub(crate) type RegionBack = fn(RegionCall<'_>) -> Result<Vec<Option<Cotangent>>>;

/// A recorded call of a branch or a loop whose gradient is asked for.
pub(crate) struct RegionCall<'c> {
    pub region: Region<'c>,
    pub args: &'c [Value],
    pub result: &'c Value,
    pub grad: &'c Cotangent,
    /// Which arguments a gradient is needed of.
    pub needed: &'c [bool],
}

impl Ways {
    /// The tables that functions are registered in, and how regions are taken back.
    pub fn registered(regions: RegionBack) -> Result<Self> {
        Ok(Ways {
            regions,
            derivatives: FunctionTable::registered()?,
            flat: FunctionTable::registered()?,
            core: FunctionTable::registered()?,
            composed: FunctionTable::registered()?,
            kinds: FunctionTable::registered()?,
        })
    }

    fn of(&self, function: Function) -> Way {
        match self.derivatives.get(function) {
            Some(Derivative::Vjp(rule)) => return Way::Rule(*rule),
            Some(Derivative::Composite(composite)) => return Way::Composite(*composite),
            None => {}
        }
        if self.flat.get(function).is_some() {
            return Way::Flat;
        }
        if let Some(CoreSet::Decomposed(rule)) = self.core.get(function) {
            return Way::Composite(*rule);
        }
        match self.composed.get(function) {
            Some(composed) => Way::Composite(composed.0),
            None if function.def().operator.is_some() => Way::Flat,
            None => Way::Missing,
        }
    }

    /// Whether no gradient runs through a function.
    fn is_flat(&self, function: Function) -> bool {
        matches!(self.of(function), Way::Flat)
    }

    /// The one draw by which a random function is written, if it is.
    pub fn draw(&self, function: Function) -> Option<Composite> {
        match self.derivatives.get(function) {
            Some(Derivative::Composite(composite))
                if self.kinds.get(function) == Some(&OpKind::Draw) =>
            {
                Some(*composite)
            }
            _ => None,
        }
    }
}

/// The functions that a call is written by when its gradient is taken: those of a function without a rule that draws no
/// numbers and writes nothing.
pub(crate) fn composite_of(function: Function) -> Result<Option<Composite>> {
    let ways = Ways::registered(|_| Err(Error::msg("a function is no region")))?;
    Ok(match ways.of(function) {
        Way::Composite(composite) if function.def().effects.is_pure() => Some(composite),
        _ => None,
    })
}

/// What a recorded call is of.
enum Callee {
    Function(Function),
    Module(Box<dyn Module>),
}

/// A recorded call, taken out of the graph.
struct Recorded {
    callee: Callee,
    target: String,
    args: Vec<Value>,
    nodes: Vec<Vec<NodeId>>,
    location: Option<SourceLocation>,
    modules: Vec<(String, String)>,
    name: String,
}

/// Which argument of [`with_vjp`] the gradients are of.
const CUSTOM_ARGS: usize = 1;

/// What a composite gives for the arguments of a call.
pub(crate) fn expanded(composite: Composite, function: Function, args: &[Value]) -> Result<Value> {
    let metas: Vec<Option<ValueMeta>> = args.iter().map(|arg| meta_of(arg).ok()).collect();
    composite(&DecomposedCall::new(function, args, &metas)?)
}

/// The last node of a trace so far.
pub(crate) fn last(cx: &TraceContext) -> Result<Option<NodeId>> {
    Ok(cx.graph()?.nodes().next_back().map(NodeRef::id))
}

/// The gradients of some values, from gradients of what was made of them behind a node.
pub(crate) fn pull(
    cx: &TraceContext,
    ways: &Ways,
    behind: Option<NodeId>,
    seeds: Vec<(Value, Cotangent)>,
    wrt: &[NodeId],
) -> Result<FxHashMap<NodeId, Cotangent>> {
    let mut walk = Walk {
        cx,
        ways,
        active: wrt.iter().copied().collect(),
        found: FxHashMap::default(),
        pending: Vec::new(),
    };
    walk.enter(behind)?;
    walk.check(&seeds)?;
    for (value, seed) in seeds {
        walk.add(&value, seed)?;
    }
    let wrt: FxHashSet<NodeId> = wrt.iter().copied().collect();
    while let Some(node) = walk.pending.pop() {
        if !wrt.contains(&node) {
            walk.back(node)?;
        }
    }
    Ok(walk.found)
}

struct Walk<'c> {
    cx: &'c TraceContext,
    ways: &'c Ways,
    /// What depends on the values that gradients are of.
    active: FxHashSet<NodeId>,
    /// The gradients so far.
    found: FxHashMap<NodeId, Cotangent>,
    /// What is to be taken back, the last first.
    pending: Vec<NodeId>,
}

impl Walk<'_> {
    /// Finds what is active behind a node, to be taken back.
    fn enter(&mut self, behind: Option<NodeId>) -> Result<()> {
        let graph = self.cx.graph()?;
        let mut at = match behind {
            Some(node) => graph.node(node)?.next(),
            None => graph.nodes().next(),
        };
        while let Some(node) = at {
            let is_flat = node
                .function()
                .is_some_and(|function| self.ways.is_flat(function));
            let depends = || {
                node.all_input_nodes()
                    .any(|input| self.active.contains(&input.id()))
            };
            if self.active.contains(&node.id()) || (!is_flat && depends()) {
                self.active.insert(node.id());
                self.pending.push(node.id());
            }
            at = node.next();
        }
        Ok(())
    }

    /// An error with every call that has no derivative.
    fn check(&self, seeds: &[(Value, Cotangent)]) -> Result<()> {
        let graph = self.cx.graph()?;
        let mut reached: FxHashSet<NodeId> = FxHashSet::default();
        for (value, _) in seeds {
            each_node(value, &mut |node| {
                reached.insert(node);
            });
        }
        let mut problems = Vec::new();
        for id in self.pending.iter().rev() {
            if !reached.contains(id) {
                continue;
            }
            let node = graph.node(*id)?;
            if let Some(function) = node.function() {
                match self.ways.of(function) {
                    // Its rule stands for what the results are made of.
                    _ if function == function!(with_vjp) => {
                        if let Some((_, args)) = node.normalized_arguments()?.get(CUSTOM_ARGS) {
                            args.for_each_node(&mut |id| {
                                reached.extend(self.active.contains(&id).then_some(id));
                            });
                        }
                        continue;
                    }
                    Way::Flat => continue,
                    Way::Missing => {
                        let at = node
                            .location()
                            .map(|at| format!(" ({at})"))
                            .unwrap_or_default();
                        problems.push(format!("%{} = {}{at}", node.name(), function.path()));
                    }
                    _ => {}
                }
            }
            reached.extend(
                node.all_input_nodes()
                    .map(NodeRef::id)
                    .filter(|id| self.active.contains(id)),
            );
        }
        if problems.is_empty() {
            return Ok(());
        }
        problems.reverse();
        Err(Error::msg(format_args!(
            "{} no derivative:\n  {}\nGive a function one with `#[op(vjp = ..)]` or `function_table! {{ Derivative {{ .. }} }}`, or stop the gradient before it with `func::stop_gradient`",
            if problems.len() == 1 {
                "1 call has"
            } else {
                "these calls have"
            },
            problems.join("\n  ")
        )))
    }

    /// Adds a gradient of a value.
    fn add(&mut self, value: &Value, grad: Cotangent) -> Result<()> {
        match (value, grad) {
            (Value::List(items) | Value::Tuple(items), Cotangent::Items(grads)) => {
                for (item, grad) in items.iter().zip(grads) {
                    if let Some(grad) = grad {
                        self.add(item, grad)?;
                    }
                }
                Ok(())
            }
            (value, grad) => match node_of(value) {
                Some(node) if self.active.contains(&node) => self.add_to(node, grad),
                _ => Ok(()),
            },
        }
    }

    fn add_to(&mut self, node: NodeId, grad: Cotangent) -> Result<()> {
        let sum = match self.found.remove(&node) {
            Some(former) => former.plus(grad)?,
            None => grad,
        };
        self.found.insert(node, sum);
        Ok(())
    }

    fn back(&mut self, node: NodeId) -> Result<()> {
        if !self.found.contains_key(&node) {
            return Ok(());
        }
        let Some(call) = self.recorded(node)? else {
            return Ok(());
        };
        let Some(grad) = self.found.remove(&node) else {
            return Ok(());
        };
        let modules: Vec<(&str, &str)> = call
            .modules
            .iter()
            .map(|(path, name)| (&**path, &**name))
            .collect();
        let taken = match &call.location {
            Some(location) => placed(location.clone(), &modules, || {
                self.take_back(node, &call, grad)
            }),
            None => self.take_back(node, &call, grad),
        };
        taken.map_err(|error| {
            let at = call
                .location
                .as_ref()
                .map(|at| format!(" ({at})"))
                .unwrap_or_default();
            Error::msg(format_args!(
                "the derivative of %{} = {}{at}: {error}",
                call.name, call.target
            ))
        })
    }

    fn recorded(&self, node: NodeId) -> Result<Option<Recorded>> {
        self.recorded_with(node, &FxHashMap::default())
    }

    /// The same with other values for some nodes.
    fn recorded_with(
        &self,
        node: NodeId,
        others: &FxHashMap<NodeId, Value>,
    ) -> Result<Option<Recorded>> {
        let graph = self.cx.graph()?;
        let node = graph.node(node)?;
        let module = match node.op() {
            Op::CallModule(path) => self.cx.module_at(path),
            _ => None,
        };
        let callee = match (node.function(), module, node.op()) {
            (Some(function), ..) => Callee::Function(function),
            (_, Some(module), _) if !module.graph_names().is_empty() => Callee::Module(module),
            (_, _, Op::Placeholder(_) | Op::GetAttr(_) | Op::Output) => return Ok(None),
            _ => {
                return Err(Error::msg(format_args!(
                    "%{} = {} has no derivative: a gradient runs through functions, branches and loops",
                    node.name(),
                    node.target()
                )));
            }
        };
        let target = match &callee {
            Callee::Function(function) => function.path().to_string(),
            Callee::Module(_) => node.target().to_string(),
        };
        let mut args = Vec::new();
        let mut nodes = Vec::new();
        let arguments: Vec<Argument> = match &callee {
            Callee::Function(_) => node
                .normalized_arguments()?
                .into_iter()
                .map(|(_, argument)| argument)
                .collect(),
            Callee::Module(_) => node.args().to_vec(),
        };
        for argument in arguments {
            let value = argument.to_value(&mut |id| {
                let other = others.get(&id).cloned();
                Ok(other.unwrap_or_else(|| Value::Proxy(self.cx.proxy(id))))
            })?;
            let mut inside = Vec::new();
            each_node(&value, &mut |node| inside.push(node));
            args.push(value);
            nodes.push(inside);
        }
        Ok(Some(Recorded {
            callee,
            target,
            args,
            nodes,
            location: node.location().cloned(),
            modules: {
                let mut stack: Vec<(String, String)> = node
                    .module_stack()
                    .map(|scope| (scope.path.to_string(), scope.type_name.to_string()))
                    .collect();
                stack.reverse();
                stack
            },
            name: node.name().to_string(),
        }))
    }

    fn take_back(&mut self, node: NodeId, call: &Recorded, grad: Cotangent) -> Result<()> {
        let result = Value::Proxy(self.cx.proxy(node));
        let function = match &call.callee {
            Callee::Function(function) => *function,
            Callee::Module(module) => return self.region_back(&**module, call, &result, &grad),
        };
        let is_item = function == operator::getitem
            && match known_meta_of(&call.args[0]) {
                Some(meta) => meta.tensor().is_none(),
                None => false,
            };
        if is_item {
            return self.item_back(call, grad);
        }
        if function == function!(with_vjp) {
            return self.custom_back(node, call, &grad);
        }
        match self.ways.of(function) {
            Way::Flat => Ok(()),
            Way::Missing => Err(Error::msg("it has none")),
            _ if draws_inside(function, &call.args) => Err(Error::msg(
                "it draws random numbers, and what it is written by would draw others: call it with `dropout_p = 0`, and \
                 `dropout` beside it",
            )),
            Way::Composite(composite) => {
                let behind = last(self.cx)?;
                let value = expanded(composite, function, &call.args)?;
                self.enter(behind)?;
                self.add(&value, grad)
            }
            Way::Rule(rule) => {
                let needed = self.needed(call);
                let mut pullback = Pullback {
                    function,
                    args: &call.args,
                    result: &result,
                    grad: &grad,
                    needed: &needed,
                    given: vec![None; call.args.len()],
                };
                rule(&mut pullback)?;
                let given = pullback.given;
                self.add_all(&call.args, given)
            }
        }
    }

    /// Which arguments of a call a gradient is needed of.
    fn needed(&self, call: &Recorded) -> Vec<bool> {
        let args = call.nodes.iter().zip(&call.args);
        args.map(|(nodes, arg)| {
            nodes.iter().any(|node| self.active.contains(node)) && has_floats(arg)
        })
        .collect()
    }

    fn add_all(&mut self, args: &[Value], given: Vec<Option<Cotangent>>) -> Result<()> {
        for (arg, grad) in args.iter().zip(given) {
            if let Some(grad) = grad {
                self.add(arg, grad)?;
            }
        }
        Ok(())
    }

    fn region_back(
        &mut self,
        module: &dyn Module,
        call: &Recorded,
        result: &Value,
        grad: &Cotangent,
    ) -> Result<()> {
        let region = Region::of(module)
            .ok_or_else(|| Error::msg("a gradient runs through branches, loops and scans"))?;
        let given = (self.ways.regions)(RegionCall {
            region,
            args: &call.args,
            result,
            grad,
            needed: &self.needed(call),
        })?;
        self.add_all(&call.args, given)
    }

    /// The rule of a custom derivative, recorded anew for the gradients of the results.
    fn custom_back(&mut self, node: NodeId, call: &Recorded, grad: &Cotangent) -> Result<()> {
        let [results, args, cotangents, grads] = &call.args[..] else {
            return Err(Error::msg("its call has other arguments"));
        };
        let given = match grad {
            Cotangent::Items(items) => &items[..],
            _ => return Err(Error::msg("its results are a list")),
        };
        let mut anew: FxHashMap<NodeId, Value> = FxHashMap::default();
        let (results, cotangents) = (known::items(results)?, known::items(cotangents)?);
        for (at, (result, cotangent)) in results.iter().zip(&cotangents).enumerate() {
            let grad = match given.get(at) {
                Some(Some(Cotangent::One(grad))) => grad.clone(),
                _ => ops::zeros_like(result, None)?,
            };
            let stand_in = node_of(&cotangent.into_value());
            let stand_in = stand_in
                .ok_or_else(|| Error::msg("what stands for the gradient of a result is known"))?;
            anew.insert(stand_in, grad.into_value());
        }
        for id in self.between(&anew, node)? {
            let Some(call) = self.recorded_with(id, &anew)? else {
                continue;
            };
            let value = match &call.callee {
                Callee::Function(function) => function.call(args_of(call.args))?,
                Callee::Module(module) => {
                    let lent: Vec<&Value> = call.args.iter().collect();
                    let mut out = Value::None;
                    module.run(&lent, &mut out)?;
                    out
                }
            };
            anew.insert(id, value);
        }
        for (arg, grad) in known::items(args)?.into_iter().zip(known::items(grads)?) {
            let (arg, grad) = (arg.into_value(), grad.into_value());
            let grad = node_of(&grad)
                .and_then(|id| anew.remove(&id))
                .unwrap_or(grad);
            let grad = Tensor::from_value(grad)?;
            let grad = sum_to(&grad, &Tensor::from_value(arg.clone())?)?;
            self.add(&arg, Cotangent::One(grad))?;
        }
        Ok(())
    }

    /// The nodes in front of one that are made of others, in order.
    fn between(&self, of: &FxHashMap<NodeId, Value>, node: NodeId) -> Result<Vec<NodeId>> {
        let graph = self.cx.graph()?;
        let mut left = of.len();
        let mut inside: FxHashSet<NodeId> = FxHashSet::default();
        // Backward to the first of them, then forward.
        let mut at = graph.node(node)?.prev();
        let mut passed = Vec::new();
        while let Some(node) = at.filter(|_| left > 0) {
            left -= usize::from(of.contains_key(&node.id()));
            passed.push(node.id());
            at = node.prev();
        }
        let mut found = Vec::new();
        for id in passed.into_iter().rev().filter(|id| !of.contains_key(id)) {
            let is_made =
                |input: NodeRef<'_>| of.contains_key(&input.id()) || inside.contains(&input.id());
            if graph.node(id)?.all_input_nodes().any(is_made) {
                inside.insert(id);
                found.push(id);
            }
        }
        Ok(found)
    }

    /// The gradient of an item is one of the whole.
    fn item_back(&mut self, call: &Recorded, grad: Cotangent) -> Result<()> {
        let (whole, index) = (&call.args[0], &call.args[1]);
        let count = known_meta_of(whole).and_then(|meta| meta.items().map(<[_]>::len));
        let at = match (index, count) {
            (Value::Int(at), Some(count)) if *at < 0 => usize::try_from(*at + count as i64).ok(),
            (Value::Int(at), _) => usize::try_from(*at).ok(),
            _ => None,
        };
        let at = at.ok_or_else(|| Error::msg("an item is taken by a number"))?;
        if let (Some(ValueMeta::Repeated(..)), Cotangent::One(grad)) = (known_meta_of(whole), &grad)
        {
            let all = crate::control::stacked(List::from_value(whole.clone())?)?;
            let grad = ops::select_scatter(&ops::zeros_like(&all, None)?, grad, 0, at as i64)?;
            return self.add(whole, Cotangent::Stacked(grad));
        }
        let mut items = vec![None; at + 1];
        items[at] = Some(grad);
        self.add(whole, Cotangent::Items(items))
    }
}

fn known_meta_of(value: &Value) -> Option<ValueMeta> {
    match value {
        Value::Proxy(proxy) => proxy.meta().ok().flatten(),
        other => Some(ValueMeta::of(other)),
    }
}

/// Whether a value is a tensor of floats, or a structure with one.
fn has_floats(value: &Value) -> bool {
    fn of(meta: &ValueMeta) -> bool {
        match meta {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => items.iter().any(of),
            ValueMeta::Repeated(item, _) => of(item),
            meta => meta
                .tensor()
                .is_some_and(|meta| meta.dtype.is_none_or(|dtype| dtype.is_floating_point())),
        }
    }
    meta_of(value).is_ok_and(|meta| of(&meta))
}

/// Whether a function that is no random one draws numbers inside, as attention with dropout does.
fn draws_inside(function: Function, args: &[Value]) -> bool {
    let of = |name: &str| {
        let params = function.params().iter();
        let mut all = params.zip(args);
        all.find(|(param, _)| param.name == name)
            .map(|(_, value)| value)
    };
    let is_trained = !matches!(
        of("train").or_else(|| of("training")),
        Some(Value::Bool(false))
    );
    function.def().effects.contains(Effects::RANDOM)
        && is_trained
        && matches!(of("dropout_p"), Some(Value::Float(p)) if *p > 0.0)
}

/// The node that a value stands for.
pub(crate) fn node_of(value: &Value) -> Option<NodeId> {
    match value {
        Value::Proxy(proxy) => Some(proxy.node()),
        value => value
            .as_object()
            .and_then(|object| object.proxy())
            .map(|proxy| proxy.node()),
    }
}

/// Visits the nodes that a value stands for or has inside.
fn each_node(value: &Value, visit: &mut dyn FnMut(NodeId)) {
    value.for_each(&mut |value| {
        if let Some(node) = node_of(value) {
            visit(node);
        }
    });
}
