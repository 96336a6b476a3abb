//! Modes see every call on a thread, eager, traced or run: one counts them, one computes in bfloat16.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use fx_nn::ir::Op;
use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;
use fx_nn::trace::{Mode, ModeCall, Next, with_mode};

/// Counts the calls that would be nodes of a graph: those not inside a leaf.
#[derive(Default)]
struct CountCalls {
    counts: RefCell<BTreeMap<String, usize>>,
    in_leaf: Cell<bool>,
}

impl Mode for CountCalls {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        if self.in_leaf.get() || !call.is_leaf() {
            return next.call(call);
        }
        *self.counts.borrow_mut().entry(call.name()).or_default() += 1;
        self.in_leaf.set(true);
        let result = next.call(call);
        self.in_leaf.set(false);
        result
    }
}

/// The calls that a model makes while `run` runs.
fn counted<R>(run: impl FnOnce() -> Result<R>) -> Result<BTreeMap<String, usize>> {
    let mode = Rc::new(CountCalls::default());
    with_mode(mode.clone(), run)?;
    Ok(mode.counts.take())
}

/// Makes convolutions and linear layers compute in bfloat16, and leaves everything else unchanged.
struct Autocast;

impl Mode for Autocast {
    fn call(&self, mut call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        let is_cast = call
            .function()
            .is_some_and(|f| f == function!(ops::conv2d) || f == function!(ops::linear));
        if !is_cast {
            return next.call(call);
        }
        for arg in &mut call.args.args {
            // Arguments that are not tensors, such as an absent bias, stay unchanged.
            if let Ok(tensor) = Tensor::from_value(arg.clone()) {
                *arg = Value::of(tensor.to_dtype(DType::BF16)?);
            }
        }
        let y = Tensor::from_value(next.call(call)?)?;
        Ok(Value::of(y.to_dtype(DType::F32)?))
    }
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = resnet18(10)?;
    model.eval();
    let x = Tensor::randn((1, 3, 64, 64))?;

    let eager = counted(|| model.forward(&x))?;
    let traced = counted(|| symbolic_trace(&model))?;
    let gm = symbolic_trace(&model)?;
    let run = counted(|| gm.forward::<Tensor>(&x))?;
    let interpreted = counted(|| gm.interpret::<Tensor>(&mut PlainInterpreter, &x))?;
    for (name, count) in &eager {
        println!("{name:18} {count}");
    }
    println!("calls: {}", eager.values().sum::<usize>());
    println!(
        "the same eager, traced, run and interpreted: {}",
        eager == traced && eager == run && eager == interpreted
    );

    let exact = model.forward(&x)?;
    let cast = with_mode(Autocast, || model.forward(&x))?;
    let graph_cast: Tensor = with_mode(Autocast, || gm.forward(&x))?;
    let error = (&cast - &exact)?.abs()?.amax(..)?.item()?;
    println!("max_abs_err_in_bf16: {error:.1e}");
    println!(
        "eager and traced are one in bf16: {}",
        fx_nn::allclose(&cast, &graph_cast, 0.0, 0.0)?
    );
    // A trace in the mode records the casts as nodes.
    let recorded = with_mode(Autocast, || {
        Trace::new(&model)
            .tracer(fx_nn::trace::NoLeaves)
            .graph_module()
    })?;
    let casts = recorded
        .graph()
        .find_nodes(&Op::CallMethod("to_dtype".into()));
    println!("casts in a graph traced in the mode: {}", casts.len());
    let y: Tensor = recorded.forward(&x)?;
    println!("as in the mode: {}", fx_nn::allclose(&y, &cast, 0.0, 0.0)?);
    Ok(())
}
