//! Operators of layers: products with weights, convolutions, norms, softmax, dropout, recurrent layers.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, rank, same, same_function};
use crate::call::Call;

/// Dropout: in evaluation the very tensor.
fn dropout(call: &Call<'_>) -> Result<Value> {
    let train: bool = call.or("train", false)?;
    if !train || call.or("p", 0.5)? == 0.0 {
        return Ok(call.at(0)?.clone());
    }
    let p: f64 = call.of("p")?;
    function!(ops::dropout).call_as(args![call.at(0)?.clone(), p = p, training = true])
}

fn batch_norm(call: &Call<'_>) -> Result<Value> {
    // Without statistics, it is by those of the batch.
    if call.or("training", false)? && call.get("running_mean").is_some() {
        return Err(Error::msg(
            "a branch or a loop writes the statistics of a batch norm: export it in evaluation",
        ));
    }
    same_function(function!(ops::batch_norm), &[], call)
}

/// How far a convolution whose padding has a name is padded, before and behind each dim.
fn padded_by_name(call: &Call<'_>) -> Result<Option<Vec<[i64; 2]>>> {
    let Some(Value::Str(mode)) = call.get("padding") else {
        return Ok(None);
    };
    let weight: Tensor = call.of("weight")?;
    let dims = weight.dims()?;
    let kernel = &dims[2..];
    let dilation: Vec<i64> = call.or("dilation", vec![1; kernel.len()])?;
    let each = kernel.iter().zip(dilation.iter().cycle());
    let total = each.map(|(size, by)| (*size as i64 - 1) * by);
    match &**mode {
        "valid" => Ok(Some(vec![[0, 0]; kernel.len()])),
        // What is odd is behind.
        "same" => Ok(Some(total.map(|all| [all / 2, all - all / 2]).collect())),
        other => Err(Error::msg(format_args!("the padding `{other}`"))),
    }
}

fn convolution(function: Function, call: &Call<'_>) -> Result<Value> {
    let Some(padding) = padded_by_name(call)? else {
        return same_function(function, &[], call);
    };
    let mut args = call.args.clone();
    let more: Vec<i64> = padding
        .iter()
        .rev()
        .flat_map(|[before, behind]| [0, behind - before])
        .collect();
    if more.iter().any(|more| *more != 0) {
        let own: Tensor = function!(ops::pad).call_as((call.at(0)?.clone(), more))?;
        if let Some((_, first)) = args.first_mut() {
            *first = Value::object(own);
        }
    }
    for (_, value) in args.iter_mut().filter(|(name, _)| *name == "padding") {
        *value = Value::List(padding.iter().map(|[at, _]| Value::Int(*at)).collect());
    }
    same_function(function, &[], &call.with_args(args))
}

/// The weight of a norm over all dims but one, times its length.
fn weight_norm(call: &Call<'_>) -> Result<Value> {
    let (v, g, dim): (Tensor, Tensor, i64) = (call.of("v")?, call.of("g")?, call.or("dim", 0)?);
    let rank = rank(&v)?;
    let kept = dim.rem_euclid(rank);
    let others: Vec<i64> = (0..rank).filter(|at| *at != kept).collect();
    let norm = ops::vector_norm(&v, 2.0, others, true)?;
    Ok(Value::object((v * (g / norm)?)?))
}

/// An LSTM, whose two states come in a list.
fn lstm(function: Function, states: [&'static str; 2], call: &Call<'_>) -> Result<Value> {
    let [h, c] = call.items("hx")? else {
        return Err(Error::msg("an LSTM has two states"));
    };
    let mut args = call.args.clone();
    args.retain(|(name, _)| *name != "hx");
    args.extend(states.into_iter().zip([h.clone(), c.clone()]));
    same_function(function, &[("dropout", "dropout_p")], &call.with_args(args))
}

/// A softmax along one dim, of halves in single precision where that is asked for.
fn softmax(function: Function, call: &Call<'_>) -> Result<Value> {
    let own = match call.or("half_to_float", false)? {
        true => Value::object(ops::to_dtype(&call.own()?, DType::F32)?),
        false => call.at(0)?.clone(),
    };
    function.call_as((own, call.value("dim")?.clone()))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten._log_softmax" => |call| softmax(function!(ops::log_softmax), call),
    "aten._softmax" => |call| softmax(function!(ops::softmax), call),
    "aten.dropout" => dropout,
    "aten.feature_dropout" => dropout,
    "aten.batch_norm" => batch_norm,
    "aten.conv1d" => |call| convolution(function!(ops::conv1d), call),
    "aten.conv2d" => |call| convolution(function!(ops::conv2d), call),
    "aten.conv3d" => |call| convolution(function!(ops::conv3d), call),
    "aten._weight_norm" => weight_norm,
    "aten.lstm" => |call| lstm(function!(ops::lstm), ["h_0", "c_0"], call),
    "aten.lstm_cell" => |call| lstm(function!(ops::lstm_cell), ["h", "c"], call),
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.conv_transpose1d" => ops::conv_transpose1d,
    "aten.conv_transpose2d" => ops::conv_transpose2d,
    "aten.conv_transpose3d" => ops::conv_transpose3d,
    "aten.einsum" => ops::einsum["tensors" => "operands"],
    "aten.glu" => ops::glu,
    "aten.group_norm" => ops::group_norm,
    "aten.gru_cell" => ops::gru_cell,
    "aten.gru" => ops::gru["hx" => "h_0", "dropout" => "dropout_p"],
    "aten.instance_norm" => ops::instance_norm,
    "aten.layer_norm" => ops::layer_norm,
    "aten.linear" => ops::linear,
    "aten.log_softmax" => ops::log_softmax,
    "aten.rms_norm" => ops::rms_norm,
    "aten.rnn_relu_cell" => ops::rnn_relu_cell,
    "aten.rnn_tanh_cell" => ops::rnn_tanh_cell,
    "aten.rnn_relu" => ops::rnn_relu["hx" => "h_0", "dropout" => "dropout_p"],
    "aten.rnn_tanh" => ops::rnn_tanh["hx" => "h_0", "dropout" => "dropout_p"],
    "aten.softmax" => ops::softmax,
};
