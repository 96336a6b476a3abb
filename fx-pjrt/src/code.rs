//! `Code`: the executable of a part: a program for each kind of arguments, with the weights on the devices once.
//!
//! Invariant: it gives what the part gives with the weights as they are; what no program covers runs as a graph.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fx_nn::ir::ValueMeta;
use fx_nn::lowering::Signature;
use fx_nn::passes::backend::{Executable, StepReport};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::tensor::Writes;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{ArgumentKind, Export, Program, ResultTree};

use crate::batch::{Padding, padding};
use crate::cache::Cache;
use crate::client::Client;
use crate::error::PjrtError;
use crate::loaded::LoadedProgram;
use crate::weights::Weights;

/// How many programs a part keeps; the one that was not used for the longest time goes first.
const KEPT: usize = 64;

/// What code is made for, and how.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub client: Client,
    /// The sizes that batches are padded to.
    pub buckets: Vec<usize>,
    pub cache: Option<Cache>,
}

/// The code of a part.
pub(crate) struct Code {
    settings: Settings,
    source: GraphModule,
    needs_gradients: bool,
    made: Mutex<Made>,
}

/// What was made of a part so far.
struct Made {
    /// The programs by arguments, or why there is none, the last used last.
    programs: Vec<(Signature, Attempt)>,
    /// How many were compiled.
    compiled: usize,
    weights: Weights,
    /// Writes into weights that are on the devices.
    writes: Option<Writes>,
}

/// A program, or why there is none.
type Attempt = std::result::Result<Arc<Ready>, String>;

/// A program for a kind of arguments.
#[derive(Debug, Clone)]
struct Ready {
    program: LoadedProgram,
    /// Which placeholder each input of the program is.
    inputs: Vec<usize>,
    /// The tensors of the module that it takes, in order.
    values: Vec<Value>,
    results: ResultTree,
    padding: Option<Padding>,
    about: String,
}

impl Code {
    pub fn of(
        settings: &Settings,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Self> {
        let mut source = part.clone();
        source.unguarded();
        let needs_gradients = part.named_parameters().iter().any(|(_, value)| {
            let tensor = value.downcast_ref::<Tensor>();
            tensor.is_some_and(|tensor| tensor.requires_grad().unwrap_or(false))
        });
        let code = Code {
            settings: settings.clone(),
            source,
            needs_gradients,
            made: Mutex::new(Made {
                programs: Vec::new(),
                compiled: 0,
                weights: Weights::default(),
                writes: None,
            }),
        };
        // What is known of the arguments is compiled for at once, and refused at once.
        let known = inputs.iter().map(|meta| meta.as_ref().and_then(example));
        if let Some(known) = known.collect::<Option<Vec<Value>>>() {
            let inputs: Vec<&Value> = known.iter().collect();
            code.program_for(&inputs).map_err(Error::msg)?;
        }
        Ok(code)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program for arguments, compiled now if there is none, with the weights as they are.
    fn program_for(&self, inputs: &[&Value]) -> Attempt {
        let mut made = self.made();
        made.renew();
        let known = made
            .programs
            .iter()
            .position(|(signature, _)| signature.is_of(inputs));
        if let Some(at) = known {
            let entry = made.programs.remove(at);
            let attempt = entry.1.clone();
            made.programs.push(entry);
            return attempt;
        }
        let attempt = match self.compile(&mut made, inputs) {
            Err(error) if is_transient(&error) => return Err(error.to_string()),
            attempt => attempt.map_err(|error| error.to_string()),
        };
        if made.programs.len() == KEPT {
            drop(made.programs.remove(0));
            made.weights.free_unused();
        }
        made.programs.push((Signature::of(inputs), attempt.clone()));
        attempt
    }

    fn compile(&self, made: &mut Made, inputs: &[&Value]) -> Result<Arc<Ready>> {
        let buckets = &self.settings.buckets;
        let (padding, refusal) = match padding(&self.source, inputs, buckets) {
            Ok(padding) => (padding, String::new()),
            Err(error) => (None, format!(", not padded: {error}")),
        };
        if let Some(padding) = &padding {
            // Batches that are padded to one size share a program.
            let is_shared = |other: &Arc<Ready>| {
                let own = other.padding.as_ref();
                own.is_some_and(|own| own.shares_program(padding))
            };
            let mut ready = made
                .programs
                .iter()
                .filter_map(|(_, made)| made.as_ref().ok());
            if let Some(other) = ready.find(|other| is_shared(other)) {
                return Ok(Arc::new(Ready {
                    padding: Some(padding.clone()),
                    ..Ready::clone(other)
                }));
            }
        }
        let args: Vec<Value> = match &padding {
            Some(padding) => padding.padded(inputs)?,
            None => inputs.iter().map(|value| (*value).clone()).collect(),
        };
        let sizes: Vec<String> = args
            .iter()
            .map(|value| ValueMeta::of(value).to_string())
            .collect();
        let export = Export::example(CallArgs {
            args,
            kwargs: Vec::new(),
        });
        let program = Program::of(&self.source, &export)?;
        // The program's inputs are placeholders in their order; those that are known are none.
        let mut placeholders = self.source.graph().placeholders().enumerate();
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for argument in program.arguments() {
            match argument.kind {
                ArgumentKind::Input(name) => {
                    let place = placeholders.find(|(_, node)| node.target() == name);
                    let (place, _) = place.ok_or_else(|| {
                        Error::msg(format_args!("the part has no placeholder `{name}`"))
                    })?;
                    places.push(place);
                }
                ArgumentKind::Weight { value, .. } => values.push(value.clone()),
                _ => {}
            }
        }
        let watched = values
            .iter()
            .filter_map(|value| value.downcast_ref::<Tensor>());
        let watched = watched.filter_map(|tensor| tensor.candle().ok());
        match &mut made.writes {
            // From before the weights are read.
            Some(writes) => writes.watch_too(watched),
            None => made.writes = Some(Writes::watch(watched)),
        }
        let client = &self.settings.client;
        let cache = self.settings.cache.as_ref();
        let loaded = LoadedProgram::made(client, &program, cache, &made.weights)?;
        made.compiled += 1;
        let (devices, from) = (loaded.devices(), loaded.was_cached());
        let uncached = loaded
            .cache_error()
            .map(|why| format!(", not cached: {why}"));
        Ok(Arc::new(Ready {
            about: format!(
                "{} on {devices} devices of {} for ({}){}{refusal}{}",
                if from { "from the cache" } else { "compiled" },
                client.platform(),
                sizes.join(", "),
                padding.as_ref().map_or(String::new(), Padding::describe),
                uncached.unwrap_or_default(),
            ),
            program: loaded,
            inputs: places,
            values,
            results: program.result_tree().clone(),
            padding,
        }))
    }
}

impl Made {
    /// Places the weights of all programs again if one was written in place.
    fn renew(&mut self) {
        if self.writes.as_mut().is_some_and(Writes::any) {
            self.refresh();
        }
    }

    /// Places the weights of all programs again.
    fn refresh(&mut self) {
        // What failed may work now.
        self.programs.retain(|(_, made)| made.is_ok());
        if self.place_again().is_err() {
            // They are compiled again, and say what is wrong.
            self.programs.clear();
        }
    }

    fn place_again(&mut self) -> Result<()> {
        self.weights = Weights::default();
        let tensors = self
            .programs
            .iter()
            .filter_map(|(_, made)| made.as_ref().ok());
        let tensors = tensors.flat_map(|ready| &ready.values);
        let tensors = tensors.filter_map(|value| value.downcast_ref::<Tensor>());
        self.writes = Some(Writes::watch(
            tensors.filter_map(|tensor| tensor.candle().ok()),
        ));
        for (_, made) in &mut self.programs {
            let Ok(ready) = made else { continue };
            let program = ready.program.with_weights(&self.weights, &ready.values)?;
            *ready = Arc::new(Ready {
                program,
                ..Ready::clone(ready)
            });
        }
        Ok(())
    }
}

/// A value like one of which only this is known.
pub(crate) fn example(meta: &ValueMeta) -> Option<Value> {
    match meta {
        ValueMeta::Single(tensor) => {
            let dtype = tensor.dtype?;
            let sizes = tensor.shape.iter().map(|dim| dim.as_number());
            let sizes: Vec<i64> = sizes.collect::<Option<_>>()?;
            Tensor::fake(Spec::tensor(sizes, dtype)).ok().map(Value::of)
        }
        ValueMeta::Int(dim) => dim.as_number().map(Value::Int),
        ValueMeta::Float(number) => number.map(Value::Float),
        ValueMeta::Bool(truth) => truth.map(Value::Bool),
        ValueMeta::Plain(value) => Some(value.clone()),
        _ => None,
    }
}

/// Whether a value is a number, nothing, or a list of what devices take.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => true,
        Value::List(items) | Value::Tuple(items) => items
            .iter()
            .all(|item| is_plain(item) || item.downcast_ref::<Tensor>().is_some()),
        _ => false,
    }
}

/// Whether an error is of the device as it is now.
fn is_transient(error: &Error) -> bool {
    let mut source = Some(error as &dyn std::error::Error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<PjrtError>() {
            return error.is_transient();
        }
        source = error.source();
    }
    false
}

impl Executable for Code {
    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        let gradients = fx_nn::is_grad_enabled();
        if self.needs_gradients && gradients {
            return Err(
                "its parameters need gradients, which compiled code does not give: freeze them, or run it in `no_grad`".into(),
            );
        }
        for input in inputs {
            let Some(tensor) = input.downcast_ref::<Tensor>() else {
                match is_plain(input) {
                    true => continue,
                    false => {
                        return Err(format!(
                            "an argument is {}: devices take tensors and numbers",
                            input.describe()
                        )
                        .into());
                    }
                }
            };
            match tensor.candle() {
                Ok(data) if gradients && data.track_op() => {
                    return Err("an argument needs gradients".into());
                }
                Ok(_) => {}
                Err(_) => return Err("an argument has no data".into()),
            }
        }
        self.program_for(inputs).map(drop).map_err(Cow::Owned)
    }

    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        let ready = self.program_for(inputs).map_err(Error::msg)?;
        let padded = match &ready.padding {
            Some(padding) => Some(padding.padded(inputs)?),
            None => None,
        };
        let given = |place: &usize| match &padded {
            Some(padded) => &padded[*place],
            None => inputs[*place],
        };
        let tensors = ready.inputs.iter().map(|place| {
            let value = given(place);
            value.downcast_ref::<Tensor>().ok_or_else(|| {
                Error::msg(format_args!(
                    "an input is {}, and no tensor",
                    value.describe()
                ))
            })
        });
        let tensors: Vec<&Tensor> = tensors.collect::<Result<_>>()?;
        let mut results = ready.program.call(tensors)?;
        if let Some(padding) = &ready.padding {
            padding.cut(&mut results)?;
        }
        *out = ready.results.build(results)?;
        Ok(())
    }

    fn plans(&self) -> usize {
        self.made().compiled
    }

    fn renewed(&self, part: &GraphModule) -> Result<Arc<dyn Executable>> {
        let inputs = vec![None; part.graph().placeholders().count()];
        Ok(Arc::new(Code::of(&self.settings, part, &inputs)?))
    }

    fn refresh(&self) {
        self.made().refresh();
    }

    fn steps(&self) -> Vec<StepReport> {
        let made = self.made();
        let all = made.programs.iter().map(|(_, made)| match made {
            Ok(ready) => ready.about.clone(),
            Err(why) => format!("the graph runs instead: {why}"),
        });
        all.map(|about| StepReport::new(about, [])).collect()
    }
}
