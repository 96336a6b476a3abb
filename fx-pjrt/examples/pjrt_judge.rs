//! Every model of fx-nn on a plugin's devices, beside what fx computes on the CPU: `tests/judge.sh` runs it.
//!
//! `FX_PJRT_PLUGIN=PLUGIN cargo run --release -p fx-pjrt --example pjrt_judge -- [NAME ..]`: each model on one device, four of
//! them also over eight devices, split by batch, by layers, and by both.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../../fx-stablehlo/examples/support/calls.rs"]
mod calls;
#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;
#[path = "../../fx-stablehlo/examples/support/sharded.rs"]
mod sharded;

use calls::{call, tensors};
use fx_nn::func::{Transform, parameters, value_and_grad};
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_pjrt::{Client, ClientOptions, DeviceTensor, PLUGIN_VARIABLE, Pjrt, Plugin};

/// How far a graph module on the devices is from the graph; an error if a part of it stayed on the CPU.
fn compare(
    source: &GraphModule,
    split: &GraphModule,
    pjrt: &Pjrt,
    inputs: &[Tensor],
) -> Result<f64> {
    let compiled = split.compile(Compile::new(pjrt.clone()).like(call(inputs)))?;
    let report = compiled.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("there is no report"))?;
    if !report.failed.is_empty() || !report.left.is_empty() || report.parts.len() != 1 {
        return Err(Error::msg(report));
    }
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    tensors(&source.forward::<Value>(call(inputs))?, &mut expected);
    tensors(&compiled.forward::<Value>(call(inputs))?, &mut found);
    let part = compiled.submodule_as::<GraphModule>(&report.parts[0].path)?;
    let code = part.compiled();
    let code = code.ok_or_else(|| Error::msg("there is no code"))?;
    if let Some((why, _)) = code.fallbacks().first() {
        return Err(Error::msg(format_args!("the graph ran: {why}")));
    }
    if found.len() != expected.len() {
        return Err(Error::msg("another number of results"));
    }
    let mut worst = 0f64;
    for (found, expected) in found.iter().zip(&expected) {
        if (found.dims()?, found.dtype()?) != (expected.dims()?, expected.dtype()?) {
            return Err(Error::msg("another shape or type"));
        }
        let (found, expected) = (found.to_vec()?, expected.to_vec()?);
        let most = expected.iter().fold(1e-30f64, |most, x| most.max(x.abs()));
        for (a, b) in found.iter().zip(&expected) {
            let error = (a - b).abs() / most;
            worst = if error.is_nan() {
                f64::INFINITY
            } else {
                worst.max(error)
            };
        }
    }
    Ok(worst)
}

/// A model with a number of its results.
#[derive(Module)]
struct Loss {
    net: GraphModule,
}

#[trace]
impl Loss {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out: Tensor = self.net.forward(x)?;
        out.square()?.mean(..)
    }
}

/// A model's loss and its gradients as one graph, for these inputs.
fn gradients(case: &models::Case, inputs: &[Tensor]) -> Result<GraphModule> {
    let net = case.gm.clone();
    let both = value_and_grad(&Loss { net }).wrt(parameters("**"));
    let specs = inputs.iter().map(|x| Spec::of(Value::object(x.clone())));
    both.graph_module(&specs.collect::<Vec<_>>())
}

/// Tensors of every type and some shapes, to a device and back; whether all are what they were.
fn tensors_both_ways(pjrt: &Pjrt) -> Result<bool> {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let (mut count, mut right) = (0, 0);
    for dtype in [
        Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64,
    ] {
        let whole = ops::to_dtype(&Tensor::arange(0, 24)?, dtype)?;
        let shapes = [
            whole.reshape((2, 3, 4))?,
            whole.reshape((2, 3, 4))?.transpose(0, 2)?,
            whole.narrow(0, 5, 7)?,
            whole.narrow(0, 0, 0)?.reshape((0, 3))?,
            whole.i(3)?,
        ];
        for x in shapes {
            count += 1;
            let back = DeviceTensor::new(pjrt.client(), &x)?.to_tensor()?;
            let is_same = (back.dtype()?, back.dims()?) == (dtype, x.dims()?);
            right += usize::from(is_same && back.to_vec()? == x.to_vec()?);
        }
    }
    println!("tensors {count} right {right}");
    Ok(count == right)
}

/// Prints how many programs are right, and how far off they are.
#[derive(Default)]
struct Judge {
    programs: usize,
    right: usize,
    most: f64,
}

impl Judge {
    fn judge(&mut self, name: &str, error: Result<f64>) {
        self.programs += 1;
        match error {
            Ok(error) => {
                println!("{name}: max_rel_err {error:.1e}");
                self.right += usize::from(error <= 1e-5);
                self.most = self.most.max(error);
            }
            Err(error) => println!("{name}: {error}"),
        }
    }

    fn print(&self, what: &str) -> bool {
        let Judge {
            programs,
            right,
            most,
        } = self;
        println!("{what} {programs} right {right} max_rel_err {most:.1e}");
        right == programs
    }
}

fn main() -> Result<()> {
    let path = std::env::var_os(PLUGIN_VARIABLE)
        .ok_or_else(|| Error::msg(format_args!("{PLUGIN_VARIABLE} is not set")))?;
    let plugin = Plugin::load(path)?;
    println!("{plugin}");
    let client = |devices| {
        let options = ClientOptions::new().int("cpu_device_count", devices);
        Client::new(plugin, &options).map(Pjrt::new)
    };
    let (one, eight) = (client(1)?, client(8)?);
    let only: Vec<String> = std::env::args().skip(1).collect();
    let (mut programs, mut with_gradients) = (Judge::default(), Judge::default());
    for case in models::all()? {
        if !only.is_empty() && !only.iter().any(|name| name == case.name) {
            continue;
        }
        let inputs = (case.inputs)(2)?;
        programs.judge(case.name, compare(&case.gm, &case.gm, &one, &inputs));
        if ["mlp", "gpt2", "resnet18", "vit_b_16"].contains(&case.name) {
            let error = gradients(&case, &inputs).and_then(|gm| compare(&gm, &gm, &one, &inputs));
            with_gradients.judge(&format!("{} and its gradients", case.name), error);
        }
        let inputs = (case.inputs)(8)?;
        for split in sharded::sharded(&case, &inputs)? {
            programs.judge(&split.name, compare(&case.gm, &split.gm, &eight, &inputs));
        }
    }
    let good = tensors_both_ways(&one)? & with_gradients.print("gradients");
    match programs.print("programs") && good {
        true => Ok(()),
        false => Err(Error::msg("some programs are wrong")),
    }
}
