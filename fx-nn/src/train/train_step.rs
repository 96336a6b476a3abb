//! `TrainStep`: a training step that is run again and again, with what it carries from step to step.
//!
//! Invariant: parameters, state and buffers are those after the last step that succeeded.

use std::path::Path;
use std::sync::Arc;

use fx_core::ir::{Effects, Function, Op};
use fx_core::module::{Component, ComponentExt, Module, TensorKind};
use fx_core::passes::backend::{StepReport, StepRun};
use fx_core::shapes::Spec;
use fx_core::trace::{CallArgs, FromValue, IntoArgs, Root, Trace};
use fx_core::value::{DType, IntoValue, Tree, Value};
use fx_core::{Error, GraphModule, IndexMap, Result};
use rustc_hash::FxHashSet;

use super::loss::{Loss, dict, values};
use super::loss_scale::{self, LossScale};
use super::step::{Options, StepGraph};
use crate::cpu::Cpu;
use crate::cpu::resident::{Carried, Resident};
use crate::func::source::{FunctionsOnly, Source};
use crate::func::transform::key_of;
use crate::func::{Recompute, Transform};
use crate::nn::replace::replace;
use crate::ops;
use crate::optim::{Optimizer, tensors_of};
use crate::tensor::Tensor;

/// A training step as one graph: forward, loss, gradient, clipping and optimizer.
///
/// ```
/// use fx_nn::optim::AdamW;
/// use fx_nn::prelude::*;
/// use fx_nn::train::TrainStep;
/// fx_nn::manual_seed(0);
/// let mut model = nn::Linear::new(3, 1)?;
/// let x = Tensor::randn((64, 3))?;
/// let y = (x.sum(1)? * 2.0)?.unsqueeze(1)?;
/// let loss = traced!(|found: &Tensor, y: &Tensor| (found - y)?.square()?.mean(..));
/// let mut step = TrainStep::new(&model, loss, AdamW::new(&model)?.lr(0.1).weight_decay(0.0))?;
/// for _ in 0..200 {
///     step.run((&x, &y))?;
/// }
/// step.store(&mut model)?;
/// let error = (model.forward(&x)? - &y)?.abs()?.amax(..)?;
/// assert!(error.item()? < 0.01, "{}", error.item()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub struct TrainStep {
    graph: StepGraph,
    lr: f64,
    steps: u64,
    /// Parameters, state and buffers.
    carried: Carrying,
    is_compiled: bool,
    recompute: Option<Recompute>,
    made: Vec<(String, Arc<Made>)>,
}

/// What is carried: tensors, or memory of compiled code.
enum Carrying {
    Tensors(Vec<Value>),
    Memory(Vec<Carried>),
}

/// What runs a step.
enum Made {
    Graph(GraphModule),
    /// A program, and the graph for what it cannot, or what is wrong.
    Program(Box<Resident>, GraphModule),
}

impl TrainStep {
    /// A step of the trained parameters of a model. `loss` takes the result of the model, then whatever a run is given
    /// behind the inputs of the model, and gives one number. The optimizer gives the rule, the options and the
    /// learning rate; what it has done so far does not count.
    ///
    /// # Errors
    /// Returns an error if nothing is trained, or the optimizer has no [rule](Optimizer::update_rule).
    pub fn new<'r>(
        model: &impl Module,
        loss: impl Root<'r>,
        optimizer: impl Optimizer,
    ) -> Result<Self> {
        let rule = optimizer.update_rule().ok_or_else(|| {
            Error::msg("the optimizer has no rule that a graph can have: implement `Optimizer::update_rule`, or train step by step")
        })?;
        let is_trained = |value: &Value| {
            let tensor = value.downcast_ref::<Tensor>();
            tensor.is_some_and(|tensor| tensor.requires_grad().unwrap_or(false))
        };
        let parameters = model.named_parameters().into_iter();
        let parameters: Vec<_> = parameters.filter(|(_, value)| is_trained(value)).collect();
        if parameters.is_empty() {
            return Err(Error::msg(
                "the module has no parameters to train: unfreeze some with `nn::set_requires_grad`",
            ));
        }
        let written = written_buffers(model);
        let buffers = model.named_buffers().into_iter();
        let buffers: Vec<_> = buffers.filter(|(path, _)| written(path)).collect();
        let options = Options {
            clip: None,
            parts: 1,
            scale: None,
        };
        // The model keeps its own.
        let copied = |named: &[(String, Value)]| -> Result<Vec<Value>> {
            let each = named.iter().map(|(_, value)| {
                let tensor = Tensor::from_value(value.clone())?;
                let copy = tensor.candle()?.detach().copy().map_err(Error::other)?;
                Ok(Tensor::from(copy).into_value())
            });
            each.collect()
        };
        let mut carried = copied(&parameters)?;
        // The graph is of the shapes of what is trained, and needs none of the numbers.
        let mut model: Box<dyn Module> = model.duplicate_box();
        replace(&mut *model, |kind, tensor| match kind {
            TensorKind::Parameter if tensor.requires_grad()? => shape_of(tensor).map(Some),
            _ => Ok(None),
        })?;
        let mut shapes = model.named_parameters();
        let parameters = parameters.into_iter().map(|(path, value)| {
            let shape = shapes.swap_remove(&path);
            (path, shape.unwrap_or(value))
        });
        let parameters = parameters.collect();
        let loss = Loss::new(Source::Module(model), Source::of(loss), parameters, buffers)?;
        let graph = StepGraph::new(loss, rule, options);
        let zeros = graph.state().into_iter().map(|(_, value)| {
            let like = Tensor::from_value(value)?.detach()?;
            ops::zeros_like(&like, None).map(IntoValue::into_value)
        });
        carried.extend(zeros.collect::<Result<Vec<_>>>()?);
        carried.extend(copied(&graph.loss.buffers)?);
        Ok(TrainStep {
            is_compiled: graph.loss.parameters.iter().all(|(_, value)| {
                let tensor = value.downcast_ref::<Tensor>();
                tensor.is_some_and(|tensor| matches!(tensor.dtype(), Ok(DType::F32)))
            }),
            carried: Carrying::Tensors(carried),
            recompute: None,
            graph,
            lr: optimizer.learning_rate(),
            steps: 0,
            made: Vec::new(),
        })
    }

    /// Scales the gradients so that their norm, taken as one vector, is at most `largest`.
    #[must_use]
    pub fn clip_grad_norm(self, largest: f64) -> Self {
        self.with(|options| options.clip = Some(largest))
    }

    /// Cuts each batch into parts of equal size, one after the other, whose gradients are averaged: as much memory as
    /// one part needs.
    #[must_use]
    pub fn accumulate(self, parts: usize) -> Self {
        self.with(|options| options.parts = parts)
    }

    /// Has the model compute in a type of fewer digits, as `bf16`: parameters, their gradients and the state of the optimizer
    /// stay as they are, and so do the statistics of batch norms and the loss.
    ///
    /// ```
    /// use fx_nn::optim::AdamW;
    /// use fx_nn::prelude::*;
    /// use fx_nn::train::{LossScale, TrainStep};
    /// fx_nn::manual_seed(0);
    /// let model = nn::Linear::new(3, 1)?;
    /// let loss = traced!(|found: &Tensor, y: &Tensor| ops::mse_loss(found, y, "mean"));
    /// let mut step = TrainStep::new(&model, loss, AdamW::new(&model)?.lr(0.1))?
    ///     .mixed_precision(DType::BF16)
    ///     .loss_scale(LossScale::default())?;
    /// let (x, y) = (Tensor::rand((8, 3))?, Tensor::zeros((8, 1))?);
    /// let first = step.run((&x, &y))?.item()?;
    /// for _ in 0..20 {
    ///     step.run((&x, &y))?;
    /// }
    /// assert!(step.run((&x, &y))?.item()? < first / 10.0);
    /// assert_eq!(step.state_dict()?["weight"].dtype()?, DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn mixed_precision(mut self, dtype: DType) -> Self {
        self.graph.loss.computes_in = Some(dtype);
        self.with(|_| ())
    }

    /// Multiplies the loss before its gradient is taken, and leaves out steps whose gradients are not finite.
    ///
    /// # Errors
    /// Returns an error if the number is not above 0.
    pub fn loss_scale(mut self, scale: LossScale) -> Result<Self> {
        let initial = scale.initial()?;
        let mut tensors = self.tensors()?;
        let loss = &self.graph.loss;
        let behind = loss.parameters.len() * (1 + self.graph.rule.state().len());
        let former = match self.graph.options.scale {
            Some(_) => loss_scale::STATE.len(),
            None => 0,
        };
        tensors.splice(behind..behind + former, initial);
        self.carried = Carrying::Tensors(tensors);
        Ok(self.with(|options| options.scale = Some(scale)))
    }

    /// How many steps were left out, since a gradient was not finite; none are without a [loss scale](TrainStep::loss_scale).
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn skipped(&self) -> Result<u64> {
        if self.graph.options.scale.is_none() {
            return Ok(0);
        }
        let at = self.graph.loss.parameters.len() + self.graph.state().len() - 1;
        let skipped = match &self.carried {
            Carrying::Tensors(tensors) => tensors[at].clone(),
            Carrying::Memory(memory) => memory[at].tensor()?,
        };
        Ok(Tensor::from_value(skipped)?.item()? as u64)
    }

    /// Has the backward part compute values again instead of keeping them, so that a step takes less memory: those inside
    /// of modules with [`checkpoint`](crate::func::checkpoint), or as little as is needed with [`Recompute::within`].
    #[must_use]
    pub fn recompute(mut self, recompute: Recompute) -> Self {
        self.recompute = Some(recompute);
        self.made.clear();
        self
    }

    /// Whether steps are compiled for the CPU, as they are unless this says otherwise; else the graph runs. Parameters
    /// of other types than `f32` are not compiled.
    #[must_use]
    pub fn compiled(mut self, is_compiled: bool) -> Self {
        self.is_compiled &= is_compiled;
        self.made.clear();
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.graph.options;
        change(&mut options);
        self.graph = StepGraph::new(self.graph.loss, self.graph.rule, options);
        self.made.clear();
        self
    }

    /// The learning rate.
    pub fn learning_rate(&self) -> f64 {
        self.lr
    }

    /// Sets the learning rate from the next step on; a schedule calls this.
    pub fn set_learning_rate(&mut self, lr: f64) {
        self.lr = lr;
    }

    /// The graph of a step for inputs like these: of the inputs, the learning rate, the number of the step from 1 on,
    /// the parameters, the state of the optimizer and the buffers; of the loss, and of these three after the step.
    ///
    /// # Errors
    /// Returns an error if a call has no gradient, or the shapes do not fit.
    pub fn graph_module(&self, inputs: &[Spec]) -> Result<GraphModule> {
        let mut gm = self.graph.graph_module(&self.graph.specs(inputs))?;
        if let Some(recompute) = &self.recompute {
            recompute.apply(&mut gm)?;
        }
        Ok(gm)
    }

    /// One step: the loss before it.
    ///
    /// # Errors
    /// Returns an error if the inputs do not fit; then nothing has changed.
    pub fn run(&mut self, inputs: impl IntoArgs) -> Result<Tensor> {
        self.run_with(inputs.into_args(), None)
    }

    /// The same; `on_step` gets what each call of the compiled step took.
    ///
    /// # Errors
    /// As [`run`](TrainStep::run).
    pub fn run_timed(
        &mut self,
        inputs: impl IntoArgs,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<Tensor> {
        self.run_with(inputs.into_args(), Some(on_step))
    }

    fn make(&self, inputs: &[Spec]) -> Result<Made> {
        if !self.is_compiled {
            return Ok(Made::Graph(self.graph_module(inputs)?));
        }
        let gm = self.graph.graph_module(&self.graph.specs(inputs))?;
        let mut of = Resident::prepared(&gm)?;
        // What is kept is chosen among the values that kernels compute.
        if let Some(recompute) = &self.recompute {
            recompute.apply(&mut of)?;
        }
        let program = Cpu::new().resident(&of, self.paths().count())?;
        Ok(Made::Program(Box::new(program), gm))
    }

    fn run_with(
        &mut self,
        inputs: CallArgs,
        on_step: Option<&mut dyn FnMut(StepRun<'_>)>,
    ) -> Result<Tensor> {
        let mut args = self.inputs(inputs)?;
        let key = key_of(&args)?;
        let made = match self.made.iter().position(|(like, _)| *like == key) {
            // The last one is that of the last run.
            Some(at) => self.made.remove(at).1,
            None => {
                let specs: Vec<Spec> = args.iter().map(|arg| Spec::of(arg.clone())).collect();
                Arc::new(self.make(&specs)?)
            }
        };
        self.made.push((key, made.clone()));
        args.push(self.lr.into_value());
        let counted = (self.steps + 1).saturating_sub(self.skipped()?);
        args.push((counted as f64).into_value());
        let loss = crate::no_grad(|| match &*made {
            Made::Graph(gm) => self.run_graph(gm, args),
            Made::Program(program, gm) => {
                match self.run_program(program, args.clone(), on_step) {
                    Ok(loss) => Ok(loss),
                    // The graph says what is wrong, with its node and line, or does what the program cannot.
                    Err(_) => self.run_graph(gm, args),
                }
            }
        })?;
        self.steps += 1;
        Tensor::from_value(loss)
    }

    fn run_program(
        &mut self,
        program: &Resident,
        args: Vec<Value>,
        on_step: Option<&mut dyn FnMut(StepRun<'_>)>,
    ) -> Result<Value> {
        if let Carrying::Tensors(tensors) = &mut self.carried {
            self.carried = Carrying::Memory(Carried::all(tensors)?);
        }
        let tree = args.into_iter().map(|arg| Tree::of(&arg)?.flatten(arg));
        let args: Vec<Value> = tree
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        match &mut self.carried {
            Carrying::Memory(memory) => program.run(&args, memory, on_step),
            Carrying::Tensors(_) => Err(Error::msg("what is carried is in no memory")),
        }
    }

    fn run_graph(&mut self, gm: &GraphModule, mut args: Vec<Value>) -> Result<Value> {
        let mut tensors = self.tensors()?.into_iter();
        for paths in self.named() {
            let own: Vec<Value> = tensors.by_ref().take(paths.len()).collect();
            args.push(dict(&paths, own));
        }
        let found: Value = gm.forward(CallArgs {
            args,
            kwargs: Vec::new(),
        })?;
        let Value::Tuple(found) = &found else {
            return Err(Error::expected(
                "a loss and what is carried",
                found.describe(),
            ));
        };
        let Some((loss, after)) = found.split_first() else {
            return Err(Error::msg("a step gives its loss"));
        };
        let after = after.iter().map(values).collect::<Result<Vec<_>>>()?;
        self.carried = Carrying::Tensors(after.into_iter().flatten().collect());
        Ok(loss.clone())
    }

    /// What the compiled step for the inputs of the last run does, call by call; none if it was not compiled.
    pub fn report(&self) -> Vec<StepReport> {
        match self.made.last().map(|(_, made)| &**made) {
            Some(Made::Program(program, _)) => program.report(),
            _ => Vec::new(),
        }
    }

    /// The bytes that compiled steps hold between runs: the parameters, the state and the buffers of the model in `f32`, and
    /// the buffers in which a step computes. The last are planned by the first run for inputs of a shape. None before it.
    /// Besides, the threads of all kernels share [`fx_kernels::scratch_bytes`].
    pub fn planned_bytes(&self) -> u64 {
        let carried = match &self.carried {
            Carrying::Tensors(_) => 0,
            Carrying::Memory(memory) => memory.iter().map(Carried::bytes).sum::<u64>(),
        };
        let made = self.made.iter().map(|(_, made)| match &**made {
            Made::Graph(_) => 0,
            Made::Program(program, _) => program.bytes(),
        });
        carried + made.sum::<u64>()
    }

    /// The values of what is carried.
    fn tensors(&self) -> Result<Vec<Value>> {
        match &self.carried {
            Carrying::Tensors(tensors) => Ok(tensors.clone()),
            Carrying::Memory(memory) => memory.iter().map(Carried::tensor).collect(),
        }
    }

    /// The paths of what is carried, in order, with what each is in files.
    fn paths(&self) -> impl Iterator<Item = (&'static str, String)> {
        let each = KINDS.into_iter().zip(self.named());
        each.flat_map(|(kind, paths)| paths.into_iter().map(move |path| (kind, path)))
    }

    fn inputs(&self, call: CallArgs) -> Result<Vec<Value>> {
        let params = self.graph.inputs();
        if call.args.len() != params.len() || !call.kwargs.is_empty() {
            let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
            return Err(Error::msg(format_args!(
                "a step takes {} in their order, and is given {} arguments",
                names.join(", "),
                call.args.len() + call.kwargs.len()
            )));
        }
        Ok(call.args)
    }

    /// The paths of the parameters, of the state and of the buffers.
    fn named(&self) -> [Vec<String>; 3] {
        let loss = &self.graph.loss;
        let paths =
            |named: &[(String, Value)]| named.iter().map(|(path, _)| path.clone()).collect();
        [
            paths(&loss.parameters),
            paths(&self.graph.state()),
            paths(&loss.buffers),
        ]
    }

    /// How many steps there were, with those that were left out.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Parameters and buffers as they are now, by path.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn state_dict(&self) -> Result<IndexMap<String, Tensor>> {
        let all = self.paths().zip(self.tensors()?);
        let all = all.filter(|((kind, _), _)| *kind != "state");
        all.map(|((_, path), value)| Ok((path, Tensor::from_value(value)?)))
            .collect()
    }

    /// Writes parameters and buffers as they are now into a model of the same structure.
    ///
    /// # Errors
    /// Returns an error if the model lacks one, or it has another shape.
    pub fn store(&self, model: &mut (impl Component + ?Sized)) -> Result<()> {
        let mut named = model.named_parameters();
        named.extend(model.named_buffers());
        for (path, tensor) in self.state_dict()? {
            let place = named
                .get(path.as_str())
                .ok_or_else(|| Error::msg(format_args!("the model has no tensor at `{path}`")))?;
            Tensor::from_value(place.clone())?.copy_from(&tensor)?;
        }
        Ok(())
    }

    /// Saves all that the next step depends on, but for the model and the options, as a safetensors file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut all = IndexMap::new();
        for ((kind, path), value) in self.paths().zip(self.tensors()?) {
            all.insert(format!("{kind}.{path}"), Tensor::from_value(value)?);
        }
        let steps = i64::try_from(self.steps).map_err(Error::other)?;
        all.insert("step".to_string(), Tensor::from_vec(vec![steps], ())?);
        all.insert("lr".to_string(), Tensor::from_vec(vec![self.lr], ())?);
        crate::weights::save_tensors(all, path)
    }

    /// Loads a file that [`save`](TrainStep::save) wrote for a step of the same model.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or lacks a tensor, or has one of another shape; nothing changes
    /// then.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let mut all = tensors_of(path.as_ref())?;
        let mut take = |name: String, like: Option<&Value>| -> Result<Tensor> {
            let found = all.swap_remove(&name).ok_or_else(|| {
                Error::msg(format_args!(
                    "the file has no `{name}`: it is of another step"
                ))
            })?;
            if let Some(like) = like {
                let like = Tensor::from_value(like.clone())?;
                if like.dims()? != found.dims()? || like.dtype()? != found.dtype()? {
                    return Err(Error::msg(format_args!(
                        "`{name}` is {:?} in the file, and {:?} in the step",
                        found.dims()?,
                        like.dims()?
                    )));
                }
            }
            Ok(found)
        };
        let steps = take("step".to_string(), None)?.item()?;
        let lr = take("lr".to_string(), None)?.item()?;
        let named = self.paths().zip(self.tensors()?);
        let carried = named.map(|((kind, path), like)| {
            take(format!("{kind}.{path}"), Some(&like)).map(IntoValue::into_value)
        });
        let carried = carried.collect::<Result<Vec<_>>>()?;
        self.carried = Carrying::Tensors(carried);
        self.steps = steps as u64;
        self.lr = lr;
        Ok(())
    }
}

/// A tensor of the same shape with one number in memory.
fn shape_of(tensor: &Tensor) -> Result<Tensor> {
    let data = tensor.candle()?;
    let one = candle_core::Tensor::zeros((), data.dtype(), data.device());
    let all = one.and_then(|one| one.broadcast_as(data.shape()));
    all.map(Tensor::from).map_err(Error::other)
}

/// Which buffers a model may write: others are constants of the graph.
fn written_buffers(model: &dyn Module) -> impl Fn(&str) -> bool + use<> {
    let written: Option<FxHashSet<String>> = (|| {
        let gm = Trace::new(model)
            .tracer(FunctionsOnly)
            .unguarded()
            .graph_module()
            .ok()?;
        let mut found = FxHashSet::default();
        for node in gm.graph().nodes() {
            let writes = |function: Function| function.def().effects.contains(Effects::WRITES);
            if !node.function().is_some_and(writes) {
                continue;
            }
            for input in node.all_input_nodes() {
                if let Op::GetAttr(path) = input.op() {
                    found.insert(path.to_string());
                    // A layer that moves its statistics counts its batches.
                    let layer = path.rfind('.').map_or("", |end| &path[..=end]);
                    found.insert(format!("{layer}num_batches_tracked"));
                }
            }
        }
        Some(found)
    })();
    move |path| {
        written
            .as_ref()
            .is_none_or(|written| written.contains(path))
    }
}

/// What is carried, in files.
const KINDS: [&str; 3] = ["parameters", "state", "buffers"];
