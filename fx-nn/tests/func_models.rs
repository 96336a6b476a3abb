//! Gradients of whole models as graphs, beside the tape: of every parameter, in training and in evaluation; then compiled,
//! in `f32`.
#![allow(clippy::print_stdout, reason = "a test says what it measured")]

use fx_nn::cpu::Cpu;
use fx_nn::func::{Transform, parameters, vjp};
use fx_nn::models::{bert, convnext, gpt2, resnet};
use fx_nn::module::{ComponentExt, Module};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_nn::{Error, IndexMap, Result};

/// How far an element may be from the tape's, in proportion to the parameter's largest.
const NEAR: f64 = 1e-9;

fn args(args: Vec<Value>) -> CallArgs {
    CallArgs {
        args,
        kwargs: Vec::new(),
    }
}

fn numbers(shape: &[usize], seed: usize) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let each = (0..count).map(|at| ((at * 7919 + seed) % 1009) as f64 / 504.5 - 1.0);
    Tensor::from_vec(each.collect::<Vec<f64>>(), shape)
}

fn ids(shape: &[usize], below: i64) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    Tensor::from_vec(
        (0..count as i64)
            .map(|at| (at * 31 + 7) % below)
            .collect::<Vec<_>>(),
        shape,
    )
}

/// The first tensor of a result.
fn first(value: &Value) -> Result<Tensor> {
    let mut found = None;
    value.for_each(&mut |value| {
        found = found
            .take()
            .or_else(|| value.downcast_ref::<Tensor>().cloned())
    });
    found.ok_or_else(|| Error::msg("the model gives a tensor"))
}

fn check<M: Module + fx_nn::module::Component>(
    name: &str,
    model: &mut M,
    inputs: Vec<Value>,
    training: bool,
) -> Result<()> {
    nn::to_dtype(model, DType::F64)?;
    match training {
        true => model.train(),
        false => model.eval(),
    }
    let result: Value = model.forward(args(inputs.clone()))?;
    // What the gradient starts from, in the structure of the result.
    let seed = |value: &Value| -> Result<Value> {
        let y = first(value)?;
        Ok(Value::object(numbers(y.dims()?, 3)?))
    };
    let cotangent = match &result {
        Value::Tuple(items) => Value::Tuple(items.iter().map(seed).collect::<Result<_>>()?),
        one => seed(one)?,
    };
    let mut given = inputs.clone();
    given.push(cotangent.clone());
    let all = given.clone();
    let of = vjp(&*model).wrt(parameters("**"));
    let specs: Vec<Spec> = given.iter().map(|value| Spec::of(value.clone())).collect();
    let gm = of.graph_module(&specs)?;
    gm.lint()?;
    // Statistics are written once, by the forward part.
    let (_, grads): (Value, IndexMap<String, Tensor>) = gm.forward(args(given))?;

    let mut total: Option<Tensor> = None;
    let result: Value = model.forward(args(inputs))?;
    let pairs: Vec<(Value, Value)> = match (&result, &cotangent) {
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().cloned().zip(b.iter().cloned()).collect(),
        _ => vec![(result.clone(), cotangent.clone())],
    };
    for (y, weight) in pairs {
        let sum = (first(&y)? * first(&weight)?)?.sum(..)?;
        total = Some(match total {
            Some(total) => (total + sum)?,
            None => sum,
        });
    }
    let store = total.ok_or_else(|| Error::msg("a sum"))?.backward()?;
    let named = model.named_parameters();
    let mut compared = 0;
    for (path, value) in &named {
        let parameter = value
            .downcast_ref::<Tensor>()
            .ok_or_else(|| Error::msg("a parameter"))?;
        let expected = match store.get(parameter)? {
            Some(grad) => grad.to_vec()?,
            None => continue,
        };
        let found = grads
            .get(path.as_str())
            .ok_or_else(|| Error::msg(format_args!("no gradient of {path}")))?;
        let found = found.to_vec()?;
        let largest = expected.iter().fold(1e-6f64, |most, x| most.max(x.abs()));
        let worst = expected
            .iter()
            .zip(&found)
            .fold(0.0f64, |most, (a, b)| most.max((a - b).abs() / largest));
        assert!(worst <= NEAR, "{name} {path}: {worst:e} of {largest:e}");
        compared += 1;
    }
    assert!(
        compared > 0 && compared >= grads.len().min(named.len()),
        "{name}: {compared} of {}",
        grads.len()
    );
    let near = match training && name == "resnet18" {
        true => NEAR_KINKS,
        false => NEAR_SINGLE,
    };
    compiled(name, model, all, &grads, near)
}

/// The gradients in `f32`, compiled, beside those in `f64`: as near as this, or as twice the difference of the graph's own
/// numbers in `f32`.
const NEAR_SINGLE: f64 = 1e-5;

/// The same where batch norms of few elements spread it that a unit is on the other side of the kink of its relu.
const NEAR_KINKS: f64 = 0.2;

fn compiled<M: Module + fx_nn::module::Component>(
    name: &str,
    model: &mut M,
    given: Vec<Value>,
    expected: &IndexMap<String, Tensor>,
    near: f64,
) -> Result<()> {
    nn::to_dtype(model, DType::F32)?;
    let single = |value: Value| -> Result<Value> {
        let tree = fx_nn::value::Tree::of(&value)?;
        let leaves = tree.flatten(value)?.into_iter();
        let leaves = leaves.map(|leaf| match first(&leaf) {
            Ok(x) if x.dtype()? == DType::F64 => Ok(Value::object(x.to_dtype(DType::F32)?)),
            _ => Ok(leaf),
        });
        tree.unflatten(leaves.collect::<Result<_>>()?)
    };
    let given = given.into_iter().map(single).collect::<Result<Vec<_>>>()?;
    let specs: Vec<Spec> = given.iter().map(|value| Spec::of(value.clone())).collect();
    let gm = vjp(&*model).wrt(parameters("**")).graph_module(&specs)?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(args(given.clone())))?;
    // What is zero but for rounding, as the gradient of a bias before a norm, has no digits of its own.
    let mut least = 0.0f64;
    for grad in expected.values() {
        least = grad
            .to_vec()?
            .iter()
            .fold(least, |most, x| most.max(1e-2 * x.abs()));
    }
    let worst = |gm: &GraphModule| -> Result<f64> {
        let (_, grads): (Value, IndexMap<String, Tensor>) = gm.forward(args(given.clone()))?;
        let mut worst = 0.0f64;
        for (path, expected) in expected {
            let found = grads[path.as_str()].to_vec()?;
            let expected = expected.to_vec()?;
            let largest = expected.iter().fold(least, |most, x| most.max(x.abs()));
            let pairs = expected.iter().zip(&found);
            worst = pairs.fold(worst, |most, (a, b)| most.max((a - b).abs() / largest));
        }
        Ok(worst)
    };
    let (found, own) = (worst(&fast)?, worst(&gm)?);
    println!("{name}: compiled {found:.1e}, not compiled {own:.1e}");
    assert!(found <= near.max(2.0 * own), "{name}: {found:e}, {own:e}");
    Ok(())
}

#[test]
fn a_residual_network() -> Result<()> {
    for training in [false, true] {
        fx_nn::manual_seed(0);
        let mut model = resnet::resnet18(10)?;
        check(
            "resnet18",
            &mut model,
            vec![Value::object(numbers(&[2, 3, 32, 32], 1)?)],
            training,
        )?;
    }
    Ok(())
}

#[test]
fn a_convolutional_network_of_layer_norms() -> Result<()> {
    for training in [false, true] {
        let mut model = convnext::ConvNeXt::new([(8, 1), (12, 1), (16, 2), (20, 1)], 0.0, 5)?;
        check(
            "convnext",
            &mut model,
            vec![Value::object(numbers(&[2, 3, 32, 32], 1)?)],
            training,
        )?;
    }
    Ok(())
}

#[test]
fn a_decoder() -> Result<()> {
    let config = gpt2::Config {
        vocab_size: 50,
        block_size: 16,
        n_layer: 2,
        n_head: 2,
        n_embd: 8,
        dropout: 0.0,
    };
    for training in [false, true] {
        let mut model = gpt2::Gpt2::new(&config)?;
        check(
            "gpt2",
            &mut model,
            vec![Value::object(ids(&[2, 7], 50)?)],
            training,
        )?;
    }
    Ok(())
}

#[test]
fn an_encoder() -> Result<()> {
    let config = bert::Config {
        vocab_size: 40,
        max_positions: 12,
        length: 9,
        width: 8,
        heads: 2,
        intermediate: 16,
        layers: 2,
        labels: 3,
        dropout: 0.0,
    };
    let mask = Tensor::ones((2, 9))?.to_dtype(DType::F64)?;
    let inputs = vec![
        Value::object(ids(&[2, 9], 40)?),
        Value::object(mask),
        Value::object(ids(&[2, 9], 2)?),
    ];
    for training in [false, true] {
        let mut model = bert::Bert::new(&config)?;
        check("bert", &mut model, inputs.clone(), training)?;
    }
    Ok(())
}
