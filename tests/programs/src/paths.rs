//! The paths that a program can go, beside running it eagerly.
//!
//! Invariant: a path takes a program as it is, and what it gives is compared with the eager run.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fx_nn::cpu::Cpu;
use fx_nn::module::ComponentExt;
use fx_nn::passes::backend::Compile;
use fx_nn::passes::{
    AnnotateTypes, Canonicalize, Cse, DeadCode, FoldConstants, FuseBatchNorm, MergeMatmul,
    MethodsToFunctions, NormalizeArguments, RemoveDropout, RemoveIdentity, SimplifyControl,
    SplitOptions, verify_core,
};
use fx_nn::prelude::*;
use fx_nn::run::Interpreter;
use fx_nn::trace::CallArgs;
use fx_nn::value::{IntoValue, Value};
use fx_nn::{GraphModule, Result};
use fx_onnx::OnnxExt;
use fx_stablehlo::StableHloExt;
use fx_stablehlo::shard::{DimSharding, ShardRules, mesh, reference, shard};

use crate::calls::{NOT_IN_ONNX, NOT_IN_STABLEHLO, plain};
use crate::compare::Given;
use crate::engines::Engines;
use crate::expected::Compared;
use crate::generate::{Binding, Case};
use crate::gradients;
use crate::plants::Plant;
use crate::program::{Results, Step};

/// A path.
pub struct Path {
    /// Its name.
    pub name: &'static str,
    /// What of it is compared.
    pub compared: Compared,
    run: fn(&mut Paths<'_>, &GraphModule) -> Result<Vec<Given>>,
    /// Whether it can take a case.
    pub takes: fn(&Case) -> bool,
}

/// What paths run on.
pub struct Paths<'p> {
    /// The program and its arguments.
    pub case: &'p Case,
    /// The engines of other formats, if they are asked for.
    pub engines: Option<&'p mut Engines>,
    /// A fault that is planted.
    pub plant: &'p Plant,
}

/// The arguments of a binding.
pub fn arguments(case: &Case, at: usize) -> CallArgs {
    call(&case.bindings[at])
}

fn call((inputs, k): &Binding) -> CallArgs {
    let mut args: Vec<Value> = inputs.iter().map(IntoValue::into_value).collect();
    args.push(k.into_value());
    CallArgs {
        args,
        kwargs: Vec::new(),
    }
}

fn any(_: &Case) -> bool {
    true
}

fn is_fixed(case: &Case) -> bool {
    !case.named && !case.refused
}

fn is_straight(case: &Case) -> bool {
    let control = |step: &Step| matches!(step, Step::Cond(..) | Step::While(..) | Step::Scan(..));
    let draws = |step: &Step| matches!(step, Step::Call { call, .. } if call.is_random());
    let one = |step: &Step| control(step) || draws(step);
    is_fixed(case)
        && matches!(case.program.results, Results::Flat(_))
        && !case.program.steps.iter().any(one)
}

fn runs(case: &Case) -> bool {
    !case.refused
}

/// Whether no function drops what it is given: a layer does not, once it is evaluated.
fn keeps(case: &Case) -> bool {
    let drops = |step: &&Step| match step {
        Step::Call { call, layer, .. } if layer.is_none() => {
            let name = plain(&call.name);
            name.contains("drop") || name.contains("stochastic")
        }
        _ => false,
    };
    runs(case) && !case.program.all_steps().iter().any(drops)
}

/// Whether a layer draws numbers when it is trained.
fn is_drawn(case: &Case) -> bool {
    case.program.layers.iter().any(|layer| {
        let shown = format!("{layer:?}");
        ["Drop", "RReLU", "StochasticDepth"]
            .iter()
            .any(|name| shown.contains(name))
    })
}

fn trains(case: &Case) -> bool {
    !case.refused && !case.program.layers.is_empty() && !is_drawn(case)
}

fn halves(case: &Case) -> bool {
    // numpy has no bfloat16.
    !case.refused && !case.bf16
}

fn calls_any(case: &Case, names: &HashSet<String>) -> bool {
    let is_one = |step: &&Step| matches!(step, Step::Call { call, .. } if names.contains(&plain(&call.name)));
    case.program.all_steps().iter().any(is_one)
}

fn in_onnx(case: &Case) -> bool {
    halves(case) && !calls_any(case, &NOT_IN_ONNX)
}

fn in_stablehlo(case: &Case) -> bool {
    is_fixed(case) && !calls_any(case, &NOT_IN_STABLEHLO)
}

fn in_xla(case: &Case) -> bool {
    halves(case) && in_stablehlo(case)
}

/// A folder that ends with its path.
struct Folder(PathBuf);

/// The engine keeps the last program by its folder: no two have one name.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

impl Folder {
    fn new() -> Self {
        let at = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("fx_program_{}_{at}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is written over.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct AsItIs;

impl Interpreter for AsItIs {}

impl Paths<'_> {
    fn forward(&self, gm: &GraphModule) -> Result<Vec<Given>> {
        let all = (0..self.case.bindings.len())
            .map(|at| Given::of(&gm.forward::<Value>(arguments(self.case, at))?));
        all.collect()
    }

    fn passed(&self, gm: &GraphModule, pass: &impl fx_nn::passes::Pass) -> Result<Vec<Given>> {
        let mut gm = gm.clone();
        gm.apply(pass)?;
        gm.lint()?;
        self.forward(&gm)
    }

    fn core(&self, gm: &GraphModule) -> Result<GraphModule> {
        let mut core = gm.opened()?;
        core.infer_shapes(&self.case.specs)?;
        core.apply(&self.plant.decompositions()?)?;
        verify_core(&core)?;
        Ok(core)
    }

    fn onnx(&self, gm: &GraphModule) -> Result<Vec<u8>> {
        if self.case.named {
            // A file says which guards it has; it does not check them.
            self.forward(gm)?;
        }
        let export = fx_onnx::Export::specs(self.case.specs.clone());
        self.plant.onnx(gm.to_onnx_bytes(&export)?.0)
    }

    fn gradients(&self, gm: &GraphModule) -> Result<Vec<Given>> {
        let all = self.case.bindings.iter().map(|binding| {
            let binding = gradients::learning(binding)?;
            gradients::of(&binding, &gm.forward::<Value>(call(&binding))?)
        });
        all.collect()
    }

    /// What another engine gives for a file.
    fn engine(&mut self, gm: &GraphModule, engine: &str, file: &[u8]) -> Result<Vec<Given>> {
        let names: Vec<String> = gm
            .graph()
            .placeholders()
            .map(|node| node.name().to_string())
            .collect();
        let engines = self.engines.as_mut();
        let engines = engines.ok_or_else(|| fx_nn::Error::msg("engine: not asked for"))?;
        let all = (0..self.case.bindings.len()).map(|at| {
            let inputs: Vec<_> = names
                .iter()
                .cloned()
                .zip(arguments(self.case, at).args)
                .collect();
            engines.run(engine, file, &inputs)
        });
        all.collect()
    }
}

macro_rules! passes {
    ($($compared:ident $name:literal $takes:ident $pass:expr;)*) => {
        [$(Path {
            name: $name,
            compared: Compared::$compared,
            takes: $takes,
            run: |p, gm| p.passed(gm, &$pass),
        }),*]
    };
}

/// The path of programs that XLA runs.
pub const XLA: &str = "stablehlo, xla";

/// Every path.
pub fn all() -> Vec<Path> {
    let of = |compared| {
        move |name, takes, run| Path {
            name,
            compared,
            takes,
            run,
        }
    };
    let path = of(Compared::Values);
    let (trained, evaluated) = (of(Compared::Trained), of(Compared::Evaluated));
    let (learnt, in_file) = (of(Compared::Gradients), of(Compared::InFile));
    let mut all = vec![
        path("traced", any, |p, gm| p.forward(gm)),
        path("shapes", runs, |p, gm| {
            let mut gm = gm.clone();
            gm.infer_shapes(&p.case.specs)?;
            p.forward(&gm)
        }),
        path("interpreted", any, |p, gm| {
            let all = (0..p.case.bindings.len())
                .map(|at| Given::of(&gm.interpret::<Value>(&mut AsItIs, arguments(p.case, at))?));
            all.collect()
        }),
        path("transformed", any, |p, gm| {
            p.forward(&gm.transform(&mut AsItIs)?)
        }),
        path("opened", any, |p, gm| p.forward(&gm.opened()?)),
        path("decomposed", any, |p, gm| p.forward(&p.core(gm)?)),
        learnt("traced, gradients", runs, |p, gm| p.gradients(gm)),
        learnt("decomposed, gradients", runs, |p, gm| {
            p.gradients(&p.core(gm)?)
        }),
        path("split", any, |p, gm| {
            let mut at = 0;
            let split = gm.split(&SplitOptions::new(), |_| {
                at += 1;
                Some(at / 4)
            })?;
            split.module.lint()?;
            p.forward(&split.module)
        }),
        path("saved", any, |p, gm| {
            p.forward(&GraphModule::from_bytes(&gm.to_bytes()?)?)
        }),
        path("parsed", any, |p, gm| {
            let graph = gm.graph().to_string().parse()?;
            p.forward(&GraphModule::new(gm.attributes().clone(), graph, "Parsed")?)
        }),
        path("compiled", any, |p, gm| {
            p.forward(&gm.compile(Compile::new(Cpu::new()))?)
        }),
        path("compiled like", any, |p, gm| {
            p.forward(&gm.compile(Compile::new(Cpu::new()).like(arguments(p.case, 0)))?)
        }),
        trained("compiled, train()", trains, |p, gm| {
            let mut compiled = gm.compile(Compile::new(Cpu::new()).like(arguments(p.case, 0)))?;
            p.plant.train(&mut compiled);
            p.forward(&compiled)
        }),
        in_file("onnx read back", in_onnx, |p, gm| {
            let file = Bytes::from(p.onnx(gm)?);
            let read = fx_onnx::from_bytes(&file).map_err(|error| {
                // That fx cannot read what it wrote is counted by itself.
                fx_nn::Error::msg(format_args!("unread: {error}"))
            })?;
            // A file takes tensors alone.
            let runs = (0..p.case.bindings.len()).map(|at| {
                let mut call = arguments(p.case, at);
                for arg in &mut call.args {
                    if let Value::Int(k) = arg {
                        *arg = Tensor::from_vec(vec![*k], ())?.into_value();
                    }
                }
                Ok(Given::of(&read.module.forward::<Value>(call)?)?.flat())
            });
            runs.collect()
        }),
        in_file("onnx runtime", in_onnx, |p, gm| {
            let file = p.onnx(gm)?;
            p.engine(gm, "onnx", &file)
        }),
        evaluated("stablehlo", in_stablehlo, |p, gm| {
            let export = fx_stablehlo::Export::specs(p.case.specs.clone());
            gm.to_stablehlo_text(&export)?;
            Ok(Vec::new())
        }),
        evaluated(XLA, in_xla, |p, gm| {
            let folder = Folder::new();
            let export = fx_stablehlo::Export::specs(p.case.specs.clone());
            gm.to_stablehlo(&folder.0, &export)?;
            let path = folder.0.to_string_lossy();
            p.engine(gm, "stablehlo", path.as_bytes())
        }),
        evaluated("sharded reference", is_straight, |p, _| {
            let mut program = p.case.fresh()?;
            program.eval();
            let (inputs, k) = &p.case.bindings[0];
            let gm = Trace::new(&program)
                .concrete("k", Value::Int(*k))
                .graph_module()?;
            let mut gm = fx_nn::lowering::opened(&gm, |_| false)?;
            // What the trace has fixed is an input no more.
            let k = gm.graph().placeholders().last().map(|node| node.id());
            if let Some(k) = k {
                let users = gm.graph().node(k)?.users().map(|user| user.id());
                let users: Vec<_> = users.collect();
                let mut graph = gm.graph_mut();
                users
                    .into_iter()
                    .chain([k])
                    .try_for_each(|id| graph.erase_node(id))?;
            }
            let specs = &p.case.specs[..3];
            gm.infer_shapes(specs)?;
            let mesh = mesh!["data" = 2]?;
            let mut rules = ShardRules::new();
            for (name, input) in ["a", "b", "c"].iter().zip(inputs) {
                let mut dims = vec![DimSharding::replicated(); input.dims()?.len()];
                if input
                    .dims()?
                    .first()
                    .is_some_and(|first| *first > 0 && first % 2 == 0)
                {
                    dims[0] = "data".into();
                }
                rules = rules.rule(*name, dims);
            }
            shard(&mut gm, &mesh, &rules)?;
            let program = reference(&gm, &mesh)?;
            let given = program.run(&p.case.bindings[0].0)?;
            let values: Vec<Value> = given.into_iter().map(IntoValue::into_value).collect();
            Ok(vec![Given::of(&Value::Tuple(values.into()))?.flat()])
        }),
    ];
    all.extend(passes! {
        Values "pass DeadCode" any DeadCode;
        Values "pass Cse" any Cse::new();
        Values "pass FoldConstants" any FoldConstants::new();
        Values "pass NormalizeArguments" any NormalizeArguments::by_name();
        Values "pass MethodsToFunctions" any MethodsToFunctions;
        Values "pass Canonicalize" any Canonicalize;
        Values "pass AnnotateTypes" any AnnotateTypes;
        Values "pass SimplifyControl" any SimplifyControl;
        Values "pass RemoveIdentity" any RemoveIdentity;
        Evaluated "pass RemoveDropout" keeps RemoveDropout;
        Evaluated "pass FuseBatchNorm" runs FuseBatchNorm;
        Values "pass MergeMatmul" any MergeMatmul;
    });
    all.push(path("all passes", runs, |p, gm| {
        let mut gm = gm.clone();
        gm.apply(&MethodsToFunctions)?;
        gm.apply(&NormalizeArguments::canonical())?;
        gm.apply(&AnnotateTypes)?;
        gm.apply(&Canonicalize)?;
        gm.apply(&FoldConstants::new())?;
        gm.apply(&SimplifyControl)?;
        gm.apply(&RemoveIdentity)?;
        gm.apply(&Cse::new())?;
        gm.apply(&MergeMatmul)?;
        gm.apply(&DeadCode)?;
        gm.lint()?;
        p.forward(&gm)
    }));
    all
}

impl Path {
    /// Whether it needs no other engine.
    pub fn is_inside(&self) -> bool {
        !["onnx runtime", XLA].contains(&self.name)
    }

    /// What it gives, once for each binding.
    ///
    /// # Errors
    /// Returns an error if it refuses the program.
    pub fn run(&self, paths: &mut Paths<'_>, gm: &GraphModule) -> Result<Vec<Given>> {
        match self.compared {
            Compared::Gradients => (self.run)(paths, gm),
            _ => fx_nn::no_grad(|| (self.run)(paths, gm)),
        }
    }
}
