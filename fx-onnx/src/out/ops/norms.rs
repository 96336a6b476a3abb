//! Norms, softmax, and losses of classes.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::arithmetic::exact;
use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    softmax => |cx, call| along(cx, call, "Softmax"),
    log_softmax => |cx, call| along(cx, call, "LogSoftmax"),
    batch_norm => |cx, call| {
        let x = call.tensor("x")?;
        let Some(channels) = x.shape.get(1).cloned() else {
            return Err(Error::msg("a batch norm of fewer than two dims"));
        };
        let or = |cx: &mut Cx, name: &str, number: f64| -> Result<Name> {
            match call.optional_tensor(name)? {
                Some(of) => Ok(of.name),
                None => filled(cx, &channels, number, x.dtype),
            }
        };
        let (weight, bias) = (or(cx, "weight", 1.0)?, or(cx, "bias", 0.0)?);
        let (training, momentum, eps) = (call.flag("training")?, call.float("momentum")?, call.float("eps")?);
        let (mean, var) = (call.optional_tensor("running_mean")?, call.optional_tensor("running_var")?);
        if training {
            if mean.is_some() && momentum != 0.0 {
                cx.warn("the running statistics that training moves are no outputs of the file");
            }
            // The statistics of the batch: engines that compute both may write the running ones over the weights.
            let name = normalized(cx, &x, eps)?;
            let mut shape = vec![Dim::from(1); x.rank() - 1];
            shape[0] = channels.clone();
            let along = |cx: &mut Cx, name: Name| {
                let of = Operand { name, dtype: x.dtype, shape: vec![channels.clone()] };
                cx.reshape(&of, &shape)
            };
            let (weight, bias) = (along(cx, weight)?, along(cx, bias)?);
            let scaled = cx.op("Mul", &[&name, &weight]);
            let name = cx.op("Add", &[&scaled, &bias]);
            return call.given(name);
        }
        let (Some(mean), Some(var)) = (mean, var) else {
            return Err(Error::msg("a batch norm without running statistics: call it in training"));
        };
        let node = cx.node("BatchNormalization").input(&x.name).input(&weight).input(&bias);
        let name = node.input(&mean.name).input(&var.name).float("epsilon", eps).output();
        call.given(name)
    },
    instance_norm => |cx, call| {
        let x = call.tensor("x")?;
        if !call.flag("use_input_stats")? {
            return Err(Error::not_in_format("an instance norm by running statistics: use `batch_norm`, which is the same then"));
        }
        let (mean, var) = (call.optional_tensor("running_mean")?, call.optional_tensor("running_var")?);
        let momentum = call.float("momentum")?;
        if (mean.is_some() || var.is_some()) && momentum != 0.0 {
            cx.warn("the running statistics that training moves are no outputs of the file");
        }
        let Some(channels) = x.shape.get(1).cloned() else {
            return Err(Error::msg("an instance norm of fewer than two dims"));
        };
        let or = |cx: &mut Cx, name: &str, number: f64| -> Result<Name> {
            match call.optional_tensor(name)? {
                Some(of) => Ok(of.name),
                None => filled(cx, &channels, number, x.dtype),
            }
        };
        let (weight, bias) = (or(cx, "weight", 1.0)?, or(cx, "bias", 0.0)?);
        let carried = cx.carried("InstanceNormalization", &x)?;
        let (weight, bias) = (
            cx.given_as(weight, x.dtype, carried.dtype)?,
            cx.given_as(bias, x.dtype, carried.dtype)?,
        );
        let node = cx.node("InstanceNormalization").input(&carried.name).input(&weight).input(&bias);
        let name = node.float("epsilon", call.float("eps")?).output();
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        call.given(name)
    },
    layer_norm => |cx, call| {
        let x = call.tensor("x")?;
        let dims = call.ints("normalized_shape")?;
        if dims.contains(&0) {
            call.needs_no(&["weight", "bias", "eps"]);
            return Ok(Val::Tensor(x));
        }
        let weight = match call.optional_tensor("weight")? {
            Some(of) => of.name,
            None => {
                let count: i64 = dims.iter().product();
                let one = filled(cx, &Dim::from(count), 1.0, x.dtype)?;
                let shape: Vec<Dim> = dims.iter().map(|dim| Dim::from(*dim)).collect();
                cx.reshape(&Operand { name: one, dtype: x.dtype, shape: vec![Dim::from(count)] }, &shape)?
            }
        };
        let bias = call.optional_tensor("bias")?.map(|of| of.name);
        let node = cx.node("LayerNormalization").input(&x.name).input(&weight).optional(bias.as_ref());
        let name = node.int("axis", -(dims.len() as i64)).float("epsilon", call.float("eps")?).output();
        call.given(name)
    },
    rms_norm => |cx, call| {
        let x = call.tensor("x")?;
        let dims = call.ints("normalized_shape")?;
        let eps = call.float("eps")?;
        let weight = call.optional_tensor("weight")?;
        if cx.opset() >= 23 && let Some(weight) = &weight {
            let node = cx.node("RMSNormalization").input(&x.name).input(&weight.name);
            let name = node.int("axis", -(dims.len() as i64)).float("epsilon", eps).output();
            return call.given(name);
        }
        let wide = exact(cx, &x)?;
        let axes: Vec<i64> = (1..=dims.len() as i64).map(|at| -at).collect();
        let axes = cx.i64s(&axes);
        let square = cx.op("Mul", &[&wide.name, &wide.name]);
        let mean = cx.node("ReduceMean").input(&square).input(&axes).output();
        let eps = cx.number(eps, wide.dtype);
        let sum = cx.op("Add", &[&mean, &eps]);
        let root = cx.op("Sqrt", &[&sum]);
        let name = cx.op("Div", &[&wide.name, &root]);
        let scaled = Operand { name, ..wide };
        let mut name = cx.cast(&scaled, x.dtype)?.name;
        if let Some(weight) = weight {
            name = cx.op("Mul", &[&name, &weight.name]);
        }
        call.given(name)
    },
    group_norm => |cx, call| {
        let x = call.tensor("x")?;
        let groups = call.int("num_groups")?;
        let eps = call.float("eps")?;
        let Some(channels) = x.shape.get(1).cloned() else {
            return Err(Error::msg("a group norm of fewer than two dims"));
        };
        if x.shape.iter().any(|size| *size == 0) {
            call.needs_no(&["weight", "bias"]);
            return Ok(Val::Tensor(x));
        }
        let (weight, bias) = (call.optional_tensor("weight")?, call.optional_tensor("bias")?);
        if cx.opset() >= 21 {
            let weight = match &weight { Some(of) => of.name.clone(), None => filled(cx, &channels, 1.0, x.dtype)? };
            let bias = match &bias { Some(of) => of.name.clone(), None => filled(cx, &channels, 0.0, x.dtype)? };
            let node = cx.node("GroupNormalization").input(&x.name).input(&weight).input(&bias);
            let name = node.int("num_groups", groups).float("epsilon", eps).output();
            return call.given(name);
        }
        // Before, the weights were those of groups: the groups are channels of an instance norm.
        let flat = cx.i64s(&[0, groups, -1]);
        let grouped = cx.op("Reshape", &[&x.name, &flat]);
        let carried = cx.carried("InstanceNormalization", &Operand { name: grouped, ..x.clone() })?;
        let grouped = carried.name;
        let (one, zero) = (filled(cx, &Dim::from(groups), 1.0, carried.dtype)?, filled(cx, &Dim::from(groups), 0.0, carried.dtype)?);
        let node = cx.node("InstanceNormalization").input(&grouped).input(&one).input(&zero);
        let normal = node.float("epsilon", eps).output();
        let normal = cx.given_as(normal, carried.dtype, x.dtype)?;
        let back = Operand { name: normal, dtype: x.dtype, shape: vec![x.shape[0].clone(), Dim::from(groups), Dim::from(-1)] };
        let mut name = cx.reshape(&back, &x.shape)?;
        let mut shape = vec![Dim::from(1); x.rank() - 1];
        shape[0] = channels;
        if let Some(weight) = weight {
            let weight = cx.reshape(&weight, &shape)?;
            name = cx.op("Mul", &[&name, &weight]);
        }
        if let Some(bias) = bias {
            let bias = cx.reshape(&bias, &shape)?;
            name = cx.op("Add", &[&name, &bias]);
        }
        call.given(name)
    },
    local_response_norm => |cx, call| {
        let (x, size) = (call.tensor("x")?, call.int("size")?);
        if size % 2 == 0 {
            return Err(Error::not_in_format("a local response norm over an even number of channels: ONNX centres it at another channel"));
        }
        let node = cx.node("LRN").input(&x.name).int("size", size).float("alpha", call.float("alpha")?);
        let name = node.float("beta", call.float("beta")?).float("bias", call.float("k")?).output();
        call.given(name)
    },
    nll_loss => |cx, call| classes(cx, call, "NegativeLogLikelihoodLoss"),
    cross_entropy => |cx, call| {
        if call.float("label_smoothing")? != 0.0 {
            return Err(Error::not_in_format("ONNX's loss has no label smoothing: write it by `log_softmax`"));
        }
        if call.tensor("target")?.dtype.is_floating_point() {
            return Err(Error::msg("ONNX's loss takes classes, and no probabilities: write it by `log_softmax`"));
        }
        classes(cx, call, "SoftmaxCrossEntropyLoss")
    },
}

/// What is left of each channel without its mean, over its deviation; in `float32` where `x` is of a half type.
fn normalized(cx: &mut Cx, x: &Operand, eps: f64) -> Result<Name> {
    let wide = exact(cx, x)?;
    let axes: Vec<i64> = (0..x.rank() as i64).filter(|dim| *dim != 1).collect();
    let axes = cx.i64s(&axes);
    let mean = cx.op("ReduceMean", &[&wide.name, &axes]);
    let apart = cx.op("Sub", &[&wide.name, &mean]);
    let square = cx.op("Mul", &[&apart, &apart]);
    let variance = cx.op("ReduceMean", &[&square, &axes]);
    let eps = cx.number(eps, wide.dtype);
    let raised = cx.op("Add", &[&variance, &eps]);
    let deviation = cx.op("Sqrt", &[&raised]);
    let name = cx.op("Div", &[&apart, &deviation]);
    cx.given_as(name, wide.dtype, x.dtype)
}

fn classes(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let (own, mut target) = (call.tensor("x")?, call.tensor("target")?);
    let single = own.rank() == 1;
    let reduction = call.text("reduction")?;
    if own.shape[usize::from(!single)].as_number() == Some(0) {
        // Every class that there may be is ignored.
        call.needs_no(&["ignore_index", "weight"]);
        let none = if reduction == "mean" { f64::NAN } else { 0.0 };
        let name = cx.filled(&call.result()?.shape, none, own.dtype)?;
        return call.given(name);
    }
    let mut x = cx.carried(op, &own)?;
    let weight = call.optional_tensor("weight")?;
    let weight = weight.map(|of| cx.cast(&of, x.dtype)).transpose()?;
    if single {
        let zero = cx.i64s(&[0]);
        x.name = cx.op("Unsqueeze", &[&x.name, &zero]);
        target.name = cx.op("Unsqueeze", &[&target.name, &zero]);
    }
    let node = cx
        .node(op)
        .input(&x.name)
        .input(&target.name)
        .optional(weight.as_ref().map(|w| &w.name));
    let mut name = node
        .int("ignore_index", call.int("ignore_index")?)
        .text("reduction", &reduction)
        .output();
    if single && reduction == "none" {
        let zero = cx.i64s(&[0]);
        name = cx.op("Squeeze", &[&name, &zero]);
    }
    let name = cx.given_as(name, x.dtype, own.dtype)?;
    call.given(name)
}

fn along(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = cx.widened(call, "x")?;
    let axis = call.place("dim", x.rank())?;
    if x.rank() == 0 {
        let zero = cx.i64s(&[0]);
        let wide = cx.op("Unsqueeze", &[&x.name, &zero]);
        let wide = cx.node(op).input(&wide).int("axis", 0).output();
        let name = cx.op("Squeeze", &[&wide, &zero]);
        return call.given(name);
    }
    let axis = if axis + 1 == x.rank() as i64 {
        -1
    } else {
        axis
    };
    let name = cx.node(op).input(&x.name).int("axis", axis).output();
    call.given(name)
}

/// One number for each channel.
fn filled(cx: &mut Cx, count: &Dim, number: f64, dtype: DType) -> Result<Name> {
    match count.as_known() {
        Some(count) => Ok(cx.numbers(&vec![number; count], dtype)),
        None => cx.filled(std::slice::from_ref(count), number, dtype),
    }
}
