//! `run`, `bench` and `check`: a module called with arrays of files, or with random numbers of given shapes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use fx_nn::cpu::Cpu;
use fx_nn::ir::ValueMeta;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_onnx::Texts;
use serde_json::json;

use crate::arrays;
use crate::print;
use crate::{Named, Of};

/// What a module is called with.
#[derive(Debug, Args)]
pub struct Call {
    #[command(flatten)]
    of: Of,
    /// Draw inputs that no file gives, in the shapes of `--input` or of the graph.
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "0")]
    random: Option<u64>,
    /// The size that a name stands for, where inputs are drawn: `batch=2`.
    #[arg(long = "size", value_name = "NAME=NUMBER")]
    sizes: Vec<Setting<usize>>,
    /// Run the graph as it is, and do not compile it.
    #[arg(long)]
    as_is: bool,
    /// Leave layers in the mode that they were saved in: without it, they are in evaluation.
    #[arg(long)]
    training: bool,
}

/// `NAME=VALUE`.
#[derive(Debug, Clone)]
pub struct Setting<T> {
    pub name: String,
    pub value: T,
}

impl<T: std::str::FromStr> std::str::FromStr for Setting<T>
where
    T::Err: std::fmt::Display,
{
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |problem: &dyn std::fmt::Display| {
            Error::msg(format_args!("`{text}`: {problem}: write `NAME=VALUE`"))
        };
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| wrong(&"there is no `=`"))?;
        let value = value.trim().parse().map_err(|error| wrong(&error))?;
        Ok(Setting {
            name: name.trim().to_string(),
            value,
        })
    }
}

/// A module that runs, and its arguments.
struct Ready {
    module: GraphModule,
    args: Vec<Value>,
    /// The names of the results, where the file has them.
    outputs: Vec<String>,
}

impl Call {
    fn ready(&self) -> Result<Ready> {
        let Named {
            mut module,
            inputs,
            outputs,
        } = self.of.named()?;
        // As it is used, and not as it is trained: nothing is dropped.
        if !self.training {
            module.eval();
        }
        let args = self.args(&module, &inputs)?;
        let module = match self.as_is {
            true => module,
            false => {
                let call = CallArgs {
                    args: args.clone(),
                    ..CallArgs::default()
                };
                module.compile(Compile::new(Cpu::new()).like(call))?
            }
        };
        Ok(Ready {
            module,
            args,
            outputs,
        })
    }

    /// A value for each placeholder: of a file by its name or its index, or drawn.
    fn args(&self, module: &GraphModule, names: &[String]) -> Result<Vec<Value>> {
        let mut given: Vec<Option<Value>> = vec![None; names.len()];
        let no_input = |name: &str| {
            Error::msg(format_args!(
                "the module has no input `{name}`: its inputs are {}",
                names.join(", ")
            ))
        };
        for (at, input) in self.of.inputs.iter().enumerate() {
            let Some(path) = input.file() else { continue };
            let read = match arrays::is_text(path) {
                true => vec![(String::new(), arrays::text(path)?)],
                false => {
                    let tensors = arrays::read(path)?.into_iter();
                    tensors
                        .map(|(name, tensor)| (name, Value::object(tensor)))
                        .collect()
                }
            };
            for (name, value) in read {
                let name = input.name.as_deref().unwrap_or(&name);
                let at = match name {
                    "" => at,
                    name => {
                        let found = names.iter().position(|own| own == name);
                        found.ok_or_else(|| no_input(name))?
                    }
                };
                *given.get_mut(at).ok_or_else(|| no_input(&at.to_string()))? = Some(value);
            }
        }
        let specs = self.of.known(module).unwrap_or_default();
        if let Some(seed) = self.random {
            fx_nn::manual_seed(seed);
        }
        let each = given.into_iter().enumerate().map(|(at, given)| {
            if let Some(given) = given {
                return Ok(given);
            }
            match (self.random, specs.get(at)) {
                (Some(_), Some(spec)) => self.drawn(&names[at], spec),
                (Some(_), None) => Err(Error::msg(format_args!(
                    "the shape of the input `{}` is not known: give it with --input {}=SHAPE",
                    names[at], names[at]
                ))),
                (None, _) => Err(Error::msg(format_args!(
                    "the input `{}` has no value: give a file with --input {}=FILE.npy, or --random",
                    names[at], names[at]
                ))),
            }
        });
        each.collect()
    }

    /// Random numbers of a spec: fractions of normal size, and small whole numbers.
    fn drawn(&self, name: &str, spec: &Spec) -> Result<Value> {
        let fake = spec.fake_value()?;
        let meta = ValueMeta::of(&fake);
        let Some(meta) = meta.tensor() else {
            return Ok(fake);
        };
        let sizes = meta.shape.iter().map(|size| {
            let named = || {
                let text = size.to_string();
                let found = self.sizes.iter().find(|size| size.name == text);
                found.map(|size| size.value as i64)
            };
            size.as_number().or_else(named).ok_or_else(|| {
                Error::msg(format_args!(
                    "the size `{size}` of the input `{name}` is open: give it with --size {size}=NUMBER"
                ))
            })
        });
        let sizes = sizes.collect::<Result<Vec<i64>>>()?;
        let dtype = meta.dtype.unwrap_or(DType::F32);
        let drawn = match dtype.is_floating_point() {
            true => ops::randn(sizes, None)?,
            false => (ops::rand(sizes, None)? * 2.0)?,
        };
        Ok(Value::object(drawn.to_dtype(dtype)?))
    }
}

impl Ready {
    /// The results that are tensors.
    fn tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let results = self.results()?.into_iter();
        let tensors = results
            .filter_map(|(name, value)| Some((name, value.downcast_ref::<Tensor>()?.clone())));
        Ok(tensors.collect())
    }

    /// The results that are tensors, text or numbers, by the names of the graph's or by their indices.
    fn results(&self) -> Result<Vec<(String, Value)>> {
        let given: Value = self.module.forward(CallArgs {
            args: self.args.clone(),
            ..CallArgs::default()
        })?;
        let mut found = Vec::new();
        let mut left = vec![(String::new(), given)];
        while let Some((path, value)) = left.pop() {
            let inside = |at: &dyn std::fmt::Display| match path.is_empty() {
                true => at.to_string(),
                false => format!("{path}.{at}"),
            };
            match &value {
                Value::Tuple(items) | Value::List(items) => {
                    let items = items.iter().enumerate().rev();
                    left.extend(items.map(|(at, item)| {
                        let own = self.outputs.get(at).filter(|_| path.is_empty());
                        (own.cloned().unwrap_or_else(|| inside(&at)), item.clone())
                    }));
                }
                Value::Dict(items) => {
                    let items: Vec<_> = items.iter().collect();
                    left.extend(
                        items
                            .into_iter()
                            .rev()
                            .map(|(key, item)| (inside(key), item.clone())),
                    );
                }
                value => {
                    let is_object = value.downcast_ref::<Tensor>().is_some()
                        || value.downcast_ref::<Texts>().is_some();
                    if is_object || matches!(value, Value::Float(_)) {
                        let alone = || self.outputs.first().cloned().unwrap_or_else(|| "0".into());
                        let name = if path.is_empty() { alone() } else { path };
                        found.push((name, value.clone()));
                    }
                }
            }
        }
        Ok(found)
    }
}

/// A result in a line: text and numbers as they are.
fn shown(value: &Value) -> Result<String> {
    if let Some(texts) = value.downcast_ref::<Texts>() {
        let (items, dims) = (texts.items()?, texts.dims()?);
        let more = if items.len() > MOST_TEXTS {
            " and more"
        } else {
            ""
        };
        let first = &items[..items.len().min(MOST_TEXTS)];
        return Ok(format!("text{dims:?} {first:?}{more}"));
    }
    match value.downcast_ref::<Tensor>() {
        Some(tensor) => line(tensor),
        None => Ok(value.to_string()),
    }
}

/// A result as JSON, without the numbers of a tensor.
fn described(name: &str, value: &Value, written: Option<&PathBuf>) -> Result<serde_json::Value> {
    if let Some(texts) = value.downcast_ref::<Texts>() {
        let items: Vec<&str> = texts.items()?.iter().map(|text| &**text).collect();
        return Ok(json!({"name": name, "text": items, "shape": texts.dims()?}));
    }
    match value.downcast_ref::<Tensor>() {
        Some(tensor) => Ok(json!({
            "name": name,
            "dtype": tensor.dtype()?.name(),
            "shape": tensor.dims()?,
            "written": written,
        })),
        None => Ok(json!({"name": name, "number": value.to_string()})),
    }
}

/// How many texts a line shows.
const MOST_TEXTS: usize = 8;

/// A tensor in a line: its type, its shape, and its least, mean and largest element.
fn line(tensor: &Tensor) -> Result<String> {
    let all = tensor.to_vec()?;
    let kind = format!("{}{:?}", tensor.dtype()?, tensor.dims()?);
    if all.len() <= 8 {
        return Ok(format!("{kind} {all:?}"));
    }
    let (least, most) = all
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
            (a.min(*x), b.max(*x))
        });
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    Ok(format!(
        "{kind} least {least:.6} mean {mean:.6} most {most:.6}"
    ))
}

/// Runs a module once, and prints or writes what it gives.
pub fn run(call: &Call, output: Option<&PathBuf>, json: bool) -> Result<()> {
    let results = call.ready()?.results()?;
    if let Some(path) = output {
        let tensors = results.iter().map(|(name, value)| {
            let tensor = value.downcast_ref::<Tensor>().cloned();
            let tensor = tensor.ok_or_else(|| {
                Error::msg(format_args!(
                    "the result `{name}` is no tensor, and files of arrays have such alone: take it from --json, without -o"
                ))
            });
            Ok((name.clone(), tensor?))
        });
        arrays::write(path, &tensors.collect::<Result<Vec<_>>>()?)?;
    }
    if json {
        let each = results
            .iter()
            .map(|(name, value)| described(name, value, output));
        return print::json(&json!({"results": each.collect::<Result<Vec<_>>>()?}));
    }
    results
        .iter()
        .try_for_each(|(name, value)| print::line(format_args!("{name}: {}", shown(value)?)))
}

/// Times a module: the least and the median of some runs, and each step's part of one of them.
pub fn bench(call: &Call, runs: usize, json: bool) -> Result<()> {
    let ready = call.ready()?;
    let once = || {
        let start = Instant::now();
        ready.results()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    let first: f64 = once()?;
    let mut times = (0..runs.max(1))
        .map(|_| once())
        .collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[times.len() / 2]);
    let profile = ready.module.profile(
        runs.max(1),
        CallArgs {
            args: ready.args.clone(),
            ..CallArgs::default()
        },
    )?;
    if json {
        let steps = profile
            .nodes()
            .iter()
            .filter(|node| node.calls > 0)
            .map(|node| {
                json!({
                    "name": node.name,
                    "call": node.call,
                    "ms": node.time.as_secs_f64() * 1e3 / node.calls as f64,
                    "gflops": node.gflops(),
                })
            });
        return print::json(&json!({
            "first_ms": first, "least_ms": least, "median_ms": median, "steps": steps.collect::<Vec<_>>(),
        }));
    }
    print::print(&profile)?;
    print::line(format_args!(
        "first run {first:.3} ms, least {least:.3} ms, median {median:.3} ms of {runs} runs"
    ))
}

/// Compares what a module gives with arrays of a file; 1 if one of them is off by more than is allowed.
pub fn check(call: &Call, reference: &Path, tolerance: f64, json: bool) -> Result<u8> {
    let results = call.ready()?.tensors()?;
    let expected = arrays::read(reference)?;
    if results.len() != expected.len() {
        return Err(Error::msg(format_args!(
            "the module gives {} tensors, and {} has {}",
            results.len(),
            reference.display(),
            expected.len()
        )));
    }
    let (mut lines, mut wrong) = (Vec::new(), 0);
    for (at, (name, found)) in results.iter().enumerate() {
        let by_name = expected.iter().find(|(own, _)| own == name);
        let (other, wanted) = by_name.unwrap_or(&expected[at]);
        let problem = difference(found, wanted, tolerance)?;
        wrong += usize::from(problem.is_some());
        lines.push((other.clone(), problem));
    }
    match json {
        true => {
            let lines = lines
                .iter()
                .map(|(name, problem)| json!({"name": name, "wrong": problem}));
            print::json(&json!({"results": lines.collect::<Vec<_>>()}))?;
        }
        false => lines.iter().try_for_each(|(name, problem)| {
            let said = problem.as_deref().unwrap_or("right");
            print::line(format_args!("{name}: {said}"))
        })?,
    }
    Ok(u8::from(wrong > 0))
}

/// How a result differs from what is expected: in its type, its shape, or by more than a part of the largest element.
fn difference(found: &Tensor, wanted: &Tensor, tolerance: f64) -> Result<Option<String>> {
    let kind = |x: &Tensor| Ok::<_, Error>(format!("{}{:?}", x.dtype()?, x.dims()?));
    let (own, other) = (kind(found)?, kind(wanted)?);
    if own != other {
        return Ok(Some(format!("it is {own}, and {other} is expected")));
    }
    let (a, b) = (found.to_vec()?, wanted.to_vec()?);
    let finite = b.iter().filter(|x| x.is_finite());
    let most = finite.fold(0.0f64, |most, x| most.max(x.abs()));
    let allowed = match found.dtype()?.is_floating_point() {
        true => tolerance * most,
        false => 0.0,
    };
    let off = a.iter().zip(&b).enumerate().filter_map(|(at, (a, b))| {
        let same = a == b || (a.is_nan() && b.is_nan());
        (!same).then(|| {
            (
                at,
                if (a - b).is_nan() {
                    f64::INFINITY
                } else {
                    (a - b).abs()
                },
            )
        })
    });
    let worst = off.max_by(|(_, a), (_, b)| a.total_cmp(b));
    Ok(worst.filter(|(_, off)| *off > allowed).map(|(at, off)| {
        format!("it is off by {off:.3e} at element {at}, and {allowed:.3e} is allowed")
    }))
}
