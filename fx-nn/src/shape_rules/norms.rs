//! Normalization: the shape of the input, which the parameters fit.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, are_equal, at_least, count, divided, like, require, require_rank, rules, truth,
    wrong, x,
};
use crate::ops;

rules! {
    batch_norm => ops::batch_norm;
    instance_norm => ops::instance_norm;
    group_norm => ops::group_norm;
    |call| of_last_dims(call, &["weight", "bias"]) => ops::layer_norm;
    |call| of_last_dims(call, &["weight"]) => ops::rms_norm;
    local_response_norm => ops::local_response_norm;
    normalize => ops::normalize;
}

/// Returns an error unless parameters have a shape.
fn require_shape(call: &mut RuleCall<'_>, shape: &[Dim], params: &[&str]) -> Result<()> {
    for param in params {
        if let Some(meta) = call.optional_tensor(param)?
            && !are_equal(call, &meta.shape, shape)?
        {
            return Err(wrong(
                call,
                format_args!(
                    "`{param}` has the shape {:?}, and not {shape:?}",
                    meta.shape
                ),
            ));
        }
    }
    Ok(())
}

/// Returns an error unless all parameters have one type: that of the input, or `float32` beside
/// half precision.
fn require_types(call: &RuleCall<'_>, x: &TensorMeta, params: &[&str]) -> Result<()> {
    let mut first = None;
    for param in params {
        let Some(dtype) = call.optional_tensor(param)?.and_then(|meta| meta.dtype) else {
            continue;
        };
        let first = *first.get_or_insert(dtype);
        let fits = match x.dtype {
            Some(DType::F16 | DType::BF16) => Some(dtype) == x.dtype || dtype == DType::F32,
            own => own.is_none_or(|own| own == dtype),
        };
        if dtype != first || !fits {
            return Err(wrong(
                call,
                format_args!(
                    "`{param}` of {dtype} is beside another type: convert one with `to_dtype`"
                ),
            ));
        }
    }
    Ok(())
}

/// The statistics, weight and bias have a number per channel.
fn batch_norm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let training = truth(call, "training")?;
    let params = ["running_mean", "running_var", "weight", "bias"];
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    require_rank(call, x, 2..)?;
    let channels = x.shape.get(1).cloned();
    require_shape(call, channels.as_slice(), &params)?;
    require_types(call, x, &params)?;
    let mean = call.optional_tensor("running_mean")?;
    let var = call.optional_tensor("running_var")?;
    if mean.is_some() != var.is_some() || (mean.is_none() && training == Some(false)) {
        return Err(wrong(
            call,
            "`running_mean` and `running_var` come together, and are needed outside of training",
        ));
    }
    if training == Some(true) {
        let others = x.shape.iter().enumerate().filter(|(at, _)| *at != 1);
        let each = Dim::product(others.map(|(_, size)| size))?;
        // No value is fine, one has no variance.
        if each != 0 {
            at_least(
                call,
                &each,
                2,
                "training needs more than one value per channel",
            )?;
        }
    }
    Ok(like(x, x.dtype))
}

/// Each channel of each sample for itself.
fn instance_norm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let [_, channels, rest @ ..] = &x.shape[..] else {
        return Err(wrong(
            call,
            format_args!("the input has two dims at least, and not {:?}", x.shape),
        ));
    };
    require(call, x, Elements::Fractions)?;
    let one = std::slice::from_ref(channels);
    match truth(call, "use_input_stats")? {
        Some(true) => {
            let each = Dim::product(rest)?;
            at_least(
                call,
                &each,
                2,
                "a channel has two values at least, or it has no variance",
            )?;
            at_least(call, channels, 1, "the input has one channel at least")?;
            require_shape(call, one, &["weight", "bias"])?;
            require_types(call, x, &["weight", "bias"])?;
        }
        Some(false) => {
            let params = ["running_mean", "running_var", "weight", "bias"];
            require_shape(call, one, &params)?;
            require_types(call, x, &params)?;
            for param in ["running_mean", "running_var"] {
                if call.arg(param)?.is_none() {
                    return Err(wrong(
                        call,
                        format_args!("`{param}` is needed without `use_input_stats`"),
                    ));
                }
            }
        }
        None => {}
    }
    Ok(like(x, x.dtype))
}

fn group_norm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let [_, channels, image @ ..] = &x.shape[..] else {
        return Err(wrong(
            call,
            format_args!("the input has two dims at least, and not {:?}", x.shape),
        ));
    };
    for size in image.iter().chain([channels]) {
        at_least(call, size, 1, "there are channels, and images with pixels")?;
    }
    let groups = count(call, "num_groups")?;
    divided(call, channels, groups, "channels in groups")?;
    let params = ["weight", "bias"];
    require_shape(call, std::slice::from_ref(channels), &params)?;
    require_types(call, x, &params)?;
    if Dim::product(&x.shape)?.as_number() == Some(groups) {
        return Err(wrong(
            call,
            "a group has two values at least, or it has no variance",
        ));
    }
    Ok(like(x, x.dtype))
}

fn of_last_dims(call: &mut RuleCall<'_>, params: &[&str]) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let normalized = call.sizes("normalized_shape")?;
    let before = x.shape.len().checked_sub(normalized.len());
    let last = before.and_then(|before| x.shape.get(before..));
    match last {
        Some(last) if !normalized.is_empty() && are_equal(call, last, &normalized)? => {}
        _ => {
            return Err(wrong(
                call,
                format_args!("{normalized:?} are not the last dims of {:?}", x.shape),
            ));
        }
    }
    require_shape(call, &normalized, params)?;
    if params.contains(&"bias") {
        require_types(call, x, params)?;
    }
    Ok(like(x, x.dtype))
}

fn local_response_norm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    require_rank(call, x, 3..)?;
    match count(call, "size")? {
        0 => Err(wrong(call, "`size` is 1 or above, and not 0")),
        _ => Ok(like(x, x.dtype)),
    }
}

fn normalize(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    call.places("dim", x.shape.len())?;
    Ok(like(x, x.dtype))
}
