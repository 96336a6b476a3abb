//! Recurrent networks over whole sequences.

use super::cost;
use crate::op;
use std::borrow::Borrow;

use candle_core::Tensor as Data;
use fx_core::Result;

use super::activation::dropout;
use crate::error::{Fx, require, unfit};
use crate::kernels::lstm::{Weights, layer};
use crate::room;
use crate::tensor::Tensor;

/// Long short-term memory over `x` `[L, N, in]`, `[N, L, in]` with `batch_first`, or `[L, in]`.
///
/// `params` are, for each layer and each direction in it, the weights of the input
/// `[4 · hidden, in]` and of the hidden state `[4 · hidden, hidden]` and, with `has_biases`, their
/// two biases `[4 · hidden]`; gates are in the order input, forget, cell, output. The states `h_0`
/// and `c_0` `[layers · directions, N, hidden]` are zeros by default. Returns the last layer's
/// hidden states (of both directions side by side), and the last states of all layers.
///
/// # Errors
/// Returns an error if a shape or the number of parameters does not fit.
#[op(member, cost = cost::lstm, random = train, path = "fx_nn::ops::lstm")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn lstm(
    x: &Tensor,
    h_0: Option<&Tensor>,
    c_0: Option<&Tensor>,
    params: &[impl Borrow<Tensor>],
    has_biases: bool,
    num_layers: usize,
    dropout_p: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let data = x.data("lstm")?;
    let (batched, data) = match data.rank() {
        3 if batch_first => (true, data.transpose(0, 1).fx()?),
        3 => (true, data.clone()),
        2 => (false, data.unsqueeze(1).fx()?),
        _ => return Err(unfit("lstm")),
    };
    let directions = if bidirectional { 2 } else { 1 };
    let each = if has_biases { 4 } else { 2 };
    let expected = num_layers.checked_mul(directions * each);
    require("lstm", expected == Some(params.len()) && num_layers != 0)?;
    let params = params
        .iter()
        .map(|p| p.data("lstm"))
        .collect::<Result<Vec<_>>>()?;
    let hidden = params[1].dims().last().copied().unwrap_or(0);
    let batch = data.dims()[1];
    let states = |given: Option<&Tensor>| -> Result<Data> {
        let shape = (num_layers * directions, batch, hidden);
        let Some(given) = given else {
            return room::zeros(
                "lstm",
                &[shape.0, shape.1, shape.2],
                data.dtype(),
                data.device(),
            )
            .fx();
        };
        let given = given.data("lstm")?;
        let given = if batched {
            given.clone()
        } else {
            given.unsqueeze(1).fx()?
        };
        require("lstm", given.dims() == [shape.0, shape.1, shape.2])?;
        Ok(given)
    };
    let (h_0, c_0) = (states(h_0)?, states(c_0)?);
    let mut x = data;
    let (mut last_h, mut last_c) = (Vec::new(), Vec::new());
    for at in 0..num_layers {
        if at > 0 && train && dropout_p > 0.0 {
            x = dropout(&x.into(), dropout_p, true)?.data("lstm")?.clone();
        }
        let mut sides = Vec::with_capacity(directions);
        for direction in 0..directions {
            let index = at * directions + direction;
            let own = &params[index * each..(index + 1) * each];
            let weights = Weights {
                of_input: own[0],
                of_hidden: own[1],
                bias: has_biases.then(|| (own[2], own[3])),
            };
            let (h, c) = (h_0.get(index).fx()?, c_0.get(index).fx()?);
            let (states, h, c) = layer(&x, weights, &h, &c, direction == 1).fx()?;
            sides.push(states);
            last_h.push(h);
            last_c.push(c);
        }
        x = Data::cat(&sides, 2).fx()?;
    }
    let finish = |states: candle_core::Result<Data>, batch_dim: usize| -> Result<Tensor> {
        let states = states.fx()?;
        let states = if batched {
            states
        } else {
            states.squeeze(batch_dim).fx()?
        };
        Ok(states.into())
    };
    let output = if batched && batch_first {
        x.transpose(0, 1).and_then(|x| x.contiguous()).fx()?.into()
    } else {
        finish(Ok(x), 1)?
    };
    Ok((
        output,
        finish(Data::stack(&last_h, 0), 1)?,
        finish(Data::stack(&last_c, 0), 1)?,
    ))
}
