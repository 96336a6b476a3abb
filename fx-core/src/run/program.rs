//! The compiled program of a graph: flat steps over slots, operands resolved, values freed after
//! last use.
//!
//! Invariant: a slot is written before it is read, and holds nothing after its value's last use.

use std::any::TypeId;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::function::{Function, Kernel};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::module::argument::module_value;
use crate::module::attributes::{Attributes, TENSOR, not_found};
use crate::shapes::refusal::refusal_of;
use crate::shapes::relied::ReliedOn;
use crate::submit::REGISTRY_HINT;
use crate::text;
use crate::trace::call_args::CallForm;
use crate::trace::dispatch;
use crate::trace::scope::visible_modes;
use crate::value::handle::NodeId;
use crate::value::value::Value;

use super::operand::Operand;
use super::template::Template;

#[derive(Debug)]
enum Callee {
    Kernel(Kernel),
    /// A function that was made at run time.
    Dynamic(Function),
    Module(u32),
    /// A method that several types have: chosen by the receiver's type.
    Method(Vec<(TypeId, Kernel, Range<u32>)>),
    /// A comparison of the operand's shape with the one that the graph relies on.
    Check(u32),
}

#[derive(Debug)]
struct Step {
    callee: Callee,
    operands: Range<u32>,
    /// The structures among the operands.
    builds: Range<u32>,
    out: u32,
    frees: Range<u32>,
    node: NodeId,
}

/// An observer that is shown the result of each step, and may stop the run.
pub(crate) type StepObserver<'o> = dyn FnMut(NodeRef<'_>, &Value) -> Result<()> + 'o;

/// A compiled graph.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    operands: Vec<Operand>,
    frees: Vec<u32>,
    constants: Vec<Value>,
    templates: Vec<Template>,
    relied_on: Vec<ReliedOn>,
    /// The slot of each input; `None` if nothing uses it.
    inputs: Vec<Option<u32>>,
    output: Operand,
    slots: usize,
    frames: Mutex<Vec<Frame>>,
}

static NONE: Value = Value::None;

/// What a run keeps for the next one: boxes to refill.
#[derive(Debug, Default)]
struct Frame {
    slots: Vec<Value>,
    /// What each template was filled to.
    built: Vec<Value>,
}

struct Compiler<'g> {
    graph: &'g Graph,
    attributes: &'g Attributes,
    program: Program,
    /// Where each node's value is, by the node's index.
    places: Vec<Option<Operand>>,
    /// The index of each node's last user, by the node's index.
    last_use: Vec<Option<u32>>,
    free_slots: Vec<u32>,
}

fn index(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::msg("a program holds at most 2^32 operands"))
}

impl Program {
    /// Compiles a graph against the attributes that it names.
    ///
    /// # Errors
    /// Returns an error that names the first node that cannot run, with the reason.
    pub fn compile(graph: &Graph, attributes: &Attributes) -> Result<Program> {
        graph.lint()?;
        let mut compiler = Compiler {
            graph,
            attributes,
            program: Program {
                steps: Vec::with_capacity(graph.len()),
                operands: Vec::with_capacity(graph.len() * 2),
                frees: Vec::new(),
                constants: Vec::new(),
                templates: Vec::new(),
                relied_on: Vec::new(),
                inputs: Vec::new(),
                output: Operand::Constant(0),
                slots: 0,
                frames: Mutex::default(),
            },
            places: vec![None; graph.index_bound()],
            last_use: graph.last_users(),
            free_slots: Vec::new(),
        };
        for node in graph.nodes() {
            compiler
                .node(node)
                .map_err(|error| node.blame("compiling", error))?;
        }
        Ok(compiler.program)
    }

    /// Runs on one value for each placeholder; the observer is shown the result of each step, and
    /// may stop the run.
    pub fn run(
        &self,
        graph: &Graph,
        attributes: &Attributes,
        inputs: Vec<Value>,
        observer: Option<&mut StepObserver<'_>>,
    ) -> Result<Value> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::msg(format_args!(
                "the graph has {}, {}",
                text::count(self.inputs.len(), "input"),
                text::given(inputs.len())
            )));
        }
        let mut frame = self
            .frames
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        frame.slots.resize_with(self.slots, Value::default);
        frame
            .built
            .resize_with(self.templates.len(), Value::default);
        for (value, slot) in inputs.into_iter().zip(&self.inputs) {
            if let Some(slot) = slot {
                frame.slots[*slot as usize] = value;
            }
        }
        self.run_steps(graph, attributes, &mut frame, observer)
            .map_err(|(node, error)| match graph.node(node) {
                Ok(node) => node.blame("executing", error),
                Err(_) => error,
            })?;
        let result = match self.output {
            Operand::Slot(slot) => std::mem::take(&mut frame.slots[slot as usize]),
            Operand::Built(at) => {
                self.build(&(at..at + 1), attributes, &mut frame);
                std::mem::take(&mut frame.built[at as usize])
            }
            operand => self.lend(operand, attributes, &frame).clone(),
        };
        frame.slots.iter_mut().for_each(Value::clear);
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        // As many frames as threads run at once, within reason.
        if frames.len() < 64 {
            frames.push(frame);
        }
        Ok(result)
    }

    fn run_steps(
        &self,
        graph: &Graph,
        attributes: &Attributes,
        frame: &mut Frame,
        mut observer: Option<&mut StepObserver<'_>>,
    ) -> Result<(), (NodeId, Error)> {
        let is_seen = visible_modes() > 0;
        for step in &self.steps {
            // The result's slot is not one of the operands' slots: those are freed later.
            debug_assert!(
                !self
                    .operands_of(&step.operands)
                    .contains(&Operand::Slot(step.out)),
                "a step does not write what it reads"
            );
            if !step.builds.is_empty() {
                self.build(&step.builds, attributes, frame);
            }
            let mut out = std::mem::take(&mut frame.slots[step.out as usize]);
            let result = match is_seen {
                true => self.call_seen(step, graph, attributes, frame, &mut out),
                false => self.call(step, attributes, frame, &mut out),
            };
            frame.slots[step.out as usize] = out;
            if let Err(error) = result {
                let error = match is_seen {
                    true => error,
                    false => self.refusal(step, graph, attributes, frame, error),
                };
                return Err((step.node, error));
            }
            if let Some(observer) = &mut observer
                && !matches!(step.callee, Callee::Check(_))
            {
                graph
                    .node(step.node)
                    .and_then(|node| observer(node, &frame.slots[step.out as usize]))
                    .map_err(|error| (step.node, error))?;
            }
            for at in step.builds.start as usize..step.builds.end as usize {
                self.templates[at].empty(&mut frame.built[at]);
            }
            for slot in &self.frees[step.frees.start as usize..step.frees.end as usize] {
                frame.slots[*slot as usize].clear();
            }
        }
        Ok(())
    }

    /// Fills templates with what their operands are now.
    #[inline(never)]
    fn build(&self, templates: &Range<u32>, attributes: &Attributes, frame: &mut Frame) {
        for at in templates.start as usize..templates.end as usize {
            let mut value = std::mem::take(&mut frame.built[at]);
            self.templates[at].fill(&mut value, &|operand| match operand {
                // In its current state: it may have been changed in place.
                Operand::Module(module) => module_value(&*attributes.modules[module as usize]),
                operand => self.lend(operand, attributes, frame).clone(),
            });
            frame.built[at] = value;
        }
    }

    #[inline(always)]
    fn lend<'a>(
        &'a self,
        operand: Operand,
        attributes: &'a Attributes,
        frame: &'a Frame,
    ) -> &'a Value {
        match operand {
            Operand::Slot(slot) => &frame.slots[slot as usize],
            Operand::Built(at) => &frame.built[at as usize],
            Operand::Constant(constant) => &self.constants[constant as usize],
            Operand::Tensor(tensor) => &attributes.tensors[tensor as usize].1,
            // A template fills modules in.
            Operand::Module(_) => &NONE,
        }
    }

    // The loop over the steps is this and little else.
    #[inline(always)]
    fn call(
        &self,
        step: &Step,
        attributes: &Attributes,
        frame: &Frame,
        out: &mut Value,
    ) -> Result<()> {
        match &step.callee {
            Callee::Kernel(kernel) => {
                self.with_operands(&step.operands, attributes, frame, |args| kernel(args, out))
            }
            Callee::Module(module) => {
                self.with_operands(&step.operands, attributes, frame, |args| {
                    attributes.modules[*module as usize].run(args, out)
                })
            }
            Callee::Dynamic(function) => {
                self.with_operands(&step.operands, attributes, frame, |args| {
                    function.run(args, out)
                })
            }
            Callee::Check(relied_on) => {
                let relied_on = &self.relied_on[*relied_on as usize];
                self.with_operands(&step.operands, attributes, frame, |args| {
                    args.iter().try_for_each(|value| relied_on.check(value))
                })
            }
            Callee::Method(candidates) => {
                let receiver = self
                    .operands_of(&step.operands)
                    .first()
                    .map(|o| self.lend(*o, attributes, frame));
                let (kernel, range) = pick(candidates, receiver)?;
                self.with_operands(range, attributes, frame, |args| kernel(args, out))
            }
        }
    }

    /// Lends operands to a closure.
    #[inline]
    fn with_operands<R>(
        &self,
        range: &Range<u32>,
        attributes: &Attributes,
        frame: &Frame,
        run: impl FnOnce(&[&Value]) -> R,
    ) -> R {
        const FEW: usize = 4;
        let operands = self.operands_of(range);
        if operands.len() > FEW {
            let args: SmallVec<[&Value; 12]> = operands
                .iter()
                .map(|o| self.lend(*o, attributes, frame))
                .collect();
            return run(&args);
        }
        let mut args = [&NONE; FEW];
        for (arg, operand) in args.iter_mut().zip(operands) {
            *arg = self.lend(*operand, attributes, frame);
        }
        run(&args[..operands.len()])
    }

    /// The error of a step: what the shape rule of its function refuses the arguments for, if it
    /// does.
    #[cold]
    fn refusal(
        &self,
        step: &Step,
        graph: &Graph,
        attributes: &Attributes,
        frame: &Frame,
        error: Error,
    ) -> Error {
        let Ok(node) = graph.node(step.node) else {
            return error;
        };
        let args = match &step.callee {
            Callee::Kernel(_) => &step.operands,
            Callee::Method(candidates) => {
                let receiver = self.copies_of(&step.operands, attributes, frame);
                match pick(candidates, receiver.first()) {
                    Ok((_, range)) => range,
                    Err(_) => return error,
                }
            }
            _ => return error,
        };
        let args = self.copies_of(args, attributes, frame);
        match function_called(node, args.first()) {
            Some(function) => refusal_of(function, &args, error),
            None => error,
        }
    }

    /// A step as a call that modes see.
    #[cold]
    fn call_seen(
        &self,
        step: &Step,
        graph: &Graph,
        attributes: &Attributes,
        frame: &Frame,
        out: &mut Value,
    ) -> Result<()> {
        if let Callee::Check(_) = step.callee {
            return self.call(step, attributes, frame, out);
        }
        let here = Location::caller();
        let mut args = self.copies_of(&step.operands, attributes, frame);
        let node = graph.node(step.node)?;
        if let Callee::Module(module) = step.callee {
            *out = dispatch::call_module(&*attributes.modules[module as usize], args, here)?;
            return Ok(());
        }
        if let Callee::Method(candidates) = &step.callee {
            let (_, range) = pick(candidates, args.first())?;
            args = self.copies_of(range, attributes, frame);
        }
        let function = function_called(node, args.first())
            .ok_or_else(|| Error::msg("no type's method takes these arguments"))?;
        let form = match node.op() {
            Op::CallMethod(_) => CallForm::Method,
            _ => CallForm::Function,
        };
        let free = std::mem::take(out);
        *out = dispatch::call_values_at(function, form, args, free, here)?;
        Ok(())
    }

    fn copies_of(&self, range: &Range<u32>, attributes: &Attributes, frame: &Frame) -> Vec<Value> {
        let operands = self.operands_of(range).iter();
        operands
            .map(|operand| self.lend(*operand, attributes, frame).clone())
            .collect()
    }

    fn operands_of(&self, range: &Range<u32>) -> &[Operand] {
        &self.operands[range.start as usize..range.end as usize]
    }
}

/// The function that a node calls; of several types' methods, the receiver's.
fn function_called(node: NodeRef<'_>, receiver: Option<&Value>) -> Option<Function> {
    let functions = node.functions();
    let receiver = type_of_receiver(receiver);
    let is_its = |f: &&Function| f.def().receiver.map(|ty| ty()) == receiver;
    functions
        .one()
        .or_else(|| functions.as_slice().iter().find(is_its).copied())
}

fn pick<'c>(
    candidates: &'c [(TypeId, Kernel, Range<u32>)],
    receiver: Option<&Value>,
) -> Result<(Kernel, &'c Range<u32>)> {
    let found = type_of_receiver(receiver);
    candidates
        .iter()
        .find(|(ty, _, _)| Some(*ty) == found)
        .map(|(_, kernel, range)| (*kernel, range))
        .ok_or_else(|| {
            Error::msg(format_args!(
                "{} has no such method",
                receiver.map_or_else(|| "nothing".to_string(), Value::describe)
            ))
        })
}

fn callee_of(function: Function) -> Callee {
    match function.def().kernel() {
        Some(kernel) => Callee::Kernel(kernel),
        None => Callee::Dynamic(function),
    }
}

fn type_of_receiver(receiver: Option<&Value>) -> Option<TypeId> {
    match receiver {
        Some(Value::Object(handle)) => handle.object_type(),
        _ => None,
    }
}

impl Compiler<'_> {
    fn node(&mut self, node: NodeRef<'_>) -> Result<()> {
        let builds = index(self.program.templates.len())?;
        let (callee, operands) = match node.op() {
            Op::Placeholder(_) => {
                let slot = if node.num_users() > 0 {
                    Some(self.take_slot()?)
                } else {
                    None
                };
                self.program.inputs.push(slot);
                if let Some(slot) = slot {
                    self.places[node.index()] = Some(Operand::Slot(slot));
                }
                return Ok(());
            }
            Op::GetAttr(path) => {
                let Attributes { modules, tensors } = self.attributes;
                let operand = match (tensors.get_index_of(path), modules.get_index_of(path)) {
                    (Some(tensor), _) => Operand::Tensor(index(tensor)?),
                    (None, Some(module)) => Operand::Module(index(module)?),
                    (None, None) => return Err(not_found(TENSOR, path)),
                };
                self.places[node.index()] = Some(operand);
                return Ok(());
            }
            Op::Output => {
                let result = node
                    .args()
                    .first()
                    .ok_or_else(|| Error::msg("an output has one argument: the result"))?;
                self.program.output = self.operand(result)?;
                return Ok(());
            }
            Op::CallFunction(function) => {
                let operands = self.bind(function.path(), function.params(), node)?;
                (callee_of(*function), operands)
            }
            Op::CallModule(path) => {
                let found = self.attributes.modules.get_full(path);
                let (module, _, found) = found.ok_or_else(|| not_found("module", path))?;
                let params = found.params().to_vec();
                (
                    Callee::Module(index(module)?),
                    self.bind(path, &params, node)?,
                )
            }
            Op::CallMethod(name) => match node.functions().as_slice() {
                [] => {
                    return Err(ErrorKind::NotFound {
                        what: "method",
                        path: name.to_string(),
                        hint: format!(
                            ": declare it with #[wrap(method)], or in a #[wrap] impl block, and link its crate in{REGISTRY_HINT}"
                        ),
                    }
                    .into());
                }
                [only] => (callee_of(*only), self.bind(name, only.params(), node)?),
                several => {
                    let candidates = several
                        .iter()
                        .filter_map(|f| self.candidate(*f, node).transpose())
                        .collect::<Result<Vec<_>>>()?;
                    let first = candidates.first().map(|(_, _, range)| range.clone());
                    let range = first.ok_or_else(|| {
                        Error::msg(format_args!(
                            "no type's method `{name}` takes these arguments"
                        ))
                    })?;
                    (Callee::Method(candidates), range)
                }
            },
        };
        let frees_from = self.program.frees.len();
        let out = self.take_slot()?;
        self.places[node.index()] = Some(Operand::Slot(out));
        for input in node.all_input_nodes() {
            let input = input.index();
            if self.last_use[input] == Some(node.id().index)
                && let Some(Operand::Slot(slot)) = self.places[input]
            {
                self.program.frees.push(slot);
            }
        }
        if node.num_users() == 0 {
            self.program.frees.push(out);
        }
        let frees = index(frees_from)?..index(self.program.frees.len())?;
        self.free_slots.extend(&self.program.frees[frees_from..]);
        let builds = builds..index(self.program.templates.len())?;
        self.program.steps.push(Step {
            callee,
            operands,
            builds,
            out,
            frees,
            node: node.id(),
        });
        match node.meta::<ReliedOn>() {
            Some(relied_on) if node.num_users() > 0 => self.check(node, out, relied_on),
            _ => Ok(()),
        }
    }

    /// A step that compares the result of the node before it.
    fn check(&mut self, node: NodeRef<'_>, result: u32, relied_on: &ReliedOn) -> Result<()> {
        let at = index(self.program.relied_on.len())?;
        self.program.relied_on.push(relied_on.clone());
        let operands = index(self.program.operands.len())?;
        self.program.operands.push(Operand::Slot(result));
        let out = self.take_slot()?;
        self.free_slots.push(out);
        let frees = index(self.program.frees.len())?;
        self.program.steps.push(Step {
            callee: Callee::Check(at),
            operands: operands..operands + 1,
            builds: 0..0,
            out,
            frees: frees..frees,
            node: node.id(),
        });
        Ok(())
    }

    /// One type's method, if these arguments fit it.
    fn candidate(
        &mut self,
        function: Function,
        node: NodeRef<'_>,
    ) -> Result<Option<(TypeId, Kernel, Range<u32>)>> {
        let Some(receiver) = function.def().receiver else {
            return Ok(None);
        };
        match self.bind(function.path(), function.params(), node) {
            Ok(range) => Ok(function
                .def()
                .kernel()
                .map(|kernel| (receiver(), kernel, range))),
            Err(error) if matches!(error.kind(), ErrorKind::Arguments { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn take_slot(&mut self) -> Result<u32> {
        if let Some(slot) = self.free_slots.pop() {
            return Ok(slot);
        }
        self.program.slots += 1;
        index(self.program.slots - 1)
    }

    fn bind(
        &mut self,
        callee: &str,
        params: &[ParamSpec],
        node: NodeRef<'_>,
    ) -> Result<Range<u32>> {
        let all_given = node.kwargs().is_empty() && node.args().len() == params.len();
        let operands: SmallVec<[Operand; 4]> = if all_given {
            node.args()
                .iter()
                .map(|arg| self.operand(arg))
                .collect::<Result<_>>()?
        } else {
            BoundArgs::of(node, callee, params)?
                .places()
                .map(|(param, given)| match given {
                    Some(arg) => self.operand(arg),
                    None => self.constant(param.default.as_ref().map_or(Value::None, Value::from)),
                })
                .collect::<Result<_>>()?
        };
        let start = index(self.program.operands.len())?;
        self.program.operands.extend(operands);
        Ok(start..index(self.program.operands.len())?)
    }

    fn constant(&mut self, value: Value) -> Result<Operand> {
        self.program.constants.push(value);
        Ok(Operand::Constant(index(self.program.constants.len() - 1)?))
    }

    /// The operand of an argument of a call; a structure of literals is a literal.
    fn operand(&mut self, arg: &Argument) -> Result<Operand> {
        let mut is_literal = true;
        arg.for_each_node(&mut |_| is_literal = false);
        if is_literal {
            let literal = arg.to_value(&mut |_| Ok(Value::None))?;
            return self.constant(literal);
        }
        match Template::of(arg, &mut |leaf| self.leaf(leaf))? {
            Template::Leaf(operand @ Operand::Module(_)) => self.template(Template::Leaf(operand)),
            Template::Leaf(operand) => Ok(operand),
            structure => self.template(structure),
        }
    }

    fn template(&mut self, template: Template) -> Result<Operand> {
        self.program.templates.push(template);
        Ok(Operand::Built(index(self.program.templates.len() - 1)?))
    }

    /// The operand of an argument that is no structure.
    fn leaf(&mut self, arg: &Argument) -> Result<Operand> {
        let Argument::Node(id) = arg else {
            return self.constant(arg.plain_value().unwrap_or_default());
        };
        let place = self.places.get(id.index as usize).copied().flatten();
        place.ok_or_else(|| {
            let name = self.graph.node(*id).map(|n| n.name().to_string());
            Error::msg(format_args!(
                "%{} is used before it is computed",
                name.unwrap_or_default()
            ))
        })
    }
}
