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
use crate::shapes::relied::ReliedOn;
use crate::text;
use crate::trace::dispatch::{self, CallForm};
use crate::trace::scope::visible_modes;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// Where an argument of a step comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operand {
    /// A value computed before.
    Slot(u32),
    /// A literal.
    Constant(u32),
    /// A tensor of the attributes.
    Tensor(u32),
    /// A module of the attributes, passed to a function.
    Module(u32),
    /// A structure with computed values inside, built again each time.
    Template(u32),
}

impl Operand {
    /// Whether it is made for each call.
    fn is_built(self) -> bool {
        matches!(self, Operand::Template(_) | Operand::Module(_))
    }
}

/// A structured argument.
#[derive(Debug)]
enum Template {
    Leaf(Operand),
    List(Vec<Template>),
    Tuple(Vec<Template>),
    Dict(Vec<(std::sync::Arc<str>, Template)>),
    Slice(Box<[Template; 3]>),
    Range(Box<[Template; 3]>),
}

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
    has_templates: bool,
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
    /// Slots of earlier runs, with boxes to refill.
    frames: Mutex<Vec<Vec<Value>>>,
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
        frame.resize_with(self.slots, Value::default);
        for (value, slot) in inputs.into_iter().zip(&self.inputs) {
            if let Some(slot) = slot {
                frame[*slot as usize] = value;
            }
        }
        let result = self
            .run_steps(graph, attributes, &mut frame, observer)
            .map_err(|(node, error)| match graph.node(node) {
                Ok(node) => node.blame("executing", error),
                Err(_) => error,
            });
        let result = result.and_then(|()| {
            Ok(match self.output {
                Operand::Slot(slot) => std::mem::take(&mut frame[slot as usize]),
                operand => self.fetch(operand, &frame, attributes)?,
            })
        });
        frame.iter_mut().for_each(Value::clear);
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        // As many frames as threads run at once, within reason.
        if frames.len() < 64 {
            frames.push(frame);
        }
        result
    }

    fn run_steps(
        &self,
        graph: &Graph,
        attributes: &Attributes,
        frame: &mut [Value],
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
            let mut out = std::mem::take(&mut frame[step.out as usize]);
            let result = if is_seen {
                self.call_seen(step, graph, attributes, frame, &mut out)
            } else if step.has_templates {
                self.call_with_templates(step, attributes, frame, &mut out)
            } else {
                self.call(step, attributes, frame, &mut out)
            };
            frame[step.out as usize] = out;
            if let Err(error) = result {
                return Err((step.node, error));
            }
            if let Some(observer) = &mut observer
                && !matches!(step.callee, Callee::Check(_))
            {
                graph
                    .node(step.node)
                    .and_then(|node| observer(node, &frame[step.out as usize]))
                    .map_err(|error| (step.node, error))?;
            }
            for slot in &self.frees[step.frees.start as usize..step.frees.end as usize] {
                frame[*slot as usize].clear();
            }
        }
        Ok(())
    }

    #[inline]
    fn lend<'a>(
        &'a self,
        operand: Operand,
        attributes: &'a Attributes,
        frame: &'a [Value],
    ) -> &'a Value {
        static NONE: Value = Value::None;
        match operand {
            Operand::Slot(slot) => &frame[slot as usize],
            Operand::Constant(constant) => &self.constants[constant as usize],
            Operand::Tensor(tensor) => &attributes.tensors[tensor as usize].1,
            // Steps with templates take the other path.
            Operand::Template(_) | Operand::Module(_) => &NONE,
        }
    }

    #[inline]
    fn call(
        &self,
        step: &Step,
        attributes: &Attributes,
        frame: &[Value],
        out: &mut Value,
    ) -> Result<()> {
        let lent = |operands: &[Operand]| -> SmallVec<[&Value; 8]> {
            let lent = operands.iter().map(|o| self.lend(*o, attributes, frame));
            lent.collect()
        };
        let (kernel, range) = match &step.callee {
            Callee::Kernel(kernel) => (*kernel, &step.operands),
            Callee::Module(module) => {
                let args = lent(self.operands_of(&step.operands));
                return attributes.modules[*module as usize].run(&args, out);
            }
            Callee::Dynamic(function) => {
                let args = lent(self.operands_of(&step.operands));
                return function.run(&args, out);
            }
            Callee::Check(relied_on) => {
                let checked = lent(self.operands_of(&step.operands));
                let relied_on = &self.relied_on[*relied_on as usize];
                return checked.iter().try_for_each(|value| relied_on.check(value));
            }
            Callee::Method(candidates) => {
                let receiver = self
                    .operands_of(&step.operands)
                    .first()
                    .map(|o| self.lend(*o, attributes, frame));
                pick(candidates, receiver)?
            }
        };
        match self.operands_of(range) {
            [a] => kernel(&[self.lend(*a, attributes, frame)], out),
            [a, b] => kernel(
                &[
                    self.lend(*a, attributes, frame),
                    self.lend(*b, attributes, frame),
                ],
                out,
            ),
            operands => {
                let args = lent(operands);
                kernel(&args, out)
            }
        }
    }

    fn call_with_templates(
        &self,
        step: &Step,
        attributes: &Attributes,
        frame: &[Value],
        out: &mut Value,
    ) -> Result<()> {
        let own = &step.operands;
        match &step.callee {
            Callee::Kernel(kernel) => {
                self.with_args(own, attributes, frame, |args| kernel(args, out))
            }
            Callee::Module(module) => self.with_args(own, attributes, frame, |args| {
                attributes.modules[*module as usize].run(args, out)
            }),
            Callee::Dynamic(function) => {
                self.with_args(own, attributes, frame, |args| function.run(args, out))
            }
            Callee::Check(_) => Ok(()),
            Callee::Method(candidates) => {
                let receiver = own.start..own.end.min(own.start + 1);
                let (kernel, range) = self.with_args(&receiver, attributes, frame, |args| {
                    pick(candidates, args.first().copied())
                })?;
                self.with_args(range, attributes, frame, |args| kernel(args, out))
            }
        }
    }

    /// A step as a call that modes see.
    #[cold]
    fn call_seen(
        &self,
        step: &Step,
        graph: &Graph,
        attributes: &Attributes,
        frame: &[Value],
        out: &mut Value,
    ) -> Result<()> {
        if let Callee::Check(_) = step.callee {
            return self.call(step, attributes, frame, out);
        }
        let here = Location::caller();
        let mut args = self.fetch_all(&step.operands, attributes, frame)?;
        let node = graph.node(step.node)?;
        if let Callee::Module(module) = step.callee {
            *out = dispatch::call_module(&*attributes.modules[module as usize], args, here)?;
            return Ok(());
        }
        if let Callee::Method(candidates) = &step.callee {
            let (_, range) = pick(candidates, args.first())?;
            args = self.fetch_all(range, attributes, frame)?;
        }
        let functions = node.functions();
        let receiver = type_of_receiver(args.first());
        let is_its = |f: &&Function| f.def().receiver.map(|ty| ty()) == receiver;
        let function = functions
            .one()
            .or_else(|| functions.as_slice().iter().find(is_its).copied())
            .ok_or_else(|| Error::msg("no type's method takes these arguments"))?;
        let form = match node.op() {
            Op::CallMethod(_) => CallForm::Method,
            _ => CallForm::Function,
        };
        let free = std::mem::take(out);
        *out = dispatch::call_values_at(function, form, args, free, here)?;
        Ok(())
    }

    /// Lends operands to a closure; structures and modules are built for it.
    fn with_args<R>(
        &self,
        range: &Range<u32>,
        attributes: &Attributes,
        frame: &[Value],
        run: impl FnOnce(&[&Value]) -> Result<R>,
    ) -> Result<R> {
        let operands = self.operands_of(range);
        let built = operands.iter().filter(|operand| operand.is_built());
        let built: SmallVec<[Value; 2]> = built
            .map(|operand| self.fetch(*operand, frame, attributes))
            .collect::<Result<_>>()?;
        let mut built = built.iter();
        let args: SmallVec<[&Value; 8]> = operands
            .iter()
            .map(|operand| match operand.is_built() {
                true => built.next().expect("each such operand was built"),
                false => self.lend(*operand, attributes, frame),
            })
            .collect();
        run(&args)
    }

    fn fetch_all(
        &self,
        range: &Range<u32>,
        attributes: &Attributes,
        frame: &[Value],
    ) -> Result<Vec<Value>> {
        let operands = self.operands_of(range).iter();
        operands
            .map(|o| self.fetch(*o, frame, attributes))
            .collect()
    }

    fn operands_of(&self, range: &Range<u32>) -> &[Operand] {
        &self.operands[range.start as usize..range.end as usize]
    }

    fn fetch(&self, operand: Operand, frame: &[Value], attributes: &Attributes) -> Result<Value> {
        match operand {
            Operand::Template(template) => {
                self.build(&self.templates[template as usize], frame, attributes)
            }
            // In its current state: it may have been changed in place.
            Operand::Module(module) => Ok(module_value(&*attributes.modules[module as usize])),
            operand => Ok(self.lend(operand, attributes, frame).clone()),
        }
    }

    /// Builds a structured argument; its depth is bounded where arguments enter the graph.
    fn build(
        &self,
        template: &Template,
        frame: &[Value],
        attributes: &Attributes,
    ) -> Result<Value> {
        let all = |items: &[Template]| {
            items
                .iter()
                .map(|t| self.build(t, frame, attributes))
                .collect::<Result<Box<[Value]>>>()
        };
        let three = |[a, b, c]: &[Template; 3]| -> Result<[Value; 3]> {
            Ok([
                self.build(a, frame, attributes)?,
                self.build(b, frame, attributes)?,
                self.build(c, frame, attributes)?,
            ])
        };
        Ok(match template {
            Template::Leaf(operand) => self.fetch(*operand, frame, attributes)?,
            Template::List(items) => Value::List(all(items)?),
            Template::Tuple(items) => Value::Tuple(all(items)?),
            Template::Dict(items) => Value::Dict(Box::new(
                items
                    .iter()
                    .map(|(k, t)| Ok((k.clone(), self.build(t, frame, attributes)?)))
                    .collect::<Result<_>>()?,
            )),
            Template::Slice(parts) => Value::Slice(Box::new(three(parts)?)),
            Template::Range(parts) => Value::Range(Box::new(three(parts)?)),
        })
    }
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
        let (callee, operands) = match node.op() {
            Op::Placeholder(_) => {
                let slot = if node.num_users() > 0 {
                    Some(self.take_slot()?)
                } else {
                    None
                };
                self.program.inputs.push(slot);
                if let Some(slot) = slot {
                    self.places[node.id().index as usize] = Some(Operand::Slot(slot));
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
                self.places[node.id().index as usize] = Some(operand);
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
                        hint: ": declare it with #[wrap(method)], or in a #[wrap] impl block, and link its crate in".to_string(),
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
        self.places[node.id().index as usize] = Some(Operand::Slot(out));
        for input in node.all_input_nodes() {
            let input = input.id().index as usize;
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
        let has_templates = self
            .program
            .operands_of(&operands)
            .iter()
            .any(|o| matches!(o, Operand::Template(_) | Operand::Module(_)));
        self.program.steps.push(Step {
            callee,
            operands,
            has_templates,
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
            has_templates: false,
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

    fn operand(&mut self, arg: &Argument) -> Result<Operand> {
        Ok(match self.template(arg)? {
            Template::Leaf(operand) => operand,
            structure => {
                self.program.templates.push(structure);
                Operand::Template(index(self.program.templates.len() - 1)?)
            }
        })
    }

    fn three(&mut self, [a, b, c]: &[Argument; 3]) -> Result<[Template; 3]> {
        Ok([self.template(a)?, self.template(b)?, self.template(c)?])
    }

    fn template(&mut self, arg: &Argument) -> Result<Template> {
        let leaf = match arg {
            Argument::Node(id) => {
                let place = self.places.get(id.index as usize).copied().flatten();
                return place.map(Template::Leaf).ok_or_else(|| {
                    let name = self.graph.node(*id).map(|n| n.name().to_string());
                    Error::msg(format_args!(
                        "%{} is used before it is computed",
                        name.unwrap_or_default()
                    ))
                });
            }
            Argument::List(items) => {
                return Ok(Template::List(
                    items
                        .iter()
                        .map(|a| self.template(a))
                        .collect::<Result<_>>()?,
                ));
            }
            Argument::Tuple(items) => {
                return Ok(Template::Tuple(
                    items
                        .iter()
                        .map(|a| self.template(a))
                        .collect::<Result<_>>()?,
                ));
            }
            Argument::Dict(items) => {
                return Ok(Template::Dict(
                    items
                        .iter()
                        .map(|(k, a)| Ok((k.clone(), self.template(a)?)))
                        .collect::<Result<_>>()?,
                ));
            }
            Argument::Slice(parts) => return Ok(Template::Slice(Box::new(self.three(parts)?))),
            Argument::Range(parts) => return Ok(Template::Range(Box::new(self.three(parts)?))),
            plain => plain.plain_value().unwrap_or_default(),
        };
        self.constant(leaf).map(Template::Leaf)
    }
}
