//! `Code`: the executable of a part: a program for each kind of arguments, and the part itself for
//! what no program covers.
//!
//! Invariant: it gives what the part gives with the weights as they are, or its error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fx_core::ir::{Argument, NodeRef, Op, ValueMeta};
use fx_core::module::ComponentExt;
use fx_core::passes::backend::{Around, CallRules, Executable, StepReport, StepRun};
use fx_core::passes::{FoldConstants, MethodsToFunctions};
use fx_core::shapes::Spec;
use fx_core::trace::CallArgs;
use fx_core::value::{DType, NodeId, Value};
use fx_core::{Error, GraphModule, Result, operator};

use fx_kernels::Level;

use super::options::Options;
use super::program::Program;
use super::run::OnStep;
use super::support::refusal;
use super::{absorb, fuse, grow, layout, lower, types};
use crate::Tensor;
use crate::lowering::{Signature, wrapped};
use crate::nn::replace::replace;
use crate::passes::{FuseBatchNorm, RemoveDropout};
use crate::tensor::is_grad_enabled;
use crate::tensor::writes::Writes;
use crate::threads::threads_awake;

/// What a program is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// The types of the arguments that are tensors of floats.
    floats: Vec<Option<DType>>,
    /// What each node of the part gives, where some give 16 bits: the dims of arguments and the numbers among them have a say
    /// in it.
    types: Vec<Option<DType>>,
}

impl Key {
    /// The key of arguments, with what the rules found of them if they were asked.
    fn of(metas: &[ValueMeta], rules: Option<&CallRules>) -> Self {
        let floats = metas.iter().map(float_type).collect();
        let types = rules.map(CallRules::dtypes).unwrap_or_default();
        let is_half = |dtype: &DType| types::half_of(*dtype).is_some();
        let types = match types.iter().flatten().any(is_half) {
            true => types,
            false => Vec::new(),
        };
        Key { floats, types }
    }

    fn has_halves(&self) -> bool {
        !self.types.is_empty()
    }
}

/// How many sets of sizes are remembered that the calls of a part take.
const REMEMBERED: usize = 8;

/// The code of a part.
pub(super) struct Code {
    options: Options,
    needs_gradients: bool,
    made: Mutex<Made>,
    failures: Mutex<Vec<String>>,
}

/// What was made of a part so far.
struct Made {
    /// The part as it was given; `None` once it is released.
    source: Option<Arc<GraphModule>>,
    /// What its calls refuse; made for the first run.
    rules: Option<CallRules>,
    /// The programs, or why there is none.
    programs: Vec<(Key, std::result::Result<Arc<Program>, String>)>,
    /// Arguments that no call refuses, with the program for them, the newest last.
    taken: Vec<(Signature, Arc<Program>)>,
    /// Writes into the weights that the programs packed.
    writes: Writes,
}

impl Code {
    pub fn of(part: &GraphModule, inputs: &[Option<ValueMeta>], options: Options) -> Result<Code> {
        let mut source = part.clone();
        source.unguarded();
        let needs_gradients = part.named_parameters().iter().any(|(_, value)| {
            value
                .downcast_ref::<Tensor>()
                .is_some_and(|tensor| tensor.requires_grad().unwrap_or(false))
        });
        let code = Code {
            options,
            needs_gradients,
            made: Mutex::new(Made {
                source: Some(Arc::new(source)),
                rules: None,
                programs: Vec::new(),
                taken: Vec::new(),
                writes: Writes::default(),
            }),
            failures: Mutex::default(),
        };
        if inputs.iter().all(Option::is_some) {
            let metas: Vec<ValueMeta> = inputs.iter().flatten().cloned().collect();
            let mut made = code.made();
            let asked = match metas.iter().all(ValueMeta::is_closed) {
                true => made.key(&metas).ok(),
                false => None,
            };
            // With open sizes, nothing says yet which calls give 16 bits.
            let key = match asked {
                None if takes_halves(part, &metas)? => None,
                None => Some(Key::of(&metas, None)),
                asked => asked,
            };
            if let Some(key) = key {
                made.program(key, metas, &code.options)?;
            }
            drop(made);
        }
        Ok(code)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_observed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        let program = self.made().program_for(inputs, &self.options);
        let run = program.and_then(|program| program.run(inputs, out, on_step));
        let Err(error) = run else {
            return Ok(());
        };
        let Some(source) = self.made().source.clone() else {
            return Err(error);
        };
        // The part says what is wrong, with its node and line, or does what the program cannot.
        let args = inputs.iter().map(|value| (*value).clone()).collect();
        *out = source.forward(CallArgs {
            args,
            kwargs: Vec::new(),
        })?;
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < 8 {
            failures.push(error.to_string());
        }
        Ok(())
    }
}

impl Made {
    /// The program for arguments that no call of the part refuses, with the weights as they are.
    fn program_for(&mut self, inputs: &[&Value], options: &Options) -> Result<Arc<Program>> {
        self.forget_written();
        let mut taken = self.taken.iter().rev();
        if let Some((_, program)) = taken.find(|(signature, _)| signature.is_of(inputs)) {
            return Ok(program.clone());
        }
        let metas: Vec<ValueMeta> = inputs.iter().map(|value| ValueMeta::of(value)).collect();
        let key = self.key(&metas)?;
        let program = self.program(key, metas, options)?;
        if self.taken.len() == REMEMBERED {
            self.taken.remove(0);
        }
        self.taken.push((Signature::of(inputs), program.clone()));
        Ok(program)
    }

    /// The key of arguments, if no call of the part refuses them.
    fn key(&mut self, metas: &[ValueMeta]) -> Result<Key> {
        if self.rules.is_none()
            && let Some(source) = &self.source
        {
            self.rules = Some(CallRules::of(source)?);
        }
        if let Some(rules) = &mut self.rules {
            rules.check(metas.to_vec())?;
        }
        Ok(Key::of(metas, self.rules.as_ref()))
    }

    /// Forgets the programs if a weight was written since they were made.
    fn forget_written(&mut self) {
        if self.source.is_some() && self.writes.any() {
            self.forget_programs();
        }
    }

    fn forget_programs(&mut self) {
        self.programs.clear();
        self.taken.clear();
    }

    /// The program for a kind of arguments, of which `metas` are some.
    fn program(
        &mut self,
        key: Key,
        metas: Vec<ValueMeta>,
        options: &Options,
    ) -> Result<Arc<Program>> {
        if let Some((_, program)) = self.programs.iter().find(|(other, _)| *other == key) {
            return program.clone().map_err(Error::msg);
        }
        let source = self.source.as_ref().ok_or_else(|| {
            Error::msg("the code was released before it was made for arguments of these types")
        })?;
        if self.programs.is_empty() {
            // From before the weights are read.
            let named = [source.named_parameters(), source.named_buffers()];
            let tensors = named.iter().flatten();
            let tensors = tensors.filter_map(|(_, value)| value.downcast_ref::<Tensor>());
            self.writes = Writes::watch(tensors.filter_map(|tensor| tensor.candle().ok()));
        }
        let program = program(source, &key, metas, options);
        let kept = program.as_ref().map(Arc::clone).map_err(Error::to_string);
        self.programs.push((key, kept));
        program
    }
}

/// A program for a kind of arguments.
fn program(
    source: &GraphModule,
    key: &Key,
    metas: Vec<ValueMeta>,
    options: &Options,
) -> Result<Arc<Program>> {
    let has_halves = key.has_halves();
    let mut opened = opened(source, has_halves)?;
    if has_halves {
        let mut rules = CallRules::of(&opened)?;
        rules.check(metas)?;
        opened = rules.into_graph()?;
    }
    let mut draft = lower::lower(&opened, &key.floats, has_halves)?;
    draft.without_dead();
    absorb::absorb(&mut draft)?;
    fuse::fuse(&mut draft);
    grow::caches(&mut draft);
    layout::choose(&mut draft);
    Program::of(draft, options).map(Arc::new)
}

/// Whether an argument or a tensor of a part is of floats of 16 bits.
fn takes_halves(part: &GraphModule, metas: &[ValueMeta]) -> Result<bool> {
    let mut types: Vec<DType> = metas.iter().filter_map(ValueMeta::dtype).collect();
    let named = [part.named_parameters(), part.named_buffers()];
    for (_, value) in named.into_iter().flatten() {
        if let Some(tensor) = value.downcast_ref::<Tensor>() {
            types.push(tensor.dtype()?);
        }
    }
    Ok(types
        .into_iter()
        .any(|dtype| types::half_of(dtype).is_some()))
}

/// A part without layers, batch norms folded into their convolutions. With floats of 16 bits, they are folded later, where
/// weights are `f32`.
pub(super) fn opened(part: &GraphModule, has_halves: bool) -> Result<GraphModule> {
    let mut opened = part.clone();
    opened.apply(&RemoveDropout)?;
    if !has_halves {
        opened.apply(&FuseBatchNorm)?;
    }
    let mut opened = opened.opened()?;
    opened.apply(&MethodsToFunctions)?;
    opened.apply(&FoldConstants::new())?;
    put_items(&mut opened)?;
    Ok(opened)
}

/// Puts the items of tuples and lists that are written down, however deep, in place of calls that take them.
fn put_items(gm: &mut GraphModule) -> Result<()> {
    let takes =
        |node: &NodeRef<'_>| matches!(node.op(), Op::CallFunction(f) if *f == operator::getitem);
    let calls: Vec<NodeId> = gm
        .graph()
        .nodes()
        .filter(takes)
        .map(|node| node.id())
        .collect();
    let mut graph = gm.graph_mut();
    for call in calls {
        // One of an item of a call before it is gone.
        let Ok(node) = graph.node(call) else {
            continue;
        };
        let item = match node.args() {
            [
                Argument::Tuple(items) | Argument::List(items),
                Argument::Int(at),
            ] => usize::try_from(wrapped(*at, items.len()))
                .ok()
                .and_then(|at| items.get(at))
                .cloned(),
            _ => None,
        };
        if let Some(item) = item {
            graph.substitute(call, &item)?;
            graph.erase_node(call)?;
        }
    }
    Ok(())
}

/// What all threads of the pool do in a second at best.
fn peak_flops(level: Level) -> f64 {
    static PEAKS: Mutex<BTreeMap<Level, f64>> = Mutex::new(BTreeMap::new());
    let mut peaks = PEAKS.lock().unwrap_or_else(PoisonError::into_inner);
    let peak = peaks.entry(level).or_insert_with(|| {
        // The best of some: the machine may do something else meanwhile.
        let runs = (0..5).map(|_| fx_kernels::peak_flops(level));
        runs.fold(0.0, f64::max) * rayon::current_num_threads() as f64
    });
    *peak
}

/// The type of a tensor of floats.
fn float_type(meta: &ValueMeta) -> Option<DType> {
    types::float_type(meta.tensor()?.dtype?)
}

impl Executable for Code {
    fn around(&self) -> Option<Arc<dyn Around>> {
        Some(threads_awake())
    }

    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        let gradients = is_grad_enabled();
        if self.needs_gradients && gradients {
            return Err(
                "its parameters need gradients, which compiled code does not give: freeze them, or run it in `no_grad`".into(),
            );
        }
        for input in inputs {
            let Some(tensor) = input.downcast_ref::<Tensor>() else {
                continue;
            };
            let Ok(data) = tensor.candle() else {
                return Err("an argument has no data".into());
            };
            if gradients && data.track_op() {
                return Err("an argument needs gradients".into());
            }
            if !data.device().is_cpu() {
                return Err("an argument is not on the CPU".into());
            }
            let dtype = data.dtype();
            let is_computed = |dtype| types::float_type(dtype).is_some();
            if dtype.is_float() && !tensor.dtype().is_ok_and(is_computed) {
                return Err(format!("an argument has elements of {}", dtype.as_str()).into());
            }
        }
        Ok(())
    }

    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        self.run_observed(inputs, out, None)
    }

    fn run_timed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<()> {
        self.run_observed(inputs, out, Some(on_step))
    }

    fn peak_flops(&self) -> Option<f64> {
        Some(peak_flops(self.options.level))
    }

    fn plans(&self) -> usize {
        let made = self.made();
        made.programs
            .iter()
            .filter(|(_, made)| made.is_ok())
            .count()
    }

    fn renewed(&self, part: &GraphModule) -> Result<Arc<dyn Executable>> {
        if let Some(reason) = refusal(part)? {
            return Err(Error::msg(reason));
        }
        let inputs = vec![None; part.graph().placeholders().count()];
        let code = Code::of(part, &inputs, self.options.clone())?;
        Ok(Arc::new(code))
    }

    fn refresh(&self) {
        let mut made = self.made();
        if made.source.is_some() {
            made.forget_programs();
        }
    }

    fn release(&self, source: &mut GraphModule) -> Result<()> {
        let mut made = self.made();
        if !made.programs.iter().any(|(_, program)| program.is_ok()) {
            return Err(Error::msg(
                "nothing is packed yet: compile with `.like(..)`, or run the module before its source is released",
            ));
        }
        replace(source, |_, tensor| {
            Tensor::fake(Spec::of(Value::of(tensor.clone()))).map(Some)
        })?;
        // The rules need no data.
        if made.rules.is_none()
            && let Some(source) = &made.source
        {
            made.rules = Some(CallRules::of(source)?);
        }
        made.source = None;
        Ok(())
    }

    fn steps(&self) -> Vec<StepReport> {
        let mut steps: Vec<StepReport> = self
            .made()
            .programs
            .iter()
            .find_map(|(_, program)| Some(program.as_ref().ok()?.report()))
            .unwrap_or_default();
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        steps.extend(
            failures
                .iter()
                .map(|why| StepReport::new(format!("the graph ran instead: {why}"), [])),
        );
        steps
    }
}
