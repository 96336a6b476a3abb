//! Recurrent layers and their cells.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::Dim;

use super::{are_equal, at_least, require_one_type, rules, tensor, wrong, x};
use crate::ops;

rules! {
    lstm => ops::lstm;
    |call| network(call, 3) => ops::gru;
    |call| network(call, 1) => ops::rnn_relu, ops::rnn_tanh;
    lstm_cell => ops::lstm_cell;
    |call| cell(call, 3) => ops::gru_cell;
    |call| cell(call, 1) => ops::rnn_relu_cell, ops::rnn_tanh_cell;
}

/// Returns an error unless a tensor has the type of the input, and a shape.
fn require(call: &mut RuleCall<'_>, given: &TensorMeta, what: &str, shape: &[Dim]) -> Result<()> {
    require_one_type(call, x(call)?, given)?;
    match are_equal(call, &given.shape, shape)? {
        true => Ok(()),
        false => Err(wrong(
            call,
            format_args!("{what} has the shape {:?}, and not {shape:?}", given.shape),
        )),
    }
}

/// Returns an error unless the weights and biases of a layer fit an input of so many features.
fn require_weights(
    call: &mut RuleCall<'_>,
    params: &[&TensorMeta],
    inputs: &Dim,
    hidden: &Dim,
    gates: i64,
) -> Result<()> {
    let rows = (hidden * gates)?;
    for (at, param) in params.iter().enumerate() {
        match at {
            0 => require(
                call,
                param,
                "the input's weight",
                &[rows.clone(), inputs.clone()],
            )?,
            1 => require(
                call,
                param,
                "the state's weight",
                &[rows.clone(), hidden.clone()],
            )?,
            _ => require(call, param, "a bias", std::slice::from_ref(&rows))?,
        }
    }
    Ok(())
}

/// How many hidden features a weight of the state is for.
fn hidden<'m>(call: &RuleCall<'_>, of_state: Option<&&'m TensorMeta>) -> Result<&'m Dim> {
    let last = of_state.and_then(|weight| weight.shape.last());
    last.ok_or_else(|| wrong(call, "a layer has two weights, which are matrices"))
}

/// The results of all steps, and the states after the last one.
fn layers(call: &mut RuleCall<'_>, gates: i64, states: &[&str]) -> Result<(ValueMeta, ValueMeta)> {
    let x = x(call)?;
    let params = call.tensors("params")?;
    let directions = 1 + i64::from(call.flag("bidirectional")?);
    let each: usize = if call.flag("has_biases")? { 4 } else { 2 };
    let many = (Dim::from(call.int("num_layers")?) * directions)?;
    if many == 0 || (&many * Dim::from(each))? != params.len() {
        return Err(wrong(
            call,
            format_args!(
                "{many} layers and directions have {each} parameters each, and {} are given",
                params.len()
            ),
        ));
    }
    let hidden = hidden(call, params.get(1))?;
    let (time, batch, inputs) = match &x.shape[..] {
        [batch, time, inputs] if call.flag("batch_first")? => (time, Some(batch), inputs),
        [time, batch, inputs] => (time, Some(batch), inputs),
        [time, inputs] => (time, None, inputs),
        other => {
            return Err(wrong(
                call,
                format_args!(
                    "the input {other:?} is none of [L, N, in], [N, L, in] with `batch_first`, and [L, in]"
                ),
            ));
        }
    };
    at_least(call, time, 1, "the input has no time steps, and needs one")?;
    let wide = (hidden * directions)?;
    for (at, layer) in params.chunks(each).enumerate() {
        // Behind the first layer, the input is what the directions gave.
        let inputs = match i64::try_from(at) {
            Ok(at) if at < directions => inputs,
            _ => &wide,
        };
        require_weights(call, layer, inputs, hidden, gates)?;
    }
    let state: Vec<Dim> = [&many]
        .into_iter()
        .chain(batch)
        .chain([hidden])
        .cloned()
        .collect();
    for param in states {
        if let Some(given) = call.optional_tensor(param)? {
            require(call, given, "a state", &state)?;
        }
    }
    let mut all = x.shape.clone();
    if let Some(size) = all.last_mut() {
        *size = wide;
    }
    Ok((tensor(all, x.dtype), tensor(state, x.dtype)))
}

fn network(call: &mut RuleCall<'_>, gates: i64) -> Result<ValueMeta> {
    let (all, state) = layers(call, gates, &["h_0"])?;
    Ok(ValueMeta::Tuple(vec![all, state]))
}

fn lstm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (all, state) = layers(call, 4, &["h_0", "c_0"])?;
    Ok(ValueMeta::Tuple(vec![all, state.clone(), state]))
}

/// The state after one step.
fn step(call: &mut RuleCall<'_>, gates: i64, states: &[&str]) -> Result<ValueMeta> {
    let x = x(call)?;
    let mut params = vec![call.tensor("w_ih")?, call.tensor("w_hh")?];
    let biases = [call.optional_tensor("b_ih")?, call.optional_tensor("b_hh")?];
    params.extend(biases.into_iter().flatten());
    if params.len() == 3 {
        return Err(wrong(
            call,
            "`b_ih` and `b_hh` come together: give both or neither",
        ));
    }
    let hidden = hidden(call, params.get(1))?;
    let (batch, inputs) = match &x.shape[..] {
        [inputs] => (None, inputs),
        [batch, inputs] => (Some(batch), inputs),
        other => {
            return Err(wrong(
                call,
                format_args!("the input has one or two dims, and not {other:?}"),
            ));
        }
    };
    require_weights(call, &params, inputs, hidden, gates)?;
    let state: Vec<Dim> = batch.into_iter().chain([hidden]).cloned().collect();
    for param in states {
        if let Some(given) = call.optional_tensor(param)? {
            require(call, given, "a state", &state)?;
        }
    }
    Ok(tensor(state, x.dtype))
}

fn cell(call: &mut RuleCall<'_>, gates: i64) -> Result<ValueMeta> {
    step(call, gates, &["hx"])
}

fn lstm_cell(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let state = step(call, 4, &["h", "c"])?;
    Ok(ValueMeta::Tuple(vec![state; 2]))
}
