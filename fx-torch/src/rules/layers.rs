//! Operators of layers: products with weights, convolutions, norms, softmax, dropout, recurrent layers.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, rank, same, same_function};
use crate::call::Call;

/// Dropout: in evaluation the very tensor.
fn dropout(call: &Call<'_>) -> Result<Value> {
    let train: bool = call.or("train", false)?;
    if !train {
        return Ok(call.at(0)?.clone());
    }
    let p: f64 = call.of("p")?;
    function!(ops::dropout).call_as(args![call.at(0)?.clone(), p = p, training = true])
}

fn batch_norm(call: &Call<'_>) -> Result<Value> {
    if call.or("training", false)? {
        return Err(Error::msg(
            "batch norm in training writes its statistics, which is not read yet: export in evaluation",
        ));
    }
    let of = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let eps: f64 = call.or("eps", 1e-5)?;
    function!(ops::batch_norm).call_as(args![
        call.at(0)?.clone(),
        running_mean = of("running_mean"),
        running_var = of("running_var"),
        weight = of("weight"),
        bias = of("bias"),
        eps = eps
    ])
}

/// A convolution whose padding has a name.
fn padded_by_name(call: &Call<'_>) -> Result<Option<Vec<i64>>> {
    let Some(Value::Str(mode)) = call.get("padding") else {
        return Ok(None);
    };
    let weight: Tensor = call.of("weight")?;
    let dims = weight.dims()?;
    let kernel = &dims[2..];
    let dilation: Vec<i64> = call.or("dilation", vec![1; kernel.len()])?;
    match &**mode {
        "valid" => Ok(Some(vec![0; kernel.len()])),
        "same" => {
            let total = kernel
                .iter()
                .zip(dilation.iter().cycle())
                .map(|(size, by)| (*size as i64 - 1) * by);
            let total: Vec<i64> = total.collect();
            match total.iter().all(|total| total % 2 == 0) {
                true => Ok(Some(total.iter().map(|total| total / 2).collect())),
                false => Err(Error::msg(
                    "`same` padding of an even window, which is not the same on both ends",
                )),
            }
        }
        other => Err(Error::msg(format_args!("the padding `{other}`"))),
    }
}

macro_rules! conv {
    ($name:ident, $function:path) => {
        fn $name(call: &Call<'_>) -> Result<Value> {
            let mut args = call.args.clone();
            if let Some(padding) = padded_by_name(call)? {
                let list = padding.into_iter().map(Value::Int).collect();
                for (name, value) in &mut args {
                    if *name == "padding" {
                        *value = Value::List(std::mem::take(&mut Some(list)).unwrap_or_default());
                        break;
                    }
                }
            }
            same_function(function!($function), &[], &call.with_args(args))
        }
    };
}
conv!(conv1d, ops::conv1d);
conv!(conv2d, ops::conv2d);
conv!(conv3d, ops::conv3d);

/// The weight of a norm over all dims but one, times its length.
fn weight_norm(call: &Call<'_>) -> Result<Value> {
    let (v, g, dim): (Tensor, Tensor, i64) = (call.of("v")?, call.of("g")?, call.or("dim", 0)?);
    let rank = rank(&v)?;
    let kept = dim.rem_euclid(rank);
    let others: Vec<i64> = (0..rank).filter(|at| *at != kept).collect();
    let norm = ops::vector_norm(&v, 2.0, others, true)?;
    Ok(Value::object((v * (g / norm)?)?))
}

/// A recurrent layer with its states in a list.
fn states(call: &Call<'_>, name: &str) -> Result<Vec<Value>> {
    Ok(call.items(name)?.to_vec())
}

fn lstm(call: &Call<'_>) -> Result<Value> {
    let states = states(call, "hx")?;
    let [h, c] = states.as_slice() else {
        return Err(Error::msg("an LSTM has two states"));
    };
    let of = |name: &str| call.value(name).cloned();
    let (output, h, c): (Tensor, Tensor, Tensor) = function!(ops::lstm).call_as(args![
        call.at(0)?.clone(),
        h.clone(),
        c.clone(),
        of("params")?,
        of("has_biases")?,
        of("num_layers")?,
        of("dropout")?,
        of("train")?,
        of("bidirectional")?,
        of("batch_first")?
    ])?;
    Ok(Value::Tuple([output, h, c].map(Value::object).into()))
}

macro_rules! recurrent {
    ($name:ident, $function:path) => {
        fn $name(call: &Call<'_>) -> Result<Value> {
            let of = |name: &str| call.value(name).cloned();
            let (output, h): (Tensor, Tensor) = function!($function).call_as(args![
                call.at(0)?.clone(),
                of("hx")?,
                of("params")?,
                of("has_biases")?,
                of("num_layers")?,
                of("dropout")?,
                of("train")?,
                of("bidirectional")?,
                of("batch_first")?
            ])?;
            Ok(Value::Tuple([output, h].map(Value::object).into()))
        }
    };
}
recurrent!(gru, ops::gru);
recurrent!(rnn_tanh, ops::rnn_tanh);
recurrent!(rnn_relu, ops::rnn_relu);

fn einsum(call: &Call<'_>) -> Result<Value> {
    function!(ops::einsum).call_as((
        call.value("equation")?.clone(),
        call.value("tensors")?.clone(),
    ))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.dropout" => dropout,
    "aten.feature_dropout" => dropout,
    "aten.batch_norm" => batch_norm,
    "aten.conv1d" => conv1d,
    "aten.conv2d" => conv2d,
    "aten.conv3d" => conv3d,
    "aten._weight_norm" => weight_norm,
    "aten.lstm" => lstm,
    "aten.gru" => gru,
    "aten.rnn_tanh" => rnn_tanh,
    "aten.rnn_relu" => rnn_relu,
    "aten.einsum" => einsum,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.conv_transpose1d" => ops::conv_transpose1d,
    "aten.conv_transpose2d" => ops::conv_transpose2d,
    "aten.conv_transpose3d" => ops::conv_transpose3d,
    "aten.glu" => ops::glu,
    "aten.group_norm" => ops::group_norm,
    "aten.instance_norm" => ops::instance_norm,
    "aten.layer_norm" => ops::layer_norm,
    "aten.linear" => ops::linear,
    "aten.log_softmax" => ops::log_softmax,
    "aten.rms_norm" => ops::rms_norm,
    "aten.softmax" => ops::softmax,
    "aten._softmax" => ops::softmax,
    "aten._log_softmax" => ops::log_softmax,
};
