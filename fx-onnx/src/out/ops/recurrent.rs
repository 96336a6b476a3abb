//! Recurrent layers: one node per layer, both directions in it.

use fx_nn::{Error, Result, function, ops};

use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    lstm => |cx, call| layers(cx, call, "LSTM", &[0, 3, 1, 2]),
    gru => |cx, call| layers(cx, call, "GRU", &[1, 0, 2]),
    rnn_tanh => |cx, call| layers(cx, call, "RNN", &[0]),
    rnn_relu => |cx, call| layers(cx, call, "RNN", &[0]),
}

/// A parameter of each direction, its gates in ONNX's order, as `[directions, ..]`.
fn gates(cx: &mut Cx, of: &[&Operand], order: &[usize]) -> Name {
    let zero = cx.i64s(&[0]);
    let mut all = Vec::new();
    for of in of {
        let name = match order {
            [_] => of.name.clone(),
            _ => {
                let node = cx
                    .node("Split")
                    .input(&of.name)
                    .int("axis", 0)
                    .int("num_outputs", order.len() as i64);
                let parts = node.outputs(order.len());
                let mut node = cx.node("Concat").int("axis", 0);
                for at in order {
                    node = node.input(&parts[*at]);
                }
                node.output()
            }
        };
        all.push(cx.op("Unsqueeze", &[&name, &zero]));
    }
    joined(cx, &all, 0)
}

fn joined(cx: &mut Cx, all: &[Name], axis: i64) -> Name {
    if let [only] = all {
        return only.clone();
    }
    let mut node = cx.node("Concat").int("axis", axis);
    for name in all {
        node = node.input(name);
    }
    node.output()
}

/// The batch and the places of a sequence, one for the other.
fn swapped(cx: &mut Cx, input: &Name) -> Name {
    let node = cx.node("Transpose").input(input);
    node.ints("perm", [1, 0, 2]).output()
}

fn layers(cx: &mut Cx, call: &OpCall<'_>, op: &str, order: &[usize]) -> Result<Val> {
    let own = call.tensor("x")?;
    // Every tensor in a type that the operator has.
    let x = cx.carried(op, &own)?;
    let params = call.tensors("params")?;
    let params = params.iter().map(|of| cx.cast(of, x.dtype));
    let params = params.collect::<Result<Vec<Operand>>>()?;
    let (biases, count) = (call.flag("has_biases")?, call.int("num_layers")? as usize);
    let directions = if call.flag("bidirectional")? { 2 } else { 1 };
    let batch_first = call.flag("batch_first")?;
    let p = call.float("dropout_p")?;
    if call.flag("train")? && p != 0.0 && count > 1 {
        return Err(Error::not_in_format(
            "dropout between recurrent layers in training: export the model in evaluation mode",
        ));
    }
    let each = if biases { 4 } else { 2 };
    if params.len() != each * directions * count {
        return Err(Error::not_in_format(
            "projections of a recurrent layer: ONNX has none",
        ));
    }
    let zero = cx.i64s(&[0]);
    let added = x.rank() == 2;
    let mut input = x.name.clone();
    if added {
        let at = cx.i64s(&[1]);
        input = cx.op("Unsqueeze", &[&input, &at]);
    } else if batch_first {
        input = swapped(cx, &input);
    }
    let hidden = params.get(1).and_then(|of| of.shape.get(1)?.as_number());
    let hidden =
        hidden.ok_or_else(|| Error::msg("the hidden size of a recurrent layer is not known"))?;
    let states: Vec<Option<Operand>> = match op {
        "LSTM" => vec![call.optional_tensor("h_0")?, call.optional_tensor("c_0")?],
        _ => vec![call.optional_tensor("h_0")?],
    };
    let states = states
        .into_iter()
        .map(|state| state.map(|of| cx.cast(&of, x.dtype)).transpose());
    let states = states.collect::<Result<Vec<Option<Operand>>>>()?;
    let mut lasts: Vec<Vec<Name>> = vec![Vec::new(); states.len()];
    for layer in 0..count {
        let own: Vec<&[Operand]> = (0..directions)
            .map(|d| &params[(layer * directions + d) * each..][..each])
            .collect();
        let of = |at: usize| own.iter().map(|p| &p[at]).collect::<Vec<_>>();
        let (w, r) = (gates(cx, &of(0), order), gates(cx, &of(1), order));
        let bias = biases.then(|| {
            let parts = [gates(cx, &of(2), order), gates(cx, &of(3), order)];
            joined(cx, &parts, 1)
        });
        let mut initial: Vec<Option<Name>> = Vec::new();
        for state in &states {
            initial.push(match state {
                None => None,
                Some(state) => {
                    let mut name = state.name.clone();
                    if state.rank() == 2 {
                        let at = cx.i64s(&[1]);
                        name = cx.op("Unsqueeze", &[&name, &at]);
                    }
                    if count > 1 {
                        let from = cx.i64s(&[(layer * directions) as i64]);
                        let to = cx.i64s(&[((layer + 1) * directions) as i64]);
                        name = cx.op("Slice", &[&name, &from, &to, &zero]);
                    }
                    Some(name)
                }
            });
        }
        let empty: Option<&Name> = None;
        let mut node = cx
            .node(op)
            .input(&input)
            .input(&w)
            .input(&r)
            .optional(bias.as_ref())
            .optional(empty);
        for state in &initial {
            node = node.optional(state.as_ref());
        }
        node = node.int("hidden_size", hidden).text(
            "direction",
            if directions == 2 {
                "bidirectional"
            } else {
                "forward"
            },
        );
        if op == "GRU" {
            node = node.int("linear_before_reset", 1);
        }
        if call.function() == function!(ops::rnn_relu) {
            node = node.texts("activations", &["Relu"; 2][..directions]);
        }
        let names = node.outputs(1 + states.len());
        for (last, name) in lasts.iter_mut().zip(&names[1..]) {
            last.push(name.clone());
        }
        let (one, shape) = (cx.i64s(&[1]), cx.i64s(&[0, 0, -1]));
        input = match directions {
            1 => cx.op("Squeeze", &[&names[0], &one]),
            _ => {
                let turned = cx
                    .node("Transpose")
                    .input(&names[0])
                    .ints("perm", [0, 2, 1, 3])
                    .output();
                cx.op("Reshape", &[&turned, &shape])
            }
        };
    }
    if added {
        let at = cx.i64s(&[1]);
        input = cx.op("Squeeze", &[&input, &at]);
    } else if batch_first {
        input = swapped(cx, &input);
    }
    let mut names = vec![input];
    for last in &lasts {
        let mut name = joined(cx, last, 0);
        if added {
            let at = cx.i64s(&[1]);
            name = cx.op("Squeeze", &[&name, &at]);
        }
        names.push(name);
    }
    for name in &mut names {
        *name = cx.given_as(name.clone(), x.dtype, own.dtype)?;
    }
    call.all_given(names)
}
