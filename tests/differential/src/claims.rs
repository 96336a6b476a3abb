//! Every rewrite of the repository as a claim to verify: decompositions on variations of the recorded calls, and rules
//! and fusions on instances of their own. What a claim holds for, if not for everything, stands here with its reason.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fx_nn::ir::{Argument, Function, FunctionTable, Graph};
use fx_nn::lowering::Composed;
use fx_nn::module::Module;
use fx_nn::passes::{
    Cse, Decompositions, FoldConstants, FuseBatchNorm, MergeMatmul, MethodsToFunctions,
    NormalizeArguments, RemoveDropout, RemoveIdentity,
};
use fx_nn::pattern::{Rule, SubgraphMatcher};
use fx_nn::prelude::*;
use fx_nn::testing::{Did, Draw, Instance, Rewrite, Verified, Verify, pass};
use fx_nn::value::IntoValue;
use fx_nn::{Error, ErrorKind, GraphModule, Result};

use crate::call::{Arg, Call, Kind as CallKind};
use crate::run::recorded_call;

#[path = "../../../fx-nn/examples/fuse_linear_gelu.rs"]
#[allow(
    dead_code,
    missing_docs,
    reason = "the rules of the example are verified, and not its model"
)]
mod fuse_linear_gelu;

/// What kind of rewrite it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    /// A pattern and its replacement.
    Rule,
    /// A function written by others.
    Decomposition,
    /// A pass that replaces calls by fewer ones.
    Fusion,
}

/// A rewrite, with what it holds for.
pub struct Claim {
    /// Its name.
    pub name: String,
    /// What kind it is.
    pub kind: ClaimKind,
    /// What is verified.
    pub rewrite: Box<dyn Rewrite + Send + Sync>,
    /// What it holds for.
    pub holds: Verify,
}

/// What a decomposition holds for, if not for everything, with the reason.
struct Limit {
    names: &'static [&'static str],
    #[allow(dead_code, reason = "it is for the reader")]
    reason: &'static str,
    holds: fn(Verify) -> Verify,
    /// The tensors that stay as they were recorded.
    kept: &'static [usize],
    /// Whether it has to know the shapes.
    shapes: bool,
    /// Whether all numbers are drawn, and none is a recorded one: it holds for a range of them.
    drawn: bool,
}

const ANY: Limit = Limit {
    names: &[],
    reason: "",
    holds: |verify| verify,
    kept: &[],
    shapes: false,
    drawn: false,
};

const LIMITS: &[Limit] = &[
    Limit {
        names: &["fx_nn::ops::multi_dot", "fx_nn::ops::chain_matmul"],
        reason: "the order of the products is the cheapest one, and in another one other numbers overflow on the way",
        holds: |verify| verify.finite().range(-8.0, 8.0),
        drawn: true,
        ..ANY
    },
    Limit {
        names: &["fx_nn::ops::scaled_dot_product_attention"],
        reason: "a mask of truth values is another one than a mask of numbers, so that its type has to be known",
        shapes: true,
        ..ANY
    },
    Limit {
        names: &[
            "fx_nn::ops::binary_cross_entropy_with_logits",
            "fx_nn::ops::celu",
            "fx_nn::ops::kl_div",
            "fx_nn::ops::lerp",
            "fx_nn::ops::norm",
            "fx_nn::ops::normalize",
            "fx_nn::ops::pairwise_distance",
            "fx_nn::ops::poisson_nll_loss",
            "fx_nn::ops::softplus",
            "fx_nn::ops::std",
            "fx_nn::ops::std_mean",
            "fx_nn::ops::triplet_margin_loss",
            "fx_nn::ops::vector_norm",
            "composed fx_nn::ops::nan_to_num",
        ],
        reason: "a half type overflows on the way, so that its numbers are computed in float32 where the type is known",
        shapes: true,
        ..ANY
    },
    Limit {
        names: &[
            "fx_nn::ops::log_softmax",
            "fx_nn::ops::softmax",
            "composed fx_nn::ops::diff",
            "composed fx_nn::ops::inner",
        ],
        reason: "an empty tensor, and a number, are written in another way, so that the shape has to be known",
        shapes: true,
        ..ANY
    },
    Limit {
        names: &["fx_nn::ops::layer_norm", "fx_nn::ops::group_norm"],
        reason: "numbers that are far from zero beside their spread lose digits in the mean, in one type as in a wider one",
        holds: |verify| verify.range(-8.0, 8.0),
        drawn: true,
        ..ANY
    },
    Limit {
        names: &["fx_nn::ops::hinge_embedding_loss"],
        reason: "targets are 1 and -1",
        kept: &[1],
        ..ANY
    },
    Limit {
        names: &["composed fx_nn::ops::bucketize"],
        reason: "boundaries are in order",
        kept: &[1],
        ..ANY
    },
];

/// Calls of one function, and a table that has it.
struct Recorded {
    function: Function,
    table: Arc<Decompositions>,
    calls: Vec<Call>,
    limit: &'static Limit,
}

impl Rewrite for Recorded {
    fn name(&self) -> String {
        self.function.path().to_string()
    }

    /// A recorded call, with other numbers and another type.
    fn instance(&self, _: usize, draw: &mut Draw) -> Result<Instance> {
        let call = &self.calls[draw.below(self.calls.len())];
        let cast = draw.chance(0.6) && draw.dtype().is_floating_point();
        let tensors = call.tensors()?.into_iter().enumerate().map(|(at, x)| {
            let x = match cast && x.dtype()?.is_floating_point() {
                true => x.to_dtype(draw.dtype())?,
                false => x,
            };
            match x.dtype()?.is_floating_point() && self.limit.drawn {
                _ if self.limit.kept.contains(&at) => Ok(x),
                true => draw.tensor_of(x.dims()?, x.dtype()?),
                false => draw.like(&x),
            }
        });
        let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
        let instance = match tensors.is_empty() {
            // Without a tensor, a call runs while it is traced.
            true => Instance::new(self.known_call(call)?, ()),
            false => {
                let gm = recorded_call(call, &tensors)?;
                let tensors: Vec<Value> = tensors.into_iter().map(IntoValue::into_value).collect();
                Instance::new(gm, (Value::List(tensors.into()),))
            }
        };
        Ok(match self.limit.shapes {
            true => instance.with_shapes(),
            false => instance,
        })
    }

    fn rewrite(&self, _: usize, gm: &mut GraphModule) -> Result<Did> {
        let changed = gm.apply(&*self.table)?.changed;
        for node in gm.graph().nodes() {
            if gm.call(node)?.function() == Some(self.function) {
                return Ok(Did::Nothing);
            }
        }
        Ok(if changed { Did::Rewrote } else { Did::Nothing })
    }
}

impl Recorded {
    /// A call without tensors.
    fn known_call(&self, call: &Call) -> Result<GraphModule> {
        let args: Vec<Argument> = call.args.iter().map(literal).collect::<Result<_>>()?;
        let mut graph = Graph::new();
        let result = graph.call_function(self.function, args, ())?;
        graph.output(result)?;
        GraphModule::new(Default::default(), graph, "Known")
    }
}

fn literal(arg: &Arg) -> Result<Argument> {
    Ok(match arg {
        Arg::None => Argument::None,
        Arg::Bool(truth) => Argument::Bool(*truth),
        Arg::Int(n) => Argument::Int(*n),
        Arg::Float(x) => Argument::Float(*x),
        Arg::DType(dtype) => Argument::DType(*dtype),
        Arg::List(items) => Argument::from(items.iter().map(literal).collect::<Result<Vec<_>>>()?),
        other => return Err(Error::msg(format_args!("no literal: {other:?}"))),
    })
}

/// What came of the claims.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many claims of each kind there are: rules, decompositions, fusions.
    pub claims: [usize; 3],
    /// How many cases were run.
    pub cases: usize,
    /// What is unverified: why.
    pub unverified: Vec<String>,
    /// What is wrong: the counterexamples.
    pub failed: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rules, decompositions, fusions] = self.claims;
        write!(
            f,
            "rules {rules} decompositions {decompositions} fusions {fusions} cases {} unverified {} failed {}",
            self.cases,
            self.unverified.len(),
            self.failed.len()
        )
    }
}

/// Verifies claims, each in so many cases, on all threads; `tell` hears of each.
pub fn verify_all(
    claims: &[Claim],
    cases: usize,
    seed: u64,
    tell: &(dyn Fn(&Claim, &Result<Verified>, Duration) + Sync),
) -> Tally {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(claim) = claims.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let holds = claim.holds.clone().cases(cases).seed(seed);
                    let ended = catch_unwind(AssertUnwindSafe(|| holds.of(&*claim.rewrite)));
                    let ended = ended.unwrap_or_else(|_| {
                        let text = format!("`{}` is wrong: a panic", claim.name);
                        Err(ErrorKind::Numbers(text).into())
                    });
                    tell(claim, &ended, start.elapsed());
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    tally.claims[claim.kind as usize] += 1;
                    match ended {
                        Ok(verified) => tally.cases += verified.cases,
                        Err(error) => match error.kind() {
                            ErrorKind::Numbers(_) => tally.failed.push(error.to_string()),
                            _ => tally.unverified.push(error.to_string()),
                        },
                    }
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// All claims; `recorded` holds the lines of the recorded calls.
///
/// # Errors
/// Returns an error if a line is not a call, or a function that is decomposed has none.
pub fn claims(recorded: &str) -> Result<Vec<Claim>> {
    let mut calls: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    for line in recorded.lines() {
        let call = Call::parse(line)?;
        if matches!(call.kind, CallKind::Function | CallKind::Method) {
            let name = call.name.trim_start_matches("r#").to_string();
            calls.entry(name).or_default().push(call);
        }
    }
    let mut claims = rules()?;
    let core = Arc::new(Decompositions::core()?);
    for function in core.functions() {
        if judged_elsewhere(function).is_some() {
            continue;
        }
        claims.push(decomposed(function, &core, &calls, "")?);
    }
    for (function, composed) in FunctionTable::<Composed>::registered()?.iter() {
        let table = Arc::new(Decompositions::new().rule(function, composed.0));
        let mut claim = decomposed(function, &table, &calls, "composed ")?;
        // Formats that lack the function compute it so; no gradient goes through what is written.
        claim.holds = claim.holds.without_gradients();
        claims.push(claim);
    }
    claims.extend(fusions());
    Ok(claims)
}

/// What judges a function that is decomposed and that no recorded call is of.
pub fn judged_elsewhere(function: Function) -> Option<&'static str> {
    match function.path() {
        "fx_nn::func::cotangent_of" | "fx_nn::func::with_vjp" => {
            Some("functions with a derivative of their own")
        }
        "fx_nn::grad::attention" => Some("the gradients of attention"),
        "fx_nn::grad::conv2d_weight" => Some("the gradients of convolutions"),
        "fx_nn::optim::fused_adam" | "fx_nn::optim::fused_sgd" => {
            Some("training steps beside the optimizers")
        }
        _ => None,
    }
}

fn decomposed(
    function: Function,
    table: &Arc<Decompositions>,
    calls: &BTreeMap<String, Vec<Call>>,
    how: &str,
) -> Result<Claim> {
    let calls = calls.get(function.name()).cloned();
    let calls = calls
        .ok_or_else(|| Error::msg(format_args!("no call of `{}` is recorded", function.path())))?;
    let name = format!("{how}{}", function.path());
    let limit = LIMITS
        .iter()
        .find(|limit| limit.names.contains(&name.as_str()));
    let limit = limit.unwrap_or(&ANY);
    Ok(Claim {
        kind: ClaimKind::Decomposition,
        holds: (limit.holds)(Verify::new()),
        rewrite: Box::new(Recorded {
            function,
            table: table.clone(),
            calls,
            limit,
        }),
        name,
    })
}

fn claim(kind: ClaimKind, rewrite: impl Rewrite + Send + Sync + 'static, holds: Verify) -> Claim {
    Claim {
        name: rewrite.name(),
        kind,
        rewrite: Box::new(rewrite),
        holds,
    }
}

/// The rules of the guides and the examples.
fn rules() -> Result<Vec<Claim>> {
    const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];
    // Whole numbers become floats in a product with one, and have no silu.
    let floats = || Verify::new().dtypes(FLOATS);
    let silu = Rule::new(
        traced!(|x: &Tensor| x * ops::sigmoid(x)?),
        traced!(|x: &Tensor| ops::silu(x)),
    )?;
    let one = SubgraphMatcher::new(traced!(|x: &Tensor| x * 1.0))?.literal_where(
        "mul",
        "b",
        |number| matches!(number, Argument::Float(1.0)),
    )?;
    let one = Rule::new(one, traced!(|x: &Tensor| Ok(x.clone())))?;
    let mut claims = vec![
        claim(ClaimKind::Rule, silu.named("silu"), floats()),
        claim(ClaimKind::Rule, one.named("times one"), floats()),
    ];
    for rule in fuse_linear_gelu::rules()?.rules() {
        claims.push(claim(ClaimKind::Rule, rule.clone(), Verify::new()));
    }
    Ok(claims)
}

/// A model in evaluation mode with drawn weights, traced, with an input of a shape.
fn model(draw: &mut Draw, mut model: impl Module, shape: &[usize]) -> Result<Instance> {
    draw.weights(&mut model)?;
    model.eval();
    // Some pairs are folded where the shape is known.
    Ok(Instance::new(symbolic_trace(&model)?, draw.tensor(shape)?).with_shapes())
}

/// Something to fold: what is computed of a parameter alone.
#[derive(Module, Clone, Debug)]
struct Scaled {
    by: Tensor,
}

#[trace]
impl Scaled {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * (&self.by * 2.0)?.exp()?
    }
}

type Layers = fn(&mut Draw) -> Result<Instance>;

/// A layer and a batch norm behind it, for each pair that is folded.
const FOLDED: &[(&str, Layers)] = &[
    ("Linear", |draw| {
        let n = draw.features();
        let layers = nn::Sequential::new()
            .push(nn::Linear::new(3, n)?)
            .push(nn::BatchNorm1d::new(n)?);
        model(draw, layers, &[4, 3])
    }),
    ("Conv1d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(3));
        let layers = nn::Sequential::new()
            .push(nn::Conv1d::new(2, n, k)?)
            .push(nn::BatchNorm1d::new(n)?);
        model(draw, layers, &[2, 2, 5])
    }),
    ("Conv2d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(3));
        let conv = nn::Conv2d::grouped(2, 2 * n, k, 1 + draw.below(2))?;
        let layers = nn::Sequential::new()
            .push(conv)
            .push(nn::BatchNorm2d::new(2 * n)?);
        model(draw, layers, &[2, 2, 4, 5])
    }),
    ("Conv3d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(2));
        let layers = nn::Sequential::new()
            .push(nn::Conv3d::new(2, n, k)?)
            .push(nn::BatchNorm3d::new(n)?);
        model(draw, layers, &[1, 2, 2, 3, 2])
    }),
    ("ConvTranspose1d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(3));
        let layers = nn::Sequential::new()
            .push(nn::ConvTranspose1d::new(2, n, k)?)
            .push(nn::BatchNorm1d::new(n)?);
        model(draw, layers, &[2, 2, 4])
    }),
    ("ConvTranspose2d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(3));
        let conv = nn::ConvTranspose2d::grouped(2, 2 * n, k, 1 + draw.below(2))?;
        let layers = nn::Sequential::new()
            .push(conv)
            .push(nn::BatchNorm2d::new(2 * n)?);
        model(draw, layers, &[2, 2, 3, 2])
    }),
    ("ConvTranspose3d", |draw| {
        let (n, k) = (draw.features(), 1 + draw.below(2));
        let layers = nn::Sequential::new()
            .push(nn::ConvTranspose3d::new(2, n, k)?)
            .push(nn::BatchNorm3d::new(n)?);
        model(draw, layers, &[1, 2, 2, 2, 2])
    }),
];

fn fusions() -> Vec<Claim> {
    let fusion = |name: &str, rewrite: Box<dyn Rewrite + Send + Sync>, holds: Verify| Claim {
        name: name.to_string(),
        kind: ClaimKind::Fusion,
        rewrite,
        holds,
    };
    let folded = FOLDED.iter().map(|(layer, instance)| {
        // What overflows between the layer and the batch norm does not in one layer.
        let holds = Verify::new().finite();
        fusion(
            &format!("FuseBatchNorm: {layer}"),
            Box::new(pass(FuseBatchNorm, *instance)),
            holds,
        )
    });
    let mut all: Vec<Claim> = folded.collect();
    let of = |instance: Layers| instance;
    all.push(fusion(
        "MergeMatmul",
        Box::new(pass(
            MergeMatmul,
            of(|draw| {
                let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, w: &Tensor| Ok((
                    a.matmul(w)?,
                    b.matmul(w)?
                ))))?;
                let [rows, more, n] = [1 + draw.below(3), 1 + draw.below(3), 1 + draw.below(4)];
                let inputs = (
                    draw.tensor(&[rows, n])?,
                    draw.tensor(&[more, n])?,
                    draw.tensor(&[n, 2])?,
                );
                Ok(Instance::new(gm, inputs).with_shapes())
            }),
        )),
        Verify::new(),
    ));
    all.push(fusion(
        "RemoveIdentity",
        Box::new(pass(
            RemoveIdentity,
            of(|draw| {
                let p = if draw.chance(0.5) { 0.0 } else { 0.5 };
                let layers = nn::Sequential::new()
                    .push(nn::Identity::new())
                    .push(nn::Dropout::new(p)?)
                    .push(nn::ReLU::new());
                let mut gm = symbolic_trace(&layers)?;
                gm.set_training(draw.chance(0.5));
                Ok(Instance::new(gm, draw.input()?))
            }),
        )),
        Verify::new(),
    ));
    // In training it keeps what was dropped, as it says.
    all.push(fusion(
        "RemoveDropout",
        Box::new(pass(
            RemoveDropout,
            of(|draw| {
                let shape = draw.shape();
                let layers = nn::Sequential::new()
                    .push(nn::Dropout::new(0.5)?)
                    .push(nn::ReLU::new());
                model(draw, layers, &shape)
            }),
        )),
        Verify::new(),
    ));
    let calls = |draw: &mut Draw| {
        let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| {
            let two = (ops::full_like(y, 1, None)? + 1)?;
            let (a, b) = (x.abs()?, x.abs()?);
            ((a.clamp(-1.0, 1.0)? * 0.5)? + (b.clamp(-1.0, 1.0)? * two)?)?
                * ops::maximum(x, y)?.relu()?
        }))?;
        Ok(Instance::new(gm, (draw.input()?, draw.input()?)))
    };
    all.push(fusion(
        "Cse",
        Box::new(pass(Cse::new(), calls)),
        Verify::new(),
    ));
    all.push(fusion(
        "MethodsToFunctions",
        Box::new(pass(MethodsToFunctions, calls)),
        Verify::new(),
    ));
    all.push(fusion(
        "NormalizeArguments",
        Box::new(pass(NormalizeArguments::by_name(), calls)),
        Verify::new(),
    ));
    all.push(fusion(
        "FoldConstants",
        Box::new(pass(
            FoldConstants::new(),
            of(|draw| {
                let scaled = Scaled {
                    by: Tensor::ones(3)?.into_parameter()?,
                };
                model(draw, scaled, &[2, 3])
            }),
        )),
        Verify::new(),
    ));
    all
}
