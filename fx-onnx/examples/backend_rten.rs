//! An engine behind the `Backend` trait by way of ONNX: parts of a graph are written as files in memory, which rten runs.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod support;

use std::sync::Arc;

use fx_nn::ir::ValueMeta;
use fx_nn::lowering::{Form, Rules};
use fx_nn::models::resnet::resnet18;
use fx_nn::module::{Call, Callee, ComponentExt};
use fx_nn::passes::backend::{Backend, Executable, Metas, Support};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_onnx::{Cx, Export, OnnxExt};
use support::rten;

struct Rten;

/// A part as rten's model.
struct Loaded(::rten::Model);

impl Backend for Rten {
    fn name(&self) -> &str {
        "rten"
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        let tensor = metas.result().and_then(ValueMeta::tensor);
        if tensor.is_none_or(|meta| meta.dtype != Some(DType::F32)) {
            return Support::no("its result is no float32, or not known: infer shapes first");
        }
        match call.callee() {
            // Layers are opened when the part is written.
            Callee::Module(_) => Support::Yes,
            _ => match call
                .function()
                .map(|function| Rules::<Cx>::default().form(function))
            {
                Some(Ok(Some(Form::Operations | Form::OtherFunctions))) => Support::Yes,
                _ => Support::no("ONNX has no such function"),
            },
        }
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>> {
        let specs = inputs.iter().map(|meta| {
            let meta = meta.as_ref().and_then(ValueMeta::tensor);
            let meta = meta.ok_or_else(|| Error::msg("an input is no tensor"))?;
            let dtype = meta
                .dtype
                .ok_or_else(|| Error::msg("the type of an input is not known"))?;
            Ok(Spec::tensor(meta.shape.iter().cloned(), dtype))
        });
        let export = Export::specs(specs.collect::<Result<Vec<Spec>>>()?);
        let (bytes, report) = part.to_onnx_bytes(&export)?;
        println!("{}: {report}", part.class_name());
        Ok(Arc::new(Loaded(rten::load(bytes)?)))
    }
}

impl Executable for Loaded {
    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        let inputs = inputs.iter().map(|x| Tensor::from_value((*x).clone()));
        let results = rten::run(&self.0, &inputs.collect::<Result<Vec<Tensor>>>()?)?;
        let mut results: Vec<Value> = results.into_iter().map(Value::of).collect();
        *out = match results.len() {
            1 => results.swap_remove(0),
            _ => Value::Tuple(results.into()),
        };
        Ok(())
    }
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = resnet18(1000)?;
    model.eval();
    let x = Tensor::randn((1, 3, 224, 224))?;
    let mut gm = symbolic_trace(&model)?;
    gm.propagate_shapes(&x)?;
    let expected: Value = gm.forward(&x)?;

    let report = gm.lower(&Rten)?;
    print!("{report}");
    let found: Value = gm.forward(&x)?;
    println!(
        "max_rel_err: {:.1e}",
        fx_onnx::max_rel_err(&found, &expected)?
    );
    Ok(())
}
