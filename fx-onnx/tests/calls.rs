//! The recorded calls of every operation and layer, written as ONNX and read back: each gives what PyTorch gave, or is
//! refused. `calls.py` has ONNX Runtime run the same files.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_differential::{Call, Elements, Expected, Outcome, compared, graph_of, reason, recorded};
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::{Export, Load, OnnxExt};

/// What a call comes to.
enum Judged {
    Right,
    Refused,
    Wrong(String),
}

/// The values of a structure, one after another; nothing is none.
fn flat(value: &Value, all: &mut Vec<Value>) {
    match value {
        Value::List(items) | Value::Tuple(items) => items.iter().for_each(|item| flat(item, all)),
        Value::None => {}
        other => all.push(other.clone()),
    }
}

/// The same of what PyTorch gave.
fn expected(value: &Expected, all: &mut Vec<Expected>) {
    match value {
        Expected::List(items) => items.iter().for_each(|item| expected(item, all)),
        Expected::None => {}
        other => all.push(other.clone()),
    }
}

/// With the tolerance that another order of sums needs, relative to the largest element.
fn rounded(expected: Expected) -> Expected {
    match expected {
        Expected::Tensor {
            shape,
            dtype,
            elements: Elements::Float(all),
            tolerance,
            spread,
        } => {
            let finite = all.iter().filter(|x| x.is_finite());
            let scale = finite.fold(0f64, |most, x| most.max(x.abs()));
            let step = match dtype {
                DType::F16 => 2f64.powi(-8),
                DType::BF16 => 2f64.powi(-5),
                _ => 1e-5,
            };
            Expected::Tensor {
                shape,
                dtype,
                elements: Elements::Float(all),
                tolerance: tolerance + 4.0 * spread + step * scale,
                spread,
            }
        }
        other => other,
    }
}

/// A result of a file as what PyTorch gave: a number is a tensor without dims there.
fn as_expected(value: Value, expected: &Expected) -> Result<Value> {
    let Some(tensor) = value.downcast_ref::<Tensor>() else {
        return Ok(value);
    };
    Ok(match expected {
        Expected::Bool(_) => Value::Bool(tensor.item()? != 0.0),
        Expected::Int(_) => Value::Int(tensor.item()? as i64),
        Expected::Float(_) => Value::Float(tensor.item()?),
        _ => value,
    })
}

fn judged(call: &Call) -> Result<Judged> {
    let Outcome::Value(outcome) = &call.outcome else {
        return Ok(Judged::Right);
    };
    // Assertions are left out of files, which the report says.
    if call.name.contains("assert") {
        return Ok(Judged::Right);
    }
    let (gm, args) = graph_of(call)?;
    let args = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let given = gm.process_inputs(args.clone())?;
    let bytes = match gm.to_onnx_bytes(&Export::example(args)) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.to_string().contains("does not read") => return Err(error),
        Err(_) => return Ok(Judged::Refused),
    };
    let tensors = given
        .into_iter()
        .filter(|value| value.as_object().is_some());
    let call_of_file = CallArgs {
        args: tensors.collect(),
        kwargs: Vec::new(),
    };
    // What the reader does not take, `calls.py` gives to ONNX Runtime.
    let Ok(read) = Load::new().from_bytes(bytes) else {
        return Ok(Judged::Refused);
    };
    let read = read.module;
    let result: Value = read.forward(call_of_file)?;
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    flat(&result, &mut found);
    expected(outcome, &mut wanted);
    // The buffers that a layer moves in training are no results of a file.
    if call.made.as_ref().is_some_and(|made| made.training) && found.len() == 1 {
        wanted.truncate(1);
    }
    if found.len() != wanted.len() {
        return Ok(Judged::Wrong(format!(
            "{} results for {}",
            found.len(),
            wanted.len()
        )));
    }
    for (found, wanted) in found.into_iter().zip(wanted) {
        let mut one = call.clone();
        let found = as_expected(found, &wanted)?;
        one.outcome = Outcome::Value(rounded(wanted));
        if let Some(difference) = compared(&one, &Ok(found))
            && reason(call, &difference).is_none()
        {
            return Ok(Judged::Wrong(difference.text));
        }
    }
    Ok(Judged::Right)
}

#[test]
fn defect_t3_e9_a_recorded_call_gives_pytorchs_numbers_or_is_refused() -> Result<()> {
    let (mut right, mut refused, mut wrong) = (0, 0, BTreeMap::<String, Vec<String>>::new());
    for line in recorded()?.lines() {
        let call = Call::parse(line)?;
        let verdict = catch_unwind(AssertUnwindSafe(|| judged(&call)));
        let text = match verdict {
            Ok(Ok(Judged::Right)) => {
                right += 1;
                continue;
            }
            Ok(Ok(Judged::Refused)) => {
                refused += 1;
                continue;
            }
            Ok(Ok(Judged::Wrong(text))) => text,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a panic".to_string(),
        };
        wrong
            .entry(call.name.clone())
            .or_default()
            .push(format!("#{} {text}", call.id));
    }
    println!("right {right} refused {refused}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right > 8_000, "{right} calls are written");
    Ok(())
}
