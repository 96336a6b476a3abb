//! Recurrent networks with one state over sequences, and single steps of all of them.

use super::cost;
use crate::op;
use std::borrow::Borrow;

use candle_core::Tensor as Data;
use fx_core::Result;

use super::activation::dropout;
use crate::error::{Fx, require, unfit};
use crate::kernels::lstm::{Weights, layer as lstm_layer};
use crate::kernels::recurrent::{Unit, layer};
use crate::room;
use crate::tensor::Tensor;

/// How a network is put together.
#[derive(Clone, Copy)]
struct Plan {
    has_biases: bool,
    num_layers: usize,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
}

fn network(
    op: &str,
    unit: Unit,
    x: &Tensor,
    h_0: Option<&Tensor>,
    params: &[Tensor],
    plan: Plan,
) -> Result<(Tensor, Tensor)> {
    let data = x.data(op)?;
    let (batched, mut x) = match data.rank() {
        3 if plan.batch_first => (true, data.transpose(0, 1).fx()?),
        3 => (true, data.clone()),
        2 => (false, data.unsqueeze(1).fx()?),
        _ => return Err(unfit(op)),
    };
    let directions = if plan.bidirectional { 2 } else { 1 };
    let each = if plan.has_biases { 4 } else { 2 };
    let count = plan.num_layers.checked_mul(directions * each);
    require(op, count == Some(params.len()) && plan.num_layers != 0)?;
    let params = params
        .iter()
        .map(|p| p.data(op))
        .collect::<Result<Vec<_>>>()?;
    let hidden = params[1].dims().last().copied().unwrap_or(0);
    let shape = [plan.num_layers * directions, x.dims()[1], hidden];
    let first = match h_0 {
        None => {
            room::of(op, &shape, x.dtype()).fx()?;
            Data::zeros(shape.as_slice(), x.dtype(), x.device()).fx()?
        }
        Some(given) => {
            let given = given.data(op)?;
            let given = match batched {
                true => given.clone(),
                false => given.unsqueeze(1).fx()?,
            };
            require(op, given.dims() == shape)?;
            given
        }
    };
    let mut last = Vec::new();
    for at in 0..plan.num_layers {
        if at > 0 && plan.train && plan.dropout > 0.0 {
            x = dropout(&x.into(), plan.dropout, true)?.data(op)?.clone();
        }
        let mut sides = Vec::with_capacity(directions);
        for direction in 0..directions {
            let index = at * directions + direction;
            let own = &params[index * each..(index + 1) * each];
            let weights = Weights {
                of_input: own[0],
                of_hidden: own[1],
                bias: plan.has_biases.then(|| (own[2], own[3])),
            };
            let h = first.get(index).fx()?;
            let (states, h) = layer(op, unit, &x, weights, &h, direction == 1).fx()?;
            sides.push(states);
            last.push(h);
        }
        x = Data::cat(&sides, 2).fx()?;
    }
    let last = Data::stack(&last, 0).fx()?;
    if !batched {
        return Ok((x.squeeze(1).fx()?.into(), last.squeeze(1).fx()?.into()));
    }
    let y = match plan.batch_first {
        true => x.transpose(0, 1).and_then(|x| x.contiguous()).fx()?,
        false => x,
    };
    Ok((y.into(), last.into()))
}

/// Gated recurrent units over `x` `[L, N, in]`, `[N, L, in]` with `batch_first`, or `[L, in]`.
///
/// `params` are, for each layer and each direction in it, the weights of the input
/// `[3 · hidden, in]` and of the hidden state `[3 · hidden, hidden]` and, with `has_biases`, their
/// two biases `[3 · hidden]`; gates are in the order reset, update, new. The states `h_0`
/// `[layers · directions, N, hidden]` are zeros by default. Returns the last layer's hidden states
/// (of both directions side by side), and the last states of all layers.
///
/// # Errors
/// Returns an error if a shape or the number of parameters does not fit.
#[op(member, cost = cost::lstm, random = train, path = "fx_nn::ops::gru")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn gru(
    x: &Tensor,
    h_0: Option<&Tensor>,
    params: &[impl Borrow<Tensor>],
    has_biases: bool,
    num_layers: usize,
    dropout_p: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<(Tensor, Tensor)> {
    let plan = Plan {
        has_biases,
        num_layers,
        dropout: dropout_p,
        train,
        bidirectional,
        batch_first,
    };
    network("gru", Unit::Gru, x, h_0, params, plan)
}

/// A plain recurrent network with the hyperbolic tangent, otherwise as [`gru`]: its weights have `hidden` rows.
///
/// # Errors
/// Returns an error if a shape or the number of parameters does not fit.
#[op(member, cost = cost::lstm, random = train, path = "fx_nn::ops::rnn_tanh")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn rnn_tanh(
    x: &Tensor,
    h_0: Option<&Tensor>,
    params: &[impl Borrow<Tensor>],
    has_biases: bool,
    num_layers: usize,
    dropout_p: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<(Tensor, Tensor)> {
    let plan = Plan {
        has_biases,
        num_layers,
        dropout: dropout_p,
        train,
        bidirectional,
        batch_first,
    };
    network("rnn_tanh", Unit::Tanh, x, h_0, params, plan)
}

/// A plain recurrent network with max(x, 0), otherwise as [`gru`]: its weights have `hidden` rows.
///
/// # Errors
/// Returns an error if a shape or the number of parameters does not fit.
#[op(member, cost = cost::lstm, random = train, path = "fx_nn::ops::rnn_relu")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn rnn_relu(
    x: &Tensor,
    h_0: Option<&Tensor>,
    params: &[impl Borrow<Tensor>],
    has_biases: bool,
    num_layers: usize,
    dropout_p: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<(Tensor, Tensor)> {
    let plan = Plan {
        has_biases,
        num_layers,
        dropout: dropout_p,
        train,
        bidirectional,
        batch_first,
    };
    network("rnn_relu", Unit::Relu, x, h_0, params, plan)
}

/// The biases of a step, which come together.
fn biases<'a>(
    op: &str,
    b_ih: Option<&'a Tensor>,
    b_hh: Option<&'a Tensor>,
) -> Result<Option<(&'a Data, &'a Data)>> {
    match (b_ih, b_hh) {
        (Some(a), Some(b)) => Ok(Some((a.data(op)?, b.data(op)?))),
        (None, None) => Ok(None),
        _ => Err(unfit(op)),
    }
}

/// An input and a state as batches, zeros where no state is given, and whether they were single vectors.
fn batch(op: &str, x: &Tensor, hx: Option<&Tensor>, w_hh: &Tensor) -> Result<(Data, Data, bool)> {
    let data = x.data(op)?;
    let single = data.rank() == 1;
    let rows = |t: &Data| {
        if single {
            t.unsqueeze(0)
        } else {
            Ok(t.clone())
        }
    };
    let data = rows(data).fx()?;
    require(op, data.rank() == 2)?;
    let h = match hx {
        Some(hx) => rows(hx.data(op)?).fx()?,
        None => {
            let hidden = w_hh.dims()?.last().copied().unwrap_or(0);
            let shape = [data.dims()[0], hidden];
            room::of(op, &shape, data.dtype()).fx()?;
            Data::zeros(shape.as_slice(), data.dtype(), data.device()).fx()?
        }
    };
    Ok((data.unsqueeze(0).fx()?, h, single))
}

/// A state as it was given: of a batch, or of a single vector.
fn given(h: Data, single: bool) -> Result<Tensor> {
    let h = if single { h.squeeze(0).fx()? } else { h };
    Ok(Tensor::made(h))
}

/// One step of one layer: a sequence of one.
fn step(
    op: &str,
    unit: Unit,
    [x, w_ih, w_hh]: [&Tensor; 3],
    hx: Option<&Tensor>,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<Tensor> {
    let (row, h, single) = batch(op, x, hx, w_hh)?;
    let weights = Weights {
        of_input: w_ih.data(op)?,
        of_hidden: w_hh.data(op)?,
        bias: biases(op, b_ih, b_hh)?,
    };
    let (_, h) = layer(op, unit, &row, weights, &h, false).fx()?;
    given(h, single)
}

/// One step of [`gru`]: the next state `[N, hidden]` of `x` `[N, in]` and the state `hx`, zeros where
/// none is given; both without N too.
///
/// # Errors
/// Returns an error if a shape does not fit.
#[op(member, path = "fx_nn::ops::gru_cell")]
pub fn gru_cell(
    x: &Tensor,
    hx: Option<&Tensor>,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<Tensor> {
    step("gru_cell", Unit::Gru, [x, w_ih, w_hh], hx, b_ih, b_hh)
}

/// One step of [`rnn_tanh`]: the next state `[N, hidden]` of `x` `[N, in]` and the state `hx`, zeros where
/// none is given; both without N too.
///
/// # Errors
/// Returns an error if a shape does not fit.
#[op(member, path = "fx_nn::ops::rnn_tanh_cell")]
pub fn rnn_tanh_cell(
    x: &Tensor,
    hx: Option<&Tensor>,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<Tensor> {
    step("rnn_tanh_cell", Unit::Tanh, [x, w_ih, w_hh], hx, b_ih, b_hh)
}

/// One step of [`rnn_relu`]: the next state `[N, hidden]` of `x` `[N, in]` and the state `hx`, zeros where
/// none is given; both without N too.
///
/// # Errors
/// Returns an error if a shape does not fit.
#[op(member, path = "fx_nn::ops::rnn_relu_cell")]
pub fn rnn_relu_cell(
    x: &Tensor,
    hx: Option<&Tensor>,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<Tensor> {
    step("rnn_relu_cell", Unit::Relu, [x, w_ih, w_hh], hx, b_ih, b_hh)
}

/// One step of [`lstm`](super::lstm): the next hidden and cell states `[N, hidden]` of `x` `[N, in]` and the states
/// `h` and `c`, zeros where none are given; all without N too.
///
/// # Errors
/// Returns an error if a shape does not fit.
#[op(member, path = "fx_nn::ops::lstm_cell")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn lstm_cell(
    x: &Tensor,
    h: Option<&Tensor>,
    c: Option<&Tensor>,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let op = "lstm_cell";
    let (row, h, single) = batch(op, x, h, w_hh)?;
    let (_, c, _) = batch(op, x, c, w_hh)?;
    let weights = Weights {
        of_input: w_ih.data(op)?,
        of_hidden: w_hh.data(op)?,
        bias: biases(op, b_ih, b_hh)?,
    };
    let (_, h, c) = lstm_layer(&row, weights, &h, &c, false).fx()?;
    Ok((given(h, single)?, given(c, single)?))
}
