//! Recurrent layers and their cells.

use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::{rules, tensor, x};
use crate::ops;

rules! {
    |call| layers(call, 2) => ops::lstm;
    |call| layers(call, 1) => ops::gru, ops::rnn_relu, ops::rnn_tanh;
    |call| cell(call, 2) => ops::lstm_cell;
    |call| cell(call, 1) => ops::gru_cell, ops::rnn_relu_cell, ops::rnn_tanh_cell;
}

/// The results of all steps, then `states` states after the last one.
fn layers(call: &mut RuleCall<'_>, states: usize) -> Result<Fake> {
    let x = x(call)?;
    let weights = call.tensors("params")?;
    let [of_input, of_hidden, ..] = &weights[..] else {
        return Err(Error::msg("a recurrent layer has two weights or more"));
    };
    let directions = 1 + i64::from(call.flag("bidirectional")?);
    let many = call.int("num_layers")? * directions;
    let (Some(hidden), Some(inputs)) = (of_hidden.shape.get(1), of_input.shape.get(1)) else {
        return Err(Error::msg("the weights of a recurrent layer are matrices"));
    };
    if let Some(size) = x.shape.last() {
        call.same(size, inputs, || {
            format!(
                "the input {:?} does not fit the weight {:?}",
                x.shape, of_input.shape
            )
        })?;
    }
    let batch: &[Dim] = match &x.shape[..] {
        [batch, _, _] if call.flag("batch_first")? => std::slice::from_ref(batch),
        [_, batch, _] => std::slice::from_ref(batch),
        [_, _] => &[],
        other => {
            return Err(Error::msg(format_args!(
                "{}: the input has two or three dims, and not the shape {other:?}",
                call.function().name()
            )));
        }
    };
    let mut all = x.shape.clone();
    if let Some(size) = all.last_mut() {
        *size = (hidden * directions)?;
    }
    let mut state = vec![Dim::from(many)];
    state.extend_from_slice(batch);
    state.push(hidden.clone());
    let state = tensor(state, x.dtype);
    let mut results = vec![tensor(all, x.dtype)];
    results.extend(std::iter::repeat_n(state, states));
    Ok(Fake::Tuple(results))
}

/// The states after one step.
fn cell(call: &mut RuleCall<'_>, states: usize) -> Result<Fake> {
    let (x, of_input, of_hidden) = (x(call)?, call.tensor("w_ih")?, call.tensor("w_hh")?);
    if let (Some(size), Some(inputs)) = (x.shape.last(), of_input.shape.get(1)) {
        call.same(size, inputs, || {
            format!(
                "the input {:?} does not fit the weight {:?}",
                x.shape, of_input.shape
            )
        })?;
    }
    let mut shape = x.shape.clone();
    if let (Some(size), Some(hidden)) = (shape.last_mut(), of_hidden.shape.get(1)) {
        *size = hidden.clone();
    }
    let state = tensor(shape, x.dtype);
    Ok(match states {
        1 => state,
        _ => Fake::Tuple(vec![state; states]),
    })
}
