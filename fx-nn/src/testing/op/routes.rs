//! The routes of fx-core and fx-nn: eager, through a graph in several forms, compiled, by the shape
//! rule, the gradient by differences, and the transforms of `func`.

use std::sync::Arc;

use fx_core::ir::ValueMeta;
use fx_core::module::Call;
use fx_core::passes::{Decompositions, MethodsToFunctions, NormalizeArguments, verify_core};
use fx_core::run::Interpreter;
use fx_core::shapes::Spec;
use fx_core::trace::CallArgs;
use fx_core::value::{DType, Value};
use fx_core::{Error, ErrorKind, GraphModule, Result};

use super::super::close;
use super::sample::structured;
use super::{Given, Missing, Route, Sample, transforms};
use crate::cpu::{Cpu, Target, ToCrate};
use crate::error::UNFIT;
use crate::lowering::compositions;
use crate::passes::backend::{Backend, Compile, Executable, LowerReport, Metas, Support};
use crate::tensor::Tensor;

/// A route that is a function.
struct Way {
    name: &'static str,
    run: fn(&Sample<'_>) -> Result<Given>,
}

impl Route for Way {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, sample: &Sample<'_>) -> Result<Given> {
        (self.run)(sample)
    }
}

/// All routes that need no other crate.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::{check_op, routes, samples};
/// let report = check_op("hypot", &samples::two_floats(function!(ops::hypot))?, &routes());
/// assert!(report.is_right(), "{report}");
/// # Ok::<(), Error>(())
/// ```
pub fn routes() -> Vec<&'static dyn Route> {
    ROUTES.iter().map(|way| way as &dyn Route).collect()
}

static ROUTES: [Way; 15] = [
    Way {
        name: "eager",
        run: |sample| sample.eager().map(Given::Value),
    },
    Way {
        name: "traced",
        run: |sample| forward(sample.module()?, sample),
    },
    Way {
        name: "interpreted",
        run: interpreted,
    },
    Way {
        name: "saved",
        run: saved,
    },
    Way {
        name: "normalized",
        run: normalized,
    },
    Way {
        name: "decomposed",
        run: decomposed,
    },
    Way {
        name: "composed",
        run: composed,
    },
    Way {
        name: "compiled",
        run: compiled,
    },
    Way {
        name: "static crate",
        run: static_crate,
    },
    Way {
        name: "shape rule",
        run: shape_rule,
    },
    Way {
        name: "gradient",
        run: gradient,
    },
    Way {
        name: "vjp",
        run: transforms::reverse,
    },
    Way {
        name: "second derivative",
        run: transforms::second,
    },
    Way {
        name: "jvp",
        run: transforms::forward,
    },
    Way {
        name: "vmap",
        run: transforms::batched,
    },
];

fn forward(gm: &GraphModule, sample: &Sample<'_>) -> Result<Given> {
    gm.forward(sample.args()).map(Given::Value)
}

fn interpreted(sample: &Sample<'_>) -> Result<Given> {
    struct AsItIs;
    impl Interpreter for AsItIs {}
    let gm = sample.module()?;
    gm.interpret(&mut AsItIs, sample.args()).map(Given::Value)
}

fn saved(sample: &Sample<'_>) -> Result<Given> {
    let bytes = sample.module()?.to_bytes()?;
    forward(&GraphModule::from_bytes(&bytes)?, sample)
}

fn normalized(sample: &Sample<'_>) -> Result<Given> {
    let mut gm = sample.module()?.clone();
    gm.apply(&MethodsToFunctions)?;
    gm.apply(&NormalizeArguments::by_name())?;
    forward(&gm, sample)
}

/// The graph of a call whose shapes are known.
fn known(sample: &Sample<'_>) -> Result<GraphModule> {
    let mut gm = sample.module()?.opened()?;
    gm.propagate_shapes(sample.args())?;
    Ok(gm)
}

fn decomposed(sample: &Sample<'_>) -> Result<Given> {
    let mut gm = known(sample)?;
    if !gm.apply(&Decompositions::core()?)?.changed {
        return Ok(Given::Missing(Missing::NoForm));
    }
    verify_core(&gm)?;
    forward(&gm, sample)
}

fn composed(sample: &Sample<'_>) -> Result<Given> {
    let mut gm = known(sample)?;
    gm.apply(&MethodsToFunctions)?;
    match gm.apply(&compositions()?)?.changed {
        true => forward(&gm, sample),
        false => Ok(Given::Missing(Missing::NoForm)),
    }
}

/// The compiler for the CPU, which takes single calls too.
#[derive(Debug, Clone)]
pub struct EveryCall(pub Cpu);

impl Backend for EveryCall {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        self.0.supports(call, metas)
    }

    fn prepare(&self, module: &mut GraphModule) -> Result<()> {
        self.0.prepare(module)
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>> {
        self.0.compile(part, inputs)
    }
}

fn compiled(sample: &Sample<'_>) -> Result<Given> {
    crate::no_grad(|| {
        let gm = sample.module()?;
        let fast = gm.compile(Compile::new(EveryCall(Cpu::new())).like(sample.args()))?;
        let value: Value = fast.forward(sample.args())?;
        Ok(match runs_kernels(&fast)? {
            true => Given::Value(value),
            false => Given::Missing(Missing::NoForm),
        })
    })
}

/// Whether the code of a compiled module has a kernel besides the functions themselves. The code is
/// made for the first run.
///
/// # Errors
/// Returns an error if a part that the report names is not there.
pub fn runs_kernels(compiled: &GraphModule) -> Result<bool> {
    let report = compiled.meta::<LowerReport>();
    for part in report.iter().flat_map(|report| &report.parts) {
        let part = compiled.submodule_as::<GraphModule>(&part.path)?;
        let steps = part.compiled().map(|code| code.steps());
        let mut steps = steps.into_iter().flatten();
        if steps.any(|step| !step.name.starts_with("call of") && step.name != "size") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn static_crate(sample: &Sample<'_>) -> Result<Given> {
    if sample.is_random() {
        return Ok(Given::Missing(Missing::Random));
    }
    let values = sample.module()?.process_inputs(sample.args())?;
    let tensors = values.iter().map(|value| value.downcast_ref::<Tensor>());
    let Some(tensors) = tensors.collect::<Option<Vec<&Tensor>>>() else {
        return Ok(Given::Missing(Missing::HostValue));
    };
    let made = match sample.module()?.to_crate(Target::Static, sample.args()) {
        Ok(made) => made,
        Err(error) => return Given::or_not_in_format(error),
    };
    let results = made.run(&tensors)?.into_iter().map(Value::of);
    structured(&sample.eager()?, &Value::Tuple(results.collect())).map(Given::Value)
}

fn shape_rule(sample: &Sample<'_>) -> Result<Given> {
    let mut gm = sample.module()?.clone();
    let specs: Vec<Spec> = sample.args().args.into_iter().map(Spec::of).collect();
    if let Err(error) = gm.infer_shapes(&specs) {
        return match error.kind() {
            ErrorKind::Unregistered { .. } => Ok(Given::Missing(Missing::NotYet)),
            _ => match another_text(sample, error.kind()) {
                Some(text) => Ok(Given::Differs(text)),
                None => Err(error),
            },
        };
    }
    let output = gm.graph().output_node();
    let Some(inferred) = output.and_then(|node| node.meta::<ValueMeta>().cloned()) else {
        return Ok(Given::Missing(Missing::HostValue));
    };
    let value = match sample.traced() {
        Ok(value) => value,
        Err(error) if error.to_string().contains(UNFIT) => {
            let text = "the rule does not say why the call is refused";
            return Ok(Given::Differs(text.to_string()));
        }
        // What elements decide, a shape does not.
        Err(_) => return Ok(Given::Missing(Missing::HostValue)),
    };
    compared(&inferred, &ValueMeta::of(&value))
}

/// What a run says where the rule refuses, if it says it in other words: a refusal has one text.
fn another_text(sample: &Sample<'_>, rule: &ErrorKind) -> Option<String> {
    let rule = rule.to_string();
    let runs = [("eager", sample.eager()), ("traced", sample.traced())];
    runs.into_iter().find_map(|(how, run)| {
        let text = run.err()?.kind().to_string();
        (text != rule).then(|| format!("{rule:?}, where the {how} call says {text:?}"))
    })
}

/// A rule beside what a run gives.
fn compared(inferred: &ValueMeta, found: &ValueMeta) -> Result<Given> {
    if let (Some(inferred), Some(found)) = (inferred.items(), found.items())
        && inferred.len() == found.len()
    {
        for (inferred, found) in inferred.iter().zip(found) {
            match compared(inferred, found)? {
                Given::Agrees => {}
                other => return Ok(other),
            }
        }
        return Ok(Given::Agrees);
    }
    let differs = || {
        Ok(Given::Differs(format!(
            "{inferred} inferred, and {found} given"
        )))
    };
    match (inferred, found) {
        (ValueMeta::Single(a), ValueMeta::Single(b)) => {
            if a.dtype != b.dtype || a.shape.len() != b.shape.len() {
                return differs();
            }
            let mut both = a.shape.iter().zip(&b.shape);
            match a.known_shape() {
                Some(_) if a.shape == b.shape => Ok(Given::Agrees),
                None if both.all(|(a, b)| a == b || a.as_known().is_none()) => {
                    Ok(Given::Missing(Missing::DataDependentShape))
                }
                _ => differs(),
            }
        }
        (ValueMeta::Int(a), ValueMeta::Int(b)) if a == b => Ok(Given::Agrees),
        (ValueMeta::Float(_), ValueMeta::Float(_))
        | (ValueMeta::Bool(_), ValueMeta::Bool(_))
        | (ValueMeta::Int(_), ValueMeta::Int(_)) => Ok(Given::Agrees),
        _ if inferred == found => Ok(Given::Agrees),
        _ => differs(),
    }
}

/// The weight of an element of a result, so that the elements do not make up for each other.
fn weighted(value: &Value) -> Result<Option<Tensor>> {
    let mut total: Option<Tensor> = None;
    for (at, y) in close::leaves(value).0.iter().enumerate() {
        match y.dtype()? {
            DType::F64 => {}
            // Differences of fewer digits say nothing.
            dtype if dtype.is_floating_point() => return Ok(None),
            _ => continue,
        }
        let count = y.dims()?.iter().product();
        let weight = |i: usize| (((i * 37 + 11 * at) % 17) as f64 - 8.5) / 4.0;
        let weights: Vec<f64> = (0..count).map(weight).collect();
        let weights = Tensor::from_vec(weights, y.dims()?)?;
        let sum = (y * weights)?.sum(..)?;
        total = Some(match total {
            Some(total) => (total + sum)?,
            None => sum,
        });
    }
    Ok(total)
}

/// How far an input is moved.
const STEP: f64 = 1e-5;

/// The gradient of a graph beside central differences, where those of both sides agree.
fn gradient(sample: &Sample<'_>) -> Result<Given> {
    let gm = sample.module()?;
    let args = sample.args().args;
    if sample.is_random() {
        return Ok(Given::Missing(Missing::Random));
    }
    let all = Value::List(args.clone().into());
    let (tensors, _) = close::leaves(&all);
    let is_double = |x: &Tensor| x.dtype().is_ok_and(|dtype| dtype == DType::F64);
    if !tensors.iter().any(is_double) {
        return Ok(Given::Missing(Missing::ElementType));
    }
    let with = |tensors: &mut dyn Iterator<Item = Tensor>| -> Result<Option<Tensor>> {
        let missing = || Error::msg("an argument has no tensor");
        let given = close::map_tensors(&all, &mut |_| tensors.next().ok_or_else(missing))?;
        let Value::List(args) = &given else {
            return Err(missing());
        };
        let call = CallArgs {
            args: args.to_vec(),
            kwargs: Vec::new(),
        };
        weighted(&gm.forward::<Value>(call)?)
    };
    let leaves = tensors.iter().map(|x| match is_double(x) {
        true => Tensor::from_vec(x.to_vec()?, x.dims()?)?.into_parameter(),
        false => Ok(x.clone()),
    });
    let leaves = leaves.collect::<Result<Vec<Tensor>>>()?;
    let loss = match with(&mut leaves.iter().cloned())? {
        Some(loss) if loss.requires_grad()? && loss.item()?.is_finite() => loss,
        _ => return Ok(Given::Missing(Missing::NotDifferentiable)),
    };
    let base = loss.item()?;
    // What has no gradient says so.
    let Ok(store) = loss.backward() else {
        return Ok(Given::Missing(Missing::NotDifferentiable));
    };
    for (at, leaf) in leaves.iter().enumerate().filter(|(_, x)| is_double(x)) {
        let values = leaf.to_vec()?;
        let found = match store.get(leaf)? {
            Some(gradient) => gradient.to_vec()?,
            None => vec![0.0; values.len()],
        };
        for (i, found) in found.iter().enumerate().take(4) {
            let moved = |step: f64| -> Result<Option<f64>> {
                let mut values = values.clone();
                values[i] += step;
                let moved = Tensor::from_vec(values, leaf.dims()?)?;
                let mut all = leaves.clone();
                all[at] = moved;
                // What refuses a number beside this one has no difference there.
                Ok(with(&mut all.into_iter())
                    .ok()
                    .flatten()
                    .and_then(|loss| loss.item().ok()))
            };
            let (Some(above), Some(below)) = (moved(STEP)?, moved(-STEP)?) else {
                continue;
            };
            let (right, left) = ((above - base) / STEP, (base - below) / STEP);
            let slack = 1e-4 * (1.0 + base.abs() + right.abs());
            // At a corner the sides differ, and at a jump the difference grows with smaller steps.
            let near = moved(STEP / 2.0)?.map_or(f64::NAN, |near| (near - base) / (STEP / 2.0));
            let is_smooth = (right - left).abs() <= slack && (near - right).abs() <= slack;
            if !right.is_finite() || !is_smooth {
                continue;
            }
            let expected = (right + left) / 2.0;
            if !found.is_finite() || (found - expected).abs() > slack {
                return Ok(Given::Differs(format!(
                    "tensor {at} has at {:e} the gradient {found:e}, and by differences {expected:e}",
                    values[i]
                )));
            }
        }
    }
    Ok(Given::Agrees)
}
